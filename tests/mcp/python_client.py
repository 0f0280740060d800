#!/usr/bin/env python3
"""The Python SDK's client against the gateway, both revisions: list, allow, ask, grant, retry, deny.

    pip install mcp
    python_client.py PORTCULLIS                            over stdio
    python_client.py PORTCULLIS http://127.0.0.1:8460/mcp  over HTTP, with the agent's token in MCP_TOKEN

Run it in a workspace of its own, with HOME (or PORTCULLIS_STATE and PORTCULLIS_CONFIG) set to a throw-away place.
"""

import asyncio
import os
import re
import subprocess
import sys

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

PROGRAM, URL = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None


def server(mode):
    if URL is None:
        return StdioServerParameters(command=PROGRAM, args=["mcp", "serve", "--wait", "0"], env=dict(os.environ))
    headers = {"Authorization": f"Bearer {os.environ['MCP_TOKEN']}", "Portcullis-Session": f"python-{mode}", "Portcullis-Wait": "0"}
    return streamable_http_client(URL, http_client=httpx2.AsyncClient(headers=headers, timeout=60))


def said(result):
    return result.content[0].text


async def session(mode):
    async with Client(server(mode), mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == sorted(names) and {"Bash", "Read"} <= set(names), names
        read = await client.call_tool("Read", {"path": "hello.txt"})
        assert not read.is_error and "good morning" in said(read), read
        asked = await client.call_tool("Bash", {"command": "ls"})
        assert asked.is_error and said(asked).startswith("PENDING"), asked
        approval = re.search(r"approvals grant (\S+)", said(asked)).group(1)
        subprocess.run([PROGRAM, "approvals", "grant", approval], check=True, stdout=subprocess.DEVNULL)
        ran = await client.call_tool("Bash", {"command": "ls"})
        assert not ran.is_error and "hello.txt" in said(ran), ran
        denied = await client.call_tool("Bash", {"command": "rm -rf /"})
        assert denied.is_error and said(denied).startswith("DENIED by portcullis: "), denied
        print(f"{mode}: {len(names)} tools; read, ask, grant, retry, deny as expected; {said(denied).splitlines()[0]}")


for each in ["legacy", "2026-07-28", "auto"]:
    asyncio.run(session(each))
