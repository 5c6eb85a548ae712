//! `haft doctor`: how strong the walls are here, which runtimes there are, and what to mend.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[macro_use]
mod walls;

use common::Ran;
use serde_json::{Value, json};
use walls::{Desk, is_root, ran};

for_everybody![
    the_walls_and_runtimes_are_told_as_json,
    the_same_is_told_as_text,
    the_home_is_told,
    without_namespaces_it_says_what_is_missing_and_nothing_is_run,
    where_nothing_is_to_fix_it_says_so,
];

fn the_walls_and_runtimes_are_told_as_json(desk: &Desk) {
    let ran = desk.haft(&["doctor", "--json"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let told = ran.json();
    assert_eq!(keys(&told), ["sandbox", "runtimes", "home"]);
    let sandbox = &told["sandbox"];
    assert_eq!(keys(sandbox), ["level", "required", "primitives", "remedies"]);
    assert_eq!(sandbox["required"], "L2");
    assert_eq!(
        keys(&sandbox["primitives"]),
        ["namespaces", "landlock", "seccomp", "control_groups"]
    );
    for name in ["namespaces", "landlock", "seccomp"] {
        assert_eq!(sandbox["primitives"][name]["works"], true, "{sandbox}");
        assert!(sandbox["primitives"][name]["kind"].is_string());
    }
    // L3 is L2 with control groups, which an ordinary user seldom has.
    let has_groups = sandbox["primitives"]["control_groups"]["works"] == true;
    assert_eq!(sandbox["level"], if has_groups { "L3" } else { "L2" });
    assert_eq!(sandbox["remedies"] == json!([]), has_groups, "{sandbox}");
    if !has_groups {
        let cause = sandbox["primitives"]["control_groups"]["cause"].as_str().unwrap();
        assert!(cause.starts_with("failed to "), "{cause}");
        assert!(sandbox["remedies"][0].as_str().unwrap().starts_with("for L3: "), "{sandbox}");
    }
    let runtimes = &told["runtimes"];
    assert_eq!(
        keys(runtimes),
        ["python3", "pip", "uv", "node", "npm", "git", "java", "podman", "docker"]
    );
    for name in ["python3", "node", "git"] {
        let found = &runtimes[name];
        assert_eq!(keys(found), ["path", "version", "inside"], "{name}");
        assert_eq!(found["inside"], true, "{name}: {found}");
        assert_eq!(found["version"], *version(desk, name), "{name}: {found}");
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("{value}")).keys().map(String::as_str).collect()
}

/// What a program outside the walls says of its version.
fn version(desk: &Desk, name: &str) -> String {
    let mut command = desk.command(name);
    command.arg("--version");
    let said = ran(command, b"").stdout;
    said.split_whitespace().last().unwrap().trim_start_matches('v').to_owned()
}

fn the_same_is_told_as_text(desk: &Desk) {
    let told = desk.haft(&["doctor", "--json"]).json();
    let ran = desk.haft(&["doctor"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let lines: Vec<_> = ran.stdout.lines().collect();
    let level = told["sandbox"]["level"].as_str().unwrap();
    assert_eq!(lines[0], format!("sandbox   {level} (L2 is required for local tools)"));
    assert_eq!(lines[1], "  namespaces      works    user, mount, pid, network, ipc, uts, cgroup");
    assert!(lines[2].starts_with("  landlock        works    ABI "), "{}", lines[2]);
    assert_eq!(lines[3], "  seccomp         works    filter");
    assert!(lines[4].starts_with("  control groups  "), "{}", lines[4]);
    assert!(lines.contains(&"runtimes"));
    for name in ["python3", "node", "git"] {
        let found = &told["runtimes"][name];
        let (version, path) = (found["version"].as_str().unwrap(), found["path"].as_str().unwrap());
        assert!(lines.contains(&&*format!("  {name:<15} {version}  {path}")), "{}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\x1b'));
    assert!(lines.iter().all(|line| line.trim_end() == *line), "{}", ran.stdout);
}

fn the_home_is_told(desk: &Desk) {
    let home = |desk: &Desk| desk.haft(&["doctor", "--json"]).json()["home"].clone();
    let path = desk.text("home");
    assert_eq!(
        home(desk),
        json!({"path": path, "exists": false, "private": false, "writable": true, "faults": []})
    );
    assert_eq!(last(&desk.haft(&["doctor"])), format!("home      {path} (not made yet)"));
    assert_eq!(desk.haft(&["key", "new", "alice", "--no-passphrase"]).code, 0);
    assert_eq!(
        home(desk),
        json!({"path": path, "exists": true, "private": true, "writable": true, "faults": []})
    );
    assert_eq!(
        last(&desk.haft(&["doctor"])),
        format!("home      {path} (only its owner can change it)")
    );
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(desk.path("home"), open).unwrap();
    assert_eq!(home(desk)["private"], false);
    assert_eq!(
        last(&desk.haft(&["doctor"])),
        format!("home      {path} (others can change it: chmod go-w it)")
    );
    // Tokens that others can read let nobody in.
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(desk.path("home"), private).unwrap();
    assert_eq!(desk.haft(&["token", "new", "laptop"]).code, 0);
    assert_eq!(home(desk)["faults"], json!([]));
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(desk.path("home/tokens.json"), open).unwrap();
    let fault = home(desk)["faults"][0].as_str().unwrap().to_owned();
    assert!(fault.contains("tokens.json") && fault.contains("chmod 600"), "{fault}");
    let ran = desk.haft(&["doctor"]);
    assert!(ran.code == 6 && ran.stderr.contains("lets nobody in"), "{}", ran.stderr);
}

fn last(ran: &Ran) -> String {
    ran.stdout.lines().last().unwrap().to_owned()
}

/// Runs `haft` where the kernel grants no namespaces.
fn without_namespaces(desk: &Desk, arguments: &[&str]) -> Ran {
    let mut command = desk.command("strace");
    command.args(["-f", "-o", "/dev/null", "-e", "trace=unshare"]);
    command.args(["-e", "inject=unshare:error=EPERM", desk.program()]).args(arguments);
    ran(command, b"")
}

fn without_namespaces_it_says_what_is_missing_and_nothing_is_run(desk: &Desk) {
    let ran = without_namespaces(desk, &["doctor"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_said!(ran.stderr, @"error: local tools need walls of L2, and these reach L1");
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "sandbox   L1 (L2 is required for local tools)");
    assert_eq!(
        lines[1],
        "  namespaces      missing  failed to make a user namespace: operation not permitted"
    );
    let python = lines.iter().find(|line| line.starts_with("  python3 ")).unwrap();
    assert!(python.contains("found, does not run inside the walls"), "{python}");
    let ran = without_namespaces(desk, &["doctor", "--json"]);
    assert_eq!((ran.code, &ran.json()["sandbox"]["level"]), (6, &json!("L1")));
    assert_eq!(ran.json()["runtimes"]["git"]["inside"], false);
    assert_eq!(ran.json()["runtimes"]["git"]["version"], Value::Null);

    desk.make_folder("out");
    let (out, made) = (desk.text("out"), desk.text("out/made"));
    for grants in [&["--write", &*out][..], &["--write", &out, "--allow-host", "ok.test"]] {
        let arguments = [&["sandbox"], grants, &["--", "touch", &made]].concat();
        let ran = without_namespaces(desk, &arguments);
        assert_eq!((ran.code, &*ran.stdout), (6, ""));
        let lines: Vec<_> = ran.stderr.lines().collect();
        assert_eq!(lines[0], "error: the walls of this machine reach L1, L2 is required");
        assert_eq!(
            lines[1],
            "  namespaces: failed to make a user namespace: operation not permitted"
        );
        let hint = "hint: `haft doctor` shows what is missing and how to get it";
        assert_eq!(lines.last(), Some(&hint));
        assert!(!desk.path("out/made").exists());
    }
}

fn where_nothing_is_to_fix_it_says_so(desk: &Desk) {
    // Elsewhere it would change the machine that runs the tests.
    assert_eq!(desk.haft(&["doctor"]).code, 0);
    let ran = desk.haft(&["doctor", "--fix"]);
    assert_eq!((ran.code, &*ran.stderr), (0, "there is nothing that --fix could do\n"));
    assert!(ran.stdout.starts_with("sandbox   L"), "{}", ran.stdout);
}

/// Runs a script in a user namespace below which there may be no other, as in a machine whose
/// owner forbade them. Nothing of the machine itself is changed.
fn where_they_are_forbidden(flags: &[&str], before: &str, after: &str) -> Ran {
    let desk = Desk::of_ours();
    let mut command = desk.command("unshare");
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces";
    let script =
        format!("{before} && {forbid} && \"$0\" doctor --fix; code=$?; {after}; exit $code");
    command.args(flags).args(["sh", "-c", &script, desk.program()]);
    ran(command, b"")
}

#[test]
fn an_ordinary_user_is_told_what_root_would_do_and_nothing_is_done() {
    let ordinary = ["--user", "--map-user=65534", "--keep-caps"];
    let ran = where_they_are_forbidden(&ordinary, "true", "cat /proc/sys/user/max_user_namespaces");
    assert_eq!((ran.code, &*ran.stdout), (4, "0\n"), "{}", ran.stderr);
    assert_said!(ran.stderr, @r"
    error: this needs root, once
      `sudo haft doctor --fix` sets user.max_user_namespaces = 15000, now and in /etc/sysctl.d/60-haft.conf
    hint: sudo haft doctor --fix
    ");
    assert!(!std::path::Path::new("/etc/sysctl.d/60-haft.conf").exists());
}

#[test]
fn root_changes_the_setting_now_and_for_good() {
    if !is_root() {
        return; // What root may is for root to try.
    }
    // A folder in memory stands for the settings of the machine.
    let root = ["--user", "--mount", "--map-root-user"];
    let ran = where_they_are_forbidden(
        &root,
        "mount -t tmpfs none /etc/sysctl.d",
        "cat /etc/sysctl.d/60-haft.conf /proc/sys/user/max_user_namespaces",
    );
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_said!(ran.stderr, @"done: `sudo haft doctor --fix` sets user.max_user_namespaces = 15000, now and in /etc/sysctl.d/60-haft.conf");
    assert!(ran.stdout.starts_with("sandbox   L"), "{}", ran.stdout);
    assert!(ran.stdout.contains("  namespaces      works "), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("user.max_user_namespaces = 15000\n15000\n"), "{}", ran.stdout);
    assert!(!std::path::Path::new("/etc/sysctl.d/60-haft.conf").exists());
}
