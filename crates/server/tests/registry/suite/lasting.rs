//! What must not be lost or taken by others: decisions, ids, what is found beside something damaged.

use std::ops::Bound;

use axum::http::Method;
use search::Query;
use serde_json::json;
use server::Store;
use server::catalog::Catalog;
use server::token::{Role, Scope};

use super::doors::{alone, weather};
use super::packages::{bundle, mcpkg};
use super::world::World;

pub(crate) async fn what_was_answered_is_old_when_anything_changes(world: World) {
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await;
    let latest = async || world.get("/v1/tools/acme.pdf.read").await.json()["version"].clone();
    let found = async || world.get("/v1/tools/search?q=pdf").await.json()["total"].clone();
    // Twice each: the second time it comes out of memory.
    for _ in 0..2 {
        assert_eq!((latest().await, found().await), (json!("1.0.0"), json!(1)));
    }
    world.publish(mcpkg("acme.pdf.read", "1.1.0", "")).await;
    world.publish(mcpkg("acme.pdf.write", "1.0.0", "")).await;
    for _ in 0..2 {
        assert_eq!((latest().await, found().await), (json!("1.1.0"), json!(2)));
    }
    let exactly = "/v1/tools/acme.pdf.read/versions/1.1.0";
    assert_eq!(world.get(exactly).await.header("haft-yanked"), "");
    let yank = format!("{exactly}/yank");
    world.send(Method::POST, &yank, &world.token, r#"{"reason":"old"}"#).await;
    assert_eq!(world.get(exactly).await.header("haft-yanked"), "old");
    assert_eq!(latest().await, json!("1.0.0"));
    // Of two builds of one version the later is the newer, whatever its letters are.
    for version in ["2.0.0+zz", "2.0.0+aa"] {
        world.publish(mcpkg("acme.pdf.read", version, "")).await;
        assert_eq!(latest().await, json!(version));
    }
    let versions = world.get("/v1/tools/acme.pdf.read/versions").await.json();
    assert_eq!(
        (&versions["latest"], &versions["versions"][0]["version"]),
        (&json!("2.0.0+aa"), &json!("2.0.0+aa"))
    );
    // What lacks a version is no question for the highest.
    for path in ["/v1/tools/acme.pdf.read/versions/", "/v1/tools/acme.pdf.read/versions//package"] {
        world.get(path).await.refuses(404, "INVALID_REQUEST");
    }
}

pub(crate) async fn a_row_that_cannot_be_read_hides_no_other(world: World) {
    for name in ["one", "two", "three"] {
        world.publish(mcpkg(&format!("acme.{name}"), "1.0.0", name)).await;
    }
    // A text that is no text is kept by one of the databases alone; the other refuses to hold it.
    if !world.database.starts_with("postgres") {
        world
            .sql(
                "UPDATE versions SET found = CAST(x'ff7b' AS TEXT) WHERE package = 'tool:acme.two'",
            )
            .await;
        let known = world.replica().await;
        assert_eq!((known.catalog.len(), known.catalog.damaged()), (2, 1));
        // Those who are running go on taking in what others change.
        world.publish(mcpkg("acme.four", "1.0.0", "")).await;
        known.catalog.refresh(&known.store).await.unwrap();
        assert_eq!(known.catalog.len(), 3);
        world
            .sql(
                "UPDATE versions SET signers = CAST(x'ff' AS TEXT) WHERE package = 'tool:acme.one'",
            )
            .await;
        let page = world.get("/namespaces/acme").await;
        assert_eq!(page.status, 200, "{:?}", page.body);
    }
}

pub(crate) async fn what_no_client_reads_is_not_published(world: World) {
    let mut tool = bundle("tool:acme.mail", "acme.mail", "1.0.0");
    tool["manifest"]["tags"] = (0..600).map(|number| format!("tag-{number}")).collect();
    world.publish(tool.to_string()).await.refuses(400, "INVALID_REQUEST");
    // Whoever may only read is told so before anything is looked at.
    let reader = world.token_for("acme", Role::Read, None).await;
    let answer = world.send(Method::POST, "/v1/tools", &reader, "no package").await;
    answer.refuses(403, "FORBIDDEN");
}

/// What is saved of the index is only ever a copy: a start with it finds the same as one without.
pub(crate) async fn an_index_that_was_saved_is_brought_up_to_date(world: World) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index");
    world.publish(alone("server.json", &weather("1.0.0"))).await;
    for id in ["acme.one", "acme.two", "acme.three"] {
        world.publish(mcpkg(id, "1.0.0", id)).await;
    }
    let store = &world.registry.store;
    let found = |catalog: &Catalog| {
        let answers = catalog.search(&Query::new("pdf"));
        let mut rows: Vec<String> = answers.rows.iter().map(ToString::to_string).collect();
        rows.sort();
        (rows, catalog.tags_in(&Scope::All), catalog.recent(9).rows.len())
    };
    assert!(Catalog::saved(&file, store).await.is_none(), "there is none yet");
    assert!(world.registry.catalog.save(&file, store, 0).await.is_none(), "it is not worth it");
    assert!(world.registry.catalog.save(&file, store, -1_000_000).await.is_some());
    let saved = Catalog::saved(&file, store).await.unwrap();
    assert_eq!(found(&saved), found(&world.registry.catalog));
    let servers = saved.servers_holding("weather", Bound::Unbounded, None, 9);
    assert_eq!(servers, ["com.example/weather"]);
    // What came after it is taken in, and what went is gone.
    world.publish(mcpkg("acme.four", "1.0.0", "four")).await;
    world.publish(mcpkg("acme.two", "2.0.0", "two")).await;
    let yank = "/v1/tools/acme.one/versions/1.0.0/yank";
    world.send(Method::POST, yank, &world.token, "{}").await;
    let late = Catalog::saved(&file, store).await.unwrap();
    late.refresh(store).await.unwrap();
    assert_eq!(found(&late), found(&world.registry.catalog));
    assert_eq!((late.len(), late.last().await), (4, world.registry.catalog.last().await));
    // The last change that it knows is another one now: nobody can say whether it is of this database.
    world.publish(mcpkg("acme.three", "2.0.0", "three")).await;
    assert!(Catalog::saved(&file, store).await.is_none());
    // Nor is that of another registry, or a damaged one, of any use.
    assert!(world.registry.catalog.save(&file, store, -1_000_000).await.is_some());
    let other = Store::file(&folder.path().join("other.db")).await.unwrap();
    assert!(Catalog::saved(&file, &other).await.is_none());
    let mut bytes = std::fs::read(&file).unwrap();
    bytes.pop();
    std::fs::write(&file, bytes).unwrap();
    assert!(Catalog::saved(&file, store).await.is_none());
}
