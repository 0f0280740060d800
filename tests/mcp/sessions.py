#!/usr/bin/env python3
"""Opens many MCP sessions over streamable HTTP at once and makes calls in each; needs nothing but Python.

    sessions.py http://127.0.0.1:8460/mcp --token-file TOKEN [--sessions 200] [--calls 20] [--tool ListDir] [--arguments '{"path": "."}']

Prints a line of percentiles in milliseconds and exits with 1 if any answer was not as expected.
"""

import argparse
import asyncio
import json
import sys
import time
from urllib.parse import urlsplit


class Connection:
    """One HTTP/1.1 connection that is kept alive."""

    def __init__(self, url, token):
        self.url, self.token, self.session = url, token, None

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection(self.url.hostname, self.url.port)

    async def post(self, message):
        body = json.dumps(message).encode()
        head = [
            f"POST {self.url.path} HTTP/1.1",
            f"Host: {self.url.netloc}",
            f"Authorization: Bearer {self.token}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            "MCP-Protocol-Version: 2025-11-25",
            f"Content-Length: {len(body)}",
        ]
        if self.session:
            head.append(f"Mcp-Session-Id: {self.session}")
        self.writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        status = int((await self.reader.readline()).split()[1])
        headers = {}
        while (line := (await self.reader.readline()).strip()):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        self.session = headers.get("mcp-session-id", self.session)
        if "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await self.reader.readline(), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            await self.reader.readexactly(2)
        else:
            body = b""
        data = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")] or [body]
        return status, [json.loads(part) for part in data if part]


async def client(number, options, times):
    connection = Connection(urlsplit(options.url), options.token)
    await connection.open()
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": f"load-{number}", "version": "1"}}
    status, _ = await connection.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    if status != 200 or not connection.session:
        return f"session {number} was not begun: {status}"
    await connection.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    params = {"name": options.tool, "arguments": json.loads(options.arguments)}
    for call in range(1, options.calls + 1):
        began = time.perf_counter()
        status, messages = await connection.post({"jsonrpc": "2.0", "id": call, "method": "tools/call", "params": params})
        times.append((time.perf_counter() - began) * 1000)
        answer = next((m for m in messages if m.get("id") == call), None)
        if status != 200 or answer is None or "result" not in answer:
            return f"session {number}, call {call}: {status} {messages}"
    connection.writer.close()
    return None


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--token-file", required=True)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--tool", default="ListDir")
    parser.add_argument("--arguments", default='{"path": "."}')
    options = parser.parse_args()
    with open(options.token_file) as file:
        options.token = file.read().strip()
    times = []
    began = time.perf_counter()
    failures = [f for f in await asyncio.gather(*(client(n, options, times) for n in range(options.sessions))) if f]
    took = time.perf_counter() - began
    times.sort()
    share = lambda part: times[int((len(times) - 1) * part)] if times else float("nan")
    print(
        f"{options.sessions} sessions, {len(times)} calls in {took:.2f} s ({len(times) / took:.0f} a second); "
        f"ms a call: p50 {share(0.5):.1f}, p95 {share(0.95):.1f}, p99 {share(0.99):.1f}; {len(failures)} failures"
    )
    for failure in failures[:5]:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


sys.exit(asyncio.run(main()))
