use serde_json::json;

use super::*;

fn read(head: &str) -> serde_json::Value {
    let text = format!("---\n{head}\n---\nWords.\n");
    let parsed = parse(&text);
    assert!(parsed.faults.is_empty(), "{head}: {:?}", parsed.faults);
    parsed.root.unwrap().to_value()
}

#[test]
fn names_have_texts_lists_and_one_level_of_names() {
    for (head, value) in [
        ("name: a\ndescription: Does it.", json!({"name": "a", "description": "Does it."})),
        ("# before\n\nname: a # after\n", json!({"name": "a"})),
        ("name: \"a: b\"\nother: 'it''s'", json!({"name": "a: b", "other": "it's"})),
        ("d: one\n  two\n\n  three\nname: x", json!({"d": "one two\nthree", "name": "x"})),
        ("d:\n  one\n  two", json!({"d": "one two"})),
        ("d: >-\n  one\n  two\n\n  three\nname: x", json!({"d": "one two\nthree", "name": "x"})),
        (
            "d: |\n  a: b\n    c\n  # no comment\nname: x",
            json!({"d": "a: b\n  c\n# no comment\n", "name": "x"}),
        ),
        (
            "metadata:\n  author: acme\n  version: 1.0\nname: x",
            json!({"metadata": {"author": "acme", "version": "1.0"}, "name": "x"}),
        ),
        ("t: [a, \"b, c\", d e]", json!({"t": ["a", "b, c", "d e"]})),
        ("t: []", json!({"t": []})),
        ("t:\n  - a\n  - 'b'\nu:\n- c", json!({"t": ["a", "b"], "u": ["c"]})),
        ("allowed-tools: Bash(git:*) Read", json!({"allowed-tools": "Bash(git:*) Read"})),
        ("a:\nb: ~", json!({"a": null, "b": null})),
        ("a: 7\nb: true", json!({"a": "7", "b": "true"})),
        ("\"a b\": c", json!({"a b": "c"})),
        ("", json!({})),
    ] {
        assert_eq!(read(head), value, "{head}");
    }
    assert_eq!(parse("---\r\nname: a\r\n---\r\n").root.unwrap().to_value(), json!({"name": "a"}));
}

#[test]
fn what_two_readers_may_see_differently_is_refused_where_it_stands() {
    for (head, line) in [
        ("name: a\n\tb: c", 3),
        ("name: {a: b}", 2),
        ("name: &x a\nother: *x", 2),
        ("name: !!str a", 2),
        ("description: Use when: now", 2),
        ("name", 2),
        ("- a", 2),
        ("name: a\n   b: c\n  d", 3),
        ("a:\n  b:\n    c: d", 4),
        ("t: [a, [b]]", 2),
        ("t: [a", 2),
        ("t: [\"a\" b]", 2),
        ("name: \"a", 2),
        ("name: \"a\" b", 2),
        ("name: |7\n  a", 2),
        ("name: a\u{7}b", 2),
        ("? name\n: a", 2),
        ("<<: *base", 2),
    ] {
        let text = format!("---\n{head}\n---\n");
        let parsed = parse(&text);
        let first = parsed.faults.first().unwrap_or_else(|| panic!("{head} is read"));
        let before = &text[..first.span.start as usize];
        assert_eq!(first.code, Code::YamlSyntax, "{head}");
        assert_eq!(before.matches('\n').count() + 1, line, "{head}: {first:?}");
    }
    let twice = parse("---\nname: a\nname: b\n---\n");
    assert_eq!(twice.faults[0].code, Code::DuplicateKey);
    for text in ["name: a", "---\nname: a\n", "", "--- a\nname: a\n---\n"] {
        assert_eq!(parse(text).faults[0].code, Code::YamlSyntax, "{text}");
    }
    let long = format!("---\nname: {}\n---\n", "a".repeat(MOST_BYTES));
    assert_eq!(parse(&long).faults[0].code, Code::TooLarge);
    let many = (0..300).map(|at| format!("a{at}: b\n")).collect::<String>();
    assert_eq!(parse(&format!("---\n{many}---\n")).faults.len(), 1);
}

#[test]
fn a_value_knows_where_it_stands() {
    let text = "---\nname:  word-count\n---\n";
    let root = parse(text).root.unwrap();
    assert_eq!(&text[root.get("name").unwrap().span.range()], "word-count");
}

#[test]
fn whatever_stands_in_a_head_is_read_or_refused_and_places_lie_within_it() {
    let pieces = [
        "name", "a", ": ", ":", " ", "  ", "\n", "\n  ", "\n- ", "\n  - ", "\"", "'", "''", "\\",
        "\\u00", "[", "]", ",", "|", ">-", "#", " # ", "é", "😀", "\t", "---", "~", "{", "&x", "*",
    ];
    // A row of numbers that is the same every time.
    let mut state: u64 = 0x2545_f491_4f6c_dd1d;
    let mut next = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % most as u64).unwrap()
    };
    for _ in 0..20_000 {
        let length = next(24);
        let head: String = (0..length).map(|_| pieces[next(pieces.len())]).collect();
        let text = format!("---\n{head}\n---\nWords.\n");
        let parsed = parse(&text);
        check_places(parsed.root.as_ref(), &text);
        for fault in &parsed.faults {
            assert!(fault.span.range().start <= text.len(), "{text:?}: {fault:?}");
        }
    }
}

fn check_places(node: Option<&Node<'_>>, text: &str) {
    let Some(node) = node else { return };
    assert!(node.span.range().start <= text.len(), "{text:?}: {node:?}");
    node.items().iter().for_each(|item| check_places(Some(item), text));
    for member in node.members() {
        assert!(text.get(member.key_span.range()).is_some(), "{text:?}: {member:?}");
        check_places(Some(&member.value), text);
    }
}
