//! What was used longest ago is removed where there is more than there may be.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use package::digest::Digest;

use super::{Cache, packages};

/// After this time, what is half written is left over.
const HALF_WRITTEN: Duration = Duration::from_hours(1);
/// After this time, nobody goes on with the beginning of a package.
const BEGUN: Duration = Duration::from_hours(7 * 24);

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Cache {
    /// Removes what is left over, and what was used longest ago until the rest is no more than it may be. One package
    /// stays in any case: the one that is needed now. What cannot be removed stays.
    pub fn prune(&self, needed: Option<Digest>) {
        let now = SystemTime::now();
        let needed = needed.map(|digest| self.packages().join(digest.to_string()));
        let mut entries = Vec::new();
        for folder in [self.packages(), self.answers()] {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(found) = entry.metadata() else { continue };
                if kind(&entry.path()) == "yanked" {
                    // It goes with the package that it warns of, and not before.
                    if !entry.path().with_extension("").exists() {
                        remove(&entry.path());
                    }
                    continue;
                }
                let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let entry = Entry { path: entry.path(), bytes: found.len(), used };
                let age = now.duration_since(entry.used).unwrap_or_default();
                let is_left = match kind(&entry.path) {
                    "new" => age > HALF_WRITTEN,
                    "part" | "tag" => age > BEGUN,
                    _ => false,
                };
                if !(is_left && remove(&entry.path)) {
                    entries.push(entry);
                }
            }
        }
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        entries.sort_by_key(|entry| entry.used);
        for entry in entries {
            if total <= self.most {
                break;
            }
            let is_young = kind(&entry.path) == "new";
            if Some(&entry.path) != needed.as_ref() && !is_young && remove(&entry.path) {
                total -= entry.bytes;
            }
        }
    }
}

fn kind(path: &Path) -> &str {
    path.extension().and_then(|kind| kind.to_str()).unwrap_or_default()
}

/// Removes a file, unless somebody is at it.
fn remove(path: &Path) -> bool {
    if kind(path) == "part" {
        let Ok(file) = File::open(path) else { return false };
        // Whoever comes next sees that the file has no name any more, and makes a new one.
        if file.try_lock().is_err() || !packages::is_at(&file, path) {
            return false;
        }
        return fs::remove_file(path).is_ok();
    }
    fs::remove_file(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::packages::Begun;
    use super::super::{Kept, MOST};
    use super::*;

    fn put(cache: &Cache, content: &[u8], age: u64) -> Digest {
        let digest = Digest::of(content);
        let Begun::Part(mut part) = cache.begin(digest).unwrap() else { panic!("it is there") };
        part.write(content).unwrap();
        part.finish().unwrap().unwrap();
        set_age(&cache.packages().join(digest.to_string()), age);
        digest
    }

    fn set_age(path: &Path, hours: u64) {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(hours)).unwrap();
    }

    #[test]
    fn a_warning_stays_as_long_as_what_it_warns_of() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), 150);
        let (old, new) = (put(&cache, &[1; 100], 30), put(&cache, &[2; 100], 3));
        for digest in [old, new] {
            cache.note_taken_back(digest, Some("leaks")).unwrap();
            set_age(&cache.packages().join(format!("{digest}.yanked")), 40);
        }
        cache.prune(None);
        assert!(cache.package(old).unwrap().is_none() && cache.package(new).unwrap().is_some());
        assert!(cache.taken_back(new).is_some());
        cache.prune(None);
        assert!(cache.taken_back(old).is_none() && cache.taken_back(new).is_some());
    }

    #[test]
    fn the_oldest_goes_first_and_what_is_needed_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), 250);
        let needed = put(&cache, &[1; 100], 30);
        let old = put(&cache, &[2; 100], 20);
        let new = put(&cache, &[3; 100], 10);
        cache.prune(Some(needed));
        let is_there = |digest| cache.package(digest).unwrap().is_some();
        assert!(is_there(needed) && is_there(new) && !is_there(old));
        // Reading it has made `new` the younger one of the two.
        set_age(&cache.packages().join(needed.to_string()), 1);
        Cache::new(folder.path(), 150).prune(None);
        assert!(is_there(new) && !is_there(needed));
    }

    #[test]
    fn what_is_left_over_goes_but_not_what_somebody_is_at() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), MOST);
        let kept = Kept { tag: None, yanked: None, next: None, body: b"{}".to_vec() };
        cache.keep_answer("https://a.example/", &kept).unwrap();
        let half = cache.answers().join("1-2.new");
        fs::write(&half, "x").unwrap();
        let Begun::Part(mut part) = cache.begin(Digest::of(b"x")).unwrap() else { panic!() };
        part.write(b"half").unwrap();
        let path = cache.packages().join(format!("{}.part", Digest::of(b"x")));
        for path in [&half, &path] {
            set_age(path, 1_000);
        }
        cache.prune(None);
        assert!(!half.exists() && path.exists());
        drop(part);
        set_age(&path, 1_000);
        cache.prune(None);
        assert!(!path.exists());
        assert!(cache.answer("https://a.example/").is_some());
    }
}
