//! The floor: the least that stands between HTTP and a server on standard input and output. It gives each message an id of its
//! own, passes it on, and passes the answer back. It checks nothing, knows nobody and remembers nothing.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A relay to one server.
struct Relay {
    to: Mutex<std::process::ChildStdin>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
}

/// Serves a program at a port that is free, and says which on standard output.
pub(crate) fn main(program: &str) {
    let spawned = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let child = Box::leak(Box::new(spawned.unwrap()));
    let from = BufReader::new(child.stdout.take().unwrap());
    let relay = Arc::new(Relay {
        to: Mutex::new(child.stdin.take().unwrap()),
        next: AtomicU64::new(0),
        waiting: Mutex::default(),
    });
    let answered = Arc::clone(&relay);
    std::thread::spawn(move || {
        for line in from.lines() {
            let Ok(line) = line else { return };
            let message: Value = serde_json::from_str(&line).unwrap();
            let Some(id) = message["id"].as_u64() else { continue };
            if let Some(waiting) = answered.waiting.lock().unwrap().remove(&id) {
                let _ = waiting.send(message);
            }
        }
    });
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let relay = Arc::clone(&relay);
            tokio::spawn(async move {
                let service = service_fn(move |request| answer(Arc::clone(&relay), request));
                let http = hyper::server::conn::http1::Builder::new();
                let _ = http.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
}

async fn answer(
    relay: Arc<Relay>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut message: Value = serde_json::from_slice(&body).unwrap();
    let Some(theirs) = message.get("id").cloned() else {
        return Ok(Response::builder().status(202).body(Full::default()).unwrap());
    };
    let id = relay.next.fetch_add(1, Ordering::Relaxed);
    message["id"] = id.into();
    let (sender, answer) = oneshot::channel();
    relay.waiting.lock().unwrap().insert(id, sender);
    let mut line = message.to_string();
    line.push('\n');
    relay.to.lock().unwrap().write_all(line.as_bytes()).unwrap();
    let mut answer = answer.await.unwrap();
    answer["id"] = theirs;
    let body = Full::from(answer.to_string());
    Ok(Response::builder().header("content-type", "application/json").body(body).unwrap())
}
