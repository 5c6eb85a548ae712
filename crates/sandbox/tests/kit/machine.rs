//! What there is on the machine: the processes, and what the kernel says of them.

use std::time::{Duration, Instant};

use super::rooms::text;

/// Looks again and again until something holds; `false` if it never did.
pub fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit * slowness();
    while !holds() {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// How many times slower than any real machine this one is, where it is emulated.
pub fn slowness() -> u32 {
    std::env::var("HAFT_TEST_SLOWNESS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// One process as `/proc` shows it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its number.
    pub pid: i32,
    /// Its parent's number.
    pub parent: i32,
    /// Its arguments.
    pub words: String,
    /// Memory that is its own, in bytes.
    pub own_memory: u64,
}

/// Every process there is that has not ended.
pub fn processes() -> Vec<Seen> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            let pid = folder.file_name()?.to_str()?.parse().ok()?;
            let words = text(&std::fs::read(folder.join("cmdline")).ok()?);
            let status = std::fs::read_to_string(folder.join("status")).ok()?;
            if field(&status, "State:")?.starts_with(['Z', 'X']) {
                return None;
            }
            let parent = field(&status, "PPid:")?.parse().ok()?;
            let own_memory = kibibytes(&status, "RssAnon:").unwrap_or(0);
            Some(Seen { pid, parent, words, own_memory })
        })
        .collect()
}

/// A line of one of the kernel's tables, without its name.
pub fn field<'t>(table: &'t str, name: &str) -> Option<&'t str> {
    table.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// A line that counts kibibytes, in bytes.
pub fn kibibytes(table: &str, name: &str) -> Option<u64> {
    let count: u64 = field(table, name)?.trim_end_matches(" kB").parse().ok()?;
    Some(count * 1024)
}

/// The processes below one.
pub fn below(ancestor: i32) -> Vec<Seen> {
    let all = processes();
    let mut found: Vec<Seen> = Vec::new();
    let mut next = vec![ancestor];
    while let Some(parent) = next.pop() {
        for one in all.iter().filter(|one| one.parent == parent) {
            next.push(one.pid);
            found.push(one.clone());
        }
    }
    found
}

/// The processes that have a word among their arguments.
pub fn with_word(word: &str) -> Vec<i32> {
    let all = processes().into_iter();
    all.filter(|one| one.words.contains(word) && one.pid != own()).map(|one| one.pid).collect()
}

/// The launchers that a process has started.
pub fn launchers_of(parent: i32) -> Vec<i32> {
    let is_one = |one: &Seen| one.parent == parent && one.words.starts_with("haft-launcher\0");
    processes().iter().filter(|one| is_one(one)).map(|one| one.pid).collect()
}

/// Kills a process as nothing can be killed harder.
pub fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// The number of this process, as `/proc` counts.
pub fn own() -> i32 {
    std::process::id().cast_signed()
}

/// The number of a child, as `/proc` counts.
pub fn number(child: &sandbox::Child) -> i32 {
    child.id().cast_signed()
}
