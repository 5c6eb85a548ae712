//! The variables that send a program to the proxy.
//!
//! What reads which: curl reads `http_proxy` only in lower case and the others in both;
//! Python, git, pip, npm, Go, Ruby and Rust's clients read either; Node itself reads them from
//! 22.21 and 24 on, and only if `NODE_USE_ENV_PROXY` is set. Java reads none of them, and
//! its own variable would print a line to the tool's stderr, so it is left out.
//!
//! `ALL_PROXY` is HTTP too, though the proxy speaks SOCKS5 on the same port: several clients
//! fail at start when it names a scheme they have no library for.
//!
//! Inside the walls, `localhost` is the tool's own loopback, and programs must reach servers
//! they started themselves, so it is not proxied; Go's clients never proxy it
//! whatever the variables say, so no other choice would hold for all. A service of the
//! owner's machine, if granted as `localhost:3000` or `127.0.0.1:3000`, has a door there, and is reached
//! as `host.haft.internal:3000` ([`Name::HOST_MACHINE`](crate::Name::HOST_MACHINE)) too.

use std::net::Ipv4Addr;

/// What is not asked of the proxy: the tool's own loopback. Some read IPv6 in brackets only.
const OWN_LOOPBACK: &str = "localhost,127.0.0.1,::1,[::1]";

/// The variables for a proxy at this port of the tool's own loopback.
pub fn proxy_variables(port: u16) -> Vec<(String, String)> {
    let proxy = format!("http://{}:{port}", Ipv4Addr::LOCALHOST);
    let both = |name: &str, value: &str| {
        [(name.to_owned(), value.to_owned()), (name.to_ascii_lowercase(), value.to_owned())]
    };
    let mut variables = Vec::new();
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        variables.extend(both(name, &proxy));
    }
    variables.extend(both("NO_PROXY", OWN_LOOPBACK));
    variables.push(("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned()));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_comes_in_the_spellings_that_programs_read() {
        let variables = proxy_variables(8123);
        let value = |name: &str| {
            let found = variables.iter().find(|(own, _)| own == name);
            found.map(|(_, value)| value.as_str())
        };
        for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy"] {
            assert_eq!(value(name), Some("http://127.0.0.1:8123"), "{name}");
        }
        assert_eq!(value("no_proxy"), value("NO_PROXY"));
        assert!(!value("no_proxy").unwrap().contains("haft"));
        assert_eq!(value("NODE_USE_ENV_PROXY"), Some("1"));
    }
}
