//! The HTTP client.

use std::io::Read as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{WebhookRequest, WebhookResponse, WebhookSender, WebhookUrlPolicy, WebhookUrlRefusal};
use billing_domain::webhook::{AttemptOutcome, MAX_EXCERPT_BYTES, WebhookUrl};
use chrono::DateTime;
use rustls::crypto::aws_lc_rs;
use ureq::http::header::RETRY_AFTER;
use ureq::http::{HeaderMap, Response, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body};
use url::{Host, Url};

use crate::failure::{self, RequestFailure};
use crate::resolver::{Lookup, PublicResolver, is_permitted, system_lookup};
use crate::settings::WebhookSettings;
use crate::signature::signatures;

/// The name of the client in requests.
const USER_AGENT: &str = concat!("usage-billing-webhooks/", env!("CARGO_PKG_VERSION"));
/// The maximum part of a response's body that is read, in bytes.
const MAX_BODY_BYTES: u64 = 64 * 1024;
/// The time after which an unused connection is closed. Endpoints close theirs after a few seconds, too.
const MAX_IDLE: Duration = Duration::from_secs(4);
const MICROS_PER_SECOND: i64 = 1_000_000;

/// The time limits of a request.
#[derive(Clone, Copy, Debug)]
struct TimeLimits {
    /// For the look-up of the host, and again for the connection.
    connect: Duration,
    /// For everything, from the look-up to the end of the body.
    whole: Duration,
}

const TIME_LIMITS: TimeLimits = TimeLimits { connect: Duration::from_secs(5), whole: Duration::from_secs(15) };

/// A sender of webhooks over HTTP.
pub struct HttpWebhooks {
    settings: WebhookSettings,
    lookup: Arc<Lookup>,
    limits: TimeLimits,
    /// Created for the first request, because it reads the platform's certificates.
    agent: OnceLock<Agent>,
}

impl std::fmt::Debug for HttpWebhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpWebhooks").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl HttpWebhooks {
    /// Creates a sender.
    pub fn new(settings: WebhookSettings) -> Self {
        Self { settings, lookup: system_lookup(), limits: TIME_LIMITS, agent: OnceLock::new() }
    }

    fn agent(&self) -> &Agent {
        self.agent.get_or_init(|| {
            let config = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .proxy(self.settings.proxy.as_ref().map(crate::WebhookProxy::as_proxy))
                .timeout_global(Some(self.limits.whole))
                .timeout_resolve(Some(self.limits.connect))
                .timeout_connect(Some(self.limits.connect))
                .max_idle_age(MAX_IDLE)
                .user_agent(USER_AGENT)
                .tls_config(tls_config())
                .build();
            let resolver = PublicResolver { settings: self.settings.clone(), lookup: Arc::clone(&self.lookup) };
            Agent::with_parts(config, DefaultConnector::default(), resolver)
        })
    }

    fn request(&self, request: &WebhookRequest<'_>) -> Answer {
        if self.check(request.url).is_err() {
            return Answer::without_response(failure::NOT_PERMITTED);
        }
        let timestamp = request.at.as_micros().div_euclid(MICROS_PER_SECOND);
        let signature =
            signatures(request.secrets, request.id, timestamp, request.body).filter(|signature| !signature.is_empty());
        let Some(signature) = signature else {
            return Answer::without_response(failure::NO_SECRET);
        };
        let sent = self
            .agent()
            .post(request.url.as_str())
            .content_type("application/json")
            .header("webhook-id", request.id.to_string())
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", signature)
            .send(request.body);
        match sent {
            Ok(response) => Answer::of(response, request.at),
            Err(error) => {
                tracing::debug!(%error, "a request to a webhook endpoint failed");
                Answer::without_response(RequestFailure::of(&error))
            }
        }
    }
}

impl WebhookUrlPolicy for HttpWebhooks {
    fn check(&self, url: &WebhookUrl) -> Result<(), WebhookUrlRefusal> {
        let invalid = WebhookUrlRefusal::Invalid;
        let not_public = || {
            WebhookUrlRefusal::NotPublic(
                "must have a public host: this server sends to others only with --webhook-allow-networks",
            )
        };
        if !url.is_https() && !self.settings.allow_http {
            return Err(invalid("must begin with https://: this server sends to http:// only with --webhook-allow-http"));
        }
        let parsed = Url::parse(url.as_str()).map_err(|_| invalid("must be a valid URL"))?;
        url.as_str().parse::<Uri>().map_err(|_| invalid("must be a valid URL"))?;
        let address = match parsed.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            Some(Host::Domain(name)) if is_local(name) => std::net::Ipv4Addr::LOCALHOST.into(),
            Some(Host::Domain(_)) => return Ok(()),
            None => return Err(invalid("must have a host")),
        };
        if is_permitted(&self.settings, address) { Ok(()) } else { Err(not_public()) }
    }
}

impl WebhookSender for HttpWebhooks {
    fn send(&self, request: &WebhookRequest<'_>) -> WebhookResponse {
        let began = Instant::now();
        let Answer { status, outcome, retry_after_seconds, excerpt } = self.request(request);
        let millis = u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX);
        WebhookResponse { status, outcome, retry_after_seconds, millis, excerpt }
    }
}

/// Returns whether a name always stands for this machine.
fn is_local(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// Returns the settings of encryption for HTTP clients: aws-lc with the platform's root certificates.
pub fn tls_config() -> TlsConfig {
    let loaded = rustls_native_certs::load_native_certs();
    for error in &loaded.errors {
        tracing::warn!(%error, "cannot load some of the platform's root certificates, which verify webhook endpoints");
    }
    if loaded.certs.is_empty() {
        tracing::error!("the platform has no root certificates, so no https:// webhook endpoint can be verified");
    }
    let roots: Vec<Certificate<'static>> =
        loaded.certs.iter().map(|certificate| Certificate::from_der(certificate.as_ref()).to_owned()).collect();
    TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::from(roots))
        .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
        .build()
}

/// What a request led to.
struct Answer {
    status: Option<u16>,
    outcome: AttemptOutcome,
    retry_after_seconds: Option<u32>,
    excerpt: Option<String>,
}

impl Answer {
    fn of(response: Response<Body>, now: Timestamp) -> Self {
        let (parts, body) = response.into_parts();
        let status = parts.status.as_u16();
        let retry_after_seconds = retry_after(&parts.headers, now);
        // The status decides, so a body that breaks off does not matter. A body within the limit leaves the connection usable.
        let mut content = Vec::new();
        let _ = body.into_reader().take(MAX_BODY_BYTES).read_to_end(&mut content);
        let outcome = AttemptOutcome::of_status(status);
        Self { status: Some(status), outcome, retry_after_seconds, excerpt: excerpt(&content) }
    }

    fn without_response(RequestFailure { outcome, reason }: RequestFailure) -> Self {
        Self { status: None, outcome, retry_after_seconds: None, excerpt: Some(reason.to_owned()) }
    }
}

/// Returns the beginning of a text without control characters, or `None` if it is empty.
fn excerpt(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes.get(..MAX_EXCERPT_BYTES).unwrap_or(bytes));
    let mut shown = String::new();
    for letter in text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }) {
        // Replaced bytes can make the text longer.
        if shown.len() + letter.len_utf8() > MAX_EXCERPT_BYTES {
            break;
        }
        shown.push(letter);
    }
    let shown = shown.trim();
    (!shown.is_empty()).then(|| shown.to_owned())
}

/// Returns the seconds of `Retry-After`, which has a number or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<u32> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().unwrap_or(u32::MAX));
    }
    let at = DateTime::parse_from_rfc2822(text).ok()?.timestamp_micros();
    let seconds = at.saturating_sub(now.as_micros()).max(0) / MICROS_PER_SECOND;
    Some(u32::try_from(seconds).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use billing_domain::refs::NotificationRef;
    use billing_domain::webhook::WebhookSecret;
    use uuid::Uuid;

    use super::*;

    /// A time limit for tests. Nothing may take longer than the limit and a few seconds of a busy machine.
    const SHORT: TimeLimits = TimeLimits { connect: Duration::from_millis(500), whole: Duration::from_millis(1000) };
    const GENEROUS: Duration = Duration::from_secs(10);

    /// A server that answers each connection with the same bytes, and reports the requests.
    struct Receiving {
        address: SocketAddr,
        requests: Receiver<Vec<String>>,
    }

    impl Receiving {
        fn start(mut answer: impl FnMut(&mut TcpStream) + Send + 'static) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("an address");
            let (sender, requests) = channel();
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = stream.expect("a connection");
                    let lines = request(&stream);
                    if sender.send(lines).is_err() {
                        return;
                    }
                    answer(&mut stream);
                }
            });
            Self { address, requests }
        }

        fn saying(answer: &'static str) -> Self {
            Self::start(move |stream| stream.write_all(answer.as_bytes()).expect("it reads"))
        }

        fn url(&self) -> WebhookUrl {
            WebhookUrl::parse(&format!("http://{}/hooks?a=b", self.address)).expect("a URL")
        }
    }

    /// Reads a request: the lines of its head, then its body.
    fn request(stream: &TcpStream) -> Vec<String> {
        let mut reader = BufReader::new(stream);
        let mut lines: Vec<String> = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let length = lines.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or_default()];
        reader.read_exact(&mut body).expect("a body");
        lines.push(String::from_utf8(body).expect("text"));
        lines
    }

    fn sender(limits: TimeLimits) -> HttpWebhooks {
        let networks = vec!["127.0.0.0/8".parse().expect("a network")];
        let settings = WebhookSettings { allow_http: true, networks, proxy: None };
        HttpWebhooks { limits, ..HttpWebhooks::new(settings) }
    }

    fn send(sender: &HttpWebhooks, url: &WebhookUrl) -> WebhookResponse {
        let secrets = [WebhookSecret::parse("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").expect("a secret")];
        let id = NotificationRef::from_uuid(Uuid::from_u128(7));
        let at = Timestamp::parse("2026-02-01T02:00:04.9Z").expect("an instant");
        sender.send(&WebhookRequest { url, id, at, body: r#"{"a":1}"#, secrets: &secrets })
    }

    #[test]
    fn a_request_has_the_three_headers_and_exactly_the_body() {
        let server = Receiving::saying("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nthanks");
        let response = send(&sender(TIME_LIMITS), &server.url());
        assert_eq!((response.status, response.outcome), (Some(200), AttemptOutcome::Delivered));
        assert_eq!((response.excerpt.as_deref(), response.retry_after_seconds), (Some("thanks"), None));
        let request = server.requests.recv_timeout(GENEROUS).expect("a request");
        assert_eq!(request.first().map(String::as_str), Some("POST /hooks?a=b HTTP/1.1"));
        assert_eq!(request.last().map(String::as_str), Some(r#"{"a":1}"#));
        for header in [
            "content-type: application/json",
            "webhook-id: 00000000-0000-0000-0000-000000000007",
            "webhook-timestamp: 1769911204",
        ] {
            assert!(request.iter().any(|line| line == header), "{header} {request:?}");
        }
        assert!(request.iter().any(|line| line.starts_with("webhook-signature: v1,")), "{request:?}");
    }

    #[test]
    fn redirects_are_not_followed() {
        let server = Receiving::saying(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://169.254.169.254/latest/meta-data\r\ncontent-length: 0\r\n\r\n",
        );
        let response = send(&sender(TIME_LIMITS), &server.url());
        assert_eq!((response.status, response.outcome), (Some(307), AttemptOutcome::Rejected));
        assert!(server.requests.recv_timeout(GENEROUS).is_ok());
        assert!(server.requests.try_recv().is_err(), "one request");
    }

    #[test]
    fn an_overloaded_endpoint_says_how_long_to_wait() {
        for (header, seconds) in [
            ("retry-after: 120", Some(120)),
            ("retry-after: 99999999999999", Some(u32::MAX)),
            ("retry-after: Sun, 01 Feb 2026 02:01:05 GMT", Some(60)),
            ("retry-after: Sat, 31 Jan 2026 02:01:05 GMT", Some(0)),
            ("retry-after: soon", None),
            ("x: y", None),
        ] {
            let answer = format!("HTTP/1.1 503 Service Unavailable\r\n{header}\r\ncontent-length: 0\r\n\r\n");
            let server = Receiving::start(move |stream| stream.write_all(answer.as_bytes()).expect("it reads"));
            let response = send(&sender(TIME_LIMITS), &server.url());
            assert_eq!((response.outcome, response.retry_after_seconds), (AttemptOutcome::Overloaded, seconds), "{header}");
        }
    }

    #[test]
    fn an_endless_body_is_read_up_to_its_limit() {
        let server = Receiving::start(|stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
            // Ends when the client closes the connection.
            while stream.write_all(&[b'x'; 8192]).is_ok() {}
        });
        let response = send(&sender(TIME_LIMITS), &server.url());
        assert_eq!((response.outcome, response.excerpt.map(|text| text.len())), (AttemptOutcome::Delivered, Some(1024)));
    }

    #[test]
    fn slow_answers_end_at_the_time_limit() {
        let silent = Receiving::start(|_| thread::sleep(GENEROUS));
        let drip = Receiving::start(|stream| {
            for letter in b"HTTP/1.1 200 OK\r\nx: ".iter().chain(std::iter::repeat_n(&b'x', 1000)) {
                if stream.write_all(&[*letter]).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        for server in [silent, drip] {
            let began = Instant::now();
            let response = send(&sender(SHORT), &server.url());
            assert_eq!((response.status, response.outcome), (None, AttemptOutcome::TimedOut), "{:?}", response.excerpt);
            assert!(began.elapsed() < GENEROUS, "{:?}", began.elapsed());
        }
    }

    #[test]
    fn a_slow_body_ends_at_the_time_limit_and_the_status_counts() {
        let server = Receiving::start(|stream| {
            let _ = stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 1000\r\n\r\nok");
            thread::sleep(GENEROUS);
        });
        let began = Instant::now();
        let response = send(&sender(SHORT), &server.url());
        assert_eq!((response.status, response.outcome), (Some(202), AttemptOutcome::Delivered));
        assert!(began.elapsed() < GENEROUS, "{:?}", began.elapsed());
    }

    #[test]
    fn a_host_is_judged_at_each_request() {
        let server = Receiving::saying("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
        let (address, lookups) = (server.address, AtomicUsize::new(0));
        let lookup: Arc<Lookup> = Arc::new(move |_, _| {
            Ok(vec![match lookups.fetch_add(1, Ordering::Relaxed) {
                0 => address,
                1 => SocketAddr::from(([10, 0, 0, 1], address.port())),
                2 => "[::ffff:10.0.0.1]:80".parse().expect("an address"),
                _ => "[64:ff9b::a00:1]:80".parse().expect("an address"),
            }])
        });
        let sender = HttpWebhooks { lookup, ..sender(TIME_LIMITS) };
        let url = WebhookUrl::parse("http://hooks.example/").expect("a URL");
        assert_eq!(send(&sender, &url).outcome, AttemptOutcome::Delivered);
        for _ in 0..3 {
            let response = send(&sender, &url);
            assert_eq!((response.status, response.outcome), (None, AttemptOutcome::AddressNotPublic));
            assert_eq!(response.excerpt.as_deref(), Some("the host is not public"));
        }
        assert!(server.requests.recv_timeout(GENEROUS).is_ok());
        assert!(server.requests.try_recv().is_err(), "one request");
    }

    #[test]
    fn what_cannot_be_connected_to_is_unreachable() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        drop(listener);
        let response = send(&sender(TIME_LIMITS), &WebhookUrl::parse(&url).expect("a URL"));
        assert_eq!((response.status, response.outcome), (None, AttemptOutcome::Unreachable), "{:?}", response.excerpt);
    }

    #[test]
    fn an_endpoint_without_encryption_fails_the_handshake() {
        let server = Receiving::saying("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        let url = WebhookUrl::parse(&format!("https://{}/", server.address)).expect("a URL");
        // The server waits for the end of a line in the handshake, so that the client may also run out of time.
        let outcome = send(&sender(SHORT), &url).outcome;
        assert!(
            matches!(outcome, AttemptOutcome::TlsFailed | AttemptOutcome::TimedOut | AttemptOutcome::Unreachable),
            "{outcome:?}"
        );
    }

    #[test]
    fn a_url_is_checked_without_a_look_up() {
        let lookup: Arc<Lookup> = Arc::new(|_, _| panic!("nothing is looked up"));
        let strict = HttpWebhooks { lookup, ..HttpWebhooks::new(WebhookSettings::default()) };
        let check = |sender: &HttpWebhooks, text: &str| sender.check(&WebhookUrl::parse(text).expect(text));
        assert_eq!(check(&strict, "https://example.com/hooks"), Ok(()));
        assert_eq!(check(&strict, "https://93.184.216.34/"), Ok(()));
        assert!(matches!(check(&strict, "http://example.com/"), Err(WebhookUrlRefusal::Invalid(_))));
        for text in [
            "https://127.0.0.1/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://localhost/",
            "https://a.localhost./",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[fe80::1]:8443/",
        ] {
            assert!(matches!(check(&strict, text), Err(WebhookUrlRefusal::NotPublic(_))), "{text}");
        }
        let lenient = sender(TIME_LIMITS);
        assert_eq!(check(&lenient, "http://127.0.0.1:8080/"), Ok(()));
        assert_eq!(check(&lenient, "http://localhost:8080/"), Ok(()));
        assert!(matches!(check(&lenient, "http://10.0.0.1/"), Err(WebhookUrlRefusal::NotPublic(_))));
        // An endpoint that the settings no longer permit gets no request.
        let url = WebhookUrl::parse("http://127.0.0.1:9/").expect("a URL");
        assert_eq!(send(&strict, &url).outcome, AttemptOutcome::NotSent);
    }

    #[test]
    fn an_excerpt_is_short_and_has_no_control_characters() {
        assert_eq!(excerpt(b" a\r\nb\0c\x1b[1m "), Some("a  b c [1m".to_owned()));
        assert_eq!((excerpt(b""), excerpt(b"\r\n \0")), (None, None));
        assert_eq!(excerpt(&[b'x'; 5000]).map(|text| text.len()), Some(1024));
        assert!(excerpt(&[0xff; 5000]).is_some_and(|text| text.len() <= 1024));
        assert!(excerpt("\u{e9}".repeat(600).as_bytes()).is_some_and(|text| text.len() <= 1024));
    }
}
