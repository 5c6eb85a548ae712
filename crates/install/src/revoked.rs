//! Which packages were revoked, and what came of it: the file `revoked.json` of a home.
//!
//! It is written together with the change that switches a package off, and together with the one that takes its secrets, so
//! that there is no moment in which one says so and the other does not.

use serde::{Deserialize, Serialize};

/// Its name in the home.
pub const NAME: &str = "revoked.json";
/// The longest that is read.
pub const MOST: u64 = 16 << 20;
/// The most packages that it speaks of.
const MOST_PACKAGES: usize = 100_000;

const VERSION: u32 = 1;

/// All packages of a home that were revoked, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations(Vec<Revocation>);

/// One package that was revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// Its id, with its dialect.
    pub id: String,
    /// What came of it.
    pub state: State,
    /// When it was revoked first, in milliseconds since 1970.
    pub since: i64,
    /// Why it is not confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What the owner may do about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_hand: Option<String>,
    /// Hosts that had been granted to it: its kill switch may still reach them, and nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Whether the owner gave up its secrets although nobody confirmed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgotten: bool,
}

/// What came of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// What it was given is worth nothing any more, or there was nothing to revoke.
    #[serde(rename = "revoked")]
    Revoked,
    /// Nobody says so.
    #[serde(rename = "revoke_unconfirmed")]
    Unconfirmed,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Unconfirmed => "revoke_unconfirmed",
        }
    }
}

impl Revocation {
    /// Whether its secrets are kept, for its kill switch alone.
    pub fn keeps_secrets(&self) -> bool {
        self.state == State::Unconfirmed && !self.forgotten
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    version: u32,
    packages: Vec<Revocation>,
}

#[derive(Serialize)]
struct Written<'w> {
    version: u32,
    packages: &'w [Revocation],
}

impl Revocations {
    /// Reads the file; why it is none, otherwise.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let read: Read = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if read.version != VERSION {
            return Err(format!("its version is {}, and {VERSION} is known", read.version));
        }
        let mut packages = read.packages;
        if packages.len() > MOST_PACKAGES {
            return Err(format!("it speaks of more than {MOST_PACKAGES} packages"));
        }
        packages.sort_by(|a, b| a.id.cmp(&b.id));
        match packages.windows(2).find(|two| two[0].id == two[1].id) {
            Some(two) => Err(format!("it speaks of `{}` twice", two[0].id)),
            None => Ok(Self(packages)),
        }
    }

    /// As it is written.
    pub fn to_bytes(&self) -> Vec<u8> {
        let written = Written { version: VERSION, packages: &self.0 };
        let mut bytes = serde_json::to_vec_pretty(&written).expect("revocations are plain data");
        bytes.push(b'\n');
        bytes
    }

    /// All of them, by id.
    pub fn all(&self) -> &[Revocation] {
        &self.0
    }

    /// That of a package, by its id with its dialect.
    pub fn get(&self, id: &str) -> Option<&Revocation> {
        self.place(id).ok().map(|at| &self.0[at])
    }

    /// Puts one in, for the one of its id.
    pub fn put(&mut self, one: Revocation) {
        match self.place(&one.id) {
            Ok(at) => self.0[at] = one,
            Err(at) => self.0.insert(at, one),
        }
    }

    /// Takes one out.
    pub fn take(&mut self, id: &str) {
        if let Ok(at) = self.place(id) {
            self.0.remove(at);
        }
    }

    /// Keeps only those whose secrets are kept for their kill switch.
    pub fn retain_open(&mut self) {
        self.0.retain(Revocation::keeps_secrets);
    }

    fn place(&self, id: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|one| one.id.as_str().cmp(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: &str, state: State) -> Revocation {
        let (why, by_hand) = (Some("the server answered 500".to_owned()), None);
        let hosts = vec!["127.0.0.1:80".to_owned()];
        Revocation { id: id.into(), state, since: 7, why, by_hand, hosts, forgotten: false }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut all = Revocations::default();
        for id in ["mcpkg:b.c", "mcpkg:a.b", "capability:x"] {
            all.put(one(id, State::Unconfirmed));
        }
        all.put(Revocation { forgotten: true, ..one("mcpkg:a.b", State::Unconfirmed) });
        let read = Revocations::parse(&all.to_bytes()).unwrap();
        assert_eq!(read, all);
        assert_eq!(read.all().len(), 3);
        assert!(!read.get("mcpkg:a.b").unwrap().keeps_secrets());
        assert!(read.get("mcpkg:b.c").unwrap().keeps_secrets());
        assert_eq!(read.get("mcpkg:a"), None);
        all.take("mcpkg:a.b");
        all.take("mcpkg:a.b");
        all.put(one("mcpkg:b.c", State::Revoked));
        all.retain_open();
        let left: Vec<_> = all.all().iter().map(|one| one.id.as_str()).collect();
        assert_eq!(left, ["capability:x"]);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        let twice = r#"{"id":"a:b","state":"revoked","since":1}"#;
        for text in [
            "",
            "[]",
            "{\"version\":2,\"packages\":[]}",
            "{\"version\":1,\"packages\":[{\"id\":\"a:b\"}]}",
            "{\"version\":1,\"packages\":[],\"more\":1}",
            &format!("{{\"version\":1,\"packages\":[{twice},{twice}]}}"),
            "{\"version\":1,\"packages\":[{\"id\":\"a:b\",\"state\":\"gone\",\"since\":1}]}",
        ] {
            assert!(Revocations::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
