//! Errors of commands: one clear sentence, and exit code 2 for an invalid setting or 1 for all other errors.

use billing_application::error::UseCaseError;
use billing_domain::ports::{SecretError, StoreError};
use billing_storage::{DatabaseUrlError, OpenError};
use thiserror::Error;

/// The reason why a command failed.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    /// An invalid setting.
    #[error("{0}")]
    Setting(String),
    /// Any other error.
    #[error("{0}")]
    Failed(String),
}

/// The result of a command.
pub(crate) type CommandResult<T> = Result<T, CommandError>;

impl CommandError {
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Setting(_) => 2,
            Self::Failed(_) => 1,
        }
    }

    /// Converts a store error into one sentence with its causes.
    pub(crate) fn store(error: StoreError) -> Self {
        let mut sentence = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            sentence = format!("{sentence}: {inner}");
            cause = inner.source();
        }
        Self::Failed(sentence)
    }
}

impl From<UseCaseError> for CommandError {
    fn from(error: UseCaseError) -> Self {
        match error {
            UseCaseError::Store(error) => Self::store(error),
            UseCaseError::Secret(error @ (SecretError::PasswordLength | SecretError::CommonPassword)) => {
                Self::Setting(format!("invalid password: {error}"))
            }
            UseCaseError::Unknown(_) | UseCaseError::AlreadyExists { .. } | UseCaseError::Invalid(_) => {
                Self::Setting(error.to_string())
            }
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<OpenError> for CommandError {
    fn from(error: OpenError) -> Self {
        Self::Setting(error.to_string())
    }
}

impl From<DatabaseUrlError> for CommandError {
    fn from(error: DatabaseUrlError) -> Self {
        Self::Setting(error.to_string())
    }
}
