use std::path::{Path, PathBuf};

use manifest::model::{Acquire, Entry as Started};
use serde_json::{Value, json};

use super::*;
use crate::config::read_json;

/// A machine with these files; those that end with a slash are folders.
pub(crate) struct Fake(pub(crate) &'static [&'static str]);

impl Machine for Fake {
    fn at(&self, path: &Path) -> Option<(Kind, PathBuf)> {
        let text = path.to_str()?.replace("/./", "/");
        let is_folder =
            self.0.iter().any(|one| one.starts_with(&format!("{}/", text.trim_end_matches('/'))));
        if is_folder {
            return Some((Kind::Folder, text.into()));
        }
        self.0.contains(&text.as_str()).then(|| (Kind::File, text.into()))
    }

    fn home(&self) -> Option<PathBuf> {
        Some("/home/ann".into())
    }
}

const FILES: Fake = Fake(&[
    "/home/ann/dev/weather/build/index.js",
    "/home/ann/dev/weather/package.json",
    "/home/ann/loose.py",
    "/home/ann/.ssh/id_rsa",
    "/home/ann/bin/tool",
    "/home/ann/Documents/",
    "/home/ann/p/.venv/bin/python",
    "/home/ann/p/.venv/pyvenv.cfg",
]);

/// What becomes of an entry.
fn made(entry: &Value) -> Result<Draft, String> {
    let text = json!({"mcpServers": {"it": entry}, "inputs": [{"id": "my-key", "password": true, "description": "Your key"}]});
    let config = read_json(text.to_string().as_bytes(), &["mcpServers".to_owned()]).unwrap();
    let around =
        Around { inputs: &config.inputs, folder: Some("/home/ann/dev/weather"), machine: &FILES };
    of_entry("it", config.entries[0].entry.as_ref().unwrap(), &around)
}

fn manifest(draft: &Draft) -> Value {
    serde_json::from_slice(&draft.files[0].1).unwrap()
}

fn acquired(command: &str, args: &[&str]) -> Result<(Acquire, Vec<String>), String> {
    let draft = made(&json!({"command": command, "args": args}))?;
    let Started::McpStdio { argv, .. } = &draft.package.implementations[0].entry else {
        return Err("no command".to_owned());
    };
    Ok((draft.package.acquire.clone(), argv.clone()))
}

#[test]
fn package_managers_and_engines_become_what_is_acquired() {
    let npm = |package: &str, version: Option<&str>| Acquire::Npm {
        package: package.to_owned(),
        version_spec: version.map(str::to_owned),
    };
    let pip = |package: &str, version: Option<&str>| Acquire::Pip {
        package: package.to_owned(),
        version_spec: version.map(str::to_owned),
    };
    let digest = format!("acme/b@sha256:{}", "ab".repeat(32));
    for (line, expected, argv) in [
        ("npx -y pkg@1.2.3 a", npm("pkg", Some("1.2.3")), "npx -y pkg@1.2.3 a"),
        ("npx pkg", npm("pkg", None), "npx -y pkg"),
        (
            "/usr/bin/npx -y @scope/server@latest",
            npm("@scope/server", None),
            "npx -y @scope/server",
        ),
        (
            "npx -y -p @s/p@2.0.0 run --x",
            npm("@s/p", Some("2.0.0")),
            "npx -y -p @s/p@2.0.0 run --x",
        ),
        ("cmd /c npx -y pkg@1.0.0", npm("pkg", Some("1.0.0")), "npx -y pkg@1.0.0"),
        (
            "uvx mcp-server-git==0.6.2 --repository .",
            pip("mcp-server-git", Some("==0.6.2")),
            "uvx mcp-server-git==0.6.2 --repository .",
        ),
        ("uvx tool@1.0", pip("tool", Some("==1.0")), "uvx tool==1.0"),
        ("uvx tool", pip("tool", None), "uvx tool"),
        (
            "uvx --from X[cli]==2.0 y -v",
            pip("X[cli]", Some("==2.0")),
            "uvx --from X[cli]==2.0 y -v",
        ),
        ("uv tool run tool", pip("tool", None), "uvx tool"),
        ("pipx run tool==1.0 a", pip("tool", Some("==1.0")), "uvx tool==1.0 a"),
        ("pipx run --spec X y", pip("X", None), "uvx --from X y"),
        (
            &*format!("docker run -i --rm --name n {digest} serve"),
            Acquire::Container { image: digest.clone() },
            &*format!("docker run -i --rm {digest} serve"),
        ),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let (acquire, started) =
            acquired(words[0], &words[1..]).unwrap_or_else(|why| panic!("{line}: {why}"));
        assert_eq!((acquire, started.join(" ")), (expected, argv.to_owned()), "{line}");
    }
}

#[test]
fn what_nobody_could_pin_or_carry_is_refused_with_the_reason() {
    for (line, why) in [
        ("docker run -i acme/b:latest", "without its digest"),
        ("docker run -i -v /a:/b x@sha256:00", "mounts folders"),
        ("npx -y https://a.example/x.tgz", "no plain name"),
        ("npx -y ./local", "no plain name"),
        ("npx -y --registry=x pkg", "`--registry=x`"),
        ("npx", "no package"),
        ("uvx --from git+https://a.example/x y", "no plain name"),
        ("uvx tool>=1", "no plain name"),
        ("uvx --with y tool", "`--with`"),
        ("./nowhere.sh", "there is no program"),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let refused = acquired(words[0], &words[1..]).unwrap_err();
        assert!(refused.contains(why), "{line}: {refused}");
    }
}

#[test]
fn a_version_that_is_not_named_is_told() {
    let draft = made(&json!({"command": "npx", "args": ["pkg"]})).unwrap();
    assert!(draft.warnings[0].contains("no version of `pkg`"), "{:?}", draft.warnings);
    assert!(draft.package.semver().starts_with("0.0.0+"));
    let pinned = made(&json!({"command": "npx", "args": ["pkg@1.2.3"]})).unwrap();
    assert!(pinned.package.semver().starts_with("1.2.3+") && pinned.warnings.is_empty());
}

#[test]
fn secrets_leave_the_manifest_and_other_values_are_defaults() {
    for command in
        [json!(["node", ["/home/ann/dev/weather/build/index.js"]]), json!(["npx", ["pkg@1.0.0"]])]
    {
        let draft = made(&json!({
            "command": command[0], "args": command[1],
            "env": {"API_KEY": "s3cret-value", "MODE": "fast", "URL": "https://x/${REGION:-eu}", "WHO": "${input:my-key}", "AUTH_TOKEN": "${MY_VALUE}"},
        }))
        .unwrap();
        let files: String = draft
            .files
            .iter()
            .map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned())
            .collect();
        assert!(!files.contains("s3cret-value"), "{files}");
        assert!(!format!("{draft:?}").contains("s3cret-value"));
        let kept: Vec<_> =
            draft.secrets.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(kept, [("API_KEY", "s3cret-value")]);
        let asked: Vec<_> = draft
            .package
            .inputs
            .iter()
            .map(|one| (one.name.as_str(), one.secret, one.required, one.default.as_deref()))
            .collect();
        assert_eq!(
            asked,
            [
                ("API_KEY", true, true, None),
                ("MODE", false, false, Some("fast")),
                ("REGION", false, false, Some("eu")),
                ("my_key", true, true, None),
                ("MY_VALUE", true, true, None),
            ]
        );
    }
}

#[test]
fn a_program_of_this_machine_stays_where_it_is() {
    let draft = made(
        &json!({"command": "node", "args": ["build/index.js", "--port", "80"], "env": {"A": "1"}}),
    )
    .unwrap();
    assert_eq!(draft.package.canonical_id(), "mcpb:it");
    let server = &manifest(&draft)["server"];
    assert_eq!(
        server["mcp_config"],
        json!({
            "command": "node", "args": ["/home/ann/dev/weather/build/index.js", "--port", "80"],
            "env": {"A": "${user_config.A}"},
        })
    );
    assert_eq!(server["type"], "node");
    assert_eq!(draft.reads, ["/home/ann/dev/weather"]);
    let companion: Value = serde_json::from_slice(&draft.files[2].1).unwrap();
    assert_eq!(companion["permissions"]["read"], json!(["/home/ann/dev/weather"]));
}

#[test]
fn only_the_file_is_read_where_its_folder_holds_everything() {
    let reads = |command: &str, args: &[&str]| {
        made(&json!({"command": command, "args": args})).unwrap().reads
    };
    assert_eq!(reads("python3", &["/home/ann/loose.py"]), ["/home/ann/loose.py"]);
    assert_eq!(reads("/home/ann/bin/tool", &[]), ["/home/ann/bin"]);
    assert_eq!(reads("/home/ann/p/.venv/bin/python", &["-m", "x"]), ["/home/ann/p/.venv"]);
    assert_eq!(reads("sh", &["/usr/bin/true"]), [""; 0]);
    assert_eq!(reads("python3", &["/home/ann/.ssh/id_rsa"]), [""; 0], "no script");
    assert_eq!(reads("python3", &["${userHome}/loose.py"]), ["/home/ann/loose.py"]);
    let told = made(&json!({"command": "fs", "args": ["/home/ann/Documents"]})).unwrap();
    assert!(told.reads.is_empty() && told.warnings[0].contains("/home/ann/Documents"));
}

#[test]
fn secrets_on_a_command_line_are_refused() {
    for args in [
        json!(["--api-key", "abcdef"]),
        json!(["--token=abcdef"]),
        json!(["postgres://ann:pw@db/x"]),
        json!(["${GITHUB_TOKEN}"]),
        json!(["--header", "Authorization: Bearer abc"]),
    ] {
        for command in ["node", "uvx"] {
            let mut args = args.as_array().unwrap().clone();
            if command == "uvx" {
                args.insert(0, json!("tool"));
            }
            let refused = made(&json!({"command": command, "args": args})).unwrap_err();
            assert!(refused.contains("secret"), "{args:?}: {refused}");
            assert!(!refused.contains("abcdef") && !refused.contains(":pw@"), "{refused}");
        }
    }
    // What is a secret elsewhere is one here, whatever it is called.
    let late = json!({"command": "node", "args": ["${X}"], "env": {"API_KEY": "${X}"}});
    assert!(made(&late).unwrap_err().contains("the secret `X`"));
    let both = json!({"command": "node", "args": ["${PORT}"], "env": {"PORT": "80"}});
    assert!(made(&both).unwrap_err().contains("`PORT` is set for it"));
    made(&json!({"command": "node", "args": ["--key-file", "/etc/key", "--token-limit", "100", "--max-tokens", "5"]})).unwrap();
}

#[test]
fn a_server_on_the_network_keeps_its_headers() {
    let draft = made(&json!({
        "url": "https://a.example/mcp?team=${TEAM:-x}",
        "headers": {"Authorization": "Bearer abc123", "X-Team": "blue", "X-Api-Key": "${MY_KEY}"},
    }))
    .unwrap();
    assert_eq!(draft.package.canonical_id(), "server-json:imported/it");
    let Started::McpHttp { url, headers } = &draft.package.implementations[0].entry else {
        panic!()
    };
    assert_eq!(url, "https://a.example/mcp?team={TEAM}");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        headers,
        &[
            pair("Authorization", "Bearer {AUTHORIZATION}"),
            pair("X-Team", "blue"),
            pair("X-Api-Key", "{MY_KEY}")
        ]
    );
    assert_eq!(draft.secrets[0].0, "AUTHORIZATION");
    assert_eq!(draft.secrets[0].1.expose(), "abc123");
    assert_eq!(draft.private_host, None);
    let passed_on = made(&json!({"command": "npx", "args": ["-y", "mcp-remote", "http://127.0.0.1:8123/sse", "--header", "X-Key:${K}"]})).unwrap();
    assert_eq!(passed_on.private_host.as_deref(), Some("127.0.0.1:8123"));
}

#[test]
fn addresses_that_tell_secrets_or_lead_anywhere_are_refused() {
    for (url, why) in [
        ("https://a.example/mcp?api_key=abc", "`api_key`"),
        ("https://ann:pw@a.example/", "password"),
        ("https://${HOST}/mcp", "host is a variable"),
        ("ftp://a.example", "`ftp:`"),
        ("https://a.example/${API_TOKEN}", "`API_TOKEN`"),
        ("nonsense", "none"),
    ] {
        let refused = made(&json!({"url": url})).unwrap_err();
        assert!(refused.contains(why), "{url}: {refused}");
    }
    let refused = made(&json!({"url": "https://a.example", "headers": {"Host": "b"}})).unwrap_err();
    assert!(refused.contains("`Host`"));
    let refused =
        made(&json!({"url": "https://a.example", "headers": {"X": "a\r\nY: b"}})).unwrap_err();
    assert!(refused.contains("line break"));
}

#[test]
fn the_same_settings_are_the_same_bytes_and_others_another_version() {
    let one = made(&json!({"command": "node", "args": ["x"], "env": {"API_KEY": "a"}})).unwrap();
    let same = made(&json!({"command": "node", "args": ["x"], "env": {"API_KEY": "b"}})).unwrap();
    let other = made(&json!({"command": "node", "args": ["y"], "env": {"API_KEY": "a"}})).unwrap();
    assert_eq!(one.files, same.files);
    assert_ne!(one.package.version, other.package.version);
}

#[test]
fn names_are_made_plain() {
    for (name, plain) in [
        ("weather", "weather"),
        ("My Server (dev)", "My-Server-dev"),
        ("../x", "x"),
        ("日本", "server"),
        ("a.b_c-d", "a.b_c-d"),
    ] {
        assert_eq!(plain_name(name), plain);
    }
}
