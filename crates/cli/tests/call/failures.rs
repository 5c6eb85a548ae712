//! What is told of a call that failed.

use serde_json::json;

use super::common::{repository, run_in};
use super::desk::{Desk, set_mode};

#[test]
fn a_tool_that_finds_no_network_or_says_many_things_is_understood() {
    let desk = Desk::new();
    let lost = desk
        .call(&[&desk.script("echo 'curl: (6) Could not resolve host: x.y' >&2; exit 6"), "run"]);
    assert_eq!(lost.code, 1);
    assert!(
        lost.stderr.contains(
            "hint: it reaches what it was granted and no other port: `haft grant agentcli:"
        ),
        "{}",
        lost.stderr
    );
    let broken = desk
        .call(&[&desk.script("printf 'Traceback:\\n  line 1\\nKeyError\\n' >&2; exit 1"), "run"]);
    assert!(broken.stderr.starts_with("error: Traceback:\n"), "{}", broken.stderr);
    assert!(
        broken.stderr.contains("  line 1\n") && !broken.stderr.contains("\\n"),
        "{}",
        broken.stderr
    );
}

#[test]
fn a_call_that_is_interrupted_ends_and_is_written_down() {
    let desk = Desk::new();
    let tool =
        desk.install_manifest("echo '{\"n\":1}'\nsleep 63.217\n", "ndjson-stream", &json!([]));
    let home = desk.path("home");
    for signal in ["INT", "TERM"] {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command.arg("--home").arg(&home).args(["call", "--from", &tool, "show"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = [0; 8];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        let kill = format!("kill -{signal} {}", child.id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{signal}");
        assert_eq!(String::from_utf8(ended.stderr).unwrap(), "cancelled\n", "{signal}");
    }
    let ran = run_in(&repository(), &["--home", home.to_str().unwrap(), "audit"], None);
    assert_eq!(ran.stdout.matches("cancelled").count(), 2, "{}", ran.stdout);
}

#[test]
fn whoever_runs_into_a_limit_is_told_the_number_and_the_key() {
    let desk = Desk::new();
    let fails = |tool: &str, more: &[&str], words: &str| {
        let ran = desk.call(&[&[tool], more].concat());
        assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    };
    let slow = desk.script("sleep 60");
    fails(
        &slow,
        &[],
        "error: tool timed out\nhint: it may take 2 s (set by `timeoutSec` in the manifest)\n",
    );
    fails(&slow, &["--timeout", "500ms"], "hint: it may take 500 ms (set by the caller)\n");
    desk.write("home/policy.toml", "[sandbox]\nmax_timeout = \"1s\"\n");
    fails(&slow, &["--timeout", "9"], "1 s (set by `max_timeout` of `[sandbox]` in policy.toml)");
    desk.write(
        "home/policy.toml",
        "[sandbox]\ntimeout = \"1s\"\noutput = \"64K\"\nmemory = \"64M\"\n",
    );
    let tool = |script: &str| desk.install_manifest(script, "text", &json!([]));
    fails(
        &tool("sleep 60"),
        &[],
        "error: the call took longer than 1 s (set by `timeout` of `[sandbox]` in policy.toml): the tool had not ended\n",
    );
    fails(
        &tool("head -c 100000 /dev/zero"),
        &[],
        "error: the tool wrote more than 64 KiB (set by `output` of `[sandbox]` in policy.toml)\n",
    );
    // Not held up by its time on a machine that is busy.
    desk.write("home/policy.toml", "[sandbox]\nmemory = \"64M\"\n");
    fails(
        &tool("head -c 200000000 /dev/zero | tail"),
        &[],
        "error: the tool used more memory than 64 MiB (set by `memory` of `[sandbox]` in policy.toml)\n",
    );
    fails(
        &tool("echo 'sh: Cannot fork' >&2; exit 2"),
        &[],
        "hint: it may have 512 processes at a time (set by `processes` of `[sandbox]` in policy.toml)\n",
    );
    desk.write("home/policy.toml", "[sandbox]\ntimeout = \"1s\"\n");
    let told = desk.call(&[&tool("sleep 60"), "--json"]).json();
    let limit = &told["error"]["details"]["limit"];
    assert_eq!((&limit["name"], &limit["allowed"]), (&json!("timeout"), &json!(1000)), "{told}");
}

#[test]
fn what_a_tool_said_is_shown_once_and_not_without_end() {
    let desk = Desk::new();
    let tool = |script: &str| desk.install_manifest(script, "text", &json!([]));
    let ran = desk.call(&[&tool("echo broken >&2; exit 3")]);
    assert_eq!(ran.stderr, "error: the tool ended with code 3: broken\n");
    let ran = desk.call(&[&tool("echo one >&2; echo two >&2; exit 3")]);
    assert_eq!(ran.stderr, "error: the tool ended with code 3\n  one\n  two\n");
    let many = tool("seq 1000 >&2; exit 3");
    let ran = desk.call(&[&many]);
    let mut lines = ran.stderr.lines();
    assert_eq!(lines.next(), Some("error: the tool ended with code 3"));
    assert_eq!(lines.next(), Some("  … (980 lines before these; --json has more)"));
    let numbers: Vec<u32> = lines.map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(numbers, (981..=1000).collect::<Vec<_>>());
    let told = desk.call(&[&many, "--json"]).json();
    assert!(told["error"]["details"]["stderr"].as_str().unwrap().starts_with("1\n2\n"), "{told}");
    let ran = desk
        .call(&[&tool("head -c 9000 /dev/zero | tr '\\0' x >&2; echo >&2; echo y >&2; exit 3")]);
    assert!(ran.stderr.len() < 600, "{}", ran.stderr);
    // A tools.json tool is quoted in full, and so is cut to what helps too.
    let ran = desk.call(&[&desk.script("seq 3000 >&2; exit 1")]);
    assert!(ran.stderr.starts_with("error: 1\n  … (2979 lines before"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("\n  2999\n  3000\n"), "{}", ran.stderr);
}

#[test]
fn what_a_python_function_said_before_it_raised_is_shown_without_its_secrets() {
    let desk = Desk::new();
    let python = json!({"kind": "python", "python": {"callable": "weather:now"}});
    let tool = desk.capability(&python, "none", &json!([{"name": "KEY", "ref": "secret://KEY"}]));
    let key = desk.run_with(&["secret", "set", "capability:demo.tool", "KEY"], Some(b"s3cret-key"));
    assert_eq!(key.code, 0, "{}", key.stderr);
    let text = "import os, sys\n\n\ndef now(given):\n    print('key', os.environ['KEY'], file=sys.stderr)\n    print('second')\n    raise KeyError('x')\n";
    desk.write("pkg/weather.py", text);
    let ran = desk.call(&[&tool]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let words = "error: KeyError: 'x' (weather.py:7)\n  key [secret KEY]\n  second\n";
    assert_eq!(ran.stderr, words);
    let told = desk.call(&[&tool, "--json"]).json();
    assert_eq!(told["error"]["details"]["stderr"], "key [secret KEY]\nsecond\n", "{told}");
}

#[test]
fn an_answer_that_is_none_is_shown_as_far_as_it_helps() {
    let desk = Desk::new();
    let tool = |script: &str| desk.install_manifest(script, "json", &json!([]));
    let ran = desk.call(&[&tool("printf '<html>\\n\\033[2J'")]);
    let words = "error: the answer is no JSON: expected a value, found `<` (line 1, column 1); it begins with \"<html>\\n\\u{1b}[2J\"\n";
    assert_eq!((ran.code, &*ran.stderr), (1, words));
    assert_eq!(desk.call(&[&tool("true")]).stderr, "error: the answer is no JSON: it is empty\n");
    let ran = desk.call(&[&tool("head -c 9000 /dev/zero | tr '\\0' x")]);
    assert!(ran.stderr.len() < 400 && ran.stderr.contains(&"x".repeat(200)), "{}", ran.stderr);
    // This is JSON, and still no answer.
    let ran = desk.call(&[&tool("printf '{\"id\":1,\"id\":2}'")]);
    let words = "error: the answer cannot be used: the key `id` appears twice in one object (line 1, column 9)\n";
    assert_eq!((ran.code, &*ran.stderr), (1, words));
}

#[test]
fn an_exception_of_a_python_function_says_where_it_is_from() {
    let desk = Desk::new();
    let python = json!({"kind": "python", "python": {"callable": "weather:now"}});
    let tool = desk.capability(&python, "none", &json!([]));
    let says = |text: &str| {
        desk.write("pkg/weather.py", text);
        let ran = desk.call(&[&tool]);
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        assert!(!ran.stderr.contains("/usr/") && !ran.stderr.contains("/var/"), "{}", ran.stderr);
        ran.stderr
    };
    assert_eq!(
        says("def now(given):\n    return {}['x']\n"),
        "error: KeyError: 'x' (weather.py:2)\n"
    );
    // What it calls is not its own.
    let deep = "import json\n\n\ndef now(given):\n    return json.loads('x')\n";
    assert!(says(deep).ends_with("(weather.py:5)\n"));
    assert!(says("def now(given):\n    return [}\n").ends_with("(weather.py:2)\n"));
    assert!(says("import no_such_thing\n").ends_with("(weather.py:1)\n"));
}

#[test]
fn whoever_is_not_there_is_named_and_no_more_of_the_address() {
    let desk = Desk::new();
    let (place, secret) = ("127.0.0.1:9", "k3y");
    let url = format!("http://{place}/x?key={secret}");
    let fails = |file: &str, package: &str| {
        desk.done(&["grant", package, "--host", place]);
        let (_, name) = package.split_once(':').unwrap();
        let ran = desk.call(&[file, name, "--timeout", "20"]);
        assert_eq!(ran.code, 6, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(&format!("`{place}`")), "{}", ran.stderr);
        assert!(!ran.stderr.contains(secret), "{}", ran.stderr);
    };
    let mut http = json!({
        "toolId": "demo.web", "name": "Demo", "version": "1.0.0", "description": "Asks.",
        "capabilities": ["demo"], "endpoint": {"type": "http", "method": "GET", "url": url},
        "input_schema": {"type": "object"}, "output_schema": {},
    });
    fails(&desk.write("http/tool.json", &http.to_string()), "mcpkg:demo.web");
    let names = ["TOKEN_URL", "CLIENT_ID", "CLIENT_SECRET"];
    http["auth"] = json!({"type": "oauth2", "scopes": [], "configHints": {"env": names}});
    http["endpoint"]["url"] = "https://example.com/".into();
    for name in names {
        let set = desk.run_with(&["secret", "set", "mcpkg:demo.web", name], Some(url.as_bytes()));
        assert_eq!(set.code, 0, "{}", set.stderr);
    }
    fails(&desk.write("http/tool.json", &http.to_string()), "mcpkg:demo.web");
    let server = json!({
        "manifest_version": "0.2",
        "tool": {
            "id": "demo", "version": "1.0.0", "name": "Demo", "summary": "Asks.",
            "homepage": "https://example.com/",
        },
        "runtime": {
            "kind": "mcp-http", "endpoint_url": url,
            "install": {"method": "npm", "package": "demo", "version_spec": "1.0.0"},
        },
        "actions": [{
            "name": "demo", "summary": "Asks.",
            "invocation": {"kind": "mcp-tool", "tool_name": "demo"},
            "input": {"type": "object"}, "output": {"format": "json"}, "side_effects": "none",
        }],
        "smoke": {"kind": "http", "url": "https://example.com/", "success": {"http_status": 200}},
        "kill_switch": {"kind": "manual", "instructions_url": "https://example.com/"},
    });
    fails(&desk.write("mcp/install.json", &server.to_string()), "install-manifest:demo");
    let agent = json!({"kind": "a2a_rpc", "a2a": {"endpoint": url}});
    let manifest = desk.capability(&agent, "none", &json!([]));
    let text = std::fs::read_to_string(manifest).unwrap();
    let open = r#""network":"allowlist","network_allowlist":["127.0.0.1"]"#;
    let text = text.replace(r#""network":"deny""#, open).replace("demo.tool", "demo");
    fails(&desk.write("a2a/manifest.json", &text), "capability:demo");
}

#[test]
fn an_image_that_nobody_has_is_told_with_what_would_get_it() {
    let desk = Desk::new();
    let tool = |image: &str| {
        let text = std::fs::read_to_string(desk.install_manifest("", "text", &json!([]))).unwrap();
        let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        manifest["runtime"]["kind"] = "container".into();
        manifest["runtime"]["install"] = json!({"method": "container", "image": image});
        desk.write("installed/agent.json", &manifest.to_string())
    };
    desk.write("home/policy.toml", "[containers]\norder = [\"image\"]\n");
    let image = format!("registry.example.com/acme/tool@sha256:{}", "0".repeat(64));
    let pinned = tool(&image);
    for more in [&[][..], &["--explain"]] {
        let ran = desk.call(&[&[&*pinned], more].concat());
        assert_eq!(ran.code, 6, "{}", ran.stderr);
        let to = desk.path("home/images/NAME.tar");
        let command = format!("skopeo copy docker://{image} oci-archive:{}", to.display());
        assert!(ran.stderr.contains(&command), "{}", ran.stderr);
        assert!(ran.stderr.contains("hold neither an OCI layout nor"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("haft keeps its files"), "{}", ran.stderr);
    }
    // An engine that does not have it is one way; the files of it are the other, if the policy has it.
    let bin = desk.write("bin/podman", "#!/bin/sh\necho 'Error: no such image' >&2\nexit 125\n");
    let bin = std::path::Path::new(&bin).parent().unwrap().display();
    let search = format!("{bin}:{}", std::env::var("PATH").unwrap());
    for (order, has_copy) in [(r#"["image", "engine"]"#, true), (r#"["engine"]"#, false)] {
        desk.write("home/policy.toml", &format!("[containers]\norder = {order}\n"));
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command.env("PATH", &search).arg("--home").arg(desk.path("home"));
        let output = command.args(["call", "--from", &pinned]).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let hints: Vec<_> = told.lines().filter(|line| line.starts_with("hint: ")).collect();
        assert_eq!(hints.len(), 1 + usize::from(has_copy), "{told}");
        assert_eq!(hints[0], format!("hint: `podman pull {image}` gets it for podman"), "{told}");
        assert_eq!(told.contains("hint: `skopeo copy "), has_copy, "{told}");
    }
}

#[test]
fn a_call_that_cannot_be_written_down_is_told_once_and_why() {
    let desk = Desk::new();
    desk.write("home/audit", "");
    let ran = desk.call(&[&desk.script("cat"), "run"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (6, ""), "{}", ran.stderr);
    let words = "error: the call cannot be written down, so it is not made: ";
    let [why, hint] = ran.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{}", ran.stderr) };
    assert!(why.starts_with(words) && why.contains("(os error "), "{why}");
    assert!(hint.starts_with("hint: haft keeps its files in `"), "{hint}");
}

#[test]
fn a_program_that_may_not_be_executed_is_told_with_what_would_let_it() {
    let desk = Desk::new();
    let tool = desk.script("echo '{}'");
    let program = desk.path("pkg/tools/bin/run");
    set_mode(&program, 0o644);
    let path = program.to_str().unwrap();
    let ran = desk.call(&[&tool, "run"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(
        ran.stderr,
        format!(
            "error: `{path}` is not a program that can be executed\nhint: `chmod +x {path}` lets it be executed\n"
        )
    );
}

#[test]
fn a_script_that_cannot_be_executed_is_told_by_its_first_line() {
    let desk = Desk::new();
    let from = desk.script("");
    let call = |text: &str| {
        let script = desk.write("pkg/tools/bin/run", text);
        let ran = desk.call(&[&from, "run"]);
        assert_eq!(ran.code, 6, "{}", ran.stderr);
        ran.stderr.replace(&script, "SCRIPT")
    };
    let begin = "error: failed to execute `SCRIPT` inside the walls: ";
    assert_eq!(
        call("#!/opt/haft-not-there/python -u\nprint(1)\n"),
        format!(
            "{begin}its first line asks for `/opt/haft-not-there/python`, which is not inside the walls\n\
             hint: write one that is inside the walls into its first line, such as `/bin/sh`\n\
             hint: /opt/haft-not-there/python is not inside its walls; if it is there, \
             `haft grant agentcli:pkg --read /opt/haft-not-there/python` allows it\n"
        )
    );
    assert_eq!(
        call("#!/bin/sh\r\necho '{}'\r\n"),
        format!(
            "{begin}its first line ends with a carriage return, and what it asks for is not inside the walls\n\
             hint: save it with the line ends of Unix\n"
        )
    );
    assert_eq!(
        call("echo '{}'\n"),
        format!(
            "{begin}it has no first line such as `#!/bin/sh`\n\
             hint: write the program that runs it into a first line, after `#!`\n"
        )
    );
}
