//! What a describe document and a bundle must hold beyond their shape.

use std::collections::HashMap;

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};

use crate::dialect::rules::Judge;
use crate::finding::{Code, Finding};
use crate::json::{Node, Path, Pointer};
use crate::path::{check_path, folded};
use crate::shape::clip;

/// The most files a bundle may have.
pub const MAX_FILES: usize = 4_096;
/// The largest file, once decoded.
pub const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;
/// All files together, once decoded.
pub const MAX_BUNDLE_BYTES: usize = 256 * 1024 * 1024;

/// Finds what is wrong with the describe document at a path.
pub(crate) fn check_rules(manifest: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    if let Some(main) = manifest.at(&["entry", "main"])
        && let Some(text) = main.as_text()
        && !text.is_empty()
        && let Err(fault) = check_path(text.strip_prefix("./").unwrap_or(text))
    {
        let message = format!("the path `{}` {}", clip(text), fault.words());
        judge.push(Finding::new(
            Code::BadPath,
            path.key("entry").key("main").pointer(),
            main.span,
            message,
        ));
    }
    let name = manifest.text_at("name").unwrap_or_default();
    for (index, secret) in manifest.list_at("requiredSecrets").iter().enumerate() {
        let Some(text) = secret.as_text() else { continue };
        let other = match (text.split_once('-'), name.rsplit_once('-')) {
            _ if text.contains('.') || name.is_empty() => continue,
            (Some((head, tail)), _) => (format!("{name}-{head}"), tail.to_owned()),
            (None, Some((head, tail))) => (head.to_owned(), format!("{tail}-{text}")),
            (None, None) => continue,
        };
        let message = format!(
            "the key `{}-{}` is also that of secret `{}` of a tool `{}`",
            clip(name),
            clip(text),
            clip(&other.1),
            clip(&other.0)
        );
        let pointer = path.key("requiredSecrets").index(index).pointer();
        judge.push(
            Finding::new(Code::SecretCollision, pointer, secret.span, message)
                .help("names without `-` cannot collide"),
        );
    }
}

/// Finds what is wrong with a bundle.
pub(crate) fn check_bundle_rules(bundle: &Node<'_>, judge: &mut Judge<'_>) {
    let root = Path::ROOT;
    if let Some(manifest) = bundle.get("manifest") {
        check_rules(manifest, root.key("manifest"), judge);
    }
    let files = match bundle.get("files").map(|files| &files.value) {
        Some(crate::json::Value::List(files)) => files.as_slice(),
        _ => return,
    };
    let list = root.key("files");
    if files.len() > MAX_FILES {
        let message =
            format!("the bundle has {} files; at most {MAX_FILES} are allowed", files.len());
        let span = bundle.get("files").unwrap_or(bundle).span.first_byte();
        judge.push(Finding::new(Code::BundleTooLarge, list.pointer(), span, message));
        return;
    }
    let mut seen: HashMap<String, &str> = HashMap::new();
    let mut total = 0usize;
    for (index, file) in files.iter().enumerate() {
        let path = list.index(index);
        total = total.saturating_add(check_content(file, path, judge));
        let Some(node) = file.get("path") else { continue };
        let Some(text) = node.as_text().filter(|text| !text.is_empty()) else { continue };
        let pointer = path.key("path").pointer();
        if let Err(fault) = check_path(text) {
            let message = format!("the path `{}` {}", clip(text), fault.words());
            judge.push(Finding::new(Code::BadPath, pointer, node.span, message));
        } else if let Some(earlier) = seen.insert(folded(text), text) {
            let message = if earlier == text {
                format!("the path `{}` appears twice", clip(text))
            } else {
                format!(
                    "the paths `{}` and `{}` are one on systems that ignore case",
                    clip(earlier),
                    clip(text)
                )
            };
            judge.push(Finding::new(Code::DuplicatePath, pointer, node.span, message));
        }
    }
    check_parents(files, &seen, list, judge);
    if total > MAX_BUNDLE_BYTES {
        let message = format!(
            "the bundle's files have {total} bytes; at most {MAX_BUNDLE_BYTES} are allowed"
        );
        let span = bundle.get("files").unwrap_or(bundle).span.first_byte();
        judge.push(Finding::new(Code::BundleTooLarge, list.pointer(), span, message));
    }
    check_main(bundle, files, judge);
}

/// A file is never also the folder of another.
fn check_parents(
    files: &[Node<'_>],
    seen: &HashMap<String, &str>,
    list: Path<'_>,
    judge: &mut Judge<'_>,
) {
    for (index, file) in files.iter().enumerate() {
        let Some(text) = file.text_at("path") else { continue };
        let folder = folded(text);
        let mut parents = folder.match_indices('/').map(|(at, _)| &folder[..at]);
        if let Some(parent) = parents.find(|parent| seen.contains_key(*parent)) {
            let span = file.get("path").unwrap_or(file).span;
            let message = format!("`{}` lies in `{}`, which is a file", clip(text), clip(parent));
            judge.push(Finding::new(
                Code::DuplicatePath,
                list.index(index).key("path").pointer(),
                span,
                message,
            ));
        }
    }
}

/// Why a text is not base64.
fn why_not(error: &DecodeError) -> String {
    match error {
        DecodeError::InvalidByte(at, byte) if byte.is_ascii_graphic() => {
            format!("`{}` is none of its letters, after {at} of them", char::from(*byte))
        }
        DecodeError::InvalidByte(..) => "it holds what is none of its letters".to_owned(),
        DecodeError::InvalidLength(_)
        | DecodeError::InvalidLastSymbol(..)
        | DecodeError::InvalidPadding => {
            "its end is missing, or not padded as it should".to_owned()
        }
    }
}

/// Checks one file's content and gives its size.
fn check_content(file: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) -> usize {
    let Some(content) = file.get("content") else { return 0 };
    let Some(text) = content.as_text() else { return 0 };
    let size = match file.text_at("encoding") {
        Some("base64") => match STANDARD.decode(text) {
            Ok(bytes) => bytes.len(),
            Err(error) => {
                let message = format!("the content is not base64: {}", why_not(&error));
                judge.push(Finding::new(
                    Code::BadBase64,
                    path.key("content").pointer(),
                    content.span.first_byte(),
                    message,
                ));
                0
            }
        },
        _ => text.len(),
    };
    if size > MAX_FILE_BYTES {
        let message = format!("the file has {size} bytes; at most {MAX_FILE_BYTES} are allowed");
        judge.push(Finding::new(
            Code::BundleTooLarge,
            path.pointer(),
            content.span.first_byte(),
            message,
        ));
    }
    size
}

fn check_main(bundle: &Node<'_>, files: &[Node<'_>], judge: &mut Judge<'_>) {
    let Some(main) = bundle.at(&["manifest", "entry", "main"]) else { return };
    let Some(text) = main.as_text() else { return };
    let plain = text.strip_prefix("./").unwrap_or(text);
    let paths = || files.iter().filter_map(|file| file.text_at("path"));
    if check_path(plain).is_ok() && !paths().any(|path| path == plain) {
        let message = format!("the entry file `{}` is not among the files", clip(text));
        let pointer = Pointer::root().key("manifest").key("entry").key("main");
        let finding = Finding::new(Code::MissingMain, pointer, main.span, message);
        judge.push(match crate::shape::suggest(plain, paths()) {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None => finding,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_base64_is_said_without_numbers_of_letters() {
        let why = |text: &str| why_not(&STANDARD.decode(text).unwrap_err());
        assert_eq!(why("%%%%"), "`%` is none of its letters, after 0 of them");
        assert_eq!(why("AAA\u{e9}"), "it holds what is none of its letters");
        for cut in ["AAAAA", "AA", "AB=="] {
            assert_eq!(why(cut), "its end is missing, or not padded as it should");
        }
    }
}
