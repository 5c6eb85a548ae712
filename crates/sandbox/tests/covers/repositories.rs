//! What git outside would execute or obey, where its settings or its own place say so.

use std::fs;
use std::path::Path;

use sandbox::{Confinement, Exit};

use crate::{Project, as_each_user, start};

/// Runs a script in a project until it ends.
fn run(confinement: &Confinement, script: &str) -> Exit {
    start(confinement, &format!("echo ready; {script}")).wait().exit
}

/// Tries to write at a path in the ways a shell has, and to put something else in the place of what is
/// above it. Each way that works ends with a code of its own.
fn planting(path: &str) -> String {
    let mut script = format!(
        "echo x > '{path}' && exit 11; mkdir -p '{path}' && echo x > '{path}/pre-commit' && exit 12;
        [ -e '{path}' ] && rm -rf '{path}' && exit 13; mv '{path}' gone && exit 14; chmod 777 '{path}' && exit 15;"
    );
    for above in Path::new(path).ancestors().skip(1).filter(|one| *one != Path::new("")) {
        script += &format!("mv '{}' gone && exit 16;", above.display());
    }
    script + "exit 0"
}

fn assert_held(project: &Project, path: &str) {
    let before = fs::symlink_metadata(project.at(path)).ok().map(|found| found.len());
    assert_eq!(run(&project.confinement(), &planting(path)), Exit::Code(0), "{path}");
    let after = fs::symlink_metadata(project.at(path)).ok().map(|found| found.len());
    assert_eq!(before, after, "{path}");
}

fn set(project: &Project, settings: &str) {
    fs::write(project.at(".git/config"), settings).unwrap();
}

fn make(project: &Project, path: &str) {
    fs::create_dir_all(project.at(path)).unwrap();
}

#[test]
fn hooks_are_held_where_the_settings_say() {
    as_each_user(|| {
        for path in [".githooks", "tools/git/hooks", "./tools/../.githooks"] {
            for is_there in [true, false] {
                let project = Project::new();
                make(&project, "tools");
                if is_there {
                    make(&project, path);
                }
                set(&project, &format!("[core]\n\thooksPath = {path}\n"));
                assert_held(&project, if path.contains("..") { ".githooks" } else { path });
            }
        }
        let project = Project::new();
        make(&project, ".githooks");
        set(&project, &format!("[core] hooksPath = \"{}\"\n", project.at(".githooks").display()));
        assert_held(&project, ".githooks/pre-commit");
    });
}

#[test]
fn without_the_setting_the_same_folder_can_be_written() {
    as_each_user(|| {
        let project = Project::new();
        let script = "mkdir .githooks && echo x > .githooks/pre-commit";
        assert_eq!(run(&project.confinement(), script), Exit::Code(0));
        assert!(project.at(".githooks/pre-commit").exists());
    });
}

#[test]
fn further_settings_and_the_hooks_they_name_are_held() {
    as_each_user(|| {
        let project = Project::new();
        set(&project, "[include]\n\tpath = ../shared/gitconfig\n");
        make(&project, "shared");
        fs::write(project.at("shared/gitconfig"), "[core]\nhooksPath = shared/hooks\n").unwrap();
        assert_held(&project, "shared/gitconfig");
        assert_held(&project, "shared/hooks");
        let project = Project::new();
        set(&project, "[includeIf \"onbranch:main\"]\n\tpath = ../later\n");
        assert_held(&project, "later");
    });
}

#[test]
fn hooks_in_a_granted_part_of_a_repository_are_held() {
    as_each_user(|| {
        let project = Project::new();
        set(&project, "[core]\nhooksPath = sources/hooks\n");
        make(&project, "sources/hooks");
        let part = project.at("sources");
        let confinement =
            Confinement { writable: vec![part.clone()], folder: part, ..project.confinement() };
        assert_eq!(run(&confinement, &planting("hooks")), Exit::Code(0));
        // Whoever grants the hooks by their name means them.
        let hooks = project.at("sources/hooks");
        let confinement = Confinement { writable: vec![hooks], ..confinement };
        assert_eq!(run(&confinement, "echo x > hooks/pre-commit"), Exit::Code(0));
    });
}

#[test]
fn the_settings_of_a_worktree_elsewhere_count_too() {
    as_each_user(|| {
        let project = Project::new();
        make(&project, ".git/worktrees/tree");
        fs::write(project.at(".git/worktrees/tree/commondir"), "../..\n").unwrap();
        set(&project, "[core]\nhooksPath = .githooks\n");
        let tree = project.at("sources/tree");
        fs::create_dir(&tree).unwrap();
        let text = format!("gitdir: {}\n", project.at(".git/worktrees/tree").display());
        fs::write(tree.join(".git"), text).unwrap();
        let confinement =
            Confinement { writable: vec![tree.clone()], folder: tree, ..project.confinement() };
        assert_eq!(run(&confinement, &planting(".githooks")), Exit::Code(0));
    });
}

#[test]
fn repositories_below_the_folder_keep_their_hooks_and_settings_and_can_be_worked_in() {
    as_each_user(|| {
        let project = Project::new();
        for place in ["one", "some/where/below/two"] {
            make(&project, &format!("{place}/.git/hooks"));
            fs::write(project.at(place).join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(project.at(place).join(".git/config"), "[core]\nhooksPath = own\n").unwrap();
            for name in ["hooks", "hooks/pre-commit", "config", "config.worktree", "commondir"] {
                assert_held(&project, &format!("{place}/.git/{name}"));
            }
            assert_held(&project, &format!("{place}/own"));
            let script = format!(
                "cd {place} && echo x > .git/index.lock && mv .git/index.lock .git/index && \
                 echo x > source && mkdir -p deep/er && mv source deep"
            );
            assert_eq!(run(&project.confinement(), &script), Exit::Code(0));
        }
        make(&project, "module");
        fs::write(project.at("module/.git"), "gitdir: ../.git/modules/module\n").unwrap();
        assert_held(&project, "module/.git");
    });
}

#[test]
fn a_link_on_the_way_to_hooks_leads_nowhere_else() {
    as_each_user(|| {
        let project = Project::new();
        make(&project, "real/hooks");
        std::os::unix::fs::symlink("real", project.at("linked")).unwrap();
        set(&project, "[core]\nhooksPath = linked/hooks\n");
        assert_held(&project, "real/hooks");
        let script = "rm linked && exit 11; mv linked gone && exit 12; ln -sfn sources linked && exit 13; exit 0";
        assert_eq!(run(&project.confinement(), script), Exit::Code(0));
        assert_eq!(fs::read_link(project.at("linked")).unwrap(), Path::new("real"));
    });
}

#[test]
fn of_the_hooks_that_one_file_names_the_last_are_held() {
    as_each_user(|| {
        let project = Project::new();
        let many: String = (0..20_000).map(|n| format!("hookspath = h{n}\n")).collect();
        make(&project, "one/.git");
        fs::write(project.at("one/.git/config"), format!("[core]\n{many}")).unwrap();
        assert_held(&project, "one/h19999");
        let script = "echo x > one/h0 && echo x > one/h19998";
        assert_eq!(run(&project.confinement(), script), Exit::Code(0));
    });
}

#[test]
fn settings_that_lead_to_more_than_can_be_held_are_refused_by_their_name() {
    as_each_user(|| {
        let project = Project::new();
        let many: String = (0..20_000).map(|n| format!("path = i{n}\n")).collect();
        make(&project, "one/.git");
        let settings = project.at("one/.git/config");
        fs::write(&settings, format!("[include]\n{many}")).unwrap();
        let launcher = sandbox::Launcher::start(&crate::launcher_program()).unwrap();
        let refused = launcher.spawn(&project.confinement(), &["/bin/true".into()]).unwrap_err();
        let expected = format!(
            "`{}` leads git to more files and folders than can be protected",
            settings.display()
        );
        assert_eq!(refused.to_string(), expected);
    });
}

#[test]
fn settings_that_are_no_file_hold_nothing_up() {
    as_each_user(|| {
        let project = Project::new();
        make(&project, "one/.git");
        let made = std::process::Command::new("mkfifo").arg(project.at("one/.git/config")).status();
        assert!(made.unwrap().success());
        assert_eq!(run(&project.confinement(), "exit 0"), Exit::Code(0));
    });
}

#[test]
fn nothing_is_left_of_what_was_put_there_meanwhile() {
    as_each_user(|| {
        let project = Project::new();
        make(&project, "one/.git");
        fs::write(project.at("one/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        set(&project, "[core]\nhooksPath = .githooks\n[include]\npath = ../more\n");
        assert_eq!(run(&project.confinement(), "exit 0"), Exit::Code(0));
        for name in [".githooks", "more", "one/.git/hooks", "one/.git/config", "one/.git/commondir"]
        {
            assert!(!project.at(name).exists(), "{name}");
        }
    });
}
