//! The log that pages show: that of the home, or those of all replicas that share its state.

use std::path::PathBuf;

use host::Host;
use host::fleet::{self, Places, Told};
use host::records::whole;
use ledger::audit::{Filter, Finding, Place, Record, page, verify};

/// Where it is.
#[derive(Clone, Debug)]
pub(super) enum Log {
    /// In a folder of the home.
    Home(PathBuf),
    /// In the state that replicas share.
    Shared(Host),
}

/// A record.
#[derive(Debug)]
pub(super) struct Line {
    /// The key of the replica that wrote it, where there are several.
    pub(super) replica: Option<String>,
    pub(super) record: Record,
}

/// A part of it, the newest first.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    pub(super) lines: Vec<Line>,
    /// Where the next part begins, if there may be one.
    pub(super) next: Option<String>,
    /// How many lines are no sound records.
    pub(super) unreadable: u64,
}

/// What came of looking whether it is whole.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) is_sound: bool,
    pub(super) records: u64,
    /// Of how many replicas, where there are several.
    pub(super) replicas: Option<usize>,
    pub(super) findings: Vec<String>,
}

impl Log {
    /// Reads so many records that are wanted, from a place on, or from its end; why it cannot be read.
    pub(super) async fn page(
        &self,
        filter: &Filter,
        before: Option<&str>,
        most: usize,
    ) -> Result<Timeline, String> {
        match self {
            Self::Home(folder) => {
                let (folder, filter) = (folder.clone(), filter.clone());
                let before = before.and_then(Place::parse);
                let read = move || page(&folder, &filter, before, most);
                let page = aside(read).await?.map_err(|error| whole(&error))?;
                let line = |record| Line { replica: None, record };
                Ok(Timeline {
                    lines: page.records.into_iter().map(line).collect(),
                    next: page.next.map(|place| place.to_string()),
                    unreadable: page.unreadable,
                })
            }
            Self::Shared(host) => {
                let Some(shared) = host.records().state.shared() else {
                    return Ok(Timeline::default());
                };
                let before = before.and_then(Places::parse).unwrap_or_default();
                let page = fleet::page(shared, filter, &before, most).await;
                let page = page.map_err(|error| whole(&error))?;
                let line = |Told { replica, record }| Line { replica: Some(replica), record };
                Ok(Timeline {
                    lines: page.told.into_iter().map(line).collect(),
                    next: page.next.map(|places| places.to_string()),
                    unreadable: page.unreadable,
                })
            }
        }
    }

    /// Looks whether it is whole; why it cannot be read.
    pub(super) async fn check(&self) -> Result<Checked, String> {
        let told = |findings: &[Finding]| findings.iter().map(ToString::to_string).collect();
        match self {
            Self::Home(folder) => {
                let folder = folder.clone();
                let report = aside(move || verify(&folder)).await?;
                let report = report.map_err(|error| whole(&error))?;
                Ok(Checked {
                    is_sound: report.is_sound(),
                    records: report.lines,
                    replicas: None,
                    findings: told(&report.findings),
                })
            }
            Self::Shared(host) => {
                let Some(shared) = host.records().state.shared() else {
                    return Err("the state is shared no more".to_owned());
                };
                let all = fleet::verify(shared).await.map_err(|error| whole(&error))?;
                let findings = all.iter().flat_map(|(replica, report)| {
                    let of = fleet::short(&replica.key);
                    report.findings.iter().map(move |finding| format!("{of}: {finding}"))
                });
                Ok(Checked {
                    is_sound: all.iter().all(|(_, report)| report.is_sound()),
                    records: all.iter().map(|(_, report)| report.lines).sum(),
                    replicas: Some(all.len()),
                    findings: findings.collect(),
                })
            }
        }
    }
}

/// Reads files beside everything else.
async fn aside<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())
}
