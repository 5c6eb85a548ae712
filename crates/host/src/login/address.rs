//! Which URLs are safe to speak with, which belong together, and where documents lie.

use egress::http::{Url, is_here};
use egress::{Rule, Target};

use super::error::LoginError;

/// The longest URL that is taken from a document.
const LONGEST: usize = 2048;

/// Reads a URL that somebody else wrote under a name: of `https`, or of `http` to this very machine, and without a
/// user, a password or a fragment.
pub fn safe(text: &str, what: &'static str, name: &str) -> Result<Url, LoginError> {
    let odd = |how| LoginError::odd(what, format!("`{name}` {how}"));
    if text.is_empty() {
        return Err(odd("is missing"));
    }
    if text.len() > LONGEST {
        return Err(odd("is too long for a URL"));
    }
    let url = Url::parse(text).map_err(|_| odd("is no URL"))?;
    check_safe(&url)?;
    Ok(url)
}

/// Refuses URLs that no token and no code may travel to.
pub fn check_safe(url: &Url) -> Result<(), LoginError> {
    let is_safe = match url.scheme() {
        "https" => true,
        "http" => is_here(url),
        _ => false,
    };
    let is_plain =
        url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if is_safe && is_plain { Ok(()) } else { Err(LoginError::Insecure(shown(url))) }
}

/// Whether what is meant for a resource may be told to an endpoint: the same origin, and a path that is
/// the resource's own or below it.
pub fn covers(resource: &Url, endpoint: &Url) -> bool {
    let own = resource.path().trim_end_matches('/');
    let below = endpoint.path().strip_prefix(own);
    let is_below = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_same_query = resource.query().is_none() || resource.query() == endpoint.query();
    resource.origin() == endpoint.origin() && is_below && is_same_query
}

/// The name of a server as a resource: its URL without a fragment, and without a slash that says nothing.
pub fn canonical(endpoint: &Url) -> String {
    let mut url = endpoint.clone();
    url.set_fragment(None);
    let text = url.to_string();
    match url.path() {
        "/" if url.query().is_none() => text.trim_end_matches('/').to_owned(),
        _ => text,
    }
}

/// Where a resource's metadata may lie when it does not say so: for its path, then for all of its origin.
pub fn resource_documents(endpoint: &Url) -> Vec<Url> {
    let path = endpoint.path().trim_end_matches('/');
    let mut found = vec![with_path(endpoint, &format!("{RESOURCE}{path}"))];
    if !path.is_empty() {
        found.push(with_path(endpoint, RESOURCE));
    }
    found
}

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Where an authorization server's metadata may lie, in the order in which they are tried.
pub fn server_documents(issuer: &Url) -> Vec<Url> {
    match issuer.path().trim_end_matches('/') {
        "" => vec![with_path(issuer, OAUTH), with_path(issuer, OPENID)],
        path => vec![
            with_path(issuer, &format!("{OAUTH}{path}")),
            with_path(issuer, &format!("{OPENID}{path}")),
            with_path(issuer, &format!("{path}{OPENID}")),
        ],
    }
}

/// The authorization server whose metadata lies at a URL, if it lies where the specifications put it; a URL that is no such
/// place is taken for the server itself, which has to say so.
pub fn issuer_of(document: &Url) -> Url {
    let path = document.path();
    let own = [OAUTH, OPENID]
        .iter()
        .find_map(|place| path.strip_suffix(place).or_else(|| path.strip_prefix(place)));
    own.map_or_else(|| document.clone(), |path| with_path(document, path))
}

/// The root of where a URL leads.
pub fn origin(url: &Url) -> Url {
    with_path(url, "/")
}

fn with_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(path);
    url
}

/// A host with its port, as rules and owners name it.
pub fn host_of(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

/// The target a URL leads to.
pub fn target_of(url: &Url) -> Option<Target> {
    Target::parse(host_of(url).as_bytes()).ok()
}

/// The rule that lets exactly one host be reached.
pub fn rule_of(host: &str) -> Option<Rule> {
    Rule::parse(host).ok()
}

/// A URL as it may be shown: without what could be a secret.
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn texts(urls: &[Url]) -> Vec<&str> {
        urls.iter().map(Url::as_str).collect()
    }

    #[test]
    fn only_this_machine_is_spoken_with_in_plain() {
        for text in
            ["https://a.test/x", "http://127.0.0.1:8/", "http://[::1]/", "http://localhost:9/x"]
        {
            assert!(safe(text, "it", "url").is_ok(), "{text}");
        }
        for text in [
            "http://a.test/",
            "http://10.0.0.1/",
            "http://localhost.evil.test/",
            "http://127.0.0.1.evil.test/",
            "ftp://a.test/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://me@a.test/",
            "https://me:pw@a.test/",
            "https://a.test/#x",
            "nothing",
        ] {
            assert!(safe(text, "it", "url").is_err(), "{text}");
        }
        assert!(safe(&format!("https://a.test/{}", "x".repeat(LONGEST)), "it", "url").is_err());
    }

    #[test]
    fn a_token_goes_to_its_resource_and_below_it() {
        let covered = |resource, endpoint| covers(&url(resource), &url(endpoint));
        for (resource, endpoint) in [
            ("https://a.test", "https://a.test/mcp"),
            ("https://a.test/", "https://a.test:443/"),
            ("https://a.test/mcp", "https://a.test/mcp"),
            ("https://a.test/mcp/", "https://a.test/mcp"),
            ("https://a.test/mcp", "https://a.test/mcp/more?x=1"),
        ] {
            assert!(covered(resource, endpoint), "{resource} {endpoint}");
        }
        for (resource, endpoint) in [
            ("https://a.test/mcp", "https://a.test/"),
            ("https://a.test/mcp", "https://a.test/mcp2"),
            ("https://a.test/mcp", "https://a.test/x/../mc"),
            ("https://a.test/mcp", "https://b.test/mcp"),
            ("https://a.test/mcp", "http://a.test/mcp"),
            ("https://a.test/mcp", "https://a.test:8443/mcp"),
            ("https://a.test/mcp?t=1", "https://a.test/mcp?t=2"),
        ] {
            assert!(!covered(resource, endpoint), "{resource} {endpoint}");
        }
    }

    #[test]
    fn documents_are_looked_for_where_the_specifications_put_them() {
        let resource = |text| resource_documents(&url(text));
        assert_eq!(
            texts(&resource("https://a.test/public/mcp?x=1")),
            [
                "https://a.test/.well-known/oauth-protected-resource/public/mcp",
                "https://a.test/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            texts(&resource("https://a.test/")),
            ["https://a.test/.well-known/oauth-protected-resource"]
        );
        let server = |text| server_documents(&url(text));
        assert_eq!(
            texts(&server("https://a.test/tenant")),
            [
                "https://a.test/.well-known/oauth-authorization-server/tenant",
                "https://a.test/.well-known/openid-configuration/tenant",
                "https://a.test/tenant/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            texts(&server("https://a.test")),
            [
                "https://a.test/.well-known/oauth-authorization-server",
                "https://a.test/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn whose_metadata_a_document_is_can_be_told_by_where_it_lies() {
        for issuer in ["https://a.test/tenant", "https://a.test/", "https://a.test/a/b"] {
            for document in server_documents(&url(issuer)) {
                assert_eq!(issuer_of(&document), url(issuer), "{document}");
            }
        }
        let other = url("https://a.test/metadata.json?x=1");
        assert_eq!((issuer_of(&other), origin(&other)), (other, url("https://a.test/")));
    }

    #[test]
    fn the_name_of_a_resource_has_no_slash_that_says_nothing() {
        assert_eq!(canonical(&url("https://A.test:443/")), "https://a.test");
        assert_eq!(canonical(&url("https://a.test/mcp/#x")), "https://a.test/mcp/");
    }
}
