//! Reading that needs a token.

use axum::body::Body;
use axum::http::{Method, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use server::settings::Reading;
use server::token::Role;

use super::packages::{bundle, mcpkg};
use super::world::World;

/// Everything that can be read.
const READ: [&str; 9] = [
    "/v1/tools",
    "/v1/tools/search?q=pdf",
    "/v1/tags",
    "/v1/providers",
    "/v1/tools/acme.pdf.read",
    "/v1/tools/acme.pdf.read/versions",
    "/v1/tools/acme.pdf.read/versions/1.0.0",
    "/v1/tools/acme.pdf.read/versions/latest/package",
    "/v1/tools/acme.pdf.read/owners",
];

/// What a browser accepts.
const HTML: &str = "text/html,*/*;q=0.8";

async fn private(mut world: World) -> World {
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await;
    world.publish(bundle("tool:post.mail", "post.mail", "1.0.0").to_string()).await;
    world.set(|settings| settings.reading = Reading::Tokens).await;
    world
}

/// Commands that are copied from a page work where reading needs a token, and the page holds none.
pub(crate) async fn commands_on_pages_show_a_token(world: World) {
    let said = [
        "`haft registry login http://registry.example:7070` first, or put it in HAFT_TOKEN",
        " \\\n  -H &#34;Authorization: Bearer $HAFT_TOKEN&#34; \\\n  http://registry.example:7070/v1/tools/acme.pdf.read/versions/1.0.0/package",
        "with a token in HAFT_TOKEN",
    ];
    let page = async |world: &World| {
        let request = Request::get("/tools/acme.pdf.read").header("host", "registry.example:7070");
        let request = request.header("authorization", format!("Bearer {}", world.token));
        let answer = world.ask(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, 200);
        String::from_utf8(answer.body.to_vec()).unwrap()
    };
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await;
    let open = page(&world).await;
    assert!(!open.contains("HAFT_TOKEN"), "{open}");
    let world = private(world).await;
    let shown = page(&world).await;
    for part in said {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains(&world.token));
}

pub(crate) async fn without_a_token_nothing_is_read(world: World) {
    let world = private(world).await;
    for path in READ.into_iter().chain(["/", "/nothing", "/v1/tools/nothing"]) {
        for method in [Method::GET, Method::HEAD, Method::POST] {
            let request = axum::http::Request::builder().method(method.clone()).uri(path);
            let answer = world.ask(request.body(axum::body::Body::empty()).unwrap()).await;
            if method != Method::HEAD {
                answer.refuses(401, "UNAUTHORIZED");
            }
            assert_eq!(answer.status, 401, "{method} {path}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
        world.get_as("haft_wrong", path).await.refuses(401, "UNAUTHORIZED");
        let basic = world.get_with(path, ("authorization", "Basic YTpi")).await;
        basic.refuses(401, "UNAUTHORIZED");
    }
    // Whether it is alive is no secret, and a browser may ask what it may ask.
    assert_eq!(
        (world.get("/healthz").await.status, world.get("/readyz").await.status),
        (200.try_into().unwrap(), 200.try_into().unwrap())
    );
    assert_eq!(world.send(Method::OPTIONS, "/v1/tools", "", "").await.status, 204);
    for role in [Role::Read, Role::Publish, Role::Review, Role::Admin] {
        let token = world.token_for("*", role, None).await;
        for path in READ {
            let answer = world.get_as(&token, path).await;
            assert_eq!(answer.status, 200, "{path}");
            let control = answer.header("cache-control");
            assert!(control.contains("private") || control == "no-store", "{path}: {control}");
            assert!(!control.contains("public"), "{path}: {control}");
        }
    }
    let ended = world.token_for("*", Role::Read, Some(std::time::Duration::ZERO)).await;
    world.get_as(&ended, "/v1/tools").await.refuses(401, "UNAUTHORIZED");
    let path = "/v1/tools/acme.pdf.read/versions/1.0.0/package";
    let package = world.get_as(&world.token, path).await;
    assert_eq!(package.header("cache-control"), "private, max-age=31536000, immutable");
    assert!(package.headers.get_all("vary").iter().any(|value| value == "authorization"));
}

pub(crate) async fn a_browser_shows_a_token_as_its_password(world: World) {
    let world = private(world).await;
    let reader = world.token_for("*", Role::Read, None).await;
    let basic =
        |name: &str, token: &str| format!("Basic {}", STANDARD.encode(format!("{name}:{token}")));
    let ask = async |method: Method, path: &str, authorization: &str, accept: &str| {
        let mut request = Request::builder().method(method).uri(path).header("accept", accept);
        request = request.header("host", "tools.example.com");
        if !authorization.is_empty() {
            request = request.header("authorization", authorization);
        }
        world.ask(request.body(Body::empty()).unwrap()).await
    };
    for path in [
        "/",
        "/search?q=pdf",
        "/tools/acme.pdf.read",
        "/v1/tools/acme.pdf.read/versions/1.0.0/package",
    ] {
        for method in [Method::GET, Method::HEAD] {
            let stranger = ask(method.clone(), path, "", HTML).await;
            assert_eq!(stranger.status, 401, "{path}");
            assert!(stranger.header("www-authenticate").starts_with("Basic realm="), "{path}");
            for good in [basic("", &reader), basic("ann", &reader), basic("a", &world.token)] {
                let shown = ask(method.clone(), path, &good, HTML).await;
                assert_eq!(shown.status, 200, "{path}");
                assert!(shown.header("cache-control").contains("private"), "{path}");
            }
        }
        for bad in [
            basic("ann", "haft_wrong"),
            basic(&reader, ""),
            "Basic ???".to_owned(),
            format!("Basic {reader}"),
        ] {
            let refused = ask(Method::GET, path, &bad, HTML).await;
            assert_eq!(refused.status, 401, "{path}: {bad}");
            assert!(refused.header("www-authenticate").starts_with("Basic"), "{path}");
        }
    }
    let page = ask(Method::GET, "/", &basic("ann", "haft_wrong"), HTML).await;
    let text = std::str::from_utf8(&page.body).unwrap();
    for part in ["The token is not good.", "Sign in with a token", "Password</dt>"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Programs are asked for what programs show.
    let program = ask(Method::GET, "/v1/tools", "", "application/json").await;
    assert_eq!(program.header("www-authenticate"), "Bearer");
    // Any page of the world can make a browser send its password, so nothing is changed by one.
    let publisher = basic("ann", &world.token);
    let yank = "/v1/tools/acme.pdf.read/versions/1.0.0/yank";
    for (method, path) in [
        (Method::POST, "/v1/tools"),
        (Method::POST, yank),
        (Method::DELETE, yank),
        (Method::POST, "/v1/tokens"),
    ] {
        let refused = ask(method, path, &publisher, HTML).await;
        refused.refuses(401, "UNAUTHORIZED");
        assert_eq!(refused.header("www-authenticate"), "Bearer");
    }
}

pub(crate) async fn a_token_for_one_namespace_sees_no_other(world: World) {
    let world = private(world).await;
    world.publish(mcpkg("acme.pdf.write", "1.0.0", "")).await;
    let acme = world.token_for("acme", Role::Read, None).await;
    let post = world.token_for("post", Role::Read, None).await;
    let nobody = world.token_for("nobody", Role::Read, None).await;
    for (token, count, tags) in [(&acme, 2, 2), (&post, 1, 1), (&nobody, 0, 0)] {
        let list = world.get_as(token, "/v1/tools").await.json();
        assert_eq!(
            (list["total"].as_u64(), list["results"].as_array().unwrap().len()),
            (Some(count), usize::try_from(count).unwrap())
        );
        assert_eq!(
            world.get_as(token, "/v1/tags").await.json()["tags"].as_array().unwrap().len(),
            tags
        );
    }
    assert_eq!(world.get_as(&world.token, "/v1/tools").await.json()["total"], 3);
    let search = async |token: &str, more: &str| {
        world.get_as(token, &format!("/v1/tools/search?q=reads+sends+pdf+email{more}")).await.json()
            ["total"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(
        (search(&acme, "").await, search(&post, "").await, search(&nobody, "").await),
        (2, 1, 0)
    );
    // Several values of a filter are alternatives; nobody widens a view by them.
    assert_eq!(search(&acme, "&namespace=post").await, 0);
    assert_eq!(search(&acme, "&namespace=post,acme").await, 2);
    assert_eq!(world.get_as(&post, "/v1/tools/search?tags=pdf,email").await.json()["total"], 1);
    assert_eq!(world.get_as(&post, "/v1/providers").await.json()["providers"][0]["name"], "post");
    assert_eq!(
        world.get_as(&acme, "/v1/providers").await.json()["providers"],
        serde_json::json!([])
    );
    for path in READ.into_iter().filter(|path| path.contains("acme.")) {
        assert_eq!(world.get_as(&acme, path).await.status, 200, "{path}");
        world.get_as(&post, path).await.refuses(404, "TOOL_NOT_FOUND");
    }
    // What a token is for, and what publishing would come to, it may ask of its own namespace.
    assert_eq!(world.get_as(&post, "/v1/token").await.json()["namespace"], "post");
    let publisher = world.token_for("acme", Role::Publish, None).await;
    let foresee =
        async |package| world.send(Method::POST, "/v1/foresee", &publisher, package).await;
    assert_eq!(foresee(mcpkg("acme.pdf.sign", "1.0.0", "")).await.json()["outcome"], "published");
    foresee(mcpkg("post.pdf", "1.0.0", "")).await.refuses(403, "FORBIDDEN");
    assert_eq!(world.get_as(&acme, "/v1/tools").await.json()["total"], 2, "it was only foreseen");
    // What does not know of namespaces is not for them.
    world.get_as(&post, "/v1/nothing").await.refuses(403, "FORBIDDEN");
    assert_eq!(world.get_as(&world.token, "/v1/nothing").await.status, 404);
    // Whether a letter is large or small makes another namespace.
    let large = world.token_for("ACME", Role::Read, None).await;
    assert_eq!(world.get_as(&large, "/v1/tools").await.json()["total"], 0);
    let found = world.get_as(&large, "/v1/tools/search?q=pdf").await.json();
    assert_eq!(found["results"], serde_json::json!([]));
    world.get_as(&large, "/v1/tools/acme.pdf.read").await.refuses(404, "TOOL_NOT_FOUND");
}
