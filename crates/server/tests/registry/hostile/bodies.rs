//! Bodies that are no package.

use std::time::{Duration, Instant};

use super::served;

#[tokio::test(flavor = "multi_thread")]
async fn broken_bodies_are_refused() {
    let served = served(|settings| settings.patience = Duration::from_secs(1)).await;
    for chunks in
        ["zz\r\nabc\r\n", "5\r\nab\r\n0\r\n\r\n", "-1\r\n", "fffffffffffffffff\r\n", "5;\x01\0\r\n"]
    {
        let answer =
            served.ask(served.post("Transfer-Encoding: chunked\r\n", chunks.as_bytes())).await;
        assert!([400, 408].contains(&answer.status), "{chunks:?}: {answer:?}");
        answer.refuses(answer.status);
    }
    let large = served.post("Content-Length: 99999999999\r\n", b"");
    served.ask(large).await.refuses(413);
    let endless = "10000\r\n".to_owned() + &"a".repeat(0x10000) + "\r\n";
    let request = served.post("Transfer-Encoding: chunked\r\n", endless.repeat(40).as_bytes());
    let answer = served.ask(request).await;
    assert!([0, 413].contains(&answer.status), "{answer:?}");
    let form = "Content-Type: multipart/form-data; boundary=x\r\n";
    let many = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n".repeat(10_000);
    let headers = format!("--x\r\n{}\r\n\r\nb\r\n--x--\r\n", "A: b\r\n".repeat(10_000));
    for body in [
        "--x",
        "--x\r\n",
        "--y\r\n\r\nabc\r\n--y--\r\n",
        "--x\r\nContent-Disposition: form-data; name=\"package\"\r\n\r\nPK",
        "--x\r\nContent-Disposition: \0\r\n\r\nb\r\n--x--\r\n",
        "--x\r\nContent-Disposition: form-data; name=\"package\"; filename=\"../../etc/passwd\"\r\n\r\nb\r\n--x--\r\n",
        &many,
        &headers,
    ] {
        let fields = format!("{form}Content-Length: {}\r\n", body.len());
        served.ask(served.post(&fields, body.as_bytes())).await.refuses(400);
    }
    for kind in
        ["multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=x"]
    {
        let fields = format!("Content-Type: {kind}\r\nContent-Length: 5\r\n");
        served.ask(served.post(&fields, b"--x--")).await.refuses(400);
    }
    served.still_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_and_traversals_in_packages_cost_little() {
    let served = served(|_| {}).await;
    for hostile in testkit::archives::hostile::hostile() {
        let start = Instant::now();
        let fields = format!("Content-Length: {}\r\n", hostile.bytes.len());
        let answer = served.ask(served.post(&fields, &hostile.bytes)).await;
        // Whoever sends on after the answer may not get to read it.
        let is_large = hostile.bytes.len() > 1 << 20;
        if !(is_large && answer.status == 0) {
            answer.refuses(if is_large { 413 } else { 400 });
        }
        let took = start.elapsed();
        assert!(took < Duration::from_secs(10), "{} took {took:?}", hostile.name);
    }
    served.still_answers().await;
    assert_eq!(served.world.get("/v1/tools").await.json()["total"], 0);
}
