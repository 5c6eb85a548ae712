//! Who is let in over HTTP, and what is said to the others.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::Desk;
use crate::gate::{
    Answer, Gate, Joined, NEWER, OPEN, conformance, home, send_to, server, until, words,
};

fn greeting() -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
}

fn with_token(desk: &Desk, arguments: &[&str]) -> String {
    let made = desk.done(&[&["token", "new"], arguments].concat());
    format!("Bearer {}", made.stdout.trim())
}

#[test]
fn strangers_are_refused_before_anything_is_read() {
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    for (host, origin) in [
        ("evil.example", None),
        ("localhost.evil.example", None),
        ("localhost", Some("http://evil.example")),
        ("localhost", Some("null")),
    ] {
        let mut headers = vec![("host", host)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        for path in ["/mcp", "/healthz", "/nothing"] {
            let answer = gate.post(path, &headers, &greeting());
            assert_eq!(answer.status, 403, "{host} {origin:?} {path}");
        }
    }
    let own = format!("http://{}", gate.address);
    assert_eq!(gate.post("/mcp", &[("origin", &own)], &greeting()).status, 200);
    // A page of another program of this machine calls nothing, also where its browser asks nobody first.
    let port = gate.address.rsplit(':').next().unwrap();
    for origin in ["http://127.0.0.1:1", "http://localhost", &format!("http://localhost:{port}")] {
        let headers = [("origin", origin), ("content-type", "text/plain")];
        let answer = gate.send("POST", "/v1/tools/any/call", &headers, "{}");
        assert_eq!(answer.status, 403, "{origin}");
    }
    let answer = gate.send("POST", "/v1/tools/any/call", &[("origin", &own)], "{}");
    assert_eq!(answer.status, 404);
}

#[test]
fn a_proxy_with_tls_has_pages_of_its_own() {
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--without-token", "--host", "tools.example"]);
    let asked = |host: &str, origin: &str| {
        gate.post("/mcp", &[("host", host), ("origin", origin)], &greeting()).status
    };
    assert_eq!(asked("tools.example", "https://tools.example"), 200);
    assert_eq!(asked(&gate.address, "https://tools.example"), 200);
    assert_eq!(asked("tools.example", "https://tools.example:3000"), 403);
    assert_eq!(asked("tools.example", "https://other.example"), 403);
}

#[test]
fn pages_that_the_owner_let_in_can_use_the_gateway_and_no_others() {
    const PAGE: &str = "http://127.0.0.1:7402";
    let desk = home(&[], OPEN);
    let token = with_token(&desk, &["page"]);
    let gate = Gate::open(&desk, &["--host", PAGE, "--host", "tools.example"]);
    let asked = |path: &str, origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,mcp-param-region,x-other"),
        ];
        gate.send("OPTIONS", path, &headers, "")
    };
    for origin in [PAGE, "https://tools.example"] {
        for path in ["/mcp", "/mcp/work", "/v1/tools/any/call", "/capability/run"] {
            let told = asked(path, origin);
            assert_eq!(told.status, 204, "{path}: {told:?}");
            let head = &told.headers;
            assert_eq!(head["access-control-allow-origin"], origin);
            assert_eq!(head["access-control-allow-methods"], "GET, POST, DELETE");
            let sent: Vec<_> = head["access-control-allow-headers"].split(", ").collect();
            for name in ["authorization", "mcp-session-id", "mcp-param-region"] {
                assert!(sent.contains(&name), "{name}: {sent:?}");
            }
            assert!(!sent.contains(&"x-other"), "{sent:?}");
            assert_eq!(head["vary"], "origin");
            assert!(head.contains_key("access-control-max-age"));
        }
    }
    // What it may not have is told so that it can read it, too.
    let own = [("origin", PAGE), ("authorization", &*token)];
    for (headers, status) in [(&own[..], 200), (&own[..1], 401)] {
        let answers = [
            gate.post("/mcp", headers, &greeting()),
            gate.send("GET", "/v1/tools.json", headers, ""),
            gate.send("GET", "/capability/list", headers, ""),
        ];
        for answer in answers {
            assert_eq!(answer.status, status, "{answer:?}");
            assert_eq!(answer.headers["access-control-allow-origin"], PAGE);
            let read = &answer.headers["access-control-expose-headers"];
            assert_eq!(read, "mcp-session-id, www-authenticate, haft-left-out");
            assert!(answer.headers["vary"].contains("origin"), "{answer:?}");
            assert!(!answer.headers.contains_key("access-control-allow-credentials"));
        }
    }
    // Strangers stay outside, the console is its owner's, and its own pages need nothing.
    let is_open =
        |answer: &Answer| answer.headers.keys().any(|name| name.starts_with("access-control-"));
    for origin in ["http://evil.example", "http://127.0.0.1:7403", "null"] {
        let told = asked("/mcp", origin);
        assert!(told.status == 403 && !is_open(&told), "{origin}: {told:?}");
    }
    for path in ["/", "/sign-in", "/approvals/all", "/mcpx", "/metrics"] {
        assert!(!is_open(&asked(path, PAGE)), "{path}");
        assert!(!is_open(&gate.send("GET", path, &own, "")), "{path}");
    }
    let same = format!("http://{}", gate.address);
    assert!(!is_open(&gate.post("/mcp", &[("origin", &same)], &greeting())));
}

/// The first bytes of the answer to a request over HTTP/2, whose fields are these: their code says how it went.
fn over_http2(gate: &Gate, fields: &[u8]) -> u8 {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let mut stream = TcpStream::connect(&gate.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&[frame(4, 0, 0, &[]), frame(1, 5, 1, fields)].concat()).unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).unwrap();
        if head[3] == 1 {
            return payload[0];
        }
    }
}

#[test]
fn over_http2_the_name_that_is_asked_for_is_judged_too() {
    const WELL: u8 = 0x88;
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    // GET, http, the path, and the authority where there is one.
    let fields = |authority: &str| {
        let named =
            [&[0x41, u8::try_from(authority.len()).unwrap()], authority.as_bytes()].concat();
        [&b"\x82\x86\x04\x08/healthz"[..], if authority.is_empty() { b"" } else { &named }].concat()
    };
    assert_eq!(over_http2(&gate, &fields(&gate.address)), WELL);
    assert_eq!(over_http2(&gate, &fields("localhost")), WELL);
    for authority in ["evil.example", "localhost.evil.example", ""] {
        assert_ne!(over_http2(&gate, &fields(authority)), WELL, "{authority}");
    }
    // Who names two hosts is none of ours.
    let both = [&fields("localhost")[..], b"\x00\x04host\x0cevil.example"].concat();
    assert_ne!(over_http2(&gate, &both), WELL);
}

#[test]
fn the_console_is_for_this_machine_alone() {
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--listen", "0.0.0.0:0"]);
    let (at, _) = signed_in(gate.console.as_deref().unwrap());
    assert!(at.starts_with("127.0.0.1:") && at != gate.address, "{at}");
    // Its owner finds it again, agents of other machines are not sent there, and nothing of agents is there.
    let token = with_token(&desk, &["laptop"]);
    let told =
        gate.ask_as("/mcp", &[("authorization", &token)], &json!({}), "tools/list", json!({}));
    assert!(told.status == 200 && !told.body.contains(&at), "{told:?}");
    assert!(desk.done(&["console"]).stdout.starts_with(&format!("http://{at}/sign-in/")));
    for path in ["/mcp", "/mcp/raw/x", "/v1/tools.json", "/capability/list", "/metrics"] {
        let answer = send_to(&at, "POST", path, &[("accept", "application/json")], "{}");
        assert_eq!(answer.status, 404, "{path}");
    }
    for path in ["/", "/approvals", "/sign-in/x", "/tools"] {
        let answer = gate.send("GET", path, &[("accept", "text/html")], "");
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.headers.contains_key("set-cookie"), "{path}");
    }
    drop(gate);
    let told = desk.haft(&["console"]);
    // Where a `haft up` of somebody runs on this machine, a hint leads there first.
    let words = ["error: nothing serves this home\n", "\nhint: `haft serve` serves this home"];
    let is_told = words.iter().all(|words| told.stderr.contains(words));
    assert!(told.code == 6 && is_told, "{}", told.stderr);
    let gate = Gate::open(&desk, &[]);
    assert!(gate.console.as_deref().is_some_and(|link| link.contains("/sign-in/")));
}

/// Signs in by a link, and looks at the first page; where that is, and what is shown there.
fn signed_in(link: &str) -> (String, String) {
    let (at, code) = link.strip_prefix("http://").unwrap().split_once("/sign-in/").unwrap();
    let origin = format!("http://{at}");
    let entered = send_to(at, "POST", "/sign-in", &[("origin", &origin)], &format!("code={code}"));
    assert_eq!(entered.status, 303, "{entered:?}");
    let cookie = entered.headers["set-cookie"].split(';').next().unwrap().to_owned();
    let page = send_to(at, "GET", "/", &[("cookie", &cookie)], "");
    assert!(page.status == 200 && page.body.contains("Agents reach them"), "{page:?}");
    (at.to_owned(), cookie)
}

#[test]
fn the_console_is_where_its_owner_wants_it() {
    let desk = home(&[], OPEN);
    let place = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gate = Gate::open(&desk, &["--console", &place.to_string()]);
    assert_eq!(signed_in(gate.console.as_deref().unwrap()).0, place.to_string());
    let answer = gate.send("GET", "/approvals", &[("accept", "text/html")], "");
    assert_eq!(answer.status, 404, "it is in two places: {answer:?}");
    for elsewhere in ["0.0.0.0:1", "192.0.2.1:80"] {
        desk.refused(&["serve", "--console", elsewhere], 2, "this machine alone");
    }
}

#[test]
fn a_host_that_was_started_for_a_client_opens_its_console_when_it_is_asked_for() {
    let desk = home(&[], OPEN);
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    let link = desk.done(&["console"]).stdout;
    let (at, _) = signed_in(link.trim());
    assert!(desk.done(&["console"]).stdout.starts_with(&format!("http://{at}/sign-in/")));
    assert!(client.ask("tools/list", &json!({}))["result"]["tools"].is_array());
}

#[test]
fn a_host_that_nobody_needs_ends_and_one_that_somebody_does_stays() {
    let desk = home(&[], OPEN);
    let mut host = std::process::Command::new(assert_cmd::cargo::cargo_bin("haft"));
    host.arg("--home").arg(desk.path("home"));
    let mut host = host.args(["serve", "--background", "--idle", "2"]).spawn().unwrap();
    until("its socket", || desk.path("home/host.sock").exists());
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(host.try_wait().unwrap(), None, "it left a client");
    assert!(client.ask("tools/list", &json!({}))["result"]["tools"].is_array());
    client.end();
    // The owner who looks at the console needs it too.
    let (at, cookie) = signed_in(desk.done(&["console"]).stdout.trim());
    for _ in 0..6 {
        std::thread::sleep(Duration::from_secs(1));
        let page = send_to(&at, "GET", "/", &[("cookie", &cookie)], "");
        assert_eq!(page.status, 200, "it left its owner");
    }
    until("its end", || host.try_wait().unwrap().is_some());
    assert!(host.wait().unwrap().success() && !desk.path("home/host.sock").exists());
}

#[test]
fn no_log_has_a_token() {
    let desk = Desk::new();
    let path = server(desk.0.path(), "plain", "say", "return arguments.get('words')");
    let desk = home(&[("plain", &path)], OPEN);
    // What a host of clients says is in a file.
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    client.call("plain_say", json!({ "words": "hi" }));
    drop(client);
    let good = with_token(&desk, &["laptop"]);
    let bad = format!("{}x", &good[..good.len() - 1]);
    let said = desk.path("said");
    let gate = Gate::open_saying(&desk, &[], &[], std::fs::File::create(&said).unwrap().into());
    let call = json!({ "name": "plain_say", "arguments": { "words": "hi" } });
    let ask = |bearer: &str, params: &Value| {
        gate.ask_as("/mcp", &[("authorization", bearer)], &json!({}), "tools/call", params.clone())
    };
    assert_eq!(words(&ask(&good, &call).last()["result"]), "hi");
    assert!(ask(&good, &json!({ "name": "nobody" })).last()["error"].is_object());
    desk.done(&["disable", "mcpb:plain"]);
    assert_eq!(ask(&good, &call).last()["result"]["isError"], true);
    assert_eq!(ask(&bad, &call).status, 401);
    let plain = |bearer: &str| {
        gate.send("POST", "/v1/tools/plain_say/call", &[("authorization", bearer)], "{}").status
    };
    assert_eq!((plain(&good), plain(&bad)), (403, 401));
    let metrics = gate.send("GET", "/metrics", &[("authorization", &good)], "").body;
    assert!(metrics.contains("haft_calls_total"), "{metrics}");
    let log = desk.done(&["audit", "--json", "--limit", "100"]).stdout;
    assert!(log.contains("laptop"), "{log}");
    drop(gate);
    let secrets = [&good, &bad].map(|bearer| bearer.strip_prefix("Bearer ").unwrap());
    for secret in secrets {
        assert!(![&metrics, &log].iter().any(|text| text.contains(secret)));
        // Nowhere in the home, the log and what was said among it.
        let found = std::process::Command::new("grep")
            .args(["-rlaF", secret])
            .args([desk.path("home"), said.clone()])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    }
    assert!(desk.path("home/host.log").exists());
}

/// A conversation of the older era, which can show forms.
fn session(gate: &Gate, revision: &str) -> (String, Value) {
    let mut greeting = greeting();
    greeting["params"]["protocolVersion"] = revision.into();
    greeting["params"]["capabilities"] = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    let greeted = gate.post("/mcp", &[], &greeting);
    (greeted.headers["mcp-session-id"].clone(), greeted.last()["result"]["protocolVersion"].clone())
}

#[test]
fn a_question_that_nobody_would_hear_is_refused_at_once() {
    let desk = home(&[("conformance", &conformance())], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let (session, agreed) = session(&gate, "2025-03-26");
    assert_eq!(agreed, "2025-03-26");
    let params =
        json!({ "name": "conformance_test_elicitation", "arguments": { "message": "Who?" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    // In an answer that is one text: of several messages, which may come after white space, and of whoever takes no stream.
    let asked = |accept: &str, body: &str| {
        let headers = [
            ("mcp-session-id", &*session),
            ("accept", accept),
            ("content-type", "application/json"),
        ];
        let answer = gate.send("POST", "/mcp", &headers, body);
        assert_eq!(answer.headers["content-type"], "application/json", "{answer:?}");
        serde_json::from_str::<Value>(&answer.body).unwrap()
    };
    let both = "application/json, text/event-stream";
    let several = asked(both, &format!(" \n[{call}]"));
    for told in [&several[0], &asked("application/json", &call.to_string())] {
        assert!(told["id"] == 2 && told.to_string().contains("cannot be asked"), "{told}");
    }
}

#[test]
fn a_stream_is_passed_on_as_it_comes() {
    let desk = home(&[("conformance", &conformance())], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let (session, _) = session(&gate, "2025-06-18");
    let params =
        json!({ "name": "conformance_test_tool_with_progress", "_meta": { "progressToken": 1 } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let answer = gate.post("/mcp", &[("mcp-session-id", &session)], &call);
    assert!(answer.messages().len() > 1, "{answer:?}");
    let told = ["content-type", "cache-control", "x-accel-buffering"];
    assert_eq!(told.map(|name| &*answer.headers[name]), ["text/event-stream", "no-cache", "no"]);
}

#[test]
fn a_revision_with_another_way_over_http_leads_to_one_that_is_spoken() {
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    for (asked, agreed) in [("2024-11-05", "2025-11-25"), ("2025-03-26", "2025-03-26")] {
        assert_eq!(session(&gate, asked).1, agreed);
    }
}

#[test]
fn every_revision_lists_and_calls_over_lines() {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "plain", "say", "return arguments.get('words')");
    let desk = home(&[("plain", &path)], OPEN);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Joined::new(&desk, &[]);
        let mut greeting = greeting()["params"].take();
        greeting["protocolVersion"] = revision.into();
        let greeted = client.ask("initialize", &greeting);
        assert_eq!(greeted["result"]["protocolVersion"], revision);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let listed = client.ask("tools/list", &json!({}));
        assert_eq!(listed["result"]["tools"][0]["name"], "plain_say", "{revision}: {listed}");
        assert_eq!(words(&client.call("plain_say", json!({ "words": revision }))), revision);
    }
}

#[test]
fn whoever_shows_no_token_that_counts_is_told_so() {
    let desk = home(&[], OPEN);
    let good = with_token(&desk, &["laptop"]);
    let short = with_token(&desk, &["short", "--expires", "1ms"]);
    let gate = Gate::open(&desk, &[]);
    let one_off = format!("{}x", &good[..good.len() - 1]);
    for shown in [
        None,
        Some("Bearer haft_nothing"),
        Some(&*one_off),
        Some("Basic YTpi"),
        Some(&*short),
        Some("Bearer "),
    ] {
        let headers: Vec<_> = shown.map(|shown| ("authorization", shown)).into_iter().collect();
        let answer = gate.post("/mcp", &headers, &greeting());
        assert_eq!(answer.status, 401, "{shown:?}");
        assert!(answer.headers["www-authenticate"].starts_with("Bearer"));
    }
    // A token in an address is none.
    let in_address = format!("/mcp?access_token={}", good.strip_prefix("Bearer ").unwrap());
    assert_eq!(gate.post(&in_address, &[], &greeting()).status, 401);
    assert_eq!(gate.post("/mcp", &[("authorization", &good)], &greeting()).status, 200);
    // It counts no more as soon as it is taken away.
    desk.done(&["token", "rm", "laptop"]);
    assert_eq!(gate.post("/mcp", &[("authorization", &good)], &greeting()).status, 401);
}

#[test]
fn tokens_are_shown_once_and_kept_as_digests() {
    let desk = home(&[], OPEN);
    let made = desk.done(&["token", "new", "ci", "--role", "installer", "--json"]).json();
    let secret = made["token"].as_str().unwrap();
    let listed = desk.done(&["token", "show"]);
    assert!(listed.stdout.starts_with("ci installer since"), "{}", listed.stdout);
    assert!(!listed.stdout.contains(secret));
    let kept = std::fs::read_to_string(desk.path("home/tokens.json")).unwrap();
    assert!(!kept.contains(secret));
    desk.refused(&["token", "new", "ci"], 5, "already");
    desk.refused(&["token", "new", "a b"], 2, "letters");
    desk.refused(&["token", "new", "x", "--profile", "none"], 3, "no profile");
    desk.refused(&["token", "new", "x", "--role", "king"], 2, "no such role");
    desk.refused(&["token", "rm", "nobody"], 3, "no token");
    // Whoever means days would have seconds.
    desk.refused(&["token", "new", "x", "--expires", "30"], 2, "with its unit, such as 12h or 30d");
    for never in ["never", "30y", "999999d"] {
        desk.refused(
            &["token", "new", "x", "--expires", never],
            2,
            "it counts until it is removed",
        );
    }
    desk.refused(&["serve", "--listen", "0.0.0.0:0", "--without-token"], 2, "this machine alone");
    desk.refused(&["serve", "--host", "bad host"], 2, "write a name such as");
    // One whose time is over is told from one that counts.
    desk.done(&["token", "new", "short", "--expires", "1ms"]);
    std::thread::sleep(std::time::Duration::from_millis(5));
    let listed = desk.done(&["token", "show"]).stdout;
    assert!(listed.lines().any(|one| one.starts_with("short") && one.contains("counts no more")));
    let all = desk.done(&["token", "show", "--json"]).json();
    assert_eq!((&all[0]["expired"], &all[1]["expired"]), (&false.into(), &true.into()), "{all}");
    std::fs::write(desk.path("home/tokens.json"), "what is this").unwrap();
    desk.refused(&["token", "show"], 6, "make the tokens anew");
}

#[test]
fn the_owner_hears_that_no_token_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let desk = home(&[], OPEN);
    let good = with_token(&desk, &["laptop"]);
    let (tokens, log) = (desk.path("home/tokens.json"), desk.path("said"));
    let saying = std::fs::File::create(&log).unwrap();
    let gate = Gate::open_saying(&desk, &[], &[], saying.into());
    let said = || std::fs::read_to_string(&log).unwrap();
    let ask = || gate.post("/mcp", &[("authorization", &good)], &greeting()).status;
    assert_eq!((ask(), said().as_str()), (200, ""));
    std::fs::set_permissions(&tokens, PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!((ask(), ask()), (401, 401));
    let told = said();
    assert!(told.starts_with("warning: no token lets anybody in: "), "{told}");
    assert!(told.contains("tokens.json") && told.contains("chmod 600"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    std::fs::set_permissions(&tokens, PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(ask(), 200);
    std::fs::write(&tokens, "[").unwrap();
    assert_eq!((ask(), ask()), (401, 401));
    assert_eq!(said().lines().count(), 2, "{}", said());
    drop(gate);
    // It is told at the start too, before anybody is refused.
    let saying = std::fs::File::create(&log).unwrap();
    let _gate = Gate::open_saying(&desk, &[], &[], saying.into());
    assert!(said().contains("no token lets anybody in"), "{}", said());
}

#[test]
fn programs_are_told_in_json_that_there_is_nothing() {
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    for path in ["/v1/nothing", "/v1", "/capability/nothing", "/capability/get", "/metrics/a"] {
        let answer = gate.send("GET", path, &[], "");
        assert_eq!((answer.status, &*answer.headers["content-type"]), (404, "application/json"));
        let told: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(told["error"]["code"], "not_found", "{path}: {told}");
        assert!(told["error"]["message"].is_string(), "{path}: {told}");
    }
    for path in ["/mcp/a/b", "/mcp/raw", "/mcp/"] {
        let answer = gate.post(path, &[], &greeting());
        let told: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((answer.status, &told["jsonrpc"]), (404, &json!("2.0")), "{path}: {told}");
        assert!(told["error"]["message"].is_string(), "{path}: {told}");
    }
    // People are shown a page.
    let answer = gate.send("GET", "/nothing", &[], "");
    assert!(answer.status == 404 && answer.headers["content-type"].starts_with("text/html"));
}

#[test]
fn a_session_is_its_own_and_ends() {
    let desk = home(&[], OPEN);
    let (one, other) = (with_token(&desk, &["one"]), with_token(&desk, &["other"]));
    let gate = Gate::open(&desk, &[]);
    let greeted = gate.post("/mcp", &[("authorization", &one)], &greeting());
    let session = greeted.headers["mcp-session-id"].clone();
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let ask = |token: &str, session: &str| {
        gate.post("/mcp", &[("authorization", token), ("mcp-session-id", session)], &list).status
    };
    assert_eq!(ask(&one, &session), 200);
    assert_eq!(ask(&other, &session), 404);
    assert_eq!(ask(&one, "nothing"), 404);
    let own = [("authorization", &*one), ("mcp-session-id", &*session)];
    let unknown = [&own[..], &[("mcp-protocol-version", "2099-01-01")]].concat();
    assert_eq!(gate.post("/mcp", &unknown, &list).status, 400);
    assert_eq!(gate.send("DELETE", "/mcp", &own, "").status, 204);
    assert_eq!(ask(&one, &session), 404);
    assert_eq!(gate.send("GET", "/mcp", &[("authorization", &one)], "").status, 405);
}

#[test]
fn a_request_of_the_newer_era_is_whole_or_refused() {
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let whole = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": NEWER, "io.modelcontextprotocol/clientCapabilities": {} } });
    let ask = |headers: &[(&str, &str)], params: &serde_json::Value| {
        let answer = gate.post(
            "/mcp",
            headers,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params }),
        );
        (answer.status, answer.last()["error"]["code"].as_i64())
    };
    let (version, method) = (("mcp-protocol-version", NEWER), ("mcp-method", "tools/list"));
    assert_eq!(ask(&[version, method], &whole), (200, None));
    assert_eq!(ask(&[version, method], &json!({})), (400, Some(-32602)));
    assert_eq!(ask(&[version], &whole), (400, Some(-32020)));
    assert_eq!(ask(&[method], &whole), (400, Some(-32020)));
    assert_eq!(ask(&[version, ("mcp-method", "tools/call")], &whole), (400, Some(-32020)));
    assert_eq!(ask(&[("mcp-protocol-version", "2025-11-25"), method], &whole), (400, Some(-32020)));
    for (body, status) in [("{", 400), ("[]", 400), ("", 400), ("7", 400)] {
        let answer = gate.send("POST", "/mcp", &[version, method], body);
        assert_eq!(answer.status, status, "{body}");
    }
    let unknown = gate.ask_as("/mcp", &[], &json!({}), "no/such", json!({}));
    assert_eq!((unknown.status, unknown.last()["error"]["code"].as_i64()), (404, Some(-32601)));
}

#[test]
fn bad_arguments_are_a_result_and_an_unknown_tool_is_an_error() {
    let desk = Desk::new();
    let path = server(desk.0.path(), "plain", "say", "return arguments.get('words')");
    let desk = home(&[("plain", &path)], OPEN);
    desk.done(&[
        "install",
        crate::common::repository().join("examples/mcpkg/echo").to_str().unwrap(),
        "--yes",
    ]);
    let gate = Gate::open(&desk, &["--without-token"]);
    assert_eq!(words(&gate.call("/mcp", "plain_say", json!({ "words": "hi" }))), "hi");
    let unknown = gate.ask("/mcp", "tools/call", json!({ "name": "nobody" }));
    assert_eq!(unknown["error"]["code"], -32602);
    let listed = gate.ask("/mcp", "tools/list", json!({}));
    let echo = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["_meta"]["haft/id"] == "mcpkg:demo.echo")
        .unwrap();
    let bad = gate.call("/mcp", echo["name"].as_str().unwrap(), json!({}));
    assert_eq!(
        (bad["isError"].as_bool(), bad["structuredContent"]["error"]["code"].as_str()),
        (Some(true), Some("bad_input"))
    );
    let good = gate.call("/mcp", echo["name"].as_str().unwrap(), json!({ "message": "hi" }));
    assert_eq!(good["structuredContent"]["message"], "hi", "{good}");
}
