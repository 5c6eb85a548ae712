//! The protocol's own library, of both releases, as the server and as where people sign in.

use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::desk::{PACKAGE, Peer, browse, ended, look};

#[test]
fn somebody_registers_signs_in_calls_asks_for_more_and_signs_out() {
    for release in ["1", "2"] {
        let peer = Peer::start(release, &json!({}));
        let desk = peer.desk();
        let sum = json!({ "a": 2, "b": 40 });
        let ran = desk.call("add", &sum);
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        let command = format!("haft login --from {}", desk.manifest());
        assert!(ran.stderr.contains(&format!("`{command}` signs in")), "{}", ran.stderr);

        let ran = desk.sign_in(&["--allow-host", &peer.host()]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("Scopes   read\n"), "{}", ran.stderr);
        let ran = desk.call("add", &sum);
        assert_eq!((ran.code, &*ran.stdout), (0, "{\"result\":42}\n"), "{}", ran.stderr);

        // What the server says of the tokens reaches nobody, and no file holds them.
        let told = desk.call("tell", &json!({})).stdout;
        let log = peer.log();
        for token in log["tokens"].as_array().unwrap() {
            let token = token.as_str().unwrap();
            assert!(!told.contains(token) && !desk.holds(token), "{told}");
        }
        // The older release does not know the word.
        assert_eq!(log["application_type"] == "native", release == "2", "{log}");
        let resource = format!("http://127.0.0.1:{}/mcp", peer.port);
        assert_eq!(log["asked"], json!([{ "scopes": ["read"], "resource": resource }]));

        let ran = desk.call("write", &json!({ "text": "x" }));
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("`{command} --scope write` signs in")),
            "{}",
            ran.stderr
        );
        let ran = desk.sign_in(&["--allow-host", &peer.host(), "--scope", "write"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(peer.log()["asked"][1]["scopes"], json!(["read", "write"]));
        assert_eq!(desk.call("write", &json!({ "text": "x" })).code, 0);

        let ran = desk.run(&["logout", PACKAGE]);
        assert_eq!((ran.code, ran.stderr.contains("warning")), (0, false), "{}", ran.stderr);
        assert!(peer.log()["revoked"].as_u64().unwrap() > 0);
        assert!(!desk.is_signed_in());
        assert_eq!(desk.call("add", &sum).code, 4);
        assert_eq!(desk.run(&["logout", PACKAGE]).code, 3);
    }
}

#[test]
fn a_registration_of_the_owners_own_is_used_and_its_secret_is_no_argument() {
    let client = json!({
        "client_id": "mine", "client_secret": "s3cret & co", "scope": "read",
        "redirect_uris": ["http://127.0.0.1:47113/callback"],
        "token_endpoint_auth_method": "client_secret_basic",
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
    });
    let peer = Peer::start("2", &json!({ "registers": false, "client": client }));
    let desk = peer.desk();
    let ran = desk.sign_in(&["--allow-host", &peer.host()]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("--client-id"), "{}", ran.stderr);
    let host = peer.host();
    let more = ["--allow-host", &host, "--client-id", "mine", "--client-secret", "--port", "47113"];
    let manifest = desk.manifest();
    let mut child = desk.start(&[&["login", "--from", &manifest], more.as_slice()].concat());
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"s3cret & co\n").unwrap();
    let mut page = String::new();
    let mut out = std::io::BufReader::new(child.stdout.as_mut().unwrap());
    std::io::BufRead::read_line(&mut out, &mut page).unwrap();
    browse(page.trim());
    let ran = ended(child);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(desk.call("add", &json!({ "a": 1, "b": 1 })).code, 0);
    assert!(!desk.holds("s3cret & co"));
    peer.end_tokens();
    assert_eq!(desk.call("add", &json!({ "a": 1, "b": 1 })).code, 0);
    assert_eq!(peer.log()["refreshes"], 1);
}

#[test]
fn a_token_that_is_over_is_renewed_once_for_all_who_need_it() {
    let peer = Peer::start("2", &json!({ "slow": 0.5 }));
    let desk = peer.desk();
    assert_eq!(desk.sign_in(&["--allow-host", &peer.host()]).code, 0);
    peer.end_tokens();
    let manifest = desk.manifest();
    let calls: Vec<_> = (0..6)
        .map(|number| {
            let input = json!({ "a": number, "b": 1 }).to_string();
            desk.start(&["call", "--from", &manifest, "add", &input])
        })
        .collect();
    for call in calls {
        let ran = ended(call);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let log = peer.log();
    assert_eq!((&log["refreshes"], &log["reused"]), (&json!(1), &json!(0)));
}

#[test]
fn a_token_without_life_is_renewed_before_each_call() {
    let peer = Peer::start("1", &json!({ "life": 0 }));
    let desk = peer.desk();
    assert_eq!(desk.sign_in(&["--allow-host", &peer.host()]).code, 0);
    for _ in 0..3 {
        let ran = desk.call("add", &json!({ "a": 1, "b": 1 }));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let log = peer.log();
    assert!(log["refreshes"].as_u64().unwrap() >= 3, "{log}");
    assert_eq!(log["reused"], 0);
}

#[test]
fn a_renewed_token_is_kept_before_it_is_used_whatever_is_killed() {
    let peer = Peer::start("2", &json!({}));
    let desk = peer.desk();
    assert_eq!(desk.sign_in(&["--allow-host", &peer.host()]).code, 0);
    for round in 1..=3 {
        peer.end_tokens();
        let manifest = desk.manifest();
        let input = json!({ "seconds": 60 }).to_string();
        let mut child = desk.start(&["call", "--from", &manifest, "sleep", &input]);
        let until = Instant::now() + Duration::from_secs(20);
        // The server hears the new token for the first time here.
        while peer.log()["sleeping"] != round {
            assert!(Instant::now() < until, "nobody called");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let ran = desk.call("add", &json!({ "a": 1, "b": 1 }));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let log = peer.log();
        assert_eq!((&log["refreshes"], &log["reused"]), (&json!(round), &json!(0)));
    }
}

/// Waits until a renewal has reached the server.
fn await_renewal(peer: &Peer) {
    let until = Instant::now() + Duration::from_secs(20);
    while peer.log()["refreshes"] != 1 {
        assert!(Instant::now() < until, "nobody renews");
    }
}

#[test]
fn a_call_that_is_called_off_while_it_renews_keeps_what_comes() {
    let peer = Peer::start("2", &json!({ "slow": 2 }));
    let desk = peer.desk();
    assert_eq!(desk.sign_in(&["--allow-host", &peer.host()]).code, 0);
    peer.end_tokens();
    let (manifest, input) = (desk.manifest(), json!({ "a": 1, "b": 1 }).to_string());
    let child = desk.start(&["call", "--from", &manifest, "add", &input]);
    await_renewal(&peer);
    let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(stopped.unwrap().success());
    assert_eq!(ended(child).code, 130);
    let ran = desk.call("add", &json!({ "a": 1, "b": 1 }));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = peer.log();
    assert_eq!((&log["refreshes"], &log["reused"]), (&json!(1), &json!(0)));
}

#[test]
fn a_call_whose_time_is_over_while_it_renews_keeps_what_comes() {
    let peer = Peer::start("2", &json!({ "slow": 4 }));
    let desk = peer.desk();
    assert_eq!(desk.sign_in(&["--allow-host", &peer.host()]).code, 0);
    peer.end_tokens();
    let policy = desk.home().join("policy.toml");
    std::fs::write(&policy, "[sandbox]\ntimeout = \"2s\"\n").unwrap();
    let (manifest, input) = (desk.manifest(), json!({ "a": 1, "b": 1 }).to_string());
    let ran = desk.run(&["--json", "call", "--from", &manifest, "add", &input]);
    assert!(ran.stdout.contains("timed_out"), "{}{}", ran.stdout, ran.stderr);
    std::fs::remove_file(policy).unwrap();
    let ran = desk.call("add", &json!({ "a": 1, "b": 1 }));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = peer.log();
    assert_eq!((&log["refreshes"], &log["reused"]), (&json!(1), &json!(0)));
}

#[test]
fn a_renewal_that_is_under_way_undoes_no_sign_out() {
    let peer = Peer::start("2", &json!({ "slow": 2 }));
    let desk = peer.desk();
    assert_eq!(desk.sign_in(&["--allow-host", &peer.host()]).code, 0);
    peer.end_tokens();
    let (manifest, input) = (desk.manifest(), json!({ "a": 1, "b": 1 }).to_string());
    let child = desk.start(&["call", "--from", &manifest, "add", &input]);
    await_renewal(&peer);
    let ran = desk.run(&["logout", PACKAGE]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ended(child);
    assert!(!desk.is_signed_in());
    // What came meanwhile is given back too.
    assert_eq!(peer.log()["live"], 0);
}

#[test]
fn one_of_the_oldest_way_is_signed_in_for_and_renewed() {
    for release in ["1", "2"] {
        let peer = Peer::start(release, &json!({ "sse": true }));
        let desk = peer.desk();
        let sum = json!({ "a": 2, "b": 40 });
        let ran = desk.call("add", &sum);
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        assert!(ran.stderr.contains("haft login"), "{}", ran.stderr);
        let ran = desk.sign_in(&["--allow-host", &peer.host()]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(desk.call("add", &sum).stdout, "{\"result\":42}\n");
        peer.end_tokens();
        let ran = desk.call("add", &sum);
        assert_eq!((ran.code, peer.log()["refreshes"].as_u64()), (0, Some(1)), "{}", ran.stderr);
    }
}

#[test]
fn a_token_that_another_server_was_not_told_is_not_renewed_for_it() {
    let (peer, other) = (Peer::start("2", &json!({})), Peer::start("2", &json!({})));
    let desk = peer.desk();
    assert_eq!(desk.sign_in(&["--allow-host", &peer.host()]).code, 0);
    let manifest = std::fs::read_to_string(desk.manifest()).unwrap();
    let (old, new) = (peer.port.to_string(), other.port.to_string());
    desk.write("install.json", &manifest.replace(&old, &new));
    let granted = desk.run(&["grant", PACKAGE, "--host", &format!("127.0.0.1:{new}")]);
    assert_eq!(granted.code, 0, "{}", granted.stderr);
    let ran = desk.call("add", &json!({ "a": 1, "b": 1 }));
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert_eq!(peer.log()["refreshes"], 0);
}

#[test]
fn who_signs_in_again_gives_back_what_was_there() {
    let peer = Peer::start("2", &json!({}));
    let desk = peer.desk();
    for live in [2, 2] {
        assert_eq!(desk.sign_in(&["--allow-host", &peer.host()]).code, 0);
        assert_eq!(peer.log()["live"], live);
    }
    assert_eq!(desk.call("add", &json!({ "a": 1, "b": 1 })).code, 0);
}

#[test]
fn a_sign_in_is_no_secret_that_is_set_or_removed() {
    let peer = Peer::start("2", &json!({}));
    let desk = peer.desk();
    assert_eq!(desk.sign_in(&["--allow-host", &peer.host()]).code, 0);
    for verb in ["set", "rm"] {
        let ran = desk.run(&["secret", verb, PACKAGE, "(login)"]);
        assert_eq!(ran.code, 2, "{verb}: {}", ran.stderr);
    }
    assert_eq!(desk.call("add", &json!({ "a": 1, "b": 1 })).code, 0);
}

#[test]
fn a_sign_in_that_the_server_has_ended_asks_for_another() {
    let peer = Peer::start("2", &json!({}));
    let desk = peer.desk();
    assert_eq!(desk.sign_in(&["--allow-host", &peer.host()]).code, 0);
    // The other copy of a refresh token ends everything.
    let kept = desk.home().join("vault/secrets.json");
    let before = std::fs::read(&kept).unwrap();
    peer.end_tokens();
    assert_eq!(desk.call("add", &json!({ "a": 1, "b": 1 })).code, 0);
    std::fs::write(&kept, before).unwrap();
    peer.end_tokens();
    let ran = desk.call("add", &json!({ "a": 1, "b": 1 }));
    assert_eq!((ran.code, peer.log()["reused"].as_u64()), (4, Some(1)), "{}", ran.stderr);
    assert!(ran.stderr.contains("haft login"), "{}", ran.stderr);
}

#[test]
fn whoever_says_no_at_the_browser_is_believed() {
    let peer = Peer::start("2", &json!({ "answer": "no" }));
    let desk = peer.desk();
    let ran = desk.sign_in(&["--allow-host", &peer.host()]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("refused: access_denied\n"), "{}", ran.stderr);
    assert!(!desk.is_signed_in());
}

#[test]
fn an_answer_that_names_another_server_is_not_exchanged() {
    let peer = Peer::start("2", &json!({ "iss": "https://evil.example" }));
    let desk = peer.desk();
    let ran = desk.sign_in(&["--allow-host", &peer.host()]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("another authorization server"), "{}", ran.stderr);
    assert_eq!((peer.log()["codes"].as_u64(), desk.is_signed_in()), (Some(0), false));
}

#[test]
fn an_answer_to_another_attempt_is_sent_away_and_the_right_one_still_counts() {
    let peer = Peer::start("2", &json!({}));
    let desk = peer.desk();
    let waiting = desk.begin(&["--allow-host", &peer.host()]);
    let redirect = look(&waiting.page);
    let (place, _) = redirect.split_once('?').unwrap();
    // One who says nothing holds nobody up.
    let address = place.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let _silent: Vec<_> = (0..4).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let began = Instant::now();
    for wrong in ["?code=evil&state=wrong", "?code=evil", "", "?error=access_denied&state=wrong"] {
        assert!(browse(&format!("{place}{wrong}")).contains("nothing here"), "{wrong}");
    }
    assert!(browse(&redirect).contains("has your answer"));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let ran = waiting.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // One use: nobody listens any more.
    assert_eq!(browse(&redirect), "");
}

#[test]
fn without_a_browser_the_address_is_pasted() {
    let peer = Peer::start("2", &json!({}));
    let desk = peer.desk();
    let mut waiting = desk.begin(&["--allow-host", &peer.host(), "--no-browser"]);
    let redirect = look(&waiting.page);
    waiting.paste(&redirect);
    let ran = waiting.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(desk.call("add", &json!({ "a": 1, "b": 1 })).code, 0);

    let desk = peer.desk();
    let mut waiting = desk.begin(&["--allow-host", &peer.host(), "--no-browser"]);
    waiting.paste(&look(&waiting.page).replace("state=", "state=x"));
    let ran = waiting.end();
    assert_eq!((ran.code, desk.is_signed_in()), (4, false), "{}", ran.stderr);
}

#[test]
fn nobody_is_waited_for_without_end() {
    let peer = Peer::start("2", &json!({}));
    let desk = peer.desk();
    let manifest = desk.manifest();
    let host = peer.host();
    let ran = desk.run(&["login", "--from", &manifest, "--allow-host", &host, "--timeout", "1s"]);
    assert_eq!((ran.code, desk.is_signed_in()), (1, false), "{}", ran.stderr);
    assert!(ran.stderr.contains("in time"), "{}", ran.stderr);
    // Nor does a stranger change what is told, and any time that can be typed can be waited for.
    let waiting = desk.begin(&["--allow-host", &host, "--timeout", "2s"]);
    let redirect = look(&waiting.page);
    browse(redirect.split_once('?').unwrap().0);
    assert!(waiting.end().stderr.contains("in time"));
    let waiting = desk.begin(&["--allow-host", &host, "--timeout", "1e19"]);
    browse(&waiting.page);
    let ran = waiting.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_host_that_the_owner_did_not_name_is_not_reached() {
    let peer = Peer::start("2", &json!({}));
    let desk = peer.desk();
    let ran = desk.run(&["login", "--from", &desk.manifest()]);
    assert_eq!((ran.code, &*ran.stdout), (4, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("--allow-host {}", peer.host())), "{}", ran.stderr);
    assert_eq!(peer.log()["registered"], 0);
}
