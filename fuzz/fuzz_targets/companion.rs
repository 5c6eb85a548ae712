#![no_main]
//! A companion.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::companion(bytes).expect("every promise is kept");
});
