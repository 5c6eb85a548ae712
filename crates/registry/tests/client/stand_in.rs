//! A registry that answers whatever a test wants, and remembers what it was asked.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use package::contents::Contents;
use package::digest::Digest;
use package::pack::{Packing, Secrets, pack};
use package::refusal::ReadError;
use registry::client::pace::Pace;
use registry::client::{Address, Cache, Fetcher, Limits, Reach, Remote, Settings, Token};
use serde_json::{Value, json};

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// After how many bytes of the body the connection ends.
    pub(crate) cut: Option<usize>,
    /// Whether nothing follows after that, and the connection stays.
    pub(crate) stalls: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let (headers, body) = (Vec::new(), body.into());
        Self { status, headers, body, cut: None, stalls: false }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::new(200, value.to_string()).with("content-type", "application/json")
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn cut(mut self, after: usize) -> Self {
        self.cut = Some(after);
        self
    }

    pub(crate) fn stalling(mut self, after: usize) -> Self {
        (self.cut, self.stalls) = (Some(after), true);
        self
    }
}

/// A registry that answers whatever a test wants.
pub(crate) struct StandIn {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl StandIn {
    pub(crate) fn new(answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (all, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let _whoever_left = serve(stream, &all, &*answer);
                });
            }
        });
        Self { url, asked }
    }

    /// What it was asked, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }
}

fn serve(
    stream: TcpStream,
    all: &Mutex<Vec<Asked>>,
    answer: &(dyn Fn(&Asked, usize) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let asked = Asked { method, path, headers, body };
    let number = {
        let mut all = all.lock().unwrap();
        all.push(asked.clone());
        all.len() - 1
    };
    let reply = answer(&asked, number);
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {} X\r\nconnection: close\r\n", reply.status)?;
    let has_length = reply.headers.iter().any(|(name, _)| name == "content-length");
    if !has_length && reply.status != 304 {
        write!(stream, "content-length: {}\r\n", reply.body.len())?;
    }
    for (name, value) in &reply.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "\r\n")?;
    let end = reply.cut.unwrap_or(reply.body.len()).min(reply.body.len());
    stream.write_all(&reply.body[..end])?;
    stream.flush()?;
    if reply.stalls {
        std::thread::sleep(Duration::from_secs(20));
    }
    Ok(())
}

/// A tool with one file, packed.
pub(crate) struct Packed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Digest,
    pub(crate) describe: Value,
}

struct One(Vec<(&'static str, Vec<u8>)>);

impl Contents for One {
    fn paths(&self) -> Vec<&str> {
        self.0.iter().map(|(path, _)| *path).collect()
    }

    fn size(&self, path: &str) -> Option<u64> {
        self.0.iter().find(|(known, _)| *known == path).map(|(_, content)| content.len() as u64)
    }

    fn is_executable(&self, _path: &str) -> bool {
        false
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let found = self.0.iter().find(|(known, _)| *known == path);
        Ok(found.map(|(_, content)| content.clone()).unwrap_or_default())
    }
}

impl Packed {
    /// The example `demo.echo`, with so many bytes beside its manifest.
    pub(crate) fn new(weight: usize) -> Self {
        let manifest = testkit::repo().join("examples/mcpkg/echo/manifest.json");
        let mut manifest: Value =
            serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
        for listed in ["tests", "examples"] {
            manifest.as_object_mut().unwrap().remove(listed);
        }
        // Bytes that do not get smaller when they are packed.
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u8::try_from(state >> 56).unwrap()
        };
        let weight: Vec<u8> = (0..weight).map(|_| next()).collect();
        let contents =
            One(vec![("data.bin", weight), ("manifest.json", manifest.to_string().into_bytes())]);
        let mut bytes = Vec::new();
        let packing = Packing { contents: &contents, secrets: Secrets::NotLookedFor };
        pack(&packing, &mut bytes).unwrap();
        let digest = Digest::of(&bytes);
        let describe = json!({
            "id": "tool:demo.echo", "name": "demo.echo", "version": "0.1.0",
            "summary": "Echoes its input", "entry": {"runtime": "process"},
            "sha256": digest.to_string(), "size": bytes.len(),
        });
        Self { bytes, digest, describe }
    }

    /// The tag that a registry gives it.
    pub(crate) fn tag(&self) -> String {
        format!("\"{}\"", self.digest)
    }

    /// What a sound registry answers for it, ranges and all.
    pub(crate) fn reply(&self, asked: &Asked) -> Reply {
        if !asked.path.ends_with("/package") {
            return Reply::json(&self.describe);
        }
        let range = asked.header("range").and_then(|text| text.strip_prefix("bytes="));
        let first =
            range.and_then(|text| text.strip_suffix('-')).and_then(|text| text.parse().ok());
        let tag = self.tag();
        match first {
            Some(first) if asked.header("if-range") == Some(tag.as_str()) => {
                let (last, total) = (self.bytes.len() - 1, self.bytes.len());
                let rest: &[u8] = &self.bytes[first..];
                Reply::new(206, rest)
                    .with("content-range", &format!("bytes {first}-{last}/{total}"))
                    .with("etag", &tag)
            }
            _ => Reply::new(200, self.bytes.clone()).with("etag", &tag),
        }
    }
}

/// A client with a cache of its own.
pub(crate) struct Desk {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) cache: Arc<Cache>,
    pub(crate) settings: Settings,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cache = Arc::new(Cache::new(folder.path().join("cache"), 1 << 30));
        let pace = Pace {
            tries: 4,
            first: Duration::from_millis(4),
            most: Duration::from_millis(20),
            asked: Duration::from_secs(2),
        };
        let limits = Limits {
            within: Duration::from_secs(3),
            transfer: Duration::from_secs(5),
            silence: Duration::from_millis(300),
            ..Limits::DEFAULT
        };
        Self { folder, cache, settings: Settings { limits, pace, ..Settings::default() } }
    }

    pub(crate) fn offline(mut self) -> Self {
        self.settings.reach = Reach::Offline;
        self
    }

    pub(crate) fn fetcher(&self, url: &str, token: Option<&str>) -> Fetcher {
        let token = token.map(|token| Token::parse(token).unwrap());
        let address = Address::parse(url).unwrap();
        Fetcher::new(&address, token.as_ref(), Arc::clone(&self.cache), self.settings).unwrap()
    }

    pub(crate) fn remote(&self, url: &str) -> Remote {
        Remote::new("stand-in", self.fetcher(url, None))
    }
}

/// Runs a test's asynchronous part.
pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}
