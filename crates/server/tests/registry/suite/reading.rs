//! Finding, describing, downloading.

use axum::body::Body;
use axum::http::{Method, Request};
use package::archive::{Archive, Trailer};
use package::digest::Digest;
use package::limits::Limits;
use serde_json::json;

use super::packages::{bundle, mcpkg};
use super::world::World;

pub(crate) async fn what_is_published_is_found_described_and_downloaded(world: World) {
    let bytes = mcpkg("acme.pdf.read", "1.0.0", "a");
    let digest = Digest::of(&bytes).to_string();
    let answer = world.publish(bytes.clone()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let published = answer.json();
    assert_eq!(published["id"], "tool:acme.pdf.read");
    assert_eq!(
        (&published["outcome"], &published["sha256"]),
        (&json!("published"), &json!(digest))
    );
    assert_eq!(
        world.publish(bundle("tool:post.send", "post.send", "2.0.0").to_string()).await.status,
        201
    );

    let found = world.get("/v1/tools/search?q=read+pdf").await;
    assert_eq!(found.header("access-control-allow-origin"), "*");
    let found = found.json();
    assert_eq!(
        (&found["total"], &found["results"][0]["id"]),
        (&json!(1), &json!("tool:acme.pdf.read"))
    );
    assert_eq!(found["results"][0]["tags"], json!(["pdf", "Reading"]));
    let tagged = world.get("/v1/tools/search?tags=READING,email").await.json();
    assert_eq!(tagged["total"], 2, "tags are alternatives, whatever their case");
    let kind = world.get("/v1/tools/search?q=email&dialect=mcpkg").await.json();
    assert_eq!(kind["total"], 0);

    for name in ["tool:acme.pdf.read", "tool%3Aacme.pdf.read", "acme.pdf.read"] {
        let answer = world.get(&format!("/v1/tools/{name}")).await;
        assert_eq!(answer.status, 200, "{name}");
        let described = answer.json();
        assert_eq!(described["name"], "acme.pdf.read");
        assert_eq!(described["sha256"], digest.as_str());
        assert_eq!(described["entry"]["runtime"], "process");
        assert_eq!(described["signature"]["state"], "unsigned");
    }
    let versions = world.get("/v1/tools/acme.pdf.read/versions").await.json();
    assert_eq!(versions["latest"], "1.0.0");
    assert_eq!(versions["versions"][0]["size"], bytes.len());
    let tags = world.get("/v1/tags").await.json();
    assert_eq!(tags["tags"][0], json!({"name": "email", "count": 1}));
    let providers = world.get("/v1/providers").await.json();
    assert_eq!(providers["providers"], json!([{"name": "post", "count": 1}]));
    let all = world.get("/v1/tools").await.json();
    assert_eq!((&all["total"], &all["results"][1]["id"]), (&json!(2), &json!("tool:post.send")));

    let path = "/v1/tools/acme.pdf.read/versions/1.0.0/package";
    let package = world.get(path).await;
    assert_eq!(package.body, bytes);
    assert!(package.header("cache-control").contains("immutable"));
    assert!(package.header("repr-digest").starts_with("sha-256=:"));
    assert_eq!(package.header("etag"), format!("\"{digest}\""));
    let known = world.get_with(path, ("if-none-match", package.header("etag"))).await;
    assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
    // A part of what somebody has is nothing either.
    let part = Request::get(path).header("range", "bytes=0-3");
    let part = part.header("if-none-match", package.header("etag")).body(Body::empty()).unwrap();
    let part = world.ask(part).await;
    assert_eq!((part.status.as_u16(), part.header("content-range")), (304, ""));
    let head = world.ask(Request::head(path).body(Body::empty()).unwrap()).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), bytes.len().to_string());
    let described = world.get("/v1/tools/acme.pdf.read/versions/1.0.0").await;
    assert_eq!(described.header("cache-control"), "no-cache", "a yank must reach everybody");
    let known = world
        .get_with("/v1/tools/acme.pdf.read", ("if-none-match", described.header("etag")))
        .await;
    assert_eq!(known.status, 304);
    world
        .get("/v1/tools/acme.pdf.read/versions/1.0.0/bundle")
        .await
        .refuses(422, "UNSUPPORTED_RUNTIME");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(world.get(path).await.status, 200, "{path}");
    }
}

pub(crate) async fn a_bundle_holds_what_was_published(world: World) {
    let sent = bundle("tool:post.send", "post.send", "2.0.0");
    assert_eq!(world.publish(sent.to_string()).await.status, 201);
    assert_eq!(world.publish(sent.to_string()).await.status, 200);
    let described = world.get("/v1/tools/tool:post.send").await.json();
    let answer = world.get("/v1/tools/tool:post.send/versions/2.0.0/bundle").await;
    let got = answer.json();
    let head = Request::head("/v1/tools/tool:post.send/versions/2.0.0/bundle");
    let head = world.ask(head.body(Body::empty()).unwrap()).await;
    assert_eq!(head.header("content-length"), answer.body.len().to_string());
    assert_eq!(got["manifest"], described);
    assert_eq!(got["sha256"], described["sha256"]);
    for (member, value) in sent["manifest"].as_object().unwrap() {
        assert_eq!(&described[member], value, "{member}");
    }
    let file = |path: &str| {
        got["files"].as_array().unwrap().iter().find(|file| file["path"] == path).cloned()
    };
    assert_eq!(file("dist/index.js").unwrap()["content"], "export const tool = {}");
    assert_eq!(file("dist/icon.png").unwrap()["encoding"], "base64");
    let package = world.get("/v1/tools/post.send/versions/2.0.0/package").await.body;
    assert_eq!(described["sha256"], Digest::of(&package).to_string());
    let archive =
        Archive::from_bytes(package.to_vec(), Trailer::Refused, &Limits::DEFAULT).unwrap();
    assert_eq!(described["filesSha256"], archive.listing().unwrap().digest().to_string());
    assert_eq!(got["files"].as_array().unwrap().len(), archive.entries().len());
    for encoding in ["gzip", "zstd"] {
        let path = "/v1/tools/post.send/versions/2.0.0/bundle";
        let small = world.get_with(path, ("accept-encoding", encoding)).await;
        assert_eq!(small.header("content-encoding"), encoding);
        assert!(small.body.len() < answer.body.len());
    }
    // The same as a form, and under the other address.
    let form = format!(
        "--x\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n--x\r\n\
         Content-Disposition: form-data; name=\"package\"; filename=\"a.json\"\r\n\r\n{}\r\n--x--\r\n",
        bundle("tool:post.send", "post.send", "2.1.0")
    );
    let request = Request::post("/v1/tools/upload")
        .header("authorization", format!("Bearer {}", world.token))
        .header("content-type", "multipart/form-data; boundary=x")
        .body(Body::from(form))
        .unwrap();
    assert_eq!(world.ask(request).await.status, 201);
}

/// What unpacks to more than a bundle may hold is refused before it is unpacked; its package can still be had.
pub(crate) async fn a_bundle_has_bounds(mut world: World) {
    world.set(|settings| settings.bundle_bytes = 300_000).await;
    for (name, size) in [("post.small", 290_000), ("post.large", 310_000)] {
        let mut sent = bundle(&format!("tool:{name}"), name, "1.0.0");
        // It packs to next to nothing.
        sent["files"][0]["content"] = "x".repeat(size).into();
        assert_eq!(world.publish(sent.to_string()).await.status, 201);
    }
    let path = |name: &str, part: &str| format!("/v1/tools/{name}/versions/1.0.0/{part}");
    let small = world.get(&path("post.small", "bundle")).await;
    assert_eq!((small.status.as_u16(), small.json()["files"].as_array().unwrap().len()), (200, 3));
    assert_eq!(small.header("content-length"), small.body.len().to_string());
    let refused = world.get(&path("post.large", "bundle")).await;
    refused.refuses(422, "INVALID_REQUEST");
    let error = &refused.json()["error"];
    assert_eq!(error["details"]["limit"], 300_000);
    assert!(error["message"].as_str().unwrap().contains("download its package"), "{error}");
    assert_eq!(world.get(&path("post.large", "package")).await.status, 200);
}

pub(crate) async fn a_served_bundle_is_one_that_we_read_ourselves(world: World) {
    use package::contents::Contents;
    use package::limits::Limits;
    // One whose author wrote more than a registry knows, and one of another dialect with a module beside it.
    let mut own = super::packages::bundle("tool:post.mail", "post.mail", "1.0.0");
    own["manifest"]["x-note"] = "kept".into();
    let module = br#"{"id":"tool:acme.pdf.read","name":"acme.pdf.read","version":"1.0.0","summary":"In Node","entry":{"runtime":"node","main":"tool.js"}}"#;
    let manifest = br#"{"toolId":"acme.pdf.read","name":"Reads PDF","version":"1.0.0","description":"Reads a PDF.","capabilities":["pdf"],"endpoint":{"type":"local","command":"node ./index.js"},"input_schema":{"type":"object"},"output_schema":{"type":"object"}}"#;
    let files: [(&str, &[u8]); 4] = [
        ("index.js", b"1"),
        ("manifest.json", manifest),
        ("meta/jumith.json", module),
        ("tool.js", b"export const tool = {}"),
    ];
    for (name, package) in [
        ("post.mail", own.to_string().into_bytes()),
        ("acme.pdf.read", super::packages::archive(&files)),
    ] {
        let answer = world.publish(package).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let served = world.get(&format!("/v1/tools/{name}/versions/1.0.0/bundle")).await;
        let read = package::bundle::Bundle::read(&served.body, &Limits::DEFAULT)
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let bytes = world.get(&format!("/v1/tools/{name}/versions/1.0.0/package")).await.body;
        let trailer = package::archive::Trailer::Refused;
        let archive =
            package::archive::Archive::from_bytes(bytes.to_vec(), trailer, &Limits::DEFAULT)
                .unwrap();
        let all = |contents: &dyn Contents| -> Vec<(String, Vec<u8>)> {
            let paths = contents.paths().into_iter();
            paths.map(|path| (path.to_owned(), contents.read(path).unwrap())).collect()
        };
        assert_eq!(all(&read), all(&archive), "{name}: the same files, byte for byte");
        // What was read can be published: it is the same package.
        let again = world.publish(served.body.to_vec()).await;
        assert_eq!(again.json()["outcome"], "unchanged", "{name}: {:?}", again.json());
    }
}

pub(crate) async fn pages_are_brought_within_bounds(world: World) {
    for number in 0..25 {
        let bytes = mcpkg(&format!("acme.pdf.n{number:02}"), "1.0.0", "");
        assert_eq!(world.publish(bytes).await.status, 201);
    }
    for (page, count) in [
        ("", 20),
        ("&limit=junk", 20),
        ("&limit=0", 1),
        ("&limit=-3", 1),
        ("&limit=1000", 25),
        ("&limit=10&offset=20", 5),
        ("&offset=-5", 20),
        ("&offset=99999999999999999999", 0),
    ] {
        for path in ["/v1/tools/search?q=pdf", "/v1/tools?x"] {
            let found = world.get(&format!("{path}{page}")).await.json();
            assert_eq!(found["results"].as_array().unwrap().len(), count, "{path}{page}");
            assert_eq!(found["total"], 25, "{path}{page}");
        }
    }
}

pub(crate) async fn parts_of_a_package_can_be_had(world: World) {
    let bytes = mcpkg("acme.pdf.read", "1.0.0", "a");
    world.publish(bytes.clone()).await;
    let path = "/v1/tools/acme.pdf.read/versions/1.0.0/package";
    let size = bytes.len();
    let part = world.get_with(path, ("range", "bytes=10-19")).await;
    assert_eq!((part.status.as_u16(), &part.body[..]), (206, &bytes[10..20]));
    assert_eq!(part.header("content-range"), format!("bytes 10-19/{size}"));
    assert_eq!(part.header("content-length"), "10");
    let end = world.get_with(path, ("range", "bytes=-7")).await;
    assert_eq!(&end.body[..], &bytes[size - 7..]);
    let beyond = world.get_with(path, ("range", "bytes=999999-")).await;
    beyond.refuses(416, "INVALID_REQUEST");
    assert_eq!(beyond.header("content-range"), format!("bytes */{size}"));
}

pub(crate) async fn the_highest_version_is_described(world: World) {
    for version in ["1.9.0", "1.10.0-rc.1", "1.10.0", "1.2.0", "2.0.0-beta"] {
        assert_eq!(world.publish(mcpkg("acme.pdf.read", version, "")).await.status, 201);
    }
    assert_eq!(world.get("/v1/tools/acme.pdf.read").await.json()["version"], "2.0.0-beta");
    assert_eq!(world.publish(mcpkg("acme.pdf.read", "2.0.0", "")).await.status, 201);
    assert_eq!(world.get("/v1/tools/acme.pdf.read").await.json()["version"], "2.0.0");
    let versions = world.get("/v1/tools/acme.pdf.read/versions").await.json();
    let order: Vec<&str> = versions["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["version"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["2.0.0", "2.0.0-beta", "1.10.0", "1.10.0-rc.1", "1.9.0", "1.2.0"]);
    let found = world.get("/v1/tools/search?q=pdf").await.json();
    assert_eq!((&found["total"], &found["results"][0]["version"]), (&json!(1), &json!("2.0.0")));
    let asked = world.ask(
        Request::builder().method(Method::OPTIONS).uri("/v1/tools").body(Body::empty()).unwrap(),
    );
    assert!(!asked.await.header("access-control-allow-methods").contains("POST"));
}
