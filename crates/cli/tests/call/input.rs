//! What is called with what: the name, the input, and what is wrong with them.

use serde_json::json;

use super::desk::Desk;

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
        ("{", "the input is no JSON"),
        ("[1]", "must be a JSON object"),
        (r#"{"a":1}"#, "/a: 1 is not of type"),
        (r#"{"a":"x","a":"y"}"#, "the input is no JSON"),
        ("@no-such-file", "failed to read"),
    ] {
        let ran = desk.call(&[&tool, "run", input]);
        assert!(ran.stderr.contains(words), "{input}: {}", ran.stderr);
        assert!(
            ran.code == 2 || (ran.code == 3 && input.starts_with('@')),
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
    assert_eq!(desk.call(&[&tool, "[]"]).code, 3);
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
