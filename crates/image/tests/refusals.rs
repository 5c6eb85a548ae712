//! Hostile images: each is refused with its own code, and leaves nothing.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use image::{Code, Digest, Limits, Source};
use kit::{Layout, TAR, TAR_GZIP, TAR_ZSTD, Tar, config, gzip, zstd};
use serde_json::json;

/// The code with which an image of one layer is refused. A file beside it must stay what it is.
fn refused(layer: Tar) -> Code {
    let layout = Layout::new();
    let outside = layout.path().join("outside");
    std::fs::write(&outside, "untouched").unwrap();
    let code = layout.refused(&layout.image(&[layer.bytes()]));
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "untouched");
    code
}

fn refused_within(limits: Limits, layers: &[Tar]) -> Code {
    let layout = Layout::new();
    let layers: Vec<_> = layers.iter().map(|layer| layer.clone().bytes()).collect();
    let store = layout.store().with_limits(limits);
    let digest = layout.image(&layers);
    let error = layout.unpack_into(&store, &digest).unwrap_err();
    layout.assert_nothing_left();
    error.code().unwrap()
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in ["../x", "a/../../x", "..", "a/..", "/../x", "./../x"] {
        assert_eq!(refused(Tar::default().file(name, "x")), Code::ParentSegment, "{name}");
        assert_eq!(refused(Tar::default().folder(name)), Code::ParentSegment, "{name}");
    }
    let by_pax = Tar::default().extended(&[("path", "../../x")], b'x').file("a", "x");
    assert_eq!(refused(by_pax), Code::ParentSegment);
    assert_eq!(refused(Tar::default().file("", "x")), Code::EmptyName);
    let nul = Tar::default().extended(&[("path", "a\0b")], b'x').file("a", "x");
    assert_eq!(refused(nul), Code::NulByte);
}

#[test]
fn links_that_lead_out_lead_nowhere() {
    let layout = Layout::new();
    let outside = layout.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let text = outside.to_str().unwrap();
    let layer = Tar::default()
        .symlink("absolute", text)
        .file("absolute/planted", "x")
        .symlink("upwards", "../../../../../../../../../..")
        .file(&format!("upwards{text}/planted"), "x")
        .symlink("file", &format!("{text}/planted"))
        .file("file", "replaced");
    let image = layout.unpack(&layout.image(&[layer.bytes()])).unwrap();
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    let inside = image.root.join(outside.strip_prefix("/").unwrap()).join("planted");
    assert_eq!(std::fs::read_to_string(inside).unwrap(), "x");
    assert_eq!(std::fs::read_to_string(image.root.join("file")).unwrap(), "replaced");
}

#[test]
fn hard_links_to_the_outside_are_refused() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    let outside = outside.path().to_str().unwrap();
    assert_eq!(refused(Tar::default().hard_link("a", "../../outside")), Code::ParentSegment);
    // From the root of the image this is nothing.
    assert_eq!(refused(Tar::default().hard_link("a", outside)), Code::LinkTarget);
    assert_eq!(refused(Tar::default().hard_link("a", "missing/file")), Code::LinkTarget);
    assert_eq!(refused(Tar::default().folder("d").hard_link("a", "d")), Code::LinkTarget);
    assert_eq!(refused(Tar::default().hard_link("a", "/")), Code::LinkTarget);
    let through = Tar::default().symlink("out", "/etc").hard_link("a", "out/passwd");
    assert_eq!(refused(through), Code::LinkTarget);
    // The target must make room for its own name.
    assert_eq!(refused(Tar::default().file("d/f", "x").hard_link("d", "d/f")), Code::LinkTarget);
    assert_eq!(refused(Tar::default().symlink("a", "")), Code::LinkTarget);
}

#[test]
fn whiteouts_of_what_is_no_name_are_refused() {
    for name in [".wh.", ".wh..", ".wh...", "a/.wh..."] {
        assert_eq!(refused(Tar::default().file(name, "")), Code::BadWhiteout, "{name}");
    }
    assert_eq!(refused(Tar::default().file("../.wh.x", "")), Code::ParentSegment);
    assert_eq!(refused(Tar::default().file("../.wh..wh..opq", "")), Code::ParentSegment);
}

#[test]
fn a_whiteout_through_a_link_stays_inside() {
    let layout = Layout::new();
    let outside = layout.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "x").unwrap();
    let text = outside.to_str().unwrap();
    let below = Tar::default().symlink("out", text).bytes();
    let above = Tar::default().file("out/.wh.kept", "").file("out/.wh..wh..opq", "").bytes();
    layout.unpack(&layout.image(&[below, above])).unwrap();
    assert!(outside.join("kept").exists());
}

#[test]
fn loops_and_files_as_folders_are_refused() {
    let two = Tar::default().symlink("a", "b").symlink("b", "a").file("a/x", "x");
    assert_eq!(refused(two), Code::LinkLoop);
    let itself = Tar::default().symlink("a", "a/b").file("a/x", "x");
    assert_eq!(refused(itself), Code::LinkLoop);
    assert_eq!(refused(Tar::default().file("a", "x").file("a/b", "x")), Code::FileAsParent);
}

#[test]
fn damaged_archives_are_refused() {
    let layout = Layout::new();
    let whole = Tar::default().file("a", "text").bytes();
    let mut wrong_sum = whole.clone();
    wrong_sum[0] = b'b';
    let mut odd_size = whole.clone();
    odd_size[124] = b'9';
    for layer in
        [whole[..300].to_vec(), whole[..514].to_vec(), b"no tar".to_vec(), wrong_sum, odd_size]
    {
        assert_eq!(layout.refused(&layout.image(&[layer])), Code::BadTar);
    }
    for kind in *b"SDMVZ" {
        assert_eq!(refused(Tar::default().entry(kind, "a", "", 0o644, b"")), Code::UnknownEntry);
    }
    let holes = Tar::default().extended(&[("GNU.sparse.major", "1")], b'x').file("a", "x");
    assert_eq!(refused(holes), Code::UnknownEntry);
    for records in [&[("path", "x")][..], &[("size", "1")], &[("linkpath", "x")]] {
        assert_eq!(refused(Tar::default().extended(records, b'g').file("a", "x")), Code::BadTar);
    }
    let size = Tar::default().extended(&[("size", "-1")], b'x').file("a", "x");
    assert_eq!(refused(size), Code::BadTar);
    let folder = Tar::default().entry(b'5', "a", "", 0o755, b"content");
    assert_eq!(refused(folder), Code::BadTar);
    for kind in *b"05xL" {
        let mut endless = Tar::default();
        endless.block(kind, b"a", b"", 0o644, u64::MAX);
        assert_eq!(refused(endless), Code::BadTar);
    }
}

#[test]
fn limits_hold() {
    let limits =
        Limits { entries: 3, file_bytes: 1000, total_bytes: 8192, layers: 2, ..Limits::DEFAULT };
    let file = |name: &str, size: usize| Tar::default().file(name, &"x".repeat(size));
    let many = Tar::default().file("a", "").file("b", "");
    assert_eq!(refused_within(limits, &[many.clone(), many]), Code::TooManyEntries);
    assert_eq!(refused_within(limits, &[file("a", 1001)]), Code::FileTooLarge);
    let wide = Limits { file_bytes: 1 << 20, ..limits };
    assert_eq!(refused_within(wide, &[file("a", 3000), file("a", 3000)]), Code::TotalTooLarge);
    assert_eq!(
        refused_within(limits, &[file("a", 1), file("b", 1), file("c", 1)]),
        Code::TooManyLayers
    );
    let wide = (0..510).fold(Tar::default(), |tar, index| tar.file(&format!("f{index}"), ""));
    assert_eq!(refused(wide), Code::RootTooWide);
    let small = Limits { document_bytes: 100, ..Limits::DEFAULT };
    assert_eq!(refused_within(small, &[file("a", 1)]), Code::DocumentTooLarge);
    let deep = "d/".repeat(65) + "f";
    assert_eq!(refused(Tar::default().file(&deep, "")), Code::PathTooDeep);
    assert_eq!(refused(Tar::default().file(&"n".repeat(256), "")), Code::PathTooLong);
    let long = format!("{}f", "n/".repeat(2048));
    assert_eq!(refused(Tar::default().file(&long, "")), Code::PathTooLong);
    // Deep by links, too: each step goes down once more.
    let mut ladder = Tar::default().folder(&"d/".repeat(40)).symlink("l", &"d/".repeat(40));
    ladder = ladder.file(&format!("l/{}f", "e/".repeat(30)), "x");
    assert_eq!(refused(ladder), Code::PathTooDeep);
}

#[test]
fn folders_that_nobody_names_count_too() {
    let limits = Limits { entries: 20, ..Limits::DEFAULT };
    let deep = Tar::default().file(&format!("{}f", "d/".repeat(30)), "");
    assert_eq!(refused_within(limits, &[deep]), Code::TooManyEntries);
}

#[test]
fn little_that_makes_much_work_is_refused() {
    let limits = Limits { steps: 5_000, ..Limits::DEFAULT };
    let folder = |tar: Tar| (0..100).fold(tar, |tar, index| tar.file(&format!("d/{index}"), ""));
    let repeated =
        |name: &str, times| (0..times).fold(folder(Tar::default()), |tar, _| tar.file(name, ""));
    assert_eq!(refused_within(limits, &[repeated(".wh.d", 100)]), Code::TooMuchWork);
    let mut links = Tar::default().symlink("l", &"x/../".repeat(500)).folder("x");
    links = (0..10).fold(links, |tar, index| tar.file(&format!("l/{index}"), ""));
    assert_eq!(refused_within(limits, &[links]), Code::TooMuchWork);
    // Said once, a folder is opaque; to say it again is no work.
    let layout = Layout::new();
    let digest = layout.image(&[repeated("d/.wh..wh..opq", 1000).bytes()]);
    layout.unpack_into(&layout.store().with_limits(limits), &digest).unwrap();
}

#[test]
fn many_small_bombs_are_one() {
    let limits = Limits { ratio_free_bytes: 1 << 20, ..Limits::DEFAULT };
    let layer = |name: &str| {
        let mut plain = Tar::default().file(name, "x").bytes();
        plain.resize(700 << 10, 0);
        (TAR_GZIP, gzip(&plain), plain)
    };
    let refused = |layers: &[(&str, Vec<u8>, Vec<u8>)]| {
        let layout = Layout::new();
        let digest = layout.image_of(layers, &json!({}));
        let unpacked = layout.unpack_into(&layout.store().with_limits(limits), &digest);
        unpacked.err().and_then(|error| error.code())
    };
    assert_eq!(refused(&[layer("a")]), None);
    assert_eq!(refused(&[layer("a"), layer("b")]), Some(Code::Bomb));
    // The same layer again takes no room of its own.
    let mut noise = Tar::default().file("n", "").bytes();
    let mut state = 1_u32;
    noise.extend(
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .take(12 << 10),
    );
    let noisy = (TAR_GZIP, gzip(&noise), noise);
    let twice = [noisy.clone(), layer("a"), layer("b")];
    assert_eq!(refused(&twice), None);
    let again = [noisy, layer("a"), layer("a"), layer("a"), layer("a")];
    assert_eq!(refused(&again), Some(Code::Bomb));
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    // Zeros between the entries and the end are content too.
    let mut plain = Tar::default().file("a", "x").bytes();
    plain.resize(200 << 20, 0);
    for (kind, packed) in [(TAR_GZIP, gzip(&plain)), (TAR_ZSTD, zstd(&plain))] {
        assert!(packed.len() < 1 << 20);
        let layout = Layout::new();
        let digest = layout.image_of(&[(kind, packed, plain.clone())], &json!({}));
        assert_eq!(layout.refused(&digest), Code::Bomb, "{kind}");
    }
}

#[test]
fn a_frame_that_wants_much_memory_is_refused() {
    let plain = Tar::default().file("a", "x").bytes();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(30).unwrap();
    encoder.include_contentsize(false).unwrap();
    std::io::Write::write_all(&mut encoder, &plain).unwrap();
    let packed = encoder.finish().unwrap();
    let layout = Layout::new();
    let digest = layout.image_of(&[(TAR_ZSTD, packed, plain)], &json!({}));
    assert_eq!(layout.refused(&digest), Code::BadCompression);
}

#[test]
fn bytes_must_be_what_was_promised() {
    let plain = Tar::default().file("a", "x").bytes();
    let other = Tar::default().file("a", "y").bytes();
    // The layer was exchanged.
    let layout = Layout::new();
    let digest = layout.image(std::slice::from_ref(&plain));
    std::fs::write(layout.blob(&Digest::of(&plain)), &other).unwrap();
    assert_eq!(layout.refused(&digest), Code::DigestMismatch);
    std::fs::write(layout.blob(&Digest::of(&plain)), [&plain[..], b"more"].concat()).unwrap();
    assert_eq!(layout.refused(&digest), Code::SizeMismatch);
    std::fs::remove_file(layout.blob(&Digest::of(&plain))).unwrap();
    assert_eq!(layout.refused(&digest), Code::MissingBlob);
    // What comes out is not what the settings say.
    let layout = Layout::new();
    let digest = layout.image_of(&[(TAR_GZIP, gzip(&plain), other)], &json!({}));
    assert_eq!(layout.refused(&digest), Code::DigestMismatch);
    // Broken compression, or another one than was said.
    for (kind, bytes) in [
        (TAR_GZIP, zstd(&plain)),
        (TAR_ZSTD, gzip(&plain)),
        (TAR_GZIP, gzip(&plain)[..40].to_vec()),
    ] {
        let digest = layout.image_of(&[(kind, bytes, plain.clone())], &json!({}));
        assert_eq!(layout.refused(&digest), Code::BadCompression, "{kind}");
    }
    // Something follows the layer.
    let digest = layout.image_of(
        &[(TAR_GZIP, [gzip(&plain), b"tail".to_vec()].concat(), plain.clone())],
        &json!({}),
    );
    assert_eq!(layout.refused(&digest), Code::BadCompression);
    // The manifest was exchanged.
    let digest = layout.image(&[plain]);
    std::fs::write(layout.blob(&digest), b"{}").unwrap();
    assert_eq!(layout.refused(&digest), Code::DigestMismatch);
}

#[test]
fn documents_must_fit_together() {
    let layout = Layout::new();
    let plain = Tar::default().file("a", "x").bytes();
    let layer = layout.describe(TAR, &plain);
    let settings = config([&plain].into_iter(), &json!({}));
    let settings = layout.describe("application/vnd.oci.image.config.v1+json", &settings);
    let manifest = |config: &serde_json::Value, layers: &[&serde_json::Value]| {
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
        layout.refused(&layout.add(manifest.to_string().as_bytes()))
    };
    assert_eq!(manifest(&settings, &[&layer, &layer]), Code::LayersDisagree);
    let changed = |value: &serde_json::Value, key: &str, with: serde_json::Value| {
        let mut value = value.clone();
        value[key] = with;
        value
    };
    let strange = changed(&layer, "mediaType", json!("application/vnd.example.layer"));
    assert_eq!(manifest(&settings, &[&strange]), Code::UnknownMediaType);
    let artifact = changed(&settings, "mediaType", json!("application/vnd.example.config"));
    assert_eq!(manifest(&artifact, &[&layer]), Code::UnknownMediaType);
    let weak = changed(&layer, "digest", json!("md5:00"));
    assert_eq!(manifest(&settings, &[&weak]), Code::UnknownDigest);
    let path = changed(&layer, "digest", json!(format!("sha256:{}", "../".repeat(21) + "x")));
    assert_eq!(manifest(&settings, &[&path]), Code::UnknownDigest);
    let short = changed(&settings, "size", json!(3));
    assert_eq!(manifest(&short, &[&layer]), Code::SizeMismatch);
    let foreign = json!({"os": "linux", "architecture": "s390x", "rootfs": {"diff_ids": []}});
    let foreign = foreign.to_string();
    let foreign = layout.describe("application/vnd.oci.image.config.v1+json", foreign.as_bytes());
    assert_eq!(manifest(&foreign, &[]), Code::WrongPlatform);
    for text in ["", "[]", "{\"schemaVersion\":1}", "{\"schemaVersion\":2}", "\u{feff}{}"] {
        assert_eq!(layout.refused(&layout.add(text.as_bytes())), Code::BadDocument, "{text}");
    }
}

#[test]
fn variables_of_an_image_are_few() {
    let layout = Layout::new();
    let image = |variables: Vec<String>| layout.image_of(&[], &json!({ "Env": variables }));
    let many = |count: usize| (0..count).map(|at| format!("V{at}=x")).collect();
    assert_eq!(layout.refused(&image(many(1025))), Code::TooManyVariables);
    let long = |length: usize| vec![format!("A={}", "x".repeat(length)), "B=".to_owned()];
    assert_eq!(layout.refused(&image(long(256 << 10))), Code::TooManyVariables);
    for fine in [many(1024), long(255 << 10)] {
        layout.unpack(&image(fine)).unwrap();
    }
}

#[test]
fn an_archive_with_more_names_than_an_image_has_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image.tar");
    let is_image = |tar: Tar| {
        std::fs::write(&path, tar.bytes()).unwrap();
        Source::open(&path, &Limits::DEFAULT).is_some()
    };
    let start = || Tar::default().file("oci-layout", "{}");
    let folders = |count: usize| (0..count).fold(start(), |tar, at| tar.folder(&format!("{at}/")));
    assert!(is_image(folders(4095)));
    assert!(!is_image(folders(4096)), "folders count too");
    let named = |length: usize| start().extended(&[("path", &"n".repeat(length))], b'x');
    assert!(is_image(named(4096).file("a", "")));
    assert!(!is_image(named(4097).file("a", "")));
    assert!(!is_image(
        start()
            .symlink("a", "b")
            .file("c", "")
            .extended(&[("linkpath", &"n".repeat(4097))], b'x')
            .symlink("d", "e")
    ));
    // Nor may there be endless headers without a file.
    let comments = |count: usize| {
        let long = "x".repeat(1 << 19);
        (0..count).fold(start(), |tar, _| tar.extended(&[("comment", &long)], b'x')).file("a", "")
    };
    assert!(is_image(comments(15)));
    assert!(!is_image(comments(16)));
}
