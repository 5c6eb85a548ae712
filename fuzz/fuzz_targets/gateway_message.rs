#![no_main]
//! A message of a client of the gateway, or several.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gateway::mcp::promises::message(bytes).expect("every promise is kept");
});
