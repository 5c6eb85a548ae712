"""Lists the most frequent words of a text on standard input; how many is the first argument."""

import collections
import re
import sys

if len(sys.argv) != 2 or not sys.argv[1].isdigit():
    sys.exit("usage: frequent.py NUMBER")
words = re.findall(r"\w+", sys.stdin.read().lower())
for word, times in collections.Counter(words).most_common(int(sys.argv[1])):
    print(f"{times} {word}")
