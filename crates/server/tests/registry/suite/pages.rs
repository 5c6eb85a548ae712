//! The pages for people, as they are sent.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;
use server::settings::Quarantine;

use super::doors::{alone, weather};
use super::packages::{bundle, mcpkg};
use super::shelf;
use super::world::{Answer, World};

/// What browsers say they accept.
const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

fn text(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.body).unwrap()
}

/// Checks that it is a page, with everything that keeps a browser from doing more than showing it.
fn is_page(answer: &Answer) {
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let policy = answer.header("content-security-policy");
    for part in
        ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(answer.header(name), value);
    }
    let page = text(answer);
    for inline in ["<style", " style=", " onclick", "javascript:\"", "<script>"] {
        assert!(!page.contains(inline), "{inline}");
    }
}

pub(crate) async fn every_page_is_shown(world: World) {
    shelf::fill(&world).await;
    for (path, parts) in [
        ("/", &["Lately changed", "59 tools", "acme.pdf.read", "MCP server"][..]),
        (
            "/search",
            &["All tools", "59 tools", "Page 1 of 3", "/search?page=2", "/search?kind=mcp_server"],
        ),
        (
            "/search?q=words&tag=text",
            &["Chosen filters", "name=\"tag\" value=\"text\"", "/search?q=words\""],
        ),
        ("/search?q=one+of+many&page=2", &["Page 2 of 3", "/search?q=one%20of%20many&#38;page=3"]),
        ("/search?q=one+of+many&page=99", &["Page 3 of 3"]),
        ("/search?q=zzzzqqqq", &["No tool is like that."]),
        ("/suggest?q=read+pd", &["role=\"option\"", "/tools/acme.pdf.read"]),
        (
            "/namespaces/acme",
            &["acme.pdf.read", "1 tool", "last published", "ed25519:", "1 version<"],
        ),
        (
            "/namespaces/many",
            &["45 tools", "Page 1 of 3", "/namespaces/many?page=2", "No version was signed"],
        ),
        ("/namespaces/post", &["post.mail"]),
        (
            "/tools/acme.pdf.read",
            &[
                "<h1><bdi>Read PDFs locally</bdi></h1>",
                "Every file is signed by this key",
                "<h3>Read PDFs</h3>",
                "one_page",
                "2 checks",
                "1 to 5000",
                "leaks temporary files",
                "required",
                "/tools/acme.pdf.read/versions/1.2.0",
                "curl -fsSL -o acme.pdf.read-1.2.0.mcpkg \\\n  http://registry.example:7070/v1/tools/acme.pdf.read/versions/1.2.0/package",
                "haft registry get acme.pdf.read@1.2.0 -o acme.pdf.read-1.2.0.mcpkg \\\n  --registry http://registry.example:7070\n",
                "rel=\"nofollow noopener noreferrer ugc\" href=\"https://example.com/pdf\"",
            ],
        ),
        (
            "/tools/acme.pdf.read/versions/1.0.0",
            &["was yanked", "leaks temporary files", "Take 1.2.0 instead"],
        ),
        (
            "/tools/acme.pdf.read/versions/1.1.0",
            &["The highest is <a href=\"/tools/acme.pdf.read\">1.2.0</a>"],
        ),
        ("/tools/gone.tool", &["was yanked", "No reason was given"]),
        ("/tools/post.mail", &["Every call waits for your word.", "smtp_pass", "Needs one secret"]),
        (
            "/tools/demo.text.report",
            &["Steps", "calls <a class=\"id\" href=\"/tools/demo.text.clean\">"],
        ),
        ("/tools/demo.text.clean", &["Used in chains", "/tools/demo.text.report"]),
        ("/tools/text-find", &["exact scope", "files.documents", "Reads the one file"]),
        (
            "/tools/dice-remote",
            &["claude mcp add --transport http dice-remote https://mcp.example.com/dice"],
        ),
        (
            "/tools/dice-local",
            &[
                "npm install --global @example/dice@1.0.0",
                "-- dice-mcp --say &#39;it&#39;\\&#39;&#39;s $HOME&#39;",
            ],
        ),
        ("/tools/dice-server", &["cannot start it by name"]),
    ] {
        let request = Request::get(path).header("host", "registry.example:7070");
        let answer = world.ask(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, 200, "{path}");
        is_page(&answer);
        for part in parts {
            assert!(text(&answer).contains(part), "{path} has no {part}:\n{}", text(&answer));
        }
        let again = world.get_with(path, ("if-none-match", answer.header("etag"))).await;
        if !path.starts_with("/tools/") {
            assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{path}");
        }
    }
    let gone = world.get("/search?q=gone").await;
    assert!(!text(&gone).contains("/tools/gone.tool"), "what is yanked is not found");
}

pub(crate) async fn what_pages_are_made_with_is_kept_for_ever(world: World) {
    let home = world.get("/").await;
    assert!(text(&home).contains("Nothing is published yet"));
    let mut count = 0;
    for (at, _) in text(&home).match_indices("\"/assets/") {
        let path = &text(&home)[at + 1..];
        let path = &path[..path.find('"').unwrap()];
        let asset = world.get(path).await;
        assert_eq!(asset.status, 200, "{path}");
        assert!(asset.header("cache-control").contains("immutable"));
        assert_eq!(world.get_with(path, ("if-none-match", asset.header("etag"))).await.status, 304);
        count += 1;
    }
    assert_eq!(count, 3);
    world.get("/assets/haft-0000000000000000.css").await.refuses(404, "INVALID_REQUEST");
    let head = Request::builder().method(Method::HEAD).uri("/").body(Body::empty()).unwrap();
    let head = world.ask(head).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    let post = Request::post("/search").body(Body::empty()).unwrap();
    world.ask(post).await.refuses(405, "INVALID_REQUEST");
}

pub(crate) async fn people_are_told_in_words_and_programs_in_the_model(world: World) {
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "a")).await;
    for (path, status, code) in [
        ("/nothing", 404, "INVALID_REQUEST"),
        ("/tools/nobody.knows", 404, "TOOL_NOT_FOUND"),
        ("/tools/acme.pdf.read/versions/9.9.9", 404, "VERSION_NOT_FOUND"),
        ("/tools/a//b", 404, "INVALID_REQUEST"),
        ("/namespaces/nobody", 404, "INVALID_REQUEST"),
        ("/search?q=%ff", 400, "INVALID_REQUEST"),
        ("/search?q=%zz", 400, "INVALID_REQUEST"),
        ("/tools/%00", 400, "INVALID_REQUEST"),
    ] {
        world.get(path).await.refuses(status, code);
        let page = world.get_with(path, BROWSER).await;
        assert_eq!(page.status, status, "{path}");
        is_page(&page);
        assert!(text(&page).contains(code) && text(&page).contains("<h1>"), "{path}");
        assert!(page.header("vary").contains("accept"));
        assert_eq!(page.header("cache-control"), "no-store");
    }
    // Programs are answered in the model whatever they accept.
    world.get_with("/v1/nothing", BROWSER).await.refuses(404, "INVALID_REQUEST");
    world.get_with("/v1/tools/nobody.knows", BROWSER).await.refuses(404, "TOOL_NOT_FOUND");
    let long = format!("/tools/{}", "<script>".repeat(500).replace('<', "%3C").replace('>', "%3E"));
    let page = world.get_with(&long, BROWSER).await;
    assert_eq!(page.status, 404);
    assert!(!text(&page).contains("<script>") && page.body.len() < 10_000);
    let many: String = (0..70).map(|n| format!("&tag=t{n}")).collect();
    world.get(&format!("/search?q=a{many}")).await.refuses(400, "INVALID_REQUEST");
}

pub(crate) async fn a_publisher_is_shown_with_its_keys_builds_and_owners(mut world: World) {
    world.publish(shelf::reader("1.0.0", true)).await;
    world.publish(mcpkg("acme.other", "1.0.0", "")).await;
    world.publish(mcpkg("ACME.loud", "1.0.0", "")).await;
    let described = world.get("/v1/tools/acme.pdf.read").await.json();
    let key = described["signature"]["keys"][0].as_str().unwrap().to_owned();
    let owner = "/v1/tools/acme.other/owners/partner";
    assert!(world.send(Method::PUT, owner, &world.token, "").await.status.is_success());
    world
        .sql("UPDATE versions SET provenance = '{\"issuer\":\"https://builds.example\",\"subject\":\"s\",\"repository\":\"acme/tools\"}' WHERE package = 'tool:acme.other'")
        .await;
    let page = world.get("/namespaces/acme").await;
    is_page(&page);
    let shown = text(&page);
    for part in [
        "2 tools",
        "acme.pdf.read",
        "acme.other",
        key.as_str(),
        "acme/tools",
        "https://builds.example",
        "/namespaces/partner",
        "1 tool<",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("ACME.loud"), "letters of another case are another namespace");
    assert!(
        text(&world.get("/tools/acme.other").await).contains("<dd><a href=\"/namespaces/acme\">")
    );
    // Nothing is told of a namespace of which nothing is offered.
    world.set(|settings| settings.quarantine = Quarantine::Everybody).await;
    assert_eq!(world.publish(mcpkg("held.tool", "1.0.0", "")).await.status, 201);
    assert_eq!(world.get("/namespaces/held").await.status, 404);
    assert_eq!(world.get("/namespaces/partner").await.status, 404);
}

pub(crate) async fn hostile_text_is_only_text(world: World) {
    assert_eq!(world.publish(shelf::hostile()).await.status, 201);
    world.publish(bundle("tool:a.b", "a.b", "1.0.0").to_string()).await;
    let yank = "/v1/tools/evil.tool/versions/6.6.6/yank";
    for path in [
        "/",
        "/search",
        "/search?q=window.owned",
        "/suggest?q=window.owned",
        "/namespaces/evil",
        "/tools/evil.tool",
        "/tools/evil.tool/versions/6.6.6",
        "/search?q=%3Cscript%3Ealert(1)%3C/script%3E&tag=%22%3E%3Cscript%3E",
    ] {
        let page = world.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        is_page(&page);
        let html = text(&page);
        for dangerous in [
            "<script>",
            "<img",
            "<svg onload",
            "<iframe",
            "<style",
            "<form action=https",
            "<meta http-equiv",
            "<base",
            "href=\"javascript",
            "href=\"data",
            "href=\"java",
            "\u{202e}",
            "\u{2066}",
            "\u{e0041}",
        ] {
            assert!(!html.contains(dangerous), "{path}: {dangerous}");
        }
    }
    let reason = serde_json::json!({"reason": shelf::HOSTILE}).to_string();
    assert_eq!(world.send(Method::POST, yank, &world.token, reason).await.status, 204);
    let page = world.get("/tools/evil.tool").await;
    assert!(text(&page).contains("was yanked") && !text(&page).contains("<script>"));
    // A host that is no host is not repeated in a command.
    let request = Request::get("/tools/a.b").header("host", "x;rm -rf ~");
    let page = world.ask(request.body(Body::empty()).unwrap()).await;
    assert!(!text(&page).contains("rm -rf"));
}

/// A version that was taken back is not sold on its page; one that endangers those who have it is not even handed out.
pub(crate) async fn what_was_taken_back_is_not_offered_on_its_page(world: World) {
    for version in ["1.0.0", "1.1.0"] {
        world.publish(mcpkg("acme.pdf.read", version, "")).await;
    }
    let page = async |version: &str| {
        let answer = world.get(&format!("/tools/acme.pdf.read/versions/{version}")).await;
        text(&answer).to_owned()
    };
    let yank = async |version: &str, body: &str| {
        let path = format!("/v1/tools/acme.pdf.read/versions/{version}/yank");
        let done = world.send(Method::POST, &path, &world.token, body.to_owned()).await;
        assert_eq!(done.status, 204);
    };
    let open = "<details name=\"way\" open>";
    let ways = ["haft registry get", "curl -fsSL", "/package", "class=\"button copy\""];
    let shown = page("1.0.0").await;
    assert!(shown.contains(open) && !shown.contains("taken back"), "{shown}");
    yank("1.0.0", "").await;
    let shown = page("1.0.0").await;
    assert!(shown.contains("It was taken back: these are for those who need exactly"), "{shown}");
    assert!(!shown.contains(open) && ways.iter().all(|way| shown.contains(way)), "{shown}");
    yank("1.0.0", r#"{"security": true}"#).await;
    let shown = page("1.0.0").await;
    assert!(!ways.iter().any(|way| shown.contains(way)), "{shown}");
    assert!(shown.contains("Whoever has locked it still gets it by its version"), "{shown}");
    let instead = "<a href=\"/tools/acme.pdf.read\">Take 1.1.0 instead</a>";
    assert_eq!(shown.matches(instead).count(), 2, "{shown}");
    yank("1.1.0", r#"{"security": true}"#).await;
    let shown = page("1.1.0").await;
    assert!(
        shown.contains("No stable version of it is offered.") && !shown.contains("instead</a>")
    );
}

/// A chain is as dangerous as the tools it calls.
pub(crate) async fn a_chain_tells_of_tools_that_were_taken_back_for_security(world: World) {
    for folder in ["mcpkg/text-clean", "mcpkg/text-stats", "mcpkg/pipeline"] {
        assert_eq!(world.publish(shelf::example(folder)).await.status, 201);
    }
    let marks = async || {
        let answer = world.get("/tools/demo.text.report").await;
        is_page(&answer);
        let line = "It calls a tool that was taken back for security";
        let mark = "<bdi>demo.text.clean</bdi></a> <span class=\"chip ask\">taken back for security</span>";
        let marks = [line, mark, "sends &#60;keys&#62;", "taken back for security</span>"];
        marks.map(|mark| text(&answer).matches(mark).count())
    };
    let yank = async |method: Method, body: &str| {
        let path = "/v1/tools/demo.text.clean/versions/1.0.0/yank";
        assert_eq!(world.send(method, path, &world.token, body.to_owned()).await.status, 204);
    };
    assert_eq!(marks().await, [0; 4]);
    yank(Method::POST, r#"{"reason": "is slow"}"#).await;
    assert_eq!(marks().await, [0; 4], "it endangers nobody");
    yank(Method::POST, r#"{"reason": "sends <keys>", "security": true}"#).await;
    assert_eq!(marks().await, [1; 4], "of the step that calls it alone");
    yank(Method::DELETE, "").await;
    assert_eq!(marks().await, [0; 4]);
    // Where another version is offered, that is what is called.
    yank(Method::POST, r#"{"security": true}"#).await;
    assert_eq!(world.publish(mcpkg("demo.text.clean", "1.0.1", "")).await.status, 201);
    assert_eq!(marks().await, [0; 4]);
}

/// A server may be had as several programs and in several places; whoever lacks one program has another.
pub(crate) async fn each_way_to_run_a_server_is_shown(world: World) {
    let mut server = weather("1.0.0");
    let packages = server["packages"].as_array_mut().unwrap();
    let stdio = json!({"type": "stdio"});
    packages.extend([
        json!({"registryType": "pypi", "identifier": "weather", "version": "1.0.0", "transport": stdio}),
        json!({"registryType": "npm", "identifier": "here", "version": "1.0.0",
            "transport": {"type": "streamable-http", "url": "http://127.0.0.1:8080/mcp"}}),
    ]);
    server["remotes"] = json!([
        {"type": "streamable-http", "url": "https://one.example.com/mcp"},
        {"type": "streamable-http", "url": "https://two.example.com/mcp"},
    ]);
    assert_eq!(world.publish(alone("server.json", &server)).await.status, 201);
    let answer = world.get("/tools/com.example/weather").await;
    let page = text(&answer);
    for command in [
        "-- npx -y @example/weather@1.0.0",
        "-- uvx weather==1.0.0",
        "--transport http com_example_weather https://one.example.com/mcp",
        "--transport http com_example_weather https://two.example.com/mcp",
    ] {
        assert!(page.contains(command), "{command}: {page}");
    }
    // Each is fetched by what starts it, so nothing comes before; what cannot be started so is told of.
    assert!(!page.contains("npm install") && page.contains("Take one of 4"), "{page}");
    assert!(page.contains("Not all its ways to run are for Cursor"), "{page}");
    assert_eq!(page.matches("runs as you").count(), 2 * 4, "of programs alone");
    let mut only = weather("1.0.0");
    only["name"] = "com.example/only".into();
    assert_eq!(world.publish(alone("server.json", &only)).await.status, 201);
    let answer = world.get("/tools/com.example/only").await;
    let page = text(&answer);
    assert!(!page.contains("Take one of") && !page.contains("Not all its ways"), "{page}");
}
