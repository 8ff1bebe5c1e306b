//! API keys. A password goes out once, from the answer that made it, and never into `Debug`.

use billing_application::access::{GeneratedKey, KeyRequest};
use billing_domain::access::{ApiKey, Scope, Scopes};
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Node};
use super::wire::{AssignedRef, LineText, TimestampText};
use super::words::ScopeWord;

/// An API key to make. The whole body may be left out.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({"name": "meter gateway", "expires_at": "2099-12-31T23:59:59Z", "scopes": ["usage:write", "read"]}))]
pub(crate) struct KeyBody {
    /// What people call it.
    name: Option<LineText>,
    /// When it stops working; never when left out.
    expires_at: Option<TimestampText>,
    /// What it may do; everything when left out.
    #[schema(min_items = 1, max_items = 5)]
    scopes: Option<Vec<ScopeWord>>,
}

impl KeyBody {
    /// Reads a key to make; without a body it may do everything and never expires.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: Option<&Value>) -> Result<KeyRequest, Violations> {
        input::read_optional(body, |fields| {
            let name = fields.optional("name", Node::line);
            let expires_at = fields.optional("expires_at", Node::timestamp);
            let scopes = fields.defaulted("scopes", None, Scopes::all(), scopes);
            Some(KeyRequest { name, scopes, expires_at })
        })
    }
}

fn scopes(node: Node<'_>) -> Option<Scopes> {
    let scopes = node.list(Scope::ALL.len(), Node::word::<ScopeWord>)?;
    if scopes.is_empty() {
        return node.refuse("out_of_range", "must have at least one element, or be left out for every scope");
    }
    Some(Scopes::of(&scopes))
}

/// An API key, without its password.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApiKeyJson {
    /// Reference of the key record.
    api_key_ref: AssignedRef,
    /// The log-in name of an API client.
    #[schema(pattern = "^[A-Z0-9]{20}$")]
    api_key: String,
    /// What people call it.
    name: Option<LineText>,
    /// What it may do.
    scopes: Vec<ScopeWord>,
    /// When it was made.
    created_at: TimestampText,
    /// When a token was last issued for it.
    last_used_at: Option<TimestampText>,
    /// When it stops working.
    expires_at: Option<TimestampText>,
}

impl From<&ApiKey> for ApiKeyJson {
    fn from(key: &ApiKey) -> Self {
        Self {
            api_key_ref: AssignedRef::from(key.api_key_ref),
            api_key: key.api_key.clone(),
            name: key.name.as_ref().map(LineText::from),
            scopes: key.scopes.iter().map(ScopeWord::from).collect(),
            created_at: TimestampText::from(key.created_at),
            last_used_at: key.last_used_at.map(TimestampText::from),
            expires_at: key.expires_at.map(TimestampText::from),
        }
    }
}

/// A new API key with the password that is shown this once.
#[derive(Serialize, ToSchema)]
pub(crate) struct GeneratedKeyJson {
    /// The log-in name of an API client.
    #[schema(pattern = "^[A-Z0-9]{20}$")]
    api_key: String,
    /// Password paired with the key; it can't be shown again.
    password: String,
    /// Reference of the key record.
    api_key_ref: AssignedRef,
}

impl From<&GeneratedKey> for GeneratedKeyJson {
    fn from(made: &GeneratedKey) -> Self {
        Self {
            api_key: made.key.api_key.clone(),
            password: made.password.clone(),
            api_key_ref: AssignedRef::from(made.key.api_key_ref),
        }
    }
}
