//! Tunnels, and the limits of the proxy.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod desk;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

use desk::{Desk, Names, PATIENCE, all_here, patient, read_all, read_head, server};
use egress::head::HeadError;
use egress::{Limits, Outcome, Proxy, Rule, Stage};

/// Sends back what it gets, and ends when the client does.
fn echo() -> u16 {
    server(|mut client| {
        let mut back = client.try_clone().unwrap();
        let _ = std::io::copy(&mut client, &mut back);
        let _ = back.shutdown(Shutdown::Write);
    })
}

#[test]
fn a_tunnel_passes_any_bytes_and_counts_them() {
    let port = echo();
    let desk = Desk::open();
    let mut client = desk.tunnel(&format!("a.b.OK.test:{port}"));
    let opened = desk.opened();
    assert_eq!(
        (opened.rule.to_string(), opened.address.to_string()),
        ("*.ok.test:*".into(), format!("127.0.0.1:{port}"))
    );
    let sent: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
    let mut writer = client.try_clone().unwrap();
    let bytes = sent.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(&bytes).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert_eq!(received, sent);
    let end = desk.ended();
    assert!(matches!(end.outcome, Outcome::Completed), "{end:?}");
    assert_eq!((end.up, end.down, end.reached), (1_000_000, 1_000_000, Some(opened)));
}

#[test]
fn what_is_sent_together_with_the_request_is_not_lost() {
    let port = echo();
    let desk = Desk::open();
    let mut client = desk.connect();
    write!(client, "CONNECT ok.test:{port} HTTP/1.1\r\n\r\nearly").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert!(read_all(&mut client).ends_with("\r\n\r\nearly"));
}

#[test]
fn one_side_may_end_while_the_other_goes_on() {
    let port = server(|mut client| {
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        write!(client, "you said {said}").unwrap();
    });
    let desk = Desk::open();
    let mut client = desk.tunnel(&format!("ok.test:{port}"));
    client.write_all(b"bye").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut client), "you said bye");

    let (sender, said) = channel();
    let port = server(move |mut client| {
        client.write_all(b"bye").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        sender.send(read_all(&mut client)).unwrap();
    });
    let mut client = desk.tunnel(&format!("ok.test:{port}"));
    assert_eq!(read_all(&mut client), "bye");
    client.write_all(b"still here").unwrap();
    drop(client);
    assert_eq!(said.recv_timeout(PATIENCE).unwrap(), "still here");
}

#[test]
fn a_client_or_a_server_that_vanishes_ends_the_tunnel() {
    let (sender, left) = channel();
    let port = server(move |mut client| {
        let _ = client.read_to_end(&mut Vec::new());
        sender.send(()).unwrap();
    });
    let desk = Desk::open();
    let client = desk.tunnel(&format!("ok.test:{port}"));
    desk.opened();
    drop(client);
    left.recv_timeout(PATIENCE).expect("the server is told");
    desk.ended();

    let port = server(drop);
    let mut client = desk.tunnel(&format!("ok.test:{port}"));
    desk.opened();
    assert_eq!(read_all(&mut client), "");
    drop(client);
    desk.ended();
    assert!(desk.finish().is_empty());
}

#[test]
fn a_silent_tunnel_is_ended() {
    let port = echo();
    let limits = Limits { idle_time: Duration::from_millis(50), ..Limits::DEFAULT };
    let desk = Desk::with_limits(limits);
    let mut client = desk.tunnel(&format!("ok.test:{port}"));
    desk.opened();
    assert!(matches!(desk.ended().outcome, Outcome::Idle));
    let _ = client.read(&mut [0]);
}

#[test]
fn a_server_that_never_answers_is_a_gateway_timeout() {
    let port = server(|mut client| {
        let _ = client.read_to_end(&mut Vec::new());
    });
    let limits = Limits { idle_time: Duration::from_millis(50), ..Limits::DEFAULT };
    let desk = Desk::with_limits(limits);
    let answer =
        desk.ask(format!("GET http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
}

#[test]
fn a_head_that_drips_is_not_waited_for() {
    let limits = Limits { head_time: Duration::from_millis(100), ..Limits::DEFAULT };
    let desk = Desk::with_limits(limits);
    let mut client = desk.connect();
    let mut writer = client.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        // Ends when the proxy has closed; a byte at a time never makes it a whole head.
        while writer.write_all(b"A").is_ok() {
            std::thread::yield_now();
            if writer.take_error().ok().flatten().is_some() {
                break;
            }
        }
    });
    let mut said = Vec::new();
    let _ = client.read_to_end(&mut said);
    client.shutdown(Shutdown::Both).unwrap_or_default();
    dripping.join().unwrap();
    let end = desk.ended();
    assert!(
        matches!(end.outcome, Outcome::Malformed(HeadError::TimedOut | HeadError::TooLarge)),
        "{end:?}"
    );

    let mut client = desk.connect();
    client.write_all(b"CONNECT ok.test").unwrap();
    assert!(read_all(&mut client).starts_with("HTTP/1.1 408 "));
    assert!(matches!(desk.ended().outcome, Outcome::Malformed(HeadError::TimedOut)));

    let mut client = desk.connect();
    assert_eq!(read_all(&mut client), "", "who says nothing is left without a word");
    assert!(desk.finish().is_empty());
}

#[test]
fn clients_beyond_the_limit_wait_for_a_place() {
    let port = echo();
    let desk = Desk::with_limits(Limits { connections: 2, ..Limits::DEFAULT });
    let target = format!("ok.test:{port}");
    let (first, _second) = (desk.tunnel(&target), desk.tunnel(&target));
    let mut third = desk.connect();
    write!(third, "CONNECT {target} HTTP/1.1\r\n\r\n").unwrap();
    third.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(third.read(&mut [0]).is_err(), "there is no place yet");
    drop(first);
    let mut third = patient(third);
    assert!(read_head(&mut third).starts_with("HTTP/1.1 200 "));
}

#[test]
fn stopping_ends_every_connection_and_reports_it() {
    let port = echo();
    let desk = Desk::open();
    let mut clients: Vec<_> = (0..5).map(|_| desk.tunnel(&format!("ok.test:{port}"))).collect();
    clients[0].write_all(b"hello").unwrap();
    let mut back = [0; 5];
    clients[0].read_exact(&mut back).unwrap();
    let address = desk.proxy.address();
    let attempts = desk.finish();
    let stopped = attempts.iter().filter_map(|attempt| match &attempt.stage {
        Stage::Ended { outcome: Outcome::Stopped, up, down, .. } => Some((*up, *down)),
        _ => None,
    });
    let mut stopped: Vec<_> = stopped.collect();
    stopped.sort_unstable();
    assert_eq!(stopped, [(0, 0), (0, 0), (0, 0), (0, 0), (5, 5)]);
    for client in &mut clients {
        assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
    }
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[test]
fn a_proxy_inside_a_runtime_stops_when_dropped() {
    let port = echo();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let rules = [Rule::parse("ok.test:*").unwrap().reaching_private()].into_iter().collect();
    let (sender, reports) = channel();
    let report = move |attempt| sender.send(attempt).unwrap();
    let proxy = {
        let _inside = runtime.enter();
        Proxy::start(listener, rules, Names(all_here), Limits::DEFAULT, report).unwrap()
    };
    let mut client = patient(TcpStream::connect(proxy.address()).unwrap());
    write!(client, "CONNECT ok.test:{port} HTTP/1.1\r\n\r\n").unwrap();
    assert!(read_head(&mut client).starts_with("HTTP/1.1 200 "));
    drop(proxy);
    assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
    let stages: Vec<_> = reports.iter().map(|attempt| attempt.stage).collect();
    assert!(
        matches!(
            stages.as_slice(),
            [Stage::Opened(_), Stage::Ended { outcome: Outcome::Stopped, .. }]
        ),
        "{stages:?}"
    );
}
