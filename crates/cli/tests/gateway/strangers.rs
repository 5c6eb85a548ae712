//! Other users of this machine, who reach nothing of a host; and a host that is another user's.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::common::Desk;
use crate::gate::{Joined, OPEN, home, until};

/// An ordinary user.
const NOBODY: u32 = 65534;

/// Asks the host at a socket as a user, and says what came back.
const ASK: &str = r#"import json, os, socket, sys
path, user, version = sys.argv[1:]
os.setuid(int(user))
stream = socket.socket(socket.AF_UNIX)
try:
    stream.connect(path)
except PermissionError:
    sys.exit("may not")
want = {"speak": {"profile": None, "only": None, "folder": "/", "session": "s"}}
try:
    stream.sendall((json.dumps({"version": version, "want": want}) + "\n").encode())
    print(stream.recv(100).decode().strip() or "nothing")
except (BrokenPipeError, ConnectionResetError):
    print("nothing")
"#;

/// A host of another user, which says nothing.
const POSE: &str = r#"import os, socket, sys, time
stream = socket.socket(socket.AF_UNIX)
stream.bind(sys.argv[1])
os.setuid(int(sys.argv[2]))
stream.listen()
print("there", flush=True)
while True:
    stream.accept()
"#;

fn mode(desk: &Desk, path: &str) -> u32 {
    std::fs::metadata(desk.path(path)).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_host_is_there_for_its_own_user_alone() {
    let desk = home(&[], OPEN);
    let _client = Joined::greeted(&desk, &[], &json!({}));
    assert_eq!(["home/host.sock", "home/host.lock"].map(|path| mode(&desk, path)), [0o600, 0o600]);
    if !rustix::process::geteuid().is_root() {
        // Only root can be somebody else.
        return;
    }
    let ask = |user: u32| {
        let mut command = Command::new("python3");
        command.args(["-c", ASK]).arg(desk.path("home/host.sock")).arg(user.to_string());
        let output = command.arg(env!("CARGO_PKG_VERSION")).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).unwrap().trim().to_owned()
    };
    assert_eq!(ask(0), "\"welcome\"");
    assert_eq!(ask(NOBODY), "may not");
    // Also where the files would let them.
    for (path, mode) in [("", 0o755), ("home", 0o755), ("home/host.sock", 0o666)] {
        std::fs::set_permissions(desk.path(path), Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(ask(NOBODY), "nothing");
    assert_eq!(ask(0), "\"welcome\"");
}

#[test]
fn a_host_of_another_user_is_told_nothing() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let desk = home(&[], OPEN);
    let socket = desk.path("home/host.sock");
    let mut command = Command::new("python3");
    command.args(["-c", POSE]).arg(&socket).arg(NOBODY.to_string()).stdout(Stdio::piped());
    let mut posing = command.spawn().unwrap();
    until("it is there", || socket.exists());
    let mut said = [0; 6];
    std::io::Read::read_exact(posing.stdout.as_mut().unwrap(), &mut said).unwrap();
    let ran = desk.haft(&["mcp"]);
    posing.kill().unwrap();
    posing.wait().unwrap();
    assert!(ran.stderr.contains("the host of this home runs as somebody else"), "{}", ran.stderr);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""));
}
