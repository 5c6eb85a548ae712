//! The newcomer's command.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Desk, run_in};
use crate::gate::Gate;

/// Begins it in the home of the desk, and what it says.
fn begin(desk: &Desk) -> (Gate, Value) {
    begin_at(desk, &["--home", desk.path("home").to_str().unwrap()])
}

/// Starts it where these words lead.
fn start(desk: &Desk, place: &[&str]) -> Child {
    start_as(desk, place, "--default-signal=HUP")
}

/// The same, by whoever says what becomes of the end of the terminal.
fn start_as(desk: &Desk, place: &[&str], terminal: &str) -> Child {
    let mut command = Command::new("env");
    command.arg(terminal).arg(assert_cmd::cargo::cargo_bin("haft"));
    command.args(place).args(["up", "--listen", "127.0.0.1:0", "--json"]).env_remove("HAFT_HOME");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).env("TMPDIR", desk.0.path());
    command.current_dir(desk.0.path()).spawn().unwrap()
}

/// Begins it where these words lead, and what it says.
fn begin_at(desk: &Desk, place: &[&str]) -> (Gate, Value) {
    begun(start(desk, place))
}

/// What it says once it serves.
fn begun(mut process: Child) -> (Gate, Value) {
    let mut out = BufReader::new(process.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains('}') {
        assert!(out.read_line(&mut said).unwrap() > 0, "it ended: {said}");
    }
    let told: Value = serde_json::from_str(&said).unwrap();
    let url = told["mcp"].as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    (Gate { process, address, console: None }, told)
}

/// Signs in as the address of the console says, and the headers by which a browser is known from then on.
fn sign_in(gate: &Gate, told: &Value) -> String {
    let (_, code) = told["console"].as_str().unwrap().rsplit_once('/').unwrap();
    let origin = format!("http://{}", gate.address);
    let entered = gate.send("POST", "/sign-in", &[("origin", &origin)], &format!("code={code}"));
    assert_eq!(entered.status, 303, "{}", entered.body);
    let cookie = &entered.headers["set-cookie"];
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn the_first_page_after_the_plain_command_explains_itself() {
    let desk = Desk::new();
    let (gate, told) = begin_at(&desk, &[]);
    assert_eq!(left(&desk).len(), 1);
    // Whoever looks for the console elsewhere is led there.
    let mut console = Command::new(assert_cmd::cargo::cargo_bin("haft"));
    console.arg("--home").arg(desk.path("home")).arg("console").env("TMPDIR", desk.0.path());
    let said = String::from_utf8(console.output().unwrap().stderr).unwrap();
    let there = desk.0.path().join(&left(&desk)[0]).join("home").display().to_string();
    assert!(said.contains(&format!("`export HAFT_HOME={there}` leads to")), "{said}");
    // Whoever connects a client to what will be gone is told.
    let home = desk.0.path().join(&left(&desk)[0]).join("home");
    let mut connect = Command::new(assert_cmd::cargo::cargo_bin("haft"));
    connect.arg("--home").arg(home).args(["connect", "claude-code", "--dry-run"]);
    let connected = connect.env("HOME", desk.0.path()).output().unwrap();
    let said = String::from_utf8(connected.stderr).unwrap();
    assert!(said.contains("this home is gone when `haft up` ends"), "{said}");
    // So is whoever looks at, or makes something for, another home than the one that they see.
    for words in [&["approve", "list"][..], &["approve", "allow", "0123"], &["token", "new", "me"]]
    {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command.arg("--home").arg(desk.path("home")).args(words).env("TMPDIR", desk.0.path());
        let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert!(
            said.contains(&format!("`export HAFT_HOME={there}` leads to")),
            "{words:?}: {said}"
        );
    }
    assert_eq!(told["home"], there);
    let cookie = sign_in(&gate, &told);
    let page = |path: &str| {
        let shown = gate.send("GET", path, &[("cookie", &cookie)], "");
        assert_eq!(shown.status, 200, "{path}: {}", shown.body);
        shown.body
    };
    let first = page("/");
    for words in ["What this is", "Nothing needs you", "3 tools installed · 0 calls today"] {
        assert!(first.contains(words), "{words}: {first}");
    }
    // Where tools are, none has to be installed first.
    assert!(
        first.contains("haft connect CLIENT") && !first.contains("installing a tool"),
        "{first}"
    );
    // Nobody called anything; what the tests of its tools did is written down with all else.
    assert!(!first.contains("test</bdi>"), "{first}");
    assert!(page("/calls?surface=test").contains("demo.echo"));
    // The explanation goes with the first call, and the folder with the command.
    let home = desk.0.path().join(&left(&desk)[0]).join("home");
    let home = home.to_str().unwrap();
    let call = ["--home", home, "call", "demo.echo", r#"{"message":"hi"}"#];
    assert_eq!(run_in(desk.0.path(), &call, None).code, 0);
    let later = page("/");
    assert!(!later.contains("What this is") && later.contains("1 call today"), "{later}");
    end(gate);
    assert_eq!(left(&desk), Vec::<String>::new());
    // Whoever still names it makes nothing there.
    let late = run_in(desk.0.path(), &["--home", home, "token", "new", "late"], None);
    assert_eq!(late.code, 3, "{}", late.stderr);
    assert!(late.stderr.contains("was the home of a `haft up` that has ended"), "{}", late.stderr);
    assert_eq!(left(&desk), Vec::<String>::new());
}

#[test]
fn one_command_has_a_registry_a_gateway_and_tools_that_work() {
    let desk = Desk::new();
    let home = desk.path("home");
    let (gate, told) = begin(&desk);
    assert!(told["console"].as_str().unwrap().contains("/sign-in/"), "{told}");
    let listed = desk.done(&["list", "--json"]).json();
    let packages = listed["packages"].as_array().or(listed.as_array()).unwrap();
    assert_eq!(packages.len(), 3, "{listed}");
    let found = desk.done(&["search", "count words", "--json"]).json();
    assert!(found.to_string().contains("demo.text.stats"), "{found}");
    let token = format!("Bearer {}", desk.done(&["token", "new", "me"]).stdout.trim());
    // What does not say what it changes is asked about the first time.
    let call = |tool: &str, arguments: Value| {
        let call = json!({ "name": tool, "arguments": arguments });
        let ask = || {
            let own = [("authorization", &*token)];
            gate.ask_as("/mcp", &own, &json!({}), "tools/call", call.clone()).last()["result"]
                .clone()
        };
        let asked = ask();
        let ticket = asked["structuredContent"]["error"]["details"]["ticket"].as_str();
        desk.done(&["approve", "allow", ticket.unwrap_or_else(|| panic!("{asked}"))]);
        ask()
    };
    let answer = call("demo_echo", json!({ "message": "hi" }));
    assert_eq!(answer["structuredContent"]["message"], "hi", "{answer}");
    // A tool of the registry is installed by a token that may, and by no other.
    let installer = desk.done(&["token", "new", "ci", "--role", "installer"]);
    let installer = format!("Bearer {}", installer.stdout.trim());
    let install = |token: &str, id: &str| {
        let body = json!({ "id": id }).to_string();
        gate.send("POST", "/capability/install", &[("authorization", token)], &body)
    };
    assert_eq!(install(&token, "demo.text.stats").status, 403);
    for odd in ["./echo", "/etc/hosts", "https://example.com/a.b", "etc"] {
        assert_eq!(install(&installer, odd).status, 400, "{odd}");
    }
    let missing = install(&installer, "demo.nothing");
    assert_eq!(missing.status, 404, "{}", missing.body);
    assert!(missing.body.contains(r#""code":"not_found""#), "{}", missing.body);
    let installed = install(&installer, "demo.text.stats");
    assert_eq!(installed.status, 200, "{}", installed.body);
    let answer = call("demo_text_stats", json!({ "text": "one two" }));
    assert!(answer["structuredContent"].is_object(), "{answer}");
    let removed = gate.send(
        "DELETE",
        "/capability/remove/demo.text.stats",
        &[("authorization", &installer)],
        "",
    );
    assert_eq!(removed.status, 200, "{}", removed.body);
    let reset = |token: &str| {
        gate.send("POST", "/capability/factory_reset", &[("authorization", token)], "").status
    };
    assert_eq!((reset(&token), reset(&installer)), (403, 403));
    // What was installed stays in a home that was named, and nothing of the registry does.
    end(gate);
    assert_eq!(desk.done(&["registry", "list", "--json"]).json(), json!({ "registries": [] }));
    assert_eq!(desk.done(&["key", "list"]).stdout, "");
    assert_eq!(desk.done(&["list", "--json"]).json(), listed);
    for gone in ["registry", "examples"] {
        assert!(!home.join(gone).exists(), "{gone}");
    }
    assert_eq!(left(&desk), Vec::<String>::new());
    // It can be begun there again.
    let (gate, _) = begin(&desk);
    let found = desk.done(&["search", "count words", "--json"]).json();
    assert!(found.to_string().contains("demo.text.stats"), "{found}");
    end(gate);
    assert_eq!(desk.done(&["list", "--json"]).json(), listed);
}

/// Ends it as its owner does, and waits until it has.
fn end(mut gate: Gate) {
    tell(&gate.process, "-INT");
    assert!(gate.process.wait().unwrap().success());
}

/// Sends it alone a signal.
fn tell(process: &Child, signal: &str) {
    Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap();
}

#[test]
fn who_stops_it_before_it_serves_finds_nothing_left() {
    let desk = Desk::new();
    let home = desk.path("home");
    let named = ["--home", home.to_str().unwrap()];
    // While it signs and publishes, and while it installs.
    for (place, signal, sign) in [
        (&[][..], "-TERM", "A registry is at"),
        (&[][..], "-INT", "Signed, tested and published"),
        (&named[..], "-HUP", "Installed"),
    ] {
        let mut process = start(&desk, place);
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with(sign) {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "{sign}: it ended");
        }
        tell(&process, signal);
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        process.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(process.wait().unwrap().code(), Some(130), "{sign}: {rest}");
        assert!(rest.contains("cancelled"), "{sign}: {rest}");
        assert_eq!(left(&desk), Vec::<String>::new(), "{sign}");
    }
    assert_eq!(desk.done(&["registry", "list", "--json"]).json(), json!({ "registries": [] }));
    assert_eq!(desk.done(&["key", "list"]).stdout, "");
    assert!(!home.join("lent").exists());
}

#[test]
fn who_began_it_to_outlive_their_terminal_has_it_go_on() {
    let desk = Desk::new();
    let home = desk.path("home");
    let place = ["--home", home.to_str().unwrap()];
    let (gate, told) = begun(start_as(&desk, &place, "--ignore-signal=HUP"));
    assert_eq!(told["home"], place[1]);
    tell(&gate.process, "-HUP");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(gate.send("GET", "/healthz", &[], "").status, 200);
    // Who would serve the same home at the same place is told that it is served, and by whom.
    let serve = ["serve", "--listen", &gate.address];
    desk.refused(&serve, 5, "`haft serve` or `haft up` serves this home already at http://");
    end(gate);
}

#[test]
fn what_a_killed_one_left_is_taken_back_by_the_next() {
    let desk = Desk::new();
    let (mut gate, _) = begin(&desk);
    tell(&gate.process, "-KILL");
    gate.process.wait().unwrap();
    let dead = left(&desk);
    assert_eq!(dead.len(), 1);
    assert!(desk.done(&["key", "list"]).stdout.contains("demo"));
    // What the owner has put under the same name since is not what was lent.
    desk.done(&["registry", "rm", "demo"]);
    desk.done(&["registry", "add", "demo", "http://127.0.0.1:1"]);
    let up = ["up", "--listen", "127.0.0.1:0"];
    desk.refused(&up, 5, "registry `demo` already");
    assert_eq!(desk.done(&["key", "list"]).stdout, "");
    desk.done(&["registry", "rm", "demo"]);
    let (gate, _) = begin(&desk);
    let alive = left(&desk);
    assert!(alive.len() == 1 && alive != dead, "{dead:?} {alive:?}");
    end(gate);
    assert_eq!(left(&desk), Vec::<String>::new());
    assert_eq!(desk.done(&["registry", "list", "--json"]).json(), json!({ "registries": [] }));
}

/// What is left where folders for a moment are made.
fn left(desk: &Desk) -> Vec<String> {
    let all = std::fs::read_dir(desk.0.path()).unwrap().map(|one| one.unwrap().file_name());
    all.map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with("haft-up-"))
        .collect()
}

#[test]
fn what_the_owner_calls_like_the_demonstration_stays_theirs() {
    let desk = Desk::new();
    desk.done(&["registry", "add", "demo", "http://127.0.0.1:1"]);
    let up = ["up", "--listen", "127.0.0.1:0"];
    desk.refused(&up, 5, "registry `demo` already");
    desk.done(&["registry", "rm", "demo"]);
    desk.done(&["key", "new", "demo", "--no-passphrase"]);
    desk.refused(&up, 5, "key `demo` already");
    // Nobody is led to lose a key.
    let refused = desk.haft(&up);
    assert!(!refused.stderr.contains("key remove"), "{}", refused.stderr);
}

#[test]
fn a_home_that_is_served_is_told_before_anything_is_made() {
    let desk = Desk::new();
    let _gate = Gate::open(&desk, &[]);
    let known = || {
        [&["list", "--json"][..], &["registry", "list", "--json"], &["key", "list", "--json"]]
            .map(|words| desk.done(words).stdout)
    };
    let before = known();
    let ran = desk.haft(&["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("serves this home already"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("A registry is at"), "{}", ran.stderr);
    assert_eq!(known(), before);
}

#[test]
fn a_place_that_somebody_has_is_told_before_anything_is_made() {
    let desk = Desk::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    desk.refused(&["up", "--listen", &place], 6, &format!("failed to listen at {place}"));
    desk.refused(&["up", "--listen", "0.0.0.0:0"], 2, "`haft serve --listen 0.0.0.0:0` is for");
    assert!(!desk.path("home").exists());
}
