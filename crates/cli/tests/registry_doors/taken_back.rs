//! What a source has no more is taken back here.

use serde_json::{Value, json};

use super::common::{Desk, write_below};
use super::opened::{Opened, counts, haft, weather};
use super::sources::answering;

#[test]
fn what_the_source_has_taken_back_is_taken_back_here_and_what_is_missing_is_told() {
    let desk = Desk::new();
    let first = Opened::start(&desk, "first", &[]);
    let second = Opened::start(&desk, "second", &[]);
    let write = |name: &str, dump: &Value| write_below(desk.0.path(), name, &dump.to_string());
    let all = json!([weather("one", "1.0.0"), weather("one", "1.1.0"), weather("two", "1.0.0")]);
    assert_eq!(first.import(&desk, &write("all.json", &all), &[]).code, 0);
    let done = second.import(&desk, first.url(), &["--json"]);
    assert_eq!(counts(&done.json()), [3, 0, 0, 0], "{}", done.stderr);
    let own = json!([weather("one", "2.0.0")]);
    assert_eq!(second.import(&desk, &write("own.json", &own), &[]).code, 0);

    let yank = ["yank", "com.example/one@1.0.0", "--reason", "it rains", "--security"];
    let yank = [&yank[..], &["--registry", first.url()]].concat();
    assert_eq!(haft(&desk, "home", Some(&first.token), &yank).code, 0);
    let named = |report: &Value, key: &str| -> Vec<String> {
        let list = report[key].as_array().unwrap_or_else(|| panic!("{key}: {report}"));
        let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
        list.iter().map(|one| format!("{} {}", text(one, "name"), text(one, "version"))).collect()
    };
    let told = |opened: &Opened, version: &str| {
        let versions = opened.get("/v1/tools/com.example%2Fone/versions")["versions"].clone();
        versions.as_array().unwrap().iter().find(|one| one["version"] == version).unwrap().clone()
    };
    for more in [&["--json", "--dry-run"][..], &["--json"]] {
        assert_eq!(told(&second, "1.0.0")["yanked"], false);
        let again = second.import(&desk, first.url(), more);
        assert_eq!(again.code, 0, "{}", again.stderr);
        let report = again.json();
        assert_eq!(named(&report, "yanked"), ["com.example/one 1.0.0"], "{report}");
        assert_eq!(named(&report, "missing"), ["com.example/one 2.0.0"], "{report}");
        assert_eq!(counts(&report), [0, 2, 0, 0], "{report}");
    }
    let yanked = told(&second, "1.0.0");
    let reason = yanked["yankReason"].as_str().unwrap();
    assert!(reason.contains(first.url()) && reason.contains("it rains"), "{reason}");
    assert_eq!(yanked["yankSecurity"], true, "{yanked}");
    assert_eq!(told(&second, "2.0.0")["yanked"], false, "what is missing is left alone");
    let again = second.import(&desk, first.url(), &[]);
    assert!(again.stdout.contains("missing     com.example/one 2.0.0"), "{}", again.stdout);
    assert!(again.stderr.contains("0 yanked, 1 missing there"), "{}", again.stderr);
    // Who does not list everything says nothing by what is not there.
    for more in ["--latest", "--updated-since=2020-01-01T00:00:00Z"] {
        let some = second.import(&desk, first.url(), &["--json", more]);
        assert_eq!(named(&some.json(), "missing"), [""; 0], "{more}");
    }
    // Nobody takes back what is not what they had.
    let official = "io.modelcontextprotocol.registry/official";
    let mut other = weather("two", "1.0.0");
    other["description"] = "Somebody else's".into();
    let deleted = json!({official: {"status": "deleted"}});
    let dump = json!({"servers": [{"server": other, "_meta": deleted}]});
    let ran = second.import(&desk, &write("other.json", &dump), &["--json"]);
    assert_eq!((named(&ran.json(), "yanked").len(), counts(&ran.json())), (0, [0, 0, 0, 1]));
    // A dump says it as well; the place it lies at is nobody's business.
    let dump = json!({"servers": [{"server": weather("two", "1.0.0"), "_meta": deleted}]});
    let ran = second.import(&desk, &write("dump.json", &dump), &["--json"]);
    assert_eq!(named(&ran.json(), "yanked"), ["com.example/two 1.0.0"], "{}", ran.stdout);
    let two = second.get("/v1/tools/com.example%2Ftwo/versions")["versions"][0].clone();
    let reason = two["yankReason"].as_str().unwrap();
    assert!(reason.contains("dump.json") && !reason.contains('/'), "{reason}");
}

/// A tool of which a source has no version any more is taken back, but only where that can be believed.
#[test]
fn a_tool_that_is_gone_at_its_source_is_taken_back_here_unless_the_list_may_be_cut() {
    let desk = Desk::new();
    let served = Opened::start(&desk, "served", &[]);
    let import = |list: &Value, more: &[&str]| {
        let path = write_below(desk.0.path(), "list.json", &list.to_string());
        served.import(&desk, &path, more)
    };
    let yanked = || -> Vec<bool> {
        let each = ["one", "two", "three"].iter().map(|name| {
            let path = format!("/v1/tools/com.example%2F{name}/versions");
            let versions = served.get(&path)["versions"].clone();
            versions.as_array().unwrap().iter().all(|one| one["yanked"] == true)
        });
        each.collect()
    };
    let [one, newer, two, three] =
        [("one", "1.0.0"), ("one", "1.1.0"), ("two", "1.0.0"), ("three", "1.0.0")]
            .map(|(name, version)| weather(name, version));
    let own = write_below(desk.0.path(), "own.json", &json!([weather("own", "1.0.0")]).to_string());
    assert_eq!(served.import(&desk, &own, &[]).code, 0);
    assert_eq!(import(&json!([one, newer, two, three]), &[]).code, 0);
    // Most of it, or all of it, is not gone at once; nor is anything where a part was asked for or could not be read.
    for (list, more) in [
        (json!([two]), &[][..]),
        (json!([]), &[]),
        (json!({"servers": []}), &[]),
        (json!([two, three, 42]), &[]),
        (json!([two, three, {"name": 7}]), &[]),
        (json!({"more": []}), &[]),
        (json!([two, three]), &["--latest"]),
        (json!([two, three]), &["--search", "t"]),
        (json!([two, three]), &["--updated-since", "2020-01-01T00:00:00Z"]),
    ] {
        let ran = import(&list, more);
        assert_eq!(yanked(), [false; 3], "{list} {more:?}: {}", ran.stderr);
    }
    let cut = import(&json!([two]), &["--json"]);
    assert!(cut.stderr.contains("2 of 3 tools"), "{}", cut.stderr);
    assert_eq!(
        (cut.code, cut.json()["missing"].as_array().unwrap().len()),
        (0, 3),
        "{}",
        cut.stdout
    );
    // A page that never came is no end of the list.
    let page = |servers: Value, next: &str| {
        format!("200 OK\r\n\r\n{}", json!({"servers": servers, "metadata": {"nextCursor": next}}))
    };
    let never = "403 Forbidden\r\n\r\n{}".to_owned();
    let all = json!([one, newer, two, three]);
    let url = answering(vec![page(all, ""), page(json!([two, three]), "2"), never]);
    for code in [0, 6] {
        let ran = served.import(&desk, &url, &[]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
    }
    assert_eq!(yanked(), [false; 3]);

    let tried = import(&json!([two, three]), &["--json", "--dry-run"]);
    assert_eq!(tried.json()["yanked"].as_array().unwrap().len(), 2, "{}", tried.stdout);
    assert_eq!(yanked(), [false; 3], "nothing is done where it is only tried");
    let ran = import(&json!([two, three]), &[]);
    assert!(ran.stdout.contains("yanked      com.example/one 1.1.0"), "{}", ran.stdout);
    assert_eq!(yanked(), [true, false, false]);
    let reason =
        served.get("/v1/tools/com.example%2Fone/versions")["versions"][0]["yankReason"].clone();
    assert_eq!(reason, "not listed in list.json any more");
    // What came from elsewhere is none of its business, also where it was listed here too.
    let own = weather("own", "1.0.0");
    for list in [json!([two, three, own]), json!([two, three])] {
        let ran = import(&list, &[]);
        assert!(ran.code == 0 && !ran.stdout.contains("yanked"), "{}", ran.stdout);
    }
    let own = served.get("/v1/tools/com.example%2Fown/versions")["versions"][0]["yanked"].clone();
    assert_eq!(own, false);
    // It is done once: who offers it again is not overruled.
    for version in ["1.0.0", "1.1.0"] {
        let what = format!("com.example/one@{version}");
        let undo = ["yank", &what, "--undo", "--registry", served.url()];
        assert_eq!(haft(&desk, "home", Some(&served.token), &undo).code, 0);
    }
    assert_eq!(import(&json!([two, three]), &[]).code, 0);
    assert_eq!(yanked(), [false; 3]);
    // Who has no memory misses nothing, and says so.
    for entry in std::fs::read_dir(desk.path("home/imports")).unwrap() {
        std::fs::write(entry.unwrap().path(), "{").unwrap();
    }
    let ran = import(&json!([two]), &[]);
    assert!(ran.code == 0 && ran.stderr.contains("begun anew"), "{}", ran.stderr);
    assert_eq!(yanked(), [false; 3]);
}
