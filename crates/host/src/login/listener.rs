//! Where a browser brings its answer to: this machine alone, a port nobody knew before, one use.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use egress::http::Url;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::attempt::{Attempt, Redirected};
use super::error::LoginError;

/// The path that counts.
const PATH: &str = "/callback";

/// The longest head of a request.
const MOST: usize = 16 << 10;

/// How long one visitor may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many visitors are heard at a time.
const MOST_VISITORS: usize = 32;

/// The longest wait, which is longer than anybody waits.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// Waits for a browser.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    redirect: Url,
}

impl Listener {
    /// Listens on this machine; on a port that is free, unless the owner registered one.
    pub async fn open(port: Option<u16>) -> Result<Self, LoginError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await;
        let listener = listener.map_err(LoginError::Listen)?;
        let port = listener.local_addr().map_err(LoginError::Listen)?.port();
        let redirect = Url::parse(&format!("http://127.0.0.1:{port}{PATH}"));
        let redirect = redirect.expect("an address and a port make a URL");
        Ok(Self { listener, redirect })
    }

    /// Where the browser is to be sent.
    pub fn redirect(&self) -> &Url {
        &self.redirect
    }

    /// Waits for the answer to an attempt. Whoever comes without its state is sent away, so no other page
    /// can end it; the first who has it ends the waiting, whatever it brings. Nobody holds up the next.
    pub async fn wait(self, attempt: &Attempt, within: Duration) -> Result<Redirected, LoginError> {
        let mut visits = FuturesUnordered::new();
        let answered = timeout(within.min(LONGEST), async {
            loop {
                tokio::select! {
                    visitor = self.listener.accept(), if visits.len() < MOST_VISITORS => {
                        let (stream, _) = visitor.map_err(LoginError::Listen)?;
                        visits.push(self.visit(stream, attempt));
                    }
                    Some(Some(answer)) = visits.next() => return answer,
                }
            }
        });
        answered.await.unwrap_or(Err(LoginError::TimedOut))
    }

    /// Hears a visitor out; `None` where it does not come from this attempt.
    async fn visit(
        &self,
        mut stream: TcpStream,
        attempt: &Attempt,
    ) -> Option<Result<Redirected, LoginError>> {
        let visit = timeout(PATIENCE, self.visited(&mut stream)).await;
        let read = match visit {
            Ok(Ok(Some(target))) => Some(attempt.read(&target)),
            _ => None,
        };
        let (status, page) = match &read {
            None => ("404 Not Found", NOTHING),
            Some(Ok(_)) => ("200 OK", DONE),
            Some(Err(LoginError::State | LoginError::Odd { .. })) => ("400 Bad Request", NOTHING),
            Some(Err(_)) => ("200 OK", REFUSED),
        };
        let _ = timeout(PATIENCE, answer(&mut stream, status, page)).await;
        read.filter(|read| !matches!(read, Err(LoginError::State | LoginError::Odd { .. })))
    }

    /// What a visitor asks for; `None` where it is nothing of ours.
    async fn visited(&self, stream: &mut TcpStream) -> io::Result<Option<String>> {
        let mut head = Vec::new();
        let mut piece = [0; 2048];
        while !head.windows(4).any(|four| four == b"\r\n\r\n") {
            let count = stream.read(&mut piece).await?;
            if count == 0 || head.len() + count > MOST {
                return Ok(None);
            }
            head.extend_from_slice(&piece[..count]);
        }
        let own = self.redirect.authority();
        Ok(std::str::from_utf8(&head).ok().and_then(|head| target(head, own)).map(str::to_owned))
    }
}

/// The path and query of a request that is for us: a GET of our path, under our own name, so that no other
/// name was made to lead here.
fn target<'h>(head: &'h str, own: &str) -> Option<&'h str> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let mut hosts = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim());
    let is_ours = method == "GET"
        && version.starts_with("HTTP/1.")
        && target.split('?').next() == Some(PATH)
        && hosts.next() == Some(own)
        && hosts.next().is_none();
    is_ours.then_some(target)
}

async fn answer(stream: &mut TcpStream, status: &str, page: &str) -> io::Result<()> {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

const DONE: &str = "<!doctype html><title>Haft</title><p>Haft has your answer. The terminal says how it went; this page can be closed.\n";
const REFUSED: &str = "<!doctype html><title>Haft</title><p>You are not signed in. The terminal says why; this page can be closed.\n";
const NOTHING: &str = "<!doctype html><title>Haft</title><p>There is nothing here.\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_for_our_page_under_our_name_counts() {
        let read = |head: &str| target(head, "127.0.0.1:7").map(str::to_owned);
        let good = "GET /callback?code=x HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n";
        assert_eq!(read(good).as_deref(), Some("/callback?code=x"));
        for head in [
            "POST /callback?code=x HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n",
            "GET /favicon.ico HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n",
            "GET http://evil.test/callback HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n",
            "GET /callback?code=x HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "GET /callback?code=x HTTP/1.1\r\nHost: 127.0.0.1:7\r\nHost: evil.test\r\n\r\n",
            "GET /callback?code=x HTTP/1.1\r\n\r\n",
            "GET /callback?code=x\r\n\r\n",
            "",
        ] {
            assert_eq!(read(head), None, "{head}");
        }
    }
}
