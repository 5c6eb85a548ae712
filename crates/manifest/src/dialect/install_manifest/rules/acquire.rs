//! Where the tool comes from: names and addresses that are just that, and pinned.

use crate::dialect::rules::{Judge, path_escapes};
use crate::finding::{Code, Finding};
use crate::image_name::is_image_name;
use crate::json::{Node, Path, Pointer};
use crate::shape::clip;

/// Checks how a tool is acquired.
pub(super) fn check(install: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    match install.text_at("method") {
        Some("container") => {
            if let Some(image) = install.get("image")
                && let Some(text) = image.as_text()
            {
                let (name, digest) = text.split_once('@').unwrap_or((text, ""));
                let is_pinned = digest.strip_prefix("sha256:").is_some_and(|digits| {
                    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
                    digits.len() == 64 && digits.bytes().all(is_digit)
                });
                if !is_image_name(name) {
                    bad_source(image, path.key("image").pointer(), "image reference", judge);
                } else if !is_pinned {
                    let message = format!("the image `{}` is not pinned by digest", clip(text));
                    judge.push(
                        Finding::new(
                            Code::UnpinnedImage,
                            path.key("image").pointer(),
                            image.span,
                            message,
                        )
                        .help("append `@sha256:` and the digest of the image you tested"),
                    );
                }
            }
        }
        Some("git") => {
            if let Some(reference) = install.get("ref")
                && let Some(text) = reference.as_text()
            {
                let is_sha =
                    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
                if text.starts_with('-') {
                    bad_source(reference, path.key("ref").pointer(), "git reference", judge);
                } else if !is_sha {
                    let message = format!(
                        "`{}` is no commit SHA: what is installed can change under the same name",
                        clip(text)
                    );
                    judge.push(
                        Finding::new(
                            Code::UnpinnedRef,
                            path.key("ref").pointer(),
                            reference.span,
                            message,
                        )
                        .help("name the 40-digit commit"),
                    );
                }
            }
            if let Some(url) = install.get("url")
                && let Some(text) = url.as_text()
                && (text.starts_with('-') || text.starts_with("ext::") || text.starts_with("file:"))
            {
                bad_source(url, path.key("url").pointer(), "repository address", judge);
            }
            if let Some(subpath) = install.get("subpath")
                && let Some(text) = subpath.as_text()
                && path_escapes(text)
            {
                let message = format!("the path `{}` leaves the repository", clip(text));
                judge.push(Finding::new(
                    Code::PathEscapes,
                    path.key("subpath").pointer(),
                    subpath.span,
                    message,
                ));
            }
        }
        Some("pip" | "npm") => {
            if let Some(package) = install.get("package")
                && let Some(text) = package.as_text()
                && !text.is_empty()
                && is_no_package_name(text)
            {
                bad_source(package, path.key("package").pointer(), "package name", judge);
            }
            if let Some(spec) = install.get("version_spec")
                && let Some(text) = spec.as_text()
                && is_no_version_spec(text)
            {
                bad_source(spec, path.key("version_spec").pointer(), "version", judge);
            }
        }
        _ => {}
    }
}

/// Options and addresses are no versions.
fn is_no_version_spec(text: &str) -> bool {
    let words = text.split([' ', '\t', '\n', ',', ';']);
    text.contains("://")
        || text.contains('@')
        || words.into_iter().any(|word| word.starts_with('-') && word.len() > 1)
}

/// Options, addresses and paths are no package names.
fn is_no_package_name(text: &str) -> bool {
    let scoped = text.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    let names = scoped.map_or(vec![text], |(scope, name)| vec![scope, name]);
    names.iter().any(|name| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-[],~".contains(&b);
        !name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
            || !name.bytes().all(plain)
    })
}

fn bad_source(node: &Node<'_>, pointer: Pointer, what: &str, judge: &mut Judge<'_>) {
    let text = node.as_text().unwrap_or_default();
    let message = format!("`{}` is no plain {what}", clip(text));
    judge.push(Finding::new(Code::BadSource, pointer, node.span, message));
}
