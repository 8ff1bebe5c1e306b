//! Log-ins with an API key and its password, or with an administrator's e-mail address and password.

use std::fmt;

use billing_domain::access::Administrator;
use billing_domain::calendar::Timestamp;
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::declare::{Fieldset as _, body, response};
use super::input;
use super::values::{Password, TimestampText};
use super::wire::{AssignedRef, EmailText};

body! {
    /// Log-in credentials: `api_key` and `password` of an API client, or `email` and `password` of an administrator.
    LogInBody {
        /// Key name of an API client.
        api_key: Option<OneLine>,
        /// Alias of `api_key` from the schema table of the interface specification.
        username: Option<OneLine>,
        /// E-mail address of an administrator.
        email: Option<OneLine>,
        /// Password.
        password: Password,
        /// New password chosen by the administrator, if `password` is a one-time password.
        new_password: Option<Password>,
        /// Six-digit code or recovery code, if the administrator has a second factor.
        code: Option<OneLine>,
    }
    with {
        fn check(fields: Fields<'_>) {
            let mut given = ["api_key", "username", "email"].into_iter().filter(|name| fields.has(name));
            let Some(first) = given.next() else {
                fields.refuse::<()>("api_key", "required", "must be given if email is not given");
                return;
            };
            let of_people = ["new_password", "code"].into_iter().filter(|name| first != "email" && fields.has(name));
            for other in given.chain(of_people) {
                fields.refuse::<()>(other, "not_allowed", format!("must be omitted, because {first} is given"));
            }
        }
    }
}

/// The credentials of a log-in.
#[derive(PartialEq, Eq)]
pub enum LogIn {
    /// An API client.
    ApiKey {
        /// Key name.
        api_key: String,
        /// Password of the key.
        password: String,
    },
    /// An administrator.
    Administrator {
        /// E-mail address.
        email: String,
        /// Password.
        password: String,
        /// New password, if `password` is a one-time password.
        new_password: Option<String>,
        /// Code of the second factor.
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
    /// Returns all violations, without submitted values.
    pub fn read_log_in(body: &Value) -> Result<LogIn, Violations> {
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

response! {
    /// An administrator's log-in. The response sets the session cookie.
    #[derive(Debug, Serialize, ToSchema)]
    pub struct AdminSessionJson {
        /// Reference of the administrator.
        admin_ref: AssignedRef,
        /// E-mail address.
        email: EmailText,
        /// Latest end of the session.
        expires_at: TimestampText,
    }
}

impl AdminSessionJson {
    /// Builds the response for an administrator's session with this expiry.
    pub fn new(administrator: &Administrator, expires_at: Timestamp) -> Self {
        Self {
            admin_ref: AssignedRef::from(administrator.admin_ref),
            email: EmailText::from(&administrator.email),
            expires_at: TimestampText::from(expires_at),
        }
    }
}

/// The response to a log-in.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum LogInAnswer {
    /// Bearer token of an API client.
    Token(String),
    /// Session of an administrator.
    Session(AdminSessionJson),
}
