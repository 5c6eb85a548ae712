//! The files that pages are made with: the name of each holds its digest, so a browser keeps it for as long as it likes.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// A file of ours.
#[derive(Debug)]
pub(super) struct Asset {
    name: String,
    /// Where it is.
    pub(super) path: String,
    kind: &'static str,
    text: &'static str,
}

impl Asset {
    fn new(stem: &str, ending: &str, kind: &'static str, text: &'static str) -> Self {
        let digest = Sha256::digest(text.as_bytes());
        let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{stem}-{digest}.{ending}");
        Self { path: format!("/console/assets/{name}"), name, kind, text }
    }
}

pub(super) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let text = include_str!("../../../assets/console.css");
    Asset::new("console", "css", "text/css; charset=utf-8", text)
});
pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let text = include_str!("../../../assets/console.js");
    Asset::new("console", "js", "text/javascript; charset=utf-8", text)
});
pub(super) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("icon", "svg", "image/svg+xml", include_str!("../../../assets/icon.svg"))
});

/// Sends one of them. They are the same for everybody, so nobody has to be signed in.
pub(super) async fn get(Path(name): Path<String>) -> Response {
    let Some(asset) = [&STYLE, &SCRIPT, &ICON].into_iter().find(|one| one.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (StatusCode::OK, headers, asset.text).into_response()
}
