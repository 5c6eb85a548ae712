//! By a real podman, with storage of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use host::{Host, Kind, Records, Settings, Warmth};
use policy::Policy;
use serde_json::json;

use crate::images::{Image, run};
use crate::kit::{Folder, call, call_of, error, home, result};

/// A podman that has one image, in folders of its own.
struct Podman {
    folder: Folder,
}

impl Podman {
    fn with(image: &Image) -> Self {
        let folder = Folder::with(&[]);
        // The older runtime knows machines whose control groups are of both kinds.
        let settings = format!(
            "[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\ntmp_dir = \"{}\"\n",
            folder.path().join("tmp").display()
        );
        std::fs::write(folder.path().join("containers.conf"), settings).unwrap();
        let (graph, state) = (folder.path().join("graph"), folder.path().join("state"));
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
            graph.display(),
            state.display()
        );
        std::fs::write(folder.path().join("storage.conf"), storage).unwrap();
        let from = format!("oci:{}/layout:tool", image.folder.path().display());
        let to = format!(
            "containers-storage:[vfs@{}+{}]localhost/tool:1",
            graph.display(),
            state.display()
        );
        run(&["skopeo", "--insecure-policy", "copy", "-q", &from, &to]);
        Self { folder }
    }

    fn environment(&self) -> Vec<(String, String)> {
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        vec![
            ("CONTAINERS_CONF".into(), at("containers.conf")),
            ("CONTAINERS_STORAGE_CONF".into(), at("storage.conf")),
            ("HOME".into(), self.folder.path().display().to_string()),
        ]
    }

    /// A host that runs images by it alone.
    async fn host(&self, home: &Path, policy: &str) -> Host {
        let launcher = Path::new(env!("CARGO_BIN_EXE_host-launcher"));
        let order = "[containers]\norder = [\"engine\"]";
        let policy = if policy.contains("[containers]") {
            policy.replace("[containers]", order)
        } else {
            format!("{policy}\n{order}")
        };
        let settings = Settings {
            policy: Policy::parse(&policy).unwrap(),
            home: home.to_owned(),
            user_home: None,
            search_path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
            environment: self.environment(),
        };
        let vault = vault::FileVault::open(home.join("vault"), || None).unwrap();
        let records = Records::open(home).await.unwrap();
        let launcher = sandbox::Launcher::start(launcher).unwrap();
        Host::new(settings, launcher, Arc::new(vault), Arc::new(records))
    }

    /// The containers that are there.
    fn containers(&self) -> String {
        let mut command = std::process::Command::new("podman");
        let output = command.args(["ps", "--all", "--quiet"]).envs(self.environment()).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }
}

fn script(image: &Image, script: &str) -> host::Tool {
    let invocation = json!({"kind": "subcommand", "argv_template": ["--", "${input.text}"]});
    image.tool(Some(&["sh", "-c", script]), &invocation)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_runs_in_a_container_without_rights() {
    let image = Image::new(&["--config.env", "COLOUR=blue", "--config.workingdir", "/opt"]);
    let podman = Podman::with(&image);
    let home = home();
    let granted = Folder::with(&[("given", "given")]);
    let given = granted.path().display();
    let host = podman.host(home.path(), &format!("[folders]\nread = [\"{given}\"]")).await;
    let text = format!(
        "echo $1 $COLOUR $HOME; pwd; cat /opt/mark; echo; cat {given}/given; echo; \
         for one in /x /opt/x {given}/x /run/x; do (echo x > $one) 2>/dev/null && echo bad $one; done; \
         echo fine > /tmp/x; cat /tmp/x; \
         sed -n -e '/CapEff/p' -e '/CapBnd/p' -e '/NoNewPrivs/p' /proc/self/status; \
         sed -n '/:/s/:.*//p' /proc/net/dev"
    );
    let tool = script(&image, &text);
    let said = result(&host, &tool, json!({"text": "a b; $(c)"})).await;
    let expected = "a b; $(c) blue /tmp\n/opt\nthe image\ngiven\nfine\nCapEff:\t0000000000000000\n\
                    CapBnd:\t0000000000000000\nNoNewPrivs:\t1\n    lo\n";
    assert_eq!(said, json!(expected));
    assert_eq!(podman.containers(), "");
    let plan = host.plan(&tool, &call_of(&tool, &json!({"text": "secret-input"}))).await.unwrap();
    let plan = plan.to_value();
    assert_eq!(plan["argv"][0], "podman");
    assert!(!plan.to_string().contains("secret-input"), "{plan}");
    let options = plan["argv"].as_array().unwrap();
    for option in
        ["--network=none", "--cap-drop=all", "--pull=never", "--read-only", "--log-driver=none"]
    {
        assert!(options.contains(&json!(option)), "{plan}");
    }
    assert!(!plan["reasons"].to_string().contains("walls"), "these are not ours: {plan}");
    assert!(plan["runs"].as_str().unwrap().contains("L2"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_in_no_argument_and_reaches_the_tool() {
    let image = Image::new(&[]);
    let podman = Podman::with(&image);
    let home = home();
    let vault = vault::FileVault::open(home.path().join("vault"), || None).unwrap();
    let tool = script(&image, "echo -n $TOKEN | wc -c; cat /proc/self/cmdline | wc -c");
    let owner = vault::Owner::Package(tool.package.canonical_id());
    let place = vault::Place::new(owner, "TOKEN").unwrap();
    vault.set(&place, &vault::Secret::new("s3cr3t-value".into()).unwrap()).unwrap();
    // It would be in files of the engine, so the owner must say so.
    let refused = error(&podman.host(home.path(), "").await, &tool, json!({"text": "x"})).await;
    assert_eq!(refused.kind, Kind::Unavailable, "{refused}");
    assert!(refused.message.contains("engine_secrets"), "{refused}");
    let host = podman.host(home.path(), "[containers]\nengine_secrets = true").await;
    let said = result(&host, &tool, json!({"text": "x"})).await;
    assert!(said.as_str().unwrap().starts_with("12\n"), "{said}");
    let plan = host.plan(&tool, &call_of(&tool, &json!({"text": "x"}))).await.unwrap().to_value();
    assert!(plan["argv"].as_array().unwrap().contains(&json!("--env=TOKEN")), "{plan}");
    assert!(!plan.to_string().contains("s3cr3t"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn past_its_deadline_or_its_output_it_is_ended_and_gone() {
    let image = Image::new(&[]);
    let podman = Podman::with(&image);
    let home = home();
    let limits = "[sandbox]\ntimeout = \"4s\"\noutput = \"100K\"";
    let host = podman.host(home.path(), limits).await;
    let began = Instant::now();
    let refused = error(&host, &script(&image, "sleep 100"), json!({"text": "x"})).await;
    assert_eq!(refused.kind, Kind::TimedOut, "{refused}");
    assert!(began.elapsed().as_secs() < 30);
    let refused = error(&host, &script(&image, "yes"), json!({"text": "x"})).await;
    assert_eq!(refused.kind, Kind::TooMuchOutput, "{refused}");
    assert_eq!(podman.containers(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_engine_cannot_hold_is_refused() {
    let image = Image::new(&[]);
    let podman = Podman::with(&image);
    let tool = script(&image, "true");
    let refusal = async |policy: &str| {
        let home = home();
        let host = podman.host(home.path(), policy).await;
        let (reply, _) = call(&host, &tool, &json!({"text": "x"}), Warmth::Cold).await;
        let refused = reply.unwrap_err();
        assert_eq!(refused.kind, Kind::Unavailable, "{refused}");
        refused.message
    };
    assert!(refusal("[network]\nallow = [\"api.example.com\"]").await.contains("list of hosts"));
    let folder = Folder::with(&[("a/b", "")]);
    let path = folder.path().display();
    assert!(refusal(&format!("[folders]\nwrite = [\"{path}\"]")).await.contains("planting"));
    let hidden = format!("[folders]\nread = [\"{path}\"]\ndeny = [\"{path}/a\"]");
    assert!(refusal(&hidden).await.contains("hide"));
    let read = format!("[folders]\nread = [\"{path}\"]");
    let socket = std::os::unix::net::UnixListener::bind(folder.path().join("a/socket")).unwrap();
    assert!(refusal(&read).await.contains("no plain file"));
    drop(socket);
    // Something is always mounted below this one.
    assert!(refusal("[folders]\nread = [\"/sys\"]").await.contains("mounted"));
    assert!(refusal("[sandbox]\nlevel = \"L3\"").await.contains("L3 is required"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_action_adds_is_never_the_program() {
    let added = json!({"kind": "subcommand", "argv_template": ["${input.text}"]});
    let entry = Image::new(&["--config.entrypoint", "echo"]);
    let podman = Podman::with(&entry);
    let home = home();
    let host = podman.host(home.path(), "").await;
    let said = result(&host, &entry.tool(None, &added), json!({"text": "pwd"})).await;
    assert_eq!(said, json!("pwd\n"));
    let command = Image::new(&["--config.cmd", "echo", "--config.cmd", "hello"]);
    let podman = Podman::with(&command);
    let host = podman.host(home.path(), "").await;
    let refused = error(&host, &command.tool(None, &added), json!({"text": "pwd"})).await;
    assert_eq!(refused.kind, Kind::Unavailable, "{refused}");
    assert!(refused.message.contains("no entrypoint"), "{refused}");
    // Where nothing is added, its own command is what it says.
    let alone = command.tool(None, &json!({"kind": "stdin-json"}));
    assert_eq!(result(&host, &alone, json!({})).await, json!("hello\n"));
    // A folder from the image's own is one that only the image knows.
    let mut from_there = script(&command, "pwd");
    let manifest::model::Entry::Argv { cwd, .. } = &mut from_there.package.implementations[0].entry
    else {
        panic!("a command");
    };
    *cwd = Some("opt".to_owned());
    let refused = error(&host, &from_there, json!({"text": "x"})).await;
    assert!(refused.message.contains("entrypoint.cwd"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_of_an_image_are_no_folders_of_the_disk() {
    let image = Image::new(&["--config.volume", "/opt", "--config.volume", "/data"]);
    let podman = Podman::with(&image);
    let home = home();
    let tool = script(&image, "(echo x > /opt/x) 2>/dev/null || echo refused");
    let said = result(&podman.host(home.path(), "").await, &tool, json!({"text": "x"})).await;
    assert_eq!(said, json!("refused\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_of_a_tool_are_its_own_and_those_of_the_engine_are_told() {
    let image = Image::new(&[]);
    let podman = Podman::with(&image);
    let home = home();
    let host = podman.host(home.path(), "").await;
    for code in [125, 126, 127] {
        let tool = script(&image, &format!("echo broken >&2; exit {code}"));
        let failed = error(&host, &tool, json!({"text": "x"})).await;
        assert_eq!((failed.kind, &failed.details["exit"]), (Kind::Failed, &json!(code)));
    }
    for program in ["/opt/mark", "nowhere"] {
        let tool = image.tool(Some(&[program]), &json!({"kind": "stdin-json"}));
        let failed = error(&host, &tool, json!({})).await;
        assert_eq!(failed.kind, Kind::Unavailable, "{failed}");
        assert!(failed.message.contains("did not start the program"), "{failed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_the_engine_does_not_have_is_not_fetched() {
    let image = Image::new(&[]);
    let podman = Podman::with(&image);
    let name = format!("localhost/tool@sha256:{}", "0".repeat(64));
    let invocation = json!({"kind": "stdin-json"});
    let tool = image.tool_of("container", &name, Some(&["true"]), &invocation);
    let home = home();
    let host = podman.host(home.path(), "").await;
    let refused = error(&host, &tool, json!({})).await;
    assert_eq!(refused.kind, Kind::Unavailable, "{refused}");
    assert!(refused.message.contains("podman does not have it: "), "{refused}");
    assert_eq!(
        (&refused.details["image"], &refused.details["engine"]),
        (&json!(name), &json!("podman"))
    );
    // Nothing was tried: it would have had nothing to run.
    let made = host.call(&tool, &call_of(&tool, &json!({})), Warmth::Warm).await;
    assert_eq!((made.reply.unwrap_err().kind, made.attempts), (Kind::Unavailable, 0));
    // A plan says so before.
    let plan = host.plan(&tool, &call_of(&tool, &json!({}))).await.unwrap().to_value();
    assert_eq!(plan["image"], json!({"reference": name, "from": "the images of podman"}));
    assert!(plan["image_missing"].as_str().unwrap().contains("does not have it"), "{plan}");
}

/// docker needs a service, which cannot run here; a stand-in says how it was called.
#[tokio::test(flavor = "multi_thread")]
async fn docker_is_told_the_same_and_is_ended_by_name() {
    let image = Image::new(&[]);
    let stand_in = Folder::with(&[(
        "tools/bin/docker",
        "#!/bin/sh\n\
         here=${0%/*}\n\
         case $1 in\n\
           image) echo '{\"Volumes\":null}' ;;\n\
           run) printf '%s\\n' \"$@\"; /usr/bin/env | /usr/bin/sed 's/=.*//'; read -r line\n\
                case \"$*\" in *forever*) exec /bin/sleep 60 ;; esac ;;\n\
           *) printf '%s\\n' \"$*\" >> \"$here/ended\" ;;\n\
         esac\n",
    )]);
    let bin = stand_in.path().join("tools/bin");
    let home = home();
    let settings = Settings {
        policy: Policy::parse("[sandbox]\ntimeout = \"1s\"\n[containers]\norder = [\"engine\"]")
            .unwrap(),
        home: home.path().to_owned(),
        user_home: None,
        search_path: bin.clone().into_os_string(),
        environment: vec![("DOCKER_HOST".into(), "unix:///x".into()), ("OTHER".into(), "x".into())],
    };
    let vault = vault::FileVault::open(home.path().join("vault"), || None).unwrap();
    let records = Records::open(home.path()).await.unwrap();
    let launcher = Path::new(env!("CARGO_BIN_EXE_host-launcher"));
    let launcher = sandbox::Launcher::start(launcher).unwrap();
    let host = Host::new(settings, launcher, Arc::new(vault), Arc::new(records));
    let said = result(&host, &script(&image, "true"), json!({"text": "a b"})).await;
    let said = said.as_str().unwrap().to_owned();
    let lines: Vec<_> = said.lines().collect();
    for line in ["--pull=never", "--network=none", "--read-only", "--env=HOME=/tmp", "a b"] {
        assert!(lines.contains(&line), "{said}");
    }
    assert!(lines.contains(&&*image.name()) && lines.contains(&"--entrypoint=sh"), "{said}");
    assert!(lines.contains(&"DOCKER_HOST") && !lines.contains(&"OTHER"), "{said}");
    assert!(!said.contains("--read-only-tmpfs") && !said.contains("--timeout"), "{said}");
    let refused = error(&host, &script(&image, "forever"), json!({"text": "x"})).await;
    assert_eq!(refused.kind, Kind::TimedOut, "{refused}");
    let ended = std::fs::read_to_string(bin.join("ended")).unwrap();
    let ended: Vec<_> = ended.lines().collect();
    assert!(ended[0].starts_with("kill haft-"), "{ended:?}");
    assert!(ended[1].starts_with("rm --force haft-"), "{ended:?}");
}
