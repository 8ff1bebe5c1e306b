//! JSON from requests and files: a strict parser, and a content hash that detects repeats from either source.

mod flat;
mod hash;
mod read;

pub use flat::{FlatObject, Scalar, Text, read_object};
pub use hash::{KEY_MEMBER, hash};
pub use read::{JsonError, read, read_next};
