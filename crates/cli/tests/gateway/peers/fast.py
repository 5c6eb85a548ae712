"""Lists and calls through the gateway with FastMCP, in one of its modes."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


def transport(way, first, *rest):
    if way == "stdio":
        return StdioTransport(command=first, args=list(rest))
    return StreamableHttpTransport(first, headers={"Authorization": f"Bearer {rest[0]}"})


async def spoken():
    mode, *rest = sys.argv[1:]
    async with Client(transport(*rest), mode=mode) as client:
        tools = await client.list_tools()
        called = await client.call_tool("plain_say", {"words": "hello"})
        said = called.content[0].text
        return {"tools": [tool.name for tool in tools], "said": said, "revision": client.protocol_version}


print(json.dumps(asyncio.run(spoken())))
