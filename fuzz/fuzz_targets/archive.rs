#![no_main]
//! A zip archive.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::archive(bytes).expect("every promise is kept");
});
