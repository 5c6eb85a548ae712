//! A registry is served, published in, searched, yanked from and stopped.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use common::served::Served;
use common::{Desk, Ran, repository};
use serde_json::{Value, json};

/// What it answers, head and all.
fn get(served: &Served, path: &str) -> String {
    let mut stream = TcpStream::connect(&served.address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Runs a verb with a token.
fn with_token(desk: &Desk, token: &str, arguments: &[&str]) -> Ran {
    let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
    command.current_dir(desk.0.path()).arg("--home").arg(desk.path("home")).args(arguments);
    let output = command.env("HAFT_TOKEN", token).env_remove("REGISTRY_BASE_URL").output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_package_is_published_found_yanked_and_offered_again() {
    let desk = Desk::new();
    desk.echo();
    let manifest = repository().join("examples/mcpkg/echo/manifest.json");
    let manifest: Value = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
    let (id, version) =
        (manifest["toolId"].as_str().unwrap(), manifest["version"].as_str().unwrap());
    desk.done(&["pack", "echo", "-o", "echo.mcpkg"]);
    let served = Served::at(&desk.path("home"), &[]);
    let url = served.url.as_str();
    let namespace = id.split('.').next().unwrap();
    let made = desk.done(&["registry", "token", "new", "--namespace", namespace, "--json"]).json();
    let token = made["token"].as_str().unwrap();
    let publish = ["publish", "echo.mcpkg", "--registry", url];

    let none = with_token(&desk, "", &publish);
    assert_eq!(none.code, 2, "{}", none.stderr);
    let wrong = with_token(&desk, "haft_wrong", &publish);
    assert_eq!(wrong.code, 4, "{}", wrong.stderr);
    let published = with_token(&desk, token, &publish);
    assert_eq!(published.code, 0, "{}", published.stderr);
    assert!(
        published.stdout.starts_with(&format!("Published {id} {version}")),
        "{}",
        published.stdout
    );
    let again = with_token(&desk, token, &[&publish[..], &["--json"]].concat());
    assert_eq!(again.json()["outcome"], "unchanged");
    std::fs::write(desk.path("echo/more.txt"), "more").unwrap();
    desk.done(&["pack", "echo", "-o", "other.mcpkg"]);
    let other = with_token(&desk, token, &["publish", "other.mcpkg", "--registry", url]);
    assert_eq!(other.code, 5, "{}", other.stderr);

    let search = ["search", "echo", "--registry", url, "--json"];
    let found = desk.done(&search).json();
    assert_eq!(found["results"][0]["name"], id);
    assert!(get(&served, "/healthz").starts_with("HTTP/1.1 200"));

    let what = format!("{id}@{version}");
    let yank =
        with_token(&desk, token, &["yank", &what, "--reason", "loses data", "--registry", url]);
    assert_eq!(yank.code, 0, "{}", yank.stderr);
    assert_eq!(desk.done(&search).json()["total"], 0);
    let versions = || get(&served, &format!("/v1/tools/{id}/versions"));
    assert!(versions().contains("loses data") && !versions().contains("yankSecurity"));
    let mark = ["yank", &what, "--reason", "leaks keys", "--security", "--registry", url, "--json"];
    let marked = with_token(&desk, token, &mark).json();
    assert_eq!((&marked["yanked"], &marked["security"]), (&json!(true), &json!(true)));
    assert!(versions().contains("yankSecurity"));
    let fetched = desk.done(&["registry", "get", &what, "-o", "got.mcpkg", "--registry", url]);
    let into_nothing = ["registry", "get", &what, "-o", "nope/x.mcpkg", "--registry", url];
    desk.refused(&into_nothing, 3, "there is no folder `nope`\nhint: `mkdir -p nope` makes it");
    let into_pipe = ["registry", "get", &what, "-o", "-", "--registry", url];
    let mut piped = assert_cmd::Command::cargo_bin("haft").unwrap();
    piped.current_dir(desk.0.path()).env("HAFT_HOME", desk.path("home")).args(into_pipe);
    let piped = piped.output().unwrap();
    assert_eq!(piped.stdout, std::fs::read(desk.path("got.mcpkg")).unwrap());
    assert!(piped.status.success() && !desk.path("-").exists());
    let both = desk.haft(&[&into_pipe[..], &["--json"]].concat());
    assert!(both.code == 2 && both.stdout.contains("`-o -` is for a pipe"), "{}", both.stdout);
    assert!(fetched.stderr.contains("taken back for security: leaks keys"), "{}", fetched.stderr);
    let both = [&mark[..], &["--undo"]].concat();
    assert_eq!(with_token(&desk, token, &both).code, 2, "what is offered again has no mark");
    let undo = with_token(&desk, token, &["yank", &what, "--undo", "--registry", url]);
    assert_eq!(undo.code, 0, "{}", undo.stderr);
    assert_eq!(undo.stderr, format!("Offered again: {id} {version}\n"));
    assert_eq!(desk.done(&search).json()["total"], 1);
    let undo = with_token(&desk, token, &["yank", &what, "--undo", "--registry", url]);
    assert_eq!(undo.stderr, format!("Unchanged: {id} {version} was not taken back\n"));
    assert_eq!(undo.code, 0, "it is as it should be");
    let latest = format!("{id}@latest");
    let highest = "without `@` the highest is meant";
    let yank = with_token(&desk, token, &["yank", &latest, "--registry", url]);
    assert!(yank.code == 2 && yank.stderr.contains("three numbers"), "{}", yank.stderr);
    assert!(!yank.stderr.contains(highest), "it takes a version: {}", yank.stderr);
    desk.refused(&["registry", "get", &latest, "--registry", url], 2, highest);
    let missing = with_token(&desk, token, &["yank", "demo.nothing@1.0.0", "--registry", url]);
    assert_eq!(missing.code, 3, "{}", missing.stderr);

    let tokens = desk.done(&["registry", "token", "list"]).stdout;
    assert!(tokens.contains("good") && !tokens.contains(token));
    desk.done(&["registry", "token", "revoke", made["id"].as_str().unwrap()]);
    desk.refused(&["registry", "token", "revoke", "nobody"], 3, "there is no token");
    assert_eq!(with_token(&desk, token, &publish).code, 4);
}

#[test]
fn a_tools_json_is_published_under_the_name_of_its_folder_and_nothing_else_is_renamed() {
    let desk = Desk::new();
    desk.echo();
    let tools = repository().join("examples/agentcli");
    let folder = tools.to_str().unwrap();
    let served = Served::at(&desk.path("home"), &[]);
    let url = served.url.as_str();
    let token = token(&desk, "*", "publish");
    let publish = |words: &[&str]| {
        let words = [&["publish"], words, &["--registry", url]].concat();
        with_token(&desk, &token, &words)
    };
    let published = publish(&[folder, "--no-sign", "--no-test"]);
    assert!(published.stdout.starts_with("Published agentcli 0.0.0+"), "{}", published.stderr);
    desk.done(&["pack", folder, "-o", "tools.mcpkg"]);
    let nameless = publish(&["tools.mcpkg"]);
    assert_eq!(nameless.code, 2);
    assert!(nameless.stderr.contains("hint: --id ID names it"), "{}", nameless.stderr);
    let named = publish(&["tools.mcpkg", "--id", "acme.tools"]);
    assert!(named.stdout.starts_with("Published acme.tools"), "{}", named.stderr);
    desk.done(&["pack", "echo", "-o", "echo.mcpkg"]);
    for words in [&["echo.mcpkg", "--id", "x"][..], &["echo", "--no-sign", "--id", "x"]] {
        let renamed = publish(words);
        assert_eq!(renamed.code, 2, "{}", renamed.stderr);
        assert!(renamed.stderr.contains("hint: leave --id out"), "{}", renamed.stderr);
    }
    // What is there can be looked through without words.
    let all = desk.done(&["search", "--kind", "tool", "--registry", url, "--json"]).json();
    assert!(all["total"].as_u64().unwrap() > 0, "{all}");
    desk.refused(&["search", "x", "--limit", "0", "--registry", url], 2, "1..=100");
    // Only a registry can be asked for some.
    let import = ["registry", "import", folder, "--search", "x", "--registry", url];
    desk.refused(&import, 2, "--search is asked of an MCP registry");
}

/// A token of this role, made at the database.
fn token(desk: &Desk, namespace: &str, role: &str) -> String {
    let made = ["registry", "token", "new", "--namespace", namespace, "--role", role, "--json"];
    desk.done(&made).json()["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_private_registry_holds_back_what_no_reviewer_has_seen() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["pack", "echo", "-o", "echo.mcpkg"]);
    let manifest = repository().join("examples/mcpkg/echo/manifest.json");
    let manifest: Value = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
    let id = manifest["toolId"].as_str().unwrap();
    let what = format!("{id}@{}", manifest["version"].as_str().unwrap());
    let served = Served::at(&desk.path("home"), &["--private", "--quarantine"]);
    let url = served.url.as_str();
    let ask = |token: &str, words: &[&str]| {
        with_token(&desk, token, &[words, &["--registry", url]].concat())
    };
    let admin = token(&desk, "*", "admin");

    // The administrator is elsewhere and has no database at hand.
    let words = ["registry", "token", "new", "--namespace", "demo", "--role", "publish", "--json"];
    let made = ask(&admin, &words).json();
    let publisher = made["token"].as_str().unwrap().to_owned();
    let words = ["registry", "token", "new", "--namespace", "*", "--role", "review", "--quiet"];
    let reviewer = ask(&admin, &words).stdout.trim().to_owned();
    assert_eq!(ask(&publisher, &["registry", "token", "list"]).code, 4);
    assert!(ask(&admin, &["registry", "token", "list"]).stdout.contains("review of all names"));

    let published = ask(&publisher, &["publish", "echo.mcpkg"]);
    assert_eq!(published.code, 0, "{}", published.stderr);
    assert!(published.stderr.contains("waits for a reviewer"), "{}", published.stderr);
    assert_eq!(ask("", &["search", "echo"]).code, 4, "reading needs a token");
    let search = |channel: &str| {
        ask(&publisher, &["search", "echo", "--channel", channel, "--json"]).json()["total"].clone()
    };
    assert_eq!((search("stable"), search("beta")), (0.into(), 0.into()));
    assert!(ask(&reviewer, &["registry", "review", "list"]).stdout.contains(&what));
    assert_eq!(ask(&publisher, &["registry", "review", "approve", &what]).code, 4);
    assert_eq!(
        ask(&reviewer, &["registry", "review", "approve", &what, "--channel", "gold"]).code,
        2
    );
    let approved = ask(&reviewer, &["registry", "review", "approve", &what, "--channel", "beta"]);
    assert_eq!(approved.code, 0, "{}", approved.stderr);
    assert_eq!((search("stable"), search("beta")), (0.into(), 1.into()));
    let fetch = |channel: &str| {
        ask(&publisher, &["registry", "get", id, "--channel", channel, "-o", "got.mcpkg"]).code
    };
    assert_eq!((fetch("stable"), fetch("beta")), (3, 0));
    assert_eq!(ask(&reviewer, &["registry", "review", "approve", &what]).code, 0);
    assert_eq!(search("stable"), 1);

    let owners = ask(&publisher, &["registry", "owner", "add", id, "team"]);
    assert_eq!(owners.stdout, "demo\nteam\n", "{}", owners.stderr);
    assert_eq!(ask(&reviewer, &["registry", "owner", "rm", id, "team"]).code, 4);
    assert_eq!(ask(&publisher, &["registry", "owner", "rm", id, "team"]).stdout, "demo\n");
    assert_eq!(ask(&publisher, &["registry", "owner", "list", id]).stdout, "demo\n");
    let own = ask(&publisher, &["registry", "owner", "rm", id, "demo"]);
    assert_eq!(own.code, 5, "{}", own.stderr);
    assert!(own.stderr.contains("`demo` is the tool's own namespace"), "{}", own.stderr);
    let again = ask(&publisher, &["registry", "owner", "rm", id, "team"]);
    assert_eq!(again.code, 3, "{}", again.stdout);
    assert!(again.stderr.contains(&format!("`team` does not own `{id}`")), "{}", again.stderr);

    assert_eq!(ask(&reviewer, &["registry", "review", "reject", &what, "--reason", " "]).code, 2);
    let rejected = ask(&reviewer, &["registry", "review", "reject", &what, "--reason", "no"]);
    assert_eq!(rejected.code, 0, "{}", rejected.stderr);
    assert_eq!(search("beta"), 0);
    let revoke = ["registry", "token", "revoke", made["id"].as_str().unwrap()];
    assert_eq!(ask(&admin, &revoke).code, 0);
    assert_eq!(ask(&publisher, &["publish", "echo.mcpkg"]).code, 4);
}

#[test]
fn a_build_publishes_by_the_identity_that_its_service_has_signed() {
    let Some(issuer) = testkit::issuer::Issuer::start() else {
        assert!(std::env::var_os("HAFT_TEST_SERVERS").is_none(), "joserfc is not installed");
        return;
    };
    let desk = Desk::new();
    desk.echo();
    desk.done(&["pack", "echo", "-o", "echo.mcpkg"]);
    let served = Served::at(&desk.path("home"), &[]);
    let from = issuer.named("good");
    let rule = [
        "registry",
        "publisher",
        "add",
        "--issuer",
        &from,
        "--audience",
        "registry",
        "--namespace",
        "demo",
    ];
    desk.refused(&rule, 2, "--claim");
    desk.refused(&[&rule[..], &["--claim", "repository=*"]].concat(), 2, "claims");
    let added =
        desk.done(&[&rule[..], &["--claim", "repository=acme/*", "--json"]].concat()).json();
    assert!(desk.done(&["registry", "publisher", "list"]).stdout.contains("repository=acme/*"));
    let identity = issuer.identity(&serde_json::json!({}));
    let exchange = |identity: &str| {
        let words = ["registry", "token", "exchange", "--quiet", "--registry", &served.url];
        desk.haft_with(&words, Some(identity))
    };
    let given = exchange(&identity);
    assert_eq!(given.code, 0, "{}", given.stderr);
    let token = given.stdout.trim();
    let published = with_token(&desk, token, &["publish", "echo.mcpkg", "--registry", &served.url]);
    assert_eq!(published.code, 0, "{}", published.stderr);
    assert_eq!(exchange(&identity).code, 4, "once is enough");
    assert_eq!(exchange("").code, 2);
    desk.done(&["registry", "publisher", "rm", added["id"].as_str().unwrap()]);
    desk.refused(&["registry", "publisher", "rm", "nobody"], 3, "there is no publisher");
    assert_eq!(exchange(&issuer.identity(&serde_json::json!({}))).code, 4);
    assert!(get(&served, "/v1/tools/demo.echo/versions").contains("\"repository\":\"acme/tools\""));
}

#[test]
fn a_bundle_that_was_downloaded_is_called() {
    let desk = Desk::new();
    let served = Served::at(&desk.path("home"), &[]);
    let token = token(&desk, "*", "publish");
    let bundle = repository().join("examples/jumith/dice.bundle.json");
    let published = with_token(
        &desk,
        &token,
        &["publish", bundle.to_str().unwrap(), "--registry", &served.url],
    );
    assert_eq!(published.code, 0, "{}", published.stderr);
    let answer = get(&served, "/v1/tools/demo.dice/versions/latest/bundle");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    std::fs::write(desk.path("dice.bundle.json"), body).unwrap();
    desk.done(&["validate", "dice.bundle.json"]);
    let plan = desk.done(&[
        "call",
        "demo.dice",
        "{}",
        "--from",
        "dice.bundle.json",
        "--explain",
        "--json",
    ]);
    assert!(plan.stdout.contains("demo.dice"), "{}", plan.stdout);
}

#[test]
fn a_registry_that_is_told_to_stop_ends_well_and_keeps_what_it_has() {
    let desk = Desk::new();
    let mut served = Served::at(&desk.path("home"), &[]);
    let told = Command::new("kill").arg(served.process.id().to_string()).status().unwrap();
    assert!(told.success());
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
    let again = Served::at(&desk.path("home"), &[]);
    assert!(get(&again, "/readyz").contains("\"ready\""));
}

#[test]
fn what_cannot_be_a_registry_is_refused_before_anything_is_sent() {
    let desk = Desk::new();
    desk.refused(&["search", "x", "--registry", "ftp://x"], 2, "no address of a registry");
    desk.refused(&["search", "x", "--registry", "http://127.0.0.1:1"], 6, "failed to reach");
    desk.refused(&["registry", "serve", "--database", "mysql://x"], 2, "no database");
    desk.echo();
    desk.done(&["pack", "echo", "-o", "echo.mcpkg"]);
    let far =
        with_token(&desk, "haft_x", &["publish", "echo.mcpkg", "--registry", "http://192.0.2.1"]);
    assert_eq!(far.code, 4, "{}", far.stderr);
}

#[test]
fn what_is_not_there_is_told_and_not_made() {
    let desk = Desk::new();
    for verb in [
        &["check"][..],
        &["gc"],
        &["backup", "kept.tar"],
        &["token", "list"],
        &["token", "revoke", "x"],
        &["publisher", "list"],
    ] {
        let arguments = [&["registry"], verb].concat();
        desk.refused(&arguments, 3, "there is no registry at");
        let elsewhere = [&arguments[..], &["--database", "typo.db"]].concat();
        desk.refused(&elsewhere, 3, "there is no registry at `typo.db`");
    }
    assert!(!desk.path("typo.db").exists() && !desk.path("kept.tar").exists());
    assert!(!desk.path("home/registry").exists());
    let elsewhere = ["registry", "serve", "--database", "nowhere/x.db"];
    desk.refused(&elsewhere, 6, "failed to open `nowhere/x.db`");
    let made = desk.done(&["registry", "token", "new", "--namespace", "demo"]);
    assert!(made.stderr.contains("there was no registry at"), "{}", made.stderr);
    let backup = ["registry", "backup", "no/such/kept.tar"];
    desk.refused(&backup, 3, "there is no folder `no/such`\nhint: `mkdir -p no/such` makes it");
    let second = desk.done(&["registry", "token", "new", "--namespace", "demo"]);
    assert!(!second.stderr.contains("there was no registry"), "{}", second.stderr);
    let restore = |file: &str, code: i32, words: &str| {
        let into = ["--database", "restored.db", "--blobs", "restored"];
        desk.refused(&[&["registry", "restore", file], &into[..]].concat(), code, words);
    };
    restore("nowhere.tar", 3, "error: there is no backup `nowhere.tar`\n");
    std::fs::create_dir(desk.path("empty")).unwrap();
    restore("empty", 2, "there is no `haft-registry-backup.json` in the folder");
    desk.done(&["registry", "backup", "kept.tar"]);
    let whole = std::fs::read(desk.path("kept.tar")).unwrap();
    for (name, bytes, words) in [
        ("other.tar", &[0xff; 2048][..], "it is no file of `haft registry backup`"),
        ("nothing.tar", b"", "it is no file of `haft registry backup`"),
        ("kept.tar.gz", b"\x1f\x8b\x08\0", "it is compressed; unpack it first"),
    ] {
        std::fs::write(desk.path(name), bytes).unwrap();
        restore(name, 2, words);
        restore(name, 2, "hint: `haft registry backup FILE` makes one");
    }
    for length in [600, 1_500, whole.len() / 2] {
        std::fs::write(desk.path("cut.tar"), &whole[..length]).unwrap();
        restore("cut.tar", 2, "the backup is damaged: ");
        restore("cut.tar", 2, "hint: nothing of it was brought back");
    }
    // What is no backup, or a damaged one, leaves nothing behind, not even an empty registry.
    assert!(!desk.path("restored.db").exists() && !desk.path("restored").exists());
    desk.refused(&["registry", "backup", "kept.tar"], 5, "hint: no backup is written over");
    let full = ["registry", "restore", "kept.tar"];
    desk.refused(&full, 5, "the registry is not empty: it has ");
    desk.refused(&full, 5, "hint: a backup goes into a new registry");
    let blobs = ["registry", "check", "--blobs", "typo"];
    desk.refused(&blobs, 3, "there is no folder `typo` with package files");
}

#[test]
fn what_was_typed_wrongly_is_told_with_what_would_do() {
    let desk = Desk::new();
    desk.echo();
    let served = Served::at(&desk.path("home"), &[]);
    let serve = |more: &[&str], code: i32, words: &str| {
        desk.refused(&[&["registry", "serve"], more].concat(), code, words);
    };
    serve(&["--listen", &served.address], 6, "hint: --listen ADDR:PORT names another place");
    let metrics = ["--listen", "127.0.0.1:0", "--metrics-listen", &served.address];
    serve(&metrics, 6, "hint: --metrics-listen ADDR:PORT names another place");
    serve(&["--listen", "7071"], 2, "for example 127.0.0.1:8080");
    for nobody in ["--quarantine=", "--quarantine=acme,", "--quarantine=a b", "--quarantine=*"] {
        serve(&[nobody], 2, "write names with commas between");
    }
    serve(&["--public-url", "registry.example"], 2, "give https://");
    std::fs::write(desk.path("garbage.db"), "no database at all").unwrap();
    serve(&["--database", "garbage.db"], 6, "the file is no database");
    desk.refused(&["registry", "check", "--database", "garbage.db"], 6, "the file is no database");
    desk.refused(&["registry", "add", "x", "127.0.0.1:7070"], 2, "hint: an address begins with");
    for place in ["s3://", "s3:///prefix", "ftp://host/x"] {
        serve(&["--blobs", place], 2, "is no place for packages");
    }

    serve(&["--database", "nope/x.db"], 6, "hint: make the folder first");
    for missing in ["./shared/tools", "shared/tools", "/no/such"] {
        let words = format!("there is no folder `{missing}`");
        desk.refused(&["registry", "add", "team", missing], 3, &words);
    }
    desk.refused(&["registry", "add", "team", "./garbage.db"], 2, "`./garbage.db` is no folder");
    let host = ["registry", "add", "team", "tools.example/registry"];
    desk.refused(&host, 2, "hint: an address begins with");
    let all = token(&desk, "*", "publish");
    let ask = |token: &str, words: &[&str]| {
        with_token(&desk, token, &[words, &["--registry", &served.url]].concat())
    };
    // A folder that is no package is told as such to whoever has no key yet.
    std::fs::create_dir(desk.path("empty")).unwrap();
    let empty = ask(&all, &["publish", "empty"]);
    assert!(empty.code == 2 && empty.stderr.contains("there is no manifest"), "{}", empty.stderr);
    let nothing = ask(&all, &["registry", "import", "empty"]);
    assert!(
        nothing.code == 3 && nothing.stderr.contains("nothing to import"),
        "{}",
        nothing.stderr
    );
    let unsigned = ask(&all, &["publish", "echo"]);
    assert!(
        unsigned.code == 3 && unsigned.stderr.contains("no key of yours"),
        "{}",
        unsigned.stderr
    );
    assert!(!unsigned.stderr.contains("passed"), "no test was run: {}", unsigned.stderr);
    desk.done(&["pack", "echo", "-o", "echo.mcpkg"]);
    let foreign = ask(&token(&desk, "acme", "publish"), &["publish", "echo.mcpkg"]);
    assert_eq!(foreign.code, 4, "{}", foreign.stderr);
    assert!(foreign.stderr.contains("hint: an administrator makes one"), "{}", foreign.stderr);
    assert_eq!(ask(&all, &["publish", "echo.mcpkg"]).code, 0);
    let version = ask(&all, &["registry", "get", "demo.echo@3.0.0"]);
    assert_eq!(version.code, 3, "{}", version.stderr);
    let words = "`demo.echo@3.0.0`\nhint: there is 0.1.0\n";
    assert!(version.stderr.contains(words), "{}", version.stderr);
    // Who asks for what nobody is offered learns what there is instead.
    for (change, hint) in [
        (
            &["registry", "review", "approve", "demo.echo@0.1.0", "--channel", "beta"][..],
            "hint: in beta there is 0.1.0: --channel beta takes it\n",
        ),
        (&["yank", "demo.echo@0.1.0"], "hint: what there is was taken back: 0.1.0; ID@VERSION"),
    ] {
        let changed = ask(&all, change);
        assert_eq!(changed.code, 0, "{}", changed.stderr);
        let none = ask("", &["registry", "get", "demo.echo"]);
        assert!(none.code == 3 && none.stderr.contains(hint), "{}", none.stderr);
    }
    let beta = ["registry", "get", "demo.echo", "--channel", "beta"];
    assert_eq!(ask("", &beta).code, 3, "it was taken back");
    assert_eq!(ask(&all, &["yank", "demo.echo@0.1.0", "--undo"]).code, 0);
    assert_eq!(ask("", &beta).code, 0);
    let mut exchange = assert_cmd::Command::cargo_bin("haft").unwrap();
    exchange.args(["registry", "token", "exchange", "--registry", &served.url]);
    let output = exchange.env("HAFT_IDENTITY", "no.good.jwt").env("HAFT_HOME", desk.path("home"));
    let said = String::from_utf8(output.output().unwrap().stderr).unwrap();
    assert!(said.contains("publisher list") && !said.contains("HAFT_TOKEN"), "{said}");
    drop(served);
    let away = desk.haft(&["search", "x", "--registry", "http://127.0.0.1:1"]);
    assert!(away.stderr.contains("`haft registry serve`"), "{}", away.stderr);
}

#[test]
fn what_no_registry_can_have_is_told_in_words_of_the_command() {
    let desk = Desk::new();
    let served = Served::at(&desk.path("home"), &[]);
    let admin = token(&desk, "*", "admin");
    for (verb, what) in [("revoke", "token"), ("rm", "publisher")] {
        let words = format!("there is no {what} `nope`\nhint: `haft registry {what} list");
        desk.refused(&["registry", what, verb, "nope"], 3, &format!("{words}` shows them"));
        let there = ["registry", what, verb, "nope", "--registry", &served.url];
        let ran = with_token(&desk, &admin, &there);
        let words = format!("{words} --registry {}` shows them", served.url);
        assert!(ran.code == 3 && ran.stderr.contains(&words), "{}", ran.stderr);
        let ran =
            with_token(&desk, &admin, &["registry", what, verb, "", "--registry", &served.url]);
        assert!(ran.code == 2 && ran.stderr.contains("a value is required"), "{}", ran.stderr);
    }
    for nothing in
        [&["search", ""][..], &["search", " ", "--channel", "beta"], &["search", "--tag", ""]]
    {
        let nothing = [nothing, &["--registry", &served.url]].concat();
        desk.refused(&nothing, 2, "there is nothing to search for\nhint: say what the tool should do, or filter with --tag");
    }
    for name in ["a*", "a b", "tool:acme", "a//b", "**"] {
        let words = format!("`{name}` cannot be the namespace of a tool");
        desk.refused(&["registry", "token", "new", "--namespace", name], 2, &words);
    }
    desk.done(&["registry", "token", "new", "--namespace", "com.example/weather"]);
}
