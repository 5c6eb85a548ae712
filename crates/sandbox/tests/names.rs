//! Names and doors: what a program without a network asks for is refused and told; with one the host hears it.
#![cfg(target_os = "linux")]

mod kit;

use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use kit::rooms::{launcher, python, run, walled};
use kit::users::as_each_user;
use sandbox::{Confinement, Exit, Network};

/// Asks for a name, and says how that went.
fn asking(name: &str) -> String {
    format!(
        "import socket\ntry: print(socket.getaddrinfo('{name}', 443)[0][4][0])\nexcept OSError as error: print(error.errno)"
    )
}

#[test]
fn without_a_network_a_name_is_refused_at_once_and_told() {
    as_each_user(|| {
        let launcher = launcher();
        for name in ["api.example.com", "x.example.org"] {
            let began = Instant::now();
            let mut child = launcher.spawn(&walled(), &python(&asking(name))).unwrap();
            let asked = child.take_asked().unwrap();
            assert!(child.take_asked().is_none() && child.take_network().is_none());
            let said = child.finish(b"").unwrap();
            // What there is when nobody answers.
            assert_eq!(String::from_utf8(said.stdout).unwrap(), "-3\n");
            assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
            let label = name.split('.').next().unwrap().as_bytes();
            let questions = asked.take();
            let names = |one: &Vec<u8>| one.windows(label.len()).any(|part| part == label);
            assert!(!questions.is_empty() && questions.iter().all(names), "{questions:?}");
            assert!(asked.take().is_empty());
        }
    });
}

#[test]
fn who_asks_without_end_is_held_to_the_same_limits() {
    as_each_user(|| {
        let mut confinement = walled();
        confinement.limits.deadline = Some(Duration::from_millis(600));
        let flood = "import socket\nwhile True:\n    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    for size in (0, 1, 3, 12, 600): s.sendto(b'\\0' * size, ('127.0.0.1', 53))";
        let began = Instant::now();
        let mut child = launcher().spawn(&confinement, &python(flood)).unwrap();
        let asked = child.take_asked().unwrap();
        assert_eq!(child.finish(b"").unwrap().ended.exit, Exit::Deadline);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert!(asked.take().iter().all(|one| one.len() <= 512));
    });
}

#[test]
fn with_a_network_the_host_has_its_ends() {
    as_each_user(|| {
        let launcher = launcher();
        let doors = vec![443, 80, 8443];
        let confinement = Confinement { network: Network::Allow, doors, ..walled() };
        let script = "import socket\ns = socket.create_connection(('127.83.1.2', 443)); s.sendall(b'in'); s.close()\nu = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.sendto(b'who', ('127.0.0.1', 53))\nprint(u.recv(9).decode())";
        let mut child = launcher.spawn(&confinement, &python(script)).unwrap();
        assert!(child.take_asked().is_none());
        let ends = child.take_network().unwrap();
        assert!(child.take_network().is_none());
        let at: Vec<_> =
            ends.doors.iter().map(|one| one.local_addr().unwrap().to_string()).collect();
        // A machine may have none of the newer addresses.
        let hosts = if TcpListener::bind("[::1]:0").is_ok() {
            &["0.0.0.0", "[::1]"][..]
        } else {
            &["0.0.0.0"]
        };
        let expected: Vec<_> = [443, 80, 8443]
            .iter()
            .flat_map(|port| hosts.iter().map(move |host| format!("{host}:{port}")))
            .collect();
        assert_eq!(at, expected);
        let (mut client, _) = ends.doors[0].accept().unwrap();
        assert_eq!(client.local_addr().unwrap().to_string(), "127.83.1.2:443");
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert_eq!(said, "in");
        let names = ends.names.unwrap();
        let mut question = [0; 9];
        let (length, from) = names.recv_from(&mut question).unwrap();
        assert_eq!(&question[..length], b"who");
        names.send_to(b"you", from).unwrap();
        assert_eq!(child.finish(b"").unwrap().stdout, b"you\n");
    });
}

#[test]
fn a_program_may_have_such_ports_itself() {
    as_each_user(|| {
        let script = "import socket\nfor port in (80, 443, 25): socket.socket().bind(('127.0.0.1', port))\nprint('ok')";
        assert_eq!(run(&launcher(), &walled(), &python(script)).stdout, b"ok\n");
    });
}
