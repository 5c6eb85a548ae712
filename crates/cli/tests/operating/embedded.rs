//! The registry of one machine, killed during publishes; and how soon it is there.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use package::digest::Digest;

use super::process::{Served, ask, done, get, haft, package, run};

fn serve(home: &std::path::Path) -> Command {
    let mut command = haft(home);
    command.args(["registry", "serve", "--listen", "127.0.0.1:0", "--json"]).stderr(Stdio::null());
    command
}

fn verb(home: &std::path::Path, words: &[&str]) -> Command {
    let mut command = haft(home);
    command.args(words);
    command
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_it_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let verb = |words: &[&str]| verb(home.path(), words);
    let made = done(&mut verb(&["registry", "token", "new", "--namespace", "acme"]));
    let token = made["token"].as_str().unwrap();
    let acknowledged: Mutex<BTreeMap<String, String>> = Mutex::default();
    for round in 0..5 {
        let mut served = Served::start(serve(home.path()));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for publisher in 0..3 {
                let (address, is_over, acknowledged) =
                    (served.address.clone(), &is_over, &acknowledged);
                scope.spawn(move || {
                    for number in 0.. {
                        if is_over.load(Ordering::Acquire) {
                            return;
                        }
                        let version = format!("{round}.{publisher}.{number}");
                        let (bytes, digest) = package("acme.pdf", &version, "");
                        let sent = ask(&address, "POST", "/v1/tools", token, &bytes);
                        if sent.is_ok_and(|answer| answer.status == 201) {
                            acknowledged.lock().unwrap().insert(version, digest);
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(400));
            served.kill();
            is_over.store(true, Ordering::Release);
        });
    }
    let served = Served::start(serve(home.path()));
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    for (version, digest) in &acknowledged {
        let path = format!("/v1/tools/acme.pdf/versions/{version}/package");
        let answer = get(&served.address, &path).unwrap();
        assert_eq!((answer.status, &Digest::of(&answer.body).to_string()), (200, digest));
    }
    // While it is served.
    done(&mut verb(&["registry", "gc", "--grace", "1ms"]));
    let checked = done(&mut verb(&["registry", "check"]));
    assert_eq!(
        (checked["damaged"].as_u64(), checked["noted"].as_u64()),
        (Some(0), Some(0)),
        "{checked}"
    );
}

#[test]
fn two_servers_of_one_home_know_of_each_other_and_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let verb = |words: &[&str]| verb(home.path(), words);
    let made = done(&mut verb(&["registry", "token", "new", "--namespace", "acme"]));
    let token = made["token"].as_str().unwrap();
    let start = |name: &str| {
        let said = home.path().join(name);
        let mut command = serve(home.path());
        command.stderr(std::fs::File::create(&said).unwrap());
        let served = Served::start(command);
        let is_told = std::fs::read_to_string(said).unwrap().contains("Another server serves");
        (served, is_told)
    };
    let ((mut first, is_told), (second, is_told_too)) = (start("one"), start("two"));
    assert_eq!((is_told, is_told_too), (false, true));
    let addresses = [first.address.clone(), second.address.clone()];
    // Both are published in at once, also the same version with other bytes, while what is unused is removed.
    let is_over = AtomicBool::new(false);
    let taken = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                done(&mut verb(&["registry", "gc", "--grace", "1ms"]));
            }
        });
        let publishers = addresses.each_ref().map(|address| {
            scope.spawn(move || {
                (0..30)
                    .map(|number| {
                        let own = package(
                            &format!("acme.of-{}", &address[10..]),
                            &format!("1.0.{number}"),
                            "",
                        )
                        .0;
                        assert_eq!(
                            ask(address, "POST", "/v1/tools", token, &own).unwrap().status,
                            201
                        );
                        let same = package("acme.both", &format!("1.0.{number}"), address).0;
                        ask(address, "POST", "/v1/tools", token, &same).unwrap().status
                    })
                    .collect::<Vec<_>>()
            })
        });
        let taken = publishers.map(|publisher| publisher.join().unwrap());
        is_over.store(true, Ordering::Release);
        taken
    });
    for (one, other) in taken[0].iter().zip(&taken[1]) {
        assert!([(201, 409), (409, 201)].contains(&(*one, *other)), "one of both: {taken:?}");
    }
    for address in &addresses {
        let deadline = Instant::now() + Duration::from_secs(20);
        let found = || get(address, "/v1/tools/search?q=pdf").unwrap().json()["total"].as_u64();
        while found() != Some(3) {
            assert!(Instant::now() < deadline, "what is published at one is found at both");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    let checked = done(&mut verb(&["registry", "check"]));
    assert_eq!((&checked["damaged"], &checked["versions"]), (&0.into(), &90.into()), "{checked}");
    // Whoever was killed is not there any more.
    first.kill();
    let (third, is_told) = start("three");
    assert!(is_told, "the second is");
    drop((second, third));
    assert!(!start("four").1);
}

#[test]
fn an_empty_one_is_ready_at_once() {
    let home = tempfile::tempdir().unwrap();
    let served = Served::start(serve(home.path()));
    assert_eq!(get(&served.address, "/readyz").unwrap().status, 200);
}

#[test]
fn damage_is_named_and_told_by_the_exit_code() {
    let home = tempfile::tempdir().unwrap();
    let verb = |words: &[&str]| verb(home.path(), words);
    let made = done(&mut verb(&["registry", "token", "new", "--namespace", "acme"]));
    let token = made["token"].as_str().unwrap();
    let served = Served::start(serve(home.path()));
    let mut digests = Vec::new();
    for version in ["1.0.0", "1.1.0"] {
        let (bytes, digest) = package("acme.pdf", version, "");
        assert_eq!(ask(&served.address, "POST", "/v1/tools", token, &bytes).unwrap().status, 201);
        digests.push(digest);
    }
    let (code, stdout, stderr) = run(&mut verb(&["registry", "check"]));
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    let blob = home.path().join("registry/blobs/sha256").join(&digests[0][..2]).join(&digests[0]);
    std::fs::write(&blob, "something else").unwrap();
    std::fs::write(blob.parent().unwrap().join("a note"), "").unwrap();
    let (code, stdout, stderr) = run(&mut verb(&["registry", "check"]));
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stdout.starts_with("tool:acme.pdf@1.0.0: ") && stdout.contains("damaged"), "{stdout}");
    assert!(!stdout.contains("1.1.0") && stderr.contains("a note"), "{stdout}{stderr}");
    let tar = home.path().join("backup.tar");
    // What it needs for a while is beside it: a folder for all programs may have room for nothing.
    let (code, _, stderr) =
        run(verb(&["registry", "backup"]).env("TMPDIR", "nowhere/at/all").arg(&tar));
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains(&digests[0]), "{stderr}");
    let (code, _, stderr) = run(verb(&["registry", "restore"]).arg(&tar));
    assert_eq!(code, 5, "{stderr}");
    let other = tempfile::tempdir().unwrap();
    let restoring = ["registry", "restore"];
    let (code, _, stderr) =
        run(haft(other.path()).env("TMPDIR", "nowhere/at/all").args(restoring).arg(&tar));
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("was missing"), "{stderr}");
    let mut left = std::fs::read_dir(other.path().join("registry")).unwrap();
    assert!(left.all(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name == "blobs" || name.starts_with("registry.db")
    }));
    let (code, _, stderr) =
        run(haft(&other.path().join("new")).args(["registry", "restore", "nothing.tar"]));
    assert_eq!(code, 3, "{stderr}");
}

#[test]
fn one_thing_is_told_as_one() {
    let home = tempfile::tempdir().unwrap();
    let verb = |words: &[&str]| verb(home.path(), words);
    let made = done(&mut verb(&["registry", "token", "new", "--namespace", "acme"]));
    let token = made["token"].as_str().unwrap();
    let served = Served::start(serve(home.path()));
    let (bytes, digest) = package("acme.pdf", "1.0.0", "");
    assert_eq!(ask(&served.address, "POST", "/v1/tools", token, &bytes).unwrap().status, 201);
    let said = |words: &[&str]| {
        let (code, _, stderr) = run(&mut verb(words));
        assert_eq!(code, 0, "{stderr}");
        stderr.trim_end().to_owned()
    };
    let size = bytes.len();
    assert_eq!(
        said(&["registry", "check"]),
        format!("Checked 1 version and 1 file ({size} bytes): 0 damaged")
    );
    // One file that no version has, of one byte, and not old enough.
    let other = Digest::of(b"x").to_string();
    let place = home.path().join("registry/blobs/sha256").join(&other[..2]);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join(&other), "x").unwrap();
    assert_eq!(
        said(&["registry", "gc"]),
        "Removed 0 of 2 files (0 bytes) and 0 unfinished files; 1 is too young"
    );
    assert_eq!(
        said(&["registry", "gc", "--grace", "1ms"]),
        "Removed 1 of 2 files (1 byte) and 0 unfinished files; 0 are too young"
    );
    assert_ne!(other, digest);
    let tar = home.path().join("backup.tar");
    let kept = said(&["registry", "backup", tar.to_str().unwrap()]);
    assert!(kept.ends_with(&format!(" rows and 1 file ({size} bytes)")), "{kept}");
    let new = tempfile::tempdir().unwrap();
    let (code, _, told) = run(haft(new.path()).args(["registry", "restore"]).arg(&tar));
    assert_eq!((code, told.trim_end()), (0, kept.replace("Kept", "Restored").as_str()));
}
