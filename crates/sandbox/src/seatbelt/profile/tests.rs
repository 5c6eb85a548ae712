use super::*;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

fn rule(path: impl Into<PathBuf>, access: Access) -> Rule {
    Rule { path: path.into(), access, shape: Shape::Folder }
}

fn write(rules: &[Rule]) -> Profile {
    Profile::write(rules, [], None)
}

/// Whether the last clause about an operation on a path allows it, as Seatbelt reads them. What
/// goes by regular expressions is left out.
fn allows(profile: &Profile, operation: &str, path: &str) -> bool {
    let is_about = |clause: &str| {
        let words: Vec<_> = clause.trim_start_matches('(').split([' ', '(', ')']).collect();
        let is_operation = words.iter().any(|word| match word.strip_suffix('*') {
            Some(start) => operation.starts_with(start),
            None => *word == operation,
        });
        is_operation && !clause.contains("(regex") && filters(profile, clause, path)
    };
    let last = profile.text.lines().rfind(|clause| is_about(clause));
    last.is_some_and(|clause| clause.starts_with("(allow"))
}

fn filters(profile: &Profile, clause: &str, path: &str) -> bool {
    let places = |filter: &str| -> Vec<PathBuf> {
        let start = format!("({filter} ");
        let texts = clause.split(&start).skip(1);
        texts
            .map(|text| match text.strip_prefix("(param \"P") {
                Some(number) => {
                    let number: usize = number.split('"').next().unwrap().parse().unwrap();
                    PathBuf::from(&profile.parameters[number])
                }
                None => PathBuf::from(text.split('"').nth(1).unwrap()),
            })
            .collect()
    };
    let path = Path::new(path);
    places("subpath").iter().any(|place| path.starts_with(place))
        || places("literal").iter().any(|place| path == place)
}

#[test]
fn no_name_of_a_path_changes_the_text() {
    let plain = write(&[rule("/a/plain", Access::Write), rule("/a/plain/b", Access::Hide)]);
    for name in [
        "\"",
        "\\",
        "\\\"",
        "x\") (allow default) (\"",
        "a\nb\n(allow default)",
        "((((",
        "))))",
        "; a comment",
        "#\"",
        "(param \"P1\")",
        "ünï – 日本語",
        "-p",
        "P0=x",
        "$(x) `y` %s",
    ] {
        let parent = format!("/a/{name}");
        let child = format!("{parent}/b");
        let profile = write(&[rule(&parent, Access::Write), rule(&child, Access::Hide)]);
        assert_eq!(profile.text, plain.text, "{name:?}");
        let arguments = profile.arguments();
        assert!(arguments.contains(&format!("-DP0={parent}").into()), "{name:?}");
        assert!(arguments.contains(&format!("-DP1={child}").into()), "{name:?}");
        assert_eq!(arguments.last().unwrap(), "--");
    }
}

#[test]
fn a_path_that_is_no_text_stays_what_it_is() {
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/a/\xff\xfe"));
    let profile = write(&[rule(path, Access::Read)]);
    assert!(profile.text.is_ascii());
    assert!(profile.arguments().iter().any(|one| one.as_bytes() == b"-DP0=/a/\xff\xfe"));
}

#[test]
fn every_clause_is_whole() {
    let rules =
        [rule("/w", Access::Write), rule("/w/h", Access::Hide), rule("/w/h/r", Access::Read)];
    let profile = Profile::write(&rules, [Path::new("/dev/x")], Some(8080));
    for line in profile.text.lines() {
        let count = |one: char| line.chars().filter(|letter| *letter == one).count();
        // Expressions bring brackets of their own, in pairs too.
        assert_eq!(count('('), count(')'), "{line}");
        assert_eq!(count('"') % 2, 0, "{line}");
    }
    assert!(profile.text.starts_with("(version 1)\n(deny default)\n"));
}

#[test]
fn a_program_has_the_system_and_nothing_of_the_owner() {
    let profile = write(&[]);
    assert!(allows(&profile, "file-read-data", "/usr/lib/libSystem.B.dylib"));
    assert!(allows(&profile, "process-exec", "/bin/sh"));
    assert!(allows(
        &profile,
        "file-map-executable",
        "/System/Library/Frameworks/Security.framework"
    ));
    assert!(allows(&profile, "file-read-data", "/"));
    for way in ["/usr", "/System", "/System/Volumes", "/private/var", "/dev", "/tmp"] {
        assert!(allows(&profile, "file-read-metadata", way), "{way}");
        assert!(!allows(&profile, "file-read-data", way), "{way}");
    }
    for path in [
        "/Users/me",
        "/System/Volumes/Data/Users/me",
        "/usr/local/etc/x",
        "/private/tmp/x",
        "/Applications",
    ] {
        for operation in ["file-read-data", "file-read-metadata", "file-write-data", "process-exec"]
        {
            assert!(!allows(&profile, operation, path), "{operation} {path}");
        }
    }
    for path in ["/bin/sh", "/usr/lib/x", "/", "/private/etc/hosts"] {
        assert!(!allows(&profile, "file-write-data", path), "{path}");
    }
    assert!(!profile.text.contains("(subpath \"/\")"));
}

#[test]
fn what_reaches_other_processes_is_not_there() {
    let profile = write(&[rule("/w", Access::Write)]);
    for word in [
        "iokit",
        "pseudo-tty",
        "/dev/tty",
        "/dev/ptmx",
        "task",
        "appleevent",
        "lsopen",
        "job-creation",
        "ipc-",
        "network",
        "system-socket",
        "launchservices",
        "securityd",
        "pboard",
        "user-preference",
        "sysctl-write",
        "(allow default",
        "import",
        "extension",
        "no-sandbox",
        "kern.proc",
    ] {
        assert!(!profile.text.contains(word), "{word}");
    }
    let about =
        |what: &str| profile.text.lines().filter(|line| line.contains(what)).collect::<Vec<_>>();
    assert_eq!(about("process-info"), ["(allow process-info* (target self))"]);
    assert_eq!(about("(allow signal"), ["(allow signal (target same-sandbox))"]);
    assert_eq!(about("mach-").len(), 1);
}

#[test]
fn the_network_is_one_port_of_this_machine_or_nothing() {
    assert!(!write(&[]).text.contains("network"));
    let profile = Profile::write(&[], [], Some(49_152));
    let about: Vec<_> = profile.text.lines().filter(|line| line.contains("network")).collect();
    assert_eq!(about, ["(allow network-outbound (remote tcp \"localhost:49152\"))"]);
}

#[test]
fn the_deepest_rule_holds() {
    let profile = write(&[
        rule("/w", Access::Write),
        rule("/w/hidden", Access::Hide),
        rule("/w/read", Access::Read),
        rule("/w/hidden/again", Access::Write),
    ]);
    let reads = |path| allows(&profile, "file-read-data", path);
    let writes = |path| allows(&profile, "file-write-data", path);
    assert!(reads("/w/x") && writes("/w/x"));
    assert!(!reads("/w/hidden/x") && !writes("/w/hidden/x"));
    assert!(!allows(&profile, "process-exec", "/w/hidden/x"));
    assert!(!allows(&profile, "file-read-metadata", "/w/hidden/x"));
    assert!(reads("/w/read/x") && !writes("/w/read/x"));
    assert!(reads("/w/hidden/again/x") && writes("/w/hidden/again/x"));
    assert!(!reads("/wx") && !writes("/wx"));
}

#[test]
fn a_file_is_granted_alone() {
    let file = Rule { path: "/w/file".into(), access: Access::Write, shape: Shape::File };
    let profile = write(&[file]);
    assert!(allows(&profile, "file-write-data", "/w/file"));
    assert!(!allows(&profile, "file-write-data", "/w/file/x"));
    assert!(!profile.text.contains("regex"));
}

#[test]
fn what_has_a_rule_cannot_be_moved_away_nor_what_is_above_it() {
    let profile = write(&[rule("/w", Access::Write), rule("/w/a/b/secret", Access::Hide)]);
    for path in ["/w", "/w/a", "/w/a/b", "/w/a/b/secret"] {
        assert!(!allows(&profile, "file-write-unlink", path), "{path}");
    }
    assert!(allows(&profile, "file-write-unlink", "/w/a/x"));
    assert!(allows(&profile, "file-write-create", "/w/a/x"));
}

#[test]
fn the_way_to_a_grant_is_seen_and_the_way_to_a_secret_is_not() {
    let profile = write(&[rule("/u/me/secret", Access::Hide), rule("/home/me/w", Access::Write)]);
    for path in ["/home", "/home/me"] {
        assert!(allows(&profile, "file-read-metadata", path), "{path}");
        assert!(!allows(&profile, "file-read-data", path), "{path}");
    }
    assert!(!allows(&profile, "file-read-metadata", "/u/me"));
}

#[test]
fn planting_is_denied_after_the_grant_and_again_after_each_grant_below() {
    let profile = write(&[rule("/w", Access::Write), rule("/w/sub", Access::Write)]);
    let position = |text: &str| profile.text.find(text).unwrap_or_else(|| panic!("{text}"));
    let grant = |number| format!("(allow file-write* {SEE} (subpath (param \"P{number}\")))");
    let denial = |number, expression: String| {
        format!(
            "(deny file-write* (require-all (subpath (param \"P{number}\")) (regex #\"{expression}\")))"
        )
    };
    for (number, depth) in [(0, 1), (1, 2)] {
        for expression in [names::at_top(depth), names::repository(), names::in_repository()] {
            assert!(position(&grant(number)) < position(&denial(number, expression)));
        }
    }
    assert!(!profile.text.contains(&names::in_bare_repository(1)));
    let bare = Rule { path: "/w".into(), access: Access::Write, shape: Shape::Repository };
    assert!(write(&[bare]).text.contains(&denial(0, names::in_bare_repository(1))));
}
