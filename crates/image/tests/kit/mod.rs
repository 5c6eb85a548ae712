//! Tars and images as a stranger would write them.
#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of it")]
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and this is no library"
)]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use image::{Code, Digest, Image, ImageError, Store};
use serde_json::{Value, json};

/// A tar in the making; nothing is checked.
#[derive(Default, Clone)]
pub struct Tar(Vec<u8>);

impl Tar {
    pub fn entry(mut self, kind: u8, name: &str, target: &str, mode: u32, content: &[u8]) -> Self {
        self.push(kind, name.as_bytes(), target.as_bytes(), mode, content);
        self
    }

    pub fn push(&mut self, kind: u8, name: &[u8], target: &[u8], mode: u32, content: &[u8]) {
        for (long, sign) in [(name, b'L'), (target, b'K')] {
            if long.len() > 100 {
                let text = [long, b"\0"].concat();
                self.block(sign, b"././@LongLink", b"", 0, text.len() as u64);
                self.content(&text);
            }
        }
        self.block(kind, name, target, mode, content.len() as u64);
        self.content(content);
    }

    /// A header, with the size in octal digits, or in GNU's way where these are too few.
    pub fn block(&mut self, kind: u8, name: &[u8], target: &[u8], mode: u32, size: u64) {
        let mut block = [0; 512];
        let put = |block: &mut [u8; 512], at: usize, bytes: &[u8]| {
            block[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(&mut block, 0, &name[..name.len().min(100)]);
        put(&mut block, 100, format!("{mode:07o}\0").as_bytes());
        put(&mut block, 108, b"0000000\x000000000\0");
        if size < 1 << 33 {
            put(&mut block, 124, format!("{size:011o}\0").as_bytes());
        } else {
            block[124] = 0x80;
            put(&mut block, 128, &size.to_be_bytes());
        }
        put(&mut block, 136, b"00000000000\0        ");
        block[156] = kind;
        put(&mut block, 157, &target[..target.len().min(100)]);
        put(&mut block, 257, b"ustar\x0000");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        put(&mut block, 148, format!("{sum:06o}\0 ").as_bytes());
        self.0.extend(block);
    }

    pub fn content(&mut self, content: &[u8]) {
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
    }

    pub fn file(self, name: &str, content: &str) -> Self {
        self.entry(b'0', name, "", 0o644, content.as_bytes())
    }

    pub fn folder(self, name: &str) -> Self {
        self.entry(b'5', name, "", 0o755, b"")
    }

    pub fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(b'2', name, target, 0o777, b"")
    }

    pub fn hard_link(self, name: &str, target: &str) -> Self {
        self.entry(b'1', name, target, 0o644, b"")
    }

    /// A file whose name, target or size is said in an extended header.
    pub fn extended(mut self, records: &[(&str, &str)], kind: u8) -> Self {
        let mut text = Vec::new();
        for (key, value) in records {
            let rest = format!(" {key}={value}\n");
            let length = (1..).map(|digits| rest.len() + digits);
            let length = length.into_iter().find(|all| all.to_string().len() + rest.len() == *all);
            text.extend(format!("{}{rest}", length.unwrap()).into_bytes());
        }
        self.push(kind, b"PaxHeaders/x", b"", 0o644, &text);
        self
    }

    pub fn bytes(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

pub const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
pub const TAR_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub const TAR_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";

/// A layout in a folder of its own, with a store beside it.
pub struct Layout {
    folder: tempfile::TempDir,
}

impl Layout {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("layout/blobs/sha256")).unwrap();
        let version = r#"{"imageLayoutVersion":"1.0.0"}"#;
        std::fs::write(folder.path().join("layout/oci-layout"), version).unwrap();
        Self { folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("layout")
    }

    pub fn store(&self) -> Store {
        Store::at(self.folder.path().join("images"))
    }

    pub fn blob(&self, digest: &Digest) -> PathBuf {
        self.path().join("blobs/sha256").join(digest.digits())
    }

    /// Adds bytes, and says what they are.
    pub fn add(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        std::fs::write(self.blob(&digest), bytes).unwrap();
        digest
    }

    /// Adds bytes, and describes them.
    pub fn describe(&self, media_type: &str, bytes: &[u8]) -> Value {
        let digest = self.add(bytes).to_string();
        json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() })
    }

    /// An image of plain layers.
    pub fn image(&self, layers: &[Vec<u8>]) -> Digest {
        let packed: Vec<_> = layers.iter().map(|one| (TAR, one.clone(), one.clone())).collect();
        self.image_of(&packed, &json!({}))
    }

    /// An image of layers, each with its kind, its bytes and what comes out of it, and settings.
    pub fn image_of(&self, layers: &[(&str, Vec<u8>, Vec<u8>)], settings: &Value) -> Digest {
        let config = config(layers.iter().map(|(_, _, plain)| plain), settings);
        let config = self.describe("application/vnd.oci.image.config.v1+json", &config);
        let layers = layers.iter().map(|(kind, bytes, _)| self.describe(kind, bytes));
        let manifest = json!({
            "schemaVersion": 2, "config": config, "layers": layers.collect::<Vec<_>>(),
        });
        self.add(manifest.to_string().as_bytes())
    }

    pub fn unpack(&self, digest: &Digest) -> Result<Image, ImageError> {
        self.unpack_into(&self.store(), digest)
    }

    pub fn unpack_into(&self, store: &Store, digest: &Digest) -> Result<Image, ImageError> {
        let found = store.find(digest, &[&self.path()])?;
        store.unpack(found.expect("the image is there"), &|| false)
    }

    /// The code with which an image is refused; nothing of it may be left.
    pub fn refused(&self, digest: &Digest) -> Code {
        let error = self.unpack(digest).expect_err("the image must be refused");
        self.assert_nothing_left();
        error.code().unwrap_or_else(|| panic!("{error}: {error:?}"))
    }

    pub fn assert_nothing_left(&self) {
        let images = self.folder.path().join("images");
        let left: Vec<_> = std::fs::read_dir(images).into_iter().flatten().flatten().collect();
        let left: Vec<_> = left.iter().map(std::fs::DirEntry::file_name).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The settings of an image for this machine.
pub fn config<'l>(layers: impl Iterator<Item = &'l Vec<u8>>, settings: &Value) -> Vec<u8> {
    let layers: Vec<_> = layers.map(|plain| Digest::of(plain).to_string()).collect();
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let config = json!({
        "os": "linux", "architecture": architecture, "config": settings,
        "rootfs": {"type": "layers", "diff_ids": layers},
    });
    config.to_string().into_bytes()
}

/// All files below a folder: what they are and say.
pub fn files(root: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let found = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let what = if found.is_symlink() {
                format!("-> {}", std::fs::read_link(&path).unwrap().display())
            } else if found.is_dir() {
                folders.push(path.clone());
                "/".to_owned()
            } else {
                String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
            };
            all.insert(name, what);
            assert_eq!(found.mode() & 0o7000, 0, "no bits of others: {}", path.display());
        }
    }
    all
}

/// The same, without what every image is given.
pub fn own_files(image: &Image) -> BTreeMap<String, String> {
    let given = ["proc", "dev", "tmp", "etc"];
    let mut all = files(&image.root);
    all.retain(|name, what| {
        let is_made_for_it = name.starts_with("etc/") && what.is_empty();
        !is_made_for_it && !given.contains(&name.as_str())
    });
    all
}
