//! API keys. A password goes out once, from the answer that made it, and never into `Debug`.

use billing_application::keys::{GeneratedKey, KeyRequest, RotatedKey};
use billing_domain::access::{ApiKey, DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS, Scope, Scopes};
use billing_domain::calendar::Timestamp;
use billing_domain::text::OneLine;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::ArrayBuilder;

use super::declare::{answer, body, fields, wire};
use super::enums::ScopeWord;
use super::input::Node;
use super::schemas::integer;
use super::wire::{AssignedRef, LineText, TimestampText};

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
}

body! {
    /// How a key is rotated. The whole body may be left out.
    KeyRotationBody {
        /// How many hours the key goes on working beside its successor; 24 when left out.
        overlap_hours: OverlapHours = DEFAULT_OVERLAP_HOURS,
        /// When the successor stops working; when left out, after as long as the key was made for.
        expires_at: Option<Timestamp>,
    }
}

/// How long a key goes on working beside its successor.
pub(crate) struct OverlapHours;

wire! {
    OverlapHours of u16: |node| node.whole(0..=MAX_OVERLAP_HOURS), |_| integer(0, MAX_OVERLAP_HOURS.into());
    Scopes: scopes,
        |schemas| ArrayBuilder::new().items(schemas.refer::<ScopeWord>()).min_items(Some(1)).max_items(Some(Scope::ALL.len()));
}

fn scopes(node: Node<'_>) -> Option<Scopes> {
    let scopes = node.list(Scope::ALL.len(), Node::word::<ScopeWord>)?;
    if scopes.is_empty() {
        return node.refuse("out_of_range", "must have at least one element, or be left out for every scope");
    }
    Some(Scopes::of(&scopes))
}

answer! {
    /// An API key, without its password.
    ApiKeyJson of key: ApiKey {
        /// Reference of the key record.
        api_key_ref: AssignedRef = key.api_key_ref,
        /// The log-in name of an API client.
        #[schema(pattern = "^[A-Z0-9]{20}$")]
        api_key: String = key.api_key.clone(),
        /// What people call it.
        name: Option<LineText> = key.name.as_ref(),
        /// What it may do.
        scopes: Vec<ScopeWord> = key.scopes.iter(),
        /// When it was made.
        created_at: TimestampText = key.created_at,
        /// When a request last came with it or a token of it, within about a minute.
        last_used_at: Option<TimestampText> = key.last_used_at,
        /// When it stops working.
        expires_at: Option<TimestampText> = key.expires_at,
        /// The key that takes its place, where it was rotated.
        successor_ref: Option<AssignedRef> = key.successor,
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

/// The successor of an API key with the password that is shown this once.
#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedKeyJson {
    /// The successor's log-in name.
    #[schema(pattern = "^[A-Z0-9]{20}$")]
    api_key: String,
    /// Its password; it can't be shown again.
    password: String,
    /// Reference of the successor's record.
    api_key_ref: AssignedRef,
    /// When the successor stops working.
    expires_at: Option<TimestampText>,
    /// Reference of the key that gives way.
    rotated_ref: AssignedRef,
    /// When that one stops working.
    rotated_expires_at: Option<TimestampText>,
}

impl From<&RotatedKey> for RotatedKeyJson {
    fn from(rotated: &RotatedKey) -> Self {
        let RotatedKey { old, successor } = rotated;
        Self {
            api_key: successor.key.api_key.clone(),
            password: successor.password.clone(),
            api_key_ref: AssignedRef::from(successor.key.api_key_ref),
            expires_at: successor.key.expires_at.map(TimestampText::from),
            rotated_ref: AssignedRef::from(old.api_key_ref),
            rotated_expires_at: old.expires_at.map(TimestampText::from),
        }
    }
}
