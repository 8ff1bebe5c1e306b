//! What an operator may decide about the interface. Reading it from the environment is the server's business.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use thiserror::Error;
use url::Url;

/// Bytes of the key that session cookies are encrypted with.
pub const COOKIE_KEY_BYTES: usize = 64;
/// Bytes a request body may have, unless set otherwise.
pub const DEFAULT_BODY_LIMIT_BYTES: usize = 1024 * 1024;
/// The most bytes of a batch's body when nobody says otherwise.
pub const DEFAULT_BATCH_LIMIT_BYTES: usize = 8 * 1024 * 1024;
/// How long a request may take from its head to its answer, unless set otherwise.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Usage reports that are made at a time, unless set otherwise.
pub const DEFAULT_REPORTS_AT_ONCE: usize = 2;
/// Documents that are printed at a time.
const PRINTS_AT_ONCE: usize = 2;
/// Usage formats that are tried at a time: the costliest takes a processor for a twentieth of a second.
const TRIALS_AT_ONCE: usize = 1;
/// How long a request waits for its turn: a hundred documents of a page each are printed in less.
const TURN_WAIT: Duration = Duration::from_secs(5);

/// A setting that can't be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingError {
    /// Not the address of this service.
    #[error("the public URL must be http:// or https:// with a host and no path, such as https://billing.example.com")]
    PublicUrl,
    /// Not an address or network.
    #[error("a trusted proxy must be an IP address or a network such as 10.0.0.0/8")]
    Network,
    /// Not a cookie key.
    #[error("the cookie key must have {COOKIE_KEY_BYTES} bytes")]
    CookieKey,
}

/// Everything there is to set.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Where callers reach the service.
    pub public_url: PublicUrl,
    /// Whose `X-Forwarded-For` is believed; nobody's by default.
    pub trusted_proxies: Vec<Network>,
    /// How fast log-ins may be tried.
    pub log_in: LogInLimits,
    /// Encrypts session cookies; the same on every replica.
    pub cookie_key: CookieKey,
    /// How long a request may take, from its head to its answer.
    pub request_timeout: Duration,
    /// The most bytes of a body.
    pub body_limit_bytes: usize,
    /// The most bytes of a batch's body.
    pub batch_limit_bytes: usize,
    /// Usage reports that are made at a time; each keeps a connection of the store. Others are turned away.
    pub reports_at_once: usize,
    /// Documents that are printed at a time: each takes a processor and some memory.
    pub prints_at_once: usize,
    /// Usage formats that are tried at a time.
    pub trials_at_once: usize,
    /// How long a request waits for its turn: to have a document printed, to try a usage format, to read many events.
    pub turn_wait: Duration,
    /// Groups of events that are written at a time.
    pub groups_at_once: usize,
    /// Whether metrics are told somewhere else: then not among the operations.
    pub metrics_apart: bool,
}

impl HttpSettings {
    /// The defaults around what has none.
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
            turn_wait: TURN_WAIT,
            groups_at_once: 1,
            metrics_apart: false,
        }
    }
}

/// How fast log-ins may be tried. Numbers of zero count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogInLimits {
    /// Failures of one principal before its attempts are slowed down…
    pub failures: u32,
    /// …when they happen within this time.
    pub failure_window: Duration,
    /// How long a slowed-down principal waits from one attempt to the next.
    pub slow_interval: Duration,
    /// Attempts from one address in a minute.
    pub attempts_per_address_per_minute: u32,
    /// Slow password hashes at a time.
    pub concurrent_hashes: usize,
    /// Log-ins that may wait for one; more are turned away.
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
            // Half of the cores at most, so that hashing starves nobody.
            concurrent_hashes: (cores / 2).max(1),
            waiting_hashes: 32,
        }
    }
}

/// Where callers reach the service: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    origin: String,
    secure: bool,
}

impl PublicUrl {
    /// Scheme, host and port, as a browser states them in `Origin`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether it is https.
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
        // All that an address has beside its origin is a slash.
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

/// The key of session cookies.
#[derive(Clone)]
pub struct CookieKey([u8; COOKIE_KEY_BYTES]);

impl CookieKey {
    /// The bytes.
    pub const fn bytes(&self) -> &[u8; COOKIE_KEY_BYTES] {
        &self.0
    }

    /// The bytes as text, for what takes a secret as one.
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

/// An address, or all that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Whether an address belongs to it; IPv4 in IPv6's notation is both.
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
