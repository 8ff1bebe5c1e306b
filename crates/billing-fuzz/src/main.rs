//! Runs a target of this crate under libFuzzer. `scripts/fuzz` builds and calls this binary.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| billing_fuzz::chosen().run(bytes));
