"""Runs @MODULE@:@FUNCTION@ as a tool: JSON object in (last argument or stdin), one line of JSON out."""

import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import importlib
import inspect
import json
import math
import os
import pathlib
import sys
import types
import typing
import uuid
from collections import abc

MODULE, FUNCTION = "@MODULE@", "@FUNCTION@"

# @CONVERSION@


# --- running ---


def read_input():
    """The input object: the last argument if it is a JSON object, else what stdin holds."""
    try:
        given = json.loads(sys.argv[-1]) if len(sys.argv) > 1 else None
    except ValueError:
        given = None
    if not isinstance(given, dict):
        given = json.loads(sys.stdin.buffer.read().decode("utf-8-sig") or "{}")
    if not isinstance(given, dict):
        raise ValueError("the input is not a JSON object")
    return given


def load():
    """The tool's function, from the module beside this file; nothing is written there."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.argv = [MODULE]
    return functools.reduce(getattr, FUNCTION.split("."), importlib.import_module(MODULE))


def main():
    """Keeps stdout for the one result line: whatever the tool prints goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        given = read_input()
        line = json.dumps(call(load(), given), ensure_ascii=False, allow_nan=False)
    except (Exception, SystemExit) as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=sys.stderr, flush=True)
        return 1
    print(line, file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
