//! The collector that the environment names, in the variables that all programs of OpenTelemetry read.

use std::time::Duration;

use egress::http::{HeaderMap, HeaderName, HeaderValue, Url};
use percent_encoding::percent_decode_str;
use trace::{Collector, Elsewhere, Sampler};

use crate::exit::{Exit, Failure};

/// How long a collector may take to answer unless it is told otherwise.
const WITHIN: Duration = Duration::from_secs(10);

/// The collector that the environment names; none where it names none.
pub(super) fn named(service: &str) -> Result<Option<Collector>, Failure> {
    read(service, |name| std::env::var(name).ok())
}

fn read(
    usual: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Collector>, Failure> {
    // One that is empty is one that is not set.
    let get =
        |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|it| !it.is_empty());
    // What is said of traces alone comes before what is said of everything.
    let either = |rest: &str| {
        ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"].into_iter().find_map(|start| {
            let name = format!("{start}{rest}");
            get(&name).map(|text| (name, text))
        })
    };
    let is_off = get("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"))
        || get("OTEL_TRACES_EXPORTER").is_some_and(|text| text == "none");
    let Some((name, address)) = either("ENDPOINT").filter(|_| !is_off) else { return Ok(None) };
    let mut url = address_of(&name, &address)?;
    if !name.contains("TRACES") {
        let path = format!("{}/v1/traces", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    // Collectors take both forms at one address, so one who asks for protocol buffers is told in JSON.
    if let Some((name, protocol)) = either("PROTOCOL")
        && !protocol.starts_with("http/")
    {
        return Err(wrong(&name, "traces are sent over HTTP: give `http/json`"));
    }
    let within = match either("TIMEOUT") {
        Some((name, text)) => Duration::from_millis(
            text.parse().map_err(|_| wrong(&name, "give a number of milliseconds"))?,
        ),
        None => WITHIN,
    };
    let headers = either("HEADERS").map(|(name, text)| headers_of(&name, &text)).transpose()?;
    let mut resource = match get("OTEL_RESOURCE_ATTRIBUTES") {
        Some(text) => pairs("OTEL_RESOURCE_ATTRIBUTES", &text)?,
        None => Vec::new(),
    };
    let service = get("OTEL_SERVICE_NAME");
    if service.is_some() || !resource.iter().any(|(key, _)| key == "service.name") {
        resource.retain(|(key, _)| key != "service.name");
        resource.push(("service.name".to_owned(), service.unwrap_or_else(|| usual.to_owned())));
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    if !resource.iter().any(|(key, _)| key == "service.version") {
        resource.push(("service.version".to_owned(), version));
    }
    let (name, share) = (get("OTEL_TRACES_SAMPLER"), get("OTEL_TRACES_SAMPLER_ARG"));
    let sampler = sampler_of(name.as_deref(), share.as_deref())?;
    let headers = headers.unwrap_or_default();
    Ok(Some(Collector { url, headers, within, resource, sampler }))
}

fn wrong(name: &str, hint: &str) -> Failure {
    Failure::new(Exit::Invalid, format!("`{name}` cannot be read")).hint(hint)
}

fn address_of(name: &str, text: &str) -> Result<Url, Failure> {
    let message = "give http:// or https://, a host, and a port, without a password";
    let url = Url::parse(text).map_err(|_| wrong(name, message))?;
    let is_plain = ["http", "https"].contains(&url.scheme())
        && url.host_str().is_some()
        && url.username().is_empty()
        && url.password().is_none();
    if is_plain { Ok(url) } else { Err(wrong(name, message)) }
}

/// Names with values: `a=1,b=2`, where anything may be encoded with `%`.
fn pairs(name: &str, text: &str) -> Result<Vec<(String, String)>, Failure> {
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let key = key.trim();
        (!key.is_empty()).then(|| (key.to_owned(), value.into_owned()))
    };
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    let pairs: Option<Vec<_>> = parts.map(pair).collect();
    // The text may be a secret, so it is not repeated.
    pairs.ok_or_else(|| wrong(name, "write name=value, with commas between several"))
}

fn headers_of(name: &str, text: &str) -> Result<HeaderMap, Failure> {
    let header = |(key, value): (String, String)| {
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::from_bytes(key.as_bytes()).ok()?, value))
    };
    let headers: Option<HeaderMap> = pairs(name, text)?.into_iter().map(header).collect();
    headers.ok_or_else(|| wrong(name, "give names and values as HTTP has them"))
}

fn sampler_of(name: Option<&str>, share: Option<&str>) -> Result<Sampler, Failure> {
    let share = || match share {
        None => Ok(1.0),
        Some(text) => text
            .parse::<f64>()
            .ok()
            .filter(|share| (0.0..=1.0).contains(share))
            .ok_or_else(|| wrong("OTEL_TRACES_SAMPLER_ARG", "give a share from 0 to 1")),
    };
    let (share, elsewhere) = match name.unwrap_or("parentbased_always_on") {
        "always_on" => (1.0, Elsewhere::Counted),
        "always_off" => (0.0, Elsewhere::Counted),
        "traceidratio" => (share()?, Elsewhere::Counted),
        "parentbased_always_on" => (1.0, Elsewhere::Followed),
        "parentbased_always_off" => (0.0, Elsewhere::Followed),
        "parentbased_traceidratio" => (share()?, Elsewhere::Followed),
        _ => {
            let known = "give always_on, always_off or traceidratio, with parentbased_ before it where others decide";
            return Err(wrong("OTEL_TRACES_SAMPLER", known));
        }
    };
    Ok(Sampler { share, elsewhere })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Result<Option<Collector>, Failure> {
        read("usual", |name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, text)| (*text).to_owned())
        })
    }

    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

    #[test]
    fn no_collector_is_told_unless_one_is_named() {
        for off in [
            &[][..],
            &[(ENDPOINT, "")],
            &[(ENDPOINT, "http://c:4318"), ("OTEL_SDK_DISABLED", "true")],
            &[(ENDPOINT, "http://c:4318"), ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert!(of(off).unwrap().is_none(), "{off:?}");
        }
    }

    #[test]
    fn what_is_said_of_traces_comes_before_what_is_said_of_everything() {
        let found = of(&[(ENDPOINT, "http://c:4318/base/")]).unwrap().unwrap();
        assert_eq!(found.url.as_str(), "http://c:4318/base/v1/traces");
        assert_eq!((found.within, found.sampler), (WITHIN, Sampler::default()));
        assert_eq!(found.resource[0], ("service.name".into(), "usual".into()));
        let found = of(&[
            (ENDPOINT, "http://c:4318"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/in"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=1"),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Bearer%20x, b = 2"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=prod"),
            ("OTEL_SERVICE_NAME", "tools"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ]);
        let found = found.unwrap().unwrap();
        assert_eq!(found.url.as_str(), "https://t/in");
        assert_eq!((found.headers.len(), &found.headers["b"]), (2, &HeaderValue::from_static("2")));
        assert_eq!(found.headers["authorization"], "Bearer x");
        assert!(found.headers["authorization"].is_sensitive());
        assert_eq!(found.within, Duration::from_millis(250));
        let names = found.resource.iter().filter(|(key, _)| key == "service.name");
        assert_eq!(names.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["tools"]);
        assert!(found.resource.iter().any(|(_, value)| value == "prod"));
        assert_eq!(found.sampler, Sampler { share: 0.25, elsewhere: Elsewhere::Followed });
    }

    #[test]
    fn what_cannot_be_read_is_named_and_not_repeated() {
        for (name, text) in [
            (ENDPOINT, "collector-secret:4318"),
            (ENDPOINT, "http://user:secret@c"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc-secret"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "secret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0A"),
            ("OTEL_TRACES_SAMPLER", "secret"),
        ] {
            let mut set = vec![(name, text)];
            set.extend((name != ENDPOINT).then_some((ENDPOINT, "http://c:4318")));
            let Err(failure) = of(&set) else { panic!("{name}={text} is taken") };
            assert!(failure.message.contains(name), "{}", failure.message);
            assert!(!format!("{failure:?}").contains("secret"), "{failure:?}");
        }
        let share = [
            (ENDPOINT, "http://c:4318"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "2"),
        ];
        assert!(of(&share).is_err());
    }
}
