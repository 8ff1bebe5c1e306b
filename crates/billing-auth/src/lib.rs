//! The ports for secrets: passwords, second factors, random keys, bearer tokens and sealed values.
//!
//! The crate makes no authorization decisions (see the domain's `access`), and it has no store and no clock. It
//! deliberately has no choice of algorithms, no second hash and no cookies.

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
