"""Gives the text of a PDF; the input JSON is the last argument, or comes on stdin.

It reads the operators that show text in the streams of a file, plain or deflated, with the standard encoding. Files with
fonts of their own encoding need a real library.
"""

import json
import re
import sys
import zlib

STREAM = re.compile(rb"<<(.*?)>>\s*stream\r?\n(.*?)\r?\nendstream", re.DOTALL)
SHOWN = re.compile(rb"\((?:\\.|[^\\()])*\)|<[0-9A-Fa-f\s]*>|\bT[jJ*dDm]\b|\bET\b|['\"]")
ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}


def unescaped(text):
    """The bytes of a text in parentheses."""

    def one(match):
        found = match.group(1)
        if found.isdigit():
            return bytes([int(found, 8) & 0xFF])
        return ESCAPES.get(found, found)

    return re.sub(rb"\\([0-7]{1,3}|.)", one, text, flags=re.DOTALL)


def text_of(content):
    """The text that one stream shows, a line for each move to another."""
    lines, line = [], b""
    for part in SHOWN.findall(content):
        if part.startswith(b"("):
            line += unescaped(part[1:-1])
        elif part.startswith(b"<"):
            line += bytes.fromhex(part[1:-1].decode())
        elif part not in (b"Tj", b"TJ"):
            lines.append(line)
            line = b""
    return "\n".join(one.decode("cp1252", "replace") for one in lines + [line] if one)


given = json.loads(sys.argv[-1] if len(sys.argv) > 1 else sys.stdin.read())
with open(given["path"], "rb") as file:
    data = file.read()
if not data.startswith(b"%PDF-"):
    sys.exit(f"`{given['path']}` is no PDF")
texts = []
for head, content in STREAM.findall(data):
    if b"/FlateDecode" in head:
        content = zlib.decompress(content)
    if b"BT" in content:
        texts.append(text_of(content))
print(json.dumps({"content": "\n\n".join(texts), "pages": len(texts)}))
