//! API keys. A password goes out once, from the answer that made it, and never into `Debug`.

use billing_application::access::{GeneratedKey, KeyRequest};
use billing_domain::access::{ApiKey, Scope, Scopes};
use billing_domain::calendar::Timestamp;
use billing_domain::text::OneLine;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, Schema};

use super::declare::{Wire, body, fields};
use super::input::Node;
use super::schemas::Schemas;
use super::wire::{AssignedRef, LineText, TimestampText};
use super::words::ScopeWord;

fields! {
    KeyRequest {
        /// What people call it.
        name: Option<OneLine>,
        /// When it stops working; never when left out.
        expires_at: Option<Timestamp>,
        /// What it may do; everything when left out.
        scopes: Scopes = Scopes::all(),
    }
}

body! {
    /// An API key to make. The whole body may be left out.
    KeyBody {
        @flat request: KeyRequest,
    }
    example json!({"name": "meter gateway", "expires_at": "2099-12-31T23:59:59Z", "scopes": ["usage:write", "read"]});
}

impl Wire for Scopes {
    type Value = Self;

    fn read(node: Node<'_>) -> Option<Self> {
        let scopes = node.list(Scope::ALL.len(), Node::word::<ScopeWord>)?;
        if scopes.is_empty() {
            return node.refuse("out_of_range", "must have at least one element, or be left out for every scope");
        }
        Some(Self::of(&scopes))
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        ArrayBuilder::new().items(schemas.refer::<ScopeWord>()).min_items(Some(1)).max_items(Some(Scope::ALL.len())).into()
    }
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
