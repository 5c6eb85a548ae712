//! Redirects, followed by hand.

use reqwest::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName,
    LOCATION, PROXY_AUTHORIZATION,
};
use reqwest::{Method, StatusCode};

use super::error::SendError;
use super::message::{Request, Response};

/// What comes after a response.
pub(super) enum Next {
    /// Nothing: it is the answer.
    Done(Box<Response>),
    /// A request to where it points.
    Elsewhere(Box<Request>),
}

/// Headers that say who asks, whether or not they are marked.
const CREDENTIALS: [HeaderName; 4] =
    [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, HeaderName::from_static("x-api-key")];

/// The request that a redirect asks for; `None` if the response is no redirect, or none is to be followed.
pub(super) fn next(
    request: &Request,
    status: StatusCode,
    headers: &HeaderMap,
    redirects: u32,
) -> Result<Option<Request>, SendError> {
    let keeps_method = match status.as_u16() {
        // As browsers do, and every server expects by now.
        301 | 302 => request.method != Method::POST,
        303 => request.method == Method::HEAD,
        307 | 308 => true,
        _ => return Ok(None),
    };
    let Some(location) = headers.get(LOCATION).filter(|_| request.redirects > 0) else {
        return Ok(None);
    };
    if redirects >= request.redirects {
        return Err(SendError::TooManyRedirects { most: request.redirects });
    }
    let location = location.to_str().map_err(|_| SendError::BadRedirect)?;
    let mut next = request.clone();
    next.url = request.url.join(location).map_err(|_| SendError::BadRedirect)?;
    if request.url.scheme() == "https" && next.url.scheme() == "http" {
        return Err(SendError::Downgrade);
    }
    if next.url.origin() != request.url.origin() {
        drop_credentials(&mut next.headers);
    }
    if !keeps_method {
        next.method = Method::GET;
        next.body = None;
        for name in [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE] {
            next.headers.remove(name);
        }
    }
    Ok(Some(next))
}

fn drop_credentials(headers: &mut HeaderMap) {
    let secret =
        headers.iter().filter(|(name, value)| value.is_sensitive() || CREDENTIALS.contains(name));
    let secret: Vec<_> = secret.map(|(name, _)| name.clone()).collect();
    for name in secret {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;
    use reqwest::header::HeaderValue;

    use super::*;

    fn request(method: Method, url: &str) -> Request {
        let mut request = Request::new(method, Url::parse(url).unwrap());
        request.body = Some(b"{}".to_vec());
        let mut own = HeaderValue::from_static("s3cret");
        own.set_sensitive(true);
        for (name, value) in [
            ("authorization", HeaderValue::from_static("Bearer s3cret")),
            ("x-api-key", HeaderValue::from_static("s3cret")),
            ("x-own-token", own),
            ("content-type", HeaderValue::from_static("application/json")),
            ("x-plain", HeaderValue::from_static("plain")),
        ] {
            request.headers.insert(HeaderName::from_static(name), value);
        }
        request
    }

    fn after(request: &Request, status: u16, to: &str) -> Result<Option<Request>, SendError> {
        let to = HeaderValue::from_str(to).unwrap();
        let headers = HeaderMap::from_iter([(LOCATION, to)]);
        next(request, StatusCode::from_u16(status).unwrap(), &headers, 0)
    }

    #[test]
    fn another_origin_is_told_no_secret() {
        let asked = request(Method::GET, "https://a.test/x");
        for (to, keeps) in [
            ("/y", true),
            ("https://a.test:443/y", true),
            ("https://b.test/y", false),
            ("https://a.test:8443/y", false),
            ("https://sub.a.test/y", false),
            ("//b.test/y", false),
        ] {
            let next = after(&asked, 302, to).unwrap().unwrap();
            for name in ["authorization", "x-api-key", "x-own-token"] {
                assert_eq!(next.headers.contains_key(name), keeps, "{to} {name}");
            }
            assert!(next.headers.contains_key("x-plain"));
        }
    }

    #[test]
    fn a_body_goes_where_its_method_goes() {
        let posted = |status| after(&request(Method::POST, "http://a.test/"), status, "/y");
        for (status, method) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST")] {
            let next = posted(status).unwrap().unwrap();
            assert_eq!(next.method.as_str(), method);
            assert_eq!(next.body.is_some(), method == "POST");
            assert_eq!(next.headers.contains_key(CONTENT_TYPE), method == "POST");
        }
        let put = after(&request(Method::PUT, "http://a.test/"), 302, "/y").unwrap().unwrap();
        assert_eq!((put.method, put.body.is_some()), (Method::PUT, true));
    }

    #[test]
    fn what_leads_nowhere_safe_is_not_followed() {
        let asked = request(Method::GET, "https://a.test/x");
        assert!(matches!(after(&asked, 302, "http://a.test/"), Err(SendError::Downgrade)));
        assert!(matches!(after(&asked, 302, "https://"), Err(SendError::BadRedirect)));
        assert!(after(&asked, 304, "/y").unwrap().is_none());
        let none = Request { redirects: 0, ..asked };
        assert!(after(&none, 302, "/y").unwrap().is_none());
    }
}
