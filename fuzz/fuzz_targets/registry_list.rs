#![no_main]
//! A list of registries.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::registry_list(bytes).expect("every promise is kept");
});
