//! The network: nothing of the host is reached, by whatever kind of socket.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

use sandbox::{Confinement, Network};

use crate::kit::folders::Folder;
use crate::kit::users::as_each_user;
use crate::probing::{assert_escapes_outside, assert_held, word};
use crate::table::{self, assert_all_held};

/// With a network and without: the room's own is empty in both.
fn both() -> [Confinement; 2] {
    [Network::Deny, Network::Allow].map(|network| Confinement { network, ..Confinement::default() })
}

#[test]
fn only_plain_sockets_are_made_and_only_the_loopback_interface_is_seen() {
    as_each_user(|| both().iter().for_each(|one| assert_all_held(one, table::SOCKETS)));
}

#[test]
fn services_of_the_host_are_not_reached_over_ip() {
    as_each_user(|| {
        for address in addresses() {
            let listener = TcpListener::bind((address, 0)).unwrap();
            let echo = echo((address, 0).into());
            let (ip, port) =
                (address.to_string(), listener.local_addr().unwrap().port().to_string());
            let tcp = ["tcp-connect", &ip, &port];
            let echo_port = echo.to_string();
            let udp = ["udp-echo", &ip, &echo_port];
            for words in [&tcp, &udp] {
                assert_escapes_outside(Path::new("/"), words);
                for one in &both() {
                    assert_held(one, words);
                }
            }
        }
    });
}

#[test]
fn no_address_beyond_the_loopback_can_be_reached_at_all() {
    as_each_user(|| {
        // The clouds' metadata, a resolver, a private network, and addresses for documentation.
        for (ip, port) in [
            ("169.254.169.254", "80"),
            ("8.8.8.8", "53"),
            ("10.0.0.1", "443"),
            ("192.0.2.1", "80"),
            ("fd00:ec2::254", "80"),
            ("2001:db8::1", "53"),
        ] {
            for probe in ["tcp-connect", "udp-echo"] {
                for confinement in both() {
                    let said = assert_held(&confinement, &[probe, ip, port]);
                    let is_unknown = said.contains("ENETUNREACH") || said.contains("EADDRNOTAVAIL");
                    assert!(is_unknown, "there is a way to {ip}: {said}");
                }
            }
        }
        for (ip, port) in [("127.0.0.1", "53"), ("127.0.0.53", "53"), ("::1", "53")] {
            for probe in ["tcp-connect", "udp-echo"] {
                if (probe, ip) == ("udp-echo", "127.0.0.1") {
                    // There the room itself refuses names.
                    continue;
                }
                let said = assert_held(&Confinement::default(), &[probe, ip, port]);
                assert!(said.contains("ECONNREFUSED"), "somebody answers on {ip}: {said}");
            }
        }
    });
}

#[test]
fn abstract_sockets_of_the_host_are_not_reached() {
    as_each_user(|| {
        let name = format!("haft-test-{}-{:?}", std::process::id(), std::thread::current().id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let _listener = UnixListener::bind_addr(&address).unwrap();
        assert_escapes_outside(Path::new("/"), &["abstract-unix", &name]);
        for one in &both() {
            assert_held(one, &["abstract-unix", &name]);
        }
    });
}

#[test]
fn sockets_of_services_are_not_reached_by_their_paths() {
    as_each_user(|| {
        let folder = Folder::outside();
        folder.make("run/user/agent");
        let listening: [PathBuf; 3] =
            ["run/docker.sock", "run/user/bus", "run/user/agent/ssh"].map(|name| folder.join(name));
        let _listeners: Vec<_> =
            listening.iter().map(|path| UnixListener::bind(path).unwrap()).collect();
        let log = folder.join("run/log");
        let _log = UnixDatagram::bind(&log).unwrap();
        let granted_around = Confinement {
            readable: vec![folder.clone()],
            hidden: vec![folder.join("run")],
            ..Confinement::default()
        };
        for path in listening.iter().chain([&log]) {
            assert_escapes_outside(&folder, &["unix-connect", word(path)]);
            for confinement in both().iter().chain([&granted_around]) {
                assert_held(confinement, &["unix-connect", word(path)]);
            }
        }
        for path in ["/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket"] {
            assert_held(&Confinement::default(), &["unix-connect", path]);
        }
    });
}

/// The loopback addresses, and another one of this machine where it has one.
fn addresses() -> Vec<IpAddr> {
    let mut addresses = vec![Ipv4Addr::LOCALHOST.into()];
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        addresses.push(Ipv6Addr::LOCALHOST.into());
    }
    // Connecting a datagram socket sends nothing; it only chooses the address to send from.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    if socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).is_ok() {
        addresses.push(socket.local_addr().unwrap().ip());
    }
    addresses
}

/// Sends back what comes, as long as this process lives. Gives the port.
fn echo(address: SocketAddr) -> u16 {
    let socket = UdpSocket::bind(address).unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..length], from);
        }
    });
    port
}

#[test]
fn a_socket_in_a_granted_folder_is_not_talked_to() {
    as_each_user(|| {
        let folder = Folder::outside();
        folder.make("run/user");
        let path = folder.join("run/user/agent.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        let granted = vec![folder.clone()];
        let reading = Confinement { readable: granted.clone(), ..Confinement::default() };
        let writing = Confinement { writable: granted, ..Confinement::default() };
        for confinement in [reading, writing] {
            assert_held(&confinement, &["unix-connect", word(&path)]);
        }
    });
}
