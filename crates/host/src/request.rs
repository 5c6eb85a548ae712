//! A call as an HTTP request: what is sent where, and who it says is asking.

mod login;
mod plain;
mod written;

use std::collections::BTreeSet;

use egress::Rules;
use egress::http::{HeaderMap, HeaderName, HeaderValue, Method, Url};
use manifest::dialect::install_manifest::{Piece, Reference, pieces};
use manifest::model::{Action, Auth, AuthKind, Invocation, OutputFormat, Package};
use serde_json::{Map, Value};

use crate::endpoint;
use crate::error::{CallError, Kind};
use crate::template::{self, Values};

pub(crate) use login::{Account, put_bearer};
pub(crate) use plain::check_private;
pub(crate) use written::{Written, written};

/// A request that is ready to be sent, but for a token that has to be fetched first.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// The URL that may be written down: no value of the input or of a variable is in it.
    pub(crate) shown: String,
    /// Secrets among them are marked as such.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
    /// Where a token comes from, if one is needed.
    pub(crate) account: Option<Account>,
    /// Whether the server is told a secret.
    pub(crate) tells_secret: bool,
    pub(crate) rules: Rules,
    /// Bytes of the answer.
    pub(crate) most: u64,
    /// Whether it goes on where the answer points to.
    pub(crate) redirects: Redirects,
}

/// What is done about an answer that points elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// It is followed, and no other origin is told a header that is secret.
    Followed,
    /// It is the answer.
    Left,
}

/// What a request is made of.
pub(crate) struct Sources<'s> {
    /// The URL the package names.
    pub(crate) base: &'s str,
    pub(crate) method: &'s str,
    /// What is appended to it, with values to be filled in.
    pub(crate) path: &'s str,
    pub(crate) headers: &'s [(String, String)],
    pub(crate) auth: Option<&'s Auth>,
    pub(crate) format: Option<OutputFormat>,
    pub(crate) values: Values<'s>,
    pub(crate) rules: Rules,
    pub(crate) most: u64,
}

/// Makes the request of a call.
pub(crate) fn make(of: Sources<'_>) -> Result<Http, CallError> {
    let base = base(of.base)?;
    let method = Method::from_bytes(of.method.as_bytes())
        .map_err(|_| unavailable(format!("`{}` is no method", of.method)))?;
    let (path, mut taken) = template::path(of.path, &of.values)?;
    // What a header is made with has its place, too.
    let in_headers = of.headers.iter().flat_map(|(_, template)| template::inputs(template));
    taken.extend(in_headers.map(str::to_owned));
    let mut url = join(&base, &path);
    let left = left(of.values.input, &taken);
    let mut shown = join_text(of.base, of.path);
    let takes_body = matches!(method, Method::POST | Method::PUT | Method::PATCH);
    let body = if takes_body {
        Some(Value::Object(left).to_string().into_bytes())
    } else {
        put_into_query(&mut url, &mut shown, &left);
        None
    };
    let mut headers = HeaderMap::new();
    headers.insert(header_name("accept")?, HeaderValue::from_static(accepted(of.format)));
    if body.is_some() {
        let json = HeaderValue::from_static("application/json");
        headers.insert(header_name("content-type")?, json);
    }
    put_filled(&mut headers, of.headers, &of.values)?;
    let account = match of.auth {
        Some(auth) => login::sign_in(auth, &of.values, &mut headers)?,
        None => None,
    };
    let templates = of.headers.iter().map(|(_, template)| template.as_str()).chain([of.path]);
    let tells_secret = of.auth.is_some_and(signs_in)
        || templates.into_iter().any(|template| holds_secret(template, &of.values));
    let (rules, most, redirects) = (of.rules, of.most, Redirects::Followed);
    Ok(Http { method, url, shown, headers, body, account, tells_secret, rules, most, redirects })
}

impl Http {
    /// Refuses it where a secret would be told in plain, or at a token endpoint that may not be reached. The address
    /// of that one is among the values of the call, so it is not known before.
    pub(crate) fn check_told(&self) -> Result<(), CallError> {
        let asked = self.tells_secret.then_some(&self.url);
        let signed_in = self.account.as_ref().map(|account| &account.token_url);
        asked.into_iter().chain(signed_in).try_for_each(check_private)?;
        signed_in.map_or(Ok(()), |url| endpoint::check_url(url, &self.rules))
    }
}

/// Whether every request of an action tells a secret, whatever else it is made with.
pub(crate) fn needs_secret(package: &Package, action: &Action) -> bool {
    let is_needed = |name: &str| {
        package.inputs.iter().any(|input| input.secret && input.required && input.name == name)
    };
    let is_told = match &action.invocation {
        Invocation::Http { path, headers, .. } => {
            let mut templates = headers.iter().map(|(_, template)| template).chain([path]);
            templates.any(|template| variables_of(template).any(is_needed))
        }
        _ => false,
    };
    is_told || package.auth.as_ref().is_some_and(signs_in)
}

fn signs_in(auth: &Auth) -> bool {
    auth.kind != AuthKind::None
}

fn base(text: &str) -> Result<Url, CallError> {
    let url = Url::parse(text).map_err(|_| unavailable("the URL of its endpoint is none"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(unavailable(format!("its endpoint is of `{}`, not of http", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let message = "the URL of its endpoint holds a user or a password";
        return Err(CallError::new(Kind::Denied, message));
    }
    Ok(url)
}

/// Appends a path. It is set as a path, so nothing in it can become a host.
fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_fragment(None);
    if path.is_empty() {
        return url;
    }
    let (path, query) =
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let before = base.path().trim_end_matches('/');
    url.set_path(&format!("{before}/{}", path.strip_prefix('/').unwrap_or(path)));
    let queries: Vec<_> =
        base.query().into_iter().chain(query).filter(|one| !one.is_empty()).collect();
    let whole = queries.join("&");
    url.set_query((!whole.is_empty()).then_some(&whole));
    url
}

fn join_text(base: &str, path: &str) -> String {
    if path.is_empty() {
        return base.to_owned();
    }
    let (before, query) = base.split_once('?').map_or((base, None), |(a, b)| (a, Some(b)));
    let path = path.strip_prefix('/').unwrap_or(path);
    let mark = if path.contains('?') { '&' } else { '?' };
    let query = query.map(|query| format!("{mark}{query}")).unwrap_or_default();
    format!("{}/{path}{query}", before.trim_end_matches('/'))
}

/// The input without what went into the path.
fn left(input: &Value, taken: &BTreeSet<String>) -> Map<String, Value> {
    let mut left = input.as_object().cloned().unwrap_or_default();
    for path in taken {
        let mut steps: Vec<_> = path.split('.').collect();
        let Some(last) = steps.pop() else { continue };
        let within = steps.into_iter().try_fold(&mut left, |members, step| {
            members.get_mut(step).and_then(Value::as_object_mut)
        });
        if let Some(members) = within {
            members.shift_remove(last);
        }
    }
    left
}

/// Scalars as text, lists as one pair for each item, objects as JSON; what is null is left out.
fn put_into_query(url: &mut Url, shown: &mut String, members: &Map<String, Value>) {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for (name, value) in members {
        match value {
            Value::Array(items) => {
                pairs.extend(items.iter().filter_map(as_text).map(|text| (&**name, text)));
            }
            value => pairs.extend(as_text(value).map(|text| (&**name, text))),
        }
    }
    if pairs.is_empty() {
        return;
    }
    for (name, _) in &pairs {
        let mark = if shown.contains('?') { '&' } else { '?' };
        shown.push_str(&format!("{mark}{name}=…"));
    }
    url.query_pairs_mut().extend_pairs(pairs);
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn accepted(format: Option<OutputFormat>) -> &'static str {
    match format {
        Some(OutputFormat::Json) => "application/json",
        Some(OutputFormat::Text) => "text/plain, */*;q=0.5",
        Some(OutputFormat::NdjsonStream) => "application/x-ndjson, application/json;q=0.5",
        None => "application/json, */*;q=0.5",
        Some(OutputFormat::Binary | OutputFormat::None) => "*/*",
    }
}

/// Puts headers in, with their values filled in; one whose optional value is absent is left out.
fn put_filled(
    headers: &mut HeaderMap,
    templates: &[(String, String)],
    values: &Values<'_>,
) -> Result<(), CallError> {
    for (name, template) in templates {
        if let Some(value) = template::header(template, values)? {
            headers.insert(header_name(name)?, header_value(name, &value, is_secret(template))?);
        }
    }
    Ok(())
}

/// Whether a header holds a variable: those are for the one server they were meant for.
fn is_secret(template: &str) -> bool {
    variables_of(template).next().is_some()
}

/// Whether a template is filled in with what is secret, where that is set.
fn holds_secret(template: &str, values: &Values<'_>) -> bool {
    variables_of(template)
        .any(|name| values.variables.iter().any(|(known, one)| known == name && one.is_secret))
}

/// The variables that a template is filled in with.
fn variables_of(template: &str) -> impl Iterator<Item = &str> {
    pieces(template).into_iter().filter_map(|piece| match piece {
        Piece::Reference(Reference::Env(name) | Reference::Bare(name)) => Some(name),
        _ => None,
    })
}

pub(crate) fn header_name(name: &str) -> Result<HeaderName, CallError> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| unavailable(format!("`{name}` is no name of a header")))
}

pub(crate) fn header_value(
    name: &str,
    text: &str,
    is_secret: bool,
) -> Result<HeaderValue, CallError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        let message = format!(
            "the value for the header `{name}` holds a character that no header is sent with"
        );
        CallError::new(Kind::BadInput, message)
    })?;
    value.set_sensitive(is_secret);
    Ok(value)
}

fn unavailable(why: impl Into<String>) -> CallError {
    CallError::new(Kind::Unavailable, why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::template::Variable;

    fn variables() -> Vec<(String, Variable)> {
        let variable = |name: &str, value: &str| {
            (name.to_owned(), Variable { value: value.to_owned(), is_secret: true })
        };
        vec![
            variable("KEY", "s3cret"),
            variable("A_TOKEN_URL", "https://auth.test/token"),
            variable("A_CLIENT_ID", "me"),
            variable("A_CLIENT_SECRET", "s3cret"),
        ]
    }

    fn request(base: &str, method: &str, path: &str, input: &Value) -> Result<Http, CallError> {
        with(base, method, path, input, &[], None)
    }

    fn with(
        base: &str,
        method: &str,
        path: &str,
        input: &Value,
        headers: &[(&str, &str)],
        auth: Option<&Auth>,
    ) -> Result<Http, CallError> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers: Vec<_> = headers.iter().map(own).collect();
        let variables = variables();
        make(Sources {
            base,
            method,
            path,
            headers: &headers,
            auth,
            format: Some(OutputFormat::Json),
            values: Values { input, variables: &variables },
            rules: Rules::default(),
            most: 1,
        })
    }

    fn auth(kind: AuthKind, env: &[&str]) -> Auth {
        let env = env.iter().map(|name| (*name).to_owned()).collect();
        Auth { kind, scopes: vec!["read".to_owned()], env, docs_url: None }
    }

    #[test]
    fn what_has_no_body_has_a_query() {
        let input = json!({
            "q": "a b&c", "n": 3, "on": true, "tags": ["x", "y", null], "deep": {"k": [1]}, "gone": null
        });
        for method in ["GET", "DELETE", "HEAD", "OPTIONS"] {
            let made = request("https://a.test/find?v=1", method, "", &input).unwrap();
            assert_eq!(
                made.url.as_str(),
                "https://a.test/find?v=1&q=a+b%26c&n=3&on=true&tags=x&tags=y&deep=%7B%22k%22%3A%5B1%5D%7D"
            );
            assert_eq!(made.shown, "https://a.test/find?v=1&q=…&n=…&on=…&tags=…&tags=…&deep=…");
            assert!(made.body.is_none());
        }
        for method in ["POST", "PUT", "PATCH"] {
            let made = request("https://a.test/find?v=1", method, "", &input).unwrap();
            assert_eq!(made.url.as_str(), "https://a.test/find?v=1");
            assert_eq!(made.body.unwrap(), input.to_string().into_bytes());
            assert_eq!(made.headers["content-type"], "application/json");
        }
    }

    #[test]
    fn a_path_takes_its_values_out_of_the_input() {
        let input = json!({"id": "a/../b", "who": {"name": "x y", "age": 3}, "text": "t"});
        let path = "/items/${input.id}/of/${input.who.name}";
        let made = request("https://a.test/v1/", "POST", path, &input).unwrap();
        assert_eq!(made.url.as_str(), "https://a.test/v1/items/a%2F..%2Fb/of/x%20y");
        assert_eq!(made.body.unwrap(), br#"{"who":{"age":3},"text":"t"}"#);
        assert_eq!(made.shown, "https://a.test/v1/items/${input.id}/of/${input.who.name}");
        let made =
            request("https://a.test?k=v", "GET", "/s?q=${input.text}", &json!({"text": "&x"}));
        let made = made.unwrap();
        assert_eq!(made.url.as_str(), "https://a.test/s?k=v&q=%26x");
        assert_eq!(made.shown, "https://a.test/s?q=${input.text}&k=v");
    }

    #[test]
    fn no_path_leads_to_another_host() {
        let input = json!({"x": "@evil.test"});
        for path in ["//evil.test/", "@evil.test/", "${input.x}/", ":1@evil.test", "\\\\evil.test"]
        {
            let made = request("https://a.test", "POST", path, &input).unwrap();
            assert_eq!(made.url.host_str(), Some("a.test"), "{path}");
            assert!(made.url.username().is_empty());
        }
        for base in ["ftp://a.test", "file:///etc", "nonsense"] {
            assert!(request(base, "GET", "", &json!({})).is_err(), "{base}");
        }
        let error = request("https://me:pw@a.test", "GET", "", &json!({})).unwrap_err();
        assert_eq!(error.kind, Kind::Denied);
    }

    #[test]
    fn headers_are_filled_in_and_secrets_among_them_are_marked() {
        let headers = [
            ("Authorization", "Bearer ${env.KEY}"),
            ("X-Id", "${input.id}"),
            ("X-Gone", "${input.gone}"),
            ("Accept", "text/csv"),
        ];
        let input = json!({"id": "7"});
        let made = with("https://a.test", "GET", "", &input, &headers, None).unwrap();
        assert_eq!(made.headers["authorization"], "Bearer s3cret");
        assert!(made.headers["authorization"].is_sensitive());
        assert!(made.headers["x-id"] == "7" && !made.headers["x-id"].is_sensitive());
        assert_eq!(made.url.query(), None, "what a header took is not sent twice");
        assert!(!made.headers.contains_key("x-gone"));
        assert_eq!(made.headers["accept"], "text/csv");
        assert!(!format!("{made:?}").contains("s3cret"));
        let odd = [("X-Id", "${input.id}")];
        let error = with("https://a.test", "GET", "", &json!({"id": "a\r\nb"}), &odd, None);
        assert_eq!(error.unwrap_err().kind, Kind::BadInput);
    }

    #[test]
    fn who_is_asking_is_said_as_the_package_wants_it() {
        let ask = |auth: &Auth| with("https://a.test", "GET", "", &json!({}), &[], Some(auth));
        let made = ask(&auth(AuthKind::Bearer, &["OTHER", "KEY"])).unwrap();
        assert_eq!(made.headers["authorization"], "Bearer s3cret");
        let made = ask(&auth(AuthKind::ApiKey, &["KEY"])).unwrap();
        assert_eq!(made.headers["x-api-key"], "s3cret");
        let made = ask(&auth(AuthKind::Oauth2, &["KEY"])).unwrap();
        assert_eq!(made.headers["authorization"], "Bearer s3cret");
        let names = ["A_TOKEN_URL", "A_CLIENT_ID", "A_CLIENT_SECRET", "KEY"];
        let made = ask(&auth(AuthKind::Oauth2, &names)).unwrap();
        assert!(!made.headers.contains_key("authorization"));
        let account = made.account.unwrap();
        assert_eq!((&*account.client_id, account.scopes), ("me", vec!["read".to_owned()]));
        for (kind, names, name) in [
            (AuthKind::Bearer, vec!["OTHER"], "OTHER"),
            (AuthKind::ApiKey, vec!["OTHER"], "OTHER"),
            (AuthKind::Oauth2, vec!["B_TOKEN_URL", "B_CLIENT_ID"], "B_TOKEN_URL"),
            (AuthKind::Oauth2, vec!["A_TOKEN_URL", "B_CLIENT_ID"], "B_CLIENT_ID"),
            (
                AuthKind::Oauth2,
                vec!["A_TOKEN_URL", "A_CLIENT_ID", "B_REFRESH_TOKEN"],
                "B_REFRESH_TOKEN",
            ),
        ] {
            let error = ask(&auth(kind, &names)).unwrap_err();
            assert_eq!(error.kind, Kind::MissingInput);
            assert_eq!(error.details["missing"][0]["name"], name);
        }
    }
}
