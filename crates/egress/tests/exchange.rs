//! One plain request and its response, and nothing beside them.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod desk;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::mpsc::channel;

use desk::{Desk, PATIENCE, canned, read_all, read_head, server};
use egress::Outcome;
use egress::head::HeadError;

fn body_of(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no body: {answer}")).1
}

#[test]
fn a_request_is_passed_on_for_the_server_itself() {
    let (port, heads) =
        canned(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nKeep-Alive: 3\r\n\r\nhelloEXTRA");
    let desk = Desk::open();
    let answer = desk.ask(format!(
        "GET http://OK.test:{port}/a?b=c HTTP/1.1\r\nHost: ok.test:{port}\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic x\r\nConnection: X-Hop\r\nX-Hop: 1\r\nAccept: */*\r\n\r\n"
    ));
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    assert_eq!(
        heads.recv().unwrap(),
        format!(
            "GET /a?b=c HTTP/1.1\r\nHost: ok.test:{port}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        )
    );
    assert_eq!(desk.opened().address.port(), port);
    let end = desk.ended();
    assert!(matches!(end.outcome, Outcome::Completed), "{end:?}");
    assert_eq!((end.asked, end.down), (format!("ok.test:{port}"), answer.len() as u64));
}

/// A server that reads `length` bytes of body and says how many came, and their sum.
fn counting(length: usize) -> u16 {
    server(move |mut client| {
        let head = read_head(&mut client);
        if head.contains("Expect: 100-continue") {
            client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        }
        let mut body = vec![0; length];
        client.read_exact(&mut body).unwrap();
        let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
        let said = format!("{length} {sum}");
        write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{said}", said.len()).unwrap();
    })
}

#[test]
fn a_large_body_passes_both_ways() {
    const LENGTH: usize = 8 * 1024 * 1024;
    let port = counting(LENGTH);
    let desk = Desk::open();
    let head = format!(
        "POST http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\nContent-Length: {LENGTH}\r\n\
         Expect: 100-continue\r\n\r\n"
    );
    let mut client = desk.connect();
    client.write_all(head.as_bytes()).unwrap();
    assert_eq!(read_head(&mut client), "HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(&vec![1; LENGTH]).unwrap();
    assert_eq!(body_of(&read_all(&mut client)), format!("{LENGTH} {LENGTH}"));

    let port = server(|mut client| {
        read_head(&mut client);
        write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").unwrap();
        client.write_all(&vec![b'x'; LENGTH]).unwrap();
    });
    let answer =
        desk.ask(format!("GET http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\n\r\n"));
    assert_eq!(body_of(&answer).len(), LENGTH);
}

#[test]
fn chunks_pass_both_ways_and_are_undone_for_an_old_client() {
    let port = server(|mut client| {
        let head = read_head(&mut client);
        if head.starts_with("POST") {
            assert!(head.contains("Transfer-Encoding: chunked\r\n"), "{head}");
            let mut body = vec![0; b"5\r\nhello\r\n0\r\n\r\n".len()];
            client.read_exact(&mut body).unwrap();
            assert_eq!(body, b"5\r\nhello\r\n0\r\n\r\n");
        }
        client
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n")
            .unwrap();
        // The connection stays: the end of the body is known without it.
        let _ = client.read(&mut [0]);
    });
    let desk = Desk::open();
    let answer = desk.ask(format!(
        "POST http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\nTransfer-Encoding: Chunked\r\n\r\n\
         5;ext\r\nhello\r\n0\r\nTrailer: x\r\n\r\n"
    ));
    assert!(answer.contains("Transfer-Encoding: chunked\r\n"), "{answer}");
    assert_eq!(body_of(&answer), "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    let answer = desk.ask(format!("GET http://ok.test:{port}/ HTTP/1.0\r\n\r\n"));
    assert!(!answer.contains("Transfer-Encoding"), "{answer}");
    assert_eq!(body_of(&answer), "abcde");
}

#[test]
fn a_second_request_in_the_same_breath_reaches_nobody() {
    let (sender, said) = channel();
    let port = server(move |mut client| {
        let mut bytes = [0; 4096];
        let mut all = Vec::new();
        while !all.ends_with(b"hello") {
            let count = client.read(&mut bytes).unwrap();
            all.extend_from_slice(&bytes[..count]);
        }
        client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        client.read_to_end(&mut all).unwrap();
        sender.send(String::from_utf8(all).unwrap()).unwrap();
    });
    let desk = Desk::open();
    let second = format!("GET http://evil.test:{port}/ HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n");
    let answer = desk.ask(format!(
        "POST http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\nContent-Length: 5\r\n\r\nhello{second}"
    ));
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    let said = said.recv().unwrap();
    assert!(said.ends_with("\r\n\r\nhello"), "{said}");
    desk.opened();
    desk.ended();
    assert!(desk.finish().is_empty());
}

#[test]
fn what_two_readers_may_read_differently_reaches_nobody() {
    let (port, heads) = canned(b"HTTP/1.1 200 OK\r\n\r\n");
    let desk = Desk::open();
    let url = format!("http://ok.test:{port}/");
    let host = format!("Host: ok.test:{port}\r\n");
    for (request, status) in [
        (
            format!(
                "POST {url} HTTP/1.1\r\n{host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
            400,
        ),
        (
            format!(
                "POST {url} HTTP/1.1\r\n{host}Content-Length: 4\r\nContent-Length: 5\r\n\r\nhello"
            ),
            400,
        ),
        (format!("POST {url} HTTP/1.1\r\n{host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("POST {url} HTTP/1.1\r\n{host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("GET {url} HTTP/1.1\r\n{host}A: b\r\n Host: evil.test\r\n\r\n"), 400),
        (format!("GET {url} HTTP/1.1\n{host}\n"), 400),
        (format!("GET {url} HTTP/1.1\r\n{host}A: b\nHost: evil.test\r\n\r\n"), 400),
        (format!("GET {url} HTTP/1.1\r\n{host}A: b\rHost: evil.test\r\n\r\n"), 400),
        (format!("GET {url} HTTP/1.1\r\nHost: evil.test\r\n\r\n"), 400),
        (format!("GET {url} HTTP/1.1\r\n{host}{host}\r\n"), 400),
        (format!("GET {url} HTTP/1.1\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n{host}\r\n"), 400),
        (format!("GET https://ok.test:{port}/ HTTP/1.1\r\n{host}\r\n"), 400),
        (format!("GET {url} HTTP/1.1\r\n{host}{}\r\n", "A: b\r\n".repeat(200)), 431),
        (format!("GET {url}{} HTTP/1.1\r\n{host}\r\n", "a".repeat(40_000)), 431),
    ] {
        let answer = desk.ask(&request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(matches!(desk.ended().outcome, Outcome::Malformed(_)), "{request}");
    }
    assert!(desk.finish().is_empty());
    assert!(heads.try_recv().is_err(), "nobody was reached");
}

#[test]
fn damaged_chunks_of_a_request_end_it() {
    let (sender, bodies) = channel();
    let port = server(move |mut client| {
        read_head(&mut client);
        let mut body = Vec::new();
        // However the proxy breaks off, what came until then counts.
        let _ = client.read_to_end(&mut body);
        sender.send(body).unwrap();
    });
    let desk = Desk::open();
    let answer = desk.ask(format!(
        "POST http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\n0\r\n\r\n"
    ));
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    desk.opened();
    assert!(matches!(desk.ended().outcome, Outcome::BadBody));
    assert_eq!(bodies.recv_timeout(PATIENCE).unwrap(), b"5\r\nhello\r\n", "never ended in order");
}

#[test]
fn a_response_that_is_none_is_a_bad_gateway() {
    let desk = Desk::open();
    for answer in [
        &b"SSH-2.0-OpenSSH\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"",
    ] {
        let (port, _heads) = canned(answer);
        let said = desk
            .ask(format!("GET http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\n\r\n"));
        assert!(said.starts_with("HTTP/1.1 502 "), "{}: {said}", answer.escape_ascii());
        desk.opened();
        let end = desk.ended();
        assert!(matches!(end.outcome, Outcome::BadResponse(_) | Outcome::ServerLeft), "{end:?}");
    }
}

#[test]
fn a_response_that_breaks_off_is_not_taken_for_the_whole() {
    let desk = Desk::open();
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let (port, _heads) = canned(answer);
        let mut client = desk.connect();
        write!(client, "GET http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\n\r\n")
            .unwrap();
        let mut said = Vec::new();
        let ended = client.read_to_end(&mut said);
        assert!(ended.is_err() || !said.ends_with(b"0\r\n\r\n"), "{}", said.escape_ascii());
        desk.opened();
        assert!(matches!(desk.ended().outcome, Outcome::ServerLeft));
    }
}

#[test]
fn a_response_without_a_length_that_is_reset_is_reset_for_the_client() {
    let port = server(|mut client| {
        client.peek(&mut [0]).unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").unwrap();
        // Closed with the request unread, so that the system sends a reset and not an end.
    });
    let desk = Desk::open();
    let mut client = desk.connect();
    write!(client, "GET http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\n\r\n").unwrap();
    let mut said = Vec::new();
    let ended = client.read_to_end(&mut said);
    assert!(ended.is_err() || said.starts_with(b"HTTP/1.1 502 "), "{}", said.escape_ascii());
    desk.opened();
    assert!(matches!(desk.ended().outcome, Outcome::ServerLeft));
}

#[test]
fn an_answer_before_the_end_of_the_request_arrives() {
    let (port, _heads) = canned(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    let desk = Desk::open();
    let mut client = desk.connect();
    write!(client, "POST http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\nContent-Length: 100000\r\n\r\npart").unwrap();
    let answer = read_all(&mut client);
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.ends_with("\r\n\r\nno"), "{answer}");
}

#[test]
fn a_refused_client_that_still_sends_sees_its_answer() {
    let desk = Desk::open();
    let mut client = desk.connect();
    write!(
        client,
        "POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 300000\r\n\r\n"
    )
    .unwrap();
    client.write_all(&vec![b'x'; 300_000]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert!(read_all(&mut client).starts_with("HTTP/1.1 403 "));
}

#[test]
fn a_client_that_leaves_within_its_body_is_told_of() {
    let port = counting(1000);
    let desk = Desk::open();
    let mut client = desk.connect();
    write!(client, "POST http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\nContent-Length: 1000\r\n\r\nhalf").unwrap();
    drop(client);
    desk.opened();
    let end = desk.ended();
    assert!(matches!(end.outcome, Outcome::ClientLeft), "{end:?}");
}

#[test]
fn the_head_of_a_response_has_limits_too() {
    let port = server(|mut client| {
        read_head(&mut client);
        let _ = client.write_all(b"HTTP/1.1 200 OK\r\n");
        while client.write_all(b"A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n").is_ok() {}
    });
    let desk = Desk::open();
    let answer =
        desk.ask(format!("GET http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    desk.opened();
    assert!(matches!(desk.ended().outcome, Outcome::BadResponse(HeadError::TooLarge)));
}
