#![no_main]
//! A Jumith bundle.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::bundle(bytes).expect("every promise is kept");
});
