"""Runs a program at a terminal of its own and answers its questions.

Usage: terminal.py ANSWER… -- PROGRAM ARGUMENT…
Prints what the screen showed, and ends as the program ends.
"""

import os
import pty
import select
import signal
import sys
import termios
import time

split = sys.argv.index("--")
answers, command = sys.argv[1:split], sys.argv[split + 1 :]

signal.alarm(90)  # Whatever happens, this ends.
child, terminal = pty.fork()
if child == 0:
    os.execv(command[0], command)

screen = b""
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    if select.select([terminal], [], [], 0.1)[0]:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        if not piece:
            break
        screen += piece
    # A question for a secret ends in a colon and a blank; it is answered once the terminal no longer
    # echoes. One with choices ends in a bracket and a blank, one for a value that is shown in `= `.
    echoes = termios.tcgetattr(terminal)[3] & termios.ECHO
    is_asked = screen.endswith((b"] ", b"= ")) or (screen.endswith(b": ") and not echoes)
    if is_asked and answers:
        os.write(terminal, answers.pop(0).encode() + b"\n")
        screen += b"\n"
_, status = os.waitpid(child, 0)
sys.stdout.write(screen.decode())
sys.exit(os.waitstatus_to_exitcode(status))
