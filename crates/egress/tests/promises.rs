//! What must hold for any bytes at all: the bodies of the fuzz targets, as ordinary tests.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::sample::select;
use testkit::draws::holds;
use testkit::fuzz;

/// How many cases of each kind are tried.
const CASES: u32 = 20_000;

/// Pieces that targets and rules are made of, and some that they must not be.
const AUTHORITY: &[&str] = &[
    "a",
    "Z9",
    "ok.test",
    "example.com",
    ".",
    "..",
    ":",
    ":80",
    ":443",
    ":0",
    ":65536",
    ":*",
    "*.",
    "*",
    "127.0.0.1",
    "127.1",
    "0x7f",
    "0177",
    "1",
    "[",
    "]",
    "[::1]",
    "::ffff:1.2.3.4",
    "fd00::",
    "/8",
    "/",
    "@",
    "%",
    "\\",
    "-",
    "_",
    "xn--",
    "\0",
    " ",
    "\u{fc}",
    "localhost",
    "10.0.0.0/8",
    "2002:",
    "64:ff9b::",
];

/// Pieces that heads are made of.
const HEAD: &[&str] = &[
    "GET ",
    "POST ",
    "CONNECT ",
    "http://ok.test/",
    "HTTP://a:8080?q",
    "ok.test:443",
    " HTTP/1.1\r\n",
    " HTTP/1.0\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 204\r\n",
    "Host: ok.test\r\n",
    "Host: a:8080\r\n",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "X: y\r\n",
    "X:\t \r\n",
    "Connection: x\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    "\0",
    "\u{7f}",
    "\u{fc}",
    "/path",
    "#",
    "a",
];

/// Pieces in any order, with any bytes among them now and then.
fn joined<P: AsRef<[u8]> + Copy + std::fmt::Debug>(
    pieces: &'static [P],
    most: usize,
) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        9 => select(pieces).prop_map(|piece| piece.as_ref().to_vec()),
        1 => vec(any::<u8>(), 1..4),
    ];
    vec(piece, 0..most).prop_map(|pieces| pieces.concat())
}

/// Pieces that challenges are made of, and some that they must not be.
const CHALLENGE: &[&str] = &[
    "Bearer",
    "Basic",
    "bearer ",
    "Negotiate dGVzdA==",
    " ",
    "\t",
    ",",
    ", ",
    "=",
    " = ",
    "realm",
    "scope",
    "error",
    "resource_metadata",
    "realm=\"a, b=c\"",
    "scope=\"a b\"",
    "error=insufficient_scope",
    "error=\"invalid_token\", ",
    "\"",
    "\\",
    "\\\"",
    "\"x\"",
    "https://a.test/.well-known/x?y=z",
    "a",
    "A=1",
    "~+/",
    "(",
    "\r\n",
    "ü",
];

/// A sound head with some pieces put into it.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let sound = select(
        &[
            "GET http://ok.test/path HTTP/1.1\r\nHost: ok.test\r\nX: y\r\n\r\n",
            "POST http://a:8080?q HTTP/1.1\r\nHost: a:8080\r\nContent-Length: 5\r\n\r\n",
            "CONNECT ok.test:443 HTTP/1.1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        ][..],
    );
    (sound, any::<usize>(), joined(HEAD, 3), 0..3_usize).prop_map(|(sound, at, piece, cut)| {
        let at = at % sound.len();
        let after = (at + cut).min(sound.len());
        [&sound.as_bytes()[..at], &piece, &sound.as_bytes()[after..]].concat()
    })
}

#[test]
fn every_promise_is_kept_for_targets_and_rules() {
    holds(CASES, &joined(AUTHORITY, 6), |bytes| fuzz::authority(&bytes));
}

#[test]
fn every_promise_is_kept_for_heads() {
    holds(CASES, &joined(HEAD, 8), |bytes| fuzz::head(&bytes));
    holds(CASES, &damaged(), |bytes| fuzz::head(&bytes));
}

#[test]
fn every_promise_is_kept_for_challenges() {
    holds(CASES, &joined(CHALLENGE, 12), |bytes| fuzz::challenge(&bytes));
}

/// Parts of questions for names: heads, names, types and what lies between.
const QUESTION: &[&[u8]] = &[
    b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00",
    b"\x00\x00\x81\x80\x00\x01\x00\x01\x00\x00\x00\x01",
    b"\x12\x34\x28\x00\x00\x02\xff\xff\x00\x00\x00\x01",
    b"\x03api\x07example\x03com\x00",
    b"\x09localhost\x00",
    b"\x011\x07in-addr\x04arpa\x00",
    b"\x03A b\x02\xff.\x00",
    b"\xc0\x0c",
    b"\xc0\xff",
    b"\x00\x01\x00\x01",
    b"\x00\x1c\x00\x01",
    b"\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00",
    b"\x3f",
    b"\x00",
    b"\xff",
];

#[test]
fn every_promise_is_kept_for_questions() {
    holds(CASES, &joined(QUESTION, 6), |bytes| fuzz::question(&bytes));
    let plain =
        QUESTION[0].iter().chain(QUESTION[3]).chain(QUESTION[9]).copied().collect::<Vec<_>>();
    fuzz::question(&plain).unwrap();
    assert_eq!(egress::names::refused(&[plain])[0].asked, "api.example.com");
}
