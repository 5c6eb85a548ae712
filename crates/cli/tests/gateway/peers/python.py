"""Lists and calls through the gateway with the MCP library for Python, of either major version: by a session that greets, or by the
client of the second, which finds out how the gateway wants to be spoken with."""

import asyncio
import json
import os
import sys


async def spoken(session, revision):
    listed = await session.list_tools()
    called = await session.call_tool("plain_say", {"words": "hello"})
    return {"tools": [tool.name for tool in listed.tools], "said": called.content[0].text, "revision": revision}


async def greeting(transport):
    from mcp import ClientSession

    async with transport as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            agreed = (await session.initialize()).model_dump(by_alias=True)
            return await spoken(session, agreed["protocolVersion"])


async def finding_out(transport):
    from mcp import Client

    async with Client(transport) as client:
        return await spoken(client, client.protocol_version)


async def stdio(speak, program, *arguments):
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=program, args=list(arguments), env=dict(os.environ))
    return await speak(stdio_client(server))


async def http(speak, url, token):
    headers = {"Authorization": f"Bearer {token}"}
    try:
        import httpx2 as httpx
    except ImportError:
        import httpx
    from mcp.client.streamable_http import streamable_http_client

    async with httpx.AsyncClient(headers=headers) as client:
        return await speak(streamable_http_client(url, http_client=client))


how, way, *rest = sys.argv[1:]
speak = {"greeting": greeting, "finding-out": finding_out}[how]
print(json.dumps(asyncio.run({"stdio": stdio, "http": http}[way](speak, *rest))))
