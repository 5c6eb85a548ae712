//! The doors of other worlds: the MCP registry API, the well-known index, the catalog of capabilities.

use axum::body::Body;
use axum::http::{Method, Request};
use manifest::dialect::Dialect;
use manifest::document::{Options, check};
use package::digest::Digest;
use serde_json::{Value, json};

use super::packages::{archive, mcpkg};
use super::world::{Answer, World};

/// A request as clients make it: with the host it is for.
async fn get(world: &World, path: &str) -> Answer {
    world.get_with(path, ("host", "tools.example.com")).await
}

/// A package of one file.
pub(crate) fn alone(name: &str, document: &Value) -> Vec<u8> {
    archive(&[(name, document.to_string().as_bytes())])
}

pub(crate) fn weather(version: &str) -> Value {
    json!({
        "name": "com.example/weather", "description": "Tells the weather of a place.",
        "title": "Weather", "version": version,
        "packages": [{"registryType": "npm", "identifier": "@example/weather", "version": version,
            "transport": {"type": "stdio"},
            "environmentVariables": [{"name": "KEY", "isSecret": true, "isRequired": true}]}]
    })
}

/// An install-manifest of an MCP server.
pub(crate) fn installed(id: &str, version: &str, runtime: &Value) -> Value {
    json!({
        "manifest_version": "0.4",
        "tool": {"id": id, "version": version, "name": "Mail", "summary": format!("Reads mail. {}", "x".repeat(120)),
            "homepage": "https://example.com/mail", "tags": ["mail"]},
        "runtime": runtime,
        "env": [{"name": "MAIL_KEY", "prompt": "A key", "secret": true},
            {"name": "MAIL_MODE", "prompt": "Which way", "secret": false, "required": false, "default": "imap"}],
        "actions": [{"name": "list", "summary": "Lists mail", "side_effects": "read",
            "invocation": {"kind": "mcp-tool", "tool_name": "list"}}],
        "smoke": {"kind": "mcp-tool-call", "tool_name": "list", "success": {"no_error_field": true}},
        "kill_switch": {"kind": "manual", "instructions_url": "https://example.com/stop"}
    })
}

pub(crate) fn capability(id: &str) -> Value {
    json!({
        "id": id, "type": "tool", "version": "1.0.0", "description": "Hashes a text",
        "origin": {"source": "local", "digest": "0".repeat(64), "path": "/home/ann"},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {"type": "object"}},
        "permissions": {"network": "deny", "filesystem": "none", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "64Mi"}},
        "trust_level": "verified",
        "implementation": {"kind": "command", "command": {"argv": ["sha256sum"]}}
    })
}

fn bundle() -> Vec<u8> {
    let manifest = json!({
        "manifest_version": "0.3", "name": "line-finder", "version": "1.0.0",
        "description": "Finds lines.", "author": {"name": "Ann"},
        "server": {"type": "node", "entry_point": "index.js",
            "mcp_config": {"command": "node", "args": ["${__dirname}/index.js"]}}
    });
    archive(&[("index.js", b"//"), ("manifest.json", manifest.to_string().as_bytes())])
}

async fn publish(world: &World, bytes: Vec<u8>) {
    let answer = world.publish(bytes).await;
    assert_eq!(answer.status, 201, "{}", answer.json());
}

/// What is in a list, page by page, as the headers name the pages.
async fn paged(world: &World, first: &str, list: &str) -> Vec<Value> {
    let (mut next, mut seen) = (first.to_owned(), Vec::new());
    loop {
        let page = get(world, &next).await;
        seen.extend(page.json()[list].as_array().unwrap().iter().cloned());
        let link = page.header("link");
        if link.is_empty() {
            return seen;
        }
        let address = link.trim_start_matches('<').split('>').next().unwrap();
        address.strip_prefix("http://tools.example.com").unwrap().clone_into(&mut next);
    }
}

/// What must hold of every server that is told.
fn check_server(entry: &Value) {
    let text = entry["server"].to_string();
    let options = Options { dialect: Some(Dialect::ServerJson), ..Options::default() };
    let report = check(text.as_bytes(), &options);
    assert!(report.is_valid(), "{text}: {:?}", report.findings);
    let official = &entry["_meta"]["io.modelcontextprotocol.registry/official"];
    for moment in ["publishedAt", "updatedAt", "statusChangedAt"] {
        assert!(official[moment].as_str().unwrap().ends_with('Z'), "{official}");
    }
    assert!(official["isLatest"].is_boolean() && official["status"].is_string());
}

pub(crate) async fn servers_are_told_as_the_mcp_world_has_them(world: World) {
    publish(&world, alone("server.json", &weather("1.0.0"))).await;
    let npx = json!({"kind": "mcp-stdio", "install": {"method": "npm", "package": "@acme/mail", "version_spec": "2.0.0"},
        "entrypoint": {"command": ["npx", "-y", "@acme/mail", "--quiet"]}});
    publish(&world, alone("manifest.json", &installed("acme-mail", "1.0.0", &npx))).await;
    let remote = json!({"kind": "mcp-http", "install": {"method": "pip", "package": "unused"},
        "endpoint_url": "https://mail.example.com/mcp"});
    publish(&world, alone("manifest.json", &installed("far-mail", "1.0.0", &remote))).await;
    let python = json!({"kind": "mcp-stdio", "install": {"method": "pip", "package": "pymail"},
        "entrypoint": {"command": ["python", "-m", "pymail.server"]}});
    publish(&world, alone("manifest.json", &installed("py-mail", "1.0.0", &python))).await;
    publish(&world, bundle()).await;
    publish(&world, mcpkg("acme.pdf.read", "1.0.0", "")).await;

    let answer = get(&world, "/v0.1/servers").await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    let list = answer.json();
    let servers = list["servers"].as_array().unwrap();
    servers.iter().for_each(check_server);
    assert_eq!(list["metadata"], json!({"count": 5}), "a tool that is no server is not told");
    let named = |name: &str| {
        let found = servers.iter().find(|entry| entry["server"]["name"] == name);
        &found.unwrap_or_else(|| panic!("{name} is not in {list}"))["server"]
    };
    assert_eq!(*named("com.example/weather"), weather("1.0.0"), "it is told as it was written");
    let mail = named("acme-mail/acme-mail");
    assert_eq!(mail["description"].as_str().unwrap().chars().count(), 100);
    assert_eq!(
        mail["packages"],
        json!([{"registryType": "npm", "identifier": "@acme/mail", "version": "2.0.0", "runtimeHint": "npx",
            "packageArguments": [{"type": "positional", "value": "--quiet"}], "transport": {"type": "stdio"},
            "environmentVariables": [
                {"name": "MAIL_KEY", "description": "A key", "isRequired": true, "isSecret": true},
                {"name": "MAIL_MODE", "description": "Which way", "isRequired": false, "isSecret": false, "default": "imap"}]}])
    );
    let remotes = json!([{"type": "streamable-http", "url": "https://mail.example.com/mcp"}]);
    assert_eq!(named("far-mail/far-mail")["remotes"], remotes);
    assert!(named("far-mail/far-mail").get("packages").is_none());
    let told = named("py-mail/py-mail");
    assert!(told.get("packages").is_none(), "clients would start something else: {told}");
    let finder = &named("line-finder/line-finder")["packages"][0];
    assert_eq!(finder["fileSha256"], Digest::of(&bundle()).to_string());
    let address = finder["identifier"].as_str().unwrap();
    let path = address.strip_prefix("http://tools.example.com").unwrap();
    assert_eq!(world.get(path).await.body, bundle(), "the address leads to the bundle");

    let one = get(&world, "/v0.1/servers/com.example%2Fweather/versions/1.0.0").await.json();
    check_server(&one);
    assert_eq!(one["server"], weather("1.0.0"));
    for path in [
        "/v0/servers/com.example%2Fweather/versions/latest",
        "/v0.1/servers/com.example/weather/versions/latest",
    ] {
        assert_eq!(get(&world, path).await.json(), one, "{path}");
    }
    let tag = get(&world, "/v0/servers").await;
    let again = Request::get("/v0.1/servers").header("host", "tools.example.com");
    let again = again.header("if-none-match", tag.header("etag")).body(Body::empty()).unwrap();
    assert_eq!(world.ask(again).await.status, 304);
}

pub(crate) async fn servers_are_paged_searched_and_followed(world: World) {
    for version in ["1.0.0", "1.1.0", "1.10.0"] {
        publish(&world, alone("server.json", &weather(version))).await;
    }
    for number in 0..4 {
        let mut other = weather("1.0.0");
        other["name"] = format!("org.example/other{number}_x").into();
        other["description"] = "Counts sheep".into();
        other["title"] = "Good Night".into();
        publish(&world, alone("server.json", &other)).await;
    }
    let (mut cursor, mut seen) = (String::new(), Vec::new());
    loop {
        let page = get(&world, &format!("/v0.1/servers?limit=2&cursor={cursor}")).await.json();
        for entry in page["servers"].as_array().unwrap() {
            seen.push(format!("{} {}", entry["server"]["name"], entry["server"]["version"]));
        }
        match page["metadata"]["nextCursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    let mut once = seen.clone();
    once.sort();
    once.dedup();
    assert_eq!((seen.len(), once.len()), (7, 7), "{seen:?}");

    let count = async |query: &str| {
        get(&world, &format!("/v0.1/servers?{query}")).await.json()["metadata"]["count"].clone()
    };
    assert_eq!(count("version=latest").await, 5);
    assert_eq!(count("version=1.1.0").await, 1);
    assert_eq!(count("search=WEATHER").await, 3);
    assert_eq!(count("search=OTHER&version=latest").await, 4);
    assert_eq!(count("search=sheep").await, 0, "what else is said of it does not count");
    assert_eq!(count("search=other1_").await, 1, "a line is no wildcard");
    assert_eq!(count("search=%25").await, 0);
    assert_eq!(count("search=%27%20OR%201%3D1").await, 0);
    assert_eq!(count("updated_since=2020-01-01T00:00:00Z").await, 7);
    assert_eq!(count("updated_since=2999-01-01T00:00:00%2B02:00").await, 0);

    let versions = "/v0.1/servers/com.example%2Fweather/versions";
    let all = get(&world, versions).await.json();
    assert_eq!(all["metadata"]["count"], 3);
    let latest = get(&world, &format!("{versions}/latest")).await.json();
    assert_eq!(latest["server"]["version"], "1.10.0", "versions are no words");
    let yank = "/v1/tools/com.example%2Fweather/versions/1.10.0/yank";
    world.send(Method::POST, yank, &world.token, r#"{"reason":"it rains"}"#).await;
    assert_eq!(
        get(&world, &format!("{versions}/latest")).await.json()["server"]["version"],
        "1.1.0"
    );
    assert_eq!(get(&world, &format!("{versions}/1.10.0")).await.status, 404);
    assert_eq!(get(&world, versions).await.json()["metadata"]["count"], 2);
    assert_eq!(count("search=weather").await, 2);
    assert_eq!(count("search=weather&include_deleted=true").await, 3);
    let since = "search=weather&updated_since=2020-01-01T00:00:00Z";
    assert_eq!(count(since).await, 3, "whoever follows learns what was taken back");
    let gone = get(&world, &format!("{versions}/1.10.0?include_deleted=true")).await.json();
    let official = &gone["_meta"]["io.modelcontextprotocol.registry/official"];
    assert_eq!(
        (&official["status"], &official["statusMessage"]),
        (&json!("deleted"), &json!("it rains"))
    );
    assert_eq!(official["isLatest"], false);
    check_server(&gone);
    // The same letters under another id are not told as the same server.
    let twin = json!({
        "id": "org.example/other0_x", "type": "mcp_server", "version": "1.0.0", "description": "Twin",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {"type": "object"}},
        "permissions": {"network": "deny", "filesystem": "none", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "64Mi"}}, "trust_level": "local"
    });
    world.publish(alone("manifest.json", &twin)).await.refuses(409, "CONFLICT");
}

pub(crate) async fn servers_are_found_by_a_part_of_their_names_page_by_page(world: World) {
    // In an order that not every database has by itself.
    let names =
        ["Z.b/ox", "a-b/ox", "a.b/Oxen", "a.b/o-x", "a.b/ox", "a.b/ox-1", "b.b/fox", "c.d/cow"];
    for name in names {
        for version in ["1.0.0", "1.1.0"] {
            let mut server = weather(version);
            server["name"] = name.into();
            publish(&world, alone("server.json", &server)).await;
        }
    }
    let listed = async |query: &str, limit: usize| {
        let (mut cursor, mut seen) = (String::new(), Vec::new());
        loop {
            let path = format!("/v0.1/servers?{query}&limit={limit}&cursor={cursor}");
            let page = get(&world, &path).await.json();
            let servers = page["servers"].as_array().unwrap_or_else(|| panic!("{page}"));
            assert!(servers.len() <= limit);
            seen.extend(servers.iter().map(|entry| {
                let text = |key: &str| entry["server"][key].as_str().unwrap().to_owned();
                (text("name"), text("version"))
            }));
            match page["metadata"]["nextCursor"].as_str() {
                Some(next) => next.clone_into(&mut cursor),
                None => return seen,
            }
        }
    };
    let all = listed("", 100).await;
    assert!(all.is_sorted() && all.len() == 2 * names.len(), "{all:?}");
    for (query, part, versions) in [
        ("search=ox", "ox", &["1.0.0", "1.1.0"][..]),
        ("search=A.B/O", "a.b/o", &["1.0.0", "1.1.0"]),
        ("search=ox&version=1.1.0", "ox", &["1.1.0"]),
        ("search=ox&version=latest", "ox", &["1.1.0"]),
        ("search=ox&version=9.9.9", "ox", &[]),
        ("search=ox&updated_since=2020-01-01T00:00:00Z", "ox", &["1.0.0", "1.1.0"]),
        ("search=ox&updated_since=2999-01-01T00:00:00Z", "ox", &[]),
    ] {
        let mut wanted = all.clone();
        wanted.retain(|(name, version)| {
            name.to_lowercase().contains(part) && versions.contains(&version.as_str())
        });
        for limit in [1, 3, 100] {
            assert_eq!(listed(query, limit).await, wanted, "{query}, {limit} at a time");
        }
    }
    // Another replica, and one that has started since, find the same.
    let replica = World { registry: world.replica().await, ..world };
    let found = get(&replica, "/v0.1/servers?search=cow").await.json();
    assert_eq!(found["metadata"]["count"], 2);
}

pub(crate) async fn what_is_wrong_is_told_in_the_words_of_the_mcp_world(world: World) {
    publish(&world, alone("server.json", &weather("1.0.0"))).await;
    for (path, status) in [
        ("/v0.1/servers?limit=0", 422),
        ("/v0.1/servers?limit=101", 422),
        ("/v0.1/servers?limit=many", 422),
        ("/v0.1/servers?include_deleted=perhaps", 422),
        ("/v0.1/servers?cursor=%00", 400),
        ("/v0.1/servers?cursor=junk!", 400),
        ("/v0.1/servers?updated_since=yesterday", 400),
        ("/v0.1/servers?search=%ff", 400),
        ("/v0.1/servers/no.body%2Fhere/versions", 404),
        ("/v0.1/servers/no.body%2Fhere/versions/latest", 404),
        ("/v0.1/servers/com.example%2Fweather/versions/9.9.9", 404),
        ("/v0.1/servers/com.example%2Fweather", 404),
        ("/v0.1/servers/", 404),
        ("/v0.1/else", 404),
        ("/v0/servers?limit=0", 422),
    ] {
        let answer = get(&world, path).await;
        let body = answer.json();
        assert_eq!(answer.status.as_u16(), status, "{path}: {body}");
        assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
        assert_eq!(
            (&body["status"], body["error"].is_string()),
            (&json!(status), true),
            "{path}: {body}"
        );
        assert_eq!(body["detail"], body["error"]);
        assert_eq!(answer.header("access-control-allow-origin"), "*");
    }
    let none = get(&world, "/v0.1/servers/no.body%2Fhere/versions/latest").await.json();
    assert_eq!((&none["title"], &none["error"]), (&json!("Not Found"), &json!("Server not found")));
    for (method, path) in [
        (Method::POST, "/v0.1/publish"),
        (Method::POST, "/v0.1/servers"),
        (Method::PUT, "/v0.1/servers/com.example%2Fweather/versions/1.0.0"),
        (Method::DELETE, "/v0.1/servers/com.example%2Fweather/versions/1.0.0"),
    ] {
        assert_eq!(world.send(method, path, &world.token, "{}").await.status, 501, "{path}");
        let traced = world.send(Method::TRACE, "/v0.1/servers", &world.token, "").await;
        assert_eq!((traced.status.as_u16(), traced.header("allow")), (405, "GET,HEAD"));
    }
    let asking =
        Request::builder().method(Method::OPTIONS).uri("/v0.1/servers").body(Body::empty());
    let asking = world.ask(asking.unwrap()).await;
    assert_eq!((asking.status.as_u16(), asking.header("access-control-allow-origin")), (204, "*"));
    let head = Request::head("/v0.1/servers").header("host", "x").body(Body::empty()).unwrap();
    let head = world.ask(head).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    let strange = world.get_with("/v0.1/servers", ("host", "a/b?c")).await;
    assert_eq!(strange.status, 400, "a host that is none is not told again");
}

pub(crate) async fn install_manifests_are_listed_where_others_look_for_them(world: World) {
    let runtime = json!({"kind": "mcp-http", "install": {"method": "pip", "package": "unused"},
        "endpoint_url": "https://mail.example.com/mcp"});
    let path = "/.well-known/install-manifests.json";
    let empty = get(&world, path).await.json();
    assert_eq!(empty["manifests"], json!([]));
    let first = installed("acme-mail", "1.0.0", &runtime);
    publish(&world, alone("manifest.json", &first)).await;
    publish(&world, alone("manifest.json", &installed("acme-mail", "1.1.0", &runtime))).await;
    let mut apart = installed("acme-mail", "3.0.0", &runtime);
    apart["tool"]["namespace"] = "other".into();
    publish(&world, alone("manifest.json", &apart)).await;
    publish(&world, alone("manifest.json", &installed("post-box", "1.0.0", &runtime))).await;
    publish(&world, mcpkg("acme.pdf.read", "1.0.0", "")).await;

    let answer = get(&world, path).await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let report = check(text.as_bytes(), &Options::default());
    assert!(report.is_valid() && report.form.is_some_and(|form| form.name() == "index"), "{text}");
    let index = answer.json();
    assert_eq!(index["publisher"]["id"], "tools.example.com");
    let entries = index["manifests"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "each id once, and no other dialect: {index}");
    for entry in entries {
        assert_eq!(
            (&entry["status"], &entry["manifest_version"]),
            (&json!("active"), &json!("0.4"))
        );
        let address = entry["manifest_url"].as_str().unwrap();
        let manifest = get(&world, address.strip_prefix("http://tools.example.com").unwrap()).await;
        assert_eq!(manifest.status, 200, "{address}");
        assert_eq!(manifest.json()["tool"]["id"], entry["id"], "the index and the manifest agree");
    }
    let again = Request::get(path).header("host", "tools.example.com");
    let again = again.header("if-none-match", answer.header("etag")).body(Body::empty()).unwrap();
    assert_eq!(world.ask(again).await.status, 304);
    // What does not fit into one index is in the next one.
    assert_eq!(answer.header("link"), "");
    for limit in 1..4 {
        let pages = paged(&world, &format!("{path}?limit={limit}"), "manifests").await;
        let ids: std::collections::BTreeSet<_> =
            pages.iter().map(|entry| entry["manifest_url"].as_str().unwrap()).collect();
        assert!(pages.len() == ids.len() && ids.len() >= 2, "{limit}: {pages:?}");
        assert!(ids.iter().any(|url| url.contains("post-box")), "{limit}: {pages:?}");
    }
    get(&world, &format!("{path}?after={}", "x".repeat(300))).await.refuses(400, "INVALID_REQUEST");
    let other = get(&world, &format!("{path}?namespace=other")).await.json();
    assert!(other["manifests"][0]["manifest_url"].as_str().unwrap().contains("3.0.0"), "{other}");
    // A manifest is given as it was written, also of a version that was taken back.
    let yank = "/v1/tools/acme-mail/versions/1.1.0/yank";
    world.send(Method::POST, yank, &world.token, "").await;
    let index = get(&world, path).await.json();
    assert!(index.to_string().contains("/versions/1.0.0/manifest"), "{index}");
    let exact = get(&world, "/v1/tools/acme-mail/versions/1.0.0/manifest").await;
    assert_eq!(exact.body, first.to_string());
    assert!(exact.header("cache-control").contains("immutable"));
    get(&world, "/v1/tools/acme-mail/versions/9.0.0/manifest")
        .await
        .refuses(404, "VERSION_NOT_FOUND");
    get(&world, "/v1/tools/nobody/versions/1.0.0/manifest").await.refuses(404, "TOOL_NOT_FOUND");
}

pub(crate) async fn capabilities_are_listed_in_a_catalog(world: World) {
    let path = "/v1/catalog.json";
    let empty = get(&world, path).await;
    assert_eq!(empty.json(), json!({"version": "0.1", "capabilities": []}));
    for number in 0..5 {
        let id = format!("acme.hash{number}");
        publish(&world, alone("manifest.json", &capability(&id))).await;
    }
    publish(&world, alone("manifest.json", &capability("other.hash"))).await;
    publish(&world, mcpkg("acme.pdf.read", "1.0.0", "")).await;
    let answer = get(&world, path).await;
    assert_ne!(answer.header("etag"), empty.header("etag"));
    let report = check(&answer.body, &Options::default());
    assert!(report.is_valid() && report.form.is_some_and(|form| form.name() == "catalog"));
    let catalog = answer.json();
    let entries = catalog["capabilities"].as_array().unwrap();
    assert_eq!(entries.len(), 6, "what its author left open is not told: {catalog}");
    for entry in entries {
        assert_eq!(
            (&entry["trust_level"], &entry["origin"]["source"]),
            (&json!("community"), &json!("url"))
        );
        let address = entry["origin"]["url"].as_str().unwrap();
        let package = get(&world, address.strip_prefix("http://tools.example.com").unwrap()).await;
        assert_eq!(entry["origin"]["digest"], Digest::of(&package.body).to_string());
    }
    let again = Request::get(path).header("host", "tools.example.com");
    let again = again.header("if-none-match", answer.header("etag")).body(Body::empty()).unwrap();
    assert_eq!(world.ask(again).await.status, 304);
    assert_eq!(paged(&world, &format!("{path}?limit=2"), "capabilities").await.len(), 6);
    let some = get(&world, &format!("{path}?namespace=other")).await.json();
    assert_eq!(some["capabilities"].as_array().unwrap().len(), 1);
    get(&world, &format!("{path}?after={}", "x".repeat(300))).await.refuses(400, "INVALID_REQUEST");
    let post = world.send(Method::POST, path, &world.token, "").await;
    post.refuses(405, "INVALID_REQUEST");
}
