#![no_main]
//! A target of a proxy, or a rule.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::authority(bytes).expect("every promise is kept");
});
