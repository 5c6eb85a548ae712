//! A `PostgreSQL` server of its own for a test: in a temporary folder, on a unix socket, ended with the test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Where distributions keep the programs, the newest first.
const FOLDERS: [&str; 6] = [
    "/usr/lib/postgresql/18/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/14/bin",
    "/usr/local/bin",
];
/// The user without rights: the server refuses to run as root.
const NOBODY: u32 = 65534;

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    server: Child,
    databases: AtomicU32,
}

impl Postgres {
    /// Starts a server; none where it is not installed.
    pub fn start() -> Option<Self> {
        let mut folders = FOLDERS.iter().map(Path::new);
        let programs = folders.find(|folder| folder.join("initdb").is_file())?.to_owned();
        let folder = tempfile::tempdir().expect("a folder can be made");
        give_away(folder.path());
        let data = folder.path().join("data");
        let made = as_nobody(&programs.join("initdb"), folder.path())
            .args(["--auth=trust", "--username=haft", "--no-sync", "--encoding=UTF8"])
            // As most are set up: in an order in which letters of either case are side by side.
            .args(["--locale-provider=icu", "--icu-locale=en", "--pgdata"])
            .arg(&data)
            .output()
            .expect("initdb can be started");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let server = serve(&programs, folder.path(), &[]);
        let postgres = Self { folder, programs, server, databases: AtomicU32::new(0) };
        postgres.wait();
        Some(postgres)
    }

    /// Ends the server in the middle of everything; what was committed is there when it starts again.
    pub fn stop(&mut self) {
        let done = as_nobody(&self.programs.join("pg_ctl"), self.folder.path())
            .args(["-m", "immediate", "-w", "stop", "-D"])
            .arg(self.folder.path().join("data"))
            .output();
        assert!(done.is_ok_and(|done| done.status.success()), "postgres cannot be stopped");
        let _ended_already = self.server.wait();
    }

    /// Starts the server again, with what it held.
    pub fn start_again(&mut self) {
        self.server = serve(&self.programs, self.folder.path(), &[]);
        self.wait();
    }

    /// Starts the server again, on a port too, with TLS by this certificate and key, and passwords for everybody.
    pub fn start_with_tls(&mut self, port: u16, certificate: &Path, key: &Path) {
        self.stop();
        let data = self.folder.path().join("data");
        for (from, to) in [(certificate, "server.crt"), (key, "server.key")] {
            let to = data.join(to);
            std::fs::copy(from, &to).expect("a file can be copied");
            give_away(&to);
            let only_ours = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&to, only_ours).expect("rights can be set");
        }
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(data.join("pg_hba.conf"), rules).expect("a file can be written");
        let port = port.to_string();
        let more = ["-h", "127.0.0.1", "-p", &port, "-c", "ssl=on"];
        self.server = serve(&self.programs, self.folder.path(), &more);
        let deadline = Instant::now() + Duration::from_secs(30);
        let told = || {
            self.program("psql")
                .args(["-p", &port, "-d", "postgres", "-c"])
                .arg("SELECT 1")
                .output()
        };
        while !told().is_ok_and(|told| told.status.success()) {
            assert!(Instant::now() < deadline, "postgres does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        for words in ["ALTER USER haft PASSWORD 'a secret/word'", "CREATE DATABASE secure"] {
            let done =
                self.program("psql").args(["-p", &port, "-d", "postgres", "-c", words]).output();
            assert!(done.is_ok_and(|done| done.status.success()), "{words}");
        }
    }

    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.is_ready() {
            assert!(Instant::now() < deadline, "postgres does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The address of a database that nobody else has.
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let made = self.program("createdb").arg(&name).output().expect("createdb can be started");
        assert!(made.status.success(), "createdb: {}", String::from_utf8_lossy(&made.stderr));
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://haft@{socket}/{name}")
    }

    /// Has something done in a database, by its address.
    pub fn tell(&self, address: &str, words: &str) -> String {
        let name = address.rsplit('/').next().unwrap_or_default();
        let mut telling = self.program("psql");
        telling.args(["-v", "ON_ERROR_STOP=1", "-d", name, "-c", words]);
        let done = telling.output().expect("psql can be started");
        assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn is_ready(&self) -> bool {
        let asked = self.program("pg_isready").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    }

    fn program(&self, name: &str) -> Command {
        let mut command = as_nobody(&self.programs.join(name), self.folder.path());
        command.arg("-h").arg(self.folder.path()).args(["-U", "haft"]);
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ended_already = self.server.kill();
        let _ended_already = self.server.wait();
    }
}

fn serve(programs: &Path, folder: &Path, more: &[&str]) -> Child {
    as_nobody(&programs.join("postgres"), folder)
        .args(["-h", "", "-F", "-k"])
        .arg(folder)
        .arg("-D")
        .arg(folder.join("data"))
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("postgres can be started")
}

fn is_root() -> bool {
    let owner =
        std::fs::metadata("/proc/self").map(|found| std::os::unix::fs::MetadataExt::uid(&found));
    owner.is_ok_and(|uid| uid == 0)
}

fn give_away(folder: &Path) {
    if is_root() {
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY))
            .expect("root may give it away");
    }
}

fn as_nobody(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env_clear().env("LC_ALL", "C").stdin(Stdio::null());
    if is_root() {
        std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
        std::os::unix::process::CommandExt::gid(&mut command, NOBODY);
    }
    command
}
