//! Programs that know of no proxy: names that get an address, and doors behind those.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod desk;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};

use desk::{Desk, Names, PATIENCE, patient, read_all};
use egress::{Ends, Limits, Outcome, Refusal, Rule, Rules};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, Question, RCODE, TYPE};

/// Where the first name that is asked for leads to. Elsewhere these are addresses of nobody.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 83, 0, 1);
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 83, 0, 2);

/// A desk with a door, and a server that says which address it was reached at.
struct House {
    desk: Desk,
    names: SocketAddr,
    port: u16,
}

impl House {
    fn open(rules: impl Fn(u16) -> Vec<String>) -> Self {
        let server = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = server.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for client in server.incoming() {
                let mut client = patient(client.unwrap());
                let mut said = String::new();
                client.read_to_string(&mut said).unwrap_or_default();
                write!(client, "heard {said}").unwrap_or_default();
            }
        });
        let names = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = names.local_addr().unwrap();
        let doors = [FIRST, SECOND].map(|one| TcpListener::bind((one, port)).unwrap());
        let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
        let ends = Ends { proxy, names: Some(names), doors: doors.into() };
        let rules: Rules =
            rules(port).iter().map(|one| Rule::parse(one).unwrap().reaching_private()).collect();
        let here = |name: &str| {
            (name.rsplit('.').next() == Some("test"))
                .then(|| vec![IpAddr::from(Ipv4Addr::new(127, 0, 0, 2))])
        };
        let desk = Desk::with_ends(ends, rules, Names(here), Limits::DEFAULT);
        Self { desk, names: address, port }
    }

    /// What a name server says: a code, and an address.
    fn ask(&self, name: &str, kind: TYPE) -> (RCODE, Option<Ipv4Addr>) {
        let mut query = Packet::new_query(7);
        let name = Name::new(name).unwrap();
        query.questions.push(Question::new(name, kind.into(), CLASS::IN.into(), false));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send_to(&query.build_bytes_vec().unwrap(), self.names).unwrap();
        let mut answer = [0; 512];
        let (length, from) = socket.recv_from(&mut answer).unwrap();
        assert_eq!(from, self.names);
        let answer = Packet::parse(&answer[..length]).unwrap();
        assert_eq!((answer.id(), answer.questions.len()), (7, 1));
        let address = answer.answers.first().map(|one| match &one.rdata {
            RData::A(found) => Ipv4Addr::from_bits(found.address),
            other => panic!("{other:?}"),
        });
        (answer.rcode(), address)
    }

    fn knock(&self, at: Ipv4Addr) -> std::io::Result<TcpStream> {
        TcpStream::connect((at, self.port)).map(patient)
    }
}

#[test]
fn a_name_that_is_granted_leads_to_a_door_and_out_of_it() {
    let house = House::open(|port| vec![format!("ok.test:{port}"), format!("*.more.test:{port}")]);
    assert_eq!(house.ask("ok.test", TYPE::A), (RCODE::NoError, Some(FIRST)));
    assert_eq!(house.ask("OK.Test", TYPE::A), (RCODE::NoError, Some(FIRST)));
    assert_eq!(house.ask("a.more.test", TYPE::A), (RCODE::NoError, Some(SECOND)));
    // It has no other address, and nothing else is known of it.
    for kind in [TYPE::AAAA, TYPE::MX, TYPE::TXT] {
        assert_eq!(house.ask("ok.test", kind), (RCODE::NoError, None));
    }
    for (at, name) in [(SECOND, "a.more.test"), (FIRST, "ok.test")] {
        let mut client = house.knock(at).unwrap();
        client.write_all(name.as_bytes()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(&mut client), format!("heard {name}"));
        let opened = house.desk.opened();
        assert_eq!(opened.address.to_string(), format!("127.0.0.2:{}", house.port));
        let end = house.desk.ended();
        assert!(matches!(end.outcome, Outcome::Completed), "{end:?}");
        assert_eq!(end.asked, format!("{name}:{}", house.port));
    }
}

#[test]
fn any_other_name_is_refused_and_told_once() {
    let house = House::open(|port| vec![format!("ok.test:{port}"), "elsewhere.test:1".to_owned()]);
    for name in ["other.test", "elsewhere.test", "sub.ok.test"] {
        for kind in [TYPE::A, TYPE::AAAA, TYPE::A] {
            assert_eq!(house.ask(name, kind), (RCODE::Refused, None), "{name}");
        }
        let end = house.desk.ended();
        assert_eq!(end.asked, name);
        assert!(matches!(end.outcome, Outcome::Refused(Refusal::Host)), "{end:?}");
    }
    // Nobody wants these granted.
    for name in ["localhost", "1.0.0.127.in-addr.arpa"] {
        assert_eq!(house.ask(name, TYPE::A), (RCODE::Refused, None), "{name}");
    }
    assert!(house.desk.finish().is_empty());
}

#[test]
fn an_address_that_stands_for_nothing_leads_nowhere() {
    let house = House::open(|port| vec![format!("ok.test:{port}"), format!("gone.example:{port}")]);
    let mut client = house.knock(FIRST).unwrap();
    assert!(client.read_to_end(&mut Vec::new()).is_err(), "it is reset");
    // One that has no address in the world is let in, and nothing is behind it.
    assert_eq!(house.ask("gone.example", TYPE::A), (RCODE::NoError, Some(FIRST)));
    let mut client = house.knock(FIRST).unwrap();
    assert!(client.read_to_end(&mut Vec::new()).is_err(), "it is reset");
    let end = house.desk.ended();
    assert!(matches!(end.outcome, Outcome::Unresolved(_)), "{end:?}");
    assert!(house.desk.finish().is_empty());
}

#[test]
fn what_the_owner_refuses_is_refused_here_too() {
    let house = House::open(|port| vec![format!("*.ok.test:{port}")]);
    drop(house);
    let rules = Rules::parse(["*.ok.test:7"]).unwrap();
    let rules = rules.denying(vec![Rule::parse("bad.ok.test").unwrap()]);
    assert_eq!(rules.doors().len(), 1);
    let (proxy, names) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let (address, doors) = (names.local_addr().unwrap(), Vec::new());
    let ends = Ends { proxy, names: Some(names), doors };
    let desk = Desk::with_ends(ends, rules, Names(|_: &str| None), Limits::DEFAULT);
    let house = House { desk, names: address, port: 7 };
    // Without a door even what is granted leads nowhere by this way.
    for name in ["good.ok.test", "bad.ok.test"] {
        assert_eq!(house.ask(name, TYPE::A), (RCODE::Refused, None), "{name}");
    }
}
