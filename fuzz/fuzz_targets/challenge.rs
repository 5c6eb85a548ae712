#![no_main]
//! What a server says of who should ask.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::challenge(bytes).expect("every promise is kept");
});
