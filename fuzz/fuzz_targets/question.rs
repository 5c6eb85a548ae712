#![no_main]
//! What a tool asks a name server.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::question(bytes).expect("every promise is kept");
});
