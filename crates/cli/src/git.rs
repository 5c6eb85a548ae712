//! What git knows of a folder.

use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::program::{self, RunError, TIME_LIMIT};

/// The commit a folder is at.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) id: String,
    /// When it was made, in UTC.
    pub(crate) time: String,
    /// Where it is published, without credentials.
    pub(crate) remote: Option<String>,
    /// Files below the folder that are not as the commit has them.
    pub(crate) changed: Vec<String>,
}

/// The commit a folder is at; nothing when git knows none, or is not there.
pub(crate) fn commit(folder: &Path) -> Result<Option<Commit>, Failure> {
    let Some(head) = git(folder, &["log", "-1", "--format=%H %ct"])? else { return Ok(None) };
    let Some((id, seconds)) = head.trim().split_once(' ') else { return Ok(None) };
    let seconds: i64 = seconds.parse().unwrap_or_default();
    let remote = git(folder, &["remote", "get-url", "origin"])?;
    let modified = git(folder, &["diff", "--name-only", "-z", "--relative", "HEAD", "--", "."])?;
    let untracked = git(folder, &["ls-files", "-z", "--others", "--exclude-standard", "--", "."])?;
    let lists = [modified, untracked].into_iter().flatten();
    let changed = lists.flat_map(|list| list.split('\0').map(str::to_owned).collect::<Vec<_>>());
    Ok(Some(Commit {
        id: id.to_owned(),
        time: utc(seconds),
        remote: remote.map(|remote| without_credentials(remote.trim())),
        changed: changed.filter(|path| !path.is_empty()).collect(),
    }))
}

/// Runs git; nothing when it says no.
fn git(folder: &Path, arguments: &[&str]) -> Result<Option<String>, Failure> {
    // A repository may name programs to be run; none is needed here.
    let quiet = ["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath="];
    let arguments: Vec<&str> = quiet.iter().chain(arguments).copied().collect();
    match program::run("git", &arguments, folder, "", TIME_LIMIT) {
        Ok(ended) => Ok(ended.success.then_some(ended.stdout)),
        Err(RunError::Missing) => Ok(None),
        Err(RunError::Start(error)) => {
            Err(Failure::new(Exit::Unavailable, "failed to run git").cause(error))
        }
        Err(RunError::TooSlow) => Err(Failure::new(Exit::Unavailable, "git takes too long")),
    }
}

/// An address without the name and password somebody may have put into it.
fn without_credentials(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match host.rsplit_once('@') {
        Some((user, host)) if scheme == "ssh" && !user.contains(':') => format!("{user}@{host}"),
        Some((_, host)) => host.to_owned(),
        None => host.to_owned(),
    };
    format!("{scheme}://{host}{path}")
}

/// Seconds since 1970 as a date and time in UTC.
fn utc(seconds: i64) -> String {
    let (day, time) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years are counted from March, so that the leap day comes last.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(utc(1_763_164_800), "2025-11-15T00:00:00Z");
    }

    #[test]
    fn credentials_are_cut_out_of_addresses() {
        let cases = [
            ("https://me:secret@example.com/a.git", "https://example.com/a.git"),
            ("https://token@example.com/a", "https://example.com/a"),
            ("ssh://git@example.com/a", "ssh://git@example.com/a"),
            ("ssh://git:pw@example.com/a", "ssh://example.com/a"),
            ("git@example.com:a/b.git", "git@example.com:a/b.git"),
            ("https://example.com/a@b", "https://example.com/a@b"),
        ];
        for (address, clean) in cases {
            assert_eq!(without_credentials(address), clean);
        }
    }
}
