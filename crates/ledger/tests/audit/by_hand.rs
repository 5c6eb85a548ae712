//! What `docs/audit.md` shows is what works.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::home::{DAY, Home};
use crate::processes::killed_while_sitting;

/// The block of a language on the page, by its number.
fn block(language: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

fn run(program: &str, script: &str, folder: &Path) -> Output {
    Command::new(program)
        .args(["-c", script])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("`{program}` cannot be run: {error}"))
}

#[test]
fn the_python_on_the_page_verifies_a_log() {
    let home = Home::with([0, 1, 2, DAY, 3 * DAY]);
    let output = run("python3", &block("python"), &home.folder());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, "5 records, the chain is whole, the head is signed\n");
}

#[test]
fn the_python_on_the_page_verifies_a_log_whose_writer_was_killed() {
    let home = killed_while_sitting();
    let (head, script) = (home.folder().join("head"), block("python"));
    // What a killed writer may leave after the head is no business of the page.
    let named = {
        let head: serde_json::Value = serde_json::from_slice(&fs::read(&head).unwrap()).unwrap();
        usize::try_from(head["seq"].as_u64().unwrap()).unwrap()
    };
    home.change(|lines| lines.truncate(named));
    let output = run("python3", &script, &home.folder());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("the chain is whole"));
    let sealed = fs::read_to_string(&head).unwrap();
    fs::write(&head, sealed.replacen("\"ts\":\"2025", "\"ts\":\"2024", 1)).unwrap();
    assert!(!run("python3", &script, &home.folder()).status.success());
}

#[test]
fn the_python_on_the_page_finds_what_was_changed() {
    let attacks: [fn(&Home); 4] = [
        |home| home.change(|lines| lines[1] = lines[1].replace("terminal", "mcp")),
        |home| home.change(|lines| drop(lines.remove(1))),
        |home| fs::remove_file(home.folder().join("20251118.log")).unwrap(),
        |home| {
            let path = home.folder().join("head");
            let head = fs::read_to_string(&path).unwrap();
            fs::write(&path, head.replace("\"ts\":\"2025", "\"ts\":\"2024")).unwrap();
        },
    ];
    for (number, attack) in attacks.iter().enumerate() {
        let home = Home::with([0, 1, 2, DAY, 3 * DAY]);
        attack(&home);
        let output = run("python3", &block("python"), &home.folder());
        assert!(!output.status.success(), "attack {number}: {output:?}");
    }
}

#[test]
fn the_shell_on_the_page_gives_the_hash_of_a_line() {
    let home = Home::with([0, 1, 2]);
    let output = run("sh", &block("sh"), &home.folder());
    let said = String::from_utf8(output.stdout).unwrap();
    let line = home.text().lines().nth(1).unwrap().to_owned();
    assert!(
        line.ends_with(&format!("\"hash\":\"{}\"}}", said.split(' ').next().unwrap())),
        "{said}"
    );
}
