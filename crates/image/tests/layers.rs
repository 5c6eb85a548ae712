//! Layers upon layers: what an image becomes.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use image::{Digest, Keeping, Store};
use kit::{Layout, TAR, TAR_GZIP, TAR_ZSTD, Tar, files, gzip, own_files, zstd};
use serde_json::json;

fn unpacked(layers: &[Tar]) -> Vec<(String, String)> {
    let layout = Layout::new();
    let layers: Vec<_> = layers.iter().map(|layer| layer.clone().bytes()).collect();
    let image = layout.unpack(&layout.image(&layers)).unwrap();
    own_files(&image).into_iter().collect()
}

fn listed(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, what)| ((*name).to_owned(), (*what).to_owned())).collect()
}

#[test]
fn a_later_layer_replaces_and_adds() {
    let below = Tar::default().folder("a/").file("a/old", "1").file("a/both", "1").file("b", "1");
    let above = Tar::default()
        .file("a/both", "2")
        .file("./a/new", "2")
        .folder("b/")
        .file("b/is/a/folder", "2")
        .file("/c", "2");
    let expected = [
        ("a", "/"),
        ("a/both", "2"),
        ("a/new", "2"),
        ("a/old", "1"),
        ("b", "/"),
        ("b/is", "/"),
        ("b/is/a", "/"),
        ("b/is/a/folder", "2"),
        ("c", "2"),
    ];
    assert_eq!(unpacked(&[below, above]), listed(&expected));
}

#[test]
fn whiteouts_take_away_what_lies_below_and_nothing_else() {
    let below = Tar::default().file("a/one", "1").file("a/two", "1").file("b/deep/three", "1");
    let above = Tar::default().file("a/.wh.one", "").file(".wh.b", "").file(".wh.none", "");
    assert_eq!(unpacked(&[below, above]), listed(&[("a", "/"), ("a/two", "1")]));
}

#[test]
fn an_opaque_folder_hides_the_layers_below_wherever_it_stands() {
    let below = Tar::default().file("a/one", "1").file("a/sub/two", "1").file("b", "1");
    let opaque = |tar: Tar| tar.file("a/.wh..wh..opq", "");
    let first = opaque(Tar::default()).file("a/sub/new", "2");
    let last = opaque(Tar::default().file("a/sub/new", "2"));
    let expected = listed(&[("a", "/"), ("a/sub", "/"), ("a/sub/new", "2"), ("b", "1")]);
    assert_eq!(unpacked(&[below.clone(), first]), expected);
    assert_eq!(unpacked(&[below, last]), expected);
}

#[test]
fn notes_of_a_file_system_are_no_files() {
    let layer = Tar::default().file(".wh..wh.aufs", "x").folder(".wh..wh.plnk").file("a", "1");
    assert_eq!(unpacked(&[layer]), listed(&[("a", "1")]));
}

#[test]
fn a_link_that_is_used_as_a_folder_leads_inside() {
    let below = Tar::default()
        .folder("usr/lib/")
        .symlink("lib", "usr/lib")
        .symlink("run", "/var/run")
        .symlink("up", "../../../../../../usr");
    let above = Tar::default().file("lib/one", "1").file("run/two", "2").file("up/lib/three", "3");
    let expected = [
        ("lib", "-> usr/lib"),
        ("run", "-> /var/run"),
        ("up", "-> ../../../../../../usr"),
        ("usr", "/"),
        ("usr/lib", "/"),
        ("usr/lib/one", "1"),
        ("usr/lib/three", "3"),
        ("var", "/"),
        ("var/run", "/"),
        ("var/run/two", "2"),
    ];
    assert_eq!(unpacked(&[below, above]), listed(&expected));
}

#[test]
fn hard_links_are_one_file_and_symbolic_ones_stay_what_they_say() {
    let layout = Layout::new();
    let layer = Tar::default()
        .file("bin/one", "1")
        .hard_link("bin/two", "bin/one")
        .hard_link("three", "/bin/one")
        .symlink("passwords", "/etc/shadow");
    let image = layout.unpack(&layout.image(&[layer.bytes()])).unwrap();
    let inode = |name: &str| image.root.join(name).symlink_metadata().unwrap().ino();
    assert_eq!(inode("bin/one"), inode("bin/two"));
    assert_eq!(inode("bin/one"), inode("three"));
    assert_eq!(own_files(&image)["passwords"], "-> /etc/shadow");
}

#[test]
fn bits_of_other_users_are_dropped_and_devices_left_out() {
    let layout = Layout::new();
    let layer = Tar::default()
        .entry(b'0', "su", "", 0o6755, b"x")
        .entry(b'0', "secret", "", 0o4600, b"x")
        .entry(b'5', "closed", "", 0o1000, b"")
        .entry(b'3', "null", "", 0o666, b"")
        .entry(b'4', "disk", "", 0o666, b"")
        .entry(b'6', "pipe", "", 0o666, b"");
    let image = layout.unpack(&layout.image(&[layer.bytes()])).unwrap();
    assert_eq!(image.left_out, 3);
    let names: Vec<_> = own_files(&image).into_keys().collect();
    assert_eq!(names, ["closed", "secret", "su"]);
    let mode = |name: &str| image.root.join(name).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!([mode("su"), mode("secret"), mode("closed")], [0o755, 0o644, 0o755]);
}

#[test]
fn long_names_of_both_kinds_are_read() {
    let long = "n".repeat(120);
    let gnu = Tar::default().file(&long, "gnu").symlink("gnu-link", &long);
    let pax = Tar::default()
        .folder(&long)
        .extended(&[("path", &format!("{long}/pax")), ("comment", "x")], b'x')
        .file("short", "pax");
    let found = unpacked(&[gnu, pax]);
    let link = format!("-> {long}");
    let inside = format!("{long}/pax");
    let expected = [("gnu-link", link.as_str()), (long.as_str(), "/"), (inside.as_str(), "pax")];
    assert_eq!(found, listed(&expected));
}

#[test]
fn an_archive_may_end_with_the_last_byte_of_its_last_file() {
    let layout = Layout::new();
    let mut whole = Tar::default().file("a", "1").file("b", "two").bytes();
    whole.truncate(512 * 3 + 3);
    let image = layout.unpack(&layout.image(&[whole])).unwrap();
    assert_eq!(own_files(&image)["b"], "two");
}

#[test]
fn every_packing_gives_the_same_files() {
    let plain = Tar::default().file("a/b", "text").bytes();
    let (first, second) = plain.split_at(700);
    let members = [gzip(first), gzip(second)].concat();
    let frames =
        [zstd(first), vec![0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2], zstd(second)].concat();
    for (kind, bytes) in [
        (TAR, plain.clone()),
        (TAR_GZIP, gzip(&plain)),
        (TAR_GZIP, members),
        (TAR_ZSTD, zstd(&plain)),
        (TAR_ZSTD, frames),
        ("application/vnd.docker.image.rootfs.diff.tar.gzip", gzip(&plain)),
    ] {
        let layout = Layout::new();
        let digest = layout.image_of(&[(kind, bytes, plain.clone())], &json!({}));
        let image = layout.unpack(&digest).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(own_files(&image)["a/b"], "text");
    }
}

#[test]
fn what_is_put_on_an_image_finds_its_places_and_settings_are_kept() {
    let layout = Layout::new();
    let layer = Tar::default()
        .symlink("tmp", "/var/tmp")
        .file("etc/hosts", "1")
        .symlink("etc/resolv.conf", "/run/x");
    let layer = layer.bytes();
    let settings = json!({
        "Env": ["PATH=/opt/bin:/bin", "A=B=C", "broken", "=x"], "WorkingDir": "/srv/app",
        "Entrypoint": ["/bin/run"], "Cmd": ["x"], "User": "app:app", "Volumes": {"/data": {}},
    });
    let digest = layout.image_of(&[(TAR, layer.clone(), layer)], &settings);
    let image = layout.unpack(&digest).unwrap();
    let found = files(&image.root);
    for name in ["proc", "dev", "tmp", "srv/app"] {
        assert_eq!(found[name], "/", "{name}");
    }
    assert_eq!(found["etc/hosts"], "1");
    assert_eq!(found["etc/resolv.conf"], "");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(image.settings.environment, [pair("PATH", "/opt/bin:/bin"), pair("A", "B=C")]);
    assert_eq!(image.settings.folder.as_deref(), Some("/srv/app"));
    assert_eq!(
        (image.settings.entrypoint, image.settings.command),
        (vec!["/bin/run".into()], vec!["x".into()])
    );
    assert_eq!(image.settings.user.as_deref(), Some("app:app"));
}

#[test]
fn programs_are_found_as_one_inside_would_find_them() {
    let layout = Layout::new();
    let layer = Tar::default()
        .entry(b'0', "usr/bin/busy", "", 0o755, b"x")
        .file("usr/bin/text", "x")
        .symlink("bin", "usr/bin")
        .symlink("usr/bin/sh", "/bin/busy")
        .symlink("usr/bin/up", "../../../../bin/./busy")
        .symlink("usr/bin/out", "/proc/self/exe")
        .symlink("usr/bin/loop", "loop");
    let image = layout.unpack(&layout.image(&[layer.bytes()])).unwrap();
    let find = |name: &str| image.program(name, "/none:relative:/bin", "/usr");
    for name in ["busy", "sh", "up"] {
        assert_eq!(find(name), Some(format!("/bin/{name}").into()));
    }
    assert_eq!(find("bin/sh"), Some("/usr/bin/sh".into()));
    assert_eq!(find("/bin/sh"), Some("/bin/sh".into()));
    // Above the root is the root.
    assert_eq!(find("/opt/../bin/sh"), None);
    assert_eq!(find("/usr/../bin/sh"), Some("/usr/bin/sh".into()));
    assert_eq!(find("../../../bin/busy"), Some("/usr/bin/busy".into()));
    for name in ["text", "out", "loop", "none", "../../bin/true", "/usr/bin", "/usr/.."] {
        assert_eq!(find(name), None, "{name}");
    }
}

#[test]
fn an_index_leads_to_the_image_for_this_machine() {
    let layout = Layout::new();
    let ours = layout.image(&[Tar::default().file("a", "ours").bytes()]);
    let size = layout.blob(&ours).metadata().unwrap().len();
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let manifest = |digest: &Digest, size: u64, os: &str, architecture: &str| {
        json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest.to_string(),
            "size": size, "platform": {"os": os, "architecture": architecture},
        })
    };
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            manifest(&Digest::of(b"x"), 1, "windows", architecture),
            manifest(&Digest::of(b"y"), 1, "linux", "s390x"),
            manifest(&ours, size, "linux", architecture),
        ],
    });
    let index = layout.add(index.to_string().as_bytes());
    let image = layout.unpack(&index).unwrap();
    assert_eq!(own_files(&image)["a"], "ours");
    assert!(image.root.ends_with(format!("sha256-{}/root", index.digits())));
    let foreign =
        json!({"schemaVersion": 2, "manifests": [manifest(&ours, size, "linux", "s390x")]});
    let foreign = layout.add(foreign.to_string().as_bytes());
    let refused = layout.store().find(&foreign, &[&layout.path()]).unwrap_err();
    assert_eq!(refused.code(), Some(image::Code::WrongPlatform));
}

#[test]
fn an_image_is_unpacked_once_and_found_without_its_source() {
    let layout = Layout::new();
    let digest = layout.image(&[Tar::default().file("a", "1").bytes()]);
    let image = layout.unpack(&digest).unwrap();
    let inode = image.root.metadata().unwrap().ino();
    std::fs::remove_dir_all(layout.path()).unwrap();
    let found = layout.store().find(&digest, &[]).unwrap().unwrap();
    assert!(found.is_unpacked());
    let again = layout.store().unpack(found, &|| false).unwrap();
    assert_eq!((again.root.metadata().unwrap().ino(), &again), (inode, &image));
    assert!(layout.store().find(&Digest::of(b"another"), &[]).unwrap().is_none());
}

#[test]
fn several_at_a_time_make_one_image_and_leftovers_go() {
    let layout = Layout::new();
    let digest = layout.image(&[Tar::default().file("a", &"x".repeat(1 << 20)).bytes()]);
    let images = layout.store().root_of(&digest);
    let images = images.parent().unwrap().parent().unwrap();
    std::fs::create_dir_all(images.join(".staging-killed/root")).unwrap();
    // A folder of that name which is no image is no image.
    std::fs::create_dir_all(layout.store().root_of(&digest)).unwrap();
    let store: Store = layout.store();
    std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..4).map(|_| scope.spawn(|| layout.unpack_into(&store, &digest).unwrap())).collect();
        let all: Vec<_> = all.into_iter().map(|one| one.join().unwrap()).collect();
        assert!(all.iter().all(|one| *one == all[0]));
    });
    let mut names: Vec<_> =
        std::fs::read_dir(images).unwrap().map(|one| one.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [format!("sha256-{}", digest.digits()).as_str()]);
}

/// An image on disk and who asks for it.
fn find(layout: &Layout, digest: &Digest) -> image::Found {
    layout.store().find(digest, &[&layout.path()]).unwrap().unwrap()
}

#[test]
fn whoever_unpacks_or_waits_can_be_called_off_and_holds_up_no_other_image() {
    let layout = Layout::new();
    let many = (0..2000).fold(Tar::default(), |tar, index| tar.file(&format!("d/{index}"), ""));
    let slow = layout.image(&[many.bytes()]);
    let other = layout.image(&[Tar::default().file("a", "1").bytes()]);
    let store = layout.store();
    let (stands, goes) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let asked = AtomicU32::new(0);
            store.unpack(find(&layout, &slow), &|| {
                // The first question comes before its turn, the others while it unpacks.
                if asked.fetch_add(1, Ordering::Relaxed) > 1 {
                    stands.store(true, Ordering::Relaxed);
                    while !goes.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    return true;
                }
                false
            })
        });
        while !stands.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        store.unpack(find(&layout, &other), &|| false).unwrap();
        let asked = AtomicU32::new(0);
        let waiting =
            store.unpack(find(&layout, &slow), &|| asked.fetch_add(1, Ordering::Relaxed) > 2);
        assert_eq!(waiting.unwrap_err().code(), Some(image::Code::CalledOff));
        goes.store(true, Ordering::Relaxed);
        assert_eq!(first.join().unwrap().unwrap_err().code(), Some(image::Code::CalledOff));
    });
    assert!(!store.find(&slow, &[&layout.path()]).unwrap().unwrap().is_unpacked());
    let images = store.root_of(&slow).parent().unwrap().parent().unwrap().to_owned();
    assert_eq!(std::fs::read_dir(images).unwrap().count(), 1, "only the other image");
}

#[test]
fn what_nobody_uses_goes_when_another_is_unpacked() {
    let layout = Layout::new();
    let unpack = |text: &str, keeping: Keeping| {
        let digest = layout.image(&[Tar::default().file("a", text).bytes()]);
        layout.unpack_into(&layout.store().keeping(keeping), &digest).unwrap();
        digest
    };
    let set_age = |digest: &Digest, days: u64| {
        let note = layout.store().root_of(digest).with_file_name("image.json");
        let note = std::fs::File::options().append(true).open(note).unwrap();
        note.set_modified(SystemTime::now() - Duration::from_hours(24 * days)).unwrap();
    };
    let is_there = |digest: &Digest| layout.store().root_of(digest).exists();
    let (old, middle) = (unpack("1", Keeping::DEFAULT), unpack("2", Keeping::DEFAULT));
    let fresh = unpack("3", Keeping::DEFAULT);
    set_age(&old, 31);
    set_age(&middle, 29);
    let found = layout.store().find(&middle, &[]).unwrap().unwrap();
    unpack("4", Keeping::DEFAULT);
    assert!(!is_there(&old) && is_there(&middle) && is_there(&fresh));
    // To find it is no use of it, to unpack it is.
    set_age(&middle, 2);
    let tight = Keeping { most_bytes: 0, ..Keeping::DEFAULT };
    layout.store().unpack(found, &|| false).unwrap();
    unpack("5", tight);
    assert!(is_there(&middle));
    set_age(&middle, 2);
    unpack("6", tight);
    assert!(!is_there(&middle) && is_there(&fresh), "what was used today stays");
    // It is unpacked again when it is wanted again.
    layout.unpack(&old).unwrap();
}

#[test]
fn an_archive_is_found_among_many_images() {
    let layout = Layout::new();
    let digest = layout.image(&[Tar::default().file("a", "1").bytes()]);
    let images = layout.store().root_of(&digest).parent().unwrap().parent().unwrap().to_owned();
    for index in 0..300 {
        let unpacked = images.join(format!("sha256-{index:064}"));
        std::fs::create_dir_all(&unpacked).unwrap();
        std::fs::write(unpacked.join("image.json"), "{}").unwrap();
    }
    std::fs::rename(layout.path(), images.join("zzz")).unwrap();
    assert!(layout.store().find(&digest, &[]).unwrap().is_some());
}
