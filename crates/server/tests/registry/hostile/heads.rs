//! Heads of requests that cannot be read, or lead elsewhere.

use super::{Raw, get, served};

#[tokio::test(flavor = "multi_thread")]
async fn broken_heads_are_refused_in_the_error_model() {
    let served = served(|_| {}).await;
    let long = "a".repeat(100_000);
    for (request, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET\r\n\r\n".to_owned(), 400),
        ("GET /v1/tools HTTP/9.9\r\n\r\n".to_owned(), 400),
        ("GET /v1/tools HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n".to_owned(), 400),
        ("GET /v1/tools HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n".to_owned(), 400),
        ("GET /v1/to\0ols HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        (
            "GET /v1/tools HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"
                .to_owned(),
            400,
        ),
        ("GET /v1/tools HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".to_owned(), 400),
        ("POST /v1/tools HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(), 400),
        ("POST /v1/tools HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), 400),
        (get("/v1/tools", &format!("X: {long}\r\n")), 431),
        (get(&format!("/{long}"), ""), 414),
        (get("/v1/tools", &"X: y\r\n".repeat(2_000)), 431),
        ("GET /v1/tools HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(), 400),
        (
            "GET /v1/tools HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n".to_owned(),
            400,
        ),
    ] {
        let answer = served.ask(&request).await;
        // A head that is too long may be told as either.
        let status = if answer.status == 431 && status == 414 { 431 } else { status };
        answer.refuses(status);
        assert_eq!(answer.head.matches("HTTP/1.").count(), 1, "{answer:?}");
    }
    served.still_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_and_absolute_forms_are_answered() {
    let served = served(|_| {}).await;
    for request in [
        "GET /v1/tools HTTP/1.0\r\n\r\n",
        "GET http://registry.example/v1/tools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /v1/tools HTTP/1.1\r\nhost:x\r\nconnection:close\r\n\r\n",
        "HEAD /v1/tools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ] {
        assert_eq!(served.ask(request).await.status, 200, "{request}");
    }
    for (request, status) in [
        ("OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
        ("CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405),
        ("BREW /v1/tools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405),
    ] {
        let answer = served.ask(request).await;
        answer.refuses(status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_smuggled_behind_a_body() {
    let served = served(|_| {}).await;
    let hidden = "GET /v1/tags HTTP/1.1\r\nHost: x\r\n\r\n";
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 100\r\n",
        "Transfer-Encoding: chunked\r\n",
    ] {
        let request =
            format!("POST /v1/tools HTTP/1.1\r\nHost: x\r\n{fields}\r\n0\r\n\r\n{hidden}");
        let answer = served.send(request.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "one answer and no second: {answer}");
        assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    }
    for fields in [
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: identity\r\n",
    ] {
        let request =
            format!("POST /v1/tools HTTP/1.1\r\nHost: x\r\n{fields}\r\n0\r\n\r\n{hidden}");
        let answer = served.send(request.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{fields}: {answer}");
        Raw::read(&answer).refuses(400);
    }
    served.still_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_lead_nowhere_else() {
    let served = served(|_| {}).await;
    for (path, status) in [
        ("/v1/tools/../../etc/passwd", 404),
        ("/v1/tools/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        ("/v1/tools/a/versions/..%2f..%2fx/package", 404),
        ("/v1/tools/a%00b", 400),
        ("/v1/tools/%ff", 400),
        ("/v1/tools/%zz", 400),
        ("/v1/tools/%", 400),
        ("/v1/tools/search?q=%00", 400),
        ("/v1/tools/search?q=%ff", 400),
        ("/v1/tools/search?q=a&channel=%ff", 400),
        ("//v1/tools", 404),
        ("/v1//tools", 404),
        ("/v1/tools/a//b", 404),
        ("/.well-known/../v1/nothing", 404),
    ] {
        served.ask(get(path, "")).await.refuses(status);
    }
}
