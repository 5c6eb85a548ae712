//! What is not granted is not reached, however it is spelled.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod desk;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use desk::{Desk, Names, read_head, server};
use egress::address::Range;
use egress::host::TargetError;
use egress::resolve::{Lookup, Resolve, ResolveError, SystemResolver};
use egress::{Limits, Name, Outcome, Refusal, Rule, Rules, Stage};
use testkit::hosts::SPELLINGS;

fn rules(texts: &[&str]) -> Rules {
    texts.iter().map(|text| Rule::parse(text).unwrap().as_typed()).collect()
}

#[test]
fn no_spelling_leads_to_what_is_not_granted() {
    let reached = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reached);
    let port = server(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let here = |_: &str| Some(vec!["127.0.0.1".parse().unwrap()]);
    let desk = Desk::with(rules(&["ok.test:*"]), Names(here), Limits::DEFAULT);
    for spelling in SPELLINGS {
        let port = format!(":{port}").into_bytes();
        let connect = [b"CONNECT ", *spelling, &port, b" HTTP/1.1\r\n\r\n"].concat();
        let host = [b"\r\nHost: ", *spelling, &port].concat();
        let get = [b"GET http://", *spelling, &port, b"/ HTTP/1.1", &host, b"\r\n\r\n"].concat();
        for request in [connect, get] {
            let shown = request.escape_ascii();
            let answer = desk.ask(&request);
            assert!(answer.starts_with("HTTP/1.1 403 "), "{shown}: {answer}");
            assert!(answer.contains("The owner of this machine can grant it."), "{answer}");
            let end = desk.ended();
            assert!(matches!(end.outcome, Outcome::Refused(_)), "{shown}: {end:?}");
            assert!(end.reached.is_none() && end.asked.is_ascii(), "{end:?}");
        }
    }
    assert!(desk.finish().is_empty(), "each attempt was reported once");
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[test]
fn no_port_but_a_plain_one_is_read() {
    let desk = Desk::open();
    for port in
        ["", ":", ":0", ":65536", ":+80", ":-80", ":080", ":0x50", ":80 ", ":8\t0", ":80:80"]
    {
        let answer = desk.ask(format!("CONNECT ok.test{port} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{port}: {answer}");
        let end = desk.ended();
        assert!(matches!(end.outcome, Outcome::Refused(Refusal::Spelling(_))), "{port}: {end:?}");
    }
}

#[test]
fn a_target_that_cannot_be_read_is_told_escaped_and_cut() {
    let desk = Desk::open();
    let answer = desk.ask(b"CONNECT ok.test\x1b[2J:443 HTTP/1.1\r\n\r\n");
    assert!(answer.contains("`ok.test\\x1b[2J:443` is refused"), "{answer}");
    assert_eq!(desk.ended().asked, "ok.test\\x1b[2J:443");
    desk.ask(format!("CONNECT {}:443 HTTP/1.1\r\n\r\n", "a.".repeat(2000)));
    assert!(desk.ended().asked.len() < 300);
}

#[test]
fn a_name_that_turns_private_is_refused_from_then_on() {
    // The first answer is an address that may be reached, each later one is not.
    let port = server(|mut client| client.write_all(b"here").unwrap());
    let lookups = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lookups);
    let rebinding = move |_: &str| -> Option<Vec<IpAddr>> {
        let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
        Some(vec![if is_first { "127.0.0.1" } else { "127.0.0.2" }.parse().unwrap()])
    };
    let rules = rules(&["flip.test:*", "127.0.0.1:*"]);
    let desk = Desk::with(rules, Names(rebinding), Limits::DEFAULT);
    let target = format!("flip.test:{port}");
    drop(desk.tunnel(&target));
    assert_eq!(lookups.load(Ordering::SeqCst), 1, "one attempt looks up once");
    assert_eq!(desk.opened().address.ip().to_string(), "127.0.0.1", "what was checked was dialled");
    desk.ended();
    let answer = desk.ask(format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("127.0.0.2"), "{answer}");
    let expected =
        Refusal::Address { address: "127.0.0.2".parse().unwrap(), range: Range::Loopback };
    assert!(matches!(desk.ended().outcome, Outcome::Refused(refusal) if refusal == expected));
}

#[test]
fn an_address_that_is_refused_does_not_spoil_the_others() {
    let port = server(|mut client| client.write_all(b"here").unwrap());
    let mixed = |_: &str| Some(vec!["10.0.0.1".parse().unwrap(), "127.0.0.1".parse().unwrap()]);
    let desk = Desk::with(rules(&["mix.test:*", "127.0.0.1:*"]), Names(mixed), Limits::DEFAULT);
    let mut client = desk.tunnel(&format!("mix.test:{port}"));
    let mut said = [0; 4];
    client.read_exact(&mut said).unwrap();
    let reached = desk.opened();
    assert_eq!((&said, reached.address.ip().to_string()), (b"here", "127.0.0.1".into()));
    assert_eq!(reached.rule.to_string(), "127.0.0.1:*");
}

#[test]
fn an_address_that_does_not_answer_is_followed_by_the_next() {
    let port = server(|mut client| client.write_all(b"here").unwrap());
    // The server listens at the second address only.
    let two = |_: &str| Some(vec!["127.0.0.2".parse().unwrap(), "127.0.0.1".parse().unwrap()]);
    let desk = Desk::with(rules(&["two.test:*", "127.0.0.0/8:*"]), Names(two), Limits::DEFAULT);
    desk.tunnel(&format!("two.test:{port}"));
    assert_eq!(desk.opened().address.ip().to_string(), "127.0.0.1");
}

#[test]
fn an_address_in_disguise_is_checked_and_dialled_as_what_it_is() {
    let port = server(|mut client| client.write_all(b"here").unwrap());
    let nobody = |_: &str| panic!("an address is never looked up");
    let desk = Desk::with(rules(&[&format!("127.0.0.1:{port}")]), Names(nobody), Limits::DEFAULT);
    for target in [format!("127.0.0.1:{port}"), format!("[::ffff:127.0.0.1]:{port}")] {
        desk.tunnel(&target);
        assert_eq!(desk.opened().address.to_string(), format!("127.0.0.1:{port}"));
        desk.ended();
    }
    let answer = desk.ask(format!("CONNECT [::ffff:127.0.0.2]:{port} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[test]
fn a_name_no_rule_names_is_never_looked_up() {
    let lookups = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lookups);
    let counting = move |_: &str| {
        count.fetch_add(1, Ordering::SeqCst);
        Some(vec!["1.1.1.1".parse().unwrap()])
    };
    let desk = Desk::with(rules(&["ok.test", "0.0.0.0/1:*"]), Names(counting), Limits::DEFAULT);
    for target in ["secret-data.evil.test:443", "ok.test:22", "evil.test:80"] {
        let answer = desk.ask(format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    assert_eq!(lookups.load(Ordering::SeqCst), 0);
}

#[test]
fn a_name_without_an_address_and_a_closed_port_are_bad_gateways() {
    let desk = Desk::open();
    let answer = desk.ask("CONNECT missing.test:443 HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(matches!(desk.ended().outcome, Outcome::Unresolved(_)));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let answer = desk.ask(format!("CONNECT ok.test:{closed} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(matches!(desk.ended().outcome, Outcome::Unreachable(..)));
}

#[test]
fn a_lookup_that_hangs_is_a_gateway_timeout() {
    struct Hanging;
    impl Resolve for Hanging {
        fn resolve<'a>(&'a self, _: &'a Name) -> Lookup<'a> {
            Box::pin(std::future::pending())
        }
    }
    let limits = Limits { connect_time: Duration::from_millis(50), ..Limits::DEFAULT };
    let desk = Desk::with(rules(&["ok.test"]), Hanging, limits);
    let answer = desk.ask("CONNECT ok.test:443 HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(matches!(desk.ended().outcome, Outcome::Unresolved(ResolveError::TimedOut)));
}

#[test]
fn the_system_finds_itself() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let found = runtime.block_on(async {
        let resolver = SystemResolver::default();
        resolver.resolve(&Name::parse("localhost").unwrap()).await
    });
    let found = found.unwrap();
    assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
}

#[test]
fn the_owners_machine_has_a_name_inside_the_walls() {
    let port = server(|mut client| client.write_all(b"here").unwrap());
    let nowhere = |_: &str| panic!("the owner's machine is never looked up");
    for rule in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        let desk = Desk::with(rules(&[&rule]), Names(nowhere), Limits::DEFAULT);
        let mut client = desk.tunnel(&format!("host.haft.internal:{port}"));
        let mut said = [0; 4];
        client.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"here");
        let answer = desk.ask("CONNECT host.haft.internal:1 HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
}

#[test]
fn socks_obeys_the_same_rules() {
    let port = server(|mut client| client.write_all(b"here").unwrap());
    let desk = Desk::open();
    let ask = |kind: u8, address: &[u8], port: u16| {
        let mut client = desk.connect();
        client.write_all(&[5, 2, 1, 0]).unwrap();
        let mut method = [0; 2];
        client.read_exact(&mut method).unwrap();
        assert_eq!(method, [5, 0]);
        let request = [&[5, 1, 0, kind], address, &port.to_be_bytes()].concat();
        client.write_all(&request).unwrap();
        let mut reply = [0; 10];
        client.read_exact(&mut reply).unwrap();
        (reply[1], client)
    };
    let named = |name: &[u8]| [&[u8::try_from(name.len()).unwrap()], name].concat();
    let (code, mut client) = ask(3, &named(b"ok.test"), port);
    assert_eq!(code, 0);
    let mut said = [0; 4];
    client.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"here");
    desk.opened();
    drop(client);
    desk.ended();
    for name in
        [&b"evil.test"[..], b"ok.test.", b"ok.test\0.evil.test", b"127.1", b"127.0.0.1", b"[::1]"]
    {
        assert_eq!(ask(3, &named(name), port).0, 2, "{}", name.escape_ascii());
        assert!(matches!(desk.ended().outcome, Outcome::Refused(_)));
    }
    assert_eq!(ask(1, &[127, 0, 0, 1], port).0, 2);
    assert!(matches!(desk.ended().outcome, Outcome::Refused(Refusal::Host)));
    assert_eq!(ask(4, &std::net::Ipv6Addr::LOCALHOST.octets(), port).0, 2);
    desk.ended();
    assert_eq!(ask(3, &named(b"ok.test"), 0).0, 2);
    let end = desk.ended();
    assert!(matches!(end.outcome, Outcome::Refused(Refusal::Spelling(TargetError::Port))));
    let mut client = desk.connect();
    client.write_all(&[5, 1, 0]).unwrap();
    client.write_all(&[5, 3, 0, 1, 127, 0, 0, 1, 0, 53]).unwrap();
    let mut replies = [0; 12];
    client.read_exact(&mut replies).unwrap();
    assert_eq!(replies[3], 7, "no datagrams");
    assert_eq!(desk.ended().asked, "SOCKS command 3 for 127.0.0.1:53");
    assert_eq!(ask(3, &named(b"missing.test"), 443).0, 4);
    desk.ended();
    assert!(desk.finish().is_empty());
}

#[test]
fn each_attempt_has_its_number_and_one_end() {
    let (port, _heads) = desk::canned(b"HTTP/1.1 204 No Content\r\n\r\n");
    let desk = Desk::open();
    for _ in 0..5 {
        desk.ask(format!("GET http://ok.test:{port}/ HTTP/1.1\r\nHost: ok.test:{port}\r\n\r\n"));
        desk.ask("CONNECT evil.test:443 HTTP/1.1\r\n\r\n");
        desk.ask("nonsense\r\n\r\n");
        drop(desk.connect());
    }
    let mut client = desk.connect();
    client.write_all(b"CONNECT ok").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    read_head(&mut client);
    let attempts = desk.finish();
    let ends = attempts.iter().filter(|attempt| matches!(attempt.stage, Stage::Ended { .. }));
    let mut ids: Vec<_> = ends.map(|attempt| attempt.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=16).collect::<Vec<_>>());
    assert_eq!(attempts.len() - ids.len(), 5, "five were opened");
}
