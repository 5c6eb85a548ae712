//! A process that is killed while it unpacks leaves the image whole or not at all.
#![cfg(target_os = "linux")]

mod kit;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use image::{Digest, Store};
use kit::{Layout, Tar};

/// Set where this process only unpacks: the folder, the store and the digest.
const ROLE: &str = "HAFT_TEST_UNPACK";

#[test]
fn killed_at_any_moment_it_leaves_the_image_whole_or_not_at_all() {
    if let Ok(role) = std::env::var(ROLE) {
        let parts: Vec<_> = role.split('\n').collect();
        let store = Store::at(PathBuf::from(parts[1]));
        let digest = Digest::parse(parts[2]).unwrap();
        let found = store.find(&digest, &[Path::new(parts[0])]).unwrap().unwrap();
        store.unpack(found, &|| false).unwrap();
        return;
    }
    let layout = Layout::new();
    let mut layer = Tar::default();
    for index in 0..2000 {
        layer = layer.file(&format!("d{}/f{index}", index % 50), &"x".repeat(500));
    }
    let digest = layout.image(&[layer.bytes()]);
    let images = layout.store().root_of(&digest);
    let images = images.parent().unwrap().parent().unwrap().to_owned();
    for folders in [0, 10, 30, 50] {
        let role = format!("{}\n{}\n{digest}", layout.path().display(), images.display());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed_at_any_moment_it_leaves_the_image_whole_or_not_at_all"])
            .env(ROLE, role)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while unpacked(&images) < folders && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if let Some(found) = layout.store().find(&digest, &[]).unwrap() {
            let image = layout.store().unpack(found, &|| false).unwrap();
            assert_eq!(kit::own_files(&image).len(), 2050, "whole");
            std::fs::remove_dir_all(&images).unwrap();
        }
    }
    let image = layout.unpack(&digest).unwrap();
    assert_eq!(kit::own_files(&image).len(), 2050);
    let left = std::fs::read_dir(&images).unwrap().count();
    assert_eq!(left, 1, "the image and nothing else");
}

/// How many folders of the image are there that has no name yet.
fn unpacked(images: &Path) -> usize {
    let entries = std::fs::read_dir(images).into_iter().flatten().flatten();
    let staged = entries.filter(|one| one.file_name().as_encoded_bytes().starts_with(b".staging-"));
    let folders = staged.flat_map(|one| std::fs::read_dir(one.path().join("root")));
    folders.map(Iterator::count).max().unwrap_or(0)
}
