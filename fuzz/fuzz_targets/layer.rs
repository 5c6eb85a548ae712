#![no_main]
//! A layer of a container image.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::layer(bytes).expect("every promise is kept");
});
