//! The files that pages are made with: the name of each holds its digest, so a browser keeps it for ever.

use std::sync::LazyLock;

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use package::digest::Digest;

use crate::web::answer::{self, Keep};
use crate::web::refused::Refused;

/// What stands before every such file.
const PLACE: &str = "/assets/";

/// A file of ours.
#[derive(Debug)]
pub(super) struct Asset {
    pub(super) path: String,
    kind: &'static str,
    text: &'static str,
    tag: String,
}

impl Asset {
    fn new(stem: &str, ending: &str, kind: &'static str, text: &'static str) -> Self {
        let digest = Digest::of(text.as_bytes()).to_string();
        let path = format!("{PLACE}{stem}-{}.{ending}", &digest[..16]);
        Self { path, kind, text, tag: format!("\"{digest}\"") }
    }
}

pub(super) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("haft", "css", "text/css; charset=utf-8", include_str!("../../../assets/haft.css"))
});
pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "haft",
        "js",
        "text/javascript; charset=utf-8",
        include_str!("../../../assets/haft.js"),
    )
});
pub(super) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("icon", "svg", "image/svg+xml", include_str!("../../../assets/icon.svg"))
});

/// Sends one of them.
pub(super) async fn get(request: Request) -> Result<Response, Refused> {
    let path = request.uri().path();
    let asset = [&STYLE, &SCRIPT, &ICON].into_iter().find(|asset| asset.path == path);
    let asset = asset.ok_or_else(|| Refused::unknown_path(path))?;
    Ok(answer::kept(request.headers(), &asset.tag, Keep::Forever, || {
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind))];
        (StatusCode::OK, kind, asset.text).into_response()
    }))
}
