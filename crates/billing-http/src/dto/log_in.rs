//! Log-ins: a key with its password, or an administrator's e-mail with theirs.

use std::fmt;

use billing_domain::access::Administrator;
use billing_domain::calendar::Timestamp;
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::declare::{Fieldset as _, body};
use super::input;
use super::values::Password;
use super::wire::{AssignedRef, EmailText, TimestampText};

body! {
    /// Who logs in: an API client with `api_key` and `password`, or an administrator with `email` and `password`.
    LogInBody {
        /// An API client's key.
        api_key: Option<OneLine>,
        /// The same as `api_key`, by the name the schema table of the interface gives it.
        username: Option<OneLine>,
        /// An administrator's e-mail address.
        email: Option<OneLine>,
        /// The password.
        password: Password,
        /// An administrator's own password, where `password` is one that another gave them and that works once.
        new_password: Option<Password>,
        /// A code of six digits, or a recovery code, where the administrator has a second factor.
        code: Option<OneLine>,
    }
    with {
        fn check(fields: Fields<'_>) {
            let mut given = ["api_key", "username", "email"].into_iter().filter(|name| fields.has(name));
            let Some(first) = given.next() else {
                fields.refuse::<()>("api_key", "required", "must be given, unless email is");
                return;
            };
            let of_people = ["new_password", "code"].into_iter().filter(|name| first != "email" && fields.has(name));
            for other in given.chain(of_people) {
                fields.refuse::<()>(other, "not_allowed", format!("must be left out, because {first} is given"));
            }
        }
    }
}

/// Who logs in, with the secret to prove it.
#[derive(PartialEq, Eq)]
pub(crate) enum LogIn {
    /// Software.
    ApiKey {
        /// The key.
        api_key: String,
        /// Its password.
        password: String,
    },
    /// A person.
    Administrator {
        /// E-mail address.
        email: String,
        /// Their password.
        password: String,
        /// Their own, where that is one that another gave them.
        new_password: Option<String>,
        /// A code of their second factor.
        code: Option<String>,
    },
}

impl fmt::Debug for LogIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey { .. } => f.write_str("ApiKey(***)"),
            Self::Administrator { .. } => f.write_str("Administrator(***)"),
        }
    }
}

impl LogInBody {
    /// Reads a log-in.
    ///
    /// # Errors
    /// Everything that is wrong with it, without a word of what was submitted.
    pub(crate) fn read_log_in(body: &Value) -> Result<LogIn, Violations> {
        input::read(body, |fields| {
            let Self { api_key, username, email, password, new_password, code } = Self::read_whole(fields)?;
            match (api_key.or(username), email) {
                (Some(key), _) => Some(LogIn::ApiKey { api_key: key.as_str().to_owned(), password }),
                (None, Some(email)) => {
                    let (email, code) = (email.as_str().to_owned(), code.map(|code| code.as_str().to_owned()));
                    Some(LogIn::Administrator { email, password, new_password, code })
                }
                (None, None) => None,
            }
        })
    }
}

/// An administrator's log-in; the cookie comes with it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AdminSessionJson {
    /// The administrator.
    admin_ref: AssignedRef,
    /// Their e-mail address.
    email: EmailText,
    /// When the session ends at the latest.
    expires_at: TimestampText,
}

impl AdminSessionJson {
    /// Of an administrator whose session ends then.
    pub(crate) fn new(administrator: &Administrator, expires_at: Timestamp) -> Self {
        Self {
            admin_ref: AssignedRef::from(administrator.admin_ref),
            email: EmailText::from(&administrator.email),
            expires_at: TimestampText::from(expires_at),
        }
    }
}

/// What a log-in is answered.
#[expect(dead_code, reason = "describes an answer that is one or the other")]
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum LogInAnswer {
    /// A bearer token, for an API key.
    Token(String),
    /// The session, for an administrator.
    Session(AdminSessionJson),
}
