//! What git knows of a folder.
//!
//! A repository can name programs that git is to run: filters, signature checkers,
//! transports. Only commands are used that read objects and start nothing, so a
//! stranger's repository can be looked at.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::exit::{Exit, Failure};
use crate::program::{self, RunError, TIME_LIMIT};
use crate::time::utc;

/// The commit a folder is at.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) id: String,
    /// When it was made, in UTC.
    pub(crate) time: String,
    /// Where it is published, without credentials.
    pub(crate) remote: Option<String>,
    /// Files that the commit has, but not like this.
    pub(crate) changed: Vec<String>,
    /// Files that the commit does not have: built ones, or new ones.
    pub(crate) beside: Vec<String>,
}

/// The commit a folder is at, and how the files at these paths stand to it; nothing when
/// git knows none, or is not there.
pub(crate) fn commit(folder: &Path, paths: &[&str]) -> Result<Option<Commit>, Failure> {
    let Some(id) = ask(folder, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], "")? else {
        return Ok(None);
    };
    let id = id.trim().to_owned();
    let prefix = tell(folder, &["rev-parse", "--show-prefix"], "")?;
    let prefix = prefix.trim_end_matches('\n');
    let tree = tell(folder, &["ls-tree", "-r", "-z", "--full-tree", &id], "")?;
    let held: HashMap<&str, &str> = tree.split('\0').filter_map(blob).collect();
    let (mut changed, mut beside) = (Vec::new(), Vec::new());
    let known: Vec<&str> = paths
        .iter()
        .copied()
        .filter(|path| {
            let is_held = held.contains_key(format!("{prefix}{path}").as_str());
            if !is_held {
                beside.push((*path).to_owned());
            }
            is_held
        })
        .collect();
    let list: String = known.iter().map(|path| format!("{path}\n")).collect();
    let hashes = tell(folder, &["hash-object", "--no-filters", "--stdin-paths"], &list)?;
    let hashes: Vec<&str> = hashes.lines().collect();
    if hashes.len() != known.len() {
        return Err(Failure::new(Exit::Unavailable, "git does not tell what the files are"));
    }
    for (path, hash) in known.iter().zip(hashes) {
        if held.get(format!("{prefix}{path}").as_str()) != Some(&hash) {
            changed.push((*path).to_owned());
        }
    }
    let remote = ask(folder, &["config", "--get", "remote.origin.url"], "")?;
    let remote = remote.and_then(|remote| published(remote.trim()));
    let time = utc(committed(&tell(folder, &["cat-file", "commit", &id], "")?));
    Ok(Some(Commit { id, time, remote, changed, beside }))
}

/// The path and id of a file in a tree's listing.
fn blob(line: &str) -> Option<(&str, &str)> {
    let (facts, path) = line.split_once('\t')?;
    let mut facts = facts.split(' ').skip(1);
    (facts.next()? == "blob").then_some((path, facts.next()?))
}

/// When a commit was made, in seconds since 1970.
fn committed(commit: &str) -> i64 {
    let mut lines = commit.lines().take_while(|line| !line.is_empty());
    let line = lines.find_map(|line| line.strip_prefix("committer "));
    let seconds = line.and_then(|line| line.rsplit(' ').nth(1));
    seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or_default()
}

/// Asks git something it must know.
fn tell(folder: &Path, arguments: &[&str], input: &str) -> Result<String, Failure> {
    ask(folder, arguments, input)?.ok_or_else(|| {
        let verb = arguments.first().copied().unwrap_or_default();
        Failure::new(Exit::Unavailable, format!("`git {verb}` fails, so the commit is not known"))
    })
}

/// Asks git something; nothing when it says no.
fn ask(folder: &Path, arguments: &[&str], input: &str) -> Result<Option<String>, Failure> {
    let mut command = Command::new("git");
    command.current_dir(folder);
    command.args(["--no-optional-locks", "--no-replace-objects"]);
    command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    command.args(arguments);
    // Nothing is fetched, and no other repository is meant.
    command.env("GIT_ALLOW_PROTOCOL", "").env("GIT_NO_LAZY_FETCH", "1").env("GIT_PAGER", "cat");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
        command.env_remove(variable);
    }
    match program::run_command(command, input, TIME_LIMIT) {
        Ok(ended) => Ok(ended.success.then_some(ended.stdout)),
        Err(RunError::Missing) => Ok(None),
        Err(RunError::Start(error)) => {
            Err(Failure::new(Exit::Unavailable, "failed to run git").cause(error))
        }
        Err(RunError::TooSlow) => Err(Failure::new(Exit::Unavailable, "git takes too long")),
    }
}

/// The address others can reach, without what somebody may have put into it: a name and
/// password, a token. A path on this machine is nobody's business.
fn published(address: &str) -> Option<String> {
    let Some((scheme, rest)) = address.split_once("://") else {
        let (host, path) = address.split_once(':')?;
        let is_host = host.contains('@') && !host.contains('/') && !path.is_empty();
        return is_host.then(|| address.to_owned());
    };
    if scheme == "file" {
        return None;
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match host.rsplit_once('@') {
        Some((user, host)) if scheme == "ssh" && !user.contains(':') => format!("{user}@{host}"),
        Some((_, host)) => host.to_owned(),
        None => host.to_owned(),
    };
    Some(format!("{scheme}://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_cut_out_of_addresses() {
        let cases = [
            ("https://me:secret@example.com/a.git", "https://example.com/a.git"),
            ("https://token@example.com/a", "https://example.com/a"),
            ("ssh://git@example.com/a", "ssh://git@example.com/a"),
            ("ssh://git:pw@example.com/a", "ssh://example.com/a"),
            ("git@example.com:a/b.git", "git@example.com:a/b.git"),
            ("https://example.com/a@b", "https://example.com/a@b"),
            ("https://u:p@example.com/a.git?token=x#y", "https://example.com/a.git"),
        ];
        for (address, clean) in cases {
            assert_eq!(published(address).as_deref(), Some(clean));
        }
        for address in ["/home/me/a", "../a", "file:///home/me/a", "C:/a"] {
            assert_eq!(published(address), None, "{address}");
        }
    }
}
