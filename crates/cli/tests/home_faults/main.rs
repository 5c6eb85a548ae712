//! Whatever fails while a home is changed, and whenever: afterwards it holds exactly what it held before, or exactly what
//! the command makes, the doctor finds nothing, and the next command works.
//!
//! Every call of a run that changes something in the home is numbered, and each is killed, and given `EIO` and `ENOSPC`,
//! in a run of its own. What changes make last, and in which order, is read from what a run did.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod case;
#[path = "../common/mod.rs"]
mod common;
mod trace;

use std::path::{Path, PathBuf};

use case::{Case, GRANTS, Snapshot, States, VAULT};
use common::{greeting, repository, write_below};
use serde_json::{Value, json};

const ONE: &[&str] = &["install", "./one", "--yes"];
const TWO: &[&str] = &["install", "./two", "--yes"];
const BACK: &[&str] = &["rollback", "demo.echo"];

const LOCK: &str = "+haft.lock";
const CATALOG: &str = "+manifest.local.json";
const LINK: &str = "+tools/demo.echo";
const FIRST: &str = "+packages/demo.echo/0.1.0";
const SECOND: &str = "+packages/demo.echo/0.2.0";

/// Values are kept together with the package that they are for.
#[test]
fn an_install_with_a_value_is_whole_or_nothing() {
    let place = repository().join("examples/mcpkg/http-status");
    let case = Case::new().then(&["install", place.to_str().unwrap(), "--yes"]);
    case.check(&[&[
        "+packages/demo.http.status/0.1.0",
        "+tools/demo.http.status",
        "+vault/secrets.json",
        LOCK,
        CATALOG,
    ]]);
}

#[test]
fn an_install_is_whole_or_nothing() {
    Case::new().then(ONE).check(&[&[FIRST, LINK, LOCK, CATALOG]]);
}

#[test]
fn an_update_is_whole_or_nothing() {
    let case = Case::new().done(ONE);
    case.echo("one", "0.2.0");
    case.then(&["update", "--yes"]).check(&[&[SECOND, LINK, LOCK, CATALOG]]);
}

#[test]
fn a_version_takes_the_place_of_itself_whole_or_not_at_all() {
    let case = Case::new().done(ONE).done(TWO).done(BACK).then(TWO);
    case.check(&[&["-packages/demo.echo/0.2.0", SECOND, LINK, LOCK, CATALOG]]);
}

#[test]
fn a_rollback_is_whole_or_nothing() {
    Case::new().done(ONE).done(TWO).then(BACK).check(&[&[LINK, LOCK, CATALOG]]);
}

#[test]
fn a_removal_is_whole_or_nothing() {
    let case = Case::new().done(ONE).done(TWO).then(&["remove", "demo.echo"]);
    case.check(&[&["-tools/demo.echo", "-packages/demo.echo", LOCK, CATALOG]]);
}

#[test]
fn a_lockfile_is_brought_whole_or_not_at_all() {
    let case = Case::new().done(TWO).done(&["lock", "-o", "two.lock"]);
    let case = case.done(&["remove", "demo.echo"]).done(ONE);
    let case = case.then(&["sync", "two.lock", "--locked", "--yes"]);
    case.check(&[&[SECOND, LINK, LOCK, CATALOG]]);
}

#[test]
fn a_reset_is_whole_or_nothing() {
    let case = Case::new().done(ONE).then(&["reset", "--yes"]);
    case.check(&[&["-tools", "-packages", "-haft.lock", "-manifest.local.json"]]);
}

/// What was granted and the secrets are there as long as it is not confirmed, and gone once it is.
#[test]
fn a_revocation_leaves_all_or_what_is_switched_off_or_nothing() {
    const ID: &str = "install-manifest:revocable";
    let case = Case::new().granted(ID);
    let mut manifest = greeting("revocable");
    manifest["env"] =
        json!([{"name": "STATUS_TOKEN", "secret": true, "required": true, "prompt": "It."}]);
    manifest["kill_switch"] =
        json!({"kind": "shell", "command": ["sh", "-c", "test \"$STATUS_TOKEN\" = t0ken"]});
    write_below(&case.path("revocable"), "manifest.json", &manifest.to_string());
    let case = case.done(&["install", "./revocable", "--yes"]);
    let case = case.done(&["grant", ID, "--host", "api.example.com"]);
    let case = case.then(&["revoke", "revocable", "--yes"]);
    let switched_off: &[&str] = &["+revoked.json", CATALOG];
    let gone: &[&str] = &["+revoked.json", CATALOG, "+vault/secrets.json"];
    case.check_states(&[switched_off, gone], |now, states, told| {
        check_revoked(now, states, told);
        if *now != states.before && *now != states.after {
            let again = case.haft(&["revoke", "revocable", "--yes"]).output().unwrap();
            let said = String::from_utf8_lossy(&again.stderr).into_owned();
            assert!(again.status.success(), "{told}: {said}");
            assert_eq!(case.snapshot(), states.after, "{told}");
        }
    });
}

fn check_revoked(now: &Snapshot, states: &States, told: &str) {
    const REVOKED: &str = "revoked.json";
    let own = [REVOKED, "manifest.local.json", GRANTS].map(PathBuf::from);
    let rest = |of: &Snapshot| {
        let mut of = of.clone();
        of.retain(|path, _| !own.contains(path));
        of
    };
    let state = now.get(Path::new(REVOKED)).map(|text| {
        let read: Value = serde_json::from_str(text).unwrap();
        (read["packages"][0]["state"].clone(), read["packages"][0]["hosts"].clone())
    });
    match state {
        None => assert_eq!(*now, states.before, "{told}"),
        Some((state, _)) if state == "revoked" => assert_eq!(*now, states.after, "{told}"),
        Some((state, hosts)) => {
            assert_eq!(state, "revoke_unconfirmed", "{told}");
            // It cannot be called, and its kill switch can be run again, with all that it needs.
            let catalog = Path::new("manifest.local.json");
            assert_eq!(now[catalog], states.after[catalog], "{told}");
            assert_eq!(rest(now), rest(&states.before), "{told}");
            let granted = |state: &Snapshot| state[Path::new(GRANTS)].clone();
            if granted(now) != granted(&states.before) {
                assert_eq!(granted(now), granted(&states.after), "{told}");
                assert_eq!(hosts, json!(["api.example.com"]), "{told}");
            }
        }
    }
    // All this would say nothing if there were no secret, or if it stayed.
    let kept = |state: &Snapshot| state[Path::new(VAULT)].clone();
    assert!(kept(&states.before).contains("STATUS_TOKEN") && kept(&states.after).is_empty());
    let granted = |state: &Snapshot| state[Path::new(GRANTS)].contains("api.example.com");
    assert!(granted(&states.before) && !granted(&states.after));
}

#[test]
fn what_fails_once_every_step_is_taken_is_no_failure_of_the_command() {
    let case = Case::new().then(ONE);
    let trace = case.trace();
    let place = |name: &str, path: &str| {
        trace.iter().rposition(|call| call.name == name && call.path == Path::new(path)).unwrap()
    };
    let (gone, last) = (place("unlink", "journal"), place("fsync", ""));
    assert!(last > gone);
    assert!(case.is_done_without(last));
    assert!(case.is_done_without(gone), "it is tried a second time");
    case.check_sound("without the last one on the disk");
}

#[test]
fn a_change_without_one_of_its_steps_or_with_one_that_does_not_last_is_found_out() {
    let steps: &[&[&str]] = &[&[FIRST, LINK, LOCK, CATALOG]];
    let whole = Case::new().then(ONE).trace();
    assert_eq!(trace::check(&whole, steps), Ok(()));
    let without = trace::mutilated(&whole);
    // The journal, four steps, three folders whose names change and one in which one is made, and five moments.
    assert_eq!(
        without.len(),
        14,
        "{:#?}",
        without.iter().map(|(what, _)| what).collect::<Vec<_>>()
    );
    for (what, trace) in without {
        assert!(trace::check(&trace, steps).is_err(), "{what}");
    }
}
