//! What is called with what: the name, the input, and what is wrong with them.

use serde_json::json;

use super::desk::{Desk, shell};

#[test]
fn the_input_comes_from_the_command_line_a_file_or_standard_input() {
    let desk = Desk::new();
    let tool = desk.script("cat");
    assert_eq!(desk.result(&[&tool, "run", r#"{"a":"x  y"}"#]), json!({"a": "x  y"}));
    let file = desk.write("input.json", r#"{"a":"f"}"#);
    assert_eq!(desk.result(&[&tool, "run", &format!("@{file}")]), json!({"a": "f"}));
    let ran = desk.call_with(&[&tool, "run", "-"], Some(br#"{"a":"s"}"#));
    assert_eq!(ran.json(), json!({"a": "s"}));
    // The bytes reach the tool as they were written; the default is for the check alone.
    let ran = desk.call(&[&tool, "run"]);
    assert_eq!(ran.stdout, "{}\n");
    for (input, words) in [
        ("{", "the input is no JSON: expected"),
        ("{\n \"a\": x}", "(line 2, column 7)"),
        ("[1]", "must be a JSON object"),
        (r#"{"a":1}"#, "/a: 1 is not of type"),
        (r#"{"a":"x","a":"y"}"#, "the input cannot be used: the key `a`"),
        ("@no-such-file", "failed to read"),
        ("@", "`@` names no file"),
    ] {
        let ran = desk.call(&[&tool, "run", input]);
        assert!(ran.stderr.contains(words), "{input}: {}", ran.stderr);
        assert!(
            ran.code == 2 || (ran.code == 3 && input.starts_with("@no")),
            "{input}: {}",
            ran.code
        );
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn an_input_that_is_no_text_is_a_bad_input_and_a_byte_order_mark_is_none() {
    let desk = Desk::new();
    let tool = desk.script("cat");
    let marked = desk.write("marked.json", "\u{feff}{\"a\":\"x\"}");
    assert_eq!(desk.result(&[&tool, "run", &format!("@{marked}")]), json!({"a": "x"}));
    let ran = desk.call_with(&[&tool, "run", "-"], Some("\u{feff}{}".as_bytes()));
    assert_eq!(ran.stdout, "{}\n", "{}", ran.stderr);
    let odd = desk.path("odd.json");
    std::fs::write(&odd, b"{\"a\":\"\xff\"}").unwrap();
    let odd = format!("@{}", odd.display());
    let ran = desk.call(&[&tool, "run", &odd]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("is no UTF-8 text"), "{}", ran.stderr);
    let told = desk.call(&[&tool, "run", &odd, "--json"]);
    assert_eq!((told.code, &told.json()["error"]["code"]), (2, &json!("bad_input")));
}

#[test]
fn the_only_action_need_not_be_named() {
    let desk = Desk::new();
    let tool = desk.script("cat");
    assert_eq!(desk.call(&[&tool]).stdout, "{}\n");
    assert_eq!(desk.result(&[&tool, r#"{"a":"x"}"#]), json!({"a": "x"}));
    let file = desk.write("input.json", r#"{"a":"f"}"#);
    assert_eq!(desk.result(&[&tool, &format!("@{file}")]), json!({"a": "f"}));
    assert_eq!(desk.call_with(&[&tool, "-"], Some(b"{}")).stdout, "{}\n");
    // A word beside an input is a name, whatever it looks like.
    assert_eq!(desk.call(&[&tool, "@run", "{}"]).code, 3);
    assert_eq!(desk.call(&[&tool, "[]", "{}"]).code, 3);
    // Alone, what begins as JSON does is an input, and has to be an object.
    assert_eq!(desk.call(&[&tool, "[]"]).code, 2);
    // Servers are asked what they can do.
    let tossed = desk.call(&["examples/mcpb/coin"]);
    assert_eq!(tossed.code, 0, "{}", tossed.stderr);
    let ran = desk.call(&["examples/install-manifest/word-count", r#"{"text":"a"}"#]);
    let words = "error: there is more than one action\nhint: name one: count, longest\n";
    assert_eq!((ran.code, &*ran.stderr), (2, words));
    let ran = desk.call(&["examples/install-manifest/word-count", "--json"]).json();
    assert_eq!(ran["error"]["details"]["actions"], json!(["count", "longest"]));
}

#[test]
fn what_is_wrong_with_a_manifest_is_told_to_programs_too() {
    let desk = Desk::new();
    let tool = desk.write("pkg/tools.json", r#"{"tools":[{"name":"run","command":[]}]}"#);
    let ran = desk.call(&[&tool, "run", "--json"]);
    assert_eq!(ran.code, 2);
    let error = &ran.json()["error"];
    assert_eq!(error["code"], "invalid_manifest");
    let finding = &error["details"]["findings"][0];
    assert_eq!(finding["pointer"], "/tools/0/command");
    assert!(finding["line"].is_u64() && finding["message"].is_string(), "{error}");
}

#[test]
fn of_two_packages_with_one_action_the_files_are_named() {
    let desk = Desk::new();
    let text = std::fs::read_to_string(desk.script("cat")).unwrap();
    let [one, two] = ["one", "two"].map(|name| desk.write(&format!("all/{name}.json"), &text));
    let folder = desk.path("all");
    let ran = desk.call(&[folder.to_str().unwrap(), "run"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let words = format!("hint: name one with --from: {one} or {two}\n");
    assert!(ran.stderr.ends_with(&words), "{}", ran.stderr);
}

#[test]
fn what_an_action_takes_is_told_to_whoever_gave_something_else() {
    let desk = Desk::new();
    let ran = desk.call(&["examples/install-manifest/word-count", "count", r#"{"txt":"a"}"#]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.ends_with("hint: it takes `text` (string, required)\n"), "{}", ran.stderr);
    let told = desk.call(&["examples/install-manifest/word-count", "count", "{}", "--json"]).json();
    let takes = json!([{"name": "text", "type": "string", "required": true}]);
    assert_eq!(told["error"]["details"]["takes"], takes);
}

#[test]
fn a_server_that_cannot_be_asked_stands_in_nobodys_way() {
    let desk = Desk::new();
    let weather = "examples/server-json/weather";
    // It is refused at once, and nobody is asked for its secrets first.
    for more in [&["forecast"][..], &["forecast", "--explain"]] {
        let ran = desk.call(&[&[weather], more].concat());
        assert_eq!(ran.code, 6, "{}", ran.stderr);
        let words = "`package-0` has to be fetched, and a call fetches nothing; `remote-0` wants values that are asked for when it is installed";
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    assert_eq!(desk.result(&["examples/", "roll", "--json"])["ok"], true);
    let ran = desk.call(&["examples/", "rolll"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    for words in [
        "error: unknown tool: rolll\nhint: did you mean `roll`?\nhint: there are ",
        "hint: `server-json:com.example/weather` was not asked what it has: nothing of `weather` runs here",
    ] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    // A server that says nothing beforehand may have others, so the only declared action is not the only one.
    let tool = desk.script("cat");
    let server = std::fs::read_to_string("../../examples/server-json/weather/server.json").unwrap();
    desk.write("pkg/server/server.json", &server);
    let folder = tool.strip_suffix("/tools.json").unwrap();
    let ran = desk.call(&[folder]);
    let words = "hint: name one: run, what `server-json:com.example/weather` has\n";
    assert!(ran.code == 2 && ran.stderr.ends_with(words), "{}", ran.stderr);
}

#[test]
fn several_servers_that_cannot_be_asked_are_told_with_what_to_type() {
    let desk = Desk::new();
    let server = |name: &str| {
        json!({
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": format!("com.example/{name}"), "description": "A test.", "version": "1.0.0",
            "packages": [{"registryType": "npm", "identifier": name, "version": "1.0.0",
                "transport": {"type": "stdio"}}],
        })
    };
    let [one, two] = ["one", "two"]
        .map(|name| desk.write(&format!("many/{name}/server.json"), &server(name).to_string()));
    let ran = desk.call(&[desk.path("many").to_str().unwrap()]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("error: none of the servers here says what can be called\n"),
        "{}",
        ran.stderr
    );
    for name in ["one", "two"] {
        let words = format!("hint: `server-json:com.example/{name}` was not asked what it has: ");
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
    }
    assert!(
        ran.stderr.ends_with(&format!("hint: name one with --from: {one} or {two}\n")),
        "{}",
        ran.stderr
    );
}

#[test]
fn nobody_signs_in_for_what_is_no_server_and_takes_no_token() {
    let desk = Desk::new();
    for from in [
        &["examples/mcpkg/echo"][..],
        &["examples/agentcli"],
        &["examples/install-manifest/dice-server"],
        &["examples/install-manifest/word-count"],
        &["examples/capability/catalog", "demo.text.upper"],
        &["examples/", "mcpkg:demo.echo"],
    ] {
        let ran = desk.run(&[&["login", "--from"], from].concat());
        let words = "error: it is no server or agent on the network, and declares no secret that it could be given a token as\nhint: it asks for no key either: it is called without\n";
        assert_eq!((ran.code, &*ran.stderr), (2, words), "{from:?}");
    }
    // Where it is is known only once it is installed.
    let ran = desk.run(&["login", "--from", "examples/server-json/weather"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
}

#[test]
fn the_values_that_a_member_takes_are_told() {
    let desk = Desk::new();
    desk.write("pkg/tools/bin/run", "#!/bin/sh\ncat\n");
    let units: Vec<_> = (0..40).map(|number| format!("u{number}")).collect();
    let schema =
        json!({"type": "object", "properties": {"unit": {"type": "string", "enum": units}}});
    let tool =
        json!({"tools": [{"name": "run", "command": ["./tools/bin/run"], "schema": schema}]});
    let tool = desk.write("pkg/tools.json", &tool.to_string());
    let ran = desk.call(&[&tool, r#"{"unit":"x"}"#]);
    assert_eq!(ran.code, 2);
    let words = r#"hint: it takes `unit` (string, one of "u0", "u1", "#;
    assert!(
        ran.stderr.contains(words) && ran.stderr.contains("\"u31\" and 8 more)"),
        "{}",
        ran.stderr
    );
    let told = desk.call(&[&tool, r#"{"unit":"x"}"#, "--json"]).json();
    let takes = &told["error"]["details"]["takes"][0];
    assert_eq!((&takes["values"][1], &takes["more_values"]), (&json!("u1"), &json!(8)), "{told}");
    // They may stand somewhere else in the schema, as models of Python have it.
    let schema = json!({
        "type": "object", "$defs": {"Unit": {"type": "string", "enum": ["c", "f"]}},
        "properties": {
            "unit": {"$ref": "#/$defs/Unit"},
            "other": {"anyOf": [{"$ref": "#/$defs/Unit"}, {"type": "null"}], "default": null},
        },
    });
    let tool =
        json!({"tools": [{"name": "run", "command": ["./tools/bin/run"], "schema": schema}]});
    let tool = desk.write("pkg/tools.json", &tool.to_string());
    let told = desk.call(&[&tool, r#"{"unit":"x"}"#, "--json"]).json();
    let [unit, other] = ["unit", "other"].map(
        |name| json!({"name": name, "type": "string", "required": false, "values": ["c", "f"]}),
    );
    assert_eq!(told["error"]["details"]["takes"], json!([unit, other]), "{told}");
}

#[test]
fn what_is_wrong_with_an_input_is_said_in_plain_words() {
    let desk = Desk::new();
    let tool = desk.script("cat");
    let folder = format!("@{}", desk.path("pkg").display());
    for (arguments, words) in [
        (
            &[r#"{"a":1,"a":2}"#][..],
            "error: the input cannot be used: the key `a` appears twice in one object",
        ),
        (&["run", "[1]"], "error: the input must be a JSON object, not an array\n"),
        (&["run", "3"], "error: the input must be a JSON object, not a number\n"),
        (
            &["run", "a=x y"],
            "error: the input is a JSON object, and `a=x y` is none\nhint: write it as: '{\"a\":\"x y\"}'\n",
        ),
        (&["n=1"], "error: the input is a JSON object, and `n=1` is none\n"),
        (&["{\"a\":\"1\"}", "run"], "error: NAME comes before the input, and `run` is no input\n"),
        (&["run", &folder], "error: failed to read "),
    ] {
        let ran = desk.call(&[&[&*tool], arguments].concat());
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with(words), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn an_id_for_what_has_its_own_is_refused() {
    let desk = Desk::new();
    let named = desk.capability(&shell("echo '{}'"), "none", &json!([]));
    let ran = desk.call(&[&named, "--id", "other", "demo.tool"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let words = format!("error: --id names a tools.json, and there is none at `{named}`\n");
    assert!(ran.stderr.starts_with(&words), "{}", ran.stderr);
    assert!(ran.stderr.contains("what is there is called capability:demo.tool"), "{}", ran.stderr);
    assert_eq!(desk.call(&[&desk.script("echo '{}'"), "--id", "other", "run"]).code, 0);
}

#[test]
fn what_is_too_long_is_told_with_its_place_and_what_would_do() {
    let desk = Desk::new();
    let long = |bytes: usize| "a".repeat(bytes);
    let hint = |package: &str| {
        format!(
            "hint: give it in a file, where the tool takes one; `haft grant {package} --read FILE` lets it be read\n"
        )
    };
    let input = desk.write("long.json", &json!({"argv_extra": ["a", long(128 << 10)]}).to_string());
    let from = desk.capability(&shell("echo '{}'"), "none", &json!([]));
    let input = format!("@{input}");
    for more in [&[][..], &["--explain"]] {
        let ran = desk.call(&[&[&*from, "demo.tool", &input], more].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert_eq!(
            ran.stderr,
            "error: `argv_extra` of the input is too long: an argument has less than 128 KiB\n"
                .to_owned()
                + &hint("capability:demo.tool")
        );
    }
    // Each of them is short enough, and all of them are too many.
    let many = json!({"argv_extra": vec![long(100_000); 70]}).to_string();
    let many = format!("@{}", desk.write("many.json", &many));
    let ran = desk.call(&[&*from, "demo.tool", &many]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let error = "error: its arguments and variables together are longer than a process can have\n";
    assert_eq!(ran.stderr, error);
    let all = format!("@{}", desk.write("all.json", &json!({"a": long(8 << 20)}).to_string()));
    let ran = desk.call(&[&*desk.script("cat"), "run", &all]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let error = "error: the input is longer than 8 MiB\n".to_owned() + &hint("agentcli:pkg");
    assert_eq!(ran.stderr, error);
}
