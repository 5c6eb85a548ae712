//! A program at a terminal: it has one of its own, and is typed to.

use crate::common::Ran;
use crate::walls::{Desk, PYTHON, ran};

for_everybody![
    a_terminal_is_seen_and_cannot_be_typed_into,
    what_is_typed_is_read_and_ctrl_c_ends_it,
];

/// Runs a program at a terminal of 97 columns and 31 lines, types a text (in hex) when it is asked
/// something, and prints what the screen shows.
const SCREEN: &str = "
import fcntl, os, pty, signal, struct, sys, termios
signal.alarm(60)
typed = bytes.fromhex(sys.argv.pop(1))
ready, go = os.pipe()
child, terminal = pty.fork()
if child == 0:
    os.read(ready, 1)
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 31, 97, 0, 0))
os.write(go, b'.')
screen = b''
try:
    while piece := os.read(terminal, 4096):
        screen += piece
        if screen.endswith(b'? '):
            os.write(terminal, typed)
except OSError: pass
sys.stdout.write(screen.decode().replace('\\r', ''))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

/// Looks at its terminal, and tries to type into it.
const AT_THE_TERMINAL: &str = "
import fcntl, os, termios
print([os.isatty(number) for number in range(3)], os.get_terminal_size(0))
for request in (termios.TIOCSTI, termios.TIOCSTI | 1 << 32, 0x541C, termios.TIOCSETD):
    try:
        fcntl.ioctl(0, request - (1 << 32) if request >> 32 else request, b'x')
        print('typed')
    except OSError as error: print(error.strerror)
try: print('its own' if open('/dev/tty').isatty() else 'none')
except OSError as error: print(error.strerror)
";

fn a_terminal_is_seen_and_cannot_be_typed_into(desk: &Desk) {
    let ran = at_a_terminal(desk, "", AT_THE_TERMINAL);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_said!(ran.stdout, @r"
    [True, True, True] os.terminal_size(columns=97, lines=31)
    Operation not permitted
    Operation not permitted
    Operation not permitted
    Operation not permitted
    its own
    ");
}

/// Runs a script of Python inside the walls at a terminal, at which this is typed.
fn at_a_terminal(desk: &Desk, typed: &str, script: &str) -> Ran {
    let hex: String = typed.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut command = desk.command(PYTHON);
    command.args(["-c", SCREEN, &hex, desk.program(), "sandbox", "--", PYTHON, "-c", script]);
    ran(command, b"")
}

fn what_is_typed_is_read_and_ctrl_c_ends_it(desk: &Desk) {
    let ask = "print('hello', input('who? '))";
    let ran = at_a_terminal(desk, "you\n", ask);
    assert_eq!((ran.code, &*ran.stdout), (0, "who? you\nhello you\n"), "{}", ran.stderr);
    let plain = "import signal; signal.signal(2, signal.SIG_DFL); input('who? ')";
    let ran = at_a_terminal(desk, "\x03", plain);
    assert_eq!((ran.code, &*ran.stdout), (130, "who? ^C"), "{}", ran.stderr);
    // One that does not listen is ended when it is told again.
    let deaf = "import signal; signal.signal(2, signal.SIG_IGN); input('who? '); input()";
    let ran = at_a_terminal(desk, "\x03\x03\x03", deaf);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("was cancelled"), "{}", ran.stdout);
}
