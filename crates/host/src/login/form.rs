//! Forms, and who sends them.

use base64::Engine;
use egress::http::{HeaderValue, Url};

/// Pairs as forms have them.
pub(crate) fn form<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    let mut url = Url::parse("http://form.invalid").expect("it is a URL");
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

/// One value as forms have it.
pub(crate) fn encoded(value: &str) -> String {
    let pair = form([("v", value)]);
    // Not everybody takes `+` for a blank; a plus itself is escaped already.
    pair.strip_prefix("v=").unwrap_or_default().replace('+', "%20")
}

/// A name and a secret in a header.
pub(crate) fn basic(id: &str, secret: &str) -> HeaderValue {
    let words = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{secret}"));
    let value = HeaderValue::from_str(&format!("Basic {words}"));
    let mut value = value.expect("base64 is of letters that a header may have");
    value.set_sensitive(true);
    value
}
