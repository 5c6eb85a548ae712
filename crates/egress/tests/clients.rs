//! Real clients go through the proxy with nothing but our variables.
//!
//! The site's name is known to the proxy's resolver only, so whoever arrives came through it.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod desk;
mod site;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use desk::Desk;
use egress::environment::proxy_variables;
use egress::{Outcome, Stage};
use site::{Open, python};
use tempfile::TempDir;

const HOST: &str = "index.ok.test";

/// A site with HTTP and HTTPS, and a proxy that leads there.
struct Site {
    folder: TempDir,
    server: Child,
    plain: String,
    secure: String,
    desk: Desk,
}

impl Site {
    fn open() -> Self {
        let Open { folder, server, plain, secure } = site::open(HOST);
        let (plain, secure) =
            (format!("http://{HOST}:{plain}"), format!("https://{HOST}:{secure}"));
        Self { folder, server, plain, secure, desk: Desk::open() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a program with our variables, the site's root, and little else.
    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let certificate = self.path("root.pem");
        let mut command = Command::new("timeout");
        command.arg("100").arg(program).args(arguments).current_dir(self.folder.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.folder.path());
        command.envs(proxy_variables(self.desk.proxy.address().port()));
        let trusting = [
            "SSL_CERT_FILE",
            "CURL_CA_BUNDLE",
            "REQUESTS_CA_BUNDLE",
            "PIP_CERT",
            "GIT_SSL_CAINFO",
            "NODE_EXTRA_CA_CERTS",
            "npm_config_cafile",
        ];
        command.envs(trusting.map(|name| (name, &certificate)));
        command
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .env("npm_config_update_notifier", "false");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a program that succeeds; what it prints.
    fn says(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        let (said, complaint) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{program} {arguments:?}: {said}{complaint}");
        said
    }

    /// How often each target was reached; every attempt went well.
    fn reached(self) -> usize {
        let attempts = self.finish();
        let mut reached = 0;
        for attempt in attempts {
            match attempt.stage {
                Stage::Opened(_) => reached += 1,
                Stage::Ended { outcome, .. } => {
                    assert!(
                        !matches!(outcome, Outcome::Malformed(_) | Outcome::Refused(_)),
                        "{outcome:?}"
                    );
                }
            }
        }
        reached
    }

    fn finish(mut self) -> Vec<egress::Attempt> {
        drop(self.server.stdin.take());
        self.server.wait().unwrap();
        self.desk.finish()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn curl_fetches_and_posts() {
    let site = Site::open();
    for origin in [&site.plain, &site.secure] {
        assert_eq!(site.says("curl", &["-sSf", &format!("{origin}/hello.txt")]), "hello\n");
        std::fs::write(site.path("body"), vec![b'x'; 3_000_000]).unwrap();
        let url = format!("{origin}/post");
        assert!(
            site.says("curl", &["-sSf", "--data-binary", "@body", &url]).starts_with("3000000 ")
        );
        let chunked = ["-sSf", "-H", "Transfer-Encoding: chunked", "--data-binary", "@body", &url];
        assert!(site.says("curl", &chunked).starts_with("3000000 "));
    }
    let headers = site.says("curl", &["-sSf", &format!("{}/headers", site.plain)]);
    assert!(!headers.to_lowercase().contains("proxy"), "{headers}");
    let url = format!("{}/hello.txt", site.plain);
    assert_eq!(site.says("curl", &["-sSf", &url, &url]), "hello\nhello\n");
    let by_socks = format!("socks5h://{}", site.desk.proxy.address());
    let url = format!("{}/hello.txt", site.secure);
    assert_eq!(site.says("curl", &["-sSf", "--proxy", &by_socks, &url]), "hello\n");
    assert_eq!(site.reached(), 10);
}

#[test]
fn curl_shows_that_it_was_refused() {
    let site = Site::open();
    let output = site.run("curl", &["-sS", "http://evil.test/"]);
    assert!(text(&output.stdout).contains("`evil.test:80` is refused"), "{output:?}");
    let output = site.run("curl", &["-sS", "https://evil.test/"]);
    assert!(!output.status.success() && text(&output.stderr).contains("403"), "{output:?}");
    let attempts = site.finish();
    assert_eq!(attempts.len(), 2);
    assert!(attempts.iter().all(|attempt| matches!(attempt.stage, Stage::Ended { .. })));
}

#[test]
fn python_fetches_by_urllib_and_requests() {
    let site = Site::open();
    let urllib = "import sys, urllib.request\n\
        for url in sys.argv[1:]: print(urllib.request.urlopen(url, timeout=20).read().decode(), end='')";
    let requests = "import sys\n\
        try: import requests\n\
        except ImportError: from pip._vendor import requests\n\
        for url in sys.argv[1:]: print(requests.get(url, timeout=20).text, end='')";
    let posting = "import sys\n\
        try: import requests\n\
        except ImportError: from pip._vendor import requests\n\
        parts = (b'x' * 1000 for _ in range(100))\n\
        print(requests.post(sys.argv[1], data=parts, timeout=20).text.split()[0])";
    let urls = [format!("{}/hello.txt", site.plain), format!("{}/hello.txt", site.secure)];
    for script in [urllib, requests] {
        assert_eq!(site.says(python(), &["-c", script, &urls[0], &urls[1]]), "hello\nhello\n");
    }
    assert_eq!(site.says(python(), &["-c", posting, &format!("{}/post", site.plain)]), "100000\n");
    let refused = site.run(python(), &["-c", urllib, "https://evil.test/"]);
    assert!(text(&refused.stderr).contains("403 Forbidden by Haft"), "{refused:?}");
}

/// Fetches by `fetch` where Node itself reads our variables, else as its clients do by hand.
const NODE: &str = r"
const http = require('http'), tls = require('tls');
const proxy = new URL(process.env.HTTP_PROXY);
const plain = (url) => new Promise((done, failed) => {
  const request = http.request({ host: proxy.hostname, port: proxy.port, path: url,
    headers: { host: new URL(url).host } }, (response) => {
      let text = ''; response.on('data', (part) => text += part).on('end', () => done(text)); });
  request.on('error', failed).end();
});
const secure = (url) => new Promise((done, failed) => {
  const target = new URL(url);
  http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: target.host })
    .on('connect', (_, socket) => {
      const inner = tls.connect({ socket, servername: target.hostname }, () => {
        inner.write(`GET ${target.pathname} HTTP/1.1\r\nHost: ${target.host}\r\nConnection: close\r\n\r\n`);
      });
      let text = '';
      inner.on('data', (part) => text += part).on('end', () => done(text.split('\r\n\r\n')[1]));
      inner.on('error', failed);
    }).on('error', failed).end();
});
const own = process.allowedNodeEnvironmentFlags.has('--use-env-proxy');
const get = own ? async (url) => (await fetch(url)).text()
  : (url) => url.startsWith('https:') ? secure(url) : plain(url);
(async () => { for (const url of process.argv.slice(1)) process.stdout.write(await get(url)); })();
";

#[test]
fn node_fetches() {
    let newer = std::env::var("HAFT_NODE22").ok();
    for node in ["node"].into_iter().chain(newer.as_deref()) {
        let site = Site::open();
        let urls = [format!("{}/hello.txt", site.plain), format!("{}/hello.txt", site.secure)];
        assert_eq!(site.says(node, &["-e", NODE, &urls[0], &urls[1]]), "hello\nhello\n");
        assert_eq!(site.reached(), 2);
    }
}

#[test]
fn git_clones() {
    let site = Site::open();
    for (number, origin) in [&site.plain, &site.secure].into_iter().enumerate() {
        for way in ["", "/smart"] {
            let folder = format!("clone{number}{}", way.replace('/', "-"));
            site.says("git", &["clone", "-q", &format!("{origin}{way}/repo.git"), &folder]);
            assert_eq!(
                std::fs::read_to_string(site.path(&folder).join("README")).unwrap(),
                "cloned\n"
            );
        }
    }
    assert!(site.reached() >= 4);
}

#[test]
fn pip_downloads() {
    let site = Site::open();
    let index = format!("{}/simple", site.secure);
    let arguments = [
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--no-cache-dir",
        "-d",
        "got",
        "-i",
        &index,
        "demo-tool",
    ];
    site.says(python(), &arguments);
    assert!(site.path("got/demo_tool-1.0-py3-none-any.whl").exists());
    assert!(site.reached() >= 1);
}

#[test]
fn npm_views_and_installs() {
    let site = Site::open();
    let registry = format!("--registry={}/npm/", site.secure);
    assert_eq!(site.says("npm", &["view", &registry, "demo-tool", "version"]).trim(), "1.0.0");
    std::fs::write(site.path("package.json"), "{}").unwrap();
    site.says("npm", &["install", &registry, "--no-audit", "--no-fund", "demo-tool"]);
    assert!(site.path("node_modules/demo-tool/index.js").exists());
    assert!(site.reached() >= 2);
}
