//! The form of a Jumith hub.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use server::token::Role;

use super::checking::checked;
use super::world::{Answer, World, ask};

/// A form, as a browser sends it.
pub(crate) fn form(
    token: &str,
    fields: &[(&str, &str)],
    file: Option<(&str, &[u8])>,
) -> Request<Body> {
    let mut body = Vec::new();
    for (name, value) in fields {
        let head =
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(head.as_bytes());
    }
    if let Some((name, content)) = file {
        let head = format!(
            "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: text/x-python\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--x--\r\n");
    Request::post("/v1/tools/upload")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "multipart/form-data; boundary=x")
        .body(Body::from(body))
        .unwrap()
}

async fn send(world: &World, fields: &[(&str, &str)], file: Option<(&str, &[u8])>) -> Answer {
    world.ask(form(&world.token, fields, file)).await
}

pub(crate) async fn a_file_with_a_form_is_published_as_the_hub_does(world: World) {
    let python: &[u8] = b"def run(a, b):\n    return a + b\n";
    let fields = [
        ("name", "Add Two Numbers"),
        ("description", "Adds two numbers.\nReally."),
        ("requires_approval", "on"),
        ("required_secrets", "ONE_KEY\r\nTWO_KEY, three"),
    ];
    let answer = send(&world, &fields, Some(("add.py", python))).await;
    assert_eq!(answer.status, 201, "{}", answer.json());
    let made = answer.json();
    assert_eq!(
        (&made["id"], &made["name"], &made["version"]),
        (&json!("tool:add.two.numbers"), &json!("add.two.numbers"), &json!("1.0.0"))
    );
    let described = world.get("/v1/tools/tool:add.two.numbers").await.json();
    assert_eq!(described["entry"], json!({"runtime": "python", "main": "add.py"}));
    assert_eq!(described["summary"], "Adds two numbers. Really.");
    assert_eq!(described["requiredSecrets"], json!(["ONE_KEY", "TWO_KEY", "three"]));
    assert_eq!(
        (&described["requiresApproval"], &described["usesPayment"]),
        (&json!(true), &json!(false))
    );
    let found = world.get("/v1/tools/search?q=numbers").await.json();
    assert_eq!(found["results"][0]["id"], "tool:add.two.numbers");
    let bundle = "/v1/tools/tool:add.two.numbers/versions/1.0.0/bundle";
    world.get(bundle).await.refuses(422, "UNSUPPORTED_RUNTIME");
    // It is whole, though the dialect knows no Python.
    assert_eq!(checked(&world).await.0.damaged, 0);
    let page = world.get("/tools/add.two.numbers").await;
    let page = std::str::from_utf8(&page.body).unwrap();
    assert!(page.contains("What it may do") && !page.contains("cannot be read"), "{page}");
    assert!(!page.contains("haft call"), "nothing runs it");
    // Each upload is a version of its own.
    assert_eq!(send(&world, &fields, Some(("add.py", python))).await.json()["version"], "1.0.1");
    let mut sending = Vec::new();
    for _ in 0..4 {
        let (registry, request) =
            (world.registry.clone(), form(&world.token, &fields, Some(("add.py", python))));
        sending.push(tokio::spawn(async move { ask(&registry, request).await }));
    }
    let mut versions = Vec::new();
    for answer in sending {
        let answer = answer.await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.json());
        versions.push(answer.json()["version"].to_string());
    }
    versions.sort();
    assert_eq!(versions, ["\"1.0.2\"", "\"1.0.3\"", "\"1.0.4\"", "\"1.0.5\""]);

    // A module for Node is a tool that Jumith clients run.
    let fields = [("name", "slugify"), ("description", "Makes slugs")];
    let answer = send(&world, &fields, Some(("index.mjs", b"export const tool = {}"))).await;
    assert_eq!(answer.status, 201, "{}", answer.json());
    let bundle = world.get("/v1/tools/slugify/versions/1.0.0/bundle").await.json();
    assert_eq!(bundle["manifest"]["entry"], json!({"runtime": "node", "main": "index.mjs"}));
    assert!(bundle["files"].as_array().unwrap().iter().any(|file| file["path"] == "index.mjs"));

    let nothing = send(&world, &[("name", "x")], None).await;
    nothing.refuses(400, "INVALID_REQUEST");
    assert_eq!(nothing.json()["error"]["details"]["fields"], json!(["description", "file"]));
    let good = [("name", "x.y"), ("description", "z")];
    for (fields, file) in [
        (&good[..], ("tool.exe", python)),
        (&good, ("../x.py", python)),
        (&good, ("tool.json", python)),
        (&[("name", "!!"), ("description", "z")], ("x.py", python)),
    ] {
        send(&world, fields, Some(file)).await.refuses(400, "INVALID_REQUEST");
    }
    let long = "x".repeat(5_000);
    send(&world, &[("name", "x.y"), ("description", &long)], Some(("x.py", python)))
        .await
        .refuses(400, "INVALID_REQUEST");
    let foreign = world.token_for("acme", Role::Publish, None).await;
    world.ask(form(&foreign, &good, Some(("x.py", python)))).await.refuses(403, "FORBIDDEN");
    world.ask(form("haft_none", &good, Some(("x.py", python)))).await.refuses(401, "UNAUTHORIZED");
    world.get("/v1/tools/x.y").await.refuses(404, "TOOL_NOT_FOUND");
}
