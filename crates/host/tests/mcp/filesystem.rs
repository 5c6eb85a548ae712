//! The protocol's own server of files, which sees what was granted and no more.

use std::time::Duration;

use host::{Kind, Output};
use policy::{Grant, GrantKind, Grants};
use serde_json::json;

use crate::support::{Bench, node_servers};

const INDEX: &str = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";

#[tokio::test]
async fn the_walls_hold_whatever_the_server_was_told() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let shared = folder.path().canonicalize().unwrap();
    std::fs::write(shared.join("note.txt"), "granted").unwrap();
    let path = shared.to_str().unwrap();
    let grant = Grant { kind: GrantKind::Read, value: path.to_owned() };
    let mut bench = Bench::command(&node_servers(), &["node", INDEX, path, "/etc"])
        .within(Duration::from_mins(1))
        .granting(Grants::from_iter([grant]));
    bench.discover().await;
    let note = json!({ "path": shared.join("note.txt") });
    let read = bench.call("read_text_file", note).await.unwrap();
    assert!(matches!(&read, Output::Json(value) if value["content"] == "granted"), "{read:?}");
    // The server itself would allow this one; the walls do not have it.
    let error = bench.call("read_text_file", json!({ "path": "/etc/shadow" })).await.unwrap_err();
    assert_eq!(error.kind, Kind::Failed);
    let file = json!({ "path": shared.join("new.txt"), "content": "planted" });
    let error = bench.call("write_file", file).await.unwrap_err();
    assert_eq!(error.kind, Kind::Failed);
    assert!(!shared.join("new.txt").exists());
}
