#![no_main]
//! An answer of a registry.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::registry_answer(bytes).expect("every promise is kept");
});
