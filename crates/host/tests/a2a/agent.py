"""An agent made of the A2A library, of whichever version is installed.

Its input says what it does. The first argument says what its card is like: `card`, `key` for one that wants a key in a
header, `oauth` for one that wants people to sign in at the server that is the second argument, and refuses whoever has not, or
`none` for no card at all. Prints its port, and ends when its input does.
"""

import asyncio
import base64
import json
import socket
import sys
import threading
from importlib.metadata import version

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater

IS_NEW = not version("a2a-sdk").startswith("0.")
if IS_NEW:
    from a2a.helpers.proto_helpers import new_task_from_user_message as new_task
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from a2a.types import a2a_pb2 as types
    from google.protobuf.json_format import MessageToDict, ParseDict
    from starlette.applications import Starlette
else:
    from a2a import types
    from a2a.server.apps import A2AStarletteApplication
    from a2a.utils import new_task

cancelled = []


def said(message):
    """The text of a message, and its data."""
    if IS_NEW:
        parts = [MessageToDict(part) for part in message.parts]
    else:
        parts = [part.root.model_dump() for part in message.parts]
    text = next((part["text"] for part in parts if "text" in part), None)
    return text, next((part["data"] for part in parts if "data" in part), None)


def part(kind, value):
    if IS_NEW:
        if kind == "file":
            return types.Part(raw=value, media_type="image/png", filename="a.png")
        return ParseDict({kind: value}, types.Part())
    if kind == "file":
        encoded = base64.b64encode(value).decode()
        file = types.FileWithBytes(bytes=encoded, mime_type="image/png", name="a.png")
        return types.Part(root=types.FilePart(file=file))
    return types.Part(root=types.TextPart(text=value) if kind == "text" else types.DataPart(data=value))


class Executor(AgentExecutor):
    async def execute(self, context, queue):
        text, data = said(context.message)
        ask = data or {"do": "text"}
        do = ask.get("do")
        if do == "message":
            task = context.current_task or new_task(context.message)
            updater = TaskUpdater(queue, task.id, task.context_id)
            await queue.enqueue_event(updater.new_agent_message([part("text", "just words")]))
            return
        task = context.current_task or new_task(context.message)
        await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        words = lambda text: updater.new_agent_message([part("text", text)])
        if do == "fail":
            await updater.failed(words("it broke"))
        elif do == "reject":
            await updater.reject(words("not mine to do"))
        elif do == "ask":
            await updater.requires_input(words("Which city?"))
        elif do == "login":
            await updater.requires_auth(words("Sign in at the desk."))
        elif do == "hang":
            await updater.start_work()
            await asyncio.sleep(60)
        else:
            await updater.start_work()
            await asyncio.sleep(ask.get("seconds", 0))
            headers = context.call_context.state["headers"]
            made = {
                "text": [part("text", f"you said {text}")],
                "echo": [part("data", {"told": ask, "headers": headers})],
                "file": [part("file", b"\x89PNG")],
                "several": [part("text", "one"), part("data", {"two": 2})],
                "large": [part("text", "x" * 3_000_000)],
                "cancelled": [part("data", {"cancelled": cancelled})],
            }
            await updater.add_artifact(made[do], name="made")
            await updater.complete()

    async def cancel(self, context, queue):
        cancelled.append(context.task_id)
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def flows(server):
    flow = {"authorizationUrl": f"{server}/authorize", "tokenUrl": f"{server}/token", "scopes": {"read": "Reads.", "write": "Writes."}}
    return {"flows": {"authorizationCode": flow}}


def guarded(app):
    """Refuses whoever shows no token."""

    async def guard(scope, receive, send):
        token = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] == "http" and scope["method"] == "POST" and not token.startswith(b"Bearer access-"):
            await send({"type": "http.response.start", "status": 401, "headers": []})
            return await send({"type": "http.response.body", "body": b""})
        await app(scope, receive, send)

    return guard


async def main(card_kind, server=None):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}/rpc"
    skill = {"id": "s", "name": "S", "description": "Does it.", "tags": ["t"]}
    card = {
        "name": "Agent", "description": "Tries things.", "version": "1.0.0", "skills": [skill],
        "capabilities": {"streaming": False},
        "defaultInputModes": ["application/json", "text/plain"], "defaultOutputModes": ["application/json"],
    }
    if IS_NEW:
        card["supportedInterfaces"] = [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
        if card_kind == "key":
            card["securitySchemes"] = {"k": {"apiKeySecurityScheme": {"location": "header", "name": "X-Agent-Key"}}}
        if card_kind == "oauth":
            card["securitySchemes"] = {"o": {"oauth2SecurityScheme": flows(server)}}
            card["securityRequirements"] = [{"schemes": {"o": {"list": ["read"]}}}]
        card = ParseDict(card, types.AgentCard())
        handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=card)
        routes = create_jsonrpc_routes(handler, "/rpc")
        if card_kind != "none":
            routes += create_agent_card_routes(card)
        app = Starlette(routes=routes)
    else:
        card |= {"url": url, "protocolVersion": "0.3.0"}
        if card_kind == "key":
            card["securitySchemes"] = {"k": {"type": "apiKey", "in": "header", "name": "X-Agent-Key"}}
        if card_kind == "oauth":
            card["securitySchemes"] = {"o": {"type": "oauth2", **flows(server)}}
            card["security"] = [{"o": ["read"]}]
        card = types.AgentCard.model_validate(card)
        handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore())
        app = A2AStarletteApplication(agent_card=card, http_handler=handler)
        app = app.build(rpc_url="/rpc", agent_card_url="/nowhere" if card_kind == "none" else "/.well-known/agent-card.json")
    app = guarded(app) if card_kind == "oauth" else app
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))

    def wait():
        sys.stdin.read()
        server.should_exit = server.force_exit = True

    threading.Thread(target=wait, daemon=True).start()
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    print(port, flush=True)
    await serving


asyncio.run(main(*sys.argv[1:]))
