//! Three replicas as processes on one `PostgreSQL` and one bucket.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use package::digest::Digest;
use testkit::bucket::Bucket;
use testkit::gate::Gate;
use testkit::postgres::Postgres;

use super::process::{Served, ask, demanded, done, get, haft, package};

/// The servers behind the replicas.
struct Behind {
    postgres: Postgres,
    _bucket: Bucket,
    gate: Gate,
    database: String,
    home: tempfile::TempDir,
}

impl Behind {
    fn start() -> Option<Self> {
        let postgres = demanded("PostgreSQL", Postgres::start())?;
        let bucket = demanded("moto", Bucket::start())?;
        let gate = Gate::to(bucket.port());
        let database = postgres.database();
        let home = tempfile::tempdir().unwrap();
        Some(Self { postgres, _bucket: bucket, gate, database, home })
    }

    fn verb(&self, words: &[&str]) -> Command {
        let mut command = haft(self.home.path());
        command.args(words).arg("--database").arg(&self.database);
        command
    }

    fn with_blobs(&self, words: &[&str]) -> Command {
        let mut command = self.verb(words);
        command.arg("--blobs").arg(format!("s3://{}/live", Bucket::NAME));
        for (name, value) in Bucket::settings_at(self.gate.port()) {
            command.env(name.to_uppercase(), value);
        }
        command
    }

    fn serve(&self) -> Served {
        let words = ["registry", "serve", "--listen", "127.0.0.1:0", "--json"];
        let mut command = self.with_blobs(&words);
        command.stderr(Stdio::null());
        Served::start(command)
    }

    fn token(&self) -> String {
        let made = done(&mut self.verb(&["registry", "token", "new", "--namespace", "*"]));
        made["token"].as_str().unwrap().to_owned()
    }
}

const WORDS: [[&str; 3]; 2] = [["alder", "birch", "cypress"], ["hornbeam", "maple", "walnut"]];

fn wait_until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < limit, "{what} is not so after {limit:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    started.elapsed()
}

fn listens(address: &str) -> bool {
    get(address, "/metrics").is_ok_and(|answer| {
        String::from_utf8_lossy(&answer.body).lines().any(|line| line == "haft_feed_listening 1")
    })
}

fn total(address: &str, path: &str) -> Option<u64> {
    get(address, path).ok().filter(|answer| answer.status == 200)?.json()["total"].as_u64()
}

#[test]
fn what_is_published_on_one_is_found_on_all_within_two_seconds() {
    let Some(mut behind) = Behind::start() else { return };
    // All of them meet an empty database at the same moment.
    let replicas: Vec<Served> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..3).map(|_| scope.spawn(|| behind.serve())).collect();
        starting.into_iter().map(|started| started.join().unwrap()).collect()
    });
    let token = behind.token();
    let publish_everywhere = |round: u8| {
        for replica in &replicas {
            wait_until("listening", Duration::from_secs(10), || listens(&replica.address));
        }
        let mut slowest = Duration::ZERO;
        for (number, replica) in replicas.iter().enumerate() {
            // Words that nobody takes for a slip of another.
            let word = WORDS[usize::from(round)][number];
            let (bytes, _) = package(&format!("acme.{word}"), "1.0.0", "");
            let answer = ask(&replica.address, "POST", "/v1/tools", &token, &bytes).unwrap();
            assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
            for other in &replicas {
                let path = format!("/v1/tools/search?q={word}");
                let is_found = || total(&other.address, &path) == Some(1);
                slowest = slowest.max(wait_until("found", Duration::from_secs(2), is_found));
            }
        }
        slowest
    };
    let slowest = publish_everywhere(0);
    eprintln!("found on all after at most {slowest:?}");
    // It is so again, by itself, after the database was away.
    behind.postgres.stop();
    let answer = get(&replicas[0].address, "/v1/tools/acme.alder").unwrap();
    assert_eq!(answer.status, 503);
    answer.is_in_the_model();
    assert_eq!(
        total(&replicas[0].address, "/v1/tools"),
        Some(3),
        "what is in memory is still found"
    );
    behind.postgres.start_again();
    wait_until("ready", Duration::from_secs(20), || {
        replicas.iter().all(|replica| {
            get(&replica.address, "/readyz").is_ok_and(|answer| answer.status == 200)
        })
    });
    publish_everywhere(1);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
fn three_replicas_hold_while_one_is_killed_again_and_again() {
    let Some(mut behind) = Behind::start() else { return };
    let replicas: Vec<Mutex<Served>> = (0..3).map(|_| Mutex::new(behind.serve())).collect();
    let addresses: Vec<Mutex<String>> = replicas
        .iter()
        .map(|replica| Mutex::new(replica.lock().unwrap().address.clone()))
        .collect();
    let address = |number: usize| addresses[number % 3].lock().unwrap().clone();
    let token = behind.token();
    let is_over = AtomicBool::new(false);
    let refused = AtomicU32::new(0);
    // The one content of each version that anybody was told is published.
    let acknowledged: Mutex<BTreeMap<(String, String), String>> = Mutex::default();
    std::thread::scope(|scope| {
        for publisher in 0..4_usize {
            let (is_over, refused, acknowledged) = (&is_over, &refused, &acknowledged);
            let (token, address) = (&token, &address);
            scope.spawn(move || {
                // Two publish the same versions with other bytes each.
                let id = format!("acme.tool{}", publisher / 2);
                for round in 0.. {
                    let version = format!("1.0.{round}");
                    let (bytes, digest) = package(&id, &version, &format!("by {publisher}"));
                    for attempt in 0.. {
                        if is_over.load(Ordering::Acquire) {
                            return;
                        }
                        let to = address(publisher + round + attempt);
                        match ask(&to, "POST", "/v1/tools", token, &bytes) {
                            Ok(answer) if [200, 201].contains(&answer.status) => {
                                let key = (id.clone(), version.clone());
                                let known =
                                    acknowledged.lock().unwrap().insert(key, digest.clone());
                                assert!(
                                    known.is_none_or(|known| known == digest),
                                    "{id} {version} has two contents"
                                );
                                break;
                            }
                            Ok(answer) if answer.status == 409 => {
                                answer.is_in_the_model();
                                break;
                            }
                            Ok(answer) => {
                                answer.is_in_the_model();
                                assert_eq!(answer.status, 503, "{}", answer.json());
                                refused.fetch_add(1, Ordering::Relaxed);
                                std::thread::sleep(Duration::from_millis(50));
                            }
                            Err(_) => std::thread::sleep(Duration::from_millis(20)),
                        }
                    }
                }
            });
        }
        for reader in 0..2_usize {
            let (is_over, address) = (&is_over, &address);
            scope.spawn(move || {
                let paths = [
                    "/v1/tools/search?q=pdf",
                    "/v1/tools",
                    "/v1/tools/acme.tool0",
                    "/v1/tools/acme.tool1/versions",
                ];
                for round in 0_usize.. {
                    if is_over.load(Ordering::Acquire) {
                        return;
                    }
                    if let Ok(answer) = get(&address(reader + round), paths[round % paths.len()]) {
                        assert!([200, 404, 503].contains(&answer.status), "{}", answer.status);
                        answer.is_in_the_model();
                    }
                }
            });
        }
        for kill in 0..9_usize {
            std::thread::sleep(Duration::from_millis(500));
            match kill {
                3 => {
                    behind.postgres.stop();
                    std::thread::sleep(Duration::from_secs(1));
                    behind.postgres.start_again();
                }
                6 => {
                    behind.gate.close();
                    std::thread::sleep(Duration::from_secs(12));
                    behind.gate.open();
                }
                _ => {}
            }
            let mut replica = replicas[kill % 3].lock().unwrap();
            replica.kill();
            std::thread::sleep(Duration::from_millis(100));
            *replica = behind.serve();
            *addresses[kill % 3].lock().unwrap() = replica.address.clone();
        }
        std::thread::sleep(Duration::from_secs(1));
        is_over.store(true, Ordering::Release);
    });
    let acknowledged = acknowledged.into_inner().unwrap();
    let refused = refused.into_inner();
    eprintln!(
        "{} publishes were acknowledged, {refused} were told to come again",
        acknowledged.len()
    );
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    assert!(refused > 0, "the bucket was away and nobody noticed");
    for number in 0..3 {
        wait_until("ready", Duration::from_secs(20), || {
            get(&address(number), "/readyz").is_ok_and(|answer| answer.status == 200)
        });
        wait_until("found", Duration::from_secs(2), || {
            total(&address(number), "/v1/tools/search?q=pdf") == Some(2)
        });
    }
    for (number, ((id, version), digest)) in acknowledged.iter().enumerate() {
        let path = format!("/v1/tools/{id}/versions/{version}/package");
        let answer = get(&address(number), &path).unwrap();
        assert_eq!((answer.status, &Digest::of(&answer.body).to_string()), (200, digest), "{path}");
    }
    done(&mut behind.with_blobs(&["registry", "gc", "--grace", "1ms"]));
    let checked = done(&mut behind.with_blobs(&["registry", "check"]));
    assert_eq!(
        (checked["damaged"].as_u64(), checked["noted"].as_u64()),
        (Some(0), Some(0)),
        "{checked}"
    );
    assert_eq!(checked["versions"], checked["files"]);
    move_to_the_other_kind(&behind, checked["versions"].as_u64().unwrap());
}

/// All of it goes into a file and a folder, and from there back into another bucket.
fn move_to_the_other_kind(behind: &Behind, versions: u64) {
    let folder = behind.home.path();
    let path = |name: &str| folder.join(name).display().to_string();
    done(&mut behind.with_blobs(&["registry", "backup", &path("large.tar")]));
    let embedded = |words: &[&str], home: &Path| {
        let mut command = haft(home);
        command.args(words);
        command
    };
    let small = folder.join("small");
    done(&mut embedded(&["registry", "restore", &path("large.tar")], &small));
    let checked = done(&mut embedded(&["registry", "check"], &small));
    assert_eq!(
        (checked["versions"].as_u64(), checked["damaged"].as_u64()),
        (Some(versions), Some(0))
    );
    done(&mut embedded(&["registry", "backup", &path("kept/")], &small));
    let database = behind.postgres.database();
    let mut back = haft(folder);
    back.args(["registry", "restore", &path("kept/"), "--database", &database]);
    back.args(["--blobs", &format!("s3://{}/other", Bucket::NAME)]);
    for (name, value) in Bucket::settings_at(behind.gate.port()) {
        back.env(name.to_uppercase(), value);
    }
    assert_eq!(done(&mut back)["files"].as_u64(), Some(versions));
}
