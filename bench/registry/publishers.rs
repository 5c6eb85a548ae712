//! Several who publish at once.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use package::write::{Packed, Writer};
use serde_json::{Value, json};
use server::Store;
use server::service::make_token;
use server::token::{Role, Scope};

use crate::data::Draws;
use crate::fill;
use crate::served::{Connection, Served};

/// How many publish at once.
const PUBLISHERS: usize = 8;

/// Publishes packages of a size, by several at once; how many a second.
pub(crate) fn rate(served: &Served, home: &Path, size: usize, count: usize) -> f64 {
    let token = token(home);
    let packages: Vec<Vec<u8>> =
        (0..count).map(|at| package(&format!("bench.publish-{size}-{at}"), size)).collect();
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..PUBLISHERS {
            scope.spawn(|| {
                let mut connection = Connection::to(served.port);
                while let Some(package) = packages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    publish(&mut connection, &token, package);
                }
            });
        }
    });
    count as f64 / started.elapsed().as_secs_f64()
}

/// Publishes one package; its name.
pub(crate) fn publish_one(served: &Served, home: &Path, id: &str, size: usize) -> String {
    publish(&mut Connection::to(served.port), &token(home), &package(id, size));
    id.to_owned()
}

fn publish(connection: &mut Connection, token: &str, package: &[u8]) {
    let headers = format!("authorization: Bearer {token}\r\ncontent-type: application/zip\r\n");
    let (status, body) = connection.send("POST", "/v1/tools", &headers, package);
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
}

/// How many files of a size are made durable in a second by as many at once: written, and on the disk.
pub(crate) fn disk(home: &Path, size: usize, count: usize) -> f64 {
    let folder = home.join("plain");
    std::fs::create_dir(&folder).unwrap();
    let bytes = noise("disk", size);
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..PUBLISHERS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    let mut file = std::fs::File::create(folder.join(at.to_string())).unwrap();
                    file.write_all(&bytes).unwrap();
                    file.sync_all().unwrap();
                }
            });
        }
    });
    count as f64 / started.elapsed().as_secs_f64()
}

/// A token for everything.
fn token(home: &Path) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::file(&fill::database(home)).await.unwrap();
        let (secret, _) = make_token(&store, Scope::All, Role::Publish, None).await.unwrap();
        store.close().await;
        secret.reveal().to_owned()
    })
}

/// A package of about this many bytes, which no compressor makes smaller.
fn package(id: &str, size: usize) -> Vec<u8> {
    let manifest: Value = json!({
        "toolId": id, "name": "Published", "version": "1.0.0",
        "description": "A tool that is published to see how long it takes.",
        "capabilities": ["bench"], "endpoint": {"type": "local", "command": "node ./index.js"},
        "input_schema": {"type": "object", "properties": {"page": {"type": "integer"}}},
        "output_schema": {"type": "object"}
    });
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let noise = noise(id, size);
    let manifest = manifest.to_string().into_bytes();
    for (path, content) in [
        ("data.bin", &noise),
        ("index.js", &b"// nothing\n".to_vec()),
        ("manifest.json", &manifest),
    ] {
        writer.add(&Packed::compress(path, content, false)).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

fn noise(seed: &str, size: usize) -> Vec<u8> {
    let seed = package::digest::Digest::of(seed.as_bytes());
    let mut draws = Draws::new(u64::from_le_bytes(seed.bytes()[..8].try_into().unwrap()));
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        bytes.extend_from_slice(&draws.next().to_le_bytes());
    }
    bytes
}
