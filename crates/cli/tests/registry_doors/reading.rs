//! A client of the MCP world, which somebody else wrote, and the pages of the docs.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::common::{Desk, repository, write_below};
use super::opened::{Opened, weather};

/// Where the client of an MCP registry is, which somebody else wrote.
const CLIENT: &str = "HAFT_MCP_REGISTRY_CLIENT";

#[test]
fn a_client_of_the_mcp_world_reads_our_registry() {
    let Some(client) = std::env::var_os(CLIENT) else {
        return;
    };
    let desk = Desk::new();
    let served = Opened::start(&desk, "home", &[]);
    let dump: Vec<Value> = (0..5).map(|number| weather(&format!("s{number}"), "1.0.0")).collect();
    let path = write_below(desk.0.path(), "dump.json", &json!(dump).to_string());
    assert_eq!(served.import(&desk, &path, &[]).code, 0);
    let program = "import sys\n\
        from mcp_registry_cli.api import MCPRegistryAPI\n\
        MCPRegistryAPI.BASE_URL = sys.argv[1]\n\
        api, cursor, seen = MCPRegistryAPI(), None, []\n\
        while True:\n\
        \x20   page = api.list_servers(cursor=cursor, limit=2)\n\
        \x20   assert page['count'] == len(page['servers']) <= 2\n\
        \x20   seen += [(s.name, s.version, s.status, s.packages[0]['identifier']) for s in page['servers']]\n\
        \x20   cursor = page['next_cursor']\n\
        \x20   if not cursor: break\n\
        print(seen)\n";
    let ran = Command::new("python3")
        .args(["-c", program, served.url()])
        .env("PYTHONPATH", client)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(said.matches("'active', '@example/weather'").count(), 5, "{said}");
}

/// The commands of a page, each with what it is said to print.
fn commands(page: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match (is_inside, line) {
            (false, "```console") => is_inside = true,
            (true, "```") => is_inside = false,
            (true, line) => match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_owned(), String::new())),
                (None, Some(last)) if last.0.ends_with('\\') => {
                    last.0.truncate(last.0.len() - 1);
                    last.0.push_str(line.trim());
                }
                (None, Some(last)) => last.1 += &format!("{line}\n"),
                (None, None) => panic!("{} begins a block with `{line}`", page.display()),
            },
            _ => {}
        }
    }
    commands
}

#[test]
fn the_pages_of_the_docs_say_what_happens() {
    let desk = Desk::new();
    let served = Opened::start(&desk, "home", &[]);
    let program = assert_cmd::cargo::cargo_bin("haft");
    let path =
        format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut ran = 0;
    for page in ["mcp-registry.md", "importing.md", "federation.md", "jumith-hub.md"] {
        for (command, expected) in commands(&repository().join("docs").join(page)) {
            let output = Command::new("bash")
                .args(["-c", &format!("set -euo pipefail; {command}")])
                .current_dir(repository())
                .env("PATH", &path)
                .env("HAFT_HOME", desk.path("home"))
                .env("HAFT_TOKEN", &served.token)
                .env("REGISTRY_BASE_URL", served.url())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let wrong = || {
                format!("{page}: {command}\n{said}\n{}", String::from_utf8_lossy(&output.stderr))
            };
            assert!(output.status.success(), "{}", wrong());
            let mut rest = said.as_str();
            for piece in expected.trim_end().split('…').filter(|piece| !piece.is_empty()) {
                let piece = piece.replace("$REGISTRY_BASE_URL", served.url());
                let at =
                    rest.find(&piece).unwrap_or_else(|| panic!("`{piece}` is not in {}", wrong()));
                rest = &rest[at + piece.len()..];
            }
            ran += 1;
        }
    }
    assert!(ran >= 12, "{ran} commands");
}
