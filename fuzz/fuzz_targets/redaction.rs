#![no_main]
//! A secret, then, after a NUL, a text that may show it.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::redaction(bytes).expect("every promise is kept");
});
