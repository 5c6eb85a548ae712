//! What the vault's two files say: `secrets.json`, and `key` where there is no passphrase.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::error::VaultError;
use super::seal::{Key, Sealed, Work, random};
use crate::place::{Owner, Place};
use crate::secret::Secret;

const FORMAT: &str = "haft-vault";
const KEY_FORMAT: &str = "haft-vault-key";
const VERSION: u32 = 1;

/// Which key it is; says nothing about the key itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct KeyId(#[serde(with = "super::base64_bytes")] [u8; 16]);

impl KeyId {
    pub(super) fn new() -> Result<Self, VaultError> {
        random().map(Self)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Everything in `secrets.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contents {
    format: String,
    version: u32,
    pub(super) key: Kept,
    pub(super) entries: Vec<Entry>,
}

/// Where the key is that opens the entries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Kept {
    /// In the file `key`.
    File { id: KeyId },
    /// Here, sealed with a key that Argon2id makes of a passphrase.
    Passphrase {
        id: KeyId,
        work: Work,
        #[serde(with = "super::base64_bytes")]
        salt: [u8; 16],
        key: Sealed,
    },
}

impl Kept {
    pub(super) fn id(&self) -> KeyId {
        match self {
            Kept::File { id } | Kept::Passphrase { id, .. } => *id,
        }
    }
}

/// One secret.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    owner: Owner,
    name: String,
    created: u64,
    changed: u64,
    value: Sealed,
}

/// A secret without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Whose it is, and its name.
    pub place: Place,
    /// When there first was a value, in seconds since 1970.
    pub created: u64,
    /// When it got the value it has, in seconds since 1970.
    pub changed: u64,
}

/// Why bytes are no vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// They are no vault of ours, or a damaged one.
    Malformed,
    /// A later version of Haft wrote them.
    Later,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Unreadable::Malformed => "this is no vault of Haft, or is damaged",
            Unreadable::Later => "this was written by a later version of Haft",
        })
    }
}

impl std::error::Error for Unreadable {}

/// What the bytes of a `secrets.json` list; nothing is opened.
pub fn listed_in(bytes: &[u8]) -> Result<Vec<Listed>, Unreadable> {
    Ok(Contents::parse(bytes)?.listed())
}

impl Contents {
    pub(super) fn new(key: Kept, entries: Vec<Entry>) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, key, entries }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        check_head(bytes, FORMAT)?;
        let contents: Self = serde_json::from_slice(bytes).map_err(|_| Unreadable::Malformed)?;
        let mut places = HashSet::new();
        let is_sound = |entry: &Entry| {
            Place::new(entry.owner.clone(), &entry.name).is_ok_and(|place| places.insert(place))
        };
        if contents.entries.iter().all(is_sound) {
            Ok(contents)
        } else {
            Err(Unreadable::Malformed)
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("the contents are plain data");
        bytes.push(b'\n');
        bytes
    }

    pub(super) fn listed(&self) -> Vec<Listed> {
        let mut listed: Vec<_> = self.entries.iter().map(Entry::listed).collect();
        listed.sort_by(|a, b| a.place.cmp(&b.place));
        listed
    }

    pub(super) fn find(&self, place: &Place) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.is_at(place))
    }
}

impl Entry {
    /// Seals a value, bound to everything that stands beside it and to the key.
    pub(super) fn seal(
        (id, key): (KeyId, &Key),
        listed: &Listed,
        value: &Secret,
    ) -> Result<Self, VaultError> {
        Ok(Self {
            owner: listed.place.owner().clone(),
            name: listed.place.name().to_owned(),
            created: listed.created,
            changed: listed.changed,
            value: key.seal(value.expose().as_bytes(), &beside(id, listed))?,
        })
    }

    pub(super) fn open(&self, (id, key): (KeyId, &Key)) -> Result<Secret, VaultError> {
        let listed = self.listed();
        let value = key.open(&self.value, &beside(id, &listed));
        let mut value = value.ok_or(VaultError::Damaged(listed.place))?;
        Secret::from_bytes(std::mem::take(&mut *value)).map_err(VaultError::Value)
    }

    pub(super) fn listed(&self) -> Listed {
        let place = Place::new(self.owner.clone(), &self.name);
        let place = place.expect("entries were checked when they were read");
        Listed { place, created: self.created, changed: self.changed }
    }

    pub(super) fn is_at(&self, place: &Place) -> bool {
        self.owner == *place.owner() && self.name == place.name()
    }

    pub(super) fn is_of(&self, owner: &Owner) -> bool {
        self.owner == *owner
    }
}

/// Everything that is visible of an entry, each part with its length, so that no two read the same.
fn beside(id: KeyId, listed: &Listed) -> Vec<u8> {
    let (kind, owner): (&[u8], &str) = match listed.place.owner() {
        Owner::Package(package) => (b"package", package),
        Owner::Shared => (b"shared", ""),
    };
    let mut bytes = Vec::new();
    let (created, changed) = (listed.created.to_be_bytes(), listed.changed.to_be_bytes());
    let name = listed.place.name().as_bytes();
    for part in [FORMAT.as_bytes(), id.as_bytes(), kind, owner.as_bytes(), name, &created, &changed]
    {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part);
    }
    bytes
}

/// The keys in the file `key`: one, and two while one takes the other's place.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyFile {
    format: String,
    version: u32,
    keys: Vec<PlainKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainKey {
    id: KeyId,
    #[serde(with = "super::base64_bytes")]
    key: Zeroizing<Vec<u8>>,
}

impl KeyFile {
    pub(super) fn new(keys: &[(KeyId, &Key)]) -> Self {
        let plain = |(id, key): &(KeyId, &Key)| PlainKey {
            id: *id,
            key: Zeroizing::new(key.as_bytes().to_vec()),
        };
        let keys = keys.iter().map(plain).collect();
        Self { format: KEY_FORMAT.to_owned(), version: VERSION, keys }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        check_head(bytes, KEY_FORMAT)?;
        serde_json::from_slice(bytes).map_err(|_| Unreadable::Malformed)
    }

    pub(super) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // Large enough from the start: growing would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(1024));
        serde_json::to_writer(&mut *bytes, self).expect("keys are plain data");
        bytes.push(b'\n');
        bytes
    }

    pub(super) fn find(&self, id: KeyId) -> Option<Key> {
        let plain = self.keys.iter().find(|plain| plain.id == id)?;
        Key::from_bytes(&plain.key)
    }

    pub(super) fn is_only(&self, id: KeyId) -> bool {
        matches!(&self.keys[..], [plain] if plain.id == id)
    }
}

/// Whether a file is of a format and of a version that we know.
fn check_head(bytes: &[u8], format: &str) -> Result<(), Unreadable> {
    #[derive(Deserialize)]
    struct Head {
        format: String,
        version: u32,
    }
    match serde_json::from_slice::<Head>(bytes) {
        Ok(head) if head.format == format && head.version == VERSION => Ok(()),
        Ok(head) if head.format == format && head.version > VERSION => Err(Unreadable::Later),
        _ => Err(Unreadable::Malformed),
    }
}
