#![no_main]
//! A recording of what servers answered: it answers, or is refused in words.

use host::tape::{Asked, Tape, Turn};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match prove::Recording::read(bytes) {
        Ok(recording) => {
            let (method, url) = ("GET".to_owned(), "https://a.test/".to_owned());
            let turn = recording.answer(&Asked { method, url, body_sha256: None });
            assert!(turn != Turn::Server, "nobody is asked");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
