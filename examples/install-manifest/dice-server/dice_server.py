#!/usr/bin/env python3
"""A small MCP server over stdio that rolls dice.

One JSON-RPC message a line. Set DICE_MAX_SIDES to bound the size of a die.
"""

import json
import os
import random
import sys

TOOL = {
    "name": "roll",
    "description": "Roll one or more dice and return each result and the sum.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "sides": {"type": "integer", "minimum": 2, "default": 6},
            "count": {"type": "integer", "minimum": 1, "maximum": 20, "default": 1},
            "seed": {"type": "integer", "description": "Makes the roll repeatable."},
        },
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "sides": {"type": "integer"},
            "rolls": {"type": "array", "items": {"type": "integer"}},
            "sum": {"type": "integer"},
        },
        "required": ["sides", "rolls", "sum"],
    },
}
REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def roll(arguments):
    sides = arguments.get("sides", 6)
    count = arguments.get("count", 1)
    limit = int(os.environ.get("DICE_MAX_SIDES", "100"))
    if not is_integer(sides) or not 2 <= sides <= limit:
        raise ValueError(f"sides must be a whole number from 2 to {limit}")
    if not is_integer(count) or not 1 <= count <= 20:
        raise ValueError("count must be a whole number from 1 to 20")
    source = random.Random(arguments.get("seed"))
    rolls = [source.randint(1, sides) for _ in range(count)]
    return {"sides": sides, "rolls": rolls, "sum": sum(rolls)}


def call(params):
    if params.get("name") != TOOL["name"]:
        raise Refused(-32602, f"unknown tool: {params.get('name')}")
    try:
        result = roll(params.get("arguments") or {})
    except ValueError as problem:
        return {"isError": True, "content": [{"type": "text", "text": str(problem)}]}
    return {
        "content": [{"type": "text", "text": json.dumps(result)}],
        "structuredContent": result,
    }


def answer(method, params):
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "dice-server", "version": "1.0.0"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return call(params)
    raise Refused(-32601, f"method not found: {method}")


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main():
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            request = json.loads(line)
        except ValueError:
            send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "not JSON"}})
            continue
        if "id" not in request:
            continue
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = answer(request.get("method"), request.get("params") or {})
        except Refused as refusal:
            reply["error"] = {"code": refusal.code, "message": str(refusal)}
        send(reply)


if __name__ == "__main__":
    main()
