//! What a vault in a folder keeps, for whom, and what is left of what it no longer keeps.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{mode_of, names, of, open, secret, shared, value};
use vault::file::Unsafe;
use vault::{FileVault, Owner, VaultError};

#[test]
fn a_secret_is_kept_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let vault = open(&path);
    assert_eq!(vault.list().unwrap(), []);
    assert!(!path.exists(), "looking makes nothing");
    let places = [of("a", "b-c"), of("a-b", "c"), of("a-b-c", "c"), shared("b-c"), shared("a.b")];
    for (index, place) in places.iter().enumerate() {
        vault.set(place, &secret(&format!("value {index}"))).unwrap();
    }
    let again = open(&path);
    for (index, place) in places.iter().enumerate() {
        assert_eq!(value(&again, place), Some(format!("value {index}")));
    }
    assert_eq!(value(&again, &of("b", "c")), None);
    assert_eq!(again.list().unwrap().len(), places.len());
    assert_eq!(mode_of(&path), 0o700);
    assert_eq!(names(&path), ["key", "lock", "secrets.json"]);
    for name in names(&path) {
        assert_eq!(mode_of(&path.join(&name)), 0o600, "{name}");
    }
}

#[test]
fn everything_of_one_package_goes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let vault = open(&folder.path().join("vault"));
    for place in [of("a", "x"), of("a", "y"), of("ab", "x"), shared("x")] {
        vault.set(&place, &secret("value")).unwrap();
    }
    let owner = Owner::Package("a".to_owned());
    let change = vault.change_without(std::slice::from_ref(&owner)).unwrap().unwrap();
    // Until somebody puts it in its place, everything is there.
    assert_eq!(vault.list().unwrap().len(), 4);
    let file = folder.path().join("vault").join(vault::Change::FILE);
    std::fs::write(&file, change.bytes()).unwrap();
    drop(change);
    assert!(vault.change_without(std::slice::from_ref(&owner)).unwrap().is_none());
    assert_eq!(value(&vault, &of("ab", "x")).as_deref(), Some("value"));
    let left: Vec<_> = vault.list().unwrap().into_iter().map(|listed| listed.place).collect();
    assert_eq!(left, [of("ab", "x"), shared("x")]);
    assert!(vault.remove(&shared("x")).unwrap());
    assert!(!vault.remove(&shared("x")).unwrap());
}

#[test]
fn a_value_takes_the_place_of_another_only_while_that_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let vault = open(&folder.path().join("vault"));
    let (place, other) = (of("a", "x"), of("a", "y"));
    assert!(!vault.replace(&place, &secret("old"), &secret("new")).unwrap());
    vault.set(&place, &secret("old")).unwrap();
    assert!(!vault.replace(&other, &secret("old"), &secret("new")).unwrap());
    assert!(vault.replace(&place, &secret("old"), &secret("new")).unwrap());
    assert!(!vault.replace(&place, &secret("old"), &secret("newer")).unwrap());
    assert_eq!((value(&vault, &place), value(&vault, &other)), (Some("new".to_owned()), None));
}

#[test]
fn a_replaced_or_removed_value_is_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let vault = open(&path);
    vault.set(&shared("kept"), &secret("kept value")).unwrap();
    vault.set(&shared("name"), &secret("first value")).unwrap();
    let first = sealed(&path, "name");
    vault.set(&shared("name"), &secret("second value")).unwrap();
    let second = sealed(&path, "name");
    vault.remove(&shared("name")).unwrap();
    let kept = sealed(&path, "kept");
    vault.rotate().unwrap();
    for name in names(&path) {
        let content = fs::read_to_string(path.join(&name)).unwrap();
        for gone in [&first, &second, &kept, "first value", "second value", "kept value"] {
            assert!(!content.contains(gone), "{name} has {gone}");
        }
    }
    assert_eq!(value(&vault, &shared("kept")).unwrap(), "kept value");
}

#[test]
fn entries_cannot_change_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let vault = open(&path);
    vault.set(&of("good", "token"), &secret("of the good one")).unwrap();
    vault.set(&of("evil", "token"), &secret("of the evil one")).unwrap();
    let file = path.join("secrets.json");
    let text = fs::read_to_string(&file).unwrap();
    let swapped = text.replace("\"good\"", "\"x\"").replace("\"evil\"", "\"good\"");
    let swapped = swapped.replace("\"x\"", "\"evil\"");
    for damaged in [swapped, text.replace("\"token\"", "\"other\""), aged(&text)] {
        fs::write(&file, &damaged).unwrap();
        for listed in vault.list().unwrap() {
            let refused = vault.get(&listed.place);
            assert!(matches!(refused, Err(VaultError::Damaged(_))), "{refused:?}");
        }
    }
}

#[test]
fn a_passphrase_seals_the_key_and_is_asked_for_only_when_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let plain = open(&path);
    plain.set(&shared("name"), &secret("value")).unwrap();
    assert!(!plain.is_sealed().unwrap());
    assert!(matches!(plain.unlock(), Err(VaultError::NotSealed)));
    plain.set_passphrase(&secret("one")).unwrap();
    assert_eq!(names(&path), ["lock", "secrets.json"], "no plain key is left");
    assert_eq!(value(&plain, &shared("name")).unwrap(), "value");

    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let vault = FileVault::open(&path, move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Some(secret("one"))
    });
    let vault = vault.unwrap();
    assert!(vault.is_sealed().unwrap());
    assert_eq!(vault.list().unwrap().len(), 1);
    assert_eq!(value(&vault, &shared("missing")), None);
    assert_eq!(asked.load(Ordering::Relaxed), 0, "nothing needed it so far");
    assert_eq!(value(&vault, &shared("name")).unwrap(), "value");
    vault.set(&shared("more"), &secret("more")).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 1, "asked once");

    vault.unlock().unwrap();
    vault.rotate().unwrap();
    vault.unlock().unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 1, "whoever gave it once is not asked again");

    let nobody = FileVault::open(&path, || None).unwrap();
    assert!(matches!(nobody.get(&shared("name")), Err(VaultError::NoPassphrase)));
    assert!(matches!(nobody.rotate(), Err(VaultError::NoPassphrase)));
    assert!(matches!(nobody.unlock(), Err(VaultError::NoPassphrase)));
    let stranger = FileVault::open(&path, || Some(secret("two"))).unwrap();
    assert!(matches!(stranger.unlock(), Err(VaultError::WrongPassphrase)));
    assert!(matches!(stranger.rotate(), Err(VaultError::WrongPassphrase)));
    assert!(nobody.remove(&shared("more")).unwrap(), "removing needs no passphrase");
}

#[test]
fn a_passphrase_is_changed_and_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let vault = FileVault::open(&path, || Some(secret("one"))).unwrap();
    vault.set_passphrase(&secret("one")).unwrap();
    vault.set(&shared("name"), &secret("value")).unwrap();
    let before = fs::read(path.join("secrets.json")).unwrap();
    vault.rotate().unwrap();
    assert_ne!(fs::read(path.join("secrets.json")).unwrap(), before);
    vault.set_passphrase(&secret("two")).unwrap();
    let stranger = FileVault::open(&path, || Some(secret("one"))).unwrap();
    assert!(matches!(stranger.get(&shared("name")), Err(VaultError::WrongPassphrase)));
    vault.remove_passphrase().unwrap();
    assert_eq!(value(&open(&path), &shared("name")).unwrap(), "value");
    assert_eq!(names(&path), ["key", "lock", "secrets.json"]);
}

#[test]
fn a_new_key_is_sealed_with_the_passphrase_that_holds_by_then() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let first = FileVault::open(&path, || Some(secret("two"))).unwrap();
    first.set_passphrase(&secret("one")).unwrap();
    first.set(&shared("name"), &secret("value")).unwrap();
    // Somebody else changes it while this one remembers the old one.
    let other = FileVault::open(&path, || Some(secret("one"))).unwrap();
    other.set_passphrase(&secret("two")).unwrap();
    first.rotate().unwrap();
    let old = FileVault::open(&path, || Some(secret("one"))).unwrap();
    assert!(matches!(old.unlock(), Err(VaultError::WrongPassphrase)));
    let new = FileVault::open(&path, || Some(secret("two"))).unwrap();
    assert_eq!(value(&new, &shared("name")).unwrap(), "value");
}

#[test]
fn a_stranger_s_file_cannot_make_us_work_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let vault = FileVault::open(&path, || Some(secret("one"))).unwrap();
    vault.set_passphrase(&secret("one")).unwrap();
    let file = path.join("secrets.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"memory_kib\": 65536", "\"memory_kib\": 99999999")).unwrap();
    let again = || FileVault::open(&path, || Some(secret("one"))).unwrap();
    assert!(matches!(again().unlock(), Err(VaultError::TooCostly(_))));
    fs::write(&file, text.replace("\"passes\": 3", "\"passes\": 0")).unwrap();
    assert!(matches!(again().unlock(), Err(VaultError::Malformed(_))));
}

#[test]
fn a_lost_key_is_told_and_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    open(&path).set(&shared("name"), &secret("value")).unwrap();
    let before = fs::read(path.join("secrets.json")).unwrap();
    fs::remove_file(path.join("key")).unwrap();
    let vault = open(&path);
    assert!(matches!(vault.get(&shared("name")), Err(VaultError::KeyMissing { .. })));
    assert!(matches!(vault.set(&shared("x"), &secret("x")), Err(VaultError::KeyMissing { .. })));
    assert!(matches!(vault.rotate(), Err(VaultError::KeyMissing { .. })));
    assert_eq!(fs::read(path.join("secrets.json")).unwrap(), before);
    assert!(!path.join("key").exists());
    // The key of another vault is no missing one.
    let other = folder.path().join("other");
    open(&other).set(&shared("name"), &secret("value")).unwrap();
    fs::rename(other.join("key"), path.join("key")).unwrap();
    assert!(matches!(open(&path).get(&shared("name")), Err(VaultError::OtherKey(_))));
}

#[test]
fn secrets_that_are_gone_are_known_by_the_key_that_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    assert_eq!(open(&path).missing().unwrap(), None, "there never were any");
    open(&path).set(&shared("name"), &secret("value")).unwrap();
    assert_eq!(open(&path).missing().unwrap(), None);
    fs::remove_file(path.join("secrets.json")).unwrap();
    assert_eq!(open(&path).missing().unwrap(), Some(path.join("secrets.json")));
    // A writer that was killed before it kept the first secret leaves the same behind, so the next one goes on.
    open(&path).set(&shared("name"), &secret("value")).unwrap();
    assert_eq!(open(&path).missing().unwrap(), None);
}

#[test]
fn what_is_no_vault_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    open(&path).set(&shared("name"), &secret("value")).unwrap();
    let file = path.join("secrets.json");
    let text = fs::read_to_string(&file).unwrap();
    let twice = text.replacen("\"entries\": [", "\"entries\": [], \"entries\": [", 1);
    let later = text.replacen("\"version\": 1", "\"version\": 2, \"more\": true", 1);
    let unknown = text.replacen("\"version\": 1", "\"version\": 1, \"more\": true", 1);
    let huge = " ".repeat(16 * 1024 * 1024 + 1);
    let deep = "[".repeat(100_000);
    for bad in ["", "{}", "null", &twice, &later, &unknown, &huge, &deep, &text[..text.len() / 2]] {
        fs::write(&file, bad).unwrap();
        let refused = FileVault::open(&path, || None).unwrap_err();
        match refused {
            VaultError::Later(_) => assert_eq!(bad, later),
            VaultError::Unsafe { fault: Unsafe::Size, .. } => assert_eq!(bad, huge),
            VaultError::Malformed(_) => {}
            other => panic!("{other}"),
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), bad, "it stays as it is");
    }
}

#[test]
fn a_vault_has_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let vault = open(&path);
    vault.set(&shared("name"), &secret("value")).unwrap();
    // Something sealed that leaves little room.
    let file = path.join("secrets.json");
    let text = fs::read_to_string(&file).unwrap();
    let mut contents: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut large = contents["entries"][0].clone();
    large["name"] = "large".into();
    large["value"]["sealed"] = "AAAA".repeat(4 * 1024 * 1024 - 16 * 1024).into();
    contents["entries"].as_array_mut().unwrap().push(large);
    fs::write(&file, contents.to_string()).unwrap();
    let before = fs::read(&file).unwrap();
    let refused = vault.set(&shared("more"), &secret(&"x".repeat(vault::secret::MAX_SECRET)));
    assert!(matches!(refused, Err(VaultError::Full)), "{refused:?}");
    assert!(fs::read(&file).unwrap() == before, "it stays as it is");
    vault.set(&shared("more"), &secret("short")).unwrap();
    assert_eq!(vault.list().unwrap().len(), 3);
}

#[test]
fn processes_do_not_lose_each_other_s_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let child = |n: usize| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["a_child_keeps_ten", "--exact", "--ignored"]);
        child.env("HAFT_VAULT", &path).env("HAFT_CHILD", n.to_string());
        child.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(child).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let vault = open(&path);
    assert_eq!(vault.list().unwrap().len(), 40);
    for n in 0..4 {
        for m in 0..10 {
            assert_eq!(value(&vault, &of(&n.to_string(), &m.to_string())).unwrap(), "value");
        }
    }
}

/// The child of the test above: every other secret comes with a new key.
#[test]
#[ignore = "runs as a child of another test"]
fn a_child_keeps_ten() {
    let path = std::env::var("HAFT_VAULT").unwrap();
    let child = std::env::var("HAFT_CHILD").unwrap();
    let vault = open(Path::new(&path));
    for n in 0..10 {
        vault.set(&of(&child, &n.to_string()), &secret("value")).unwrap();
        if n % 2 == 0 {
            vault.rotate().unwrap();
        }
        assert_eq!(value(&vault, &of(&child, "0")).unwrap(), "value");
    }
}

/// The sealed form of a shared secret as it stands in the file.
fn sealed(path: &Path, name: &str) -> String {
    let text = fs::read(path.join("secrets.json")).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let mut entries = file["entries"].as_array().unwrap().iter();
    let entry = entries.find(|entry| entry["name"] == name).unwrap();
    entry["value"]["sealed"].as_str().unwrap().to_owned()
}

/// The same file with every secret a year older.
fn aged(text: &str) -> String {
    let mut file: serde_json::Value = serde_json::from_str(text).unwrap();
    for entry in file["entries"].as_array_mut().unwrap() {
        entry["changed"] = (entry["changed"].as_u64().unwrap() - 31_536_000).into();
    }
    file.to_string()
}

#[test]
fn the_time_in_which_a_passphrase_is_typed_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let first = open(&path);
    first.set(&of("a", "T"), &secret("value")).unwrap();
    first.set_passphrase(&secret("one")).unwrap();
    assert_eq!(first.waited(), std::time::Duration::ZERO);
    let typing = std::time::Duration::from_millis(3);
    let vault = FileVault::open(&path, move || {
        let began = std::time::Instant::now();
        while began.elapsed() < typing {}
        Some(secret("one"))
    });
    let vault = vault.unwrap();
    assert_eq!(value(&vault, &of("a", "T")).as_deref(), Some("value"));
    assert!(vault.waited() >= typing, "{:?}", vault.waited());
}
