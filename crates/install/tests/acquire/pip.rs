//! Python packages.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use install::acquire::{AcquireError, Index, Kind, Manager, Reach, Requirement, Sources, commands};
use manifest::model::Acquire;

use crate::world::{Home, World, names, offline, said};

fn pip(package: &str, versions: &str) -> Acquire {
    Acquire::Pip { package: package.to_owned(), version_spec: Some(versions.to_owned()) }
}

#[tokio::test]
async fn packages_are_installed_and_work_wherever_they_are_moved() {
    let (world, home) = (World::new(), Home::new());
    let (acquired, place) = home.install(&pip("hello-tool", "==1.0"), &world.sources()).await;
    let names: Vec<_> =
        acquired.artefacts.iter().map(|one| format!("{} {}", one.name, one.version)).collect();
    assert_eq!(names, ["hello-dep 2.0", "hello-tool 1.0"]);
    assert_eq!(acquired.path, [Path::new("python/bin")]);
    let library = place.join(acquired.python.unwrap());
    let command = place.join(&acquired.path[0]).join("hello-tool");
    assert_eq!(said(&command, ("PYTHONPATH", &library)), "hello world\n");
    assert!(!place.join("work").exists());
}

#[tokio::test]
async fn what_is_run_is_what_was_said_before() {
    let (world, home) = (World::new(), Home::new());
    let (what, sources) = (pip("hello-tool", ">=1,<2"), world.sources());
    let said = commands(&what, &[], &sources).unwrap();
    let (acquired, _) = home.acquire(&what, &[], &sources, None).await.unwrap();
    assert_eq!(acquired.commands, said);
    assert!(said[1].ends_with("--only-binary=:all: -- 'hello-tool>=1,<2'"), "{}", said[1]);
}

#[tokio::test]
async fn a_second_time_needs_no_network() {
    let (world, home) = (World::new(), Home::new());
    let (what, sources) = (pip("hello-tool", "==1.0"), world.sources());
    let (first, _) = home.acquire(&what, &[], &sources, None).await.unwrap();
    drop(world);
    for reach in [Reach::Kept, Reach::Offline] {
        let sources = Sources { reach, ..sources.clone() };
        let (again, place) = home.acquire(&what, &[], &sources, None).await.unwrap();
        assert_eq!(again.artefacts, first.artefacts);
        assert!(place.join("python/hello_tool.py").is_file());
    }
    let (locked, _) = home.acquire(&what, &[], &sources, Some(&first.artefacts)).await.unwrap();
    assert_eq!(locked.artefacts, first.artefacts);
    // Whoever asks for newer ones asks somebody.
    let fresh = Sources { reach: Reach::Fresh, ..sources };
    assert!(home.acquire(&what, &[], &fresh, None).await.is_err());
}

#[tokio::test]
async fn offline_it_is_told_what_is_missing() {
    let (world, home) = (World::new(), Home::new());
    let (what, sources) = (pip("hello-tool", "==1.0"), world.sources());
    let refused = home.acquire(&what, &[], &offline(&sources), None).await.unwrap_err();
    assert!(refused.to_string().contains("`hello-tool==1.0`"), "{refused}");
    let (first, _) = home.acquire(&what, &[], &sources, None).await.unwrap();
    // On another machine there is the lock and nothing else.
    let elsewhere = Home::new();
    let locked = Some(&*first.artefacts);
    let refused = elsewhere.acquire(&what, &[], &offline(&sources), locked).await.unwrap_err();
    let told = refused.to_string();
    assert!(told.contains("`hello-dep` 2.0") && told.contains("`hello-tool` 1.0"), "{told}");
    elsewhere.acquire(&what, &[], &sources, locked).await.unwrap();
}

#[tokio::test]
async fn other_bytes_than_those_of_the_index_are_refused() {
    // To pip, while it resolves; and to us, afterwards.
    for (to, is_ours) in [("pip", false), ("haft", true)] {
        let (world, home) = (World::new(), Home::new());
        world.tamper("/files/hello_dep-2.0-py3-none-any.whl", to);
        let refused = home
            .acquire(&pip("hello-tool", "==1.0"), &[], &world.sources(), None)
            .await
            .unwrap_err();
        assert_eq!(matches!(refused, AcquireError::Digest { .. }), is_ours, "{refused}");
        assert_eq!(refused.kind() == Kind::Untrustworthy, is_ours, "{refused}");
    }
}

#[tokio::test]
async fn a_lock_holds_what_it_says_and_nothing_else() {
    let (world, home) = (World::new(), Home::new());
    let (what, sources) = (pip("hello-tool", "==1.0"), world.sources());
    let (first, _) = home.acquire(&what, &[], &sources, None).await.unwrap();
    let elsewhere = Home::new();
    // Served others the second time.
    world.tamper("/files/hello_tool-1.0-py3-none-any.whl", "haft");
    let refused =
        elsewhere.acquire(&what, &[], &sources, Some(&first.artefacts)).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Digest { .. }), "{refused}");
    let less = &first.artefacts[..1];
    let refused = home.acquire(&what, &[], &sources, Some(less)).await.unwrap_err();
    assert!(matches!(refused, AcquireError::NotLocked(_)), "{refused}");
}

#[tokio::test]
async fn what_is_had_without_a_digest_is_pinned_from_then_on() {
    let (world, home) = (World::new(), Home::new());
    let (first, _) =
        home.acquire(&pip("bare", "==1.0"), &[], &world.sources(), None).await.unwrap();
    world.tamper("/files/bare-1.0-py3-none-any.whl", "haft");
    let elsewhere = Home::new();
    let locked = Some(&*first.artefacts);
    let refused =
        elsewhere.acquire(&pip("bare", "==1.0"), &[], &world.sources(), locked).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Digest { .. }), "{refused}");
}

#[tokio::test]
async fn source_is_built_only_if_the_owner_trusts_the_package_by_name() {
    let (world, home) = (World::new(), Home::new());
    let (what, mut sources) = (pip("sourced", "==1.0"), world.sources());
    let refused = home.acquire(&what, &[], &sources, None).await.unwrap_err();
    assert!(refused.to_string().contains("sourced"), "{refused}");
    assert!(!world.has_run("sourced"), "nothing of it ran");
    sources.trusted.insert((Manager::Pip, "another".to_owned()));
    home.acquire(&what, &[], &sources, None).await.unwrap_err();
    assert!(!world.has_run("sourced"), "nothing of it ran");
    sources.trusted.insert((Manager::Pip, "Sourced".to_owned()));
    let (acquired, place) = home.acquire(&what, &[], &sources, None).await.unwrap();
    assert!(world.has_run("sourced"));
    assert!(!world.seen().contains(&"/saw/cache".to_owned()), "what is kept is not to be seen");
    assert!(place.join("python/sourced.py").is_file());
    // The lock of somebody who trusts it is no permission.
    let refused = home.acquire(&what, &[], &world.sources(), Some(&acquired.artefacts)).await;
    assert!(matches!(refused, Err(AcquireError::Hostile { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_package_that_runs_code_plants_no_link_for_us_to_write_through() {
    let (world, home) = (World::new(), Home::new());
    let victim = home.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    let mut sources = world.sources();
    sources.trusted.insert((Manager::Pip, "sourced".to_owned()));
    let beside = [Requirement::parse(Manager::Npm, "hello-node").unwrap()];
    let what = pip("sourced", "==1.0");
    let (_, place) = home.acquire(&what, &beside, &sources, None).await.unwrap();
    assert!(world.has_run("sourced"));
    assert_eq!(names(&victim), [""; 0]);
    assert_eq!(names(&place), ["node_modules", "python"]);
}

#[tokio::test]
async fn names_that_are_none_reach_nobody() {
    let (world, home) = (World::new(), Home::new());
    for name in
        ["--index-url=http://evil.test", "-r", "./x", "https://evil.test/x.whl", "x @ file:///x"]
    {
        let refused = home.acquire(&pip(name, ""), &[], &world.sources(), None).await.unwrap_err();
        assert!(matches!(refused, AcquireError::Requirement(_)), "{name}: {refused}");
    }
    assert_eq!(world.seen(), [""; 0]);
}

#[tokio::test]
async fn packages_beside_a_bundle_are_acquired_too() {
    let (world, home) = (World::new(), Home::new());
    let beside = [
        Requirement::parse(Manager::Pip, "hello-dep<2").unwrap(),
        Requirement::of_companion("npm:hello-leaf==1.0.0").unwrap(),
    ];
    let (acquired, place) =
        home.acquire(&Acquire::Bundle, &beside, &world.sources(), None).await.unwrap();
    let versions: Vec<_> = acquired.artefacts.iter().map(|one| one.version.as_str()).collect();
    assert_eq!(versions, ["1.5", "1.0.0"]);
    assert_eq!(names(&place), ["node_modules", "python"]);
}

#[tokio::test]
async fn a_password_of_an_index_is_shown_to_it_and_told_nobody() {
    let (world, home) = (World::new(), Home::new());
    let what = pip("hello-tool", "==1.0");
    let mut sources = world.sources();
    sources.pip = vec![Index::at(world.url("/locked/simple/"))];
    assert!(home.acquire(&what, &[], &sources, None).await.is_err(), "it asks for one");
    let mut with_password = world.url("/locked/simple/");
    with_password.set_username("name").unwrap();
    with_password.set_password(Some("s3cret")).unwrap();
    sources.pip = vec![Index::at(with_password)];
    let (acquired, place) = home.acquire(&what, &[], &sources, None).await.unwrap();
    assert!(acquired.artefacts[0].url.contains("/locked/files/"), "{acquired:?}");
    assert!(!format!("{acquired:?} {sources:?}").contains("s3cret"));
    let found = Command::new("grep").args(["-r", "s3cret"]).arg(place.parent().unwrap()).output();
    assert_eq!(String::from_utf8(found.unwrap().stdout).unwrap(), "");
}

#[tokio::test]
async fn nothing_runs_on_when_nobody_waits() {
    let (world, home) = (World::new(), Home::new());
    let mut sources = world.sources();
    sources.pip = vec![Index::at(world.url("/silent/simple/"))];
    // A name that no other process knows.
    let name = format!("nobody-waits-{}", std::process::id());
    let what = pip(&name, "==1.0");
    let acquiring = home.acquire(&what, &[], &sources, None);
    let runs = || {
        let found = Command::new("grep").args(["-ls", &name]).args(processes()).output();
        String::from_utf8(found.unwrap().stdout).unwrap()
    };
    let is_asked = async {
        while !world.seen().iter().any(|path| path.starts_with("/silent/")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_ne!(runs(), "", "it is seen while it runs");
    };
    tokio::select! {
        acquired = acquiring => panic!("{acquired:?}"),
        () = is_asked => {}
    }
    // By itself, pip would try for longer than this to reach an index that has gone.
    let until = Instant::now() + Duration::from_secs(3);
    while !runs().is_empty() {
        assert!(Instant::now() < until, "{}", runs());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What every process was started with.
fn processes() -> Vec<PathBuf> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let numbered = all.filter(|one| one.file_name().to_string_lossy().parse::<u32>().is_ok());
    numbered.map(|one| one.path().join("cmdline")).collect()
}
