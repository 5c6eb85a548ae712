//! `haft grant` and `haft ungrant`: what a package is given, and what is told of what it was not.

use std::path::Path;

use serde_json::{Value, json};

use crate::desk::{Desk, PACKAGE, closed, open};

#[test]
fn a_folder_is_there_while_it_is_granted() {
    let desk = Desk::new();
    let file = desk.write("data/note.txt", "hello");
    let folder = Path::new(&file).parent().unwrap().to_str().unwrap().to_owned();
    let script = format!("cat {file} | sed 's/.*/\"&\"/'");
    let manifest = desk.capability(&script, &open(), &json!([]));
    assert_eq!(desk.call(&manifest).code, 1);
    desk.done(&["grant", PACKAGE, "--read", &folder]);
    assert_eq!(desk.call(&manifest).json(), json!("hello"));
    let package = Path::new(&manifest).parent().unwrap().display();
    let granted = format!("from {package}\nread {folder}\n");
    assert_eq!(desk.done(&["grant", PACKAGE]).stdout, granted);
    desk.done(&["ungrant", PACKAGE, "--read", &folder]);
    assert_eq!(desk.call(&manifest).code, 1);
    // What the package says it does not need, it does not get.
    desk.done(&["grant", PACKAGE, "--read", &folder]);
    let modest = desk.capability(&script, &closed(), &json!([]));
    assert_eq!(desk.call(&modest).code, 1);
}

#[test]
fn what_was_blocked_is_told_with_the_command_that_allows_it() {
    let desk = Desk::new();
    let script = "curl -sS -m 5 http://127.0.0.1:9/ >/dev/null 2>&1; curl -sS -m 5 https://other.example.net/ >/dev/null 2>&1; echo '{}'";
    let manifest = desk.capability(script, &open(), &json!([]));
    let ran = desk.call(&manifest);
    let wanted = format!("haft grant {PACKAGE} --host other.example.net:443");
    assert!(ran.stderr.contains(&wanted), "{}{}", ran.stdout, ran.stderr);
    let learned = desk.done(&["grant", "--learn", PACKAGE]).stdout;
    assert!(learned.lines().any(|line| line == wanted), "{learned}");
    let record = desk.done(&["audit", "--json"]).stdout;
    let record: Value = serde_json::from_str(record.lines().last().unwrap()).unwrap();
    assert_eq!(record["blocked"][0]["value"], "other.example.net:443", "{record}");
}

#[test]
fn grants_are_checked_before_they_are_kept() {
    let desk = Desk::new();
    for (arguments, code, words) in [
        (vec!["grant", "demo.tool", "--env", "X"], 2, "its dialect is missing"),
        (vec!["grant", PACKAGE, "--host", "https://x.example/"], 2, "it has a scheme or a path"),
        (vec!["grant", PACKAGE, "--read", "/no/such/place"], 3, "failed to find"),
        (vec!["grant", PACKAGE, "--write", "/"], 2, "cannot be granted"),
        (vec!["grant", PACKAGE, "--read", "/proc/self"], 2, "a tool has its own `/proc`"),
        (vec!["grant", PACKAGE, "--read", "/dev"], 2, "--device grants a device"),
        (vec!["grant", PACKAGE, "--device", "/dev/pts"], 2, "is a folder"),
        (vec!["grant", PACKAGE, "--device", "/etc/passwd"], 2, "no device"),
        (vec!["grant", PACKAGE, "--device", "/dev/../etc"], 2, "no device"),
        (vec!["grant", PACKAGE, "--device", "/dev/"], 2, "no device"),
        (vec!["grant", PACKAGE, "--device", "/dev/."], 2, "no device"),
        (vec!["grant", PACKAGE, "--device", "/dev/dri/"], 2, "no device"),
        (vec!["grant", PACKAGE, "--env", "A=b"], 2, "no name of a variable"),
        (vec!["ungrant", PACKAGE, "--host", "x.example"], 3, "is not granted"),
        (vec!["ungrant", PACKAGE], 2, "nothing to take back"),
    ] {
        let ran = desk.run(&arguments, None);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(desk.done(&["grant", PACKAGE]).stdout, "");
}

#[test]
fn what_is_wrong_with_a_host_is_said_once() {
    let desk = Desk::new();
    for (host, told) in [
        (
            "",
            "error: `` is no host: it is empty\nhint: hosts are written api.example.com, *.example.com, example.com:8443, 10.0.0.0/8\n",
        ),
        (
            "https://x.example/v1",
            "error: `https://x.example/v1` is no host: it has a scheme or a path, and a host has neither\nhint: write `x.example`\n",
        ),
    ] {
        assert_eq!(desk.run(&["grant", PACKAGE, "--host", host], None).stderr, told);
    }
}

#[test]
fn nothing_a_stranger_chose_is_a_command_in_what_is_shown() {
    let desk = Desk::new();
    let script = "printf 'CONNECT $(touch${IFS}/x):443 HTTP/1.1\\r\\n\\r\\n' | timeout 5 bash -c 'p=${HTTPS_PROXY#http://}; p=${p%/}; exec 3<>/dev/tcp/${p%:*}/${p##*:}; cat >&3; head -1 <&3' >/dev/null; curl -sS -m 5 https://other.example.net/ >/dev/null 2>&1; echo '{}'";
    let manifest = desk.capability(script, &open(), &json!([]));
    let text = std::fs::read_to_string(&manifest).unwrap().replace("demo.tool", "demo.$(x)");
    std::fs::write(&manifest, text).unwrap();
    let ran = desk.run(&["call", "--from", &manifest, "demo.$(x)", "{}"], None);
    let wanted = "haft grant 'capability:demo.$(x)' --host other.example.net:443";
    assert!(ran.stderr.contains(wanted), "{}{}", ran.stdout, ran.stderr);
    let learned = desk.done(&["grant", "--learn", "capability:demo.$(x)"]);
    assert_eq!(learned.stdout, format!("{wanted}\n"), "{}", learned.stderr);
    let words = "$(touch${IFS}/x):443: it is no host that can be granted";
    assert!(learned.stderr.contains(words), "{}", learned.stderr);
    let secrets = json!([{"name": "A", "ref": "secret://A$(id)"}]);
    let manifest = desk.capability("echo '{}'", &closed(), &secrets);
    let missing = desk.call(&manifest);
    let hint = format!("`haft secret set {PACKAGE} 'A$(id)'` keeps it");
    assert!(missing.stderr.contains(&hint), "{}", missing.stderr);
}

#[test]
fn no_grant_is_offered_for_what_the_policy_refuses() {
    let desk = Desk::new();
    let script = "curl -sS -m 5 https://other.example.net/ >/dev/null 2>&1; echo '{}'";
    let manifest = desk.capability(script, &open(), &json!([]));
    desk.write("home/policy.toml", "[network]\ndeny = [\"*.example.net\"]\n");
    let ran = desk.call(&manifest);
    let words = "other.example.net:443 may not be reached: your policy refuses it";
    assert!(ran.stderr.contains(words), "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stderr.contains("haft grant"), "{}", ran.stderr);
    let learned = desk.done(&["grant", "--learn", PACKAGE]);
    assert!(learned.stdout.is_empty() && learned.stderr.contains("no grant helps"));
    let granted = desk.done(&["grant", PACKAGE, "--host", "other.example.net"]);
    assert!(granted.stderr.contains("no grant helps"), "{}", granted.stderr);
}

#[test]
fn what_was_done_is_told_with_what_it_means() {
    let desk = Desk::new();
    for (arguments, code, words) in [
        (vec!["grant", PACKAGE, "--env", "LD_PRELOAD"], 4, "`allow` below `[environment]`"),
        (vec!["grant", PACKAGE, "--device", "/dev/nope"], 0, "`/dev/nope` is not there"),
        (vec!["grant", PACKAGE, "--host", "https://x.example/v1"], 2, "write `x.example`"),
        (vec!["grant", PACKAGE, "--host", "a..b"], 2, "hosts are written"),
        (vec!["grant", "foo:acme.weather"], 2, "`foo` is no dialect; write one of"),
        (vec!["grant", PACKAGE, "--host", "API.Example.com"], 0, "--host api.example.com"),
        (vec!["ungrant", PACKAGE, "--host", "API.Example.com"], 0, "Took back"),
        (vec!["ungrant", PACKAGE, "--all"], 0, "Took back"),
        (vec!["ungrant", PACKAGE, "--all"], 0, "nothing was granted to"),
        (vec!["approve", "always", PACKAGE, "send"], 0, "whatever its arguments"),
        (vec!["approve", "always", PACKAGE, "send", r#"{"to":"*"}"#], 0, r#"fit {"to":"*"}"#),
        (vec!["approve", "always", PACKAGE, "send", r#"={"a":1}"#], 0, r#"exactly {"a":1}"#),
        (vec!["audit"], 0, "there are no records"),
        (vec!["audit", "--package", PACKAGE], 0, "no record fits"),
        (vec!["audit", "--package", "x"], 2, "its dialect is missing"),
        (vec!["audit", "--package", ""], 2, "write the dialect and the id, such as mcpkg:acme"),
    ] {
        let ran = desk.run(&arguments, None);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn what_shows_or_takes_all_grants_nothing_beside() {
    let desk = Desk::new();
    desk.done(&["grant", PACKAGE, "--env", "X"]);
    for (verb, flag) in [("grant", "--learn"), ("ungrant", "--all")] {
        let ran = desk.run(&[verb, PACKAGE, flag, "--host", "x.example"], None);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        let words = format!("'{flag}' cannot be used with '--host <HOST>'");
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
    }
    assert_eq!(desk.done(&["grant", PACKAGE]).stdout, "env X\n");
}

#[test]
fn a_device_is_there_while_it_is_granted_and_the_package_asks_for_it() {
    let desk = Desk::new();
    let devices = ["/dev/kmsg", "/dev/autofs", "/dev/fuse", "/dev/net/tun"];
    let Some(device) = devices.into_iter().find(|device| Path::new(device).exists()) else {
        return;
    };
    let script = format!("test -c {device} && echo true || echo false; echo x > /dev/null");
    let asking = json!({"network": "deny", "filesystem": "none", "devices": [device]});
    let manifest = desk.capability(&script, &asking, &json!([]));
    assert_eq!(desk.call(&manifest).json(), json!(false));
    desk.done(&["grant", PACKAGE, "--device", device]);
    assert_eq!(desk.call(&manifest).json(), json!(true));
    let modest = desk.capability(&script, &closed(), &json!([]));
    assert_eq!(desk.call(&modest).json(), json!(false));
    let asking = desk.capability(&script, &asking, &json!([]));
    desk.done(&["ungrant", PACKAGE, "--device", device]);
    assert_eq!(desk.call(&asking).json(), json!(false));
}

#[test]
fn what_is_kept_after_a_call_is_for_what_was_called_then() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    let other = desk.write("copy/manifest.json", &std::fs::read_to_string(&manifest).unwrap());
    // Nobody is held up while nothing is kept.
    for from in [&other, &manifest] {
        desk.done(&["call", "--from", from]);
    }
    desk.done(&["grant", "capability:demo.tool", "--host", "example.com"]);
    for _ in 0..2 {
        let ran = desk.run(&["call", "--from", &other], None);
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        assert!(ran.stderr.contains("what you granted and keep for it is not for another"));
    }
    desk.done(&["call", "--from", &manifest]);
    assert!(desk.done(&["grant", "capability:demo.tool"]).stdout.contains("/pkg"));
    // Without its only place it is for none, also not for the first that comes.
    let folder = std::path::Path::new(&manifest).parent().unwrap().canonicalize().unwrap();
    desk.done(&["ungrant", PACKAGE, "--from", folder.to_str().unwrap()]);
    for from in [&manifest, &other] {
        let ran = desk.run(&["call", "--from", from], None);
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        assert!(ran.stderr.contains("is for none"), "{}", ran.stderr);
    }
    desk.done(&["grant", PACKAGE, "--from", folder.to_str().unwrap()]);
    desk.done(&["call", "--from", &manifest]);
}

#[test]
fn a_grant_that_gives_nothing_is_told_of() {
    let desk = Desk::new();
    let none = desk.capability("echo '{}'", &closed(), &json!([]));
    let folder = desk.home().parent().unwrap().join("pkg");
    let folder = folder.to_str().unwrap();
    let grant = |more: &[&str]| desk.done(&[&["grant", PACKAGE], more].concat()).stderr;
    assert!(!grant(&["--host", "a.example"]).contains("itself"), "nobody knows yet what it says");
    assert_eq!(desk.call(&none).code, 0);
    let nothing = |what: &str| {
        format!("warning: {PACKAGE} says itself that it {what}, so the grant gives it nothing\n")
    };
    let told = grant(&["--host", "a.example"]);
    assert!(told.contains(&nothing("reaches nobody")), "{told}");
    for kind in ["--read", "--write"] {
        let told = grant(&[kind, folder]);
        assert!(told.contains(&nothing("needs no folders (`filesystem: none`)")), "{told}");
    }
    let told = grant(&["--device", "/dev/null"]);
    assert!(told.contains(&nothing("does not name this device")), "{told}");
    let reads = json!({"network": "allowlist", "network_allowlist": ["api.example.com"],
        "filesystem": "read", "devices": ["/dev/null"]});
    let reads = desk.capability("echo '{}'", &reads, &json!([]));
    assert_eq!(desk.call(&reads).code, 0);
    let told = grant(&["--write", folder]);
    assert!(told.contains("only reads (`filesystem: read`), so it may read there"), "{told}");
    for useful in [["--host", "a.example"], ["--read", folder], ["--device", "/dev/null"]] {
        assert!(!grant(&useful).contains("warning"), "{useful:?}");
    }
    let told = grant(&["--env", "HAFT_TEST_NOT_SET"]);
    assert!(told.contains("warning: `HAFT_TEST_NOT_SET` is not set now"), "{told}");
    assert!(!grant(&["--env", "PWD"]).contains("warning"), "it is set");
}
