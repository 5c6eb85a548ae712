//! Node packages.

use std::time::Duration;

use install::acquire::{AcquireError, Index, Manager, Reach, Requirement, Sources, commands};
use manifest::model::Acquire;

use crate::world::{Home, World, offline, said};

fn npm(package: &str, versions: &str) -> Acquire {
    Acquire::Npm { package: package.to_owned(), version_spec: Some(versions.to_owned()) }
}

#[tokio::test]
async fn packages_are_installed_and_work_wherever_they_are_moved() {
    let (world, home) = (World::new(), Home::new());
    let (acquired, place) = home.install(&npm("hello-node", "^1.0.0"), &world.sources()).await;
    let places: Vec<_> = acquired.artefacts.iter().filter_map(|one| one.place.as_deref()).collect();
    assert_eq!(places, ["node_modules/hello-leaf", "node_modules/hello-node"]);
    let command = place.join(&acquired.path[0]).join("hello-node");
    assert_eq!(said(&command, ("NODE_ENV", &place)), "hello leaf\n");
    assert!(!world.has_run("hello-node"), "no install script ran");
    assert!(!place.join("work").exists());
}

#[tokio::test]
async fn one_package_can_be_there_in_two_versions() {
    let (world, home) = (World::new(), Home::new());
    let beside = [Requirement::parse(Manager::Npm, "@acme/two").unwrap()];
    let (acquired, place) =
        home.acquire(&npm("hello-node", "1"), &beside, &world.sources(), None).await.unwrap();
    assert_eq!(acquired.artefacts.len(), 4, "{:?}", acquired.artefacts);
    let run = |script: &str| {
        let ran =
            std::process::Command::new("node").args(["-p", script]).current_dir(&place).output();
        String::from_utf8(ran.unwrap().stdout).unwrap()
    };
    assert_eq!(run("require('@acme/two')"), "old\n");
    let locked = Home::new();
    let (again, _) = locked
        .acquire(&npm("hello-node", "1"), &beside, &world.sources(), Some(&acquired.artefacts))
        .await
        .unwrap();
    assert_eq!(again.artefacts, acquired.artefacts);
    assert_eq!(again.commands, [""; 0], "a lock says all, so nobody is asked");
}

#[tokio::test]
async fn one_file_in_two_places_is_fetched_without_waiting_for_itself() {
    let (world, home) = (World::new(), Home::new());
    let beside = ["@acme/two", "@acme/three"];
    let beside = beside.map(|name| Requirement::parse(Manager::Npm, name).unwrap());
    let what = npm("hello-leaf", "1.1.0");
    let (first, _) = home.acquire(&what, &beside, &world.sources(), None).await.unwrap();
    let twice = first.artefacts.iter().filter(|one| one.version == "1.0.0").count();
    assert_eq!(twice, 2, "{:?}", first.artefacts);
    let (elsewhere, sources) = (Home::new(), world.sources());
    let again = elsewhere.acquire(&what, &beside, &sources, Some(&first.artefacts));
    let again = tokio::time::timeout(Duration::from_mins(1), again).await.unwrap();
    assert_eq!(again.unwrap().0.artefacts, first.artefacts);
}

#[tokio::test]
async fn install_scripts_run_only_if_the_owner_trusts_the_package_by_name() {
    let (world, home) = (World::new(), Home::new());
    let (what, mut sources) = (npm("hello-node", "1.0.0"), world.sources());
    sources.trusted.insert((Manager::Npm, "hello-leaf".to_owned()));
    home.acquire(&what, &[], &sources, None).await.unwrap();
    assert!(!world.has_run("hello-node"));
    sources.trusted.insert((Manager::Npm, "hello-node".to_owned()));
    let (acquired, _) = home.acquire(&what, &[], &sources, None).await.unwrap();
    assert!(world.has_run("hello-node"), "{:?}", acquired.commands);
    let before = commands(&what, &[], &sources).unwrap();
    assert!(acquired.commands.iter().all(|one| before.contains(one)), "{:?}", acquired.commands);
}

#[tokio::test]
async fn a_second_time_needs_no_network() {
    let (world, home) = (World::new(), Home::new());
    let (what, sources) = (npm("hello-node", "^1.0.0"), world.sources());
    let refused = home.acquire(&what, &[], &offline(&sources), None).await.unwrap_err();
    assert!(refused.to_string().contains("`hello-node@^1.0.0`"), "{refused}");
    let (first, _) = home.acquire(&what, &[], &sources, None).await.unwrap();
    drop(world);
    for reach in [Reach::Kept, Reach::Offline] {
        let sources = Sources { reach, ..sources.clone() };
        let (again, place) = home.acquire(&what, &[], &sources, None).await.unwrap();
        assert_eq!(again.artefacts, first.artefacts);
        assert!(place.join("node_modules/hello-leaf/index.js").is_file());
    }
    let fresh = Sources { reach: Reach::Fresh, ..sources };
    assert!(home.acquire(&what, &[], &fresh, None).await.is_err());
}

#[tokio::test]
async fn other_bytes_than_those_of_the_lockfile_are_refused() {
    let (world, home) = (World::new(), Home::new());
    let (what, sources) = (npm("hello-node", "1.0.0"), world.sources());
    let (first, _) = home.acquire(&what, &[], &sources, None).await.unwrap();
    world.tamper("/tarballs/hello-leaf-1.1.0.tgz", "haft");
    for locked in [None, Some(&*first.artefacts)] {
        let refused = Home::new().acquire(&what, &[], &sources, locked).await.unwrap_err();
        assert!(matches!(refused, AcquireError::Digest { .. }), "{refused}");
    }
}

#[tokio::test]
async fn packages_of_a_scope_are_had_from_its_own_registry() {
    let (world, of_scope, home) = (World::new(), World::new(), Home::new());
    let mut sources = world.sources();
    sources.npm_scopes = vec![("acme".to_owned(), Index::at(of_scope.url("/npm/")))];
    let (acquired, _) =
        home.acquire(&npm("@acme/two", "2.0.0"), &[], &sources, None).await.unwrap();
    let ports: Vec<_> = acquired.artefacts.iter().map(|one| one.url.split('/').nth(2)).collect();
    let place = |world: &World| format!("127.0.0.1:{}", world.port);
    assert_eq!(ports, [Some(&*place(&of_scope)), Some(&*place(&world))]);
}

#[tokio::test]
async fn what_a_package_needs_from_elsewhere_is_not_had() {
    let (world, home) = (World::new(), Home::new());
    let refused =
        home.acquire(&npm("wanders", "1.0.0"), &[], &world.sources(), None).await.unwrap_err();
    let AcquireError::Failed { refused, .. } = &refused else { panic!("{refused}") };
    assert_eq!(refused, &["`elsewhere.test:80` (no grant names this host)"]);
}

#[tokio::test]
async fn names_and_versions_that_are_none_reach_nobody() {
    let (world, home) = (World::new(), Home::new());
    for (name, versions) in [
        ("--registry=http://evil.test", ""),
        ("../x", ""),
        ("https://evil.test/x.tgz", ""),
        ("hello-node", "file:../x"),
        ("hello-node", "git+https://evil.test/x"),
        ("hello-node", "npm:other@1"),
    ] {
        let what = npm(name, versions);
        let refused = home.acquire(&what, &[], &world.sources(), None).await.unwrap_err();
        assert!(matches!(refused, AcquireError::Requirement(_)), "{name}: {refused}");
    }
    assert_eq!(world.seen(), [""; 0]);
}

#[tokio::test]
async fn a_token_of_a_registry_is_shown_to_it_and_told_nobody() {
    let (world, home) = (World::new(), Home::new());
    let (what, mut sources) = (npm("hello-node", "1.0.0"), world.sources());
    sources.npm = Some(Index::at(world.url("/locked/npm/")));
    assert!(home.acquire(&what, &[], &sources, None).await.is_err(), "it asks for one");
    sources.npm = Some(Index { token: Some("s3cret".to_owned()), url: world.url("/locked/npm/") });
    let (acquired, _) = home.acquire(&what, &[], &sources, None).await.unwrap();
    assert!(!format!("{acquired:?} {sources:?}").contains("s3cret"));
}
