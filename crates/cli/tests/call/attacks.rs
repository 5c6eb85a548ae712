//! What a package, or whoever is beside the owner, tries to be given that nobody granted.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::common::{Ran, repository, run_in};
use super::desk::{Desk, set_mode, shell};

/// What must not come out.
const CANARY: &str = "c4nary-0f-the-owner";

const PACKAGE: &str = "capability:demo.tool";

/// A home with something in it that nobody is given.
fn keeping() -> Desk {
    let desk = Desk::new();
    desk.write("home/vault/key", CANARY);
    set_mode(&desk.path("home/vault"), 0o700);
    set_mode(&desk.path("home/vault/key"), 0o600);
    desk
}

/// A call after which nobody knows the canary.
fn attack(desk: &Desk, from: &str, name: &str) -> Ran {
    let ran = desk.call(&[from, name, "{}"]);
    assert!(!ran.stdout.contains(CANARY), "{}", ran.stdout);
    assert!(!ran.stderr.contains(CANARY), "{}", ran.stderr);
    ran
}

/// A call that must be denied in these words.
fn denied(desk: &Desk, from: &str, name: &str, words: &str) -> Ran {
    let ran = attack(desk, from, name);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    ran
}

/// A tools.json with one tool that is this command.
fn tools_json(desk: &Desk, command: &[&str]) -> String {
    let tools = json!({"tools": [{"name": "run", "command": command}]});
    desk.write("repo/tools.json", &tools.to_string())
}

#[test]
fn the_folder_of_a_tools_json_leads_nowhere_else() {
    let desk = keeping();
    let key = desk.path("home/vault/key");
    let tool = tools_json(&desk, &["/usr/bin/cat", key.to_str().unwrap()]);
    let link = desk.path("repo/tools");
    for target in [desk.path("home/vault"), desk.path("home"), desk.path("")] {
        symlink(&target, &link).unwrap();
        denied(&desk, &tool, "run", "is a link");
        std::fs::remove_file(&link).unwrap();
    }
    std::fs::create_dir(&link).unwrap();
    attack(&desk, &tool, "run");
    // Nor does the folder of its programs.
    desk.write("elsewhere/cat", "#!/bin/sh\necho \"{}\"\n");
    set_mode(&desk.path("elsewhere/cat"), 0o755);
    symlink(desk.path("elsewhere"), desk.path("repo/tools/bin")).unwrap();
    let tool = tools_json(&desk, &["./tools/bin/cat"]);
    denied(&desk, &tool, "run", "leads out of tools/bin");
}

#[test]
fn no_package_lies_among_what_is_haft_s_own() {
    let desk = keeping();
    let manifest = desk.capability(&shell("cat key"), "none", &json!([]));
    let moved = desk.path("home/vault/manifest.json");
    std::fs::rename(manifest, &moved).unwrap();
    denied(&desk, moved.to_str().unwrap(), "demo.tool", "is haft's own");
}

#[test]
fn a_variable_of_the_owner_is_given_where_it_was_granted() {
    let desk = keeping();
    let call = |env: &Value, more: &[(&str, &str)]| {
        let tool = desk.install_manifest(
            "printf '\"%s\"' \"${AWS_SECRET_ACCESS_KEY-nothing}\"",
            "json",
            env,
        );
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command.arg("--home").arg(desk.path("home")).args(["--non-interactive", "call", "--from"]);
        command.args([&tool, "show", "{}"]).env("AWS_SECRET_ACCESS_KEY", CANARY);
        let output = command.envs(more.iter().copied()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let variable = |name: &str, more: Value| {
        let mut one =
            json!({"name": name, "secret": false, "required": false, "prompt": "A text."});
        one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([one])
    };
    let key = "AWS_SECRET_ACCESS_KEY";
    let (code, stdout, stderr) = call(&variable(key, json!({})), &[]);
    assert_eq!((code, &*stdout), (0, "\"nothing\"\n"), "{stderr}");
    let (_, stdout, stderr) = call(&variable(key, json!({"default": "its own"})), &[]);
    assert_eq!(stdout, "\"its own\"\n", "{stderr}");
    let (code, _, stderr) = call(&variable(key, json!({"required": true})), &[]);
    assert_eq!(code, 2, "{stderr}");
    let words = "`haft grant install-manifest:demo-tool --env AWS_SECRET_ACCESS_KEY`";
    assert!(stderr.contains(words), "{stderr}");
    // What steers programs is not passed on, wherever it comes from.
    let steering = variable("NODE_OPTIONS", json!({"default": "--require ./x.js"}));
    let (code, _, stderr) = call(&steering, &[]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("NODE_OPTIONS"), "{stderr}");
    let unset = variable("SSH_AUTH_SOCK", json!({}));
    assert_eq!(call(&unset, &[("SSH_AUTH_SOCK", "/run/agent")]).0, 0);
    desk.done(&["grant", "install-manifest:demo-tool", "--env", key]);
    let (_, stdout, stderr) = call(&variable(key, json!({"required": true})), &[]);
    assert_eq!(stdout, format!("\"{CANARY}\"\n"), "{stderr}");
}

#[test]
fn a_reference_to_a_file_reads_what_the_walls_would_show() {
    let desk = keeping();
    let all = desk.path("");
    let call = |file: &str, filesystem: &str| {
        let secrets = json!([{"name": "TOKEN", "ref": format!("file://{file}")}]);
        attack(
            &desk,
            &desk.capability(&shell("printf %s ${#TOKEN}"), filesystem, &secrets),
            "demo.tool",
        )
    };
    let open = desk.write("open/token", CANARY);
    let hidden = desk.write("hidden/token", CANARY);
    let policy = format!("[folders]\ndeny = [\"{}\"]\n", desk.path("hidden").display());
    desk.write("home/policy.toml", &policy);
    symlink(&hidden, desk.path("open/link")).unwrap();
    desk.done(&["grant", PACKAGE, "--read", all.to_str().unwrap()]);
    assert_eq!(call(&open, "read").json(), json!(CANARY.len()));
    let link = desk.path("open/link");
    let key = desk.path("home/vault/key");
    for file in [&*hidden, link.to_str().unwrap(), key.to_str().unwrap()] {
        let ran = call(file, "read");
        assert_eq!(ran.code, 4, "{file}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("haft's own, or your policy hides it"), "{}", ran.stderr);
    }
    // A package that wants no folders is given the one file that was granted by its path.
    assert_eq!(call(&open, "none").code, 4);
    desk.done(&["grant", PACKAGE, "--read", &open]);
    assert_eq!(call(&open, "none").json(), json!(CANARY.len()));
}

#[test]
fn a_folder_that_becomes_a_link_is_not_granted_any_more() {
    let desk = keeping();
    desk.write("project/data/file", "1");
    desk.write("other/file", CANARY);
    let data = desk.path("project/data");
    let script = format!("cat {}/file", data.display());
    let manifest = desk.capability(&shell(&script), "read", &json!([]));
    desk.done(&["grant", PACKAGE, "--read", data.to_str().unwrap()]);
    assert_eq!(attack(&desk, &manifest, "demo.tool").json(), json!(1));
    std::fs::rename(&data, desk.path("project/moved")).unwrap();
    symlink(desk.path("other"), &data).unwrap();
    let ran = denied(&desk, &manifest, "demo.tool", "was granted, and leads to");
    let flags = format!("haft ungrant {PACKAGE} --read {}", data.display());
    assert!(ran.stderr.contains(&flags), "{}", ran.stderr);
    desk.done(&["ungrant", PACKAGE, "--read", data.to_str().unwrap()]);
    assert_eq!(attack(&desk, &manifest, "demo.tool").code, 1, "it is not there");
    // What the policy names is the owner's own word, and may be a link.
    desk.write("other/file", "2");
    desk.write("home/policy.toml", &format!("[folders]\nread = [\"{}\"]\n", data.display()));
    let script = format!("cat {}/file", desk.path("other").display());
    let manifest = desk.capability(&shell(&script), "read", &json!([]));
    assert_eq!(attack(&desk, &manifest, "demo.tool").json(), json!(2));
}

#[test]
fn a_project_with_a_virtual_environment_is_not_opened_by_a_path() {
    let desk = keeping();
    desk.write("project/pyvenv.cfg", "home = /usr/bin\n");
    desk.write("project/bin/other", "");
    std::fs::copy("/bin/cat", desk.path("project/bin/cat")).unwrap();
    let program = desk.path("project/bin/cat");
    for name in ["project/src/app.py", "project/conf/db.ini", "project/lib/key"] {
        let file = desk.write(name, CANARY);
        let tool = tools_json(&desk, &[program.to_str().unwrap(), &file]);
        assert_eq!(attack(&desk, &tool, "run").code, 1, "{name}");
    }
}

#[test]
fn a_home_that_others_may_write_says_nothing() {
    let desk = keeping();
    let manifest = desk.capability(&shell("echo 1"), "none", &json!([]));
    desk.done(&["grant", PACKAGE, "--host", "example.com"]);
    assert_eq!(attack(&desk, &manifest, "demo.tool").code, 0);
    for (name, mode) in [("home", 0o777), ("home/state.db", 0o666), ("home/audit", 0o770)] {
        let path = desk.path(name);
        let before = path.metadata().unwrap().permissions();
        set_mode(&path, mode);
        for arguments in [
            &["call", "--from", &manifest, "demo.tool", "{}"][..],
            &["grant", PACKAGE],
            &["policy", "check"],
            &["secret", "list"],
            &["approve", "rules"],
        ] {
            let ran = desk.run(arguments);
            assert_eq!(ran.code, 4, "{name} {arguments:?}: {}{}", ran.stdout, ran.stderr);
            let words = format!("chmod go-w {}", path.display());
            assert!(ran.stderr.contains(&words), "{name} {arguments:?}: {}", ran.stderr);
        }
        std::fs::set_permissions(&path, before).unwrap();
    }
    assert_eq!(attack(&desk, &manifest, "demo.tool").code, 0);
}

#[test]
fn whoever_keeps_a_shared_secret_is_told_so() {
    let desk = keeping();
    std::fs::remove_dir_all(desk.path("home/vault")).unwrap();
    let home = desk.path("home");
    let keep = |name: &str| {
        let home = home.to_str().unwrap();
        let all = ["--home", home, "secret", "set", "jumith:tool:demo", name];
        run_in(&repository(), &all, Some(b"value-of-it")).stderr
    };
    assert!(keep("bank.key").contains("every Jumith tool whose manifest names it"));
    assert!(!keep("own").contains("every Jumith tool"));
}

#[test]
fn what_is_kept_for_a_package_is_for_the_folder_it_was_called_from() {
    let desk = keeping();
    std::fs::remove_dir_all(desk.path("home/vault")).unwrap();
    let secrets = json!([{"name": "TOKEN", "ref": "secret://TOKEN"}]);
    let own = desk.capability(&shell("printf %s ${#TOKEN}"), "none", &secrets);
    let text = std::fs::read_to_string(&own).unwrap();
    let spoof = desk.write("spoof/manifest.json", &text.replace("printf %s ${#TOKEN}", "echo 1"));
    // While nothing is kept, a copy is as good as any.
    let plain = text.replace("secret://TOKEN", "secret://OTHER").replace("demo.tool", "demo.plain");
    for folder in ["one", "two"] {
        let manifest = desk.write(&format!("{folder}/manifest.json"), &plain);
        assert_eq!(attack(&desk, &manifest, "demo.plain").code, 2, "a secret is missing");
    }
    let home = desk.path("home");
    let keep = ["--home", home.to_str().unwrap(), "secret", "set", PACKAGE, "TOKEN"];
    assert_eq!(run_in(&repository(), &keep, Some(CANARY.as_bytes())).code, 0);
    assert_eq!(attack(&desk, &own, "demo.tool").json(), json!(CANARY.len()));
    let ran = denied(&desk, &spoof, "demo.tool", "was called from");
    let place = desk.path("spoof");
    let words = format!("haft grant {PACKAGE} --from {}", place.display());
    assert!(ran.stderr.contains(&words), "{}", ran.stderr);
    let plan = desk.result(&[&spoof, "demo.tool", "{}", "--explain", "--json"]);
    assert_eq!(plan["decision"], "denied", "{plan}");
    assert!(plan["hints"][0].as_str().unwrap().contains(&words), "{plan}");
    assert_eq!(attack(&desk, &own, "demo.tool").code, 0);
    desk.done(&["grant", PACKAGE, "--from", place.to_str().unwrap()]);
    assert_eq!(attack(&desk, &spoof, "demo.tool").json(), json!(1));
    assert_eq!(attack(&desk, &own, "demo.tool").code, 0);
    desk.done(&["ungrant", PACKAGE, "--from", place.to_str().unwrap()]);
    denied(&desk, &spoof, "demo.tool", "was called from");
}

#[test]
fn an_archive_is_known_by_its_own_path() {
    let desk = keeping();
    std::fs::remove_dir_all(desk.path("home/vault")).unwrap();
    let packed = desk.path("one.mcpkg");
    let packed = packed.to_str().unwrap();
    desk.done(&["pack", "examples/mcpkg/echo", "--output", packed]);
    desk.done(&["grant", "mcpkg:demo.echo", "--host", "example.com"]);
    for _ in 0..2 {
        desk.done(&["call", "--from", packed, "demo.echo", r#"{"message":"hello"}"#]);
    }
    let other = desk.path("two.mcpkg");
    std::fs::copy(packed, &other).unwrap();
    let arguments = ["call", "--from", other.to_str().unwrap(), "demo.echo", r#"{"message":"x"}"#];
    assert_eq!(desk.run(&arguments).code, 4);
}
