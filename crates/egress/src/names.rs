//! Names, as a program asks a name server for them.
//!
//! For programs that know of no proxy. A name that some rule names gets an address on the program's own
//! loopback that stands for it, and what connects there comes to a door; any other is refused. Nothing is
//! looked up: that is for the gate to do, when somebody connects.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use simple_dns::rdata::{A, RData};
use simple_dns::{CLASS, OPCODE, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

use crate::attempt::{Attempt, Outcome, Stage};
use crate::gate::Gate;
use crate::host::{Host, Name, Port, Target};
use crate::rules::{Decision, Refusal};

/// The longest question that is read.
pub(crate) const LONGEST: usize = 512;

/// The first two bytes of the addresses that stand for names.
const NETWORK: [u8; 2] = [127, 83];

/// How many names one program may be given an address for, and how many refusals are told.
const MOST: usize = 4096;

/// How long an answer may be remembered, in seconds. It holds as long as the program runs.
const LIFETIME: u32 = 60;

/// The name that a question asks for, unless it is one that no grant is about: of the program's own machine,
/// or of an address.
fn asked(question: &[u8]) -> Option<Name> {
    let packet = Packet::parse(question).ok()?;
    let is_question = !packet.has_flags(PacketFlag::RESPONSE) && packet.questions.len() == 1;
    let name = Name::parse(&packet.questions.first()?.qname.to_string()).ok()?;
    let is_own = matches!(name.as_str().rsplit('.').next(), Some("localhost" | "arpa"));
    (is_question && !is_own).then_some(name)
}

/// What was attempted by a program that has no network at all, and asked for some names; each once.
pub fn refused(questions: &[Vec<u8>]) -> Vec<Attempt> {
    let names: BTreeSet<Name> = questions.iter().filter_map(|one| asked(one)).collect();
    let attempt = |(name, id): (Name, u64)| {
        let (outcome, took) = (Outcome::Refused(Refusal::Host), Duration::ZERO);
        let stage = Stage::Ended { outcome, reached: None, up: 0, down: 0, took };
        Attempt { id, asked: name.to_string(), target: None, stage }
    };
    names.into_iter().zip(1..).map(attempt).collect()
}

/// The answer to a question, given what the name that it asks for leads to; nothing means that it is refused. What
/// is no question has no answer.
pub fn answer(question: &[u8], find: impl FnOnce(&Name) -> Option<Ipv4Addr>) -> Option<Vec<u8>> {
    let packet = Packet::parse(question).ok()?;
    if packet.has_flags(PacketFlag::RESPONSE) {
        return None;
    }
    let mut reply = Packet::new_reply(packet.id());
    reply.set_flags(PacketFlag::RECURSION_AVAILABLE);
    if packet.has_flags(PacketFlag::RECURSION_DESIRED) {
        reply.set_flags(PacketFlag::RECURSION_DESIRED);
    }
    *reply.rcode_mut() = RCODE::Refused;
    if packet.opcode() == OPCODE::StandardQuery
        && let [only] = &packet.questions[..]
    {
        reply.questions.push(only.clone());
        if let Some(name) = asked(question)
            && let Some(address) = find(&name)
        {
            *reply.rcode_mut() = RCODE::NoError;
            if only.qtype == QTYPE::TYPE(TYPE::A) {
                let stands_for = RData::A(A { address: address.to_bits() });
                let record =
                    ResourceRecord::new(only.qname.clone(), CLASS::IN, LIFETIME, stands_for);
                reply.answers.push(record);
            }
        }
    }
    reply.build_bytes_vec().ok()
}

/// The names of one program.
pub(crate) struct Names {
    /// The ports at which there is a door.
    ports: Vec<Port>,
    given: Mutex<Given>,
}

#[derive(Default)]
struct Given {
    addresses: HashMap<Name, Ipv4Addr>,
    names: Vec<Name>,
    refused: HashSet<Name>,
}

impl Names {
    pub(crate) fn new(ports: Vec<Port>) -> Self {
        Self { ports, given: Mutex::default() }
    }

    /// The answer to a question.
    pub(crate) fn answer(&self, question: &[u8], gate: &Gate) -> Option<Vec<u8>> {
        answer(question, |name| self.address(name, gate))
    }

    /// The name that an address stands for.
    pub(crate) fn behind(&self, address: Ipv4Addr) -> Option<Name> {
        let [first, second, high, low] = address.octets();
        let number = usize::from(u16::from_be_bytes([high, low]));
        let is_ours = [first, second] == NETWORK;
        is_ours.then(|| self.given().names.get(number.checked_sub(1)?).cloned()).flatten()
    }

    /// The address that stands for a name, if some door leads there. A refusal is told once.
    fn address(&self, name: &Name, gate: &Gate) -> Option<Ipv4Addr> {
        let mut given = self.given();
        if let Some(known) = given.addresses.get(name) {
            return Some(*known);
        }
        match self.decide(name, gate) {
            Ok(()) => given.add(name),
            Err(refusal) => {
                if given.refused.len() < MOST && given.refused.insert(name.clone()) {
                    drop(given);
                    let record = gate.record_of_text(name.to_string());
                    record.end(Outcome::Refused(refusal));
                }
                None
            }
        }
    }

    /// Whether some door leads to a name.
    fn decide(&self, name: &Name, gate: &Gate) -> Result<(), Refusal> {
        let mut refusal = Refusal::Host;
        for port in &self.ports {
            let target = Target { host: Host::Name(name.clone()), port: *port };
            match gate.decide(&target) {
                Decision::Allowed(_) => return Ok(()),
                Decision::Refused(Refusal::Denied) => refusal = Refusal::Denied,
                Decision::Refused(_) => {}
            }
        }
        Err(refusal)
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Given {
    fn add(&mut self, name: &Name) -> Option<Ipv4Addr> {
        if self.names.len() >= MOST {
            return None;
        }
        self.names.push(name.clone());
        let [high, low] = u16::try_from(self.names.len()).ok()?.to_be_bytes();
        let address = Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low);
        self.addresses.insert(name.clone(), address);
        Some(address)
    }
}
