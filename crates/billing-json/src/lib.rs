//! JSON as somebody sent it, in a request or in a file: read strictly, and what it says in a hash, by which repeats are known
//! whichever way they come.

mod hash;
mod read;

pub use hash::{KEY_MEMBER, hash, hash_of_event};
pub use read::{JsonError, read, read_next};
