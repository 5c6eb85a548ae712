//! Walls whose root is a folder, as an image has it: nothing of the system is inside, and the rest is as ever.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::Duration;

use kit::folders::{Folder, listing, set_mode};
use kit::rooms::{launcher, output_of, run, text, told, walled, words};
use kit::users::as_each_user;
use sandbox::{Confinement, Exit, Network, SpawnError};

/// A root with one program that is many, and folders as images have them.
fn root() -> Folder {
    let root = Folder::outside();
    root.make("bin");
    std::fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
    set_mode(&root.join("bin/busybox"), 0o755);
    for name in [
        "sh", "ls", "cat", "id", "ln", "rm", "mount", "sleep", "grep", "head", "wc", "tr", "cmp",
        "chmod", "touch", "cut",
    ] {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    root.write("etc/passwd", "image:x:7:7::/:/bin/sh\n");
    root.write("etc/os-release", "ID=image\n");
    root.write("etc/hosts", "");
    root.write("opt/of-the-image", "whole");
    root.write("tmp/not-shown", "");
    root.write("dev/not-shown", "");
    root.make("proc");
    root.make("var/lib/deep");
    symlink("opt", root.join("alias")).unwrap();
    root
}

fn inside(root: &Path) -> Confinement {
    Confinement { root: Some(root.to_owned()), ..walled() }
}

fn shell(script: &str) -> Vec<OsString> {
    words(["/bin/sh", "-c", script])
}

#[test]
fn the_folder_is_the_root_and_nothing_of_the_system_is_there() {
    as_each_user(|| {
        let root = root();
        let script = "ls -A /; cat /alias/of-the-image; echo; cat /etc/os-release; ls -A /tmp; id -u; \
                      ls -d /usr /lib /home /root /srv /sys 2>&1 | grep -c 'No such'";
        let said = output_of(&launcher(), &inside(&root), &shell(script));
        let expected = "alias\nbin\ndev\netc\nopt\nproc\ntmp\nvar\nwhole\nID=image\n1000\n6\n";
        assert_eq!(said, expected);
    });
}

#[test]
fn processes_devices_and_the_user_are_those_of_every_room() {
    as_each_user(|| {
        let root = root();
        let script = "cat /etc/passwd | grep -c tool:x:1000; cat /etc/hosts | grep -c localhost; \
                      cat /dev/zero 2>&1 | head -c 1 | wc -c; ls /dev/not-shown 2>&1 | grep -c 'No such'; \
                      ls -d /proc/[0-9]* | wc -l | tr -d ' ' | grep -c '^[1-9]$'; cat /proc/keys | wc -c; \
                      grep -c -E '^(CapEff|CapBnd):.0000000000000000' /proc/self/status; \
                      grep NoNewPrivs /proc/self/status";
        let said = output_of(&launcher(), &inside(&root), &shell(script));
        assert_eq!(said, "1\n2\n1\n1\n1\n0\n2\nNoNewPrivs:\t1\n");
    });
}

#[test]
fn who_and_where_it_is_is_said_also_where_the_settings_are_a_link() {
    as_each_user(|| {
        for target in ["usr/etc", "/usr/etc", "../../usr/etc"] {
            let root = root();
            root.make("usr");
            std::fs::rename(root.join("etc"), root.join("usr/etc")).unwrap();
            symlink(target, root.join("etc")).unwrap();
            let script = "cat /etc/os-release; grep -c tool:x:1000 /etc/passwd; \
                          grep -c localhost /etc/hosts; (echo x > /etc/x) 2>/dev/null && echo bad; \
                          cat /usr/etc/passwd";
            let said = output_of(&launcher(), &inside(&root), &shell(script));
            assert_eq!(said, "ID=image\n1\n2\nimage:x:7:7::/:/bin/sh\n");
        }
    });
}

#[test]
fn devices_are_lent_to_an_image_too() {
    as_each_user(|| {
        let root = root();
        let mut confinement = inside(&root);
        confinement.devices.push("/dev/random".into());
        let script = "head -c 4 /dev/random | wc -c; echo x > /dev/null; ls /dev/not-shown 2>&1 | grep -c 'No such'";
        assert_eq!(output_of(&launcher(), &confinement, &shell(script)), "4\n1\n");
    });
}

#[test]
fn nothing_of_the_image_can_be_written_and_scratch_can() {
    as_each_user(|| {
        let root = root();
        let before = listing(&root);
        let script = "for one in /x /bin/x /etc/x /etc/passwd /opt/of-the-image /proc/x /dev/x /var/lib/deep/x; do \
                        (echo bad > $one) 2>/dev/null && echo written $one; done; \
                      rm -f /bin/ls /opt/of-the-image 2>/dev/null && echo removed; \
                      ln /bin/busybox /opt/x 2>/dev/null && echo linked; \
                      mount -t tmpfs x /opt 2>/dev/null && echo mounted; \
                      echo fine > /tmp/x && cat /tmp/x";
        let finished = run(&launcher(), &inside(&root), &shell(script));
        assert_eq!(text(&finished.stdout), "fine\n");
        assert_eq!(listing(&root), before);
    });
}

#[test]
fn grants_lie_on_the_image_also_where_it_has_no_place_for_them() {
    as_each_user(|| {
        let root = root();
        let (read, write) = (Folder::outside(), Folder::outside());
        read.write("given", "given");
        let before = listing(&root);
        let mut confinement = inside(&root);
        confinement.readable.push(read.to_path_buf());
        confinement.writable.push(write.to_path_buf());
        let (read, write) = (read.display(), write.display());
        let script = format!(
            "cat {read}/given; (echo x > {read}/x) 2>/dev/null && echo bad; \
             echo made > {write}/made; (echo x > {write}/.bashrc) 2>/dev/null && echo planted; \
             (echo x > {write}/../x) 2>/dev/null && echo bad; ls /var /var/lib"
        );
        let said = output_of(&launcher(), &confinement, &shell(&script));
        assert_eq!(said, "given/var:\nlib\ntmp\n\n/var/lib:\ndeep\n");
        let made = std::fs::read_to_string(format!("{write}/made")).unwrap();
        assert_eq!(made, "made\n");
        assert_eq!(listing(&root), before);
    });
}

#[test]
fn a_grant_that_the_image_bends_elsewhere_is_refused() {
    as_each_user(|| {
        let (root, granted) = (root(), Folder::outside());
        std::fs::remove_dir_all(root.join("var")).unwrap();
        symlink("/opt", root.join("var")).unwrap();
        let mut confinement = inside(&root);
        confinement.writable.push(granted.to_path_buf());
        let refused = launcher().spawn(&confinement, &shell("true")).unwrap_err();
        assert!(told(&refused).contains("grant"), "{}", told(&refused));
    });
}

#[test]
fn no_way_up_leads_out_of_the_root() {
    as_each_user(|| {
        let (root, outside) = (root(), Folder::outside());
        let victim = outside.write("victim", "");
        set_mode(&victim, 0o600);
        let victim = victim.display();
        let script = format!(
            "ls -A / > /tmp/here; ls -A /.. > /tmp/up; cmp /tmp/here /tmp/up && echo same; \
             chmod 777 /..{victim} 2>/dev/null && echo changed; touch /..{victim} 2>/dev/null && echo touched; \
             ls -d /..{victim} /../../..{victim} 2>/dev/null; \
             cut -d' ' -f5 /proc/self/mountinfo | grep -c '^/$'"
        );
        let finished = run(&launcher(), &inside(&root), &shell(&script));
        assert_eq!(text(&finished.stdout), "same\n1\n");
        assert_eq!(std::fs::metadata(outside.join("victim")).unwrap().mode() & 0o777, 0o600);
    });
}

#[test]
fn a_link_of_the_image_leads_nowhere_outside() {
    as_each_user(|| {
        let (root, outside) = (root(), Folder::outside());
        let secret = outside.write("secret", "secret");
        symlink(&secret, root.join("opt/absolute")).unwrap();
        symlink(format!("../../../../..{}", secret.display()), root.join("opt/up")).unwrap();
        symlink("/proc/1/root", root.join("opt/process")).unwrap();
        let script = "cat /opt/absolute /opt/up /opt/process/etc/shadow 2>/dev/null; echo end";
        let finished = run(&launcher(), &inside(&root), &shell(script));
        assert_eq!(text(&finished.stdout), "end\n");
    });
}

#[test]
fn the_network_is_empty_and_the_proxy_can_be_there() {
    as_each_user(|| {
        let root = root();
        let script = "cat /proc/net/dev | grep :";
        let said = output_of(&launcher(), &inside(&root), &shell(script));
        assert!(said.trim_start().starts_with("lo:") && said.lines().count() == 1, "{said}");
        let confinement = Confinement { network: Network::Allow, ..inside(&root) };
        let mut child = launcher().spawn(&confinement, &shell("cat /proc/net/tcp")).unwrap();
        let listener = child.take_network().unwrap();
        let said = text(&child.finish(b"").unwrap().stdout);
        drop(listener);
        assert!(said.contains("0100007F:0C38"), "{said}");
    });
}

#[test]
fn limits_hold_and_the_deadline_too() {
    as_each_user(|| {
        let root = root();
        let mut confinement = inside(&root);
        confinement.limits.deadline = Some(Duration::from_millis(300));
        let finished = run(&launcher(), &confinement, &shell("sleep 60 & sleep 60"));
        assert_eq!(finished.ended.exit, Exit::Deadline);
        let mut confinement = inside(&root);
        confinement.limits.output = Some(1000);
        let finished = run(&launcher(), &confinement, &shell("while :; do echo yes; done"));
        assert_eq!(finished.ended.exit, Exit::Output);
    });
}

#[test]
fn what_is_no_plain_folder_is_no_root() {
    as_each_user(|| {
        let (root, other) = (root(), Folder::outside());
        symlink(&*root, other.join("link")).unwrap();
        let spawn = |path: &Path| launcher().spawn(&inside(path), &shell("true"));
        assert!(matches!(spawn(&other.join("link")), Err(SpawnError::Link(_))));
        assert!(matches!(spawn(&other.join("missing")), Err(SpawnError::Missing(..))));
        assert!(matches!(spawn(Path::new("/")), Err(SpawnError::BadPath(_))));
        assert!(matches!(spawn(Path::new("/proc")), Err(SpawnError::Own(_))));
        assert!(spawn(&root.join("etc/passwd")).is_err());
        // The program must be in it.
        assert!(launcher().spawn(&inside(&root), &words(["/usr/bin/python3"])).is_err());
    });
}
