"""Counts the lines, words and characters of a text on standard input."""

import sys

text = sys.stdin.read()
print(f"lines {len(text.splitlines())}")
print(f"words {len(text.split())}")
print(f"characters {len(text)}")
