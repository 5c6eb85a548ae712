//! Names of container images, as manifests write them and engines are given them.

/// More letters than any name has.
const LONGEST: usize = 512;

/// Words before a colon by which engines know other kinds of sources: folders and archives whose digest nobody checks. A
/// registry of such a name with a port would be taken for one.
const SOURCES: [&str; 11] = [
    "atomic",
    "containers-storage",
    "dir",
    "docker",
    "docker-archive",
    "docker-daemon",
    "oci",
    "oci-archive",
    "ostree",
    "sif",
    "tarball",
];

/// Whether a text is the name of an image and nothing that an engine could take for an option, a path or another kind of source. A colon
/// stands before the port of the host or before the tag, nowhere else.
pub fn is_image_name(text: &str) -> bool {
    let mut parts: Vec<&str> = text.split('/').collect();
    let last = parts.pop().unwrap_or_default();
    let is_last = match last.split_once(':') {
        Some((name, tag)) => is_part(name) && is_part(tag),
        None => is_part(last),
    };
    let is_host = match parts.first_mut().map(|host| (host.split_once(':'), host)) {
        Some((Some((name, port)), host)) => {
            *host = name;
            let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            is_port && !SOURCES.contains(&name)
        }
        _ => true,
    };
    text.len() <= LONGEST && is_last && is_host && parts.into_iter().all(is_part)
}

/// Whether a text is one part of a name.
fn is_part(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(is_plain)
        && !text.contains("..")
}
