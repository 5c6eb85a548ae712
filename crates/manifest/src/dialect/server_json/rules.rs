//! What a server.json must hold beyond its shape.

use crate::dialect::rules::Judge;
use crate::finding::{Code, Finding, Severity};
use crate::image_name::is_image_name;
use crate::json::{Node, Path};
use crate::shape::{clip, patterns};

/// Finds what is wrong beyond the shape. The document may be broken in any way.
pub(crate) fn check_rules(document: &Node<'_>, judge: &mut Judge<'_>) {
    check_version(document, Path::ROOT, judge);
    let packages = Path::ROOT.key("packages");
    for (index, package) in document.list_at("packages").iter().enumerate() {
        let path = packages.index(index);
        check_source(package, path, judge);
        for key in ["runtimeArguments", "packageArguments"] {
            let arguments = path.key(key);
            for (at, argument) in package.list_at(key).iter().enumerate() {
                check_argument(argument, arguments.index(at), judge);
            }
        }
        let variables = path.key("environmentVariables");
        for (at, variable) in package.list_at("environmentVariables").iter().enumerate() {
            check_default(variable, variables.index(at), judge);
        }
    }
    let remotes = Path::ROOT.key("remotes");
    for (index, remote) in document.list_at("remotes").iter().enumerate() {
        let path = remotes.index(index);
        let headers = path.key("headers");
        for (at, header) in remote.list_at("headers").iter().enumerate() {
            check_default(header, headers.index(at), judge);
        }
    }
}

/// The same finding as a warning: the server works, and only its author could mend it.
fn warning(mut finding: Finding) -> Finding {
    finding.severity = Severity::Warning;
    finding
}

/// The format asks for a semantic version, but takes any text.
fn check_version(document: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    if let Some(version) = document.get("version")
        && let Some(text) = version.as_text().filter(|text| !text.is_empty())
        && !(patterns::SEMVER.matches)(text)
    {
        let message = format!(
            "`{}` is no semantic version, so it cannot be told whether another is newer",
            clip(text)
        );
        let pointer = path.key("version").pointer();
        let finding = Finding::new(Code::BadVersion, pointer, version.span, message);
        judge.push(warning(finding.help(format!("write {}", patterns::SEMVER.words))));
    }
}

/// Names and addresses are just that: nothing a package client could take for an option.
fn check_source(package: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    let Some(identifier) = package.get("identifier") else { return };
    let Some(text) = identifier.as_text().filter(|text| !text.is_empty()) else { return };
    let pointer = || path.key("identifier").pointer();
    let is_plain = !text.starts_with('-')
        && !text.chars().any(|c| c.is_control() || c.is_whitespace())
        && match package.text_at("registryType") {
            Some("npm" | "pypi" | "nuget" | "cargo") => {
                !text.contains("://") && !text.contains("..")
            }
            Some("oci") => is_image_name(text.split_once('@').map_or(text, |(name, _)| name)),
            Some("mcpb") => text.starts_with("https://") || text.starts_with("http://"),
            _ => true,
        };
    if !is_plain {
        let message = format!("`{}` is no plain name or address of a package", clip(text));
        judge.push(Finding::new(Code::BadSource, pointer(), identifier.span, message));
        return;
    }
    match package.text_at("registryType") {
        Some("oci") if !text.contains("@sha256:") => {
            let message = format!("the image `{}` is not pinned by digest", clip(text));
            judge.push(Finding::new(Code::UnpinnedImage, pointer(), identifier.span, message));
        }
        Some("mcpb") if package.get("fileSha256").is_none() => {
            let message = format!("`{}` has no digest, so it cannot be checked", clip(text));
            let finding = Finding::new(Code::UnknownDigest, pointer(), identifier.span, message);
            judge.push(finding.help("add `fileSha256`"));
        }
        _ => {}
    }
    if let Some(version) = package.get("version")
        && let Some(text) = version.as_text()
        && (text == "latest" || text.starts_with('-') || text.chars().any(char::is_whitespace))
    {
        let message = format!("`{}` is no exact version", clip(text));
        let pointer = path.key("version").pointer();
        judge.push(Finding::new(Code::BadSource, pointer, version.span, message));
    }
}

/// Other processes can read a command line.
fn check_argument(argument: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    let is_secret = |node: &Node<'_>| node.get("isSecret").and_then(Node::as_bool) == Some(true);
    let variables = argument.get("variables").map_or(&[][..], Node::members);
    if is_secret(argument) || variables.iter().any(|member| is_secret(&member.value)) {
        let message = "a secret would be put on a command line, where other processes can read it";
        let span = argument.span.first_byte();
        judge.push(warning(Finding::new(Code::SecretInArgv, path.pointer(), span, message)));
    }
    check_default(argument, path, judge);
}

/// What everybody can read is no secret.
fn check_default(input: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    if input.get("isSecret").and_then(Node::as_bool) != Some(true) {
        return;
    }
    if let Some(default) = input.get("default")
        && default.as_text().is_some_and(|text| !text.is_empty())
    {
        let message = "a secret has a default value, which everybody can read";
        let pointer = path.key("default").pointer();
        judge.push(warning(Finding::new(Code::SecretDefault, pointer, default.span, message)));
    }
}
