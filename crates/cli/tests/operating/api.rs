//! The API is asked everything it describes, by a program that knows nothing else of it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::process::{Served, ask, demanded, done, get, haft, package};

/// Where `./test` puts the program.
const PEERS: &str = "HAFT_API_PEERS";

/// What is asked as it should be and refused all the same: a search for nothing, the bundle of what Node does not
/// run, an identity that nobody has sworn, a cursor that was not given, a name that is short in letters and long in bytes.
/// And what the MCP world has for methods that change something where nothing can be changed: 501.
const EXPECTED: &str = r#"
[[operations]]
include-operation-id = "searchTools"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400]

[[operations]]
include-operation-id = "bundleVersion"
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 422]

[[operations]]
include-operation-id = "listServers"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 422]
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501]

[[operations]]
include-operation-id = "listServersOfOld"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 422]
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501]

[[operations]]
include-operation-id = "listServerVersions"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501]

[[operations]]
include-operation-id = "getServerVersion"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501]

[[operations]]
include-operation-id = "listServerVersionsOfOld"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501]

[[operations]]
include-operation-id = "getServerVersionOfOld"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501]

[[operations]]
include-operation-id = "exchangeIdentity"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401]

[[operations]]
include-operation-id = "listCapabilities"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400]

[[operations]]
include-operation-id = "listManifests"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400]
"#;

fn peers() -> Option<PathBuf> {
    let folder = std::env::var_os(PEERS).map(PathBuf::from);
    demanded("schemathesis", folder.filter(|folder| folder.join("schemathesis").is_dir()))
}

/// Gives names of what is there to whoever draws examples.
fn with_examples(mut document: Value) -> Value {
    for path in document["paths"].as_object_mut().unwrap().values_mut() {
        for operation in path.as_object_mut().unwrap().values_mut() {
            for parameter in operation["parameters"].as_array_mut().unwrap() {
                let example = match (parameter["name"].as_str(), parameter["in"].as_str()) {
                    (Some("id"), Some("path")) => "acme.mail",
                    (Some("version"), _) => "1.0.0",
                    (Some("q"), _) => "pdf",
                    _ => continue,
                };
                parameter["example"] = example.into();
            }
        }
    }
    document
}

#[test]
fn every_answer_is_as_the_api_describes_it() {
    let Some(peers) = peers() else { return };
    let home = tempfile::tempdir().unwrap();
    let made = done(haft(home.path()).args(["registry", "token", "new", "--namespace", "*"]));
    let token = made["token"].as_str().unwrap();
    let mut command = haft(home.path());
    command.args(["registry", "serve", "--listen", "127.0.0.1:0", "--json"]).stderr(Stdio::null());
    let served = Served::start(command);
    let mail = json!({
        "manifest": {
            "id": "tool:acme.mail", "name": "acme.mail", "version": "1.0.0", "summary": "Sends an email",
            "entry": {"runtime": "node", "main": "dist/index.js", "export": "tool"}
        },
        "files": [{"path": "dist/index.js", "content": "export const tool = {}"}]
    });
    let (pdf, _) = package("acme.pdf", "1.0.0", "");
    for bytes in [mail.to_string().into_bytes(), pdf] {
        let answer = ask(&served.address, "POST", "/v1/tools", token, &bytes).unwrap();
        assert_eq!(answer.status, 201, "{}", answer.json());
    }
    let document = with_examples(get(&served.address, "/v1/openapi.json").unwrap().json());
    let path = home.path().join("openapi.json");
    std::fs::write(&path, document.to_string()).unwrap();
    let config = home.path().join("schemathesis.toml");
    std::fs::write(&config, EXPECTED).unwrap();
    let all = |more: &[&str]| {
        let ran = Command::new("python3")
            .env("PYTHONPATH", &peers)
            .current_dir(home.path())
            .args([
                "-m",
                "schemathesis.cli",
                "--config-file",
                "schemathesis.toml",
                "run",
                "openapi.json",
            ])
            .args(["--url", &format!("http://{}", served.address), "--checks", "all", "--no-color"])
            .args(["--max-examples", "10", "--seed", "1"])
            .args(more)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
        assert!(said.contains(" generated, ") && !said.contains('❌'), "{said}");
    };
    all(&["--exclude-path-regex", "^/v0"]);
    // There 501 is said of every method that would change something.
    all(&["--include-path-regex", "^/v0", "--exclude-checks", "unsupported_method"]);
    // With a token what is drawn is nearly never a package, so it is refused as it should be.
    let shown = format!("Authorization: Bearer {token}");
    let writes =
        ["--include-method", "POST", "--include-method", "PUT", "--include-method", "DELETE"];
    let more = ["--exclude-checks", "positive_data_acceptance,ignored_auth", "--header", &shown];
    all(&[&writes[..], &more[..]].concat());
    // An administrator may ask everything.
    let made = done(haft(home.path()).args([
        "registry",
        "token",
        "new",
        "--namespace",
        "*",
        "--role",
        "admin",
    ]));
    let shown = format!("Authorization: Bearer {}", made["token"].as_str().unwrap());
    let more = ["--exclude-checks", "positive_data_acceptance,ignored_auth", "--header", &shown];
    all(&[
        &["--include-path-regex", "^/v1/(tokens|publishers|reviews|tools/.*/(owners|review))"][..],
        &more[..],
    ]
    .concat());
    assert_eq!(get(&served.address, "/v1/tools/acme.pdf").unwrap().status, 200);
}

#[test]
fn the_metrics_are_read_by_the_library_of_prometheus() {
    let Some(peers) = peers() else { return };
    let home = tempfile::tempdir().unwrap();
    let mut command = haft(home.path());
    command.args(["registry", "serve", "--listen", "127.0.0.1:0", "--json"]).stderr(Stdio::null());
    let served = Served::start(command);
    get(&served.address, "/v1/tools/search?q=x").unwrap();
    let text = home.path().join("metrics");
    std::fs::write(&text, get(&served.address, "/metrics").unwrap().body).unwrap();
    let program = "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as read\n\
         names = [family.name for family in read(open(sys.argv[1]).read())]\nprint(len(names), *names)";
    let ran = Command::new("python3")
        .env("PYTHONPATH", &peers)
        .args(["-c", program])
        .arg(&text)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    for name in ["haft_requests", "haft_request_duration_seconds", "haft_feed_lag_seconds"] {
        assert!(said.split_whitespace().any(|known| known == name), "{said}");
    }
}

#[test]
fn metrics_have_an_address_of_their_own() {
    let home = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = haft(home.path());
    command
        .args(["registry", "serve", "--listen", "127.0.0.1:0", "--private", "--json"])
        .args(["--metrics-listen", &free.to_string()])
        .stderr(Stdio::null());
    let served = Served::start(command);
    let watched = free.to_string();
    for (address, path, status) in [
        (&served.address, "/metrics", 401),
        (&served.address, "/healthz", 200),
        (&watched, "/metrics", 200),
        (&watched, "/readyz", 200),
        (&watched, "/v1/tools", 404),
    ] {
        assert_eq!(get(address, path).unwrap().status, status, "{address}{path}");
    }
    let metrics = get(&watched, "/metrics").unwrap().body;
    assert!(String::from_utf8_lossy(&metrics).contains("haft_catalog_tools 0"));
}
