//! JSON from requests and files: a strict parser, and a content hash that detects repeats from either source.

mod hash;
mod read;

pub use hash::{KEY_MEMBER, hash, hash_of_event};
pub use read::{JsonError, read, read_next};
