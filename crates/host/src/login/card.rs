//! Where the card of an agent says that people sign in. Pure.

use egress::http::Url;
use serde_json::Value;

use super::address::{issuer_of, origin, safe};
use super::error::LoginError;
use super::metadata::is_scope;

/// Where the card of an agent lies, at its origin.
pub(crate) const PLACE: &str = "/.well-known/agent-card.json";

/// Who wrote it.
const WHAT: &str = "agent";

/// The most scopes that are read from a card.
const MOST: usize = 64;

/// Who signs people in, as a card has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guard {
    pub(super) issuer: Url,
    pub(super) scopes: Vec<String>,
    pub(super) endpoints: Option<Endpoints>,
}

/// The endpoints of an authorization server as a card names them: all that is known of one without metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Where the owner's browser is sent.
    pub authorization: Option<Url>,
    /// Where codes for a browser on any machine come from.
    pub device: Option<Url>,
    /// Where codes become tokens.
    pub token: Url,
    /// Whether it is said to protect codes that others see.
    pub has_pkce: bool,
}

/// The schemes that a card asks for, with their scopes: those that a requirement names, or all where there is none.
pub(crate) fn schemes(card: &Value) -> Vec<(&Value, Vec<String>)> {
    let Some(all) = card["securitySchemes"].as_object() else { return Vec::new() };
    let required = card.get("securityRequirements").or_else(|| card.get("security"));
    let required = required.and_then(Value::as_array).into_iter().flatten();
    let mut named = required
        .filter_map(|one| one.get("schemes").unwrap_or(one).as_object())
        .flatten()
        .peekable();
    if named.peek().is_none() {
        return all.values().map(|scheme| (scheme, Vec::new())).collect();
    }
    named
        .filter_map(|(name, scopes)| {
            let scopes = scopes.get("list").unwrap_or(scopes).as_array().into_iter().flatten();
            Some((all.get(name)?, words(scopes.filter_map(Value::as_str))))
        })
        .collect()
}

/// Who signs people in, by the first scheme that says so; `None` where none does.
pub(super) fn guard(card: &Value) -> Result<Option<Guard>, LoginError> {
    for (scheme, scopes) in schemes(card) {
        let kind = scheme["type"].as_str();
        let of_kind = |new: &str, old: &str| {
            scheme.get(new).or_else(|| (kind == Some(old)).then_some(scheme))
        };
        if let Some(openid) = of_kind("openIdConnectSecurityScheme", "openIdConnect") {
            match metadata(openid, "openIdConnectUrl")? {
                Some(issuer) => return Ok(Some(Guard { issuer, scopes, endpoints: None })),
                None => continue,
            }
        }
        let Some(oauth) = of_kind("oauth2SecurityScheme", "oauth2") else { continue };
        if let Some(guard) = by_oauth(oauth, scopes)? {
            return Ok(Some(guard));
        }
    }
    Ok(None)
}

/// Who signs people in by OAuth: the one with the metadata that is named, else the one with the endpoints that are.
fn by_oauth(oauth: &Value, required: Vec<String>) -> Result<Option<Guard>, LoginError> {
    let flow = |name: &str| oauth["flows"].get(name).filter(|flow| flow.is_object());
    let (browser, device) = (flow("authorizationCode"), flow("deviceCode"));
    let scopes = if required.is_empty() {
        let listed = browser.or(device).and_then(|flow| flow["scopes"].as_object());
        words(listed.into_iter().flat_map(|scopes| scopes.keys().map(String::as_str)))
    } else {
        required
    };
    if let Some(issuer) = metadata(oauth, "oauth2MetadataUrl")? {
        return Ok(Some(Guard { issuer, scopes, endpoints: None }));
    }
    let Some(first) = browser.or(device) else { return Ok(None) };
    let read = |of: &Value, name| safe(of[name].as_str().unwrap_or_default(), WHAT, name);
    let token = read(first, "tokenUrl")?;
    // Tokens come from one place, so a flow with another one is of another server.
    let device = device.filter(|flow| flow["tokenUrl"] == first["tokenUrl"]);
    let endpoints = Endpoints {
        authorization: browser.map(|flow| read(flow, "authorizationUrl")).transpose()?,
        device: device.map(|flow| read(flow, "deviceAuthorizationUrl")).transpose()?,
        has_pkce: browser.is_some_and(|flow| flow["pkceRequired"] == true),
        token,
    };
    let issuer = origin(&endpoints.token);
    Ok(Some(Guard { issuer, scopes, endpoints: Some(endpoints) }))
}

/// The authorization server whose metadata is at the URL of that name, where there is one.
fn metadata(scheme: &Value, name: &'static str) -> Result<Option<Url>, LoginError> {
    let text = scheme[name].as_str().filter(|text| !text.is_empty());
    let url = text.map(|text| safe(text, WHAT, name)).transpose()?;
    Ok(url.map(|url| issuer_of(&url)))
}

fn words<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    texts.filter(|text| is_scope(text)).take(MOST).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// A card of either version that wants a token of one scheme.
    fn cards(kind: &str, scheme: &Value, scopes: &Value) -> [Value; 2] {
        let new = format!("{kind}SecurityScheme");
        let mut old = scheme.clone();
        old["type"] = kind.into();
        [
            json!({
                "securitySchemes": {"a": {new: scheme}},
                "securityRequirements": [{"schemes": {"a": {"list": scopes}}}],
            }),
            json!({"securitySchemes": {"a": old}, "security": [{"a": scopes}]}),
        ]
    }

    #[test]
    fn both_versions_of_a_card_say_whose_metadata_to_read() {
        let openid = json!({
            "openIdConnectUrl": "https://as.test/tenant/.well-known/openid-configuration",
        });
        let oauth = json!({
            "oauth2MetadataUrl": "https://as.test/.well-known/oauth-authorization-server/tenant",
            "flows": {"authorizationCode": {"scopes": {"unasked": "Not named."}}},
        });
        for (kind, scheme) in [("openIdConnect", openid), ("oauth2", oauth)] {
            for card in cards(kind, &scheme, &json!(["read", "no scope"])) {
                let found = guard(&card).unwrap().unwrap();
                assert_eq!(found.issuer, url("https://as.test/tenant"), "{card}");
                assert_eq!((found.scopes, found.endpoints), (vec!["read".to_owned()], None));
            }
        }
    }

    #[test]
    fn flows_name_the_endpoints_and_their_scopes() {
        let flows = json!({
            "authorizationCode": {
                "authorizationUrl": "https://as.test/authorize", "tokenUrl": "https://as.test/token",
                "scopes": {"read": "Reads.", "write": "Writes."},
            },
            "deviceCode": {
                "deviceAuthorizationUrl": "https://as.test/device", "tokenUrl": "https://as.test/token",
            },
        });
        for card in cards("oauth2", &json!({"flows": flows}), &json!([])) {
            let found = guard(&card).unwrap().unwrap();
            assert_eq!((found.issuer, found.scopes.len()), (url("https://as.test/"), 2));
            let endpoints = found.endpoints.unwrap();
            assert_eq!(endpoints.authorization, Some(url("https://as.test/authorize")));
            assert_eq!(endpoints.device, Some(url("https://as.test/device")));
            assert_eq!(
                (endpoints.token, endpoints.has_pkce),
                (url("https://as.test/token"), false)
            );
        }
        let mut other = flows;
        other["deviceCode"]["tokenUrl"] = "https://evil.test/token".into();
        other["authorizationCode"]["pkceRequired"] = true.into();
        for card in cards("oauth2", &json!({"flows": other}), &json!(["read"])) {
            let found = guard(&card).unwrap().unwrap();
            assert_eq!(found.scopes, ["read"]);
            let endpoints = found.endpoints.unwrap();
            assert_eq!((endpoints.device, endpoints.has_pkce), (None, true));
        }
    }

    #[test]
    fn urls_that_are_not_safe_are_refused_and_other_schemes_say_nothing() {
        let flow = json!({"authorizationUrl": "http://as.test/a", "tokenUrl": "https://as.test/t"});
        let unsafe_ones = [
            ("openIdConnect", json!({"openIdConnectUrl": "http://as.test/"})),
            ("oauth2", json!({"oauth2MetadataUrl": "file:///etc/passwd"})),
            ("oauth2", json!({"flows": {"authorizationCode": flow}})),
            ("oauth2", json!({"flows": {"deviceCode": {"tokenUrl": "https://as.test/t"}}})),
        ];
        for (kind, scheme) in unsafe_ones {
            for card in cards(kind, &scheme, &json!([])) {
                assert!(guard(&card).is_err(), "{card}");
            }
        }
        for card in [
            json!(7),
            json!({}),
            json!({"securitySchemes": {"a": {"type": "http", "scheme": "bearer"}}}),
            json!({"securitySchemes": {"a": {"type": "oauth2", "flows": {"clientCredentials": {}}}}}),
            json!({"securitySchemes": {"a": {"type": "oauth2"}}, "security": [{"b": []}]}),
        ] {
            assert_eq!(guard(&card).unwrap(), None, "{card}");
        }
    }
}
