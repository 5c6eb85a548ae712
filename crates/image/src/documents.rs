//! The JSON of an image: index, manifest, settings. What is not looked at may say anything.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::refusal::{Code, ImageError};

/// What the processors that we build for are called in images.
pub(crate) const ARCHITECTURE: &str = if cfg!(target_arch = "x86_64") {
    "amd64"
} else if cfg!(target_arch = "aarch64") {
    "arm64"
} else {
    std::env::consts::ARCH
};

/// The most variables of an image, and the most bytes of them together. They are compared one by one, and no program
/// can be started with much more.
const MOST_VARIABLES: usize = 1024;
const MOST_VARIABLE_BYTES: usize = 256 << 10;

/// A part of an image: what it is, and which bytes it has.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Descriptor {
    #[serde(rename = "mediaType", default)]
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) platform: Option<Platform>,
}

impl Descriptor {
    pub(crate) fn digest(&self) -> Result<Digest, ImageError> {
        Digest::parse(&self.digest)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Platform {
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) architecture: String,
}

impl Platform {
    pub(crate) fn is_ours(&self) -> bool {
        self.os == "linux" && self.architecture == ARCHITECTURE
    }
}

/// What a pinned digest can stand for. The media type may be left out, so the shape decides.
#[derive(Debug)]
pub(crate) enum Top {
    Index(Vec<Descriptor>),
    Manifest { config: Descriptor, layers: Vec<Descriptor> },
}

impl Top {
    pub(crate) fn read(bytes: &[u8], what: &Digest) -> Result<Self, ImageError> {
        #[derive(Deserialize)]
        struct Both {
            #[serde(rename = "schemaVersion")]
            schema_version: u32,
            #[serde(rename = "mediaType", default)]
            media_type: Option<String>,
            manifests: Option<Vec<Descriptor>>,
            config: Option<Descriptor>,
            layers: Option<Vec<Descriptor>>,
        }
        let bad = || ImageError::refused(Code::BadDocument, what.to_string());
        let read: Both = serde_json::from_slice(bytes).map_err(|_| bad())?;
        let is_known =
            |kinds: [&str; 2]| read.media_type.as_deref().is_none_or(|kind| kinds.contains(&kind));
        match (read.schema_version, read.manifests, read.config, read.layers) {
            (2, Some(manifests), None, None) if is_known(INDEXES) => Ok(Self::Index(manifests)),
            (2, None, Some(config), Some(layers)) if is_known(MANIFESTS) => {
                Ok(Self::Manifest { config, layers })
            }
            _ => Err(bad()),
        }
    }
}

/// Of the images of an index, the one for this machine. One alone may leave out what it is for; its settings say so.
pub(crate) fn ours<'m>(
    manifests: &'m [Descriptor],
    index: &Digest,
) -> Result<&'m Descriptor, ImageError> {
    let ours = manifests.iter().find(|one| one.platform.as_ref().is_some_and(Platform::is_ours));
    let alone = match manifests {
        [only] if only.platform.is_none() => Some(only),
        _ => None,
    };
    let refused = || ImageError::refused(Code::WrongPlatform, index.to_string());
    ours.or(alone).ok_or_else(refused)
}

pub(crate) const INDEXES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

pub(crate) const MANIFESTS: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

const CONFIGS: [&str; 2] =
    ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];

/// Refuses what is no description of an image: other things are kept in the same places.
pub(crate) fn check_config(config: &Descriptor) -> Result<(), ImageError> {
    if CONFIGS.contains(&config.media_type.as_str()) {
        return Ok(());
    }
    Err(ImageError::refused(Code::UnknownMediaType, &config.media_type))
}

/// How a layer is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    /// By the kind of a layer. Layers that must not be passed on are there or not, like any other.
    pub(crate) fn of(media_type: &str) -> Result<Self, ImageError> {
        const OCI: &str = "application/vnd.oci.image.layer.";
        let refused = || ImageError::refused(Code::UnknownMediaType, media_type);
        if let Some(rest) = media_type.strip_prefix(OCI) {
            let rest = rest.strip_prefix("nondistributable.").unwrap_or(rest);
            return match rest {
                "v1.tar" => Ok(Self::Plain),
                "v1.tar+gzip" => Ok(Self::Gzip),
                "v1.tar+zstd" => Ok(Self::Zstd),
                _ => Err(refused()),
            };
        }
        match media_type {
            "application/vnd.docker.image.rootfs.diff.tar" => Ok(Self::Plain),
            "application/vnd.docker.image.rootfs.diff.tar.gzip"
            | "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip" => Ok(Self::Gzip),
            "application/vnd.docker.image.rootfs.diff.tar.zstd" => Ok(Self::Zstd),
            _ => Err(refused()),
        }
    }

    /// By the first bytes of a layer, for archives that do not say.
    pub(crate) fn sniff(first: &[u8]) -> Self {
        match first {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// What `docker save` says of one image.
#[derive(Debug, Deserialize)]
pub(crate) struct Saved {
    #[serde(rename = "Config")]
    pub(crate) config: String,
    #[serde(rename = "Layers")]
    pub(crate) layers: Vec<String>,
}

/// What an image says of how it is run. The image's words: whoever runs it decides what counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Variables.
    pub environment: Vec<(String, String)>,
    /// The folder it starts in.
    pub folder: Option<String>,
    /// The program and its first arguments.
    pub entrypoint: Vec<String>,
    /// Arguments where nobody gives others; the program too, where there is no entrypoint.
    pub command: Vec<String>,
    /// The user it would run as.
    pub user: Option<String>,
}

/// The settings of an image and the digests of its layers as they are unpacked.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    pub(crate) layers: Vec<Digest>,
}

impl Config {
    pub(crate) fn read(bytes: &[u8], what: &Digest) -> Result<Self, ImageError> {
        #[derive(Deserialize)]
        struct File {
            #[serde(flatten)]
            platform: Platform,
            #[serde(default)]
            config: Option<Inner>,
            rootfs: Layers,
        }
        #[derive(Deserialize)]
        struct Layers {
            #[serde(default)]
            diff_ids: Option<Vec<String>>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "PascalCase", default)]
        struct Inner {
            env: Option<Vec<String>>,
            working_dir: Option<String>,
            entrypoint: Option<Vec<String>>,
            cmd: Option<Vec<String>>,
            user: Option<String>,
        }
        let file: File = serde_json::from_slice(bytes)
            .map_err(|_| ImageError::refused(Code::BadDocument, what.to_string()))?;
        if !file.platform.is_ours() {
            let is_for = format!("{}/{}", file.platform.os, file.platform.architecture);
            return Err(ImageError::refused(Code::WrongPlatform, is_for));
        }
        let inner = file.config.unwrap_or_default();
        let variables = inner.env.unwrap_or_default();
        let bytes: usize = variables.iter().map(String::len).sum();
        if variables.len() > MOST_VARIABLES || bytes > MOST_VARIABLE_BYTES {
            return Err(ImageError::refused(Code::TooManyVariables, what.to_string()));
        }
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let variable = |text: String| {
            let (name, value) = text.split_once('=')?;
            (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
        };
        let settings = Settings {
            environment: variables.into_iter().filter_map(variable).collect(),
            folder: filled(inner.working_dir),
            entrypoint: inner.entrypoint.unwrap_or_default(),
            command: inner.cmd.unwrap_or_default(),
            user: filled(inner.user),
        };
        let layers = file.rootfs.diff_ids.unwrap_or_default();
        let layers = layers.iter().map(|text| Digest::parse(text)).collect::<Result<_, _>>()?;
        Ok(Self { settings, layers })
    }
}
