//! JSON from requests and files: a strict parser, and a content hash that detects repeats from either source.

mod flat;
mod hash;
mod label;
mod nearest;
mod read;

pub use flat::{FlatObject, Scalar, Text, read_object};
pub use hash::{KEY_MEMBER, hash};
pub use label::report_value;
pub use nearest::nearest;
pub use read::{JsonError, read, read_next};
