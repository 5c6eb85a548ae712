//! Answers of pure steps, kept by what they were made of.
//!
//! A step is pure when its action says that it has no side effects and that the same input always does the same, and when
//! nothing but its own files and its input can reach it: no host, no folder, no device, no variable, no secret. That it
//! has no side effects is not enough: a clock has none either. Its files are all of them, by one digest, so only what is
//! installed is kept; what is called from a folder may change between two calls.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use manifest::model::{Action, SideEffects};
use policy::digest_of;
use serde_json::{Value, json};

use crate::call::{Output, Tool};
use crate::choose::stamp;
use crate::plan::{Plan, Way};

/// The folder in the home.
const FOLDER: &str = "cache/steps";

/// A larger answer is not kept.
const LARGEST: usize = 4 << 20;

/// What is left, in parts of ten, when there was too much.
const LEFT: u64 = 8;

/// Answers of pure steps.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    /// How much is kept.
    most: u64,
    /// How much there is, once somebody has looked.
    size: Mutex<Option<u64>>,
    /// Files of ours that are being written.
    written: AtomicU64,
}

/// What an answer is kept under: what stands for the files, the action and the input, and says nothing of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// The key of a call, where it is pure.
    pub(crate) fn of(tool: &Tool, action: &Action, plan: &Plan, input: &Value) -> Option<Self> {
        let digest = tool.digest.as_ref()?;
        let allowance = &plan.decision.allowance;
        let is_alone = tool.package.inputs.is_empty()
            && allowance.environment.is_empty()
            && allowance.hosts.is_empty()
            && allowance.devices.is_empty()
            && allowance.read.is_empty()
            && allowance.write.is_empty();
        let is_pure =
            action.side_effects == Some(SideEffects::None) && action.idempotent == Some(true);
        let program = match &plan.way {
            Way::Process(one) => one.argv.first(),
            Way::Worker(one) => one.argv.first(),
            // A server may remember what it was asked before.
            Way::Mcp(_) | Way::Http(_) | Way::A2a(_) | Way::Engine(_) | Way::Chain(_) => None,
        };
        let program = Path::new(program?);
        (is_alone && is_pure).then(|| {
            // An interpreter is no file of the package.
            let runtime = format!("{} {}", program.display(), stamp(program, &[]));
            let of = [digest, &plan.package, &action.name, &plan.implementation, &runtime];
            Self(digest_of(&json!(["haft step 2", of, input])))
        })
    }
}

impl Cache {
    /// The answers of a home, of which so many bytes are kept; none where that is nothing.
    pub(crate) fn of_home(home: &Path, most: u64) -> Option<Self> {
        let folder = home.join(FOLDER);
        (most > 0).then(|| Self {
            folder,
            most,
            size: Mutex::default(),
            written: AtomicU64::new(0),
        })
    }

    /// The answer that is kept, unless it is not what was written.
    pub(crate) fn get(&self, key: &Key) -> Option<Value> {
        let path = self.folder.join(&key.0);
        let text = fs::read_to_string(&path).ok()?;
        let (digest, answer) = text.split_once('\n')?;
        let value = serde_json::from_str(answer).ok().filter(|value| digest_of(value) == digest);
        if value.is_none() {
            let _ = fs::remove_file(&path);
        }
        value
    }

    /// Keeps an answer. What cannot be kept is made anew the next time.
    pub(crate) fn put(&self, key: &Key, output: &Output) {
        let value = match output {
            Output::Json(value) => value.clone(),
            Output::Text(text) => Value::from(text.as_str()),
            Output::Binary { .. } | Output::Records(_) | Output::Nothing => return,
        };
        let text = format!("{}\n{value}", digest_of(&value));
        if text.len() <= LARGEST {
            let _ = self.write(key, &text);
        }
    }

    fn write(&self, key: &Key, text: &str) -> io::Result<()> {
        make_private(&self.folder)?;
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let draft = self.folder.join(format!(".{}-{number}", std::process::id()));
        let written = (private(&draft)).and_then(|mut file| file.write_all(text.as_bytes()));
        let moved = written.and_then(|()| fs::rename(&draft, self.folder.join(&key.0)));
        if moved.is_err() {
            let _ = fs::remove_file(&draft);
        }
        moved?;
        self.bound(text.len() as u64)
    }

    /// Takes the oldest answers away once there is too much.
    fn bound(&self, more: u64) -> io::Result<()> {
        let mut size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match *size {
            Some(known) => known + more,
            None => self.listed()?.iter().map(|one| one.size).sum(),
        };
        *size = Some(now);
        if now <= self.most {
            return Ok(());
        }
        let mut listed = self.listed()?;
        listed.sort_by_key(|one| one.changed);
        let mut left: u64 = listed.iter().map(|one| one.size).sum();
        for one in listed {
            if left <= self.most / 10 * LEFT {
                break;
            }
            if fs::remove_file(&one.path).is_ok() {
                left -= one.size;
            }
        }
        *size = Some(left);
        Ok(())
    }

    fn listed(&self) -> io::Result<Vec<Kept>> {
        let entries = fs::read_dir(&self.folder)?;
        Ok(entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let found = entry.metadata().ok()?;
                Some(Kept {
                    path: entry.path(),
                    size: found.len(),
                    changed: found.modified().ok()?,
                })
            })
            .collect())
    }
}

/// A file of the cache.
struct Kept {
    path: PathBuf,
    size: u64,
    changed: SystemTime,
}

/// A new file that only its owner reads: an answer says as much as the input that it was made of.
fn private(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key(digest_of(&json!(number)))
    }

    #[test]
    fn what_is_kept_is_what_was_written_or_nothing() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::of_home(home.path(), 1 << 20).unwrap();
        assert_eq!(cache.get(&key(1)), None);
        let answer = json!({"text": "a\nb", "n": [1, 2.5, null]});
        cache.put(&key(1), &Output::Json(answer.clone()));
        cache.put(&key(2), &Output::Text("plain".into()));
        cache.put(&key(3), &Output::Nothing);
        assert_eq!(cache.get(&key(1)), Some(answer));
        assert_eq!(cache.get(&key(2)), Some(json!("plain")));
        assert_eq!(cache.get(&key(3)), None);
        // A file that somebody changed, or that was cut off, is no answer, and does not stay.
        let path = home.path().join(FOLDER).join(&key(1).0);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("2.5", "2.6")).unwrap();
        assert_eq!(cache.get(&key(1)), None);
        assert!(!path.exists());
        assert!(Cache::of_home(home.path(), 0).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn only_their_owner_reads_answers() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::of_home(home.path(), 1 << 20).unwrap();
        cache.put(&key(1), &Output::Text("private".into()));
        let folder = home.path().join(FOLDER);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(&key(1).0))), (0o700, 0o600));
    }

    #[test]
    fn the_oldest_answers_go_when_there_is_too_much() {
        let home = tempfile::tempdir().unwrap();
        let text = "x".repeat(10_000);
        let most = 100_000;
        for number in 0..40 {
            // One that finds a cache as others left it counts what is there.
            let cache = Cache::of_home(home.path(), most).unwrap();
            cache.put(&key(number), &Output::Text(text.clone()));
            let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
            let path = home.path().join(FOLDER).join(&key(number).0);
            fs::File::options().append(true).open(path).unwrap().set_modified(old).unwrap();
            let size: u64 = cache.listed().unwrap().iter().map(|one| one.size).sum();
            assert!(size <= most, "{size}");
        }
        let cache = Cache::of_home(home.path(), most).unwrap();
        assert_eq!(cache.get(&key(0)), None);
        assert_eq!(cache.get(&key(39)), Some(json!(text)));
    }
}
