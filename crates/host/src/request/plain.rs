//! Secrets are told to nobody in plain, except on this machine.

use egress::http::{Url, is_here};
use policy::Reason;

use crate::error::{CallError, Kind};

/// Refuses to send a secret where everybody on the way could read it. There is no grant for this: whoever owns
/// the server can give it a certificate, or a way in through this machine.
pub(crate) fn check_private(url: &Url) -> Result<(), CallError> {
    if url.scheme() == "https" || is_here(url) {
        return Ok(());
    }
    let host = url.host_str().unwrap_or_default();
    let message = format!("a secret is not sent to `{host}` over plain `http`, only over `https`");
    let reason = Reason { rule: "secrets", says: message.clone() }.to_string();
    Err(CallError::new(Kind::Denied, message).with("reasons", vec![reason]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_goes_over_tls_or_stays_on_this_machine() {
        let is_private = |text: &str| check_private(&Url::parse(text).unwrap()).is_ok();
        for url in [
            "https://api.example.com/",
            "https://10.0.0.1/",
            "http://127.0.0.1:8080/",
            "http://127.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://localhost/",
            "http://LOCALHOST:80/",
        ] {
            assert!(is_private(url), "{url}");
        }
        for url in [
            "http://api.example.com/",
            "http://10.0.0.1/",
            "http://192.168.1.1/",
            "http://[fe80::1]/",
            "http://localhost.example.com/",
            "http://a.localhost/",
            "http://127.0.0.1.example.com/",
            "http://0.0.0.0/",
        ] {
            assert!(!is_private(url), "{url}");
        }
    }
}
