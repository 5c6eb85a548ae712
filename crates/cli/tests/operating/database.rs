//! The way to the database: TLS, and passwords that nobody sees.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::postgres::Postgres;

use super::process::{Served, demanded, done, get, haft, run};

/// The password that the test kit gives, as it stands in an address.
const SECRET: &str = "a%20secret%2Fword";

/// Makes a certificate for an address, and the one of whoever vouches for it.
fn certificates(folder: &Path, name: &str, address: &str) -> (PathBuf, PathBuf, PathBuf) {
    let path = |end: &str| folder.join(format!("{name}.{end}"));
    let openssl = |words: &[&str]| {
        let made = Command::new("openssl").args(words).current_dir(folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let file = |end: &str| format!("{name}.{end}");
    openssl(&[
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=Test CA",
        "-keyout",
        &file("ca.key"),
        "-out",
        &file("ca.pem"),
    ]);
    openssl(&[
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        "/CN=db",
        "-keyout",
        &file("key"),
        "-out",
        &file("csr"),
    ]);
    std::fs::write(path("ext"), format!("subjectAltName={address}\n")).unwrap();
    openssl(&[
        "x509",
        "-req",
        "-days",
        "2",
        "-in",
        &file("csr"),
        "-CA",
        &file("ca.pem"),
        "-CAkey",
        &file("ca.key"),
        "-CAcreateserial",
        "-extfile",
        &file("ext"),
        "-out",
        &file("pem"),
    ]);
    (path("pem"), path("key"), path("ca.pem"))
}

#[test]
fn the_database_is_reached_by_tls_and_its_password_is_shown_to_nobody() {
    let Some(mut postgres) = demanded("PostgreSQL", Postgres::start()) else { return };
    let home = tempfile::tempdir().unwrap();
    let (certificate, key, root) = certificates(home.path(), "good", "IP:127.0.0.1");
    let (_, _, stranger) = certificates(home.path(), "other", "IP:127.0.0.1");
    let port = testkit::ports::unused();
    postgres.start_with_tls(port, &certificate, &key);
    let (root, stranger) = (root.display(), stranger.display());
    let address =
        |host: &str, more: &str| format!("postgres://haft:{SECRET}@{host}:{port}/secure?{more}");
    let list = |address: &str| {
        let mut command = haft(home.path());
        command.args(["registry", "token", "list"]).env("HAFT_DATABASE_URL", address);
        let (code, stdout, stderr) = run(&mut command);
        for secret in [SECRET, "a secret", "secret%2Fword"] {
            assert!(!stdout.contains(secret) && !stderr.contains(secret), "{stdout}{stderr}");
        }
        (code, stderr)
    };
    let good = address("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={root}"));
    assert_eq!(list(&good).0, 0, "{}", list(&good).1);
    for (why, bad) in [
        ("no pg_hba.conf entry", address("127.0.0.1", "sslmode=disable")),
        (
            "no connection by TLS: invalid peer certificate",
            address("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={stranger}")),
        ),
        (
            "no connection by TLS: invalid peer certificate",
            address("localhost", &format!("sslmode=verify-full&sslrootcert={root}")),
        ),
        ("password authentication failed for user", good.replace("word", "wort")),
        ("database \"none\" does not exist", good.replace("/secure?", "/none?")),
        (
            "its address cannot be understood: unknown value",
            address("127.0.0.1", "sslmode=perhaps"),
        ),
        (
            "a file that its address names is not there",
            address("127.0.0.1", "sslmode=verify-full&sslrootcert=/nowhere.pem"),
        ),
        (
            "its address cannot be understood: invalid port",
            good.replace(&format!(":{port}/"), ":x/"),
        ),
    ] {
        let (code, stderr) = list(&bad);
        assert_eq!(code, 6, "{why}: {stderr}");
        assert!(stderr.contains(why) && !stderr.contains(" at line "), "{why}: {stderr}");
        assert_eq!(stderr.matches("caused by: ").count(), 1, "{stderr}");
        assert!(stderr.contains("hint: "), "{stderr}");
    }
    // Whoever lists processes sees all arguments, so a password among them is refused.
    let mut typed = haft(home.path());
    let (code, _, stderr) = run(typed.args(["registry", "token", "list", "--database", &good]));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("HAFT_DATABASE_URL") && !stderr.contains(SECRET), "{stderr}");
    // From a file, and from where PostgreSQL's own programs have it.
    let file = home.path().join("address");
    std::fs::write(&file, format!("{good}\n")).unwrap();
    let from_file = |words: &[&str]| {
        let mut command = haft(home.path());
        command.args(words).arg("--database-file").arg(&file);
        command
    };
    done(&mut from_file(&["registry", "token", "list"]));
    let plain = good.replace(&format!(":{SECRET}"), "");
    let mut command = haft(home.path());
    command.args(["registry", "token", "list", "--database", &plain]);
    done(command.env("PGPASSWORD", "a secret/word"));
    let served =
        Served::start(from_file(&["registry", "serve", "--listen", "127.0.0.1:0", "--json"]));
    assert_eq!(get(&served.address, "/readyz").unwrap().status, 200);
    let seen = std::fs::read(format!("/proc/{}/cmdline", served.process.id())).unwrap();
    assert!(!String::from_utf8_lossy(&seen).contains("secret"));
}

#[test]
fn a_database_that_is_not_there_is_told_with_the_cause() {
    let home = tempfile::tempdir().unwrap();
    let address = format!("postgres://haft@127.0.0.1:{}/registry", testkit::ports::unused());
    let mut command = haft(home.path());
    let (code, _, stderr) =
        run(command.args(["registry", "token", "list", "--database", &address]));
    assert_eq!(code, 6, "{stderr}");
    let (_, place) = address.split_once('@').unwrap();
    assert!(stderr.contains(&format!("failed to open `{place}`")), "{stderr}");
    assert!(stderr.contains("caused by: nobody listens there"), "{stderr}");
    let nowhere = "postgres://haft@nowhere.invalid/registry";
    let mut command = haft(home.path());
    let (code, _, stderr) = run(command.args(["registry", "token", "list", "--database", nowhere]));
    assert_eq!(code, 6, "{stderr}");
    assert!(stderr.contains("`nowhere.invalid:5432/registry`"), "{stderr}");
    assert!(stderr.contains("caused by: there is no host of that name"), "{stderr}");
}
