//! Places that refuse: what is wrong is told once, in words of ours, with what would help.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::bucket::Bucket;
use testkit::postgres::Postgres;

use super::process::{Served, ask, demanded, done, get, haft, package, run};

/// What libraries say and an operator cannot use.
const INNER: [&str; 6] = ["os error", "error returned", "(code:", "at line", "Generic S3", "<?xml"];

/// What a verb that fails says: one cause, and what to do.
fn refused(command: &mut Command) -> String {
    let (code, stdout, stderr) = run(command);
    assert!(code != 0 && code != 70, "{stdout}{stderr}");
    assert!(!INNER.iter().any(|words| stderr.contains(words)), "{stderr}");
    assert_eq!(stderr.matches("caused by: ").count(), 1, "{stderr}");
    assert!(stderr.contains("hint: "), "{stderr}");
    stderr
}

/// A disk of its own, which is full soon.
struct Disk(tempfile::TempDir);

impl Disk {
    /// Nothing where nobody may mount one.
    fn of(bytes: usize) -> Option<Self> {
        let disk = Self(tempfile::tempdir().unwrap());
        disk.mount(&format!("size={bytes}")).then_some(disk)
    }

    fn mount(&self, options: &str) -> bool {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(self.0.path());
        mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _was_never_there = Command::new("umount").arg("--lazy").arg(self.0.path()).output();
    }
}

/// Bytes that cannot be made smaller, as a text.
fn noise(seed: usize, length: usize) -> String {
    let mut state = seed as u64 + 1;
    let next = std::iter::repeat_with(|| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
    });
    next.take(length).collect()
}

/// The names of all files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path.file_name().unwrap().to_string_lossy().into_owned()]
            }
        })
        .collect()
}

#[test]
fn a_full_disk_is_told_reads_go_on_and_so_does_all_when_there_is_room() {
    let Some(disk) = demanded("a disk of its own", Disk::of(3 << 20)) else { return };
    let (home, log) = (disk.0.path(), tempfile::NamedTempFile::new().unwrap());
    let verb = |words: &[&str]| {
        let mut command = haft(home);
        command.args(words);
        command
    };
    let made = done(&mut verb(&["registry", "token", "new", "--namespace", "acme"]));
    let token = made["token"].as_str().unwrap();
    let mut serving = verb(&["registry", "serve", "--listen", "127.0.0.1:0", "--json"]);
    serving.args(["--log", "json"]).stderr(File::create(log.path()).unwrap());
    let served = Served::start(serving);
    let publish = |number: usize, size: usize| {
        let (bytes, _) = package("acme.pdf", &format!("1.0.{number}"), &noise(number, size));
        ask(&served.address, "POST", "/v1/tools", token, &bytes).unwrap()
    };
    // First large ones, then small ones, until neither the files nor the database have room.
    let mut number = 0;
    for size in [200_000, 20_000, 100] {
        let answer = loop {
            let answer = publish(number, size);
            if answer.status != 201 {
                break answer;
            }
            number += 1;
        };
        let error = &answer.json()["error"];
        assert_eq!((answer.status, error["code"].as_str()), (507, Some("UNAVAILABLE")), "{error}");
        let message = "the registry has no room left; tell whoever runs it";
        assert_eq!(error["message"], message);
    }
    assert!(number > 5, "{number}");
    let told = std::fs::read_to_string(log.path()).unwrap();
    assert!(told.contains("there is no room left on its disk"), "{told}");
    assert!(!INNER.iter().any(|words| told.contains(words)), "{told}");
    for path in ["/readyz", "/v1/tools/acme.pdf", "/v1/tools/search?q=pdf"] {
        assert_eq!(get(&served.address, path).unwrap().status, 200, "{path}");
    }
    let first = "/v1/tools/acme.pdf/versions/1.0.0/package";
    assert_eq!(get(&served.address, first).unwrap().status, 200);
    let unfinished: Vec<_> = files(&home.join("registry/blobs"));
    assert!(!unfinished.iter().any(|name| name.contains('#')), "{unfinished:?}");
    // Verbs that need room say so, and those that need none do their work.
    let told = refused(&mut verb(&["registry", "backup", &format!("{}/b.tar", home.display())]));
    assert!(told.contains("no room left"), "{told}");
    let checked = done(&mut verb(&["registry", "check"]));
    assert_eq!(checked["damaged"], 0, "{checked}");
    assert!(disk.mount("remount,size=33554432"));
    let told = || std::fs::read_to_string(log.path()).unwrap();
    assert_eq!(publish(number, 200_000).status, 201, "{}", told());
    done(&mut verb(&["registry", "gc", "--grace", "1ms"]));
    let checked = done(&mut verb(&["registry", "check"]));
    assert_eq!((&checked["damaged"], &checked["noted"]), (&0.into(), &0.into()), "{checked}");
    assert_eq!(checked["versions"], number + 1);
}

#[test]
fn a_home_that_cannot_be_used_is_told_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let home = |name: &str| folder.path().join(name);
    let serve = |home: &Path, more: &[&str]| {
        let mut command = haft(home);
        command.args(["registry", "serve", "--listen", "127.0.0.1:0"]).args(more);
        refused(&mut command)
    };
    let in_the_way = "a file is where a folder should be";
    std::fs::create_dir_all(home("a")).unwrap();
    std::fs::write(home("a/registry"), "").unwrap();
    let told = serve(&home("a"), &[]);
    assert!(told.contains("a/registry`") && told.contains(in_the_way), "{told}");
    std::fs::create_dir_all(home("b/registry/registry.db")).unwrap();
    let told = serve(&home("b"), &[]);
    assert!(told.contains("registry.db`") && told.contains("a folder where a file"), "{told}");
    std::fs::create_dir_all(home("c/registry")).unwrap();
    std::fs::write(home("c/registry/blobs"), "").unwrap();
    let told = serve(&home("c"), &[]);
    assert!(told.contains("registry/blobs`") && told.contains(in_the_way), "{told}");
    std::fs::create_dir_all(home("d/registry")).unwrap();
    std::fs::write(home("d/registry/registry.db"), "a letter to a friend, of some length").unwrap();
    let told = serve(&home("d"), &[]);
    assert!(told.contains("the file is no database"), "{told}");
    let told = serve(&home("e"), &["--database", "/nowhere/at/all.db"]);
    assert!(
        told.contains("/nowhere/at/all.db`") && told.contains("the folder it is in, is not there"),
        "{told}"
    );
}

#[test]
fn a_disk_that_can_only_be_read_is_told() {
    let Some(disk) = demanded("a disk of its own", Disk::of(3 << 20)) else { return };
    let verb = |words: &[&str]| {
        let mut command = haft(disk.0.path());
        command.args(words);
        command
    };
    let made = ["registry", "token", "new", "--namespace", "acme"];
    assert!(disk.mount("remount,ro"));
    assert!(refused(&mut verb(&made)).contains("it can only be read"));
    // Also where there is a registry.
    assert!(disk.mount("remount,rw"));
    done(&mut verb(&made));
    assert!(disk.mount("remount,ro"));
    let told = refused(&mut verb(&made));
    assert!(told.contains("it can only be read"), "{told}");
}

#[test]
fn a_bucket_that_refuses_is_told_by_its_name() {
    let Some(bucket) = demanded("an S3 server", Bucket::start()) else { return };
    let home = tempfile::tempdir().unwrap();
    let check = |name: &str, port: u16| {
        let mut command = haft(home.path());
        command.args(["registry", "check", "--blobs", &format!("s3://{name}")]);
        let settings = Bucket::settings_at(port);
        command.envs(settings.into_iter().map(|(name, value)| (name.to_uppercase(), value)));
        command
    };
    done(haft(home.path()).args(["registry", "token", "new", "--namespace", "acme"]));
    done(&mut check(Bucket::NAME, bucket.port()));
    let told = refused(&mut check("another", bucket.port()));
    assert!(told.contains("the bucket `another`") && told.contains("no such bucket"), "{told}");
    let closed = testkit::ports::unused();
    let told = refused(&mut check(Bucket::NAME, closed));
    assert!(told.contains("nobody listens") && told.contains(&closed.to_string()), "{told}");
    let mut nowhere = check(Bucket::NAME, closed);
    let told = refused(nowhere.env("AWS_ENDPOINT", "http://nowhere.invalid:1"));
    assert!(told.contains("no host of that name"), "{told}");
    // From now on the server looks at keys.
    let asked =
        ask(&format!("127.0.0.1:{}", bucket.port()), "POST", "/moto-api/reset-auth", "", b"0");
    assert_eq!(asked.unwrap().status, 200);
    let told = refused(&mut check(Bucket::NAME, bucket.port()));
    assert!(told.contains("not for these keys") && told.contains("AWS_SECRET"), "{told}");
}

#[test]
fn a_registry_on_a_bucket_that_is_missing_says_so_and_is_not_ready() {
    let Some(bucket) = demanded("an S3 server", Bucket::start()) else { return };
    let (home, said) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let mut command = haft(home.path());
    command.args([
        "registry",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--blobs",
        "s3://other",
    ]);
    command.envs(bucket.settings().into_iter().map(|(name, value)| (name.to_uppercase(), value)));
    let served = Served::start({
        command.stderr(File::create(said.path()).unwrap());
        command
    });
    assert_eq!(get(&served.address, "/readyz").unwrap().status, 503);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let told = std::fs::read_to_string(said.path()).unwrap();
        if told.contains("there is no such bucket; make the bucket first") {
            break;
        }
        assert!(Instant::now() < deadline, "{told}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_database_that_goes_away_is_logged_in_words_of_ours_and_found_again() {
    let Some(mut postgres) = demanded("PostgreSQL", Postgres::start()) else { return };
    let (home, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let mut command = haft(home.path());
    command.args(["registry", "serve", "--listen", "127.0.0.1:0", "--json", "--log", "json"]);
    command.env("HAFT_DATABASE_URL", postgres.database());
    command.stderr(File::create(log.path()).unwrap());
    let served = Served::start(command);
    let told = || get(&served.address, "/v1/tools/acme.pdf").unwrap();
    assert_eq!(told().status, 404);
    postgres.stop();
    // Whoever asks whether it is ready is not kept waiting for as long as a connection is.
    let asked = Instant::now();
    assert_eq!(get(&served.address, "/readyz").unwrap().status, 503);
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    let away = told();
    let error = &away.json()["error"];
    assert_eq!((away.status, error["code"].as_str()), (503, Some("UNAVAILABLE")), "{error}");
    assert_eq!(error["message"], "the database does not answer");
    postgres.start_again();
    let deadline = Instant::now() + Duration::from_secs(30);
    while told().status != 404 {
        assert!(Instant::now() < deadline, "it is not found again");
        std::thread::sleep(Duration::from_millis(100));
    }
    let told = std::fs::read_to_string(log.path()).unwrap();
    assert!(told.contains("in the registry's database: "), "{told}");
    assert!(!INNER.iter().any(|words| told.contains(words)), "{told}");
}
