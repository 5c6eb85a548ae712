//! What was given to a package is made worthless: it is switched off first, and its secrets are kept until somebody
//! confirms.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use common::{Desk, Ran, greeting, write_below};
use serde_json::{Value, json};

const ID: &str = "install-manifest:revocable";
const KEY: &str = "s3cret-of-the-owner";

/// A server that answers each request with the next of these statuses, and remembers what it was asked.
struct Provider {
    origin: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    fn answering(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (asked, statuses) = (Arc::<Mutex<Vec<String>>>::default(), statuses.to_vec());
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for status in statuses {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream);
                let (mut head, mut line) = (String::new(), String::new());
                while reader.read_line(&mut line).unwrap() > 2 {
                    head += &std::mem::take(&mut line);
                }
                heard.lock().unwrap().push(head);
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                );
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { origin, asked }
    }

    fn url(&self) -> String {
        format!("{}/keys/mine", self.origin)
    }

    fn host(&self) -> &str {
        self.origin.strip_prefix("http://").unwrap()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A package with these secrets and this kill switch, in a folder.
fn package(desk: &Desk, secrets: &[&str], kill_switch: &Value) {
    let env =
        |name: &&str| json!({"name": name, "secret": true, "required": true, "prompt": "It."});
    let mut manifest = greeting("revocable");
    manifest["env"] = secrets.iter().map(env).collect();
    manifest["kill_switch"] = kill_switch.clone();
    write_below(&desk.path("revocable"), "manifest.json", &manifest.to_string());
}

/// The same, installed, with a value for each secret.
fn installed(secrets: &[&str], kill_switch: &Value) -> Desk {
    let desk = Desk::new();
    package(&desk, secrets, kill_switch);
    keep(&desk, secrets);
    desk.done(&["install", "./revocable", "--yes", "-q"]);
    assert_eq!(desk.done(&["call", "revocable", "say"]).stdout, "hello\n");
    desk
}

fn keep(desk: &Desk, secrets: &[&str]) {
    for name in secrets {
        let value = format!("{KEY}-{name}");
        assert_eq!(desk.haft_with(&["secret", "set", ID, name], Some(&value)).code, 0);
    }
}

fn state(desk: &Desk) -> (Value, Value) {
    let listed = desk.done(&["list", "--json"]).json()["packages"][0].clone();
    (listed["enabled"].clone(), listed["state"].clone())
}

fn secrets(desk: &Desk) -> usize {
    desk.done(&["secret", "list", "--json"]).json().as_array().unwrap().len()
}

fn fails(ran: &Ran, code: i32, words: &str) {
    assert_eq!(ran.code, code, "{}", ran.stderr);
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
}

#[test]
fn a_confirmed_revocation_takes_everything_and_is_asked_for_once() {
    let provider = Provider::answering(&[204]);
    let desk = installed(&["KEY"], &json!({"kind": "url", "url": provider.url()}));
    desk.done(&["grant", ID, "--host", provider.host()]);
    fails(&desk.haft(&["--non-interactive", "revoke", "revocable"]), 4, "--yes says so beforehand");
    assert_eq!(state(&desk), (json!(true), json!(null)));
    let revoked = desk.done(&["revoke", "revocable", "--yes", "--json"]).json();
    assert_eq!(revoked, json!({"id": ID, "state": "revoked", "why": null, "by_hand": null}));
    let asked = provider.asked();
    assert!(asked[0].starts_with("DELETE /keys/mine HTTP/1.1\r\n"), "{asked:?}");
    let bearer = format!("authorization: bearer {KEY}-key\r\n");
    assert!(asked[0].to_lowercase().contains(&bearer), "{asked:?}");
    assert_eq!(state(&desk), (json!(false), json!("revoked")));
    assert_eq!(secrets(&desk), 0);
    assert_eq!(desk.done(&["grant", ID, "--json"]).json(), json!([]));
    fails(&desk.haft(&["call", "revocable", "say"]), 4, "capability disabled");
    fails(&desk.haft(&["enable", "revocable"]), 5, "install it again");
    fails(&desk.haft(&["rollback", "revocable"]), 5, "was revoked");
    // Nobody is asked a second time, and nobody would answer.
    let again = desk.done(&["revoke", "revocable"]);
    assert!(again.stderr.contains("revoked already: confirmed"), "{}", again.stderr);
    assert_eq!(provider.asked().len(), 1);
    let status = desk.done(&["status", "revocable", "--json"]).json();
    assert_eq!(status["state"], "revoked");
    // A new beginning needs a new secret, and has it.
    fails(
        &desk.haft(&["--non-interactive", "install", "./revocable", "--yes"]),
        2,
        "it needs `KEY`",
    );
    keep(&desk, &["KEY"]);
    desk.done(&["install", "./revocable", "--yes", "-q"]);
    assert_eq!(state(&desk), (json!(true), json!(null)));
    assert_eq!(secrets(&desk), 1);
    assert!(!desk.path("home/revoked.json").exists());
    desk.done(&["call", "revocable", "say"]);
    desk.done(&["doctor", "-q"]);
}

#[test]
fn an_unconfirmed_revocation_keeps_the_secret_for_the_kill_switch_alone() {
    let provider = Provider::answering(&[500, 302, 200]);
    let desk = installed(&["KEY"], &json!({"kind": "url", "url": provider.url()}));
    desk.done(&["grant", ID, "--host", provider.host(), "--env", "LANG"]);
    let ran = desk.haft(&["revoke", "revocable", "--yes"]);
    fails(&ran, 1, "unconfirmed: the server answered 500");
    assert!(ran.stderr.contains(&provider.url()), "{}", ran.stderr);
    assert_eq!(state(&desk), (json!(false), json!("revoke_unconfirmed")));
    assert_eq!(secrets(&desk), 1);
    assert_eq!(desk.done(&["grant", ID, "--json"]).json(), json!([]));
    for (verb, words) in [
        (&["enable", "revocable"][..], "tries it again"),
        (&["install", "./revocable", "--yes"], "kept for that alone"),
        (&["remove", "revocable"], "kept for that alone"),
    ] {
        fails(&desk.haft(verb), 5, words);
    }
    fails(&desk.haft(&["call", "revocable", "say"]), 4, "capability disabled");
    let ran = desk.haft(&["revoke", "revocable", "--yes", "--json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        (&ran.json()["state"], &ran.json()["by_hand"]),
        (&json!("revoke_unconfirmed"), &json!(provider.url()))
    );
    let status = desk.done(&["status", "revocable"]).stdout;
    assert!(
        status.contains("revoke_unconfirmed") && status.contains("the server answered 302"),
        "{status}"
    );
    // The host that had been granted is still reached, by nothing else.
    desk.done(&["revoke", "revocable", "--yes"]);
    assert_eq!((state(&desk), secrets(&desk)), ((json!(false), json!("revoked")), 0));
    assert!(provider.asked()[2].to_lowercase().contains(&format!("bearer {KEY}-key")));
    desk.done(&["remove", "revocable"]);
    assert!(!desk.path("home/revoked.json").exists());
    let log = desk.done(&["audit"]).stdout;
    for words in [
        "terminal install-manifest:revocable 1.0.0 install ok",
        "terminal install-manifest:revocable 1.0.0 revoke unconfirmed",
        "terminal install-manifest:revocable 1.0.0 revoke ok",
        "terminal install-manifest:revocable 1.0.0 remove ok",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert_eq!(desk.done(&["audit", "--outcome", "unconfirmed"]).stdout.lines().count(), 2);
    assert!(!log.contains(KEY));
}

#[test]
fn a_secret_goes_to_no_host_that_the_owner_was_not_shown() {
    let provider = Provider::answering(&[204]);
    let desk = installed(&["KEY"], &json!({"kind": "url", "url": provider.url()}));
    let card = desk.done(&["show", "./revocable"]).stdout;
    let private = "(private: only by a grant of yours)";
    let row = format!("{} {private}, for its kill switch alone", provider.host());
    assert!(card.contains(&row), "{card}");
    let version = fs::canonicalize(desk.path("home/tools/install-manifest~revocable")).unwrap();
    let record = fs::read(version.join(".haft/record.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["beside"], json!({"kill_switch": [provider.host()]}));
    // Calls are never given it.
    let explained = desk.done(&["--json", "call", "revocable", "say", "--explain"]).json();
    assert_eq!(explained["walls"]["hosts"], json!([]), "{explained}");
    // It is on the card, and leads to this machine, which only a grant allows.
    let ran = desk.haft(&["revoke", "revocable", "--yes"]);
    fails(&ran, 1, "is refused: no grant names this host");
    assert_eq!(provider.asked(), [""; 0]);
}

#[test]
fn what_only_the_owner_can_revoke_is_told_and_its_secret_given_up_by_their_word() {
    let kill_switch = json!({"kind": "manual", "instructions": "Press the red button."});
    let desk = installed(&["KEY"], &kill_switch);
    let ran = desk.haft(&["revoke", "revocable", "--yes"]);
    fails(&ran, 1, "Press the red button.");
    // No program can try it again.
    fails(&ran, 1, "its secrets are kept until you have");
    assert!(!ran.stderr.contains("tries it again"), "{}", ran.stderr);
    assert_eq!(secrets(&desk), 1);
    desk.refused(&["enable", "revocable"], 5, "--forget` gives its secrets up");
    let ran = desk.haft(&["revoke", "revocable", "--yes", "--forget"]);
    fails(&ran, 1, "only its owner can revoke it");
    fails(&ran, 1, "What was kept for that is given up.");
    assert!(!ran.stderr.contains("hint: its secrets"), "{}", ran.stderr);
    desk.refused(&["enable", "revocable"], 5, "install it again to use it again");
    assert_eq!((state(&desk), secrets(&desk)), ((json!(false), json!("revoke_unconfirmed")), 0));
    // Nothing is kept any more, so it may go, or come again.
    keep(&desk, &["KEY"]);
    desk.done(&["install", "./revocable", "--yes", "-q"]);
    assert_eq!((state(&desk), secrets(&desk)), ((json!(true), json!(null)), 1));
}

#[test]
fn a_command_revokes_inside_the_walls_with_the_secret() {
    let script = format!("test \"$KEY\" = {KEY}-KEY && ! test -e /etc/shadow && ! test -w .");
    let kill_switch = json!({"kind": "shell", "command": ["sh", "-c", script]});
    let desk = installed(&["KEY"], &kill_switch);
    desk.done(&["disable", "revocable"]);
    let ran = desk.done(&["revoke", "revocable", "--yes"]);
    assert!(ran.stderr.contains("Revoked install-manifest:revocable: confirmed"), "{}", ran.stderr);
    let failing = json!({"kind": "shell", "command": ["sh", "-c", "echo no $KEY >&2; exit 3"]});
    let desk = installed(&["KEY"], &failing);
    let ran = desk.haft(&["revoke", "revocable", "--yes"]);
    fails(&ran, 1, "the command ended with code 3: no [secret KEY]");
    assert!(!ran.stderr.contains(KEY), "{}", ran.stderr);
    // What is printed counts too, where nothing is complained of.
    let failing = json!({"kind": "shell", "command": ["sh", "-c", "echo not with $KEY; exit 9"]});
    let desk = installed(&["KEY"], &failing);
    let ran = desk.haft(&["revoke", "revocable", "--yes"]);
    fails(&ran, 1, "the command ended with code 9: not with [secret KEY]");
}

#[test]
fn of_several_secrets_the_one_that_was_named_revokes() {
    let provider = Provider::answering(&[204, 204, 204]);
    let kill_switch = json!({"kind": "url", "url": provider.url()});
    let desk = Desk::new();
    package(&desk, &["KEY", "OTHER"], &kill_switch);
    keep(&desk, &["KEY", "OTHER"]);
    let install = ["install", "./revocable", "--yes", "-q", "--revoke-with"];
    fails(&desk.haft(&[&install[..], &["NONE"]].concat()), 2, "it has no secret `NONE`");
    desk.done(&[&install[..], &["OTHER"]].concat());
    desk.done(&["grant", ID, "--host", provider.host()]);
    desk.done(&["revoke", "revocable", "--yes"]);
    assert!(provider.asked()[0].to_lowercase().contains(&format!("bearer {KEY}-other")));
    keep(&desk, &["KEY", "OTHER"]);
    // Where nobody could be asked, it is said when it is revoked.
    desk.done(&["--non-interactive", "install", "./revocable", "--yes", "-q"]);
    desk.done(&["grant", ID, "--host", provider.host()]);
    let revoke = ["--non-interactive", "revoke", "revocable", "--yes"];
    let unnamed = desk.haft(&revoke);
    fails(&unnamed, 1, "has to be named: KEY, OTHER");
    fails(&unnamed, 1, &format!("`haft revoke {ID} --with SECRET` tries it again"));
    desk.done(&[&revoke[..], &["--with", "KEY"]].concat());
    assert!(provider.asked()[1].to_lowercase().contains(&format!("bearer {KEY}-key")));
    // Or later, to one that is there already.
    keep(&desk, &["KEY", "OTHER"]);
    desk.done(&["--non-interactive", "install", "./revocable", "--yes", "-q"]);
    desk.done(&[&install[..], &["OTHER"]].concat());
    fails(
        &desk.haft(&revoke),
        1,
        &format!("`haft grant {ID} --host {}` allows it", provider.host()),
    );
    desk.done(&["grant", ID, "--host", provider.host()]);
    desk.done(&revoke);
    assert!(provider.asked()[2].to_lowercase().contains(&format!("bearer {KEY}-other")));
}

#[test]
fn everything_is_revoked_at_once_and_nothing_is_asked_again() {
    let desk = installed(&["KEY"], &json!({"kind": "manual", "instructions": "Press it."}));
    desk.echo();
    desk.done(&["install", "./echo", "--yes", "-q"]);
    let ran = desk.haft(&["revoke", "--all", "--yes", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let states: Vec<_> = ran.json()["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (one["id"].as_str().unwrap().to_owned(), one["state"].as_str().unwrap().to_owned())
        })
        .collect();
    let expected = [(ID, "revoke_unconfirmed"), ("mcpkg:demo.echo", "revoked")];
    assert_eq!(states, expected.map(|(id, state)| (id.to_owned(), state.to_owned())));
    let listed = desk.done(&["list"]).stdout;
    assert!(listed.contains("revoke_unconfirmed") && !listed.contains("enabled"), "{listed}");
    // What was revoked and is not confirmed outlives a reset, and so does its secret until it is given up.
    desk.done(&["reset", "--yes"]);
    assert_eq!(desk.done(&["list", "--json"]).json()["packages"], json!([]));
    fails(&desk.haft(&["install", "./revocable", "--yes"]), 5, "kept for that alone");
    fails(&desk.haft(&["revoke", "revocable", "--yes"]), 3, "not installed any more");
    desk.done(&["revoke", "revocable", "--forget"]);
    assert_eq!(secrets(&desk), 0);
    assert!(!desk.path("home/revoked.json").exists());
    fails(&desk.haft(&["revoke", "revocable", "--yes"]), 3, "is not installed");
    assert_eq!(desk.done(&["revoke", "--all", "--yes", "--json"]).json(), json!({"packages": []}));
}

#[test]
fn a_package_that_was_changed_on_the_disk_is_switched_off_and_nothing_of_it_is_run() {
    let marked = Desk::new();
    let mark = marked.path("mark");
    let script = format!("touch {}", mark.display());
    let desk = installed(&["KEY"], &json!({"kind": "shell", "command": ["sh", "-c", script]}));
    let manifest = fs::read_dir(desk.path("home/packages/install-manifest~revocable")).unwrap();
    let manifest = manifest.flatten().next().unwrap().path().join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("A test.", "A tset.")).unwrap();
    let ran = desk.haft(&["revoke", "revocable", "--yes"]);
    fails(&ran, 1, "it was changed after it was installed");
    assert_eq!(state(&desk), (json!(false), json!("revoke_unconfirmed")));
    assert!(!mark.exists());
}

#[test]
fn the_owner_is_asked_which_secret_revokes_and_whether_it_is_meant() {
    let provider = Provider::answering(&[204]);
    let desk = Desk::new();
    package(&desk, &["KEY", "OTHER"], &json!({"kind": "url", "url": provider.url()}));
    keep(&desk, &["KEY", "OTHER"]);
    let (code, screen) = desk.at_terminal(&["y", "NONE", "OTHER"], &["install", "./revocable"]);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("`NONE` is none of them: [KEY, OTHER]"), "{screen}");
    desk.done(&["grant", ID, "--host", provider.host()]);
    let (code, screen) = desk.at_terminal(&["n"], &["revoke", "revocable"]);
    assert_eq!((code, state(&desk)), (Some(4), (json!(true), json!(null))), "{screen}");
    assert!(screen.contains("nothing was revoked"), "{screen}");
    let (code, screen) = desk.at_terminal(&["y"], &["revoke", "revocable"]);
    assert_eq!((code, state(&desk)), (Some(0), (json!(false), json!("revoked"))), "{screen}");
    assert!(provider.asked()[0].to_lowercase().contains(&format!("bearer {KEY}-other")));
}

#[test]
fn a_smoke_test_has_what_was_granted_before_and_is_shown_where_it_goes() {
    let provider = Provider::answering(&[200]);
    let desk = Desk::new();
    package(&desk, &[], &json!({"kind": "none"}));
    let path = desk.path("revocable/manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["smoke"] = json!({"kind": "http", "url": format!("{}/up", provider.origin), "success": {"http_status": 200}});
    fs::write(&path, manifest.to_string()).unwrap();
    let card = desk.done(&["show", "./revocable"]).stdout;
    let private = "(private: only by a grant of yours)";
    let row = format!("{} {private}, for its smoke test alone", provider.host());
    assert!(card.contains(&row), "{card}");
    // On this machine only a grant lets it; a public host would be reached for being on the card.
    fails(&desk.haft(&["install", "./revocable", "--yes"]), 4, "could not be run");
    assert_eq!(provider.asked(), [""; 0]);
    desk.done(&["grant", ID, "--host", provider.host()]);
    desk.done(&["install", "./revocable", "--yes", "-q"]);
    assert!(provider.asked()[0].starts_with("GET /up HTTP/1.1\r\n"));
}

#[test]
fn what_was_revoked_is_neither_updated_nor_brought_by_a_lockfile() {
    let desk = Desk::new();
    let version = |version: &str| {
        let _ = fs::remove_dir_all(desk.path("echo"));
        let manifest = desk.echo().join("manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        fs::write(&manifest, text.replace("\"0.1.0\"", &format!("\"{version}\""))).unwrap();
    };
    version("0.2.0");
    let other = desk.path("other");
    let other = ["--home", other.to_str().unwrap()];
    for words in [&["install", "./echo", "--yes", "-q"][..], &["lock", "-o", "newer.lock"]] {
        let ran = common::run_in(desk.0.path(), &[&other[..], words].concat(), None);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    version("0.1.0");
    desk.done(&["install", "./echo", "--yes", "-q"]);
    desk.done(&["lock", "-o", "same.lock"]);
    desk.done(&["revoke", "demo.echo", "--yes"]);
    fails(&desk.haft(&["sync", "--locked", "same.lock", "--yes"]), 5, "install it again");
    // Nobody else is to have it brought.
    let lock = desk.done(&["lock"]);
    assert_eq!(lock.json()["packages"], json!([]));
    assert!(lock.stderr.contains("was revoked, and is left out"), "{}", lock.stderr);
    version("0.2.0");
    desk.done(&["update", "--yes"]);
    fails(&desk.haft(&["update", "demo.echo", "--yes"]), 5, "install it again");
    fails(&desk.haft(&["sync", "--locked", "newer.lock", "--yes"]), 5, "install it again");
    let listed = desk.done(&["list", "--json"]).json()["packages"][0].clone();
    assert_eq!(
        (&listed["version"], &listed["enabled"], &listed["state"]),
        (&json!("0.1.0"), &json!(false), &json!("revoked"))
    );
    desk.done(&["install", "./echo", "--yes", "-q"]);
    desk.done(&["sync", "--locked", "newer.lock", "--yes"]);
    assert_eq!(state(&desk), (json!(true), json!(null)));
}

#[test]
fn a_secret_is_no_part_of_a_host_and_of_no_error() {
    let desk = installed(&["KEY"], &json!({"kind": "url", "url": "https://${KEY}.evil.example/"}));
    let ran = desk.haft(&["revoke", "revocable", "--yes"]);
    fails(&ran, 1, "the host of an address would tell a secret");
    let everything = desk.done(&["status", "revocable"]).stdout + &ran.stderr;
    assert!(!everything.contains(KEY), "{everything}");
    let told = std::process::Command::new("grep")
        .args(["-rl", KEY])
        .arg(desk.path("home"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stdout), "");
}

#[test]
fn without_any_secret_nothing_is_kept_from_being_removed() {
    let kill_switch = json!({"kind": "manual", "instructions": "Press the red button."});
    let desk = installed(&[], &kill_switch);
    fails(&desk.haft(&["revoke", "revocable", "--yes"]), 1, "--forget` says so");
    desk.done(&["install", "./revocable", "--yes", "-q"]);
    desk.done(&["call", "revocable", "say"]);
    fails(&desk.haft(&["revoke", "revocable", "--yes"]), 1, "Press the red button.");
    desk.done(&["remove", "revocable"]);
}

#[test]
fn a_secret_that_nobody_takes_back_is_named() {
    let desk = Desk::new();
    let example = common::repository().join("examples/mcpkg/http-status");
    let put = ["secret", "set", "mcpkg:demo.http.status", "STATUS_TOKEN"];
    assert_eq!(desk.haft_with(&put, Some(KEY)).code, 0);
    desk.done(&["install", example.to_str().unwrap(), "--yes", "-q"]);
    let ran = desk.done(&["revoke", "demo.http.status", "--yes"]);
    let words =
        "take back `STATUS_TOKEN` (https://example.com/haft/status/tokens) where you got it";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    assert_eq!(secrets(&desk), 0);
}
