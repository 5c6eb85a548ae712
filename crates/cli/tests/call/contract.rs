//! Every dialect, and what each of them promises.

use serde_json::json;

use super::common::{repository, run_in};
use super::desk::Desk;

#[test]
fn every_dialect_of_the_examples_can_be_called() {
    let desk = Desk::new();
    for (path, name, input, expected) in [
        (
            "examples/install-manifest/word-count",
            "count",
            r#"{"text":"a b"}"#,
            json!({"lines": 1, "words": 2, "characters": 3}),
        ),
        (
            "examples/install-manifest/word-count",
            "longest",
            r#"{"text":"a tool for every hand"}"#,
            json!({"words": ["every", "tool", "hand"]}),
        ),
        (
            "examples/mcpkg/text-clean",
            "demo.text.clean",
            r#"{"text":" a  b \n\n c"}"#,
            json!({"text": "a b\nc", "removed": 5}),
        ),
        (
            "examples/mcpkg/text-clean",
            "mcpkg:demo.text.clean",
            r#"{"text":"a"}"#,
            json!({"text": "a", "removed": 0}),
        ),
        (
            "examples/capability/greet",
            "demo.greet",
            r#"{"name":"Ann"}"#,
            json!({"greeting": "Hello, Ann", "language": "en"}),
        ),
        (
            "examples/jumith/slugify",
            "text.slugify",
            r#"{"title":"Hello, Wörld"}"#,
            json!({"slug": "hello-world"}),
        ),
        ("examples/jumith/slugify", "tool:text.slugify", r#"{"title":"a"}"#, json!({"slug": "a"})),
    ] {
        assert_eq!(desk.result(&[path, name, input]), expected, "{path} {name}");
    }
    let time = desk.result(&["examples/agentcli/tools.json", "get_time", r#"{"timezone":"UTC"}"#]);
    assert_eq!(time["timezone"], "UTC");
    let rolled = desk.result(&["examples/jumith/dice.bundle.json", "demo.dice", "{}"]);
    assert!(rolled.is_object(), "{rolled}");
    let now = desk.call(&["examples/install-manifest/utc-clock", "now"]);
    assert!(now.stdout.starts_with("20") && now.stdout.ends_with("Z\n"), "{}", now.stdout);
    // Nothing of the bundle is left.
    let left = std::fs::read_dir(desk.path("home/staging")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_tools_json_has_its_exact_contract() {
    let desk = Desk::new();
    let said = |script: &str| desk.call(&[&desk.script(script), "run", "{}"]);
    assert_eq!(said("exit 0").stdout, "{}\n");
    let failed = said("exit 3");
    assert_eq!((failed.code, &*failed.stderr), (1, "error: exit status 3\n"));
    assert_eq!(
        said("echo '{\"error\":\"no such zone\"}' >&2; exit 1").stderr,
        "error: no such zone\n"
    );
    assert_eq!(said("echo broken >&2; exit 1").stderr, "error: broken\n");
    let late = said("sleep 60");
    assert!(late.stderr.starts_with("error: tool timed out\n"), "{}", late.stderr);
    assert_eq!(late.code, 1);
    let unknown = desk.call(&[&desk.script("true"), "other"]);
    assert_eq!(
        (unknown.code, &*unknown.stderr),
        (3, "error: unknown tool: other\nhint: there is run\n")
    );
    let environment = desk.result(&[&desk.script("env | sort | cut -d= -f1 | grep -v '^_$\\|PWD\\|SHLVL' | tr '\\n' ' ' | sed 's/.*/\"&\"/'"), "run"]);
    assert_eq!(environment, json!("HOME PATH "));
}

#[test]
fn json_gives_one_document_whatever_happens() {
    let desk = Desk::new();
    let ok = desk.call(&[&desk.script("echo '{\"x\":1}'"), "run", "{}", "--json"]).json();
    assert_eq!(
        (&ok["ok"], &ok["result"], &ok["attempts"]),
        (&json!(true), &json!({"x": 1}), &json!(1))
    );
    assert!(ok["ms"].is_u64() && ok["sandbox"]["level"].is_string(), "{ok}");
    let failed = desk.call(&[&desk.script("echo no >&2; exit 2"), "run", "{}", "--json"]);
    assert_eq!(failed.code, 1);
    let document = failed.json();
    assert_eq!(document["ok"], false);
    assert_eq!(document["error"]["code"], "tool_failed");
    assert_eq!(document["error"]["message"], "no");
    assert_eq!((&document["attempts"], &document["sandbox"]), (&json!(1), &ok["sandbox"]));
    assert!(document["ms"].is_u64(), "{document}");
    let refused = desk.call(&[&desk.script("true"), "run", "[]", "--json"]).json();
    assert_eq!(refused["error"]["code"], "bad_input");
    assert_eq!((&refused["attempts"], &refused["sandbox"]["level"]), (&json!(0), &json!(null)));
}

#[test]
fn the_policy_is_read_and_a_bad_one_stops_everything() {
    let desk = Desk::new();
    let tool = desk.script("echo '{}'");
    desk.write("home/policy.toml", "[sandbox]\nlevl = \"L2\"\n");
    let ran = desk.call(&[&tool, "run"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("line 2, column 1: `sandbox.levl`: there is no such key"),
        "{}",
        ran.stderr
    );
    desk.write("home/policy.toml", "[package.pkg]\nallow = false\n");
    let ran = desk.call(&[&tool, "run"]);
    let told = "error: your policy refuses this package\nhint: `haft policy show` shows your policy; `allow` of this package in it says so\n";
    assert_eq!((ran.code, &*ran.stderr), (4, told));
    desk.write("home/policy.toml", "[package.pkg]\nactions.run = \"ask\"\n");
    let ran = desk.call(&[&tool, "run"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("--approve approves this one call"), "{}", ran.stderr);
    assert_eq!(desk.call(&[&tool, "run", "--approve"]).code, 0);
}

#[test]
fn a_program_that_leads_out_of_its_folder_is_refused() {
    let desk = Desk::new();
    let tool = desk.script("true");
    let bin = desk.path("pkg/tools/bin/run");
    std::fs::remove_file(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/cat", &bin).unwrap();
    let ran = desk.call(&[&tool, "run"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("leads out of tools/bin"), "{}", ran.stderr);
}

#[test]
fn a_capability_trusted_too_little_is_refused_in_the_fixed_words() {
    let desk = Desk::new();
    let text =
        std::fs::read_to_string(repository().join("examples/capability/greet/manifest.json"));
    let text = text.unwrap().replace(r#""trust_level": "local""#, r#""trust_level": "community""#);
    let manifest = desk.write("pkg/manifest.json", &text);
    let ran = desk.call(&[&manifest, "demo.greet", r#"{"name":"Ann"}"#]);
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.contains("trust_level not allowed by policy: community"), "{}", ran.stderr);
}

#[test]
fn records_are_printed_as_they_come_and_once() {
    use std::io::{BufRead, BufReader};
    let desk = Desk::new();
    let tool = desk.install_manifest(
        "echo '{\"n\":1}'\nsleep 2\necho '{\"n\":2}'\n",
        "ndjson-stream",
        &json!([]),
    );
    let ran = desk.call(&[&tool, "show"]);
    assert_eq!((ran.code, &*ran.stdout), (0, "{\"n\":1}\n{\"n\":2}\n"), "{}", ran.stderr);
    let home = desk.path("home");
    let json = ["--home", home.to_str().unwrap(), "--json", "call", "--from", &tool, "show"];
    let ran = run_in(&repository(), &json, None);
    assert_eq!(ran.json()["result"], json!([{"n": 1}, {"n": 2}]));
    let tool = desk.install_manifest(
        "echo '{\"n\":1}'\nsleep 1\necho '{\"n\":2}'\nsleep 60\n",
        "ndjson-stream",
        &json!([]),
    );
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("haft"));
    command.arg("--home").arg(home).args(["call", "--from", &tool, "show"]);
    let piped = std::process::Stdio::piped;
    let mut child = command.stdout(piped()).stderr(piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "{\"n\":1}");
    assert!(child.try_wait().unwrap().is_none(), "the first comes before the end");
    // Whoever stops reading does not want the rest.
    drop(lines);
    let began = std::time::Instant::now();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(130), &b"cancelled\n"[..]));
    assert!(began.elapsed().as_secs() < 20);
}

#[test]
fn an_input_that_is_too_long_for_an_argument_comes_on_standard_input() {
    let desk = Desk::new();
    for length in [131_071, 131_072, 131_073] {
        let message = "x".repeat(length - r#"{"message":""}"#.len());
        let input = desk.write("input.json", &json!({ "message": message }).to_string());
        let result = desk.result(&["examples/mcpkg/echo", "demo.echo", &format!("@{input}")]);
        assert!(result["message"] == message, "{length}");
    }
}

#[test]
fn a_package_in_one_file_is_called_like_its_folder() {
    let desk = Desk::new();
    let home = desk.path("home");
    let home = home.to_str().unwrap();
    for (folder, name, input) in [
        ("examples/mcpkg/text-stats", "demo.text.stats", r#"{"text":"a b"}"#),
        ("examples/mcpkg/echo", "demo.echo", r#"{"message":"hello"}"#),
        ("examples/capability/hash-text", "demo.text.hash", r#"{"text":"a"}"#),
        ("examples/install-manifest/word-count", "count", r#"{"text":"a b"}"#),
        ("examples/install-manifest/dice-server", "roll", "{}"),
    ] {
        let packed = desk.path("one.mcpkg");
        let _ = std::fs::remove_file(&packed);
        let packed = packed.to_str().unwrap();
        let ran =
            run_in(&repository(), &["--home", home, "pack", folder, "--output", packed], None);
        assert_eq!(ran.code, 0, "{folder}: {}", ran.stderr);
        let ran = desk.call(&[packed, name, input]);
        assert_eq!(ran.code, 0, "{folder}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stdout.is_empty(), "{folder}");
    }
}

#[test]
fn what_haft_keeps_is_given_to_no_tool() {
    let desk = Desk::new();
    let home = desk.path("home");
    std::fs::create_dir_all(home.join("vault")).unwrap();
    std::fs::write(home.join("vault/key"), "not for you").unwrap();
    let script = format!("cat {0}/vault/key || true; ls -A {0} || true", home.display());
    let tool = desk.script(&script);
    let records = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    records.block_on(async {
        use ledger::state::grants::{Grant, GrantKind};
        let records = host::Records::open(&home).await.unwrap();
        for value in [home.join("vault"), home.clone()] {
            let grant = Grant {
                package: "agentcli:pkg".into(),
                kind: GrantKind::Read,
                value: value.to_str().unwrap().to_owned(),
                by: "test".into(),
                created: host::records::now(),
            };
            records.state.grant(&grant).await.unwrap();
        }
    });
    let ran = desk.call(&[&tool, "run"]);
    assert!(!ran.stdout.contains("not for you"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("vault"), "{}", ran.stdout);
}

#[test]
fn a_result_that_nobody_would_get_is_an_error_before_anything_is_run() {
    let desk = Desk::new();
    let tool = desk.script("echo '{}'");
    let haft = assert_cmd::cargo::cargo_bin("haft");
    let run = |arguments: &str| {
        let home = desk.path("home");
        let line = format!("exec '{}' --home '{}' {arguments}", haft.display(), home.display());
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let words = "error: standard output is closed, and the result goes there\nhint: `> FILE` keeps it, `> /dev/null` does without\n";
    for flags in ["", "--json", "--explain"] {
        let (code, told) = run(&format!("call --from '{tool}' run {flags} >&-"));
        assert_eq!((code, &*told), (6, words), "{flags}");
    }
    assert!(!desk.path("home/audit").exists(), "nothing was run");
    for kept in ["> /dev/null", "<> /dev/null >&0", "| head -c 0"] {
        let (code, told) = run(&format!("call --from '{tool}' run {kept}"));
        assert_eq!((code, &*told), (0, ""), "{kept}");
    }
    assert_eq!(run("audit >&-"), (6, words.to_owned()));
}

/// A server whose tool answers with a picture.
fn picture(desk: &Desk) -> String {
    let example = repository().join("examples/install-manifest/dice-server");
    let server = std::fs::read_to_string(example.join("dice_server.py")).unwrap();
    let (from, to) = (
        r#"[{"type": "text", "text": json.dumps(result)}]"#,
        r#"[{"type": "image", "data": "AAECGw==", "mimeType": "image/png"}]"#,
    );
    assert!(server.contains(from), "{server}");
    let server = server.replace(from, to).replace(r#""structuredContent": result,"#, "");
    let server = server.replace(r#""outputSchema""#, r#""_meta""#);
    desk.write("picture/dice_server.py", &server);
    let manifest = std::fs::read_to_string(example.join("manifest.json")).unwrap();
    desk.write("picture/manifest.json", &manifest)
}

#[test]
fn bytes_that_no_terminal_shows_are_kept_in_a_file_whether_or_not_they_were_declared() {
    let desk = Desk::new();
    let declared = desk.install_manifest(r"printf '\000\001\002\033'", "binary", &json!([]));
    for (tool, action, kind) in
        [(picture(&desk), "roll", "4 bytes of image/png"), (declared, "show", "4 bytes")]
    {
        let here = desk.path(action);
        std::fs::create_dir(&here).unwrap();
        let mut command = std::process::Command::new("python3");
        command.arg(repository().join("crates/cli/tests/terminal.py")).arg("--");
        command.arg(assert_cmd::cargo::cargo_bin("haft")).arg("--home").arg(desk.path("home"));
        command.args(["call", "--from", &tool, action]).current_dir(&here);
        let output = command.output().unwrap();
        let screen = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{screen}");
        let [name] = &super::common::names(&here)[..] else { panic!("{screen}") };
        let id = name.strip_prefix("result-").and_then(|rest| rest.strip_suffix(".bin"));
        assert!(id.is_some(), "{name}");
        let words = format!("the result is {kind}, kept in `{name}`");
        assert!(screen.contains(&words) && !screen.contains('\u{1b}'), "{screen}");
        assert_eq!(std::fs::read(here.join(name)).unwrap(), [0, 1, 2, 0x1b]);
        // Anywhere else they are the result.
        let all = ["--home", desk.path("home").to_str().unwrap(), "call", "--from", &tool, action]
            .map(str::to_owned);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert_eq!(run_in(&here, &all, None).stdout.as_bytes(), [0, 1, 2, 0x1b]);
        assert_eq!(super::common::names(&here).len(), 1);
    }
}
