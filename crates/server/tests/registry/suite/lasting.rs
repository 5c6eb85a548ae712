//! What must not be lost or taken by others: decisions, ids, what is found beside something damaged.

use axum::http::Method;
use serde_json::json;
use server::token::Role;

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
