//! Connections on which nothing passes.

use std::time::{Duration, Instant};

use super::{Raw, get, read_all, served};
use crate::suite::packages::mcpkg;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_slow_or_silent_is_cut_off() {
    let served = served(|settings| settings.patience = Duration::from_millis(600)).await;
    let head = served.post("Content-Length: 1000\r\n", b"PK");
    let beginnings: [&[u8]; 6] = [
        b"",
        b"G",
        b"PRI * HTTP/2.0\r\n",
        b"GET /v1/tools HTTP/1.1\r\nHost: x\r\n",
        b"GET /v1/tools HTTP/1.1\r\nHost: x\r\n\r\n",
        &head,
    ];
    for beginning in beginnings {
        let start = Instant::now();
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(beginning).await.unwrap();
        let answer = read_all(&mut stream).await;
        let took = start.elapsed();
        let begins = String::from_utf8_lossy(beginning).into_owned();
        assert!(took < Duration::from_secs(3), "{begins:?} was kept for {took:?}");
        match beginning {
            text if text == head => Raw::read(&answer).refuses(408),
            text if text.ends_with(b"\r\n\r\n") => {
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            }
            _ => assert!(answer.is_empty() || answer.contains(" 408 "), "{begins:?}: {answer}"),
        }
    }
    // A head that comes byte by byte is cut off too.
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let start = Instant::now();
    let trickle = async {
        for byte in b"GET /v1/tools HTTP/1.1\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        {
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        read_all(&mut stream).await;
    };
    trickle.await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    served.still_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_slowly_keeps_nobody_from_publishing() {
    let served = served(|settings| {
        settings.uploads = 2;
        settings.patience = Duration::from_mins(1);
    })
    .await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(&served.post("Content-Length: 400000\r\n", b"PK")).await.unwrap();
        slow.push(stream);
    }
    let package = mcpkg("acme.pdf.read", "1.0.0", "");
    let start = Instant::now();
    let fields = format!("Content-Length: {}\r\n", package.len());
    let answer = served.ask(served.post(&fields, &package)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    // They are not cut off for it either.
    let mut first = slow.swap_remove(0);
    first.write_all(&vec![0; 400_000 - 2]).await.unwrap();
    Raw::read(&read_all(&mut first).await).refuses(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_nothing_of_an_answer_is_cut_off() {
    let served = served(|settings| settings.upload_bytes = 64 << 20).await;
    // It does not compress, so the answer is larger than what the system takes in by itself.
    let mut state = 1_u64;
    let noise: String = (0..24 << 20)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(b' ' + u8::try_from(state >> 58).unwrap())
        })
        .collect();
    let answer = served.world.publish(mcpkg("acme.pdf.read", "1.0.0", &noise)).await;
    assert_eq!(answer.status, 201);
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream
        .write_all(get("/v1/tools/acme.pdf.read/versions/1.0.0/package", "").as_bytes())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut taken = Vec::new();
    let _reset = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut taken))
        .await
        .expect("it is closed");
    assert!(taken.len() < 16 << 20, "all {} bytes were sent", taken.len());
    served.still_answers().await;
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// What a client of HTTP/2 begins with: how much of each answer it takes, and one request.
fn http2(window: u32, path: &str) -> Vec<u8> {
    let settings = [&[0, 4][..], &window.to_be_bytes()].concat();
    let length = u8::try_from(path.len()).unwrap();
    // GET, http, the path, the host.
    let head = [&[0x82, 0x86, 0x04, length], path.as_bytes(), &[0x01, 1, b'x']].concat();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    [preface, frame(4, 0, 0, &settings), frame(1, 0x5, 1, &head)].concat()
}

/// Answers pings, and nothing else, until it is cut off; what kinds of frames came on the first stream.
async fn stay(stream: &mut TcpStream) -> Vec<u8> {
    let mut kinds = Vec::new();
    let staying = async {
        let mut head = [0; 9];
        while stream.read_exact(&mut head).await.is_ok() {
            let length = usize::from(head[1]) << 8 | usize::from(head[2]);
            let mut payload = vec![0; length];
            if stream.read_exact(&mut payload).await.is_err() {
                return;
            }
            if (head[3], head[4]) == (6, 0)
                && stream.write_all(&frame(6, 1, 0, &payload)).await.is_err()
            {
                return;
            }
            if head[8] == 1 {
                kinds.push(head[3]);
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(8), staying).await.expect("it is cut off");
    kinds
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_nothing_over_http_2_or_asks_nothing_more_is_cut_off() {
    const HEADERS: u8 = 1;
    const DATA: u8 = 0;
    let served = served(|_| {}).await;
    for (window, expected) in [(0, &[HEADERS][..]), (65_535, &[HEADERS, DATA])] {
        let start = Instant::now();
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(&http2(window, "/v1/tools")).await.unwrap();
        let mut kinds = stay(&mut stream).await;
        kinds.dedup();
        assert_eq!(kinds, expected, "a window of {window}");
        let took = start.elapsed();
        assert!(took > Duration::from_millis(400), "{took:?} is too short for anybody");
    }
    served.still_answers().await;
}
