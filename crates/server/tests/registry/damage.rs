//! What is damaged breaks no other, and connections that are slow or rude cost little.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::suite::packages::{bundle, mcpkg};
use crate::suite::world::World;
use crate::suite::{doors, shelf};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use server::care::backup::backup;
use server::care::restore::{Others, restore};
use server::token::Role;
use server::{Blobs, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

/// A world, and the folder that its stores are in.
async fn fresh() -> (World, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let database = path.join("registry.db").display().to_string();
    let blobs = Blobs::folder(&path.join("blobs")).unwrap();
    (World::new(database, blobs, folder).await, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_or_missing_file_is_told_and_the_others_are_served() {
    let (world, folder) = fresh().await;
    let mut digests = Vec::new();
    for name in ["one.x", "two.x", "three.x"] {
        let answer =
            world.publish(bundle(&format!("tool:{name}"), name, "1.0.0").to_string()).await;
        digests.push(answer.json()["sha256"].as_str().unwrap().to_owned());
    }
    let path = |digest: &str| folder.join("blobs/sha256").join(&digest[..2]).join(digest);
    let mut bytes = std::fs::read(path(&digests[0])).unwrap();
    bytes[40] ^= 1;
    std::fs::write(path(&digests[0]), bytes).unwrap();
    std::fs::remove_file(path(&digests[1])).unwrap();
    world.get("/v1/tools/one.x/versions/1.0.0/bundle").await.refuses(500, "INTERNAL_ERROR");
    world.get("/v1/tools/two.x/versions/1.0.0/bundle").await.refuses(500, "INTERNAL_ERROR");
    world.get("/v1/tools/two.x/versions/1.0.0/package").await.refuses(500, "INTERNAL_ERROR");
    let tag = format!("\"{}\"", digests[1]);
    let known = world.get_with("/v1/tools/two.x/versions/1.0.0/package", ("if-none-match", &tag));
    assert_eq!(known.await.status, StatusCode::NOT_MODIFIED, "who has it needs no file");
    assert_eq!(world.get("/v1/tools/three.x/versions/1.0.0/bundle").await.status, StatusCode::OK);
    // Publishing the same bytes again mends it, whether it was damaged or gone.
    for name in ["one.x", "two.x"] {
        let again = world.publish(bundle(&format!("tool:{name}"), name, "1.0.0").to_string()).await;
        assert_eq!(again.status, StatusCode::OK);
        let path = format!("/v1/tools/{name}/versions/1.0.0/bundle");
        assert_eq!(world.get(&path).await.status, StatusCode::OK);
    }
}

/// Each package is in memory while it is read, whoever has left meanwhile. The files are pipes here: whoever reads one
/// waits until somebody writes.
#[tokio::test(flavor = "multi_thread")]
async fn two_packages_are_read_at_a_time_though_nobody_waits_for_them() {
    for (kind, path) in
        [("page", "/tools/NAME"), ("bundle", "/v1/tools/NAME/versions/1.0.0/bundle")]
    {
        let (world, folder) = fresh().await;
        let app = server::web::router(std::sync::Arc::clone(&world.registry));
        let get = async |name: &str| {
            let asked = path.replace("NAME", name);
            let request = Request::get(asked).header("host", "tools.example.com");
            let answer = app.clone().oneshot(request.body(Body::empty()).unwrap()).await;
            answer.unwrap().status()
        };
        let mut pipes = Vec::new();
        for name in ["one.x", "two.x", "three.x", "four.x"] {
            let sent = bundle(&format!("tool:{name}"), name, "1.0.0").to_string();
            let digest = world.publish(sent).await.json()["sha256"].as_str().unwrap().to_owned();
            let pipe = folder.join("blobs/sha256").join(&digest[..2]).join(&digest);
            std::fs::remove_file(&pipe).unwrap();
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            pipes.push(pipe);
            let left = tokio::time::timeout(Duration::from_millis(500), get(name)).await;
            assert!(left.is_err(), "{kind}: {left:?}");
        }
        // Nobody but who reads lets a pipe be opened for writing without waiting.
        let is_read = |pipe: &&PathBuf| {
            let mut writing = Command::new("dd");
            writing.args(["if=/dev/null", "oflag=nonblock", "conv=nocreat,notrunc", "status=none"]);
            let done = writing.arg(format!("of={}", pipe.display())).output().unwrap();
            done.status.success()
        };
        let read = pipes.iter().filter(is_read).count();
        assert!(read <= 2, "{kind}: {read} are read");
        // Whoever comes later has a turn again.
        world.publish(bundle("tool:five.x", "five.x", "1.0.0").to_string()).await;
        assert_eq!(get("five.x").await, StatusCode::OK, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_shown_though_the_file_of_its_package_is_gone() {
    let (world, folder) = fresh().await;
    let answer = world.publish(shelf::reader("1.0.0", false)).await;
    let digest = answer.json()["sha256"].as_str().unwrap().to_owned();
    std::fs::remove_file(folder.join("blobs/sha256").join(&digest[..2]).join(&digest)).unwrap();
    let page = world.get("/tools/acme.pdf.read").await;
    assert_eq!(page.status, StatusCode::OK);
    let page = std::str::from_utf8(&page.body).unwrap();
    for part in ["cannot be read at the moment", "What it may do", "1 to 5000"] {
        assert!(page.contains(part), "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_is_left_out_and_counted() {
    use sqlx::Connection;
    let (world, _) = fresh().await;
    for id in ["acme.pdf.one", "acme.pdf.two", "acme.pdf.three"] {
        world.publish(mcpkg(id, "1.0.0", "")).await;
    }
    let mut connection =
        sqlx::SqliteConnection::connect(&format!("sqlite://{}", world.database)).await.unwrap();
    for change in [
        "UPDATE versions SET entry = x'ff' WHERE package = 'tool:acme.pdf.one'",
        "UPDATE versions SET found = '{' WHERE package = 'tool:acme.pdf.two'",
    ] {
        sqlx::raw_sql(change).execute(&mut connection).await.unwrap();
    }
    let replica = world.replica().await;
    assert_eq!((replica.catalog.len(), replica.catalog.damaged()), (1, 2));
}

/// A text that is no text, in one row of each list: the others are answered, and what was left out is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_breaks_no_list() {
    let (world, folder) = fresh().await;
    let admin = world.token_for("*", Role::Admin, None).await;
    for number in 0..5 {
        let mut server = doors::weather("1.0.0");
        server["name"] = format!("com.example/weather{number}").into();
        let answer = world.publish(doors::alone("server.json", &server)).await;
        assert_eq!(answer.status, StatusCode::CREATED);
        world.token_for(&format!("team{number}"), Role::Read, None).await;
    }
    for version in ["1.0.0", "1.1.0", "1.2.0"] {
        world.publish(mcpkg("acme.pdf.read", version, "")).await;
        let path = format!("/v1/tools/acme.pdf.read/versions/{version}/review");
        for channel in ["beta", "stable"] {
            let said = serde_json::json!({"channel": channel, "reason": channel}).to_string();
            world.send(Method::POST, &path, &admin, said).await;
        }
    }
    for owner in ["one", "two"] {
        let path = format!("/v1/tools/acme.pdf.read/owners/{owner}");
        assert_eq!(world.send(Method::PUT, &path, &world.token, "").await.status, StatusCode::OK);
    }
    let length = async |path: &str, list: &str| {
        let answer = world.get_as(&admin, path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
        answer.json()[list].as_array().unwrap().len()
    };
    let lists = async || {
        let reviews = "/v1/tools/acme.pdf.read/versions/1.1.0/review";
        (
            length("/v0.1/servers", "servers").await,
            length("/v1/tokens", "tokens").await,
            length("/v1/tools/acme.pdf.read/versions", "versions").await,
            length(reviews, "reviews").await,
            length("/v1/tools/acme.pdf.read/owners", "owners").await,
        )
    };
    assert_eq!(lists().await, (5, 7, 3, 2, 2));
    let whole = backup(&world.registry.store, &world.blobs, &folder.join("whole.tar")).await;
    let whole = whole.unwrap();
    for change in [
        "UPDATE versions SET server = CAST(x'ff7b' AS TEXT) WHERE package = 'tool:com.example/weather2'",
        "UPDATE tokens SET namespace = CAST(x'ff' AS TEXT) WHERE namespace = 'team3'",
        "UPDATE versions SET signature = CAST(x'ff' AS TEXT) WHERE version = '1.1.0'",
        "UPDATE reviews SET reason = CAST(x'ff' AS TEXT) WHERE version = '1.1.0' AND reason = 'beta'",
        "UPDATE owners SET namespace = CAST(x'ff' AS TEXT) WHERE namespace = 'one'",
    ] {
        world.sql(change).await;
    }
    assert_eq!(lists().await, (4, 6, 2, 1, 1));
    // What is behind it is reached page by page too.
    let (mut cursor, mut seen) = (String::new(), 0);
    loop {
        let page = world.get(&format!("/v0.1/servers?limit=2&cursor={cursor}")).await.json();
        seen += page["servers"].as_array().unwrap().len();
        match page["metadata"]["nextCursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(seen, 4);
    let metrics = String::from_utf8(world.get("/metrics").await.body.to_vec()).unwrap();
    assert!(!metrics.contains("haft_catalog_damaged 0"), "{metrics}");
    // A package that cannot be read takes its versions along: without it they could not come back.
    world.sql("UPDATE packages SET dialect = CAST(x'ff' AS TEXT) WHERE id LIKE '%weather4'").await;
    let file = folder.join("rest.tar");
    let kept = backup(&world.registry.store, &world.blobs, &file).await.unwrap();
    assert_eq!((kept.damaged.len(), kept.rows), (7, whole.rows - 7), "{:#?}", kept.damaged);
    for named in ["versions row", "tokens row", "reviews row", "owners row", "packages row"] {
        assert!(kept.damaged.iter().any(|what| what.starts_with(named)), "{:#?}", kept.damaged);
    }
    let fresh = Store::file(&folder.join("fresh.db")).await.unwrap();
    let blobs = Blobs::folder(&folder.join("fresh-blobs")).unwrap();
    assert_eq!(
        restore(&fresh, &blobs, &file, Others::Refuse, &std::env::temp_dir()).await.unwrap().rows,
        kept.rows
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_newer_version_is_refused() {
    use sqlx::Connection;
    let (world, _) = fresh().await;
    let mut connection =
        sqlx::SqliteConnection::connect(&format!("sqlite://{}", world.database)).await.unwrap();
    sqlx::raw_sql("UPDATE haft_registry SET version = 999").execute(&mut connection).await.unwrap();
    let refused = Store::open(&world.database).await.unwrap_err();
    assert!(refused.to_string().contains("newer"), "{refused}");
    assert!(Store::open("mysql://x/y").await.is_err());
    assert!(Blobs::open("ftp://x", &[]).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_on_a_socket_and_stops_when_it_is_told() {
    let (world, _) = fresh().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let app = server::web::router(std::sync::Arc::clone(&world.registry));
    let serving = tokio::spawn(async move {
        server::web::serve(listener, app, async { drop(stopped.await) }).await;
    });
    let ask = async |request: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = ask("GET /v1/tools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\"total\":0}"), "{answer}");
    for broken in [
        "GET /v1/tools HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "nonsense\r\n\r\n",
    ] {
        assert!(ask(broken).await.starts_with("HTTP/1.1 400"), "{broken}");
    }
    let huge = format!("GET /v1/tools HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(100_000));
    assert!(ask(&huge).await.starts_with("HTTP/1.1 431"));
    stop.send(()).unwrap();
    serving.await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
