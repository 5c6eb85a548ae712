"""Lists and calls through the gateway with FastMCP."""

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
    async with Client(transport(*sys.argv[1:])) as client:
        tools = await client.list_tools()
        called = await client.call_tool("plain_say", {"words": "hello"})
        return {"tools": [tool.name for tool in tools], "said": called.content[0].text}


print(json.dumps(asyncio.run(spoken())))
