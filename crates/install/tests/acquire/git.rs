//! Repositories.

use std::os::unix::fs::PermissionsExt;

use install::acquire::{AcquireError, Reach, Sources, commands};
use manifest::model::Acquire;

use crate::world::{Home, World, names, offline};

fn git(reference: &str, subpath: Option<&str>) -> Acquire {
    laid_out(reference, subpath, None)
}

fn laid_out(reference: &str, subpath: Option<&str>, layout: Option<&str>) -> Acquire {
    Acquire::Git {
        url: "https://code.test/tools.git".to_owned(),
        reference: reference.to_owned(),
        subpath: subpath.map(str::to_owned),
        layout: layout.map(str::to_owned),
    }
}

#[tokio::test]
async fn the_files_of_a_commit_are_there_without_the_repository() {
    let (world, home) = (World::new(), Home::new());
    let [first, _] = world.commits();
    let what = git(&first, None);
    let before = commands(&what, &[], &world.sources()).unwrap();
    let (acquired, place) = home.acquire(&what, &[], &world.sources(), None).await.unwrap();
    assert_eq!(acquired.commands, before);
    assert_eq!(acquired.artefacts[0].version, first);
    assert_eq!(names(&place), ["files"]);
    assert_eq!(names(&place.join("files")), ["README.md", "skills", "tools"]);
    let program = place.join("files/tools/run.sh").metadata().unwrap();
    assert_ne!(program.permissions().mode() & 0o100, 0);
}

#[tokio::test]
async fn a_tag_and_a_branch_are_pinned_to_their_commits() {
    let (world, home) = (World::new(), Home::new());
    let [first, second] = world.commits();
    let sources = world.sources();
    let (tagged, _) = home.acquire(&git("v1", None), &[], &sources, None).await.unwrap();
    assert_eq!(tagged.artefacts[0].version, first);
    let what = git("main", Some("tools"));
    let (branch, place) = home.acquire(&what, &[], &sources, None).await.unwrap();
    assert_eq!(branch.artefacts[0].version, second);
    assert_eq!(names(&place.join("files")), ["run.sh"]);
    // The branch goes on; what was pinned does not.
    world.commit();
    for locked in [None, Some(&*branch.artefacts)] {
        let (again, _) = home.acquire(&what, &[], &sources, locked).await.unwrap();
        assert_eq!(again.artefacts, branch.artefacts);
    }
    let (elsewhere, locked) = (Home::new(), Some(&*branch.artefacts));
    let (again, _) = elsewhere.acquire(&what, &[], &sources, locked).await.unwrap();
    assert_eq!(again.artefacts, branch.artefacts);
    let fresh = Sources { reach: Reach::Fresh, ..sources };
    let (newer, _) = home.acquire(&what, &[], &fresh, None).await.unwrap();
    assert_ne!(newer.artefacts[0].version, second);
}

#[tokio::test]
async fn a_second_time_needs_no_network() {
    let (world, home) = (World::new(), Home::new());
    let (what, sources) = (git("v1", None), world.sources());
    let refused = home.acquire(&what, &[], &offline(&sources), None).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Offline(_)), "{refused}");
    let (first, _) = home.acquire(&what, &[], &sources, None).await.unwrap();
    drop(world);
    for locked in [None, Some(&*first.artefacts)] {
        let (again, _) = home.acquire(&what, &[], &offline(&sources), locked).await.unwrap();
        assert_eq!(again.artefacts, first.artefacts);
    }
}

#[tokio::test]
async fn links_are_refused_on_the_way_and_inside() {
    let (world, home) = (World::new(), Home::new());
    for subpath in ["linked", "inside"] {
        let refused = home.acquire(&git("main", Some(subpath)), &[], &world.sources(), None).await;
        assert!(matches!(refused, Err(AcquireError::Hostile { .. })), "{subpath}: {refused:?}");
    }
    let missing = home.acquire(&git("main", Some("nothing")), &[], &world.sources(), None).await;
    assert!(missing.is_err());
}

#[tokio::test]
async fn a_bundle_of_skills_has_skills() {
    let (world, home) = (World::new(), Home::new());
    let skills = laid_out("v1", Some("skills"), Some("skill-bundle"));
    home.acquire(&skills, &[], &world.sources(), None).await.unwrap();
    let none = laid_out("v1", Some("tools"), Some("skill-bundle"));
    let refused = home.acquire(&none, &[], &world.sources(), None).await.unwrap_err();
    assert!(refused.to_string().contains("SKILL.md"), "{refused}");
}

#[tokio::test]
async fn a_commit_that_is_not_there_and_addresses_that_are_none_are_refused() {
    let (world, home) = (World::new(), Home::new());
    let what = git(&"ab".repeat(20), None);
    let refused = home.acquire(&what, &[], &world.sources(), None).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Failed { .. }), "{refused}");
    for url in ["ext::sh -c id", "file:///etc", "/etc", "ssh://code.test/x", "http://127.0.0.1/x"] {
        let (reference, subpath, layout) = ("main".to_owned(), None, None);
        let what = Acquire::Git { url: url.to_owned(), reference, subpath, layout };
        let refused = home.acquire(&what, &[], &world.sources(), None).await.unwrap_err();
        assert!(matches!(refused, AcquireError::Place { .. }), "{url}: {refused}");
    }
    // Nobody has named a private place by another name.
    let what = Acquire::Git {
        url: format!("https://127.0.0.1:{}/git/tools.git", world.port),
        reference: "main".to_owned(),
        subpath: None,
        layout: None,
    };
    let before = world.seen().len();
    assert!(home.acquire(&what, &[], &world.sources(), None).await.is_err());
    assert_eq!(world.seen().len(), before);
}
