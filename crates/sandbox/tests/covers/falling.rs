//! Covers that fall off: somebody outside moves or replaces what is protected while a program runs.

use std::fs;

use sandbox::{Confinement, Exit};

use crate::{Project, as_each_user, start};

/// Says that it runs, and then waits to be ended.
const WAIT: &str = "echo ready; exec sleep 60";

/// What somebody does outside.
type Change = fn(&Project);

#[test]
fn a_program_is_ended_when_a_protected_name_is_replaced_moved_or_removed_outside() {
    as_each_user(|| {
        let changes: [(&str, Change); 9] = [
            ("a file is replaced", |project| project.replace(".mcp.json")),
            ("a placeholder is replaced", |project| project.replace(".envrc")),
            ("settings in a repository are replaced", |project| project.replace(".git/config")),
            ("a file is removed", |project| fs::remove_file(project.at(".mcp.json")).unwrap()),
            ("a placeholder is removed", |project| {
                fs::remove_dir(project.at(".vscode")).unwrap();
            }),
            ("a file is moved", |project| {
                fs::rename(project.at(".mcp.json"), project.at("old.json")).unwrap();
            }),
            ("a folder is moved", |project| {
                fs::rename(project.at(".git/hooks"), project.at(".git/old")).unwrap();
            }),
            ("the repository is moved", |project| {
                fs::rename(project.at(".git"), project.at("old")).unwrap();
            }),
            ("a placeholder is moved", |project| {
                fs::rename(project.at(".npmrc"), project.at("sources/npmrc")).unwrap();
            }),
        ];
        for (what, change) in changes {
            let project = Project::new();
            let mut child = start(&project.confinement(), WAIT);
            change(&project);
            assert_eq!(child.wait().exit, Exit::Uncovered, "{what}");
        }
    });
}

#[test]
fn a_program_is_ended_when_what_is_hidden_or_closed_in_its_folder_is_moved_outside() {
    as_each_user(|| {
        for moved in ["secrets", "secrets/deep", "secrets/deep/er"] {
            let project = Project::new();
            fs::create_dir_all(project.at("secrets/deep/er")).unwrap();
            let hidden = vec![project.at("secrets/deep/er")];
            let mut child = start(&Confinement { hidden, ..project.confinement() }, WAIT);
            fs::rename(project.at(moved), project.at("elsewhere")).unwrap();
            assert_eq!(child.wait().exit, Exit::Uncovered, "{moved}");
        }
        let project = Project::new();
        let readable = vec![project.at("README")];
        let mut child = start(&Confinement { readable, ..project.confinement() }, WAIT);
        project.replace("README");
        assert_eq!(child.wait().exit, Exit::Uncovered);
    });
}

#[test]
fn a_program_that_ends_itself_before_it_is_ended_has_not_succeeded() {
    as_each_user(|| {
        for _ in 0..5 {
            let project = Project::new();
            let script = "echo ready; while [ -s .mcp.json ]; do :; done; exit 0";
            let mut child = start(&project.confinement(), script);
            fs::write(project.at("new"), "").unwrap();
            fs::rename(project.at("new"), project.at(".mcp.json")).unwrap();
            assert_eq!(child.wait().exit, Exit::Uncovered);
        }
    });
}

#[test]
fn what_others_do_beside_the_protected_names_ends_nothing() {
    as_each_user(|| {
        let project = Project::new();
        fs::hard_link(project.at(".mcp.json"), project.at("twin.json")).unwrap();
        let odd = project.at("a \\ folder\twith\nall");
        fs::create_dir(&odd).unwrap();
        let mut confinement = project.confinement();
        confinement.readable.push(odd.clone());
        let script = "echo ready; while ! [ -e go ]; do sleep 0.01; done; mv README moved; exit 7";
        let mut child = start(&confinement, script);
        // What is written in place is seen inside, and stays covered.
        fs::write(project.at(".mcp.json"), "{\"by\": \"the owner\"}\n").unwrap();
        fs::rename(project.at("twin.json"), project.at("triplet.json")).unwrap();
        fs::rename(project.at("sources"), project.at("src")).unwrap();
        fs::remove_dir(project.at("src")).unwrap();
        fs::write(project.at(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
        fs::write(odd.join("file"), "").unwrap();
        project.replace(".git/HEAD");
        fs::write(project.at("go"), "").unwrap();
        assert_eq!(child.wait().exit, Exit::Code(7));
        assert!(project.at("moved").exists());
    });
}

#[test]
fn two_programs_in_one_folder_do_not_end_each_other() {
    as_each_user(|| {
        let project = Project::new();
        let mut first = start(&project.confinement(), "echo ready; exit 0");
        let mut second = start(
            &project.confinement(),
            "echo ready; while ! [ -e go ]; do sleep 0.01; done; exit 0",
        );
        assert_eq!(first.wait().exit, Exit::Code(0));
        let mut third = start(&project.confinement(), "echo ready; exit 0");
        assert_eq!(third.wait().exit, Exit::Code(0));
        fs::write(project.at("go"), "").unwrap();
        assert_eq!(second.wait().exit, Exit::Code(0));
    });
}

#[test]
fn a_room_without_a_writable_folder_watches_no_mounts() {
    // Nobody but root may look at what a room has open.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let watched = |confinement: &Confinement| {
        let child = start(confinement, WAIT);
        let opened = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
        let names = opened.filter_map(|entry| fs::read_link(entry.path()).ok());
        names.filter(|name| name.to_string_lossy().contains("mountinfo")).count()
    };
    let project = Project::new();
    assert_eq!(watched(&project.confinement()), 1);
    let readable = vec![project.0.path().to_owned()];
    let reading = Confinement { readable, writable: Vec::new(), ..project.confinement() };
    assert_eq!(watched(&reading), 0);
}
