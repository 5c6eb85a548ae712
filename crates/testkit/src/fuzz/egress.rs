//! What must hold for any bytes that may be a target, a rule, a challenge, a question for a name or the head of a request.

use std::net::{IpAddr, Ipv4Addr};

use egress::address::{range_of, stands_for};
use egress::escape::{SHOWN_BYTES, escaped};
use egress::head::{Fields, HeadError, Request, Response, Wanted};
use egress::host::{Host, Port};
use egress::http::challenge::{LONGEST, MOST, challenges};
use egress::{Decision, Limits, Rule, Rules, Target};
use proptest::prelude::{prop_assert, prop_assert_eq};

use super::Kept;

/// A target or a rule: what is accepted is plain, and is read again as it is written.
pub fn authority(bytes: &[u8]) -> Kept {
    let shown = escaped(bytes);
    prop_assert!(shown.chars().all(|char| (' '..='~').contains(&char) || char == '…'));
    prop_assert!(shown.len() <= 4 * SHOWN_BYTES + '…'.len_utf8());
    if let Ok(target) = Target::parse(bytes) {
        target_is_plain(&target, bytes)?;
        prop_assert_eq!(Target::parse_or(bytes, Port::HTTP).ok(), Some(target));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    if let Ok(rule) = Rule::parse(text) {
        prop_assert_eq!(Rule::parse(&rule.to_string()).ok(), Some(rule.clone()), "{}", rule);
        let rules: Rules = [rule].into_iter().collect();
        for private in ["127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1"] {
            let stranger = Target::parse(b"stranger.example:443").expect("a plain target");
            let address = private.parse().expect("an address");
            let granted = matches!(rules.decide(&stranger), Decision::Allowed(_));
            let reached = rules.check_address(&stranger, address).is_ok();
            prop_assert!(!reached, "{} reaches {} (granted: {})", text, private, granted);
        }
    }
    Ok(())
}

/// A question for a name: answered or refused, never longer than it may be, and what is told of it can be granted.
pub fn question(bytes: &[u8]) -> Kept {
    let told = egress::names::refused(&[bytes.to_vec()]);
    for one in &told {
        prop_assert!(Rule::parse(&one.asked).is_ok(), "{}", one.asked);
    }
    for found in [None, Some(Ipv4Addr::new(127, 83, 0, 1))] {
        let mut meant = None;
        let answer = egress::names::answer(bytes, |name| {
            meant = Some(name.to_string());
            found
        });
        prop_assert_eq!(
            meant.as_ref(),
            told.first().map(|one| &one.asked).filter(|_| meant.is_some())
        );
        let Some(answer) = answer else { continue };
        prop_assert_eq!(&answer[..2], &bytes[..2], "another question is answered");
        prop_assert!(answer[2] & 0x80 != 0, "a question is answered with a question");
        // Who answers answers gets no end of them.
        prop_assert!(egress::names::answer(&answer, |_| found).is_none());
        let is_refused = answer[3] & 0x0f == 5;
        prop_assert_eq!(is_refused, found.is_none() || meant.is_none());
    }
    Ok(())
}

/// What a server says of who should ask: bounded, each name once, and read again as it is written.
pub fn challenge(bytes: &[u8]) -> Kept {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    let found = challenges(text);
    prop_assert!(found.len() <= MOST);
    prop_assert!(text.len() <= LONGEST || found.is_empty());
    for one in &found {
        let is_word = |word: &str| {
            let is_letter = |byte: u8| byte.is_ascii_graphic() && !b"\",=".contains(&byte);
            !word.is_empty() && word.bytes().all(is_letter) && *word == word.to_ascii_lowercase()
        };
        prop_assert!(is_word(&one.scheme) && one.parameters.len() <= MOST, "{:?}", one);
        for (at, (name, value)) in one.parameters.iter().enumerate() {
            prop_assert!(is_word(name), "{:?}", one);
            prop_assert_eq!(one.parameter(name), Some(&**value));
            prop_assert!(one.parameters[..at].iter().all(|(before, _)| before != name));
            // Nothing is made up: every letter of a value was sent.
            prop_assert!(value.chars().all(|letter| text.contains(letter)));
        }
        let written = one.to_string();
        if written.len() <= LONGEST {
            prop_assert_eq!(challenges(&written), vec![one.clone()], "{}", written);
        }
    }
    // All of them together mean the same as each by itself.
    let together: Vec<_> = found.iter().map(ToString::to_string).collect();
    let together = together.join(", ");
    if together.len() <= LONGEST {
        prop_assert_eq!(challenges(&together), found, "{}", together);
    }
    Ok(())
}

/// The head of a request or a response: `httparse` reads the same from whatever is accepted.
pub fn head(bytes: &[u8]) -> Kept {
    let limits = Limits::DEFAULT;
    match Request::parse(bytes, &limits) {
        Ok(request) => {
            let mut lines = [httparse::EMPTY_HEADER; 128];
            let mut theirs = httparse::Request::new(&mut lines);
            let read = theirs.parse(bytes);
            prop_assert_eq!(read, Ok(httparse::Status::Complete(bytes.len())));
            prop_assert_eq!(theirs.method, Some(request.method.as_str()));
            fields_are_same(&request.fields, theirs.headers)?;
            if let Wanted::Fetch { path, .. } = &request.wanted {
                prop_assert!(path.starts_with('/'));
                let url = theirs.path.unwrap_or_default();
                prop_assert!(url.ends_with(path.as_str()) || url.ends_with(&path[1..]));
            }
            let written = request.target.to_string();
            target_is_plain(&request.target, written.as_bytes())?;
        }
        Err(HeadError::Target { asked, .. }) => prop_assert!(asked.len() <= 4 * SHOWN_BYTES + 4),
        Err(error) => prop_assert!(!error.to_string().is_empty()),
    }
    if let Ok(response) = Response::parse(bytes, &limits) {
        let mut lines = [httparse::EMPTY_HEADER; 128];
        let mut theirs = httparse::Response::new(&mut lines);
        prop_assert_eq!(theirs.parse(bytes), Ok(httparse::Status::Complete(bytes.len())));
        prop_assert_eq!(theirs.code, Some(response.status));
        fields_are_same(&response.fields, theirs.headers)?;
    }
    Ok(())
}

fn fields_are_same(ours: &Fields, theirs: &[httparse::Header<'_>]) -> Kept {
    let ours: Vec<_> =
        ours.iter().map(|field| (field.name.as_str(), field.value.as_slice())).collect();
    let theirs: Vec<_> = theirs.iter().map(|field| (field.name, field.value)).collect();
    prop_assert_eq!(ours, theirs);
    Ok(())
}

fn target_is_plain(target: &Target, bytes: &[u8]) -> Kept {
    let written = target.to_string();
    prop_assert!(written.bytes().all(|byte| byte.is_ascii_graphic()), "{written:?}");
    prop_assert_eq!(Target::parse(written.as_bytes()).ok(), Some(target.clone()));
    match &target.host {
        Host::Name(name) => {
            // Nothing but the case differs from what was asked.
            prop_assert!(bytes.eq_ignore_ascii_case(written.as_bytes()), "{written:?}");
            prop_assert!(name.as_str().parse::<IpAddr>().is_err(), "{written:?}");
            prop_assert!(!name.as_str().ends_with('.') && name.as_str().len() <= 253);
        }
        Host::Ip(address) => {
            prop_assert_eq!(range_of(*address), range_of(stands_for(*address)));
        }
    }
    Ok(())
}
