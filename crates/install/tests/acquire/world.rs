//! A small world with indexes and repositories, and a home in it.
#![expect(unreachable_pub, reason = "this is no library")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};

use egress::http::Url;
use install::acquire::{
    AcquireError, Acquired, Acquiring, Artefact, Index, Reach, Requirement, Sources, acquire,
};
use install::report::Silent;
use manifest::model::Acquire;
use sandbox::Launcher;

/// A server with packages and a repository, until this is dropped.
pub struct World {
    server: Child,
    pub port: u16,
    folder: tempfile::TempDir,
}

impl World {
    /// Serves by plain HTTP.
    pub fn new() -> Self {
        Self::serving(tempfile::tempdir().unwrap(), &[])
    }

    /// Serves by HTTPS, with a certificate of its own for `localhost`.
    pub fn secure() -> (Self, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = certificate(folder.path());
        (Self::serving(folder, &[&certificate, &key]), certificate)
    }

    fn serving(folder: tempfile::TempDir, more: &[&Path]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acquire/world.py");
        let mut server = Command::new("python3")
            .arg(script)
            .arg(folder.path())
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let port = said.trim().parse().expect("the world begins with its port");
        Self { server, port, folder }
    }

    pub fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://127.0.0.1:{}{path}", self.port)).unwrap()
    }

    /// Where packages are had in this world.
    pub fn sources(&self) -> Sources {
        Sources {
            pip: vec![Index::at(self.url("/simple/"))],
            npm: Some(Index::at(self.url("/npm/"))),
            git: vec![("https://code.test/".to_owned(), self.url("/git/").to_string())],
            search: std::env::var_os("PATH").unwrap(),
            ..Sources::default()
        }
    }

    pub fn ask(&self, path: &str) -> String {
        ask_at(self.port, path)
    }

    /// Lies about a file from now on, to those whose name holds a word.
    pub fn tamper(&self, path: &str, to: &str) {
        assert_eq!(self.ask(&format!("/tamper/{to}{path}")), "ok");
    }

    /// Whether code of a package has run.
    pub fn has_run(&self, package: &str) -> bool {
        self.seen().contains(&format!("/ran/{package}"))
    }

    /// All that was asked for.
    pub fn seen(&self) -> Vec<String> {
        serde_json::from_str(&self.ask("/seen")).unwrap()
    }

    /// The commits of the repository: the first, which is tagged, and that of the branch.
    pub fn commits(&self) -> [String; 2] {
        serde_json::from_str(&self.ask("/commits")).unwrap()
    }

    /// Makes another commit.
    pub fn commit(&self) {
        let folder = self.folder.path();
        let script = "cd work && echo third > README.md && \
            git -c user.name=a -c user.email=a@a.test commit --quiet -am third && \
            git push --quiet ../git/tools.git main";
        let made = Command::new("sh").args(["-c", script]).current_dir(folder).status().unwrap();
        assert!(made.success());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ended_already = self.server.kill();
        let _ended_already = self.server.wait();
    }
}

/// What is answered at a port of this machine.
pub fn ask_at(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// A certificate for `localhost` with its key, in a folder.
pub fn certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|one| folder.join(one));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-out")
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    (certificate, key)
}

/// A home: what is kept, and what is staged.
pub struct Home(tempfile::TempDir);

impl Home {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn staged(&self) -> PathBuf {
        self.path().join("staging")
    }

    /// Acquires into a folder that is empty before, and must be after a failure.
    pub async fn acquire(
        &self,
        what: &Acquire,
        packages: &[Requirement],
        sources: &Sources,
        locked: Option<&[Artefact]>,
    ) -> Result<(Acquired, PathBuf), AcquireError> {
        let into = self.staged();
        let _is_new = std::fs::remove_dir_all(&into);
        std::fs::create_dir(&into).unwrap();
        let acquired = acquire(Acquiring {
            what,
            packages: packages.to_vec(),
            into: &into,
            beside: None,
            cache: &self.path().join("cache"),
            sources,
            launcher: launcher(),
            reporter: Arc::new(Silent),
            locked,
        })
        .await;
        match acquired {
            Ok(acquired) => Ok((acquired, into)),
            Err(error) => {
                assert_eq!(names(&into), [""; 0], "a failure leaves nothing");
                Err(error)
            }
        }
    }

    /// The same, where it is moved to its place afterwards, as a package is.
    pub async fn install(&self, what: &Acquire, sources: &Sources) -> (Acquired, PathBuf) {
        let (acquired, staged) = self.acquire(what, &[], sources, None).await.unwrap();
        let place = self.path().join("moved elsewhere");
        let _was_there = std::fs::remove_dir_all(&place);
        std::fs::rename(staged, &place).unwrap();
        (acquired, place)
    }
}

/// Offline, else the same.
pub fn offline(sources: &Sources) -> Sources {
    Sources { reach: Reach::Offline, ..sources.clone() }
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// What a program says, with a variable.
pub fn said(program: &Path, variable: (&str, &Path)) -> String {
    let ran = Command::new(program).env(variable.0, variable.1).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

fn launcher() -> &'static Launcher {
    static LAUNCHER: OnceLock<Launcher> = OnceLock::new();
    LAUNCHER
        .get_or_init(|| Launcher::start(Path::new(env!("CARGO_BIN_EXE_install-launcher"))).unwrap())
}
