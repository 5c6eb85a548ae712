//! What is refused, and how.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use server::token::Role;

use super::doors;
use super::packages::{archive, bundle, mcpkg};
use super::world::World;

pub(crate) async fn every_refusal_is_in_the_error_model(world: World) {
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await;
    let long = format!("/v1/tools/{}", "a".repeat(5_000));
    for (path, status, code) in [
        ("/nothing", 404, "INVALID_REQUEST"),
        ("/v1", 404, "INVALID_REQUEST"),
        ("/v1/nothing", 404, "INVALID_REQUEST"),
        ("/v2/tools", 404, "INVALID_REQUEST"),
        ("/v1/tools/", 404, "INVALID_REQUEST"),
        ("/v1/tools/a//b", 404, "INVALID_REQUEST"),
        ("/v1/tools/search", 400, "INVALID_REQUEST"),
        ("/v1/tools/search?q=&tags=", 400, "INVALID_REQUEST"),
        ("/v1/tools/search?q=%20%20&tags=,,", 400, "INVALID_REQUEST"),
        ("/v1/tools/search?q=%ff", 400, "INVALID_REQUEST"),
        ("/v1/tools/search?q=%zz", 400, "INVALID_REQUEST"),
        ("/v1/tools/search?q=%00", 400, "INVALID_REQUEST"),
        ("/v1/tools?limit=%f", 400, "INVALID_REQUEST"),
        ("/v1/tools/%ff", 400, "INVALID_REQUEST"),
        ("/v1/tools/%", 400, "INVALID_REQUEST"),
        ("/v1/tools/a%00b", 400, "INVALID_REQUEST"),
        ("/v1/tools/nobody.knows", 404, "TOOL_NOT_FOUND"),
        ("/v1/tools/..%2F..%2Fetc%2Fpasswd", 404, "TOOL_NOT_FOUND"),
        ("/v1/tools/../../etc/passwd", 404, "TOOL_NOT_FOUND"),
        ("/v1/tools/nobody.knows/versions", 404, "TOOL_NOT_FOUND"),
        ("/v1/tools/nobody.knows/versions/1.0.0/bundle", 404, "TOOL_NOT_FOUND"),
        ("/v1/tools/acme.pdf.read/versions/9.9.9", 404, "VERSION_NOT_FOUND"),
        ("/v1/tools/acme.pdf.read/versions/9.9.9/bundle", 404, "VERSION_NOT_FOUND"),
        ("/v1/tools/acme.pdf.read/versions/9.9.9/package", 404, "VERSION_NOT_FOUND"),
        ("/v1/tools/acme.pdf.read/versions/1.0.0/bundle", 422, "UNSUPPORTED_RUNTIME"),
        ("/v1/tools/acme.pdf.read/versions/1.0.0/yank", 405, "INVALID_REQUEST"),
        (long.as_str(), 404, "TOOL_NOT_FOUND"),
    ] {
        let answer = world.get(path).await;
        answer.refuses(status, code);
        assert!(answer.body.len() < 1_000, "{path}");
    }
    for (method, path) in [
        (Method::DELETE, "/v1/tools"),
        (Method::POST, "/v1/tools/search"),
        (Method::PUT, "/v1/tags"),
        (Method::PATCH, "/v1/tools/acme.pdf.read"),
        (Method::POST, "/v1/tools/acme.pdf.read/versions/1.0.0/package"),
    ] {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let answer = world.ask(request).await;
        answer.refuses(405, "INVALID_REQUEST");
        assert!(!answer.header("allow").is_empty(), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), "", "others may only read");
    }
    world.publish(vec![b'P'; (1 << 20) + 1]).await.refuses(413, "INVALID_REQUEST");
    let endless =
        futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 1 << 16]));
    world.publish(Body::from_stream(endless)).await.refuses(413, "INVALID_REQUEST");
    let cut = futures_util::stream::iter([Ok(vec![b'P']), Err(std::io::Error::other("gone"))]);
    world.publish(Body::from_stream(cut)).await.refuses(400, "INVALID_REQUEST");
}

pub(crate) async fn hostile_packages_are_refused_and_nothing_is_kept(world: World) {
    let mut cut = mcpkg("acme.pdf.read", "1.0.0", "a");
    cut.truncate(cut.len() - 7);
    let good = bundle("tool:a.b", "a.b", "1.0.0").to_string();
    let mut long = bundle("tool:a.b", "a.b", "1.0.0");
    long["manifest"]["id"] = format!("tool:a.{}", "b".repeat(300)).into();
    let mut bidi = bundle("tool:a.b", "a.b", "1.0.0");
    bidi["manifest"]["id"] = "tool:a.\u{202e}b".into();
    for bytes in [
        Vec::new(),
        b"hello".to_vec(),
        b"\xff\xfe{".to_vec(),
        b"PK\x03\x04".to_vec(),
        cut,
        archive(&[("readme.txt", b"no manifest")]),
        archive(&[("manifest.json", b"{}")]),
        archive(&[("manifest.json", b"not json")]),
        b"{}".to_vec(),
        b"{\"manifest\":{},\"files\":[]}".to_vec(),
        good.replace("dist/index.js", "../index.js").into_bytes(),
        good.replace("dist/icon.png", "/etc/passwd").into_bytes(),
        good.replace("\"1.0.0\"", "\"latest\"").into_bytes(),
        good.replace("base64", "rot13").into_bytes(),
        good.replace("{\"manifest\"", "{\"files\":[],\"manifest\"").into_bytes(),
        format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes(),
        format!("{{\"manifest\":{}{}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes(),
        long.to_string().into_bytes(),
        bidi.to_string().into_bytes(),
    ] {
        let begins = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let answer = world.publish(bytes).await;
        assert_eq!(answer.status, 400, "{begins}: {}", answer.json());
        answer.refuses(400, "INVALID_REQUEST");
    }
    for (kind, body) in [
        ("multipart/form-data", "--x--"),
        ("multipart/form-data; boundary=x", "--x\r\nnonsense"),
        ("multipart/form-data; boundary=x", "--x--\r\n"),
        (
            "multipart/form-data; boundary=x",
            "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--x--\r\n",
        ),
    ] {
        let request = Request::post("/v1/tools")
            .header("authorization", format!("Bearer {}", world.token))
            .header("content-type", kind);
        world.ask(request.body(Body::from(body)).unwrap()).await.refuses(400, "INVALID_REQUEST");
    }
    assert_eq!(world.get("/v1/tools").await.json()["total"], 0);
    let invalid = world.publish(archive(&[("manifest.json", b"{\"toolId\":\"x\"}")])).await.json();
    let findings = invalid["error"]["details"]["findings"].as_array().unwrap();
    assert!(findings.len() > 1 && findings[0]["pointer"].is_string(), "all that is wrong is told");
}

/// Not every database keeps a NUL: whoever sends one is told so, and is not told that nobody answers.
pub(crate) async fn text_that_not_every_database_keeps_is_refused(world: World) {
    let admin = world.token_for("*", Role::Admin, None).await;
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await;
    for text in ["a\0b", "\u{1b}[2J", "\u{9b}1m"] {
        for (path, body) in [
            ("/v1/tools/acme.pdf.read/versions/1.0.0/yank", json!({"reason": text})),
            ("/v1/tools/acme.pdf.read/versions/1.0.0/review", json!({"reason": text})),
            ("/v1/tokens", json!({"namespace": text, "role": "read"})),
            (
                "/v1/publishers",
                json!({"issuer": format!("https://a.example/{text}"), "audience": "x",
                    "namespace": "acme", "claims": {"sub": "acme"}}),
            ),
        ] {
            let answer = world.send(Method::POST, path, &admin, body.to_string()).await;
            answer.refuses(400, "INVALID_REQUEST");
        }
        // An identity that nobody has sworn may name any issuer.
        let claims = URL_SAFE_NO_PAD.encode(json!({"iss": text}).to_string());
        let identity = json!({"identity": format!("e30.{claims}.e30")}).to_string();
        let request = Request::post("/v1/tokens/exchange").body(Body::from(identity)).unwrap();
        world.ask(request).await.refuses(401, "UNAUTHORIZED");
    }
    // What a package says of itself is kept where that can be, or refused.
    for (number, text) in ["a\0b", "\u{1b}[2J"].into_iter().enumerate() {
        let mut server = doors::weather("1.0.0");
        server["name"] = format!("com.example/weather{number}").into();
        server["description"] = format!("Tells the weather{text}today").into();
        server["title"] = text.into();
        let mut tool = bundle(&format!("tool:a.b{number}"), &format!("a.b{number}"), "1.0.0");
        for field in ["summary", "description", "provider"] {
            tool["manifest"][field] = format!("does {text} it").into();
        }
        tool["manifest"]["tags"] = json!([text]);
        let mut capability = doors::capability(&format!("acme.hash{number}"));
        capability["description"] = text.into();
        let runtime = json!({"kind": "mcp-http", "install": {"method": "pip", "package": "x"},
            "endpoint_url": "https://mail.example.com/mcp"});
        let mut installed = doors::installed(&format!("acme-mail{number}"), "1.0.0", &runtime);
        installed["tool"]["summary"] = text.into();
        for package in [
            doors::alone("server.json", &server),
            tool.to_string().into_bytes(),
            doors::alone("manifest.json", &capability),
            doors::alone("manifest.json", &installed),
        ] {
            let answer = world.publish(package).await;
            assert!([201, 400].contains(&answer.status.as_u16()), "{answer:?}");
        }
        for hidden in ["id", "name"] {
            let mut tool = bundle("tool:a.b", "a.b", "1.0.0");
            tool["manifest"][hidden] = format!("tool:a.{text}").into();
            world.publish(tool.to_string()).await.refuses(400, "INVALID_REQUEST");
        }
    }
    for path in ["/v1/tools", "/v0.1/servers", "/v1/catalog.json", "/v1/tools/search?q=weather"] {
        assert_eq!(world.get(path).await.status, 200, "{path}");
    }
}

pub(crate) async fn tokens_are_bound(world: World) {
    let package = || mcpkg("acme.pdf.read", "1.0.0", "");
    let request = Request::post("/v1/tools").body(Body::from(package())).unwrap();
    let answer = world.ask(request).await;
    answer.refuses(401, "UNAUTHORIZED");
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    let post =
        async |token: &str, body: Vec<u8>| world.send(Method::POST, "/v1/tools", token, body).await;
    post("haft_nobody", package()).await.refuses(401, "UNAUTHORIZED");
    let other = world.token_for("other", Role::Publish, None).await;
    let answer = post(&other, package()).await;
    answer.refuses(403, "FORBIDDEN");
    assert_eq!(answer.json()["error"]["details"]["namespace"], "acme");
    let reader = world.token_for("acme", Role::Read, None).await;
    post(&reader, package()).await.refuses(403, "FORBIDDEN");
    let ended = world.token_for("acme", Role::Publish, Some(Duration::ZERO)).await;
    post(&ended, package()).await.refuses(401, "UNAUTHORIZED");
    let own = world.token_for("acme", Role::Publish, None).await;
    assert_eq!(post(&own, package()).await.status, 201);
    // A name is found like an id, so it must be the publisher's too.
    let named = bundle("tool:other.x", "acme.pdf.write", "1.0.0").to_string().into_bytes();
    post(&other, named).await.refuses(403, "FORBIDDEN");
    let yank = "/v1/tools/acme.pdf.read/versions/1.0.0/yank";
    world.send(Method::POST, yank, &other, "").await.refuses(403, "FORBIDDEN");
    world.send(Method::DELETE, yank, "", "").await.refuses(401, "UNAUTHORIZED");
    let tokens = world.registry.store.tokens().await.unwrap();
    let id = &tokens
        .iter()
        .find(|token| {
            token.scope.name() == "acme"
                && token.role == Role::Publish
                && token.expires_at.is_none()
        })
        .unwrap()
        .id;
    assert!(world.registry.store.revoke_token(id, 1).await.unwrap());
    assert!(!world.registry.store.revoke_token("nobody", 1).await.unwrap());
    post(&own, package()).await.refuses(401, "UNAUTHORIZED");
    let kept = format!("{tokens:?}");
    assert!(!kept.contains(&own) && !kept.contains("haft_"));
}
