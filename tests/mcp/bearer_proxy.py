#!/usr/bin/env python3
"""A reverse proxy on loopback that adds a bearer token to every request, for clients that can send none.

    bearer_proxy.py http://127.0.0.1:8460 TOKEN_FILE [NAME:VALUE ...]

Prints its own address and serves until it is ended. Its port in `Host` and `Origin` becomes the server's; everything else
passes as it came, so that a server's checks of both can be tested through it.
"""

import asyncio
import sys
from urllib.parse import urlsplit

SERVER = urlsplit(sys.argv[1])
with open(sys.argv[2]) as file:
    ADDED = [f"Authorization: Bearer {file.read().strip()}", "Connection: close", *sys.argv[3:]]


async def relay(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


async def client(reader, writer):
    """One request a connection, so that each head is seen."""
    tasks = []
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        port = writer.get_extra_info("sockname")[1]
        mended = [head[0]]
        for line in head[1:]:
            name = line.partition(":")[0].lower()
            if name in ("host", "origin"):
                line = line.replace(f":{port}", f":{SERVER.port}")
            if name not in ("authorization", "connection"):
                mended.append(line)
        far_reader, far_writer = await asyncio.open_connection(SERVER.hostname, SERVER.port)
        far_writer.write("\r\n".join(mended + ADDED).encode("latin-1") + b"\r\n\r\n")
        tasks = [asyncio.create_task(relay(reader, far_writer)), asyncio.create_task(relay(far_reader, writer))]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        far_writer.close()
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        for task in tasks:
            task.cancel()
        writer.close()


async def main():
    server = await asyncio.start_server(client, "127.0.0.1", 0)
    print("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
