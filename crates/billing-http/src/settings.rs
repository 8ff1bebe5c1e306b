//! The operator's settings of the HTTP interface. The server crate reads them from the environment.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use billing_application::usage::DEFAULT_EVENT_CACHE;
use ipnet::IpNet;
use thiserror::Error;
use url::Url;

/// Length of the session cookie key in bytes.
pub const COOKIE_KEY_BYTES: usize = 64;
/// Default limit of a request body in bytes.
pub const DEFAULT_BODY_LIMIT_BYTES: usize = 1024 * 1024;
/// Default limit of a batch body in bytes.
pub const DEFAULT_BATCH_LIMIT_BYTES: usize = 8 * 1024 * 1024;
/// Default time limit of a request, from its head to its response.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Default number of concurrent usage reports. One organization has at most one less.
pub const DEFAULT_REPORTS_AT_ONCE: usize = 3;
/// Number of concurrent PDF renderings.
const PRINTS_AT_ONCE: usize = 2;
/// Number of concurrent usage format trials. The most expensive trial occupies a processor for 50 ms.
const DEFAULT_REQUESTS_AT_ONCE: usize = 8;
const TRIALS_AT_ONCE: usize = 1;
/// Maximum wait for a permit. Rendering a hundred one-page documents takes less.
const TURN_WAIT: Duration = Duration::from_secs(5);

/// An invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingError {
    /// The text is not a valid public URL.
    #[error("the public URL must be http:// or https:// with a host and no path, such as https://billing.example.com")]
    PublicUrl,
    /// The text is not an IP address or network.
    #[error("a trusted proxy must be an IP address or a network such as 10.0.0.0/8")]
    Network,
    /// The key does not have the required length.
    #[error("the cookie key must have {COOKIE_KEY_BYTES} bytes")]
    CookieKey,
}

/// All settings of the HTTP interface.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Public URL of the service.
    pub public_url: PublicUrl,
    /// Networks whose `X-Forwarded-For` and `Forwarded` headers are trusted. Empty by default.
    pub trusted_proxies: Vec<Network>,
    /// Rate limits of log-in attempts.
    pub log_in: LogInLimits,
    /// Key that encrypts session cookies. All replicas must share it.
    pub cookie_key: CookieKey,
    /// Time limit of a request, from its head to its response.
    pub request_timeout: Duration,
    /// Limit of a request body in bytes.
    pub body_limit_bytes: usize,
    /// Limit of a batch body in bytes.
    pub batch_limit_bytes: usize,
    /// Number of concurrent usage reports. Each report occupies a database connection. One organization has at most one report
    /// less, so that its slow clients do not block the reports of other organizations.
    pub reports_at_once: usize,
    /// Number of concurrent PDF renderings. Each rendering occupies a processor and some memory.
    pub prints_at_once: usize,
    /// Number of concurrent usage format trials.
    pub trials_at_once: usize,
    /// Number of requests that use a database connection at the same time, besides reports and the usage writer. More would wait
    /// for a connection in a queue that does not know organizations.
    pub requests_at_once: usize,
    /// Maximum wait for a permit to use a connection, to create a report, render a document, try a usage format, scan events or parse a large body.
    pub turn_wait: Duration,
    /// Number of event groups written concurrently. With one, the database has a single writer, and each change that is one
    /// transaction waits for its turn in the queue of the usage writer.
    pub groups_at_once: usize,
    /// Approximate maximum memory of the contracts and drafts that are kept for events, in bytes.
    pub event_cache: usize,
    /// Whether metrics have an address of their own. The `/metrics` operation is then unavailable here.
    pub metrics_apart: bool,
}

impl HttpSettings {
    /// Creates settings with the defaults for everything except the two required values.
    pub fn new(public_url: PublicUrl, cookie_key: CookieKey) -> Self {
        Self {
            public_url,
            trusted_proxies: Vec::new(),
            log_in: LogInLimits::default(),
            cookie_key,
            request_timeout: DEFAULT_REQUEST_TIMEOUT,
            body_limit_bytes: DEFAULT_BODY_LIMIT_BYTES,
            batch_limit_bytes: DEFAULT_BATCH_LIMIT_BYTES,
            reports_at_once: DEFAULT_REPORTS_AT_ONCE,
            prints_at_once: PRINTS_AT_ONCE,
            trials_at_once: TRIALS_AT_ONCE,
            requests_at_once: DEFAULT_REQUESTS_AT_ONCE,
            turn_wait: TURN_WAIT,
            groups_at_once: 1,
            event_cache: DEFAULT_EVENT_CACHE,
            metrics_apart: false,
        }
    }
}

/// Rate limits of log-in attempts. Zero counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogInLimits {
    /// Failures of one principal within [`failure_window`](LogInLimits::failure_window) after which its attempts are slowed
    /// down. At an address from which the principal logged in before, only the failures from that address count.
    pub failures: u32,
    /// Time within which failures of a principal are counted.
    pub failure_window: Duration,
    /// Time between two attempts of a slowed-down principal.
    pub slow_interval: Duration,
    /// Attempts per minute from one address, and of each principal from an address from which it logged in before.
    pub attempts_per_address_per_minute: u32,
    /// Number of concurrent password hashes. One more is reserved for principals at addresses from which they logged in
    /// before, and for those with a session.
    pub concurrent_hashes: usize,
    /// Number of log-ins that may wait for a password hash. Further log-ins are rejected.
    pub waiting_hashes: usize,
}

impl Default for LogInLimits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            failures: 10,
            failure_window: Duration::from_secs(15 * 60),
            slow_interval: Duration::from_secs(3),
            attempts_per_address_per_minute: 100,
            // At most half of the cores, so that hashing does not starve other requests.
            concurrent_hashes: (cores / 2).max(1),
            waiting_hashes: 32,
        }
    }
}

/// The public URL of the service: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    origin: String,
    secure: bool,
}

impl PublicUrl {
    /// Returns scheme, host and port in the form of the `Origin` header.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns whether the scheme is https.
    pub const fn is_https(&self) -> bool {
        self.secure
    }
}

impl FromStr for PublicUrl {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let url: Url = text.parse().map_err(|_| SettingError::PublicUrl)?;
        let secure = url.scheme() == "https";
        let origin = url.origin().ascii_serialization();
        // Beyond the origin, the URL may contain only a slash.
        if (secure || url.scheme() == "http") && url.as_str().strip_prefix(&origin) == Some("/") {
            Ok(Self { origin, secure })
        } else {
            Err(SettingError::PublicUrl)
        }
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

/// The key that encrypts session cookies.
#[derive(Clone)]
pub struct CookieKey([u8; COOKIE_KEY_BYTES]);

impl CookieKey {
    /// Returns the key's bytes.
    pub const fn bytes(&self) -> &[u8; COOKIE_KEY_BYTES] {
        &self.0
    }

    /// Returns the bytes as text, for functions that take a secret as a string.
    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TryFrom<&[u8]> for CookieKey {
    type Error = SettingError;

    fn try_from(bytes: &[u8]) -> Result<Self, SettingError> {
        bytes.try_into().map(Self).map_err(|_| SettingError::CookieKey)
    }
}

impl fmt::Debug for CookieKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CookieKey(***)")
    }
}

/// An IP address or network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Returns whether the network contains an address. An IPv4-mapped IPv6 address counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let as_v6 = match address {
            IpAddr::V4(v4) => IpAddr::V6(v4.to_ipv6_mapped()),
            IpAddr::V6(_) => address,
        };
        self.0.contains(&address.to_canonical()) || self.0.contains(&as_v6)
    }
}

impl FromStr for Network {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let alone = || text.parse::<IpAddr>().map(IpNet::from);
        text.parse().or_else(|_| alone()).map(Self).map_err(|_| SettingError::Network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_an_origin() {
        for (text, origin, secure) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", false),
            ("https://Billing.example.com/", "https://billing.example.com", true),
            ("https://billing.example.com:443", "https://billing.example.com", true),
            ("http://[::1]:8080", "http://[::1]:8080", false),
        ] {
            let url: PublicUrl = text.parse().expect(text);
            assert_eq!((url.origin(), url.is_https()), (origin, secure));
        }
        for bad in [
            "",
            "billing.example.com",
            "ftp://x",
            "https://x/path",
            "https://x?q",
            "https://a@x",
            "https://",
            "https://x#f",
            "https://x:99999",
        ] {
            assert_eq!(bad.parse::<PublicUrl>(), Err(SettingError::PublicUrl), "{bad}");
        }
    }

    #[test]
    fn a_network_holds_the_addresses_that_share_its_first_bits() {
        for (network, address, inside) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("::/0", "2001:db8::1", true),
            ("::/0", "192.0.2.7", true),
            ("::ffff:192.0.2.0/120", "192.0.2.7", true),
        ] {
            let parsed: Network = network.parse().expect(network);
            assert_eq!(parsed.contains(address.parse().expect(address)), inside, "{network} {address}");
        }
        for bad in ["", "10.0.0.0/33", "10.0.0", "::/129", "10.0.0.0/", "10.0.0.0/-1"] {
            assert_eq!(bad.parse::<Network>(), Err(SettingError::Network), "{bad}");
        }
    }

    #[test]
    fn a_cookie_key_has_64_bytes_and_is_never_printed() {
        assert!(CookieKey::try_from([7; 63].as_slice()).is_err());
        let key = CookieKey::try_from([7; 64].as_slice()).expect("64 bytes");
        assert_eq!(format!("{key:?}"), "CookieKey(***)");
    }
}
