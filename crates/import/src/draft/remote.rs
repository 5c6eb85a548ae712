//! A server on the network as a server.json.

use serde_json::{Value, json};
use url::Url;

use super::asked::{Asked, Part, Sink};
use super::server::{document, variables};
use super::{Draft, Mark, bytes_of, read_back, versioned};
use crate::config::Transport;
use crate::secret::{is_secret, is_secret_name};

/// What may stand before a credential in a header.
const SCHEMES: [&str; 4] = ["Bearer ", "Basic ", "Token ", "ApiKey "];

/// Headers that are not a package's to set.
const OURS: [&str; 7] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "upgrade",
    "mcp-session-id",
];

pub(super) fn draft(
    name: &str,
    url: &str,
    headers: &[(String, String)],
    transport: Transport,
    mut asked: Asked<'_>,
) -> Result<Draft, String> {
    let parts = asked.parts(url, Sink::Open("its address"))?;
    let address = template(&parts)?;
    let plain: String = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Wanted(_) => "x",
        })
        .collect();
    let parsed = check_address(&plain)?;
    let authority = address.split("://").nth(1).unwrap_or_default();
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('{') {
        return Err("its host is a variable, and a host has to be known to be agreed to".to_owned());
    }
    let mut told = Vec::new();
    for (header, value) in headers {
        told.push(self::header(header, value, &mut asked)?);
    }
    let kind = match transport {
        Transport::Http => "streamable-http",
        Transport::Sse => "sse",
    };
    let mut remote = json!({"type": kind, "url": address});
    let in_address = variables(&parts, &asked);
    if !in_address.is_empty() {
        remote["variables"] = in_address.into();
    }
    if !told.is_empty() {
        remote["headers"] = told.into();
    }
    asked.check_open()?;
    let Asked { secrets, warnings, .. } = asked;
    let mut document = document(name, "A server on the network, from the settings of a client.");
    document["remotes"] = json!([remote]);
    let document = versioned(document, "0.0.0", "/version", Mark::Build);
    let bytes = bytes_of(&document);
    let package = read_back(&bytes)?;
    let files = vec![("server.json".to_owned(), bytes)];
    let private_host = is_private(&parsed).then(|| origin(&parsed));
    let name = name.to_owned();
    Ok(Draft { name, package, files, secrets, reads: Vec::new(), private_host, warnings })
}

/// An address as it may be written in a package: it tells nobody a secret.
fn check_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("its address is none: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("its address is none of the web: `{}:`", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("its address holds a name or a password".to_owned());
    }
    let secret = url.query_pairs().find(|(name, value)| is_secret(name, value));
    if let Some((name, _)) = secret {
        return Err(format!(
            "the secret `{name}` stands in its address, which is written down in many places"
        ));
    }
    Ok(url)
}

/// Whether only the owner's word leads to a host.
pub(crate) fn is_private(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => {
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
        }
        Some(url::Host::Ipv6(ip)) => {
            ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_unique_local()
                || ip.is_unicast_link_local()
        }
        Some(url::Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            let last = name.rsplit('.').next().unwrap_or_default();
            !name.contains('.') || ["localhost", "local", "internal", "lan"].contains(&last)
        }
        None => false,
    }
}

/// Host and port, as a grant names them.
pub(crate) fn origin(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// A header whose secret is asked for.
fn header(name: &str, value: &str, asked: &mut Asked<'_>) -> Result<Value, String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("one of its headers has a name that no header has".to_owned());
    }
    if OURS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the header `{name}` is not a package's to set"));
    }
    if value.chars().any(|letter| letter.is_control() && letter != '\t') {
        return Err(format!("the header `{name}` holds a line break or another control character"));
    }
    let parts = asked.parts(value, Sink::Named(name))?;
    let mut header = json!({"name": name});
    let [Part::Text(text)] = parts.as_slice() else {
        header["value"] = template(&parts)?.into();
        header["variables"] = variables(&parts, asked).into();
        return Ok(header);
    };
    if !is_secret(name, text) {
        if text.contains(['{', '}']) {
            return Err(format!("the header `{name}` holds braces, which would be filled in"));
        }
        header["value"] = text.as_str().into();
        return Ok(header);
    }
    let scheme = SCHEMES.iter().find(|scheme| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    let length = scheme.map_or(0, |scheme| scheme.len());
    let variable = variable_of(name);
    let prompt = format!("The credential of the header `{name}`");
    asked.keep(&variable, text[length..].trim(), prompt)?;
    header["value"] = format!("{}{{{variable}}}", &text[..length]).into();
    header["variables"] = variables(&[Part::Wanted(variable)], asked).into();
    Ok(header)
}

/// What the credential of a header is called.
fn variable_of(header: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' }
    };
    let name: String = header.chars().map(plain).collect();
    if is_secret_name(&name) && !name.starts_with(|letter: char| letter.is_ascii_digit()) {
        name
    } else {
        format!("HEADER_{name}")
    }
}

/// A value as a server.json writes it: what is asked for stands in braces.
fn template(parts: &[Part]) -> Result<String, String> {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(literal) if literal.contains(['{', '}']) && parts.len() > 1 => {
                return Err("a value holds braces of its own beside a variable".to_owned());
            }
            Part::Text(literal) => text += literal,
            Part::Wanted(name) => text += &format!("{{{name}}}"),
        }
    }
    Ok(text)
}
