//! Log-ins: a key with its password, or an administrator's e-mail with theirs.

use std::fmt;

use billing_domain::access::Administrator;
use billing_domain::calendar::Timestamp;
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Fields};
use super::wire::{self, AssignedRef, EmailText, LineText, TimestampText};

/// Who logs in: an API client with `api_key` and `password`, or an administrator with `email` and `password`.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({"api_key": "7KQ2M4X9B1C8D5F3G6H0", "password": "the password shown when the key was made"}))]
pub(crate) struct LogInBody {
    /// An API client's key.
    api_key: Option<LineText>,
    /// The same as `api_key`, by the name the schema table of the interface gives it.
    username: Option<LineText>,
    /// An administrator's e-mail address.
    email: Option<LineText>,
    /// The password.
    #[schema(schema_with = wire::password_input)]
    password: String,
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
    pub(crate) fn read(body: &Value) -> Result<LogIn, Violations> {
        input::read(body, |fields| {
            let text = |name| fields.required(name, |node| node.line().map(|line| line.as_str().to_owned()));
            let name = name_field(fields);
            let user = name.and_then(text);
            let password = text("password");
            let (name, user, password) = (name?, user?, password?);
            Some(match name {
                "email" => LogIn::Administrator { email: user, password },
                _ => LogIn::ApiKey { api_key: user, password },
            })
        })
    }
}

/// The one field that names who logs in.
fn name_field(fields: Fields<'_>) -> Option<&'static str> {
    let mut given = ["api_key", "username", "email"].into_iter().filter(|name| fields.has(name));
    let Some(first) = given.next() else {
        return fields.refuse("api_key", "required", "must be given, unless email is");
    };
    for other in given {
        fields.refuse::<()>(other, "not_allowed", format!("must be left out, because {first} is given"));
    }
    Some(first)
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
