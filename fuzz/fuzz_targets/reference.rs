#![no_main]
//! A reference to a secret.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::reference(bytes).expect("every promise is kept");
});
