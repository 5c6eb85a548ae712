//! Asking and guessing without end.

use super::{get, served};
use crate::suite::packages::bundle;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use server::settings::{Limits, Reading};

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_too_often_waits() {
    let served = served(|settings| {
        settings.rates = Limits { reads: 5, changes: 3, failures: 2 };
        settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let from = |address: &str| format!("X-Forwarded-For: 198.51.100.99, {address}\r\n");
    for _ in 0..5 {
        assert_eq!(served.ask(get("/v1/tools", &from("192.0.2.1"))).await.status, 200);
    }
    let refused = served.ask(get("/v1/tools", &from("192.0.2.1"))).await;
    refused.refuses(429);
    assert!(refused.head.to_lowercase().contains("retry-after: 1"), "{refused:?}");
    assert!(refused.body.contains("TOO_MANY_REQUESTS"));
    assert_eq!(served.ask(get("/v1/tools", &from("192.0.2.2"))).await.status, 200, "others go on");
    assert_eq!(served.ask(get("/healthz", &from("192.0.2.1"))).await.status, 200);
    for _ in 0..20 {
        assert_eq!(
            served.ask(get("/v1/tools", "")).await.status,
            200,
            "this machine is not counted"
        );
    }
    // A token is counted by itself, wherever it is shown.
    let token = format!("Authorization: Bearer {}\r\n", served.world.token);
    for number in 0..5 {
        let fields = token.clone() + &from(&format!("192.0.2.{number}"));
        assert_eq!(served.ask(get("/v1/tools", &fields)).await.status, 200);
    }
    served.ask(get("/v1/tools", &(token + &from("192.0.2.77")))).await.refuses(429);
    for number in 0..4 {
        let package = bundle("tool:a.b", "a.b", &format!("1.0.{number}")).to_string();
        let fields = format!("Content-Length: {}\r\n{}", package.len(), from("192.0.2.5"));
        let answer = served.ask(served.post(&fields, package.as_bytes())).await;
        assert_eq!(answer.status, if number < 3 { 201 } else { 429 }, "{answer:?}");
    }
    // Guessing is over soon; others at that address go on.
    let wrong = "Authorization: Bearer haft_guess\r\n".to_owned() + &from("192.0.2.9");
    for status in [401, 401, 429, 429] {
        served.ask(get("/v1/tools", &wrong)).await.refuses(status);
    }
    assert_eq!(served.ask(get("/v1/tools", &from("192.0.2.9"))).await.status, 200);
    let identity = r#"{"identity":"a.b.c"}"#;
    let exchange = |address: &str| {
        format!(
            "POST /v1/tokens/exchange HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n{}\r\n{identity}",
            identity.len(),
            from(address)
        )
    };
    for status in [401, 401, 429] {
        served.ask(exchange("192.0.2.10")).await.refuses(status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_guesses_the_password_of_a_browser_waits() {
    let served = served(|settings| {
        settings.rates = Limits { failures: 2, ..Limits::default() };
        settings.reading = Reading::Tokens;
        settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let shown = |password: &str| {
        let password = STANDARD.encode(format!("ann:{password}"));
        format!(
            "Accept: text/html\r\nX-Forwarded-For: 192.0.2.1\r\nAuthorization: Basic {password}\r\n"
        )
    };
    // Every browser comes without one first, which is no guess.
    for _ in 0..5 {
        let stranger = served.ask(get("/", "X-Forwarded-For: 192.0.2.1\r\n")).await;
        assert_eq!(stranger.status, 401);
    }
    for status in [401, 401, 429, 429] {
        assert_eq!(served.ask(get("/", &shown("haft_guess"))).await.status, status);
    }
    assert_eq!(served.ask(get("/", &shown(&served.world.token))).await.status, 200);
}

/// The tokens are away: whoever is not refused by then has asked the database.
#[tokio::test(flavor = "multi_thread")]
async fn guessing_costs_the_database_no_more_than_reading() {
    let served = served(|settings| {
        settings.rates = Limits { reads: 2, changes: 3, failures: 1 };
        settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let guess = |token: &str, from: &str| {
        format!("Authorization: Bearer {token}\r\nX-Forwarded-For: {from}\r\n")
    };
    let likely = format!("haft_{}", "0".repeat(64));
    for status in [401, 429, 429] {
        served.ask(get("/v1/tools", &guess(&likely, "192.0.2.1"))).await.refuses(status);
    }
    served.world.sql("ALTER TABLE tokens RENAME TO away").await;
    served.ask(get("/v1/tools", &guess(&likely, "192.0.2.1"))).await.refuses(429);
    served.ask(get("/v1/tools", &guess(&likely, "192.0.2.2"))).await.refuses(503);
    for unlikely in ["x", "haft_", &likely[1..], &format!("{likely}0"), &likely.to_uppercase()] {
        let fields = format!("Authorization: Bearer {unlikely}\r\n");
        served.ask(get("/v1/tools", &fields)).await.refuses(401);
    }
}
