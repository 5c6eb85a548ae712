//! What an image is made of, for whoever brings it here: the next document to have, or its settings and layers.
//!
//! What a document says is checked before anything that it names is asked for: how much there is of it, and whether it is
//! an image for this machine.

use crate::digest::Digest;
use crate::documents::{Config, Descriptor, INDEXES, MANIFESTS, Packing, Top, check_config, ours};
use crate::limits::Limits;
use crate::refusal::{Code, ImageError};

/// Bytes that belong to an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What they are.
    pub digest: Digest,
    /// How many there are.
    pub size: u64,
}

/// What a document of an image leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Of an index: the document about the image for this machine.
    Next(Part),
    /// Of a manifest: its settings, and its layers, the lowest first.
    All {
        /// The settings.
        config: Part,
        /// The layers.
        layers: Vec<Part>,
    },
}

impl Parts {
    /// Reads an index or a manifest whose bytes were held against this digest.
    pub fn read(bytes: &[u8], what: &Digest, limits: &Limits) -> Result<Self, ImageError> {
        let document = |descriptor: &Descriptor| {
            let part = part(descriptor)?;
            if part.size > limits.document_bytes {
                return Err(ImageError::refused(Code::DocumentTooLarge, part.digest.to_string()));
            }
            Ok(part)
        };
        match Top::read(bytes, what)? {
            Top::Index(manifests) => ours(&manifests, what).and_then(document).map(Self::Next),
            Top::Manifest { config, layers } => {
                check_config(&config)?;
                if layers.len() > limits.layers {
                    return Err(ImageError::refused(Code::TooManyLayers, what.to_string()));
                }
                let mut total = 0_u64;
                let layer = |layer: &Descriptor| {
                    Packing::of(&layer.media_type)?;
                    total = total.saturating_add(layer.size);
                    part(layer)
                };
                let layers = layers.iter().map(layer).collect::<Result<_, _>>()?;
                // Packed they are smaller than unpacked, or hardly larger.
                if total > limits.total_bytes {
                    return Err(ImageError::refused(Code::TotalTooLarge, what.to_string()));
                }
                Ok(Self::All { config: document(&config)?, layers })
            }
        }
    }

    /// What kind of document such parts are named in, as layouts write it.
    pub fn media_type(&self) -> &'static str {
        match self {
            Self::Next(_) => INDEXES[0],
            Self::All { .. } => MANIFESTS[0],
        }
    }
}

/// Refuses settings that are not for this machine, or do not fit to so many layers.
pub fn check_settings(bytes: &[u8], what: &Digest, layers: usize) -> Result<(), ImageError> {
    let config = Config::read(bytes, what)?;
    if config.layers.len() == layers {
        return Ok(());
    }
    Err(ImageError::refused(Code::LayersDisagree, what.to_string()))
}

fn part(descriptor: &Descriptor) -> Result<Part, ImageError> {
    Ok(Part { digest: descriptor.digest()?, size: descriptor.size })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::documents::ARCHITECTURE;

    fn descriptor(kind: &str, size: u64) -> Value {
        json!({"mediaType": kind, "digest": format!("sha256:{}", "ab".repeat(32)), "size": size})
    }

    fn read(document: &Value) -> Result<Parts, Option<Code>> {
        let bytes = document.to_string();
        let read = Parts::read(bytes.as_bytes(), &Digest::of(bytes.as_bytes()), &Limits::DEFAULT);
        read.map_err(|error| error.code())
    }

    fn manifest(config: u64, layers: &[u64]) -> Value {
        let layer = |size: &u64| descriptor("application/vnd.oci.image.layer.v1.tar+gzip", *size);
        json!({
            "schemaVersion": 2,
            "config": descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": layers.iter().map(layer).collect::<Vec<_>>(),
        })
    }

    #[test]
    fn a_manifest_names_its_settings_and_layers() {
        let Ok(Parts::All { config, layers }) = read(&manifest(7, &[1, 2])) else { panic!() };
        assert_eq!((config.size, layers[0].size, layers[1].size), (7, 1, 2));
    }

    #[test]
    fn an_index_leads_to_the_image_for_this_machine() {
        let platform = |architecture: &str, size| {
            let mut one = descriptor(MANIFESTS[0], size);
            one["platform"] = json!({"os": "linux", "architecture": architecture});
            one
        };
        let index = |manifests: &[Value]| json!({"schemaVersion": 2, "manifests": manifests});
        let found = read(&index(&[platform("riscv64", 1), platform(ARCHITECTURE, 2)]));
        assert!(matches!(found, Ok(Parts::Next(Part { size: 2, .. }))), "{found:?}");
        let none = read(&index(&[platform("riscv64", 1), platform("s390x", 2)]));
        assert_eq!(none, Err(Some(Code::WrongPlatform)));
    }

    #[test]
    fn what_is_too_much_is_refused_before_it_is_asked_for() {
        let code = |document: &Value| read(document).unwrap_err();
        assert_eq!(code(&manifest(5 << 20, &[])), Some(Code::DocumentTooLarge));
        assert_eq!(code(&manifest(1, &[1; 129])), Some(Code::TooManyLayers));
        assert_eq!(code(&manifest(1, &[9 << 30, 9 << 30])), Some(Code::TotalTooLarge));
        assert_eq!(code(&manifest(1, &[u64::MAX, u64::MAX])), Some(Code::TotalTooLarge));
    }

    #[test]
    fn settings_have_as_many_layers_as_the_manifest_and_are_for_this_machine() {
        let settings = |architecture: &str| {
            let layers = json!({"diff_ids": [format!("sha256:{}", "ab".repeat(32))]});
            json!({"os": "linux", "architecture": architecture, "rootfs": layers}).to_string()
        };
        let check = |text: String, layers| {
            let digest = Digest::of(text.as_bytes());
            check_settings(text.as_bytes(), &digest, layers).map_err(|error| error.code())
        };
        assert_eq!(check(settings(ARCHITECTURE), 1), Ok(()));
        assert_eq!(check(settings(ARCHITECTURE), 2), Err(Some(Code::LayersDisagree)));
        assert_eq!(check(settings("s390x"), 1), Err(Some(Code::WrongPlatform)));
    }
}
