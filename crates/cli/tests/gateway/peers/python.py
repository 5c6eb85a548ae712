"""Lists and calls through the gateway with the MCP library for Python, of either major version."""

import asyncio
import json
import os
import sys


async def spoken(read, write):
    from mcp import ClientSession

    async with ClientSession(read, write) as session:
        await session.initialize()
        listed = await session.list_tools()
        called = await session.call_tool("plain_say", {"words": "hello"})
        return {"tools": [tool.name for tool in listed.tools], "said": called.content[0].text}


async def stdio(program, *arguments):
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=program, args=list(arguments), env=dict(os.environ))
    async with stdio_client(server) as (read, write):
        return await spoken(read, write)


async def http(url, token):
    headers = {"Authorization": f"Bearer {token}"}
    try:
        import httpx2 as httpx
    except ImportError:
        import httpx
    from mcp.client.streamable_http import streamable_http_client

    async with httpx.AsyncClient(headers=headers) as client:
        async with streamable_http_client(url, http_client=client) as streams:
            return await spoken(streams[0], streams[1])


way, *rest = sys.argv[1:]
print(json.dumps(asyncio.run({"stdio": stdio, "http": http}[way](*rest))))
