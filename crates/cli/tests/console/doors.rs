//! Who gets into the console, and who does not.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::common::{Desk, repository};
use super::running::Running;

/// What is answered: the status, the head in small letters, the body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Asks for something with these headers.
fn ask(
    running: &Running,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(running.address()).unwrap();
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text += &format!("Host: {}\r\n", running.address());
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    write!(stream, "{text}\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// The secret of the session, as every form of a page carries it.
fn secret_of(page: &str) -> &str {
    page.split("name=\"form\" value=\"").nth(1).unwrap().split('"').next().unwrap()
}

#[test]
fn only_a_code_that_counts_signs_in_and_only_once() {
    let desk = Desk::new();
    let running = Running::start(&desk);
    let path = running.sign_in.strip_prefix(&format!("http://{}", running.address())).unwrap();
    for page in [
        "/",
        "/tools",
        "/approvals",
        "/calls",
        "/install",
        "/secrets",
        "/policy",
        "/machine",
        "/console/events",
        "/revoke",
    ] {
        let answer = ask(&running, "GET", page, &[], "");
        assert_eq!(answer.status, 401, "{page}");
        assert!(answer.body.contains("haft console"), "{page}: {}", answer.body);
    }
    // An agent's token opens nothing here.
    let token = desk.done(&["token", "new", "boss", "--role", "owner", "--json"]).json();
    let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
    assert_eq!(ask(&running, "GET", "/", &[("Authorization", &bearer)], "").status, 401);
    // To look at the address uses nothing up.
    for _ in 0..3 {
        assert_eq!(ask(&running, "GET", path, &[], "").status, 200);
    }
    assert_eq!(ask(&running, "GET", "/sign-in/another", &[], "").status, 401);
    let code = path.rsplit('/').next().unwrap();
    let body = format!("code={code}");
    for origin in [None, Some("http://evil.example"), Some("null")] {
        let headers: Vec<_> = origin.iter().map(|origin| ("Origin", *origin)).collect();
        assert_eq!(ask(&running, "POST", "/sign-in", &headers, &body).status, 403, "{origin:?}");
    }
    let origin = format!("http://{}", running.address());
    let entered = ask(&running, "POST", "/sign-in", &[("Origin", &origin)], &body);
    assert_eq!(entered.status, 303, "{}", entered.body);
    let set = entered.head.lines().find(|line| line.starts_with("set-cookie:")).unwrap();
    for part in ["httponly", "samesite=strict", "path=/"] {
        assert!(set.contains(part), "{set}");
    }
    let again = ask(&running, "POST", "/sign-in", &[("Origin", &origin)], &body);
    assert_eq!(again.status, 401, "a code was taken twice");
    // The owner's own terminal has another.
    let link = desk.done(&["console"]).stdout;
    assert!(link.starts_with(&format!("{origin}/sign-in/")), "{link}");
}

#[test]
fn a_form_counts_only_with_the_secret_of_its_session_and_from_its_own_page() {
    let (desk, running, _) = echoing();
    let cookie = cookie(&running);
    let page = ask(&running, "GET", "/tools/mcpkg%3Ademo.echo", &[("Cookie", &cookie)], "");
    assert_eq!(page.status, 200, "{}", page.body);
    let form = secret_of(&page.body);
    let origin = format!("http://{}", running.address());
    let post = |origin: &str, form: &str, cookie: &str| {
        let headers = [("Cookie", cookie), ("Origin", origin)];
        let body = format!("form={form}&what=disable");
        ask(&running, "POST", "/tools/mcpkg%3Ademo.echo/do", &headers, &body).status
    };
    assert_eq!(post(&origin, "", &cookie), 403, "without the secret of the session");
    assert_eq!(post(&origin, "wrong", &cookie), 403);
    assert_eq!(post("http://127.0.0.1:1", form, &cookie), 403, "from another page");
    assert_eq!(post(&origin, form, "haft_console=wrong"), 401, "without a session");
    assert_eq!(post(&origin, form, ""), 401);
    let listed = || desk.done(&["list", "--json"]).json()["packages"][0]["enabled"].clone();
    assert_eq!(listed(), true);
    assert_eq!(post(&origin, form, &cookie), 303);
    assert_eq!(listed(), false);
    // A get changes nothing.
    let got = ask(&running, "GET", "/tools/mcpkg%3Ademo.echo/do", &[("Cookie", &cookie)], "");
    assert_eq!(got.status, 405);
    // Whoever signs out is out.
    let headers = [("Cookie", cookie.as_str()), ("Origin", &origin)];
    assert_eq!(ask(&running, "POST", "/sign-out", &headers, &format!("form={form}")).status, 303);
    assert_eq!(ask(&running, "GET", "/", &[("Cookie", &cookie)], "").status, 401);
}

/// Every address that takes a form, as the console itself lists them.
fn places_of_forms() -> Vec<String> {
    let source = include_str!("../../../gateway/src/web/console/mod.rs");
    let routes = source.split(".route(\"").skip(1);
    let forms =
        routes.filter(|route| route.lines().next().is_some_and(|one| one.contains("post(")));
    let places = forms.map(|route| {
        let path = route.split('"').next().unwrap();
        path.replace("{id}", "mcpkg%3Ademo.echo").replace("{ticket}", "all")
    });
    places.filter(|path| path != "/sign-in").collect()
}

#[test]
fn no_address_takes_a_form_of_anybody_else() {
    let (desk, running, _) = echoing();
    let cookie = cookie(&running);
    let page = ask(&running, "GET", "/tools/mcpkg%3Ademo.echo", &[("Cookie", &cookie)], "");
    let form = secret_of(&page.body);
    let origin = format!("http://{}", running.address());
    let body = format!("form={form}&what=disable&answer=deny&sure=yes");
    let places = places_of_forms();
    assert!(places.len() >= 10, "{places:?}");
    for place in &places {
        let post = |headers: &[(&str, &str)], body: &str| {
            ask(&running, "POST", place, headers, body).status
        };
        let own = ("Origin", origin.as_str());
        assert_eq!(post(&[own], &body), 401, "{place}: without a session");
        for secret in ["", "form=", "form=wrong"] {
            let body = format!("{secret}&what=disable&answer=deny&sure=yes");
            assert_eq!(post(&[("Cookie", &cookie), own], &body), 403, "{place}: {secret}");
        }
        for stranger in ["http://evil.example", "null", "http://127.0.0.1:1"] {
            let headers = [("Cookie", cookie.as_str()), ("Origin", stranger)];
            assert_eq!(post(&headers, &body), 403, "{place}: {stranger}");
        }
        assert_eq!(post(&[("Cookie", &cookie)], &body), 403, "{place}: of no page");
    }
    assert_eq!(desk.done(&["list", "--json"]).json()["packages"][0]["enabled"], true);
}

#[test]
fn every_page_has_its_walls_and_other_names_see_nothing() {
    let desk = Desk::new();
    let running = Running::start(&desk);
    let cookie = cookie(&running);
    for page in ["/", "/nothing", "/policy"] {
        let answer = ask(&running, "GET", page, &[("Cookie", &cookie)], "");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "cache-control: no-store",
            "referrer-policy: same-origin",
        ] {
            assert!(answer.head.contains(header), "{page}: {header}: {}", answer.head);
        }
        for inline in ["<style", "style=", "onclick", "javascript:"] {
            assert!(!answer.body.contains(inline), "{page}: {inline}");
        }
        assert_eq!(answer.body.matches("<script").count(), 1, "{page}");
    }
    for host in ["evil.example", "127.0.0.1.nip.io"] {
        assert_eq!(
            ask(&running, "GET", "/", &[("Host", host), ("Cookie", &cookie)], "").status,
            403
        );
    }
}

#[test]
fn a_policy_that_wants_more_than_a_page_gets_more() {
    let desk = Desk::new();
    super::common::write_below(
        &desk.path("home"),
        "policy.toml",
        "[approval]\nowner_presence = \"terminal\"\n",
    );
    let running = Running::start(&desk);
    let cookie = cookie(&running);
    let page = ask(&running, "GET", "/secrets", &[("Cookie", &cookie)], "");
    assert!(page.body.contains("haft secret set PACKAGE NAME"), "{}", page.body);
    assert!(!page.body.contains("type=\"password\""));
    let form = secret_of(&page.body);
    let origin = format!("http://{}", running.address());
    let headers = [("Cookie", cookie.as_str()), ("Origin", &origin)];
    let body = format!("form={form}&package=mcpkg%3Aa.b&name=KEY&value=x&what=keep");
    assert_eq!(ask(&running, "POST", "/secrets", &headers, &body).status, 303);
    assert_eq!(desk.done(&["secret", "list", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn the_page_of_a_policy_that_cannot_be_read_names_every_line_that_is_wrong() {
    let desk = Desk::new();
    let running = Running::start(&desk);
    let cookie = cookie(&running);
    let write = |text: &str| super::common::write_below(&desk.path("home"), "policy.toml", text);
    let page = || ask(&running, "GET", "/policy", &[("Cookie", &cookie)], "").body;
    assert!(!page().contains("It cannot be read"));
    write("[approval]\nread = \"perhaps\"\n\n[trsut]\n");
    let shown = page();
    for expected in ["It cannot be read", "line 2, column 8", "line 4, column 2"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    write("[approval\n");
    let shown = page();
    assert!(shown.contains("It cannot be read") && shown.contains("line 1"), "{shown}");
    // Values that somebody else reads, too.
    write("[network]\ndeny = [\"a b\"]\n");
    let shown = page();
    assert!(shown.contains("It cannot be read") && shown.contains("is no policy"), "{shown}");
    std::fs::write(desk.path("home/policy.toml"), b"\xff").unwrap();
    let shown = page();
    assert!(shown.contains("is no policy") && !shown.contains("There is no <code>"), "{shown}");
}

#[test]
fn while_nothing_can_be_called_every_page_that_would_say_otherwise_says_so() {
    let desk = Desk::new();
    let running = Running::start(&desk);
    let cookie = cookie(&running);
    let page = |path: &str| ask(&running, "GET", path, &[("Cookie", &cookie)], "").body;
    let pages = [
        ("/", "No tool can be called</h1>", "Nothing needs you"),
        ("/machine", "cannot be relied on now, so nothing is called", "or better: that is so"),
        ("/approvals", "no new question comes here until", "come here as soon as"),
    ];
    for (path, closed, open) in pages {
        let shown = page(path);
        assert!(shown.contains(open) && !shown.contains(closed), "{path}: {shown}");
    }
    super::common::write_below(&desk.path("home"), "policy.toml", "[nonsense]\n");
    for (path, closed, open) in pages {
        let shown = page(path);
        assert!(shown.contains(closed) && !shown.contains(open), "{path}: {shown}");
    }
}

/// A home where an echo is installed and served, and what an agent shows there.
fn echoing() -> (Desk, Running, String) {
    let desk = Desk::new();
    let echo = repository().join("examples/mcpkg/echo");
    desk.done(&["install", echo.to_str().unwrap(), "--yes"]);
    let token = desk.done(&["token", "new", "agent"]).stdout;
    let running = Running::start(&desk);
    (desk, running, format!("Bearer {}", token.trim()))
}

#[test]
fn everything_that_waits_is_denied_at_once() {
    let (desk, running, token) = echoing();
    let waiting = || desk.done(&["approve", "list", "--json"]).json().as_array().unwrap().len();
    for (count, message) in ["a", "b"].into_iter().enumerate() {
        let body = serde_json::json!({ "message": message }).to_string();
        let path = "/v1/tools/demo_echo/call";
        ask(&running, "POST", path, &[("Authorization", &token)], &body);
        assert_eq!(waiting(), count + 1);
    }
    let cookie = cookie(&running);
    let page = ask(&running, "GET", "/approvals", &[("Cookie", &cookie)], "").body;
    assert!(page.contains("Deny all of them"), "{page}");
    let form = secret_of(&page);
    let origin = format!("http://{}", running.address());
    let headers = [("Cookie", cookie.as_str()), ("Origin", &origin)];
    let post = |answer: &str| {
        let body = format!("form={form}&answer={answer}");
        ask(&running, "POST", "/approvals/all", &headers, &body).status
    };
    // Nobody says yes to what they have not looked at.
    assert_eq!((post("once"), waiting()), (303, 2));
    assert_eq!((post("deny"), waiting()), (303, 0));
}

#[test]
fn a_yes_to_a_first_call_says_how_long_it_counts() {
    let (desk, running, token) = echoing();
    let call = |message: &str| {
        let body = serde_json::json!({ "message": message }).to_string();
        ask(&running, "POST", "/v1/tools/demo_echo/call", &[("Authorization", &token)], &body)
    };
    call("a");
    let waiting = desk.done(&["approve", "list", "--json"]).json();
    let ticket = waiting[0]["ticket"].as_str().unwrap();
    let surface = waiting[0]["surface"].as_str().unwrap();
    let cookie = cookie(&running);
    let page = || ask(&running, "GET", "/approvals", &[("Cookie", &cookie)], "").body;
    let shown = page();
    let form = secret_of(&shown);
    let origin = format!("http://{}", running.address());
    let headers = [("Cookie", cookie.as_str()), ("Origin", &origin)];
    let body = format!("form={form}&answer=once");
    assert_eq!(ask(&running, "POST", &format!("/approvals/{ticket}"), &headers, &body).status, 303);
    let told = page();
    let words = format!("may be called, and by {surface} from now on.");
    assert!(told.contains(&words) && !told.contains("this once."), "{told}");
    // And so it is.
    for message in ["a", "b"] {
        let made = call(message);
        assert_eq!(made.status, 200, "{}", made.body);
    }
}

#[test]
fn every_link_to_a_tool_leads_somewhere() {
    let desk = Desk::new();
    let example =
        |name: &str| repository().join("examples/mcpkg").join(name).to_str().unwrap().to_owned();
    // One is only tested, one is gone again, one is there.
    desk.done(&["test", &example("text-stats")]);
    for name in ["echo", "text-clean"] {
        desk.done(&["install", &example(name), "--yes"]);
    }
    desk.done(&["remove", "demo.text.clean"]);
    let running = Running::start(&desk);
    let cookie = cookie(&running);
    let page = |path: &str| ask(&running, "GET", path, &[("Cookie", &cookie)], "");
    let mut links = std::collections::BTreeSet::new();
    for path in ["/", "/calls", "/policy", "/tools"] {
        let answer = page(path);
        let parts = answer.body.split("href=\"").skip(1);
        let all = parts.filter_map(|rest| rest.split('"').next());
        links.extend(
            all.filter(|link| link.contains("demo.")).map(|link| link.replace("&#38;", "&")),
        );
    }
    for link in &links {
        assert_eq!(page(link).status, 200, "{link}");
    }
    for expected in ["/calls?package=mcpkg%3Ademo.text.stats", "/tools/mcpkg%3Ademo.echo"] {
        assert!(links.contains(expected), "{expected}: {links:?}");
    }
}

/// The cookie of somebody who is signed in.
fn cookie(running: &Running) -> String {
    let origin = format!("http://{}", running.address());
    let code = running.sign_in.rsplit('/').next().unwrap();
    let mut stream = TcpStream::connect(running.address()).unwrap();
    let body = format!("code={code}");
    let (host, length) = (running.address(), body.len());
    write!(
        stream,
        "POST /sign-in HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let cookie =
        answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    cookie.split(';').next().unwrap().to_owned()
}
