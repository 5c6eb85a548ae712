#![no_main]
//! What a client of the gateway brings back.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gateway::mcp::promises::sealed(bytes).expect("every promise is kept");
});
