//! Addresses of our own pages, and those of others that may be linked to.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use registry::identity;

/// What stays as it is in a part of a path or of a query.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// In a path the parts of an id may have slashes between them.
const PATH: &AsciiSet = &PART.remove(b'/');
/// The longest address that is linked to.
const LONGEST: usize = 2_000;

/// The page of a tool. An id comes before a name, so the id is what is linked to.
pub(super) fn tool(id: &str) -> String {
    format!("/tools/{}", path_of(id))
}

/// The page of one version of a tool.
pub(super) fn version(id: &str, version: &str) -> String {
    format!("{}/versions/{}", tool(id), part(version))
}

/// The page of a namespace.
pub(super) fn namespace(name: &str) -> String {
    format!("/namespaces/{}", part(name))
}

/// What describes a version to programs.
pub(super) fn api(id: &str, version: &str) -> String {
    format!("/v1/tools/{}/versions/{}", path_of(id), part(version))
}

/// An id without its prefix, as it stands in a path. One that would read as a version of another is one part.
fn path_of(id: &str) -> String {
    let plain = id.strip_prefix(identity::PREFIX).unwrap_or(id);
    let is_mistakable = plain.split('/').any(|part| part == "versions");
    utf8_percent_encode(plain, if is_mistakable { PART } else { PATH }).to_string()
}

/// A text as a part of a path or of a query.
pub(super) fn part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

/// An address that people may be sent to: `https`, `http` or `mailto`, and nothing a browser would run. A
/// browser passes over white space in an address, so nothing with it is one.
pub(super) fn outside(address: &str) -> Option<&str> {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && !super::inert::is_hidden(c);
    let address = address.trim();
    let (scheme, rest) = address.split_once(':')?;
    let is_known = match scheme.to_ascii_lowercase().as_str() {
        "https" | "http" => rest.starts_with("//") && rest.len() > 2,
        "mailto" => rest.contains('@'),
        _ => false,
    };
    let is_fit = address.len() <= LONGEST && address.chars().all(is_plain);
    (is_known && is_fit).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_any_form_have_a_page() {
        assert_eq!(tool("tool:acme.pdf.read"), "/tools/acme.pdf.read");
        assert_eq!(tool("tool:acme/pdf?<x>"), "/tools/acme/pdf%3F%3Cx%3E");
        // Nobody's id is the address of a version of another.
        assert_eq!(tool("tool:a/versions/1.0.0"), "/tools/a%2Fversions%2F1.0.0");
        assert_eq!(api("tool:a/versions/b", "1.0.0"), "/v1/tools/a%2Fversions%2Fb/versions/1.0.0");
        assert_eq!(version("a", "1.0.0+b"), "/tools/a/versions/1.0.0%2Bb");
        assert_eq!(namespace("a/b"), "/namespaces/a%2Fb");
        assert_eq!(api("tool:a.b", "1.0.0"), "/v1/tools/a.b/versions/1.0.0");
    }

    #[test]
    fn only_what_a_browser_opens_harmlessly_is_linked_to() {
        for good in ["https://example.com/a?b#c", "HTTP://example.com", "mailto:a@example.com"] {
            assert_eq!(outside(good), Some(good));
        }
        for bad in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "java\nscript:alert(1)",
            " \u{1}javascript:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
            "//example.com",
            "/tools/a",
            "#x",
            "https:",
            "https://",
            "https://a b",
            "https://a\u{202e}b",
            "mailto:nobody",
            "",
        ] {
            assert_eq!(outside(bad), None, "{bad:?}");
        }
    }
}
