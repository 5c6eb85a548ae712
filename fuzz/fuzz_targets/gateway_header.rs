#![no_main]
//! A header of a request to the gateway.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gateway::mcp::promises::header(bytes).expect("every promise is kept");
});
