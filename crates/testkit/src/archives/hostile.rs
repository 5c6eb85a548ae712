//! Archives that must be refused, each with its code.
//!
//! Each has one fault and is otherwise sound, so that no other check can refuse
//! it by luck. Several ways to the same fault have several archives.

mod content;
mod entries;
mod names;
mod nested;
mod structure;

use package::refusal::RefusalCode;

use super::zip::{Item, Zip};

/// An archive with one fault.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// What is wrong with it, in a few words.
    pub name: String,
    /// The code it must be refused with.
    pub code: RefusalCode,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Every hostile archive.
pub fn hostile() -> Vec<Hostile> {
    [
        structure::archives(),
        entries::archives(),
        names::archives(),
        content::archives(),
        nested::archives(),
    ]
    .concat()
}

fn refused(code: RefusalCode, name: impl Into<String>, archive: impl Into<Vec<u8>>) -> Hostile {
    Hostile { name: name.into(), code, bytes: archive.into() }
}

impl From<Zip> for Vec<u8> {
    fn from(zip: Zip) -> Self {
        zip.bytes()
    }
}

/// An archive of one entry, between two honest ones.
impl From<Item> for Vec<u8> {
    fn from(item: Item) -> Self {
        let before = Item::stored("before.txt", b"an honest file");
        let after = Item::deflated("later/after.txt", b"another honest file, another honest file");
        Zip::of([before, item, after]).bytes()
    }
}
