//! What a tree of processes uses, looked at from its first process, where no control group counts it.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::process;
use super::wire::{Bounds, Cause};

/// About as fast as a machine fills memory, in bytes a second. From it follows how long one may look away.
const FILL_RATE: u64 = 2 << 30;

/// How often to look at most and at least.
const SHORTEST: Duration = Duration::from_millis(4);
const LONGEST: Duration = Duration::from_millis(250);

/// The eyes of a room on its own processes.
#[derive(Debug)]
pub(crate) struct Watch {
    page: u64,
    ticks: u64,
    /// The device that memory without a path lives on.
    unnamed: Option<u64>,
    /// The most memory seen.
    pub(crate) peak: u64,
}

/// What was seen at one look.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    memory: u64,
    cpu_ms: u64,
    processes: u32,
}

impl Watch {
    pub(crate) fn new() -> Self {
        let unnamed = rustix::fs::memfd_create("haft", rustix::fs::MemfdFlags::CLOEXEC)
            .and_then(|file| rustix::fs::fstat(&file))
            .map(|stat| stat.st_dev);
        Self {
            page: rustix::param::page_size() as u64,
            ticks: rustix::param::clock_ticks_per_second(),
            unnamed: unnamed.ok(),
            peak: 0,
        }
    }

    /// Whether there is anything to look for.
    pub(crate) fn is_needed(bounds: &Bounds) -> bool {
        bounds.cpu_time_ms.is_some() || (!bounds.grouped && bounds.memory.is_some())
    }

    /// Looks once: what was overstepped, or how long one may look away.
    pub(crate) fn look(&mut self, bounds: &Bounds) -> Result<Duration, Cause> {
        // Whoever cannot look must assume the worst.
        let seen = self.see(Exactness::Cheap).ok_or(Cause::Memory)?;
        self.peak = self.peak.max(seen.memory);
        let mut pause = LONGEST;
        if let Some(most) = bounds.memory.filter(|_| !bounds.grouped) {
            // Pages that several processes share are counted for each at first.
            let is_over = |seen: Option<Seen>| seen.is_none_or(|seen| seen.memory > most);
            if is_over(Some(seen)) && is_over(self.see(Exactness::Shared)) {
                return Err(Cause::Memory);
            }
            let room = most.saturating_sub(seen.memory);
            let micros = room.saturating_mul(1_000_000) / FILL_RATE;
            pause = pause.min(Duration::from_micros(micros));
        }
        if let Some(most) = bounds.cpu_time_ms {
            let (user, system, _) = process::usage_of_children();
            let used = seen.cpu_ms + (user + system) / 1000;
            if used > most {
                return Err(Cause::Processor);
            }
            let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
            pause = pause.min(Duration::from_millis((most - used) / processors));
        }
        if !bounds.grouped && seen.processes > bounds.processes.saturating_add(1) {
            return Err(Cause::Processes);
        }
        Ok(pause.max(SHORTEST))
    }

    fn see(&self, exactness: Exactness) -> Option<Seen> {
        let mut seen = Seen::default();
        let mut files = HashSet::new();
        for entry in std::fs::read_dir("/proc").ok()?.flatten() {
            let name = entry.file_name();
            let is_process = name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
            if !is_process || name == "1" {
                continue;
            }
            let folder = entry.path();
            seen.processes += 1;
            seen.memory += match exactness {
                Exactness::Cheap => self.resident(&folder),
                Exactness::Shared => {
                    proportional(&folder).unwrap_or_else(|| self.resident(&folder))
                }
            };
            seen.memory += self.unnamed_files(&folder, &mut files);
            seen.cpu_ms += self.cpu_ms(&folder);
        }
        Some(seen)
    }

    fn resident(&self, folder: &Path) -> u64 {
        let text = std::fs::read_to_string(folder.join("statm")).unwrap_or_default();
        let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        pages * self.page
    }

    /// Memory in files without a path, which no process need have mapped.
    fn unnamed_files(&self, folder: &Path, counted: &mut HashSet<u64>) -> u64 {
        let entries = std::fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| std::fs::metadata(entry.path()).ok())
            .filter(|file| Some(file.dev()) == self.unnamed && counted.insert(file.ino()))
            .map(|file| file.blocks() * 512)
            .sum()
    }

    fn cpu_ms(&self, folder: &Path) -> u64 {
        let text = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
        // The name is in brackets and may hold anything.
        let Some((_, rest)) = text.rsplit_once(')') else { return 0 };
        let fields: Vec<u64> =
            rest.split_whitespace().skip(11).take(4).filter_map(|n| n.parse().ok()).collect();
        fields.iter().sum::<u64>() * 1000 / self.ticks.max(1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exactness {
    /// Pages that processes share are counted for each.
    Cheap,
    /// Pages that processes share are divided among them.
    Shared,
}

fn proportional(folder: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(folder.join("smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
