//! API keys. Only the response that creates a password contains it; `Debug` never does.

use billing_application::keys::{GeneratedKey, KeyRequest, RotatedKey, Rotation};
use billing_domain::access::{ApiKey, DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS, Scope, Scopes};
use billing_domain::calendar::Timestamp;
use billing_domain::text::OneLine;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::ArrayBuilder;

use super::declare::{answer, body, fields, response, wire};
use super::enums::ScopeWord;
use super::input::Node;
use super::schemas::integer;
use super::values::{LineText, TimestampText};
use super::wire::AssignedRef;

fields! {
    KeyRequest {
        /// Display name.
        name: Option<OneLine>,
        /// Expiry time. Default: never.
        expires_at: Option<Timestamp>,
        /// Permitted scopes. Default: all.
        scopes: Scopes = Scopes::all(),
    }
}

body! {
    /// An API key to create. The body may be omitted.
    KeyBody {
        @flat request: KeyRequest,
    }
}

body! {
    /// Options for rotating an API key. The body may be omitted.
    KeyRotationBody {
        /// Hours for which the old key remains valid beside its successor. Default: 24.
        overlap_hours: OverlapHours = DEFAULT_OVERLAP_HOURS,
        /// Expiry time of the successor. By default, its lifetime equals the old key's.
        expires_at: Option<Timestamp>,
    }
}

impl KeyRotationBody {
    /// Returns the rotation.
    pub const fn rotation(&self) -> Rotation {
        Rotation { overlap_hours: self.overlap_hours, expires_at: self.expires_at }
    }
}

/// The time for which a key remains valid beside its successor.
pub struct OverlapHours;

wire! {
    OverlapHours of u16: |node| node.whole(0..=MAX_OVERLAP_HOURS), |_| integer(0, MAX_OVERLAP_HOURS.into());
    Scopes: scopes,
        |schemas| ArrayBuilder::new().items(schemas.refer::<ScopeWord>()).min_items(Some(1)).max_items(Some(Scope::ALL.len()));
}

fn scopes(node: Node<'_>) -> Option<Scopes> {
    let scopes = node.list(Scope::ALL.len(), Node::word::<ScopeWord>)?;
    if scopes.is_empty() {
        return node.refuse("out_of_range", "must have at least one element, or be omitted for all scopes");
    }
    Some(Scopes::of(&scopes))
}

answer! {
    /// An API key, without its password.
    ApiKeyJson of key: ApiKey {
        /// Reference of the API key.
        api_key_ref: AssignedRef = key.api_key_ref,
        /// Key name, which is the log-in name of an API client.
        #[schema(pattern = "^[A-Z0-9]{20}$")]
        api_key: String = key.api_key.clone(),
        /// Display name.
        name: Option<LineText> = key.name.as_ref(),
        /// Permitted scopes.
        scopes: Vec<ScopeWord> = key.scopes.iter(),
        /// Time of creation.
        created_at: TimestampText = key.created_at,
        /// Time of the latest request with this key or its tokens, accurate to about a minute.
        last_used_at: Option<TimestampText> = key.last_used_at,
        /// Expiry time.
        expires_at: Option<TimestampText> = key.expires_at,
        /// Reference of the successor, if the key was rotated.
        successor_ref: Option<AssignedRef> = key.successor,
        /// Time of the last change, also of `last_used_at`.
        updated_at: TimestampText = key.updated_at,
    }
}

response! {
    /// A new API key with its password, which is not shown again.
    #[derive(Serialize, ToSchema)]
    pub struct GeneratedKeyJson {
        /// Key name, which is the log-in name of an API client.
        #[schema(pattern = "^[A-Z0-9]{20}$")]
        api_key: String,
        /// Password of the key; not shown again.
        password: String,
        /// Reference of the API key.
        api_key_ref: AssignedRef,
    }
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

response! {
    /// The successor of an API key with its password, which is not shown again.
    #[derive(Serialize, ToSchema)]
    pub struct RotatedKeyJson {
        /// Key name of the successor.
        #[schema(pattern = "^[A-Z0-9]{20}$")]
        api_key: String,
        /// Password of the successor; not shown again.
        password: String,
        /// Reference of the successor.
        api_key_ref: AssignedRef,
        /// Expiry time of the successor.
        expires_at: Option<TimestampText>,
        /// Reference of the rotated key.
        rotated_ref: AssignedRef,
        /// Expiry time of the rotated key.
        rotated_expires_at: Option<TimestampText>,
    }
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
