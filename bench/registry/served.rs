//! A registry, or nginx, as a process of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A registry that is served from a home.
pub(crate) struct Served {
    pub(crate) port: u16,
    process: Child,
}

impl Served {
    /// Starts it; in how many seconds it is ready.
    pub(crate) fn start(haft: &Path, home: &Path) -> (Self, f64) {
        let port = testkit::ports::unused();
        let mut command = Command::new(haft);
        command.arg("--home").arg(home).args(["--quiet", "registry", "serve", "--listen"]);
        command.arg(format!("127.0.0.1:{port}")).stdout(Stdio::null());
        let started = Instant::now();
        let process = command.spawn().unwrap();
        wait_for(port, "/readyz");
        let took = started.elapsed().as_secs_f64();
        (Self { port, process }, took)
    }

    /// A figure of the process, in MB.
    pub(crate) fn memory(&self, name: &str) -> f64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes * 1024.0 / 1e6
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// nginx with the files of a folder.
pub(crate) struct Nginx {
    pub(crate) port: u16,
    root: PathBuf,
    process: Child,
}

impl Nginx {
    /// Starts it as it is fastest for files: sent by the kernel, kept open, nothing written of it.
    pub(crate) fn start(folder: &Path) -> Self {
        let root = folder.join("nginx");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("index.html"), "ready").unwrap();
        let port = testkit::ports::unused();
        let shown = root.display();
        let settings = format!(
            "user root; worker_processes auto; daemon off; pid {shown}/pid; error_log stderr;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;\n\
             open_file_cache max=1000; open_file_cache_valid 60s; default_type application/json;\n\
             server {{ listen 127.0.0.1:{port}; root {shown}; }} }}\n"
        );
        let file = root.join("nginx.conf");
        std::fs::write(&file, settings).unwrap();
        let process = Command::new("nginx").arg("-c").arg(&file).spawn().unwrap();
        wait_for(port, "/index.html");
        Self { port, root, process }
    }

    /// The path of a file of so many bytes.
    pub(crate) fn file(&self, size: usize) -> String {
        let file = self.root.join(size.to_string());
        if !file.exists() {
            std::fs::write(file, vec![b'x'; size]).unwrap();
        }
        format!("/{size}")
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The workers end with their master when it is asked, not when it is killed.
        let asked = Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        assert!(asked.success());
        self.process.wait().unwrap();
    }
}

/// Asks until the answer is 200.
fn wait_for(port: u16, path: &str) {
    let started = Instant::now();
    loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            let mut connection = Connection(stream);
            if connection.send("GET", path, "", &[]).0 == 200 {
                return;
            }
        }
        assert!(started.elapsed() < Duration::from_mins(5), "nothing answers");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A connection on which one asks after the other.
pub(crate) struct Connection(pub(crate) TcpStream);

impl Connection {
    pub(crate) fn to(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Asks; the status and the body.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> (u16, Vec<u8>) {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: bench\r\n{headers}content-length: {length}\r\n\r\n"
        );
        self.0.write_all(head.as_bytes()).unwrap();
        self.0.write_all(body).unwrap();
        let (mut bytes, mut part) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            let end = bytes.windows(4).position(|some| some == b"\r\n\r\n");
            if let Some(end) = end {
                let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.unwrap_or("0").parse().unwrap();
                let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                while bytes.len() < end + 4 + length {
                    let read = self.0.read(&mut part).unwrap();
                    assert!(read > 0, "the connection was closed");
                    bytes.extend_from_slice(&part[..read]);
                }
                return (status, bytes.split_off(end + 4));
            }
            let read = self.0.read(&mut part).unwrap();
            assert!(read > 0, "the connection was closed");
            bytes.extend_from_slice(&part[..read]);
        }
    }
}
