#![no_main]
//! A tools.json.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::document(manifest::dialect::Dialect::Agentcli, bytes).expect("every promise is kept");
});
