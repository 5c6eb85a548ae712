//! Servers that mean no good: each answers as it was told, and nobody is signed in.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::desk::{Desk, PACKAGE, ended};

/// A server that answers every path as it was told, and remembers what it was asked.
struct Site {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

/// What is answered to a path: a status, more headers, a body. Nothing at all is a silence.
type Answers = Box<dyn Fn(&str, u16) -> Option<(u16, String, String)> + Send>;

impl Site {
    fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = vec![0; 8192];
                let count = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..count]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                heard.lock().unwrap().push(path.clone());
                let Some((status, more, body)) = answers(&path, port) else {
                    silent.push(stream);
                    continue;
                };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} X\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(body.as_bytes());
            }
        });
        Self { port, asked }
    }

    /// One that is honest but for what is changed in its two documents.
    fn honest_but(resource: Value, server: Value) -> Self {
        Self::start(Box::new(move |path, port| {
            let own = format!("http://127.0.0.1:{port}");
            let changed = |mut document: Value, change: &Value| {
                for (name, value) in change.as_object().unwrap() {
                    document[name] = value.clone();
                }
                Some((200, String::new(), document.to_string().replace("OWN", &own)))
            };
            match path {
                "/mcp" => Some((401, challenge(&format!("{own}/resource")), String::new())),
                "/resource" => changed(
                    json!({ "resource": "OWN/mcp", "authorization_servers": ["OWN"] }),
                    &resource,
                ),
                "/.well-known/oauth-authorization-server" => changed(
                    json!({
                        "issuer": "OWN",
                        "authorization_endpoint": "OWN/authorize",
                        "token_endpoint": "OWN/token",
                        "registration_endpoint": "OWN/register",
                        "response_types_supported": ["code"],
                        "code_challenge_methods_supported": ["S256"],
                    }),
                    &server,
                ),
                "/register" => Some((201, String::new(), json!({ "client_id": "x" }).to_string())),
                _ => Some((404, String::new(), String::new())),
            }
        }))
    }

    fn desk(&self) -> Desk {
        let host = format!("127.0.0.1:{}", self.port);
        Desk::of(&format!("http://{host}/mcp"), &host)
    }

    /// Tries to sign in, which must be refused before anybody sees a page.
    fn refuses(&self, code: i32, words: &str) {
        let desk = self.desk();
        let ran = desk.run(&["login", "--from", &desk.manifest(), "--timeout", "5s"]);
        assert_eq!((ran.code, &*ran.stdout), (code, ""), "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        assert!(!desk.is_signed_in());
    }
}

fn challenge(metadata: &str) -> String {
    format!("WWW-Authenticate: Bearer resource_metadata=\"{metadata}\"\r\n")
}

#[test]
fn one_that_is_honest_gets_as_far_as_the_page() {
    let site = Site::honest_but(json!({}), json!({}));
    let desk = site.desk();
    let waiting = desk.begin(&["--no-browser"]);
    assert!(waiting.page.contains("/authorize?response_type=code&client_id=x"), "{}", waiting.page);
    assert_eq!(waiting.end().code, 2);
}

#[test]
fn a_server_without_protection_for_codes_is_refused() {
    for methods in [json!(["plain"]), json!(null)] {
        let change = json!({ "code_challenge_methods_supported": methods });
        Site::honest_but(json!({}), change).refuses(4, "PKCE");
    }
}

#[test]
fn metadata_of_another_resource_is_refused() {
    let other = json!({ "resource": "https://other.example/mcp" });
    Site::honest_but(other, json!({})).refuses(4, "another resource");
    let beside = json!({ "resource": "OWN/other" });
    Site::honest_but(beside, json!({})).refuses(4, "another resource");
    // Nor is it read from somebody else.
    let site = Site::start(Box::new(|_, _| {
        Some((401, challenge("https://other.example/resource"), String::new()))
    }));
    site.refuses(4, "another resource");
}

#[test]
fn an_authorization_server_that_is_another_is_refused() {
    let change = json!({ "issuer": "https://other.example" });
    Site::honest_but(json!({}), change).refuses(4, "says that it is");
}

#[test]
fn nothing_is_said_in_plain_to_another_machine() {
    let plain = json!({ "authorization_servers": ["http://as.example"] });
    Site::honest_but(plain, json!({})).refuses(4, "https");
    for name in ["token_endpoint", "authorization_endpoint", "registration_endpoint"] {
        let change = json!({ (name): "http://as.example/x" });
        Site::honest_but(json!({}), change).refuses(4, "https");
    }
    let desk = Desk::of("http://mcp.example/mcp", "mcp.example:80");
    let ran = desk.run(&["login", "--from", &desk.manifest()]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("https"), "{}", ran.stderr);
}

#[test]
fn a_host_that_only_the_metadata_names_is_not_reached() {
    let far = json!({ "authorization_servers": ["https://as.example"] });
    Site::honest_but(far, json!({})).refuses(4, "--allow-host as.example:443");
    let change = json!({ "token_endpoint": "https://10.0.0.1/token" });
    Site::honest_but(json!({}), change).refuses(4, "private");
}

#[test]
fn a_page_that_only_the_metadata_names_is_not_gone_to() {
    let change = json!({ "authorization_endpoint": "http://127.0.0.1:631/admin/" });
    Site::honest_but(json!({}), change).refuses(4, "private");
    let change = json!({ "authorization_endpoint": "https://honest.example/authorize" });
    Site::honest_but(json!({}), change).refuses(4, "--allow-host honest.example:443");
}

#[test]
fn a_page_of_another_server_is_gone_to_only_where_the_owner_says_that_it_is_not() {
    let page = json!({ "authorization_endpoint": "https://honest.example/authorize" });
    let mut naming = page.clone();
    naming["authorization_response_iss_parameter_supported"] = true.into();
    let host = ["--allow-host", "honest.example:443"];
    for (change, more, is_refused) in
        [(page.clone(), &[][..], true), (page, &host[..], false), (naming, &[][..], false)]
    {
        let site = Site::honest_but(json!({}), change);
        let desk = site.desk();
        // That the package may reach it says nothing about whose it is.
        assert_eq!(desk.run(&["grant", PACKAGE, "--host", "honest.example:443"]).code, 0);
        let waiting = desk.begin(&[&["--no-browser"][..], more].concat());
        assert_eq!(waiting.page.is_empty(), is_refused, "{}", waiting.page);
        let ran = waiting.end();
        assert_eq!(ran.stderr.contains("another server than"), is_refused, "{}", ran.stderr);
    }
}

#[test]
fn metadata_without_end_is_not_read() {
    let site = Site::start(Box::new(|path, port| match path {
        "/mcp" => {
            Some((401, challenge(&format!("http://127.0.0.1:{port}/resource")), String::new()))
        }
        _ => Some((200, String::new(), " ".repeat(1 << 20))),
    }));
    site.refuses(6, "gave no whole answer");
}

#[test]
fn a_redirect_leads_nowhere() {
    let site = Site::start(Box::new(|path, port| match path {
        "/mcp" => {
            Some((401, challenge(&format!("http://127.0.0.1:{port}/resource")), String::new()))
        }
        "/resource" => Some((302, "Location: /elsewhere\r\n".to_owned(), String::new())),
        _ => Some((200, String::new(), "{}".to_owned())),
    }));
    site.refuses(1, "answered 302");
    assert!(!site.asked.lock().unwrap().iter().any(|path| path == "/elsewhere"));
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_without_end() {
    let began = std::time::Instant::now();
    // It was reached, and that is all.
    Site::start(Box::new(|_, _| None)).refuses(6, "did not answer\n");
    assert!(began.elapsed().as_secs() < 30);
}

#[test]
fn one_that_wants_nobody_to_sign_in_is_told_so() {
    let site = Site::start(Box::new(|path, _| match path {
        "/mcp" => Some((200, String::new(), "{}".to_owned())),
        _ => Some((404, String::new(), String::new())),
    }));
    site.refuses(2, "does not ask anybody");
    // Some answer whatever they do not know as if they had failed.
    let site = Site::start(Box::new(|path, _| match path {
        "/mcp" => Some((200, String::new(), "{}".to_owned())),
        _ => Some((501, String::new(), String::new())),
    }));
    let place = format!("http://127.0.0.1:{}/.well-known/oauth-protected-resource", site.port);
    site.refuses(2, "does not ask anybody");
    site.refuses(2, &format!("has at `{place}/mcp` is no metadata: the answer is 501"));
}

#[test]
fn what_is_no_mcp_server_is_told_with_what_was_looked_for_where_and_what_came() {
    let page = || (200, "Content-Type: text/html\r\n".to_owned(), "<p>hello</p>".to_owned());
    let site = Site::start(Box::new(|_, _| Some((404, String::new(), String::new()))));
    let own = format!("http://127.0.0.1:{}", site.port);
    site.refuses(2, &format!("`{own}/mcp` answered 404 Not Found to the greeting of MCP"));
    let place = "/.well-known/oauth-protected-resource";
    site.refuses(2, &format!("there is no metadata at `{own}{place}/mcp` or `{own}{place}`"));
    let site = Site::start(Box::new(move |_, _| Some(page())));
    let own = format!("http://127.0.0.1:{}", site.port);
    site.refuses(2, &format!("`{own}/mcp` answered 200 OK to the greeting of MCP"));
    site.refuses(2, &format!("has at `{own}{place}/mcp` is no metadata: it is no JSON object"));
    let json = |path: &str| if path == "/mcp" { (401, "") } else { (200, r#"{"a":1}"#) };
    let site = Site::start(Box::new(move |path, _| {
        let (status, body) = json(path);
        Some((status, String::new(), body.to_owned()))
    }));
    let own = format!("http://127.0.0.1:{}", site.port);
    site.refuses(1, &format!("has at `{own}{place}/mcp` is no metadata: `resource` is missing"));
}

#[test]
fn the_document_about_us_is_our_name_where_the_server_reads_such() {
    let document = "https://haft.example/client.json";
    let reads = json!({ "client_id_metadata_document_supported": true });
    for (change, name) in [(reads, "https%3A%2F%2Fhaft.example%2Fclient.json"), (json!({}), "x")] {
        let site = Site::honest_but(json!({}), change);
        let desk = site.desk();
        let waiting = desk.begin(&["--no-browser", "--client-id", document]);
        assert!(waiting.page.contains(&format!("client_id={name}&")), "{}", waiting.page);
        waiting.end();
    }
}

#[test]
fn a_registry_leads_to_the_server_that_is_signed_in_for() {
    let site = Site::honest_but(json!({}), json!({}));
    let desk = site.desk();
    let host = format!("127.0.0.1:{}", site.port);
    let capability = json!({
        "id": "trial.echo", "type": "tool", "version": "1.0.0", "description": "Says it again.",
        "origin": { "source": "local", "digest": "0".repeat(64) },
        "interfaces": { "inputs": { "type": "object" }, "outputs": {} },
        "permissions": {
            "network": "allowlist", "network_allowlist": ["registry.example.com"],
            "filesystem": "none", "devices": [],
        },
        "runtime": {
            "sandbox": "process", "timeout_seconds": 20,
            "resources": { "cpu": "1", "memory": "256Mi" },
        },
        "trust_level": "local", "requires_oauth": true,
        "implementation": {
            "kind": "mcp_tool",
            "mcp": { "registry_url": format!("http://{host}/mcp"), "tool_name": "echo" },
        },
    });
    let path = desk.write("capability/manifest.json", &capability.to_string());
    assert_eq!(desk.run(&["grant", "capability:trial.echo", "--host", &host]).code, 0);
    let ran = desk.run(&["call", "--from", &path, "trial.echo", "{}"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("haft login --from {path}")), "{}", ran.stderr);
    let mut child = desk.start(&["login", "--from", &path, "--no-browser"]);
    let mut page = String::new();
    let mut out = std::io::BufReader::new(child.stdout.as_mut().unwrap());
    std::io::BufRead::read_line(&mut out, &mut page).unwrap();
    let resource = format!("resource=http%3A%2F%2F127.0.0.1%3A{}%2Fmcp", site.port);
    assert!(page.contains(&resource), "{page}");
    ended(child);
}

#[test]
fn nobody_is_sent_to_sign_in_for_what_takes_no_token() {
    let desk = Site::honest_but(json!({}), json!({})).desk();
    let capability = json!({
        "id": "trial.echo", "type": "tool", "version": "1.0.0", "description": "Says it again.",
        "origin": { "source": "local", "digest": "0".repeat(64) },
        "interfaces": { "inputs": { "type": "object" }, "outputs": {} },
        "permissions": { "network": "deny", "filesystem": "none", "devices": [] },
        "runtime": { "sandbox": "process", "resources": { "cpu": "1", "memory": "256Mi" } },
        "trust_level": "local", "requires_oauth": true,
        "implementation": { "kind": "command", "command": { "argv": ["true"] } },
    });
    let path = desk.write("capability/manifest.json", &capability.to_string());
    let hint = "hint: only its author can change that";
    let refusal = "declares no secret that it could be given a token as";
    let call: &[&str] = &["call", "--from", &path, "trial.echo", "{}"];
    let login: &[&str] = &["login", "--from", &path];
    for (arguments, code, words) in [(call, 4, refusal), (login, 2, refusal)] {
        let ran = desk.run(arguments);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(ran.stderr.contains(words) && ran.stderr.contains(hint), "{}", ran.stderr);
        assert!(!ran.stderr.contains("haft login"), "{}", ran.stderr);
    }
    for more in ["--json", "--explain"] {
        let ran = desk.run(&[call, &[more]].concat());
        let told = ran.stdout + &ran.stderr;
        assert!(told.contains(refusal) && told.contains("only its author"), "{more}: {told}");
        assert!(!told.contains("haft login"), "{more}: {told}");
    }
}

#[test]
fn metadata_that_is_not_there_is_told_with_where_it_was_looked_for() {
    let wants = "wants you to sign in, and has no metadata that says how\n";
    let hint = "hint: whoever runs it can put its metadata there";
    // It names a place.
    let site = Site::start(Box::new(|path, port| match path {
        "/mcp" => Some((401, challenge(&format!("http://127.0.0.1:{port}/x")), String::new())),
        _ => Some((404, String::new(), String::new())),
    }));
    let own = format!("http://127.0.0.1:{}", site.port);
    let tried = format!("  `{own}/x` answered 404 Not Found\n");
    site.refuses(1, &format!("error: the server {wants}{tried}{hint}"));
    // It names none, so it is looked for at all the known ones.
    let site = Site::start(Box::new(|path, _| match path {
        "/mcp" => Some((401, String::new(), String::new())),
        _ => Some((403, String::new(), String::new())),
    }));
    let known = format!("http://127.0.0.1:{}/.well-known", site.port);
    let tried: String = [
        "oauth-protected-resource/mcp",
        "oauth-protected-resource",
        "oauth-authorization-server",
        "openid-configuration",
    ]
    .map(|name| format!("  `{known}/{name}` answered 403 Forbidden\n"))
    .concat();
    site.refuses(1, &format!("error: the server {wants}{tried}{hint}"));
    // It names who signs people in, and that one has none.
    let site = Site::start(Box::new(|path, port| match path {
        "/mcp" => {
            Some((401, challenge(&format!("http://127.0.0.1:{port}/resource")), String::new()))
        }
        "/resource" => {
            let own = format!("http://127.0.0.1:{port}");
            let resource =
                json!({ "resource": format!("{own}/mcp"), "authorization_servers": [own] });
            Some((200, String::new(), resource.to_string()))
        }
        _ => Some((404, String::new(), String::new())),
    }));
    site.refuses(1, &format!("error: the authorization server {wants}"));
    site.refuses(1, "/.well-known/oauth-authorization-server` answered 404 Not Found\n");
}
