//! Registries, true ones and those that lie.

use super::*;

/// A registry with echo in it, and its address.
fn registry(desk: &Desk) -> Served {
    let served = Served::known_to(desk, "true");
    desk.echo();
    desk.done(&["publish", "./echo", "--no-sign", "-q"]);
    desk.done(&["registry", "rm", "true"]);
    fs::write(
        desk.path("home/policy.toml"),
        "[trust]\nallow = [\"local\", \"verified\", \"community\"]\n",
    )
    .unwrap();
    served
}

/// Installs echo from a registry that stands between us and a true one.
fn lied_to(desk: &Desk, url: &str, code: i32, words: &str) {
    refused(desk, &["install", "demo.echo", "--registry", url, "--yes"], code, words);
    let _ = fs::remove_dir_all(desk.path("home/cache"));
}

#[test]
fn a_registry_that_lies_is_refused_and_nothing_is_left() {
    let desk = Desk::new();
    let served = registry(&desk);
    let is_package = |path: &str| path.ends_with("/package");
    let lying = |change: fn(&str, Reply) -> Reply| {
        let to = served.url.clone();
        Site::new(move |asked| change(&asked.path, passed_on(&to, asked)))
    };
    // It gives other bytes than it described.
    let site = lying(|path, reply| {
        let mut body = reply.body().to_vec();
        if path.ends_with("/package")
            && let Some(last) = body.last_mut()
        {
            *last ^= 1;
        }
        reply.saying(body)
    });
    lied_to(&desk, &site.url, 2, "the package has the digest");
    assert!(site.asked().iter().any(|path| is_package(path)));
    // It describes another digest than that of what it gives.
    let site = lying(|path, reply| {
        if is_described(path) {
            let mut said: Value = serde_json::from_slice(reply.body()).unwrap();
            said["sha256"] = "ab".repeat(32).into();
            return reply.saying(said.to_string());
        }
        reply
    });
    lied_to(&desk, &site.url, 2, "the package has the digest");
    // It describes none.
    let site = lying(|path, reply| {
        if is_described(path) {
            let mut said: Value = serde_json::from_slice(reply.body()).unwrap();
            said.as_object_mut().unwrap().remove("sha256");
            return reply.saying(said.to_string());
        }
        reply
    });
    lied_to(&desk, &site.url, 2, "does not say the SHA-256");
    // It sends us elsewhere.
    let site = lying(|path, reply| {
        if path.ends_with("/package") { Reply::elsewhere("https://10.0.0.1/x") } else { reply }
    });
    lied_to(&desk, &site.url, 2, "where nobody goes");
    // It answers with another tool.
    let site = lying(|path, reply| {
        if is_described(path) {
            let text = String::from_utf8(reply.body().to_vec()).unwrap();
            return reply.saying(text.replace("demo.echo", "demo.other"));
        }
        reply
    });
    lied_to(&desk, &site.url, 2, "was asked for the");
    // What it says truly is installed.
    let site = lying(|_, reply| reply);
    desk.done(&["install", "demo.echo", "--registry", &site.url, "--yes", "-q"]);
    desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]);
}

fn is_described(path: &str) -> bool {
    path.starts_with("/v1/tools/") && !path.ends_with("/package") && !path.ends_with("/versions")
}

/// What a registry answers that gives these bytes in place of every package, and describes them rightly.
fn instead(other: &[u8], asked: &Asked, reply: Reply) -> Reply {
    if asked.path.ends_with("/package") {
        return reply.saying(other.to_vec());
    }
    if is_described(&asked.path) {
        let mut said: Value = serde_json::from_slice(reply.body()).unwrap();
        said["sha256"] = Digest::of(other).to_string().into();
        said["size"] = other.len().into();
        return reply.saying(said.to_string());
    }
    reply
}

#[test]
fn what_a_registry_describes_must_be_what_its_package_says() {
    let desk = Desk::new();
    let served = registry(&desk);
    // Under the id and the version of one tool it gives another, with the right digest of that.
    fs::write(
        desk.path("echo/manifest.json"),
        fs::read_to_string(desk.path("echo/manifest.json"))
            .unwrap()
            .replace("demo.echo", "demo.other"),
    )
    .unwrap();
    desk.done(&["pack", "./echo", "-o", "other.mcpkg", "-q"]);
    let other = fs::read(desk.path("other.mcpkg")).unwrap();
    let to = served.url.clone();
    let site = Site::new(move |asked| instead(&other, asked, passed_on(&to, asked)));
    let install = ["install", "demo.echo", "--registry", &site.url, "--yes"];
    refused_but_cache(&desk, &install, 2, "describes `demo.echo`");
}

#[test]
fn a_registry_that_gives_other_bytes_the_second_time_is_refused() {
    let desk = Desk::new();
    let served = registry(&desk);
    let text = fs::read_to_string(desk.path("echo/echo.py")).unwrap();
    fs::write(desk.path("echo/echo.py"), format!("{text}# more\n")).unwrap();
    desk.done(&["pack", "./echo", "-o", "other.mcpkg", "-q"]);
    let other = fs::read(desk.path("other.mcpkg")).unwrap();
    let to = served.url.clone();
    let changed = desk.path("changed");
    let flag = changed.clone();
    // The same version, with other bytes, which it describes rightly.
    let site = Site::new(move |asked| {
        let reply = passed_on(&to, asked);
        if Path::new(&flag).exists() { instead(&other, asked, reply) } else { reply }
    });
    let install = ["install", "demo.echo", "--registry", &site.url, "--yes"];
    let card = desk.done(&["show", "demo.echo", "--registry", &site.url, "--json"]).json();
    let card = card["cards"][0]["card"].as_str().unwrap().to_owned();
    fs::write(&changed, "").unwrap();
    let words = "is not the one that was accepted";
    refused_but_cache(&desk, &[&install[..], &["--card", &card]].concat(), 4, words);
    fs::remove_file(&changed).unwrap();
    desk.done(&[&install[..], &["-q"]].concat());
    fs::write(&changed, "").unwrap();
    refused_but_cache(&desk, &install, 5, "is installed with other bytes");
    fs::remove_file(&changed).unwrap();
    desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]);
}

#[test]
fn a_registry_that_knows_bundles_alone_is_installed_from() {
    let desk = Desk::new();
    allow(&desk, "jumith:tool:demo.dice");
    let path = repository().join("examples/jumith/dice.bundle.json");
    let bundle: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let (described, whole) = (bundle["manifest"].to_string(), bundle.to_string());
    let changed = desk.path("changed");
    let (flag, file) = (changed.clone(), bundle["files"][0]["path"].clone());
    let site = Site::new(move |asked| match asked.path.as_str() {
        path if path.contains("/tools/") && path.ends_with("/bundle") => {
            let mut whole: Value = serde_json::from_str(&whole).unwrap();
            if flag.exists() {
                whole["manifest"]["summary"] = "Something else".into();
            }
            Reply::found(whole.to_string())
        }
        path if path.contains("/tools/") => Reply::found(described.clone()),
        _ => Reply::status(404),
    });
    assert!(file.is_string());
    let install = ["install", "tool:demo.dice", "--registry", &site.url, "--yes"];
    fs::write(&changed, "").unwrap();
    refused(&desk, &install, 2, "another description");
    fs::remove_file(&changed).unwrap();
    desk.done(&install);
    assert_eq!(desk.done(&["call", "tool:demo.dice", r#"{"sides":2}"#]).code, 0);
    // What is pinned are its files.
    desk.done(&["lock", "-o", "its.lock"]);
    desk.done(&["remove", "tool:demo.dice"]);
    desk.done(&["sync", "--locked", "its.lock", "--yes", "-q"]);
    assert_eq!(desk.done(&["call", "tool:demo.dice", r#"{"sides":2}"#]).code, 0);
}

#[test]
fn an_id_like_one_that_its_registry_has_had_for_longer_asks_first() {
    let desk = Desk::new();
    let _served = Served::known_to(&desk, "true");
    desk.echo();
    desk.done(&["publish", "./echo", "--no-sign", "-q"]);
    let policy = "[trust]\nallow = [\"local\", \"verified\", \"community\"]\n";
    fs::write(desk.path("home/policy.toml"), policy).unwrap();
    let manifest = desk.path("echo/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("demo.echo", "demo.ecoh")).unwrap();
    desk.done(&["publish", "./echo", "--no-sign", "-q"]);
    let words = "differs by one letter from `demo.echo`, which its registry has had for longer";
    desk.refused(&["install", "demo.ecoh", "--yes"], 4, words);
    // The one that was there first is asked about by nobody.
    desk.done(&["install", "demo.echo", "--yes"]);
    desk.done(&["remove", "demo.echo"]);
    desk.done(&["install", "demo.ecoh", "--yes", "--allow-similar"]);
}

#[test]
fn a_chain_is_tested_with_tools_that_are_not_installed_before_it_is_published() {
    let desk = Desk::new();
    let _served = Served::known_to(&desk, "acme");
    let examples = super::common::repository().join("examples/mcpkg");
    let chain = examples.join("pipeline").to_str().unwrap().to_owned();
    let publish = ["publish", &chain, "--no-sign"];
    let ran = desk.haft(&publish);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("it is not installed"), "{}", ran.stderr);
    let with = [&publish[..], &["--with", examples.to_str().unwrap()]].concat();
    let ran = desk.done(&with);
    assert!(ran.stderr.contains("1 test: 1 passed, 0 failed"), "{}", ran.stderr);
}
