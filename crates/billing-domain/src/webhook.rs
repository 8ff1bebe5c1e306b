//! Webhooks: endpoints that receive notifications, their secrets, and the deliveries to them.
//!
//! The rules about time are here: when the next attempt is due, how long an endpoint is paused, and when it is disabled. Addresses
//! and requests are the subject of the ports [`WebhookUrlPolicy`](crate::ports::WebhookUrlPolicy) and
//! [`WebhookSender`](crate::ports::WebhookSender).

use std::fmt;

use thiserror::Error;

use crate::calendar::Timestamp;
use crate::notification::NotificationType;
use crate::notification::numbering::matches_type;
use crate::patch::Changes;
use crate::refs::{CustomerId, CustomerRef, EndpointRef, NotificationRef, OrganizationId};
use crate::text::OneLine;

/// The maximum number of endpoints of an organization.
pub const MAX_ENDPOINTS: usize = 16;
/// The maximum length of a URL in bytes.
pub const MAX_URL_BYTES: usize = 2048;
/// The maximum number of event types of an endpoint.
pub const MAX_EVENT_TYPES: usize = 50;
/// The maximum number of customers of an endpoint.
pub const MAX_ENDPOINT_CUSTOMERS: usize = 100;
/// The default time for which a replaced secret still signs, in hours.
pub const DEFAULT_SECRET_OVERLAP_HOURS: u16 = 24;
/// The maximum time for which a replaced secret still signs, in hours.
pub const MAX_SECRET_OVERLAP_HOURS: u16 = 168;
/// The maximum number of secrets that sign at a time.
pub const MAX_SECRETS: usize = 2;
/// The number of attempts that a delivery lists.
pub const MAX_LISTED_ATTEMPTS: usize = 10;
/// The maximum size of the excerpt of a response in bytes.
pub const MAX_EXCERPT_BYTES: usize = 1024;
/// The maximum number of deliveries that one replay schedules.
pub const MAX_REPLAYED: u64 = 100_000;

/// An error of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WebhookUrlError {
    /// The URL is longer than [`MAX_URL_BYTES`].
    #[error("must have at most 2048 bytes")]
    TooLong,
    /// The URL has spaces, control characters, characters outside ASCII, or one of `"<>\^`{|}`.
    #[error("must have only the characters of URLs: encode others with %, and write the host in punycode")]
    Character,
    /// The scheme is neither `https` nor `http`.
    #[error("must begin with https:// and a host, such as https://example.com/hooks")]
    Scheme,
    /// The URL has no host, or a port outside 1 to 65535.
    #[error("must have a host, and a port from 1 to 65535 if it has one")]
    Host,
    /// The URL has a user name or a password.
    #[error("must have no user name and password: receivers verify the signature instead")]
    UserInfo,
    /// The URL has a fragment.
    #[error("must have no fragment (#)")]
    Fragment,
}

/// The URL of an endpoint: `https` or `http`, without user information and fragment. Whether `http` and the address are
/// permitted depends on the settings of the server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookUrl(Box<str>);

impl WebhookUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// Returns the violated rule.
    pub fn parse(text: &str) -> Result<Self, WebhookUrlError> {
        if text.len() > MAX_URL_BYTES {
            return Err(WebhookUrlError::TooLong);
        }
        let is_permitted = |byte: u8| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte);
        if !text.bytes().all(is_permitted) {
            return Err(WebhookUrlError::Character);
        }
        let (scheme, rest) = text.split_once("://").ok_or(WebhookUrlError::Scheme)?;
        if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
            return Err(WebhookUrlError::Scheme);
        }
        if text.contains('#') {
            return Err(WebhookUrlError::Fragment);
        }
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(WebhookUrlError::UserInfo);
        }
        if !is_host_and_port(authority) {
            return Err(WebhookUrlError::Host);
        }
        Ok(Self(text.into()))
    }

    /// Returns the URL as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether requests are encrypted.
    pub fn is_https(&self) -> bool {
        self.0.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
    }
}

/// Returns whether the text is a host with an optional port. An IPv6 address is in brackets.
fn is_host_and_port(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':').or(if rest.is_empty() { None } else { Some(rest) })),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    !host.is_empty() && port.is_none_or(is_port)
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The error of an event type that no notification has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be a type of notifications such as document.issued, a group of them such as document.*, or *")]
pub struct UnknownEventType;

/// The notifications that an endpoint receives: one type, a group such as `document.*`, or `*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType(Box<str>);

impl EventType {
    /// Returns `*`, which stands for all types.
    pub fn all() -> Self {
        Self("*".into())
    }

    /// Parses an event type.
    ///
    /// # Errors
    /// Returns [`UnknownEventType`] if no notification can have the type.
    pub fn parse(text: &str) -> Result<Self, UnknownEventType> {
        let pattern = Self(text.into());
        if NotificationType::ALL.iter().any(|kind| pattern.matches(*kind)) { Ok(pattern) } else { Err(UnknownEventType) }
    }

    /// Returns the event type as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether notifications of a type are meant.
    pub fn matches(&self, kind: NotificationType) -> bool {
        matches_type(&self.0, kind)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What callers decide about an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointProfile {
    /// Where notifications are sent.
    pub url: WebhookUrl,
    /// The types of the notifications that the endpoint receives.
    pub event_types: Vec<EventType>,
    /// The customers whose notifications the endpoint receives. `None`: all notifications, also those of no customer.
    pub customer_refs: Option<Vec<CustomerRef>>,
    /// Whether notifications are sent.
    pub enabled: bool,
    /// A description for people.
    pub description: Option<OneLine>,
}

/// Declares enums whose words appear in the API and in stores.
macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $of_variant:literal])+ $variant:ident = $word:literal,)+ })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $of_variant])+ $variant,)+ }

        impl $name {
            /// All values in display order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the word of the value.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Parses a word. Returns `None` for any other word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    )+};
}

words! {
    /// Why the service disabled an endpoint.
    DisabledReason {
        /// No delivery succeeded for five days.
        Failing = "FAILING",
        /// The endpoint answered 410.
        Gone = "GONE",
    }

    /// The state of an endpoint.
    EndpointState {
        /// The last attempt succeeded, or there was none.
        Active = "ACTIVE",
        /// Attempts have failed since the last success.
        Failing = "FAILING",
        /// The endpoint asked to wait, or did not answer in time.
        Paused = "PAUSED",
        /// Nothing is sent.
        Disabled = "DISABLED",
    }

    /// The state of a delivery.
    DeliveryState {
        /// A next attempt is due at some time.
        Pending = "PENDING",
        /// The endpoint accepted the notification.
        Delivered = "DELIVERED",
        /// All attempts failed.
        Failed = "FAILED",
        /// The endpoint was disabled before the notification was accepted.
        Cancelled = "CANCELLED",
    }

    /// The outcome of an attempt.
    AttemptOutcome {
        /// The status was 2xx.
        Delivered = "DELIVERED",
        /// The status was 410.
        Gone = "GONE",
        /// The status was 429, 502, 503 or 504: the endpoint is overloaded.
        Overloaded = "OVERLOADED",
        /// The status was any other.
        Rejected = "REJECTED",
        /// The response did not arrive in time.
        TimedOut = "TIMED_OUT",
        /// No connection could be opened, or it broke off.
        Unreachable = "UNREACHABLE",
        /// The certificate was not accepted, or the encryption failed otherwise.
        TlsFailed = "TLS_FAILED",
        /// The host has an address to which requests may not go, or no address.
        AddressNotPublic = "ADDRESS_NOT_PUBLIC",
        /// Nothing was sent: the settings of the server do not permit the URL, or the secret is unreadable.
        NotSent = "NOT_SENT",
    }

    /// The notifications that a replay schedules.
    ReplayScope {
        /// Those that have no delivery to the endpoint.
        Missing = "MISSING",
        /// Those whose delivery failed or was cancelled.
        Failed = "FAILED",
        /// All, also delivered ones.
        All = "ALL",
    }
}

impl AttemptOutcome {
    /// Returns the outcome of an attempt with a response.
    pub const fn of_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Delivered,
            410 => Self::Gone,
            429 | 502..=504 => Self::Overloaded,
            _ => Self::Rejected,
        }
    }

    /// Returns whether nothing is sent to the endpoint for some time after the attempt. An endpoint that does not answer would
    /// otherwise keep a thread busy for each of its deliveries.
    pub const fn pauses_endpoint(self) -> bool {
        matches!(self, Self::Overloaded | Self::TimedOut)
    }
}

impl ReplayScope {
    /// Returns whether a notification with a delivery in this state is replayed. Without a delivery, the state is `None`. A
    /// pending delivery is never replayed, because it is sent anyway.
    pub fn includes(self, state: Option<DeliveryState>) -> bool {
        match state {
            None => matches!(self, Self::Missing | Self::All),
            Some(DeliveryState::Failed | DeliveryState::Cancelled) => matches!(self, Self::Failed | Self::All),
            Some(DeliveryState::Delivered) => self == Self::All,
            Some(DeliveryState::Pending) => false,
        }
    }
}

/// An endpoint: a URL to which notifications are sent, and what happened there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookEndpoint {
    /// The reference.
    pub endpoint_ref: EndpointRef,
    /// The organization.
    pub organization: OrganizationId,
    /// What callers decide.
    pub profile: EndpointProfile,
    /// Why the service disabled the endpoint.
    pub disabled_reason: Option<DisabledReason>,
    /// Nothing is sent before this instant.
    pub paused_until: Option<Timestamp>,
    /// The number of pauses since the last success.
    pub pauses: u32,
    /// The first failure since the last success.
    pub failing_since: Option<Timestamp>,
    /// The number of failures since the last success.
    pub failures: u64,
    /// The last success.
    pub last_delivered_at: Option<Timestamp>,
    /// The number of notifications about the endpoint.
    pub notification_count: u64,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change by a caller, or by the service when it disabled the endpoint.
    pub updated_at: Timestamp,
}

/// No success for this time disables an endpoint, in seconds: five days.
const MAX_FAILING_SECONDS: i64 = 5 * 86_400;
/// Fewer failures do not disable an endpoint, however long ago the first one was.
const MIN_FAILURES: u64 = 10;

impl WebhookEndpoint {
    /// Creates an endpoint.
    pub const fn new(endpoint_ref: EndpointRef, organization: OrganizationId, profile: EndpointProfile, now: Timestamp) -> Self {
        Self {
            endpoint_ref,
            organization,
            profile,
            disabled_reason: None,
            paused_until: None,
            pauses: 0,
            failing_since: None,
            failures: 0,
            last_delivered_at: None,
            notification_count: 0,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns whether the endpoint receives a notification. A test is sent by the request for it, and to no other endpoint.
    pub fn receives(&self, kind: NotificationType, customer: Option<&CustomerRef>) -> bool {
        self.profile.enabled && kind != NotificationType::WebhookTest && self.selects(kind, customer)
    }

    /// Returns whether the endpoint's types and customers include a notification.
    pub fn selects(&self, kind: NotificationType, customer: Option<&CustomerRef>) -> bool {
        let is_of_customer = match (&self.profile.customer_refs, customer) {
            (None, _) => true,
            (Some(wanted), Some(customer)) => wanted.contains(customer),
            (Some(_), None) => false,
        };
        is_of_customer && self.profile.event_types.iter().any(|wanted| wanted.matches(kind))
    }

    /// Returns the state at an instant.
    pub fn state(&self, now: Timestamp) -> EndpointState {
        if !self.profile.enabled {
            EndpointState::Disabled
        } else if self.paused_until.is_some_and(|until| until > now) {
            EndpointState::Paused
        } else if self.failing_since.is_some() {
            EndpointState::Failing
        } else {
            EndpointState::Active
        }
    }

    /// Applies an edit. An endpoint that is enabled again starts without failures.
    pub fn edit(&mut self, changes: &Changes<EndpointProfile>, now: Timestamp) {
        let was_enabled = self.profile.enabled;
        changes.apply(&mut self.profile);
        if self.profile.enabled && !was_enabled {
            self.clear_failures();
            self.disabled_reason = None;
        }
        self.updated_at = now;
    }

    /// Records the outcome of an attempt at an instant. Returns the reason if the endpoint is disabled from now on.
    pub fn record(
        &mut self,
        outcome: AttemptOutcome,
        retry_after_seconds: Option<u32>,
        now: Timestamp,
    ) -> Option<DisabledReason> {
        if outcome == AttemptOutcome::Delivered {
            self.clear_failures();
            self.last_delivered_at = self.last_delivered_at.max(Some(now));
            return None;
        }
        let since = *self.failing_since.get_or_insert(now);
        self.failures = self.failures.saturating_add(1);
        if outcome.pauses_endpoint() {
            // The outcomes of requests that were sent at the same time are one pause.
            let is_paused = self.paused_until.is_some_and(|until| until > now);
            let earlier = self.pauses.saturating_sub(u32::from(is_paused));
            self.paused_until = self.paused_until.max(Some(pause(earlier, now, retry_after_seconds)));
            self.pauses = earlier.saturating_add(1);
        }
        let is_failing = self.failures >= MIN_FAILURES && since.plus_seconds(MAX_FAILING_SECONDS) <= now;
        let reason = match outcome {
            AttemptOutcome::Gone => DisabledReason::Gone,
            _ if is_failing => DisabledReason::Failing,
            _ => return None,
        };
        if !self.profile.enabled {
            return None;
        }
        self.profile.enabled = false;
        self.disabled_reason = Some(reason);
        self.updated_at = now;
        Some(reason)
    }

    /// Returns whether the endpoint accepted the last attempt. Only one delivery at a time is sent to any other endpoint.
    pub const fn has_accepted_last(&self) -> bool {
        self.failing_since.is_none() && self.last_delivered_at.is_some()
    }

    fn clear_failures(&mut self) {
        self.paused_until = None;
        self.pauses = 0;
        self.failing_since = None;
        self.failures = 0;
    }
}

/// The first pause, in seconds. Each further one doubles it.
const FIRST_PAUSE_SECONDS: i64 = 10;
/// The longest pause that the endpoint did not ask for, in seconds.
const MAX_PAUSE_SECONDS: i64 = 600;
/// The longest pause that the endpoint can ask for, in seconds.
pub const MAX_RETRY_AFTER_SECONDS: u32 = 3600;

/// Returns until when an endpoint is paused that is overloaded or did not answer in time. `pauses` is the number of earlier pauses
/// since the last success.
pub fn pause(pauses: u32, now: Timestamp, retry_after_seconds: Option<u32>) -> Timestamp {
    let seconds = match retry_after_seconds {
        Some(asked) => i64::from(asked.min(MAX_RETRY_AFTER_SECONDS)),
        None => FIRST_PAUSE_SECONDS.checked_shl(pauses.min(16)).unwrap_or(MAX_PAUSE_SECONDS).min(MAX_PAUSE_SECONDS),
    };
    now.plus_seconds(seconds)
}

/// The delays before the second and each further attempt, in seconds.
const DELAYS_SECONDS: [i64; 9] = [5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600];

/// Returns when the next attempt is due after `attempts` failed ones, or `None` if there is no further attempt.
///
/// `jitter` is a random number. It changes the delay by at most ten percent, so that deliveries that failed together are not
/// repeated together. The next attempt is not before the time that the endpoint asked for.
pub fn next_attempt(attempts: u32, now: Timestamp, jitter: u16, retry_after_seconds: Option<u32>) -> Option<Timestamp> {
    let index = usize::try_from(attempts.checked_sub(1)?).ok()?;
    let micros = DELAYS_SECONDS.get(index)? * 1_000_000;
    // From -10 % for the smallest number to +10 % for the largest.
    let change = micros / 10 * (2 * i64::from(jitter) - i64::from(u16::MAX)) / i64::from(u16::MAX);
    let due = Timestamp::from_micros(now.as_micros().saturating_add(micros + change)).unwrap_or(Timestamp::MAX);
    let asked = retry_after_seconds.map(|seconds| now.plus_seconds(i64::from(seconds.min(MAX_RETRY_AFTER_SECONDS))));
    Some(asked.map_or(due, |asked| due.max(asked)))
}

/// The prefix of the text of a secret.
pub const SECRET_PREFIX: &str = "whsec_";
/// The length of 32 bytes in base64url without padding.
const RANDOM_CHARS: usize = 43;

/// The secret with which deliveries are signed, as `whsec_` and 32 bytes in base64. It is shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String);

impl WebhookSecret {
    /// Creates a secret from 32 random bytes in base64url without padding. Returns `None` for any other text.
    pub fn of_random(base64url: &str) -> Option<Self> {
        let standard: String = base64url
            .chars()
            .map(|digit| match digit {
                '-' => '+',
                '_' => '/',
                digit => digit,
            })
            .collect();
        (standard.len() == RANDOM_CHARS).then(|| Self(format!("{SECRET_PREFIX}{standard}=")))
    }

    /// Reads a secret that was encrypted. Returns `None` for a text without the prefix.
    pub fn parse(text: &str) -> Option<Self> {
        text.starts_with(SECRET_PREFIX).then(|| Self(text.to_owned()))
    }

    /// Returns the secret with its prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the bytes of the secret in base64.
    pub fn base64(&self) -> &str {
        self.0.strip_prefix(SECRET_PREFIX).unwrap_or(&self.0)
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(***)")
    }
}

/// A secret of an endpoint as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedWebhookSecret {
    /// The identifier among the secrets of the endpoint: a number that counts from 1.
    pub kid: u32,
    /// The encrypted secret.
    pub sealed: Vec<u8>,
    /// The time of creation.
    pub created_at: Timestamp,
    /// Until when the secret signs. `None`: until it is replaced.
    pub expires_at: Option<Timestamp>,
}

impl SealedWebhookSecret {
    /// Returns whether the secret signs at an instant.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|until| until > now)
    }
}

impl fmt::Debug for SealedWebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedWebhookSecret")
            .field("kid", &self.kid)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// Returns the secrets that sign at an instant, the newest first.
pub fn live_secrets(mut secrets: Vec<SealedWebhookSecret>, now: Timestamp) -> Vec<SealedWebhookSecret> {
    secrets.retain(|secret| secret.is_live(now));
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.kid));
    secrets
}

/// An attempt to deliver a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// When the request was sent.
    pub at: Timestamp,
    /// The time until the response, in milliseconds.
    pub millis: u32,
    /// The status of the response, if one arrived.
    pub status: Option<u16>,
    /// The outcome.
    pub outcome: AttemptOutcome,
    /// The beginning of the response's body, or the reason why no response arrived.
    pub excerpt: Option<String>,
}

/// A notification on its way to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The endpoint.
    pub endpoint_ref: EndpointRef,
    /// The notification.
    pub notification_ref: NotificationRef,
    /// The organization.
    pub organization: OrganizationId,
    /// The customer of the notification, by which its body is found.
    pub customer: CustomerId,
    /// The position of the notification.
    pub position: u64,
    /// The state.
    pub state: DeliveryState,
    /// The number of attempts.
    pub attempt: u32,
    /// When the next attempt is due. `None` unless the delivery is pending.
    pub due_at: Option<Timestamp>,
    /// The last attempts, the oldest first.
    pub attempts: Vec<DeliveryAttempt>,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last attempt or change.
    pub updated_at: Timestamp,
}

impl Delivery {
    /// Creates a delivery that is due at once.
    pub const fn new(
        endpoint_ref: EndpointRef,
        organization: OrganizationId,
        (customer, notification_ref): (CustomerId, NotificationRef),
        position: u64,
        now: Timestamp,
    ) -> Self {
        Self {
            endpoint_ref,
            notification_ref,
            organization,
            customer,
            position,
            state: DeliveryState::Pending,
            attempt: 0,
            due_at: Some(now),
            attempts: Vec::new(),
            created_at: now,
            updated_at: now,
        }
    }

    /// Records an attempt, which ended at `now`.
    pub fn record(&mut self, attempt: DeliveryAttempt, now: Timestamp, jitter: u16, retry_after_seconds: Option<u32>) {
        self.attempt = self.attempt.saturating_add(1);
        let next = next_attempt(self.attempt, now, jitter, retry_after_seconds);
        (self.state, self.due_at) = match (attempt.outcome, next) {
            (AttemptOutcome::Delivered, _) => (DeliveryState::Delivered, None),
            // The endpoint is disabled.
            (AttemptOutcome::Gone, _) => (DeliveryState::Cancelled, None),
            (_, Some(due_at)) => (DeliveryState::Pending, Some(due_at)),
            (_, None) => (DeliveryState::Failed, None),
        };
        if self.attempts.len() >= MAX_LISTED_ATTEMPTS {
            self.attempts.drain(..=self.attempts.len() - MAX_LISTED_ATTEMPTS);
        }
        self.attempts.push(attempt);
        self.updated_at = now;
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("an instant")
    }

    fn endpoint(event_types: &[&str], customer_refs: Option<&[&str]>) -> WebhookEndpoint {
        let profile = EndpointProfile {
            url: WebhookUrl::parse("https://example.com/hooks").expect("a URL"),
            event_types: event_types.iter().map(|text| EventType::parse(text).expect("a type")).collect(),
            customer_refs: customer_refs.map(|refs| refs.iter().map(|text| CustomerRef::parse(text).expect("a ref")).collect()),
            enabled: true,
            description: None,
        };
        let id = Uuid::from_u128(1);
        WebhookEndpoint::new(EndpointRef::from_uuid(id), OrganizationId::from_uuid(id), profile, at("2026-02-01T00:00:00Z"))
    }

    #[test]
    fn a_url_has_a_scheme_and_a_host_and_neither_user_nor_fragment() {
        for good in [
            "https://example.com",
            "HTTPS://example.com/hooks?a=b@c",
            "http://127.0.0.1:8080/",
            "https://[2001:db8::1]:8443/x",
            "https://xn--bcher-kva.example/%C3%A9",
        ] {
            assert_eq!(WebhookUrl::parse(good).expect(good).as_str(), good);
        }
        for (bad, error) in [
            ("", WebhookUrlError::Scheme),
            ("example.com/hooks", WebhookUrlError::Scheme),
            ("ftp://example.com", WebhookUrlError::Scheme),
            ("file:///etc/passwd", WebhookUrlError::Scheme),
            ("https://", WebhookUrlError::Host),
            ("https:///hooks", WebhookUrlError::Host),
            ("https://:443/", WebhookUrlError::Host),
            ("https://example.com:0/", WebhookUrlError::Host),
            ("https://example.com:65536/", WebhookUrlError::Host),
            ("https://example.com:+1/", WebhookUrlError::Host),
            ("https://[::1]x/", WebhookUrlError::Host),
            ("https://user:password@example.com/", WebhookUrlError::UserInfo),
            ("https://example.com/#part", WebhookUrlError::Fragment),
            ("https://example.com/a b", WebhookUrlError::Character),
            ("https://b\u{fc}cher.example/", WebhookUrlError::Character),
            ("https://example.com\\@evil.example/", WebhookUrlError::Character),
            ("https://example.com/\r\nHost: x", WebhookUrlError::Character),
        ] {
            assert_eq!(WebhookUrl::parse(bad), Err(error), "{bad}");
        }
        let long = format!("https://example.com/{}", "x".repeat(MAX_URL_BYTES));
        assert_eq!(WebhookUrl::parse(&long), Err(WebhookUrlError::TooLong));
        assert!(WebhookUrl::parse(&long[..MAX_URL_BYTES]).is_ok());
        assert!(WebhookUrl::parse("HTTPS://x").is_ok_and(|url| url.is_https()));
        assert!(WebhookUrl::parse("http://x").is_ok_and(|url| !url.is_https()));
    }

    #[test]
    fn an_event_type_is_exact_or_a_group_or_everything() {
        for known in ["*", "document.*", "document.issued", "webhook.test"] {
            assert!(EventType::parse(known).is_ok(), "{known}");
        }
        for unknown in ["", "document", "document.", "document*", "doc.*", ".*", "*.*", "document.issued.*", "DOCUMENT.ISSUED"] {
            assert_eq!(EventType::parse(unknown), Err(UnknownEventType), "{unknown}");
        }
        let matches = |text: &str, kind| EventType::parse(text).expect("known").matches(kind);
        assert!(matches("*", NotificationType::DocumentIssued) && matches("document.*", NotificationType::DocumentIssued));
        assert!(!matches("contract.*", NotificationType::DocumentIssued));
        assert!(!matches("document.voided", NotificationType::DocumentIssued));
    }

    #[test]
    fn an_endpoint_receives_its_types_of_its_customers_and_no_tests() {
        let (acme, other) = (CustomerRef::parse("acme").expect("a ref"), CustomerRef::parse("other").expect("a ref"));
        let all = endpoint(&["*"], None);
        assert!(all.receives(NotificationType::DocumentIssued, Some(&acme)));
        assert!(all.receives(NotificationType::EndpointDisabled, None));
        assert!(!all.receives(NotificationType::WebhookTest, None) && all.selects(NotificationType::WebhookTest, None));
        let one = endpoint(&["document.*"], Some(&["acme"]));
        assert!(one.receives(NotificationType::DocumentIssued, Some(&acme)));
        assert!(!one.receives(NotificationType::DocumentIssued, Some(&other)));
        assert!(!one.receives(NotificationType::DocumentIssued, None));
        assert!(!one.receives(NotificationType::ContractChanged, Some(&acme)));
        let mut disabled = all;
        disabled.profile.enabled = false;
        assert!(!disabled.receives(NotificationType::DocumentIssued, Some(&acme)));
    }

    #[test]
    fn ten_attempts_are_made_within_ten_percent_of_their_times() {
        let now = at("2026-02-01T00:00:00Z");
        let middle = u16::MAX / 2;
        for (attempts, seconds) in (1..).zip(DELAYS_SECONDS) {
            let delay = |jitter| {
                let due = next_attempt(attempts, now, jitter, None).expect("another attempt");
                due.as_micros() - now.as_micros()
            };
            assert_eq!((delay(0), delay(u16::MAX)), (seconds * 900_000, seconds * 1_100_000), "{attempts}");
            assert!((delay(middle) - seconds * 1_000_000).abs() <= seconds * 2, "{attempts}");
        }
        assert_eq!(next_attempt(10, now, middle, None), None);
        assert_eq!(next_attempt(0, now, middle, None), None);
        assert_eq!(next_attempt(u32::MAX, now, middle, None), None);
    }

    #[test]
    fn the_next_attempt_is_not_before_the_time_that_was_asked_for() {
        let now = at("2026-02-01T00:00:00Z");
        assert_eq!(next_attempt(1, now, 0, Some(60)), Some(now.plus_seconds(60)));
        assert_eq!(next_attempt(1, now, 0, Some(1_000_000)), Some(now.plus_seconds(3600)));
        assert_eq!(next_attempt(9, now, 0, Some(60)), next_attempt(9, now, 0, None));
    }

    #[test]
    fn pauses_double_up_to_ten_minutes_or_last_as_long_as_asked_up_to_an_hour() {
        let now = at("2026-02-01T00:00:00Z");
        for (pauses, asked, seconds) in [
            (0, None, 10),
            (1, None, 20),
            (5, None, 320),
            (6, None, 600),
            (u32::MAX, None, 600),
            (3, Some(0), 0),
            (0, Some(1800), 1800),
            (0, Some(u32::MAX), 3600),
        ] {
            assert_eq!(pause(pauses, now, asked), now.plus_seconds(seconds), "{pauses} {asked:?}");
        }
    }

    #[test]
    fn an_endpoint_that_does_not_answer_is_paused_once_for_the_requests_that_were_sent_together() {
        let now = at("2026-02-01T00:00:00Z");
        for outcome in [AttemptOutcome::TimedOut, AttemptOutcome::Overloaded] {
            let mut endpoint = endpoint(&["*"], None);
            let mut began = now;
            for (pauses, seconds) in [(1, 10), (2, 20), (3, 40)] {
                for delay in 0..4 {
                    assert_eq!(endpoint.record(outcome, None, began.plus_seconds(delay)), None);
                }
                // The last of the four outcomes arrives three seconds later.
                let until = began.plus_seconds(3 + seconds);
                assert_eq!((endpoint.pauses, endpoint.paused_until), (pauses, Some(until)), "{outcome:?}");
                assert_eq!(endpoint.state(began.plus_seconds(4)), EndpointState::Paused);
                began = until;
            }
            endpoint.record(AttemptOutcome::Delivered, None, began);
            assert_eq!((endpoint.pauses, endpoint.paused_until), (0, None));
        }
        for outcome in [AttemptOutcome::Rejected, AttemptOutcome::Unreachable, AttemptOutcome::TlsFailed] {
            let mut endpoint = endpoint(&["*"], None);
            endpoint.record(outcome, None, now);
            assert_eq!((endpoint.state(now), endpoint.paused_until), (EndpointState::Failing, None), "{outcome:?}");
        }
    }

    #[test]
    fn only_an_endpoint_that_accepted_the_last_attempt_gets_several_deliveries_at_a_time() {
        let now = at("2026-02-01T00:00:00Z");
        let mut endpoint = endpoint(&["*"], None);
        assert!(!endpoint.has_accepted_last(), "nothing was sent yet");
        for (outcome, expected) in [
            (AttemptOutcome::Rejected, false),
            (AttemptOutcome::Delivered, true),
            (AttemptOutcome::Unreachable, false),
            (AttemptOutcome::Delivered, true),
        ] {
            endpoint.record(outcome, None, now);
            assert_eq!(endpoint.has_accepted_last(), expected, "{outcome:?}");
        }
    }

    #[test]
    fn an_endpoint_is_disabled_after_five_days_and_ten_failures_without_a_success() {
        let start = at("2026-02-01T00:00:00Z");
        let mut endpoint = endpoint(&["*"], None);
        for hour in 0..120 {
            assert_eq!(endpoint.record(AttemptOutcome::Rejected, None, start.plus_seconds(hour * 3600)), None, "{hour}");
        }
        assert_eq!(endpoint.state(start), EndpointState::Failing);
        let end = start.plus_seconds(MAX_FAILING_SECONDS);
        let mut again = endpoint.clone();
        assert_eq!(again.record(AttemptOutcome::Delivered, None, end.plus_seconds(-1)), None);
        assert_eq!((again.failures, again.failing_since, again.state(end)), (0, None, EndpointState::Active));
        assert_eq!(again.record(AttemptOutcome::TimedOut, None, end), None);
        assert_eq!(endpoint.record(AttemptOutcome::TimedOut, None, end), Some(DisabledReason::Failing));
        assert_eq!((endpoint.profile.enabled, endpoint.state(end)), (false, EndpointState::Disabled));
        // A result that arrives later disables nothing again.
        assert_eq!(endpoint.record(AttemptOutcome::TimedOut, None, end), None);
        // Nine failures are too few, however long they take.
        let mut rare = self::endpoint(&["*"], None);
        for day in 0..9 {
            assert_eq!(rare.record(AttemptOutcome::Rejected, None, start.plus_seconds(day * 86_400)), None);
        }
        assert_eq!(rare.record(AttemptOutcome::Rejected, None, start.plus_seconds(9 * 86_400)), Some(DisabledReason::Failing));
    }

    #[test]
    fn a_gone_endpoint_is_disabled_at_once_and_an_edit_enables_it_without_failures() {
        let now = at("2026-02-01T00:00:00Z");
        let mut endpoint = endpoint(&["*"], None);
        assert_eq!(endpoint.record(AttemptOutcome::Overloaded, Some(30), now), None);
        assert_eq!((endpoint.state(now), endpoint.paused_until), (EndpointState::Paused, Some(now.plus_seconds(30))));
        assert_eq!(endpoint.record(AttemptOutcome::Gone, None, now), Some(DisabledReason::Gone));
        endpoint.edit(&Changes::of(|profile: &mut EndpointProfile| profile.enabled = true), now.plus_seconds(1));
        assert_eq!((endpoint.state(now), endpoint.failures, endpoint.disabled_reason), (EndpointState::Active, 0, None));
    }

    #[test]
    fn a_delivery_ends_with_the_first_success_or_the_tenth_failure() {
        let now = at("2026-02-01T00:00:00Z");
        let id = Uuid::from_u128(7);
        let new = Delivery::new(
            EndpointRef::from_uuid(id),
            OrganizationId::from_uuid(id),
            (CustomerId::from_uuid(id), NotificationRef::from_uuid(id)),
            1,
            now,
        );
        let attempt = |outcome| DeliveryAttempt { at: now, millis: 3, status: None, outcome, excerpt: None };
        let mut failing = new.clone();
        for number in 1..=10 {
            assert_eq!((failing.state, failing.due_at.is_some()), (DeliveryState::Pending, true), "{number}");
            failing.record(attempt(AttemptOutcome::Unreachable), now, 0, None);
        }
        assert_eq!((failing.state, failing.due_at, failing.attempt), (DeliveryState::Failed, None, 10));
        assert_eq!(failing.attempts.len(), MAX_LISTED_ATTEMPTS);
        // A replay begins again, and the oldest attempt makes room.
        failing.record(attempt(AttemptOutcome::Delivered), now, 0, None);
        assert_eq!((failing.state, failing.attempts.len()), (DeliveryState::Delivered, MAX_LISTED_ATTEMPTS));
        assert_eq!(failing.attempts.last().map(|last| last.outcome), Some(AttemptOutcome::Delivered));
        let mut gone = new;
        gone.record(attempt(AttemptOutcome::Gone), now, 0, None);
        assert_eq!((gone.state, gone.due_at), (DeliveryState::Cancelled, None));
    }

    #[test]
    fn a_secret_is_standard_base64_and_is_never_printed() {
        let secret = WebhookSecret::of_random("-_ECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8").expect("32 bytes");
        assert_eq!(secret.as_str(), "whsec_+/ECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        assert_eq!(secret.base64(), "+/ECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        assert_eq!(format!("{secret:?}"), "WebhookSecret(***)");
        assert_eq!(WebhookSecret::of_random("short"), None);
        assert_eq!((WebhookSecret::parse(secret.as_str()), WebhookSecret::parse("AAEC")), (Some(secret), None));
    }

    #[test]
    fn the_secrets_that_sign_are_those_that_have_not_expired_newest_first() {
        let now = at("2026-02-01T00:00:00Z");
        let secret = |kid, expires_at| SealedWebhookSecret { kid, sealed: Vec::new(), created_at: now, expires_at };
        let secrets = vec![secret(1, Some(now)), secret(2, Some(now.plus_seconds(1))), secret(3, None)];
        let live: Vec<u32> = live_secrets(secrets, now).iter().map(|secret| secret.kid).collect();
        assert_eq!(live, [3, 2]);
    }

    #[test]
    fn a_replay_never_schedules_what_is_pending() {
        use DeliveryState::*;
        let included = |scope: ReplayScope| {
            [None, Some(Pending), Some(Delivered), Some(Failed), Some(Cancelled)].map(|state| scope.includes(state))
        };
        assert_eq!(included(ReplayScope::Missing), [true, false, false, false, false]);
        assert_eq!(included(ReplayScope::Failed), [false, false, false, true, true]);
        assert_eq!(included(ReplayScope::All), [true, false, true, true, true]);
    }
}
