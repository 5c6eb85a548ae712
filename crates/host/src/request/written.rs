//! A request that a manifest writes out, with variables to be filled in: of a smoke test, of a kill switch.

use egress::Rules;
use egress::http::{HeaderMap, HeaderValue, Method};

use super::{Http, Redirects, base, header_name, holds_secret, put_filled, unavailable};
use crate::error::{CallError, Kind};
use crate::strict::strict;
use crate::template::{self, Values};

/// What is written out, and what it is filled from.
pub(crate) struct Written<'w> {
    pub(crate) method: &'w str,
    pub(crate) url: &'w str,
    pub(crate) headers: &'w [(String, String)],
    pub(crate) body: Option<&'w str>,
    pub(crate) redirects: Redirects,
}

/// Makes the request.
pub(crate) fn written(
    of: &Written<'_>,
    values: &Values<'_>,
    rules: Rules,
    most: u64,
) -> Result<Http, CallError> {
    let method = Method::from_bytes(of.method.as_bytes())
        .map_err(|_| unavailable(format!("`{}` is no method", of.method)))?;
    // Whoever is asked where a host is, is told its name.
    if holds_secret(authority(of.url), values) {
        let message = "the host of an address would tell a secret, so it is not asked";
        return Err(CallError::new(Kind::Denied, message));
    }
    let mut url = base(&template::address(of.url, values)?)?;
    url.set_fragment(None);
    let body = of.body.map(|body| template::whole_text(body, values)).transpose()?;
    let mut headers = HeaderMap::new();
    headers.insert(header_name("accept")?, HeaderValue::from_static("application/json, */*;q=0.5"));
    if body.as_deref().and_then(strict).is_some() {
        let json = HeaderValue::from_static("application/json");
        headers.insert(header_name("content-type")?, json);
    }
    put_filled(&mut headers, of.headers, values)?;
    let is_told = |template: &str| holds_secret(template, values);
    let is_told_in_body = of.body.is_some_and(is_told);
    let tells_secret = is_told_in_body
        || is_told(of.url)
        || of.headers.iter().any(|(_, template)| is_told(template));
    // A body goes along wherever an answer points, whole.
    let redirects = if is_told_in_body { Redirects::Left } else { of.redirects };
    let (shown, body) = (of.url.to_owned(), body.map(String::into_bytes));
    let account = None;
    Ok(Http { method, url, shown, headers, body, account, tells_secret, rules, most, redirects })
}

/// What stands between the scheme and the path of an address, filled in or not.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::template::Variable;

    fn make(url: &str, headers: &[(&str, &str)], body: Option<&str>) -> Result<Http, CallError> {
        let variable = |name: &str, value: &str, is_secret| {
            (name.to_owned(), Variable { value: value.to_owned(), is_secret })
        };
        let variables = [variable("KEY", "s3cret", true), variable("ZONE", "a b", false)];
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers: Vec<_> = headers.iter().map(own).collect();
        let of = Written {
            method: "POST",
            url,
            headers: &headers,
            body,
            redirects: Redirects::Followed,
        };
        let values = Values { input: &Value::Null, variables: &variables };
        let made = written(&of, &values, Rules::default(), 1)?;
        made.check_told()?;
        Ok(made)
    }

    #[test]
    fn every_part_is_filled_in_and_none_is_shown() {
        let headers = [("X-Key", "k ${KEY}"), ("X-Gone", "${GONE}")];
        let body = Some(r#"{"zone":"${ZONE}"}"#);
        let made = make("https://a.test/${ZONE}#top", &headers, body).unwrap();
        assert_eq!(
            (made.url.as_str(), &*made.shown),
            ("https://a.test/a%20b", "https://a.test/${ZONE}#top")
        );
        assert_eq!(made.body.unwrap(), br#"{"zone":"a b"}"#);
        assert_eq!(made.headers["x-key"], "k s3cret");
        assert!(made.headers["x-key"].is_sensitive() && !made.headers.contains_key("x-gone"));
        assert_eq!(made.headers["content-type"], "application/json");
        assert_eq!(made.redirects, Redirects::Followed);
        let plain = make("https://a.test/", &[], Some("a=${ZONE}")).unwrap();
        assert!(!plain.headers.contains_key("content-type") && !plain.tells_secret);
    }

    #[test]
    fn a_secret_is_told_in_private_and_nobody_else_is_sent_a_body_that_holds_one() {
        let made = make("https://a.test/", &[], Some("${KEY}")).unwrap();
        assert_eq!((made.redirects, made.tells_secret), (Redirects::Left, true));
        for (url, headers, body) in [
            ("http://a.test/${KEY}", vec![], None),
            ("http://a.test/", vec![("X-Key", "${env.KEY}")], None),
            ("http://a.test/", vec![], Some("${KEY}")),
        ] {
            let error = make(url, &headers, body).unwrap_err();
            assert_eq!(error.kind, Kind::Denied, "{url}");
        }
        assert!(make("http://a.test/", &[], Some("x")).is_ok());
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        assert_eq!(make("https://me:${KEY}@a.test/", &[], None).unwrap_err().kind, Kind::Denied);
        // Whoever says where a host is would be told.
        let error = make("https://${KEY}.a.test/", &[], None).unwrap_err();
        assert!(error.kind == Kind::Denied && !error.message.contains("s3cret"), "{error:?}");
        assert!(
            make("https://${ZONE}.a.test/", &[], None)
                .is_err_and(|error| error.kind != Kind::Denied)
        );
        assert_eq!(make("ftp://a.test/", &[], None).unwrap_err().kind, Kind::Unavailable);
        let error = make("https://a.test/", &[], Some("${GONE}")).unwrap_err();
        assert_eq!(error.message, "missing variable: GONE");
    }
}
