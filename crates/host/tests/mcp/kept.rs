//! Servers that are kept between calls, and those that are not.

use std::path::Path;
use std::time::Duration;

use host::{Output, Warmth};
use policy::{Grant, GrantKind, Grants};
use serde_json::{Value, json};

use crate::hostile::BEGIN;
use crate::kit::Folder;
use crate::support::{Bench, tool};

/// A server in a folder below its package, which answers as a function body in Python says.
fn bench(folder: &Folder, body: &str) -> Bench {
    write_server(folder.path(), body);
    let runtime = json!({
        "kind": "mcp-stdio",
        "install": { "method": "npm", "package": "trial", "version_spec": "1.0.0" },
        "entrypoint": { "command": ["python3", "server.py"], "cwd": "below" },
    });
    Bench::of(tool(folder.path(), &runtime)).within(Duration::from_secs(20)).declaring("act")
}

fn write_server(folder: &Path, body: &str) {
    let text = format!("{BEGIN}\ndef act(id, arguments, request):\n    {body}\nserve(act)\n");
    std::fs::write(folder.join("below/server.py"), text).unwrap();
}

async fn says(bench: &Bench) -> String {
    match bench.call("act", json!({})).await {
        Ok(Output::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_whose_file_was_changed_is_started_anew_wherever_it_begins() {
    let folder = Folder::with(&[("below/server.py", "")]);
    let bench = bench(&folder, "say(id, 'first')");
    assert_eq!(says(&bench).await, "first");
    write_server(folder.path(), "say(id, 'the second')");
    assert_eq!(says(&bench).await, "the second");
}

#[tokio::test]
async fn a_server_does_not_keep_a_granted_folder_that_was_replaced() {
    let folder = Folder::with(&[("below/server.py", "")]);
    let lent = Folder::with(&[("lent/file", "old")]);
    let path = lent.path().join("lent");
    let body = format!("say(id, open('{}/file').read())", path.display());
    let value = path.to_str().unwrap().to_owned();
    let grants = Grants::from_iter([Grant { kind: GrantKind::Read, value }]);
    let bench = bench(&folder, &body).granting(grants);
    assert_eq!(says(&bench).await, "old");
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("file"), "new").unwrap();
    assert_eq!(says(&bench).await, "new");
}

#[tokio::test]
async fn of_servers_for_one_call_only_so_many_run_at_a_time() {
    let folder = Folder::with(&[("below/server.py", "")]);
    let lent = Folder::with(&[("running/.keep", "")]);
    let path = lent.path().join("running");
    let body = format!(
        "own = '{}/own-' + str(time.monotonic_ns())
    open(own, 'w').close()
    time.sleep(1)
    count = sum(name.startswith('own-') for name in os.listdir(os.path.dirname(own)))
    os.remove(own)
    say(id, str(count))",
        path.display()
    );
    let value = path.to_str().unwrap().to_owned();
    let grants = Grants::from_iter([Grant { kind: GrantKind::Write, value }]);
    let bench = bench(&folder, &body).granting(grants).within(Duration::from_mins(1));
    // The first one tells the others of which era they are.
    assert_eq!(bench.call("act", json!({})).await.unwrap(), Output::Json(json!(1)));
    let calls = (0..12).map(|_| bench.ask("act", json!({}), Warmth::Cold, None));
    for (reply, _) in futures_util::future::join_all(calls).await {
        let count: Value = reply.unwrap_or_else(|error| panic!("{error:?}")).into_value();
        assert!(count.as_u64().unwrap() <= 8, "{count}");
    }
}
