//! Backup and restore.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::{Method, Request};
use package::digest::Digest;
use serde_json::json;
use server::blobs::BlobError;
use server::care::CareError;
use server::care::backup::backup;
use server::care::check::check;
use server::care::gc::{Mode, collect};
use server::care::restore::{Others, restore};
use server::service::OpenError;
use server::settings::Quarantine;
use server::token::Role;
use server::{Blobs, Store};

use super::collecting::AT_ONCE;
use super::doors::{alone, capability, installed};
use super::files::publish;
use super::packages::{archive, mcpkg};
use super::world::{World, ask};

/// A backup that is made while somebody publishes is of one moment, and comes back into an empty registry alone.
pub(crate) async fn a_backup_comes_back(world: World) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two", "three"] {
        publish(&world, &format!("acme.{name}"), name).await;
    }
    world.publish(mcpkg("acme.one", "1.1.0", "")).await;
    let path = "/v1/tools/acme.two/versions/1.0.0/yank";
    let admin = world.token_for("*", Role::Admin, None).await;
    world.send(Method::POST, path, &admin, r#"{"reason":"old"}"#).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let publishing = {
        let (is_over, registry) = (Arc::clone(&is_over), Arc::clone(&world.registry));
        let token = world.token.clone();
        tokio::spawn(async move {
            for round in 0.. {
                if is_over.load(Ordering::Acquire) {
                    break;
                }
                let request = Request::post("/v1/tools")
                    .header("authorization", format!("Bearer {token}"))
                    .body(Body::from(mcpkg("acme.busy", &format!("1.0.{round}"), "")))
                    .unwrap();
                assert_eq!(ask(&registry, request).await.status, 201);
            }
        })
    };
    let (file, tree) = (folder.path().join("registry.tar"), folder.path().join("registry/"));
    let store = &world.registry.store;
    let kept = backup(store, &world.blobs, &file).await.unwrap();
    backup(store, &world.blobs, &tree).await.unwrap();
    is_over.store(true, Ordering::Release);
    publishing.await.unwrap();
    assert!(kept.files >= 4 && kept.damaged.is_empty(), "{kept:?}");
    for path in [&file, &tree] {
        check_private(path);
    }
    assert!(matches!(backup(store, &world.blobs, &file).await, Err(CareError::Exists(_))));
    assert!(matches!(backup(store, &world.blobs, &tree).await, Err(CareError::Exists(_))));
    let refused = restore(store, &world.blobs, &file, Others::Refuse, &std::env::temp_dir()).await;
    assert!(matches!(refused, Err(CareError::NotEmpty(_))), "{refused:?}");
    for (number, from) in [&file, &tree].into_iter().enumerate() {
        let database = folder.path().join(format!("{number}.db"));
        let blobs = Blobs::folder(&folder.path().join(format!("blobs-{number}"))).unwrap();
        let fresh = Store::file(&database).await.unwrap();
        let restored =
            restore(&fresh, &blobs, from, Others::Refuse, &std::env::temp_dir()).await.unwrap();
        assert!(restored.missing.is_empty() && restored.files >= 4, "{restored:?}");
        let mut findings = Vec::new();
        let whole = check(&fresh, &blobs, |finding| findings.push(finding)).await.unwrap();
        assert_eq!((whole.damaged, whole.noted), (0, 0), "{findings:#?}");
        assert_eq!(whole.versions, whole.files);
        // It is served as it was: the same versions, the same token, and new ones after them.
        let registry =
            server::Registry::open(fresh, blobs, server::Settings::default()).await.unwrap();
        let registry = Arc::new(registry);
        let get = async |path: &str| {
            ask(&registry, Request::get(path).body(Body::empty()).unwrap()).await
        };
        assert_eq!(
            get("/v1/tools/acme.one/versions").await.json(),
            world.get("/v1/tools/acme.one/versions").await.json()
        );
        assert_eq!(
            get("/v1/tools/acme.two/versions").await.json()["versions"][0]["yankReason"],
            "old"
        );
        let again = Request::delete(path)
            .header("authorization", format!("Bearer {}", world.token))
            .body(Body::empty())
            .unwrap();
        ask(&registry, again).await.refuses(403, "FORBIDDEN");
        let request = Request::post("/v1/tools")
            .header("authorization", format!("Bearer {}", world.token))
            .body(Body::from(mcpkg("acme.one", "1.2.0", "")))
            .unwrap();
        assert_eq!(ask(&registry, request).await.status, 201);
        assert_eq!(get("/v1/tools/acme.one").await.json()["version"], "1.2.0");
    }
}

/// Files and a database that do not belong together are neither served nor cleaned up.
pub(crate) async fn files_belong_to_one_registry(world: World) {
    let is_others = |error: &CareError| matches!(error, CareError::Blob(BlobError::OtherRegistry));
    let folder = tempfile::tempdir().unwrap();
    let digest = publish(&world, "acme.one", "one").await;
    let file = folder.path().join("registry.tar");
    let own = &world.registry.store;
    backup(own, &world.blobs, &file).await.unwrap();
    let open = async |database: &str| {
        let store = Store::open(database).await.unwrap();
        server::Registry::open(store, world.blobs.clone(), server::Settings::default()).await
    };
    let gc =
        async |store: &Store| collect(store, &world.blobs, AT_ONCE, Mode::Remove, |_| {}).await;
    // An empty database, as somebody makes it who forgets to name the right one.
    let place = folder.path().join("other.db").display().to_string();
    let other = Store::open(&place).await.unwrap();
    let refused = open(&place).await.unwrap_err();
    assert!(matches!(refused, OpenError::Blob(BlobError::OtherRegistry)), "{refused}");
    assert!(is_others(&gc(&other).await.unwrap_err()));
    assert!(is_others(&check(&other, &world.blobs, |_| {}).await.unwrap_err()));
    let into = folder.path().join("other.tar");
    assert!(is_others(&backup(&other, &world.blobs, &into).await.unwrap_err()));
    assert!(!into.exists());
    let again = restore(&other, &world.blobs, &file, Others::Refuse, &std::env::temp_dir()).await;
    assert!(is_others(&again.unwrap_err()));
    assert!(world.blobs.get(digest).await.is_ok(), "nothing was removed");
    // Whoever restores beside files that were kept says so; the database they belonged to is refused from then on.
    assert_eq!(
        restore(&other, &world.blobs, &file, Others::TakeOver, &std::env::temp_dir())
            .await
            .unwrap()
            .files,
        1
    );
    assert_eq!(gc(&other).await.unwrap().removed, 0);
    assert!(open(&place).await.is_ok());
    assert!(is_others(&gc(own).await.unwrap_err()));
    assert!(open(&world.database).await.is_err());
    // Files of which nobody has said whose they are are not cleaned up either.
    let blobs = Blobs::folder(&folder.path().join("nobodys")).unwrap();
    blobs.put(digest, world.blobs.get(digest).await.unwrap()).await.unwrap();
    let nobodys = collect(own, &blobs, AT_ONCE, Mode::Remove, |_| {}).await;
    assert!(matches!(nobodys, Err(CareError::Blob(BlobError::NoRegistry))), "{nobodys:?}");
}

/// It holds hashes of tokens and packages of private registries: nobody else on the machine reads any of it.
fn check_private(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{} has the mode {mode:o}", path.display());
    for entry in path.read_dir().into_iter().flatten() {
        check_private(&entry.unwrap().path());
    }
}

/// A backup that was cut off, changed, or is none is refused, and nothing of it is in the registry.
pub(crate) async fn what_is_no_backup_is_refused(world: World) {
    let folder = tempfile::tempdir().unwrap();
    let whole = publish(&world, "acme.one", "some text that can be found again").await;
    let lost = publish(&world, "acme.lost", "").await;
    let file = folder.path().join("registry.tar");
    backup(&world.registry.store, &world.blobs, &file).await.unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let fresh = Store::file(&folder.path().join("fresh.db")).await.unwrap();
    let blobs = Blobs::folder(&folder.path().join("blobs")).unwrap();
    let blob = bytes.windows(4).rposition(|four| four == b"PK\x03\x04").unwrap();
    let row = bytes.windows(8).position(|eight| eight == b"acme.one").unwrap();
    let head = bytes.windows(11).position(|some| some == b"\"tables\": 1").unwrap();
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        bytes
    };
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("a text", b"hello".repeat(500)),
        ("cut off", bytes[..bytes.len() / 2].to_vec()),
        ("without its end", bytes[..bytes.len() - 2_048].to_vec()),
        ("another blob", changed(blob + 30, b'~')),
        ("another row", changed(row, b'~')),
        ("from the future", changed(head + 10, b'9')),
    ] {
        let path = folder.path().join("bad.tar");
        std::fs::write(&path, bytes).unwrap();
        let refused = restore(&fresh, &blobs, &path, Others::Refuse, &std::env::temp_dir()).await;
        assert!(refused.is_err(), "{what}");
        if what == "from the future" {
            assert!(matches!(refused, Err(CareError::Newer { found: 9, .. })), "{refused:?}");
        }
        assert_eq!(fresh.first_with_rows().await.unwrap(), None, "{what}");
    }
    // What was damaged already is named when it is kept and when it comes back, and hides no other.
    world.blobs.remove(lost).await.unwrap();
    let file = folder.path().join("damaged.tar");
    let kept = backup(&world.registry.store, &world.blobs, &file).await.unwrap();
    assert!(kept.damaged.len() == 1 && kept.damaged[0].contains(&lost.to_string()), "{kept:?}");
    let fresh_blobs = Blobs::folder(&folder.path().join("fresh-blobs")).unwrap();
    let restored =
        restore(&fresh, &fresh_blobs, &file, Others::Refuse, &std::env::temp_dir()).await.unwrap();
    assert_eq!(restored.missing, [lost.to_string()]);
    fresh_blobs.verify(whole).await.unwrap();
}

/// Every row of every table, in words.
async fn rows(store: &Store) -> Vec<String> {
    let mut rows = Vec::new();
    let keep = |row: &serde_json::Value| {
        rows.push(row.to_string());
        Ok::<_, server::store::StoreError>(())
    };
    assert_eq!(store.dump(keep).await.unwrap(), []);
    rows.sort();
    rows
}

/// Owners, reviews, publishers, identities, what other worlds are told: whatever a part keeps comes back as it was.
pub(crate) async fn a_backup_holds_every_table(mut world: World) {
    world.set(|settings| settings.quarantine = Quarantine::Everybody).await;
    let admin = world.token_for("*", Role::Admin, None).await;
    publish(&world, "acme.one", "").await;
    publish(&world, "acme.two", "").await;
    world.publish(alone("manifest.json", &capability("acme.hash"))).await;
    let runtime = json!({"kind": "mcp-http", "install": {"method": "pip", "package": "unused"},
        "endpoint_url": "https://mail.example.com/mcp"});
    world.publish(alone("manifest.json", &installed("acme-mail", "1.0.0", &runtime))).await;
    let rule = json!({"issuer": "https://issuer.example", "audience": "registry",
        "namespace": "acme", "claims": {"repository": "acme/tools"}});
    for (method, path, body) in [
        (Method::PUT, "/v1/tools/acme.one/owners/friends", String::new()),
        (
            Method::POST,
            "/v1/tools/acme.one/versions/1.0.0/review",
            json!({"channel": "beta", "reason": "read it"}).to_string(),
        ),
        (
            Method::POST,
            "/v1/tools/acme-mail/versions/1.0.0/review",
            json!({"channel": "stable"}).to_string(),
        ),
        (Method::POST, "/v1/publishers", rule.to_string()),
    ] {
        let answer = world.send(method, path, &admin, body).await;
        assert!(answer.status.is_success(), "{path}: {answer:?}");
    }
    world.sql("INSERT INTO identities (hash, expires_at) VALUES ('abc', 4000000000000)").await;
    let gone = "INSERT INTO removals (digest, marked_at, removed_at) VALUES ('abc', 1, 2)";
    world.sql(gone).await;
    let before = rows(&world.registry.store).await;
    for table in [
        "feed",
        "packages",
        "versions",
        "reviews",
        "owners",
        "tokens",
        "publishers",
        "identities",
        "removals",
    ] {
        let of = format!("\"table\":\"{table}\"");
        assert!(before.iter().any(|row| row.contains(&of)), "{table} is empty");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("registry.tar");
    backup(&world.registry.store, &world.blobs, &file).await.unwrap();
    let fresh = Store::file(&folder.path().join("fresh.db")).await.unwrap();
    let blobs = Blobs::folder(&folder.path().join("blobs")).unwrap();
    restore(&fresh, &blobs, &file, Others::Refuse, &std::env::temp_dir()).await.unwrap();
    assert_eq!(rows(&fresh).await, before);
    let mut findings = Vec::new();
    let whole = check(&fresh, &blobs, |finding| findings.push(finding)).await.unwrap();
    assert_eq!((whole.damaged, whole.noted), (0, 0), "{findings:#?}");
    // It is served as it was.
    let settings = world.registry.settings.clone();
    let registry = Arc::new(server::Registry::open(fresh, blobs, settings).await.unwrap());
    for path in [
        "/v1/reviews",
        "/v1/publishers",
        "/v1/tokens",
        "/v1/tools/acme.one/owners",
        "/v1/tools/acme.one/versions",
        "/v1/tools/acme.one/versions/1.0.0/review",
        "/v1/tools?channel=beta",
        "/v1/catalog.json",
        "/.well-known/install-manifests.json",
        "/v0.1/servers",
    ] {
        let request = || {
            let request = Request::get(path).header("host", "tools.example.com");
            let request = request.header("authorization", format!("Bearer {admin}"));
            request.body(Body::empty()).unwrap()
        };
        let was = world.ask(request()).await;
        assert_eq!(was.status, 200, "{path}");
        assert_eq!(ask(&registry, request()).await.json(), was.json(), "{path}");
    }
}

/// Two versions may have the same file; it is kept once and comes back for both.
pub(crate) async fn a_file_that_two_versions_have_is_kept_once(world: World) {
    let tools: &[u8] =
        br#"{"tools":[{"name":"a","description":"A","command":["./tools/bin/a"],"schema":{"type":"object"}}]}"#;
    let bytes = archive(&[("tools.json", tools), ("tools/bin/a", b"#!/bin/sh\n")]);
    for id in ["acme.one", "acme.two"] {
        let path = format!("/v1/tools?id={id}");
        let answer = world.send(Method::POST, &path, &world.token, bytes.clone()).await;
        assert_eq!(answer.status, 201, "{}", answer.json());
    }
    let folder = tempfile::tempdir().unwrap();
    for (number, into) in ["registry.tar", "registry/"].into_iter().enumerate() {
        let into = folder.path().join(into);
        let kept = backup(&world.registry.store, &world.blobs, &into).await.unwrap();
        assert_eq!((kept.files, kept.bytes), (1, bytes.len() as u64), "{kept:?}");
        let fresh = Store::file(&folder.path().join(format!("{number}.db"))).await.unwrap();
        let blobs = Blobs::folder(&folder.path().join(format!("blobs-{number}"))).unwrap();
        assert_eq!(
            restore(&fresh, &blobs, &into, Others::Refuse, &std::env::temp_dir())
                .await
                .unwrap()
                .files,
            1
        );
        assert_eq!(rows(&fresh).await, rows(&world.registry.store).await);
    }
    // One that is missing is named once too.
    let digest = Digest::of(&bytes);
    world.blobs.remove(digest).await.unwrap();
    let into = folder.path().join("without.tar");
    let kept = backup(&world.registry.store, &world.blobs, &into).await.unwrap();
    assert_eq!((kept.files, kept.damaged.len()), (0, 1), "{kept:?}");
    let fresh = Store::file(&folder.path().join("without.db")).await.unwrap();
    let blobs = Blobs::folder(&folder.path().join("blobs-without")).unwrap();
    let restored =
        restore(&fresh, &blobs, &into, Others::Refuse, &std::env::temp_dir()).await.unwrap();
    assert_eq!(restored.missing, [digest.to_string()]);
}
