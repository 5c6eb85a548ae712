//! From files on disk, inside our own walls.

use host::{CallError, CancellationToken, Host, Killed, Kind, Tool};
use manifest::model::Json;
use serde_json::{Value, json};

use crate::images::{self, Image, run};
use crate::kit::{call_of, error, home, host, host_in, host_with, result};

/// The shell of the image with a script, to which the action adds the text.
fn script(image: &Image, script: &str) -> Tool {
    let invocation = json!({"kind": "subcommand", "argv_template": ["--", "${input.text}"]});
    image.tool(Some(&["sh", "-c", script]), &invocation)
}

async fn said(host: &Host, tool: &Tool, text: &str) -> String {
    result(host, tool, json!({ "text": text })).await.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_an_image_runs_in_its_files_and_nothing_else() {
    let image = Image::new(&["--config.user", "7:7"]);
    let home = home();
    let host = host_in(home.path(), "").await;
    let tool = script(
        &image,
        "echo $1; cat /opt/mark; echo; id -u; ls -A /; ls -A /tmp; (echo x > /opt/x) 2>/dev/null || echo refused",
    );
    let expected = "a b; $(c)\nthe image\n1000\nbin\ndev\netc\nopt\nproc\ntmp\nrefused\n";
    assert_eq!(said(&host, &tool, "a b; $(c)").await, expected);
    let kept = home.path().join(format!("images/{}/root/opt/mark", image.digest.replace(':', "-")));
    assert!(kept.is_file());
    // From now on the image is known without the package's files.
    std::fs::remove_dir_all(image.folder.path().join("layout")).unwrap();
    assert_eq!(said(&host, &tool, "again").await.lines().next(), Some("again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_smoke_test_and_a_kill_switch_run_in_the_image_too() {
    let image = Image::new(&[]);
    let written = |value: Value| {
        let text = value.to_string();
        Json::of(&manifest::json::parse(&text).root.unwrap(), &text)
    };
    let mut tool = image.tool(None, &json!({"kind": "subcommand", "argv_template": ["x"]}));
    let command = json!(["sh", "-c", "cat /opt/mark; echo \" in $SPACE\""]);
    let success = json!({"stdout_regex": "^the image in main\\n$"});
    tool.package.smoke =
        Some(written(json!({"kind": "shell", "command": command, "success": success})));
    let switch = json!({"kind": "shell", "command": ["sh", "-c", "test -f /opt/mark"]});
    tool.package.kill_switch = Some(written(switch));
    let (host, off) = (host().await, CancellationToken::new());
    let smoked = host.smoke(&tool, &off).await.unwrap();
    assert!(smoked.passed, "{smoked:?}");
    assert_eq!(host.kill(&tool, None, &off).await, Ok(Killed::Confirmed));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_input_can_be_on_standard_input() {
    let image = Image::new(&[]);
    let tool = image.tool(Some(&["/bin/cat"]), &json!({"kind": "stdin-json"}));
    assert_eq!(said(&host().await, &tool, "hi").await, r#"{"text":"hi"}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_the_image_lie_below_ours() {
    let settings = [
        "--config.env",
        "COLOUR=blue",
        "--config.env",
        "PATH=/opt:/bin",
        "--config.env",
        "HOME=/root",
        "--config.env",
        "HTTPS_PROXY=http://evil.example:1",
        "--config.workingdir",
        "/srv/made",
    ];
    let image = Image::new(&settings);
    let tool = script(&image, "echo $COLOUR $PATH $HOME $HTTPS_PROXY; pwd");
    let granted = "[network]\nallow = [\"api.example.com\"]";
    let text = said(&host_with(granted).await, &tool, "").await;
    assert_eq!(text, "blue /opt:/bin /tmp http://127.0.0.1:3128\n/srv/made\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_image_starts_counts_where_the_manifest_says_nothing() {
    let settings =
        ["--config.entrypoint", "echo", "--config.entrypoint", "entry", "--config.cmd", "command"];
    let image = Image::new(&settings);
    let host = host().await;
    let tool = image.tool(None, &json!({"kind": "subcommand", "argv_template": ["${input.text}"]}));
    assert_eq!(said(&host, &tool, "added").await, "entry added\n");
    let tool = image.tool(None, &json!({"kind": "stdin-json"}));
    assert_eq!(said(&host, &tool, "x").await, "entry command\n");
    let upwards = Image::new(&["--config.entrypoint", "/opt/../bin/echo"]);
    let tool = upwards.tool(None, &json!({"kind": "subcommand", "argv_template": ["up"]}));
    assert_eq!(said(&host, &tool, "x").await, "up\n");
    let nothing = Image::new(&[]);
    let tool = nothing.tool(None, &json!({"kind": "stdin-json"}));
    let refused = error(&host, &tool, json!({})).await;
    assert_eq!(refused.kind, Kind::Unavailable);
    assert!(refused.message.contains("what is started"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_manifest_starts_is_filled_in_and_what_the_image_starts_is_not() {
    let image = Image::new(&["--config.entrypoint", "echo", "--config.cmd", "${env.SPACE}"]);
    let host = host().await;
    let tool = image.tool(Some(&["echo", "${env.SPACE}"]), &json!({"kind": "stdin-json"}));
    assert_eq!(said(&host, &tool, "x").await, "main\n");
    let tool = image.tool(None, &json!({"kind": "stdin-json"}));
    assert_eq!(said(&host, &tool, "x").await, "${env.SPACE}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_from_an_image_is_called() {
    let image = Image::new(&[]);
    let invocation = json!({"kind": "mcp-tool", "tool_name": "hello"});
    let tool = image.tool_of("mcp-stdio", &image.name(), Some(&["/opt/server"]), &invocation);
    let answer = result(&host().await, &tool, json!({})).await;
    assert!(answer.to_string().contains("hello from the image"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_in_the_home_are_found_too() {
    let image = Image::new(&[]);
    let home = home();
    let images = home.path().join("images");
    std::fs::create_dir(&images).unwrap();
    let layout = image.folder.path().join("layout");
    let from = format!("oci:{}:tool", layout.display());
    let to = format!("docker-archive:{}/saved.tar:tool:1", images.display());
    run(&["skopeo", "--insecure-policy", "copy", "-q", &from, &to]);
    let manifest = layout.join("blobs").join(image.digest.replace(':', "/"));
    let manifest: Value = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
    let id = manifest["config"]["digest"].as_str().unwrap();
    std::fs::remove_dir_all(layout).unwrap();
    let invocation = json!({"kind": "stdin-json"});
    let name = format!("localhost/tool@{id}");
    let tool = image.tool_of("container", &name, Some(&["cat", "/opt/mark"]), &invocation);
    let host = host_in(home.path(), "").await;
    assert_eq!(said(&host, &tool, "").await, "the image");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_shows_the_image_and_unpacks_nothing() {
    let image = Image::new(&["--config.user", "app"]);
    let home = home();
    // The owner's policy may lower the walls of others, never those of an image.
    let host = host_in(home.path(), "[sandbox]\nlevel = \"L0\"").await;
    let tool = script(&image, "true");
    let plan = host.plan(&tool, &call_of(&tool, &json!({"text": "x"}))).await.unwrap().to_value();
    assert_eq!(plan["image"]["reference"], image.name());
    assert_eq!(plan["image"]["user_not_kept"], "app");
    assert!(plan["image"]["from"].as_str().unwrap().ends_with("/layout"), "{plan}");
    assert_eq!(plan["argv"], json!(["sh", "-c", "true", "--", "${input.text}"]));
    assert_eq!(plan["walls"]["level"]["required"], "L2");
    assert_eq!(plan["walls"]["read"], json!([]), "the package's folder is not granted");
    assert!(!home.path().join("images").exists());
}

async fn refused(image: &str, policy: &str) -> CallError {
    let made = Image::new(&[]);
    let image = image.replace("DIGEST", &made.digest);
    let tool = made.tool_of("container", &image, Some(&["true"]), &json!({"kind": "stdin-json"}));
    error(&host_with(policy).await, &tool, json!({})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_pinned_or_not_there_is_refused() {
    let tag = refused("localhost/tool:1", "").await;
    assert_eq!((tag.kind, &tag.details["refusal"]), (Kind::Denied, &json!("not-pinned")));
    assert!(tag.message.contains("@sha256:"), "{}", tag.message);
    let other = format!("localhost/tool@sha256:{}", "0".repeat(64));
    let missing = refused(&other, "[containers]\norder = [\"image\"]").await;
    assert_eq!(missing.kind, Kind::Unavailable);
    assert!(missing.message.contains("docker save"), "{}", missing.message);
    let none = refused("localhost/tool@DIGEST", "[containers]\norder = []").await;
    assert!(none.message.contains("containers.order"), "{}", none.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_image_is_refused_and_leaves_nothing() {
    let image = Image::new(&[]);
    let blobs = image.folder.path().join("layout/blobs/sha256");
    let largest = std::fs::read_dir(blobs).unwrap().map(|one| one.unwrap().path());
    let largest = largest.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&largest).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(largest, bytes).unwrap();
    let home = home();
    let refused = error(&host_in(home.path(), "").await, &script(&image, "true"), json!({})).await;
    assert_eq!(refused.kind, Kind::Denied, "{refused}");
    let left: Vec<_> = std::fs::read_dir(home.path().join("images")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_in_the_image_is_told() {
    let image = Image::new(&[]);
    let tool = image.tool(Some(&["python3"]), &json!({"kind": "stdin-json"}));
    let refused = error(&host().await, &tool, json!({})).await;
    assert_eq!(refused.kind, Kind::Unavailable);
    assert!(refused.message.contains("`python3` in the image"), "{refused}");
}

#[test]
fn a_manifest_is_told_what_a_call_would_refuse() {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let mut names: Vec<String> = [
        "echo",
        "echo:1",
        "example.com/echo",
        "example.com:5000/tools/echo:1.2",
        "registry:5000/echo",
        "",
        "/etc",
        "--privileged",
        "a b",
        "a//b",
        "a/../b",
        "a/",
        "a:b/c:d",
        "a/b:c/d",
        "a:b:c",
        ":5000/x",
        "a_b/c.d-e",
    ]
    .map(str::to_owned)
    .to_vec();
    for source in ["dir", "oci", "oci-archive", "docker-archive", "containers-storage"] {
        for rest in [":/x", ":/x/y", "://x", "://x/y/z", ":x/y", ":5000/x", ":x", ""] {
            names.push(format!("{source}{rest}"));
        }
    }
    for name in names {
        let name = format!("{name}@{digest}");
        let read = image::Reference::parse(&name);
        let manifest = images::manifest("container", &name, &json!({"kind": "stdin-json"}));
        let options = manifest::document::Options::default();
        let report = manifest::document::check(manifest.to_string().as_bytes(), &options);
        let is_told = report
            .findings
            .iter()
            .any(|finding| finding.code == manifest::finding::Code::BadSource);
        assert_eq!(is_told, read.is_err(), "{name}: {read:?}");
    }
}
