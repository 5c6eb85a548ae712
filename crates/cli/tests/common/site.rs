//! A site on this machine that answers as a test wants it to, and remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Reply {
    /// It is there.
    pub fn found(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: Vec::new(), body: body.into() }
    }

    /// It is elsewhere.
    pub fn elsewhere(url: &str) -> Self {
        Self { headers: vec![("location".into(), url.into())], ..Self::status(302) }
    }

    /// Nothing but a status.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its method.
    pub method: String,
    /// Its path, with parameters.
    pub path: String,
    /// Its headers, by their names in small letters.
    pub headers: BTreeMap<String, String>,
    /// How often this path was asked for before.
    pub before: usize,
}

/// A site that answers for as long as the test runs.
pub struct Site {
    /// Where it is, without a slash at the end.
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// One that answers so.
    pub fn new(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || serve(&stream, &seen, &*answer));
            }
        });
        Self { url, asked }
    }

    /// One with these files.
    pub fn with(files: &[(&str, &[u8])]) -> Self {
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|(path, body)| ((*path).to_owned(), body.to_vec())).collect();
        let plain = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
        Self::new(move |asked| match files.get(&plain(&asked.path)) {
            Some(body) => Reply::found(body.clone()),
            None => Reply::status(404),
        })
    }

    /// The paths that were asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, seen: &Mutex<Vec<String>>, answer: &dyn Fn(&Asked) -> Reply) {
    let mut lines = BufReader::new(stream);
    let mut first = String::new();
    if lines.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    let mut words = first.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    let _ = lines.read_exact(&mut body);
    let before = {
        let mut seen = seen.lock().unwrap();
        let before = seen.iter().filter(|known| **known == path).count();
        seen.push(path.clone());
        before
    };
    let reply = answer(&Asked { method, path, headers, before });
    let mut head = format!(
        "HTTP/1.1 {} x\r\nconnection: close\r\ncontent-length: {}\r\n",
        reply.status,
        reply.body.len()
    );
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut out = stream;
    let _ = out.write_all(head.as_bytes());
    let _ = out.write_all(b"\r\n");
    let _ = out.write_all(&reply.body);
    let _ = out.flush();
}

/// What a server of somebody else answers to the same question.
pub fn passed_on(to: &str, asked: &Asked) -> Reply {
    let mut command = std::process::Command::new("curl");
    command.args(["-s", "-i", "--raw", "--http1.0", "-X", &asked.method]);
    command.arg(format!("{to}{}", asked.path));
    let output = command.output().unwrap().stdout;
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    let aside = ["connection", "content-length", "transfer-encoding"];
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let headers = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .filter(|(name, _)| !aside.contains(&name.as_str()));
    Reply { status, headers: headers.collect(), body: output[end + 4..].to_vec() }
}

impl Reply {
    /// Its body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The same with another body.
    pub fn saying(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }
}
