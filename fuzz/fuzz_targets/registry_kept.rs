#![no_main]
//! A file with an answer that was kept.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::registry_kept(bytes).expect("every promise is kept");
});
