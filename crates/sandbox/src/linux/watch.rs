//! What a tree of processes uses, looked at from its first process, where no control group counts it.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::bare;
use super::groups;
use super::process::{self, Namespaces};
use super::wire::{Bounds, Cause};

/// About as fast as a machine fills memory, in bytes a second. From it follows how long one may look away.
const FILL_RATE: u64 = 2 << 30;

/// How much of the processors a tree may use, and how long it may go on, while a process in it cannot be
/// looked at. That is so for a moment when a program begins, and longest where it waits its turn.
const MOST_UNSEEN: Duration = Duration::from_millis(50);
const LONGEST_UNSEEN: Duration = Duration::from_secs(1);

/// How often to look at most and at least.
const SHORTEST: Duration = Duration::from_millis(4);
const LONGEST: Duration = Duration::from_millis(250);

/// The eyes of a room on its own processes.
#[derive(Debug)]
pub(crate) struct Watch {
    namespaces: Namespaces,
    page: u64,
    ticks: u64,
    /// The device that memory without a path lives on, once it was looked up.
    unnamed: Option<u64>,
    /// A control group's count of the processor time.
    time: Option<OwnedFd>,
    /// Since when there has been a process that cannot be looked at, and the processor time used by then.
    unseen: Option<(Instant, u64)>,
    /// The most memory seen.
    pub(crate) peak: u64,
}

/// What was seen at one look.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    memory: u64,
    cpu_ms: u64,
    processes: u32,
    /// Whether there is a process that hides what it has open.
    is_partial: bool,
}

impl Watch {
    pub(crate) fn new(namespaces: Namespaces, time: Option<OwnedFd>) -> Self {
        Self {
            namespaces,
            page: rustix::param::page_size() as u64,
            ticks: rustix::param::clock_ticks_per_second(),
            unnamed: None,
            time,
            unseen: None,
            peak: 0,
        }
    }

    /// Whether there is anything to look for.
    pub(crate) fn is_needed(bounds: &Bounds) -> bool {
        bounds.cpu_time_ms.is_some() || (!bounds.grouped && bounds.memory.is_some())
    }

    /// Looks once: what was overstepped, or how long one may look away.
    pub(crate) fn look(&mut self, bounds: &Bounds) -> Result<Duration, Cause> {
        if self.unnamed.is_none() {
            self.unnamed = rustix::fs::memfd_create("haft", rustix::fs::MemfdFlags::CLOEXEC)
                .and_then(|file| rustix::fs::fstat(&file))
                .map(|stat| stat.st_dev)
                .ok();
        }
        // Whoever cannot look must assume the worst.
        let seen = self.see(Exactness::Cheap).ok_or(Cause::Memory)?;
        self.peak = self.peak.max(seen.memory);
        let mut pause = LONGEST;
        if let Some(most) = bounds.memory.filter(|_| !bounds.grouped) {
            // Pages that several processes share are counted for each at first.
            let mut used = seen.memory;
            if used > most {
                // To look closer takes longer than to take more, so all of them are held meanwhile.
                self.signal(Signal::STOP);
                used = self.see(Exactness::Shared).map_or(u64::MAX, |seen| seen.memory);
                if used > most {
                    return Err(Cause::Memory);
                }
                self.signal(Signal::CONT);
            }
            // A process can close itself to others, and would then be a place to hide memory in. It
            // takes time to fill it.
            if seen.is_partial {
                let (since, spent) = *self.unseen.get_or_insert((Instant::now(), seen.cpu_ms));
                let spent = Duration::from_millis(seen.cpu_ms.saturating_sub(spent));
                if spent > MOST_UNSEEN || since.elapsed() > LONGEST_UNSEEN {
                    return Err(Cause::Memory);
                }
            } else {
                self.unseen = None;
            }
            let room = most.saturating_sub(used);
            let micros = room.saturating_mul(1_000_000) / FILL_RATE;
            pause = pause.min(Duration::from_micros(micros));
            if seen.is_partial {
                pause = SHORTEST;
            }
        }
        if let Some(most) = bounds.cpu_time_ms {
            let used = self.counted_ms().unwrap_or_else(|| {
                // Children that their parent does not wait for are counted while they live.
                let (user, system, _) = process::usage_of_children();
                seen.cpu_ms + (user + system) / 1000
            });
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

    /// Sends a signal to all processes of the room, itself apart.
    fn signal(&self, signal: Signal) {
        match self.namespaces {
            Namespaces::New => process::signal_everything(signal),
            Namespaces::Shared => bare::signal_descendants(signal, &[]),
        }
    }

    fn see(&self, exactness: Exactness) -> Option<Seen> {
        let mut seen = Seen::default();
        // Memory in files without a path, and in segments, which no process need have mapped.
        let mut files = match self.namespaces {
            Namespaces::New => segments(),
            Namespaces::Shared => HashMap::new(),
        };
        let mut folders = Vec::new();
        for pid in self.processes()? {
            let folder = Path::new("/proc").join(pid.to_string());
            seen.processes += 1;
            seen.is_partial |= !self.add_unnamed_files(&folder, &mut files);
            folders.push(folder);
        }
        for folder in &folders {
            seen.memory += match exactness {
                Exactness::Cheap => self.resident(folder),
                Exactness::Shared => {
                    self.proportional(folder, &files).unwrap_or_else(|| self.resident(folder))
                }
            };
            seen.cpu_ms += self.cpu_ms(folder);
        }
        seen.memory += files.values().sum::<u64>();
        Some(seen)
    }

    /// The processes of the room, itself apart. Its `/proc` has no others, if it is its own.
    fn processes(&self) -> Option<Vec<i32>> {
        let all = std::fs::read_dir("/proc").ok()?.flatten();
        Some(match self.namespaces {
            Namespaces::New => all
                .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
                .filter(|pid| *pid != 1)
                .collect(),
            Namespaces::Shared => bare::descendants(&[]),
        })
    }

    fn resident(&self, folder: &Path) -> u64 {
        let text = std::fs::read_to_string(folder.join("statm")).unwrap_or_default();
        let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        pages * self.page
    }

    /// Adds what a process has of files without a path, open or mapped; whether it could be seen.
    fn add_unnamed_files(&self, folder: &Path, files: &mut HashMap<u64, u64>) -> bool {
        let entries = match std::fs::read_dir(folder.join("fd")) {
            Ok(entries) => entries,
            // One that has ended has nothing, and cannot be looked into either.
            Err(error) => {
                return error.kind() != std::io::ErrorKind::PermissionDenied || has_ended(folder);
            }
        };
        let opened = entries.flatten().filter_map(|entry| std::fs::metadata(entry.path()).ok());
        let mut is_open = HashSet::new();
        for file in opened.filter(|file| Some(file.dev()) == self.unnamed) {
            is_open.insert(file.ino());
            files.insert(file.ino(), file.blocks() * 512);
        }
        // Of one that is only mapped, as much may be there as is mapped.
        let text = std::fs::read_to_string(folder.join("maps")).unwrap_or_default();
        for mapping in text.lines().filter_map(Mapping::read) {
            if Some(mapping.device) == self.unnamed && !is_open.contains(&mapping.file) {
                let known = files.entry(mapping.file).or_default();
                *known = (*known).max(mapping.offset + mapping.length);
            }
        }
        true
    }

    /// The processor time by the count of a control group.
    fn counted_ms(&self) -> Option<u64> {
        let mut buffer = [0; 512];
        let count = rustix::io::pread(self.time.as_ref()?, &mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..count]).ok()?;
        groups::processor_time(text)?.as_millis().try_into().ok()
    }

    /// The memory of one process, pages that it shares with others divided among them, without
    /// these files, which are counted already.
    fn proportional(&self, folder: &Path, files: &HashMap<u64, u64>) -> Option<u64> {
        let text = std::fs::read_to_string(folder.join("smaps")).ok()?;
        let (mut kilobytes, mut is_counted) = (0, false);
        for line in text.lines() {
            if let Some(size) = line.strip_prefix("Pss:") {
                let size: u64 = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
                kilobytes += if is_counted { 0 } else { size };
            } else if !line.split(' ').next()?.ends_with(':') {
                let mapping = Mapping::read(line)?;
                is_counted =
                    Some(mapping.device) == self.unnamed && files.contains_key(&mapping.file);
            }
        }
        Some(kilobytes * 1024)
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

/// The head of a mapping: addresses, rights, offset, device, file.
struct Mapping {
    length: u64,
    offset: u64,
    device: u64,
    file: u64,
}

impl Mapping {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = words.next()?.split_once('-')?;
        let offset = hex(words.nth(1)?)?;
        let (major, minor) = words.next()?.split_once(':')?;
        let number = |text| u32::from_str_radix(text, 16).ok();
        Some(Self {
            length: hex(end)?.saturating_sub(hex(start)?),
            offset,
            device: rustix::fs::makedev(number(major)?, number(minor)?),
            file: words.next()?.parse().ok()?,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exactness {
    /// Pages that processes share are counted for each.
    Cheap,
    /// Pages that processes share are divided among them.
    Shared,
}

/// Whether a process is about to end or only waited for: it has no memory any more.
fn has_ended(folder: &Path) -> bool {
    let text = std::fs::read_to_string(folder.join("statm")).unwrap_or_default();
    text.split(' ').next().is_none_or(|size| size.is_empty() || size == "0")
}

/// The memory in segments, by their numbers, under which mappings of them are known too. Without
/// an IPC namespace of its own these are everybody's, and are not counted.
fn segments() -> HashMap<u64, u64> {
    let text = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let segment = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((words.get(1)?.parse().ok()?, words.get(14)?.parse().ok()?))
    };
    text.lines().skip(1).filter_map(segment).collect()
}
