//! What can be wrong with a log, and how it is said.

use std::fmt;

use super::line::LineError;

/// Something that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file in the folder; empty where there is no log at all.
    pub file: String,
    /// The line in it, from one; zero where it is about the file as a whole.
    pub line: u64,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The line is no record.
    Unreadable(LineError),
    /// The line's bytes do not have the hash it names.
    Edited,
    /// Records before this line are gone: lines, or whole days.
    Missing {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// The record, and those that follow it without a gap, belong further up.
    Misplaced {
        /// The record.
        seq: u64,
        /// The one it stands after.
        after: u64,
    },
    /// A second record with this number: one of them was put in.
    Repeated {
        /// The number.
        seq: u64,
    },
    /// The record does not follow the one before it: one of the two was put in the place of another.
    Unlinked {
        /// The record.
        seq: u64,
    },
    /// A writer found the log not to fit its head, and noted how.
    Mended(String),
    /// A line that a killed process left half written was put aside. Harmless.
    PutAside(String),
    /// The last line has no end: its writer was killed, or is writing. Harmless.
    Torn,
    /// A line has no end though a later file follows.
    Unended,
    /// There are records, or the key that signed a head before them, and no head.
    HeadMissing,
    /// The head is unreadable, or the key did not sign it.
    HeadUnsigned,
    /// The head is sealed, because its writer was killed before it could sign, and the key that would know is not here.
    HeadSealed,
    /// There is a head, and no public key to check it with.
    KeyMissing,
    /// There is a head, and what should be the public key is none.
    KeyUnreadable,
    /// The head names another record under this number.
    HeadDiffers {
        /// The number.
        seq: u64,
    },
    /// The last records are gone: the head knows them.
    Cut {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// Records that the head does not know.
    Unsigned {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// A writer was killed after its record and before the head, or calls are under way. Harmless.
    HeadBehind {
        /// How many records the head does not know: one, or two where the first is of a call.
        records: u64,
    },
    /// A call began, and nobody wrote how it ended: its host was killed, or it still runs. Harmless.
    Unfinished {
        /// The record of its beginning.
        seq: u64,
    },
}

impl Fault {
    /// Whether a killed process is all it takes.
    pub fn is_harmless(&self) -> bool {
        matches!(
            self,
            Fault::PutAside(_) | Fault::Torn | Fault::HeadBehind { .. } | Fault::Unfinished { .. }
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => self.fault.fmt(out),
            (file, 0) => write!(out, "{file}: {}", self.fault),
            (file, line) => write!(out, "{file}:{line}: {}", self.fault),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreadable(why) => write!(out, "{why}"),
            Fault::Edited => {
                out.write_str("the line was edited: it does not have the hash it names")
            }
            Fault::Missing { from, to } => {
                write!(out, "{} missing before this line", records(*from, *to))
            }
            Fault::Misplaced { seq, after } => {
                write!(out, "record {seq} was moved: it stands after record {after}")
            }
            Fault::Repeated { seq } => {
                write!(out, "there is a second record {seq}: one was put in")
            }
            Fault::Unlinked { seq } => {
                write!(out, "record {seq} does not follow the one before it: one was replaced")
            }
            Fault::Mended(note) => write!(out, "the log did not fit its head: {note}"),
            Fault::PutAside(note) => write!(out, "a line was left half written: {note}"),
            Fault::Torn => out.write_str("the last line is half written"),
            Fault::Unended => out.write_str("the last line of the file has no end"),
            Fault::HeadMissing => {
                out.write_str("the head is missing, so nothing vouches for the end of the log")
            }
            Fault::HeadUnsigned => out.write_str("the head is not signed by the key of the log"),
            Fault::HeadSealed => out.write_str(
                "the head is sealed and not signed yet, and the key that sealed it is not here",
            ),
            Fault::KeyMissing => {
                out.write_str("the public key is missing, so nobody can say who signed the head")
            }
            Fault::KeyUnreadable => {
                out.write_str("this is no public key, so nobody can say who signed the head")
            }
            Fault::HeadDiffers { seq } => write!(out, "the head names another record {seq}"),
            Fault::Cut { from, to } => {
                write!(out, "the log was cut off: {} missing", records(*from, *to))
            }
            Fault::Unsigned { from, to } => {
                write!(
                    out,
                    "the head does not know what follows it: {} unsigned",
                    records(*from, *to)
                )
            }
            Fault::Unfinished { seq } => {
                write!(out, "the call of record {seq} began, and its end was not written")
            }
            Fault::HeadBehind { records: 2 } => {
                out.write_str("the last two records were written, but their head was not")
            }
            Fault::HeadBehind { .. } => {
                out.write_str("the last record was written, but its head was not")
            }
        }
    }
}

fn records(from: u64, to: u64) -> String {
    if from == to { format!("record {from} is") } else { format!("records {from} to {to} are") }
}
