//! Statement failures, mapped to the three errors of a store.

use billing_domain::ports::{DatabaseReplaced, NodeUnavailable, StoreError};
use diesel::result::{DatabaseErrorKind, Error};

/// The failure of a statement. The transaction remembers it, even if the work ignores the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatementError {
    /// A conflict with another transaction; the work can be retried.
    Contended,
    /// A statement failed with an error that only its message describes. It can be a deadlock in the language of a
    /// PostgreSQL server ([decision 0036](../../../docs/decisions/0036-unclassified-database-errors-are-retried.md)).
    Unknown(String),
    /// No connection became available in time. Nothing was executed.
    NoConnection(String),
    /// The database cannot be reached, has no space, or took too long.
    Unavailable { reason: String, lost: bool },
    /// Another program replaced or truncated the database file.
    Replaced,
    /// A row has an invalid value, or a constraint rejected a write.
    Corrupt(String),
    /// The database does not support the statement, so another attempt fails, too.
    Unsupported(String),
    /// A node of a distributed database cannot be reached.
    NodeUnavailable(NodeUnavailable),
}

/// Message parts of errors after which a retry can succeed. diesel drops the SQLSTATE, so 40P01, 55P03 and SQLite's
/// codes are visible only in messages. Connections to PostgreSQL request English messages, but not every user may;
/// messages in other languages become [`StatementError::Unknown`].
const CONTENDED: [&str; 5] = [
    "deadlock detected",
    "canceling statement due to lock timeout",
    "could not serialize access",
    "database is locked",
    "database table is locked",
];
/// Message parts of constraints that reject a write. An error of another node has no kind of its own.
const REJECTED: [&str; 4] = [
    "duplicate key value violates unique constraint",
    "violates foreign key constraint",
    "violates check constraint",
    "violates not-null constraint",
];
/// Message parts of statements that a database, above all a distributed one, does not support. diesel drops the SQLSTATE
/// 0A000. Citus has these messages in English only.
const UNSUPPORTED: [&str; 7] = [
    " not supported",
    " only supported",
    "could not run distributed query",
    "could not create distributed plan",
    "cannot push down",
    "cannot perform ",
    "complex joins are",
];
/// Message parts of errors after which a connection is unusable. libpq has no code for these.
const LOST: [&str; 5] = [
    "server closed the connection",
    "connection to server",
    "terminating connection",
    "no connection to the server",
    "could not receive data from server",
];

/// Message parts of a node that could not reach another one.
const BETWEEN_NODES: [&str; 2] = ["connection to the remote node", "connection not open"];

/// Returns the host and port in a message such as "connection to the remote node user@host:port failed".
fn node_in(message: &str) -> &str {
    let rest = message.split_once("remote node ").map_or("", |(_, rest)| rest);
    let node = rest.split(' ').next().unwrap_or_default();
    node.rsplit_once('@').map_or(node, |(_, address)| address)
}

impl StatementError {
    /// Classifies the error of a statement on a table.
    pub(crate) fn of(table: &str, error: &Error) -> Self {
        let Error::DatabaseError(kind, information) = error else {
            return match error {
                Error::DeserializationError(source) => Self::Corrupt(format!("{table}: {}", chain(source.as_ref()))),
                _ => Self::Unavailable { reason: format!("{table}: {error}"), lost: false },
            };
        };
        let message = information.message();
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        match kind {
            DatabaseErrorKind::SerializationFailure => Self::Contended,
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand => {
                Self::Unavailable { reason: format!("{table}: {message}"), lost: true }
            }
            DatabaseErrorKind::UniqueViolation
            | DatabaseErrorKind::ForeignKeyViolation
            | DatabaseErrorKind::NotNullViolation
            | DatabaseErrorKind::CheckViolation
            | DatabaseErrorKind::RestrictViolation
            | DatabaseErrorKind::ExclusionViolation => Self::Corrupt(format!("{table}: {message}")),
            _ if says(&CONTENDED) => Self::Contended,
            // One node could not reach another one.
            _ if says(&BETWEEN_NODES) => Self::NodeUnavailable(NodeUnavailable {
                name: node_in(message).to_owned(),
                reason: format!("{table}: {message}"),
            }),
            _ if says(&REJECTED) => Self::Corrupt(format!("{table}: {message}")),
            _ if says(&UNSUPPORTED) => Self::Unsupported(format!("{table}: {message}")),
            _ if says(&LOST) => Self::Unavailable { reason: format!("{table}: {message}"), lost: true },
            _ => Self::Unknown(format!("{table}: {message}")),
        }
    }

    /// Returns whether the connection is unusable.
    pub(crate) const fn is_lost(&self) -> bool {
        matches!(self, Self::Unavailable { lost: true, .. })
    }
}

impl From<StatementError> for StoreError {
    fn from(failure: StatementError) -> Self {
        match failure {
            StatementError::Contended => Self::Contended,
            StatementError::Unknown(reason)
            | StatementError::NoConnection(reason)
            | StatementError::Unavailable { reason, .. } => unavailable(reason),
            StatementError::Replaced => unavailable(DatabaseReplaced),
            StatementError::Corrupt(what) => Self::Corrupt(what),
            StatementError::Unsupported(what) => Self::Unsupported(what),
            StatementError::NodeUnavailable(node) => unavailable(node),
        }
    }
}

/// Returns an unavailable store, with the reason.
pub(crate) fn unavailable(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Unavailable(reason.into())
}

/// Returns an error's message with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(kind: DatabaseErrorKind, message: &str) -> StatementError {
        StatementError::of("documents", &Error::DatabaseError(kind, Box::new(message.to_owned())))
    }

    #[test]
    fn errors_that_another_attempt_may_not_meet_are_contended() {
        for message in ["deadlock detected", "database is locked", "canceling statement due to lock timeout"] {
            assert_eq!(database(DatabaseErrorKind::Unknown, message), StatementError::Contended, "{message}");
        }
        assert_eq!(database(DatabaseErrorKind::SerializationFailure, "any"), StatementError::Contended);
    }

    #[test]
    fn what_only_a_text_tells_is_unknown_and_ends_as_unavailable() {
        for message in ["Verklemmung entdeckt", "database or disk is full"] {
            let failure = database(DatabaseErrorKind::Unknown, message);
            assert_eq!(failure, StatementError::Unknown(format!("documents: {message}")));
            assert!(matches!(StoreError::from(failure), StoreError::Unavailable(_)));
        }
    }

    #[test]
    fn a_lost_server_is_unavailable() {
        assert!(database(DatabaseErrorKind::ClosedConnection, "gone").is_lost());
        assert!(database(DatabaseErrorKind::Unknown, "server closed the connection unexpectedly").is_lost());
    }

    #[test]
    fn a_refused_constraint_is_corrupt_and_names_the_table() {
        let failure = database(DatabaseErrorKind::CheckViolation, "no");
        assert_eq!(failure, StatementError::Corrupt("documents: no".to_owned()));
    }
}
