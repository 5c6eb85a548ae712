"""A server of the older era, one of several: NAME [METHOD=SECONDS...]. Those methods it answers only after so long.

Its tool `do` has it tell that a resource has changed (`touch`, `uri`), say what it is to tell of (`watched`), or end (`die`).
Whoever wants to be told of NAME://eager is told before the answer that says so.
"""
import json, os, sys, time

NAME = sys.argv[1]
LATE = dict(one.split("=") for one in sys.argv[2:])
WATCHED = []
OWN = [f"{NAME}://own", f"{NAME}://eager"]
DEFINITION = {
    "name": "do",
    "title": "Do something",
    "description": f"Does something of {NAME}",
    "icons": [{"src": f"https://example.com/{NAME}.svg", "mimeType": "image/svg+xml"}],
    "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}, "uri": {"type": "string"}}},
    "outputSchema": {"type": "object", "properties": {"watched": {"type": "array"}}},
    "annotations": {"openWorldHint": False},
    "_meta": {f"{NAME}/odd": [1]},
}


class Refused(Exception):
    pass


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def touch(uri):
    say({"method": "notifications/resources/updated", "params": {"uri": uri, "by": NAME}})


def do(arguments):
    if arguments.get("what") == "die":
        os._exit(7)
    if arguments.get("what") == "touch":
        touch(arguments["uri"])
    said = {"watched": WATCHED}
    return {"content": [{"type": "text", "text": json.dumps(said)}], "structuredContent": said}


def check(uri):
    if uri not in [*OWN, "shared://paper"] and not uri.startswith(f"{NAME}://item/"):
        raise Refused
    return uri


def subscribe(uri):
    if check(uri).endswith("eager"):
        touch(uri)
    WATCHED.append(uri)
    return {}


def unsubscribe(uri):
    WATCHED.remove(uri)
    return {}


def read(uri):
    return {"contents": [{"uri": check(uri), "mimeType": "text/plain", "text": f"{uri} of {NAME}"}]}


def prompt(params):
    text = f"{NAME} {params['name']} {params.get('arguments', {}).get('who')}"
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def complete(params):
    reference = params["ref"].get("name") or params["ref"]["uri"]
    return {"completion": {"values": [f"{NAME} {reference} {params['argument']['value']}"]}}


CAPABILITIES = {
    "tools": {},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
}
ANSWERS = {
    "initialize": lambda _: {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": {"name": NAME, "version": "1"}},
    "tools/list": lambda _: {"tools": [DEFINITION]},
    "tools/call": lambda params: do(params.get("arguments") or {}),
    "prompts/list": lambda _: {"prompts": [{"name": name, "arguments": [{"name": "who"}]} for name in ("greet", "more_greet")]},
    "prompts/get": prompt,
    "resources/list": lambda _: {"resources": [{"uri": uri, "name": uri} for uri in [*OWN, "shared://paper"]]},
    "resources/templates/list": lambda _: {"resourceTemplates": [{"uriTemplate": f"{NAME}://item/{{id}}", "name": "item"}]},
    "resources/read": lambda params: read(params["uri"]),
    "resources/subscribe": lambda params: subscribe(params["uri"]),
    "resources/unsubscribe": lambda params: unsubscribe(params["uri"]),
    "completion/complete": complete,
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    time.sleep(float(LATE.get(method, 0)))
    try:
        say({"id": message["id"], "result": ANSWERS[method](message.get("params") or {})})
    except KeyError:
        say({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
    except Refused:
        say({"id": message["id"], "error": {"code": -32002, "message": "no such resource"}})
