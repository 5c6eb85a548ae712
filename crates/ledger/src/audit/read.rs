//! Records from the end backwards, a page at a time.

use std::fmt;
use std::fs::File;
use std::path::Path;

use super::error::AuditError;
use super::folder::Folder;
use super::line::parse;
use super::lines::Backward;
use super::record::Record;
use crate::Time;
use crate::time::Day;

/// Which records are wanted; what is not given does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those of a package.
    pub package: Option<String>,
    /// Those of an action.
    pub action: Option<String>,
    /// Those of a chain: its own and those of its steps.
    pub trace: Option<String>,
    /// Those with this outcome or decision: `ok`, `denied`, or the code of an error.
    pub outcome: Option<String>,
    /// Those from then on.
    pub since: Option<Time>,
}

/// Records, the last one first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Place>,
    /// How many lines were stepped over because they are no sound records; `verify` names them.
    pub unreadable: u64,
}

/// A place in a log; written `YYYYMMDD-OFFSET`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub(super) day: Day,
    pub(super) at: u64,
}

impl Filter {
    /// Whether a record is wanted.
    pub fn wants(&self, record: &Record) -> bool {
        let is = |wanted: &Option<String>, has: Option<&String>| {
            wanted.is_none() || wanted.as_ref() == has
        };
        is(&self.package, Some(&record.package))
            && is(&self.action, Some(&record.action))
            && is(&self.trace, Some(&record.trace))
            && (is(&self.outcome, record.outcome.as_ref())
                || is(&self.outcome, record.decision.as_ref()))
            && self.since.is_none_or(|since| record.ts >= since)
    }
}

impl Place {
    /// Reads what was written.
    pub fn parse(text: &str) -> Option<Self> {
        let (day, at) = text.split_once('-')?;
        Some(Self { day: Day::parse(day)?, at: at.parse().ok()? })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.day, self.at)
    }
}

/// At most so many records that are wanted, from a place back; from the end when there is none.
pub fn page(
    folder: &Path,
    filter: &Filter,
    before: Option<Place>,
    most: usize,
) -> Result<Page, AuditError> {
    let folder = Folder::new(folder.to_owned());
    let mut page = Page { records: Vec::new(), next: None, unreadable: 0 };
    let mut days = folder.days()?;
    days.retain(|day| before.is_none_or(|place| *day <= place.day));
    // No record is in the file of an earlier day than its own.
    days.retain(|day| filter.since.is_none_or(|since| *day >= since.day()));
    for day in days.into_iter().rev() {
        let path = folder.log(day);
        let failed = || AuditError::file("read", &path);
        let file = File::open(&path).map_err(failed())?;
        let length = file.metadata().map_err(failed())?.len();
        let from =
            before.filter(|place| place.day == day).map_or(length, |place| place.at.min(length));
        let mut lines = Backward::new(file, from).map_err(failed())?;
        loop {
            if page.records.len() >= most {
                page.next = Some(Place { day, at: lines.at() });
                return Ok(page);
            }
            let Some((_, line)) = lines.next().map_err(failed())? else { break };
            match parse(&line) {
                Ok(record) if filter.wants(&record) => page.records.push(record),
                Ok(_) => {}
                Err(_) => page.unreadable += 1,
            }
        }
    }
    Ok(page)
}
