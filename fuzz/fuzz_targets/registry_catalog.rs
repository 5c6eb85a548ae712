#![no_main]
//! A catalog or an index of manifests.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::registry_catalog(bytes).expect("every promise is kept");
});
