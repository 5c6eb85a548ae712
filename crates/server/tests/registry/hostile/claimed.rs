//! Headers that say what is believed of trusted proxies alone.

use super::{get, served, served_at};
use crate::suite::doors::{alone, installed, weather};
use serde_json::json;
use server::Settings;
use server::settings::{Limits, Reading};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_says_nothing_about_its_address_that_is_believed() {
    let served = served(|settings| {
        settings.rates = Limits { reads: 2, changes: 1, failures: 1 };
        settings.reading = Reading::Tokens;
    })
    .await;
    // It comes from this machine and no proxy is trusted, so it is not taken for anybody else.
    for _ in 0..5 {
        let fields = "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n";
        served.ask(get("/v1/tools", fields)).await.refuses(401);
    }
}

/// Whoever is on this machine is not counted, so nobody comes to be there by saying so.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_on_this_machine_because_a_header_says_so() {
    let served = served(|settings| {
        settings.rates = Limits { reads: 3, changes: 3, failures: 3 };
        settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    for claim in [
        "X-Forwarded-For: ::1",
        "X-Forwarded-For: ::ffff:127.0.0.1",
        "X-Forwarded-For: localhost",
        "Forwarded: for=127.0.0.1",
        "X-Forwarded-For: ",
        // The trusted proxy has written the last one, whatever stands before it.
        "X-Forwarded-For: 127.0.0.1, 192.0.2.50",
        "X-Forwarded-For: 192.0.2.60\r\nX-Forwarded-For: 127.0.0.1, 192.0.2.50",
    ] {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(served.ask(get("/v1/tools", &format!("{claim}\r\n"))).await.status);
        }
        assert_eq!(statuses.last(), Some(&429), "{claim}: {statuses:?}");
    }
    assert_eq!(served.ask(get("/v1/tools", "")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_on_this_machine_that_nobody_named_opens_no_door() {
    let served = served(|settings| {
        settings.rates = Limits { reads: 3, changes: 3, failures: 2 };
    })
    .await;
    for (number, name) in
        ["X-Forwarded-For: ", "Forwarded: for="].into_iter().cycle().take(3).enumerate()
    {
        let told = format!("{name}192.0.2.{number}\r\n");
        assert_eq!(served.ask(get("/v1/tools", &told)).await.status, 200);
    }
    served.ask(get("/v1/tools", "X-Forwarded-For: 192.0.2.9\r\n")).await.refuses(429);
    assert_eq!(served.ask(get("/v1/tools", "")).await.status, 200, "this machine is not counted");
}

/// A socket of IPv6 sees those of IPv4 by another spelling of their address.
#[tokio::test(flavor = "multi_thread")]
async fn this_machine_is_not_counted_however_its_address_is_written() {
    let settings = |settings: &mut Settings| {
        settings.rates = Limits { reads: 1, changes: 1, failures: 1 };
    };
    let served = served_at("[::]:0", settings).await;
    for _ in 0..3 {
        assert_eq!(served.ask(get("/v1/tools", "")).await.status, 200);
    }
}

/// Whether a registry is reached by TLS is in the addresses it hands out: nobody else decides what others are sent to.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_trusted_proxy_says_that_it_speaks_tls() {
    const PATHS: [&str; 3] =
        ["/.well-known/install-manifests.json", "/v0.1/servers", "/tools/com.example/weather"];
    let claims =
        ["X-Forwarded-Proto: https\r\n", "X-Forwarded-Proto: http\r\nX-Forwarded-Proto: https\r\n"];
    for (proxies, scheme) in [("10.0.0.0/8", "http://x/"), ("127.0.0.0/8", "https://x/")] {
        let served = served(|settings| settings.proxies = vec![proxies.parse().unwrap()]).await;
        let runtime = json!({"kind": "mcp-http", "install": {"method": "pip", "package": "unused"},
        "endpoint_url": "https://mail.example.com/mcp"});
        let mail = installed("acme-mail", "1.0.0", &runtime);
        for (name, document) in [("manifest.json", mail), ("server.json", weather("1.0.0"))] {
            let done = served.world.publish(alone(name, &document)).await;
            assert_eq!(done.status, 201, "{done:?}");
        }
        for claim in claims {
            for path in PATHS {
                let answer = served.ask(get(path, claim)).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                assert!(answer.body.contains(scheme), "{proxies} {path}: {}", answer.body);
            }
        }
        let plain = served.ask(get("/v0.1/servers", "")).await;
        assert!(
            plain.body.contains("http://x/") && !plain.body.contains("https://x/"),
            "{plain:?}"
        );
        // What a client wrote stands before what the proxy writes.
        let fields = "X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\n";
        let client = served.ask(get("/v0.1/servers", fields)).await;
        assert!(!client.body.contains("https://x/"), "{client:?}");
    }
}
