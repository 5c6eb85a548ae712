#![no_main]
//! The file of a vault.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::vault(bytes).expect("every promise is kept");
});
