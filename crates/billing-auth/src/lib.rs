//! The ports for secrets: people's passwords and codes, random keys, bearer tokens, what is sealed.
//!
//! It isn't where it is decided who may do what (that is the domain's `access`), and it keeps nothing: no
//! store, no clock. What isn't here is on purpose: no algorithm to choose, no second hash, no cookie.

mod codes;
mod keys;
mod passwords;
mod sealing;
mod tokens;

pub use codes::TimedCodes;
pub use keys::RandomKeys;
pub use passwords::{BcryptPasswords, COSTS, DEFAULT_COST};
pub use sealing::AesSealer;
pub use tokens::{JwtSigner, LEEWAY_SECONDS, MAX_TOKEN_BYTES, MIN_SECRET_BYTES};

use billing_domain::ports::SecretError;

fn failed(error: impl std::fmt::Display) -> SecretError {
    SecretError::Failed(error.to_string())
}
