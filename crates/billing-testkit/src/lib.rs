//! Test support: in-memory store, builders, the contract suite of the ports
