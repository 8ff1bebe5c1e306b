//! The ceiling of the table: a plain actix-web server that does what each server must do for an event, and nothing else.
//!
//! It receives the event by POST, verifies the HMAC-SHA-256 signature of the bearer token, parses the body, and answers 201 with
//! 60 bytes of JSON. It is a separate process of this program, with as many threads as the measured server.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use acceptance::server;
use actix_web::http::header;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use crate::load::{Outgoing, Plan, Requests, Sample, Target, closed};
use crate::process::Watched;
use crate::traffic::EVENTS;
use crate::{Failure, Outcome, stop};

/// The argument that makes this program the plain server. The number of the port follows.
pub(crate) const PLAIN_SERVER: &str = "plain-server";
/// The number of HTTP threads, of this server and of the measured ones. It is the default of the service.
pub(crate) const WORKERS: usize = 1;
/// The response to an event.
const ANSWER: &str = r#"{"event_ref":"01a204ec-cefb-7126-903b-de4ffa97f42d","a":"b"}"#;
/// The status of that response.
const CREATED: u16 = 201;
/// The path that tells whether the server is ready.
const READY: &str = "/health/ready";
/// The secret of the tokens. It protects nothing.
const SECRET: &[u8] = b"a secret of thirty-two bytes or more";
/// The lifetime of the token. A run is shorter.
const TOKEN_SECONDS: u64 = 86_400;
/// Maximum duration of a start.
const START_SECONDS: u64 = 30;

/// The claims of a token of the service.
#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: String,
    org: String,
    iat: u64,
    nbf: u64,
    exp: u64,
    jti: String,
}

/// An event as the service receives it.
#[derive(Deserialize)]
struct Event {
    timestamp: String,
    customer_ref: String,
    usage_product_ref: String,
    quantity: serde_json::Number,
}

impl Event {
    /// Returns whether the event has all values. A server that ignores the values would not have to parse them.
    fn is_complete(&self) -> bool {
        let texts = [&self.timestamp, &self.customer_ref, &self.usage_product_ref];
        texts.iter().all(|text| !text.is_empty()) && self.quantity.as_f64().is_some()
    }
}

/// The check of tokens.
struct TokenCheck {
    key: DecodingKey,
    validation: Validation,
}

impl TokenCheck {
    fn new() -> Self {
        // As in the service, the library checks the signature and the algorithm only.
        let mut validation = Validation::new(Algorithm::HS256);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        Self { key: DecodingKey::from_secret(SECRET), validation }
    }

    fn accepts(&self, request: &HttpRequest) -> bool {
        let value = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = value.and_then(|value| value.strip_prefix("Bearer "));
        let decoded = token.and_then(|token| jsonwebtoken::decode::<Claims>(token, &self.key, &self.validation).ok());
        decoded.is_some_and(|decoded| seconds_now() < decoded.claims.exp)
    }
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn token() -> Outcome<String> {
    let now = seconds_now();
    let reference = "01a204ec-cefb-7126-903b-de4ffa97f42d".to_owned();
    let claims = Claims {
        iss: "usage-billing".to_owned(),
        aud: "usage-billing".to_owned(),
        sub: reference.clone(),
        org: reference.clone(),
        iat: now,
        nbf: now,
        exp: now + TOKEN_SECONDS,
        jti: reference,
    };
    let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &EncodingKey::from_secret(SECRET));
    token.map_err(|error| Failure::new(format!("the plain server's token: {error}")))
}

async fn record(request: HttpRequest, body: web::Bytes, check: web::Data<TokenCheck>) -> HttpResponse {
    if !check.accepts(&request) {
        return HttpResponse::Unauthorized().finish();
    }
    match serde_json::from_slice::<Event>(&body) {
        Ok(event) if event.is_complete() => HttpResponse::Created().content_type("application/json").body(ANSWER),
        _ => HttpResponse::UnprocessableEntity().finish(),
    }
}

async fn ready() -> HttpResponse {
    HttpResponse::Ok().finish()
}

/// Serves on a port of the loopback interface until the standard input ends, also if the program that started it is killed.
///
/// # Errors
/// Fails if the port is not free.
pub(crate) fn serve(port: u16) -> Outcome<()> {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let check = web::Data::new(TokenCheck::new());
    let app = move || {
        let app = App::new().app_data(check.clone());
        app.route(EVENTS, web::post().to(record)).route(READY, web::get().to(ready))
    };
    let server = HttpServer::new(app).disable_signals().workers(WORKERS).bind(("127.0.0.1", port))?;
    Ok(actix_web::rt::System::new().block_on(server.run())?)
}

/// A running plain server. Dropping the value ends the process.
#[derive(Debug)]
pub(crate) struct Ceiling {
    child: Child,
    target: Target,
}

impl Ceiling {
    /// Starts the server and waits until it is ready.
    ///
    /// # Errors
    /// Fails if the server does not respond.
    pub(crate) fn start() -> Outcome<Self> {
        let port = server::free_port();
        let mut command = Command::new(std::env::current_exe()?);
        // The server ends with this pipe.
        let child = command.args([PLAIN_SERVER, &port.to_string()]).stdin(Stdio::piped()).spawn()?;
        let headers = vec![("Authorization".to_owned(), format!("Bearer {}", token()?)), ("Version".to_owned(), "V0".to_owned())];
        let ceiling = Self { child, target: Target { address: ([127, 0, 0, 1], port).into(), headers } };
        let began = Instant::now();
        let is_ready = || {
            let mut once = Some(Outgoing::get(READY));
            closed(&ceiling.plan(1, None, None), &mut || once.take()).is_ok_and(|sample| sample.worth == 1)
        };
        while !is_ready() {
            stop::check()?;
            if began.elapsed() > Duration::from_secs(START_SECONDS) {
                return Err(Failure::new(format!("the plain server doesn't answer after {START_SECONDS} s")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(ceiling)
    }

    fn plan(&self, connections: usize, seconds: Option<f64>, status: Option<u16>) -> Plan {
        let watched = Watched { servers: vec![self.child.id()], postmaster: None };
        Plan { targets: vec![self.target.clone()], connections, seconds, status, keep: false, watched }
    }

    /// Keeps the server busy for some seconds.
    pub(crate) fn busy(&self, connections: usize, seconds: f64, requests: &mut Requests<'_>) -> Outcome<Sample> {
        closed(&self.plan(connections, Some(seconds), Some(CREATED)), requests)
    }
}

impl Drop for Ceiling {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::AUTHORIZATION;
    use actix_web::test::TestRequest;

    use super::*;
    use crate::traffic::event;

    #[test]
    fn the_answer_has_sixty_bytes_of_json() {
        assert_eq!(ANSWER.len(), 60);
        assert!(serde_json::from_str::<serde_json::Value>(ANSWER).is_ok());
    }

    #[test]
    fn only_tokens_with_the_signature_are_accepted() {
        let token = token().map_err(|failure| failure.to_string()).expect("a token");
        let accepts = |value: String| {
            let request = TestRequest::default().insert_header((AUTHORIZATION, value)).to_http_request();
            TokenCheck::new().accepts(&request)
        };
        assert!(accepts(format!("Bearer {token}")));
        let (signed, signature) = token.rsplit_once('.').expect("three parts");
        let first = if signature.starts_with('A') { "B" } else { "A" };
        assert!(!accepts(format!("Bearer {signed}.{first}{}", &signature[1..])));
        assert!(!accepts(token));
    }

    #[test]
    fn the_events_of_a_load_are_complete() {
        let parse = |text: &str| serde_json::from_str::<Event>(text).is_ok_and(|event| event.is_complete());
        assert!(parse(&event("2026-01-10T00:00:00Z", 1)));
        assert!(!parse(r#"{"timestamp":"","customer_ref":"c","usage_product_ref":"p","quantity":1}"#));
        assert!(!parse(r#"{"timestamp":"t","customer_ref":"c","usage_product_ref":"p"}"#));
    }
}
