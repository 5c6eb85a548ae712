//! Images that others made: `umoci` packs and repacks them, `skopeo` copies them from form to form.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use image::{Code, Digest, Image, Store};
use kit::files;
use serde_json::Value;

/// A folder with a layout that umoci has made, of two layers; the second takes something away.
struct Made {
    folder: tempfile::TempDir,
    digest: Digest,
}

impl Made {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (layout, root) = (at("layout"), at("root"));
        let image = format!("{layout}:tool");
        run(&["umoci", "init", "--layout", &layout]);
        run(&["umoci", "new", "--image", &image]);
        let new = folder.path().join("new");
        std::fs::create_dir_all(new.join("opt/gone/deep")).unwrap();
        std::fs::create_dir_all(new.join("opt/emptied/inner")).unwrap();
        for name in ["opt/kept", "opt/gone/deep/file", "opt/emptied/inner/file", "opt/changed"] {
            std::fs::write(new.join(name), "first").unwrap();
        }
        std::fs::write(new.join("opt/run"), "#!/bin/sh\n").unwrap();
        let mode = std::fs::Permissions::from_mode(0o4755);
        std::fs::set_permissions(new.join("opt/run"), mode).unwrap();
        std::fs::hard_link(new.join("opt/kept"), new.join("opt/twin")).unwrap();
        symlink("/opt/kept", new.join("link")).unwrap();
        run(&["umoci", "insert", "--rootless", "--image", &image, &at("new"), "/"]);
        run(&["umoci", "unpack", "--rootless", "--image", &image, &root]);
        let inside = folder.path().join("root/rootfs");
        std::fs::remove_dir_all(inside.join("opt/gone")).unwrap();
        std::fs::remove_dir_all(inside.join("opt/emptied/inner")).unwrap();
        std::fs::write(inside.join("opt/changed"), "second").unwrap();
        std::fs::write(inside.join("opt/emptied/new"), "second").unwrap();
        run(&["umoci", "repack", "--image", &image, &root]);
        run(&[
            "umoci",
            "config",
            "--image",
            &image,
            "--config.env",
            "COLOUR=blue",
            "--config.workingdir",
            "/opt",
            "--config.entrypoint",
            "/opt/run",
            "--config.user",
            "7:7",
        ]);
        let digest = first_digest(Path::new(&layout));
        Self { folder, digest }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Copies it into another form.
    fn copy(&self, options: &[&str], to: &str) {
        let from = format!("oci:{}:tool", self.at("layout").display());
        let to = to.replace("HERE", self.folder.path().to_str().unwrap());
        let start = ["skopeo", "--insecure-policy", "copy", "-q"];
        run(&[&start[..], options, &[&from, &to]].concat());
    }

    fn unpack(&self, from: &Path, digest: &Digest, images: &str) -> Image {
        let store = Store::at(self.at(images));
        let found = store.find(digest, &[from]).unwrap().expect("the image is there");
        store.unpack(found, &|| false).unwrap()
    }
}

/// Runs a program that must end well.
fn run(argv: &[&str]) -> String {
    let output = Command::new(argv[0]).args(&argv[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", argv[0]));
    assert!(output.status.success(), "{argv:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn first_digest(layout: &Path) -> Digest {
    let index = json(&layout.join("index.json"));
    Digest::parse(index["manifests"][0]["digest"].as_str().unwrap()).unwrap()
}

/// What every form of the image becomes.
fn assert_is_it(image: &Image) {
    let mut found = files(&image.root);
    found.retain(|name, _| name.starts_with("opt") || name == "link");
    let found: Vec<_> = found.iter().map(|(name, what)| (name.as_str(), what.as_str())).collect();
    let expected = [
        ("link", "-> /opt/kept"),
        ("opt", "/"),
        ("opt/changed", "second"),
        ("opt/emptied", "/"),
        ("opt/emptied/new", "second"),
        ("opt/kept", "first"),
        ("opt/run", "#!/bin/sh\n"),
        ("opt/twin", "first"),
    ];
    assert_eq!(found, expected);
    assert_eq!(image.settings.folder.as_deref(), Some("/opt"));
    assert_eq!(image.settings.entrypoint, ["/opt/run"]);
    assert_eq!(image.settings.user.as_deref(), Some("7:7"));
    assert!(image.settings.environment.contains(&("COLOUR".into(), "blue".into())));
}

#[test]
fn a_layout_of_umoci_becomes_what_umoci_makes_of_it() {
    let made = Made::new();
    let layout = made.at("layout");
    assert_is_it(&made.unpack(&layout, &made.digest, "one"));
    // The layout may also lie in the folder that is looked at.
    assert_is_it(&made.unpack(made.folder.path(), &made.digest, "two"));
    let theirs = made.at("theirs");
    let image = format!("{}:tool", layout.display());
    run(&["umoci", "unpack", "--rootless", "--image", &image, theirs.to_str().unwrap()]);
    let ours = made.unpack(&layout, &made.digest, "one").root;
    let listing = |root: &Path| {
        let text = run(&[
            "sh",
            "-c",
            &format!("cd '{}' && find . -printf '%P %y %l %s\\n' | sort", root.display()),
        ]);
        let own = ["proc ", "dev ", "tmp ", "etc", " d"];
        let lines = text.lines().filter(|line| !own.iter().any(|own| line.starts_with(own)));
        // Sizes of folders are the file system's.
        lines
            .map(|line| line.replace(" d  ", " d "))
            .filter(|line| !line.contains(" d "))
            .collect::<Vec<_>>()
    };
    assert_eq!(listing(&ours), listing(&theirs.join("rootfs")));
}

#[test]
fn every_form_that_skopeo_writes_becomes_the_same() {
    let made = Made::new();
    made.copy(&[], "oci-archive:HERE/layout.tar:tool");
    assert_is_it(&made.unpack(&made.at("layout.tar").with_file_name("."), &made.digest, "tar"));
    std::fs::remove_dir_all(made.at("layout")).unwrap();
    assert_is_it(&made.unpack(made.folder.path(), &made.digest, "tar-alone"));
}

#[test]
fn layers_of_zstandard_and_of_no_packing_become_the_same() {
    let made = Made::new();
    made.copy(&["--dest-compress", "--dest-compress-format", "zstd"], "oci:HERE/zstd:tool");
    let digest = first_digest(&made.at("zstd"));
    assert_is_it(&made.unpack(&made.at("zstd"), &digest, "zstd-images"));
    made.copy(&["--dest-decompress", "--format", "v2s2"], "dir:HERE/plain");
    // That form is no layout; its manifest speaks the older dialect, which layouts may hold too.
    let plain = made.at("plain");
    let layout = made.at("docker");
    std::fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
    std::fs::write(layout.join("oci-layout"), "{}").unwrap();
    for entry in std::fs::read_dir(&plain).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let name = Digest::of(&bytes).digits().to_owned();
        std::fs::write(layout.join("blobs/sha256").join(name), bytes).unwrap();
    }
    let digest = Digest::of(&std::fs::read(plain.join("manifest.json")).unwrap());
    assert_is_it(&made.unpack(&layout, &digest, "docker-images"));
}

#[test]
fn an_archive_of_docker_is_known_by_the_id_of_its_image() {
    let made = Made::new();
    std::fs::create_dir(made.at("saved")).unwrap();
    made.copy(&[], "docker-archive:HERE/saved/image.tar:tool:1");
    let listed =
        run(&["tar", "-xOf", made.at("saved/image.tar").to_str().unwrap(), "manifest.json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed[0]["Config"].as_str().unwrap().strip_suffix(".json").unwrap().to_owned();
    let id = Digest::parse(&format!("sha256:{id}")).unwrap();
    assert_is_it(&made.unpack(&made.at("saved"), &id, "images"));
    // The digest of the manifest is not in there.
    let store = Store::at(made.at("images"));
    assert!(store.find(&made.digest, &[&made.at("saved")]).unwrap().is_none());
    // One byte of a layer changed.
    let path = made.at("saved/image.tar");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(6).position(|window| window == b"second").unwrap();
    bytes[at] = b'S';
    std::fs::write(&path, bytes).unwrap();
    let other = Store::at(made.at("other"));
    let found = other.find(&id, &[&made.at("saved")]).unwrap().unwrap();
    assert_eq!(other.unpack(found, &|| false).unwrap_err().code(), Some(Code::DigestMismatch));
}
