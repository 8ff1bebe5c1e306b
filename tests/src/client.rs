//! An API client with one credential. The client returns plain responses, and no status is an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::HeaderMap;
use ureq::{Agent, http};

use crate::binary;
use crate::described;
use crate::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use crate::{Database, Server};

/// The time limit of a response. The limit is far longer than necessary, so it stops only a request that hangs.
const ANSWER_SECONDS: u64 = 60;

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The unchanged body.
    pub bytes: Vec<u8>,
    /// The body as text.
    pub text: String,
    /// The body as JSON, or `null` if the body is not JSON.
    pub body: Value,
}

impl Answer {
    /// Returns the value of a header, or an empty string if the header is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// Returns the body of a successful response.
    ///
    /// # Panics
    /// Panics if the status is not 200.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.body
    }

    /// Returns a string field of the body.
    ///
    /// # Panics
    /// Panics if the body has no such string.
    #[track_caller]
    pub fn text_of(&self, field: &str) -> String {
        self.body[field].as_str().unwrap_or_else(|| panic!("no text {field} in {} {}", self.status, self.text)).to_owned()
    }
}

/// A complete request, for requests that are wrong on purpose.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The HTTP method: GET, POST, …
    pub method: &'a str,
    /// The path with its query string.
    pub path: &'a str,
    /// The headers that extend or replace the headers of the client.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The body in its sent form, or `None` for a request without a body.
    pub body: Option<Vec<u8>>,
}

impl<'a> Request<'a> {
    /// Creates a GET request without a body.
    pub const fn get(path: &'a str) -> Self {
        Self { method: "GET", path, headers: Vec::new(), body: None }
    }

    /// Creates a POST request with the JSON content type. The body need not be valid JSON.
    pub fn post(path: &'a str, body: impl Into<Vec<u8>>) -> Self {
        Self { method: "POST", path, headers: vec![("Content-Type", "application/json")], body: Some(body.into()) }
    }

    /// Adds a header or replaces its value.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: &'a str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name, value));
        self
    }

    /// Removes a header that the request itself sets.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }
}

/// An API key and its password.
#[derive(Clone, Debug)]
pub struct Key {
    /// The reference of the API key's record.
    pub api_key_ref: String,
    /// The log-in name.
    pub api_key: String,
    /// The password.
    pub password: String,
}

/// A client with one credential or without a credential. Its clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    base_url: String,
    headers: Vec<(String, String)>,
    /// A second server that gets every second request, and the number of requests so far.
    other: Option<(String, Arc<AtomicUsize>)>,
}

impl Client {
    /// Creates a client without a credential.
    pub fn anonymous(server: &Server) -> Self {
        let headers = vec![("Version".to_owned(), "V0".to_owned())];
        Self { agent: new_agent(), base_url: server.base_url().to_owned(), headers, other: None }
    }

    /// Logs in as the first administrator.
    pub fn admin(server: &Server) -> Self {
        Self::log_in_admin(server, ADMIN_EMAIL, ADMIN_PASSWORD)
    }

    /// Logs in as an administrator.
    ///
    /// # Panics
    /// Panics if the server rejects the log-in or sets no cookie.
    pub fn log_in_admin(server: &Server, email: &str, password: &str) -> Self {
        let client = Self::anonymous(server);
        let answer = client.post("/auth/login", &json!({"email": email, "password": password}));
        assert_eq!(answer.status, 200, "{}", answer.text);
        let cookie = answer.header("Set-Cookie").split(';').next().unwrap_or_default();
        assert!(cookie.starts_with("session="), "expected a session cookie, found {cookie:?}");
        client.with_header("Cookie", cookie)
    }

    /// Creates an administrator with a role on the command line and logs in as this administrator.
    ///
    /// # Panics
    /// Panics if the command or the log-in fails.
    pub fn of_role(database: &Database, server: &Server, role: &str, password: &str) -> Self {
        let email = format!("{role}@example.com");
        let arguments =
            ["admin", "create", "--organization", "default", "--email", &email, "--password", password, "--role", role];
        binary::succeed(database, &arguments);
        Self::log_in_admin(server, &email, password)
    }

    /// Creates a second organization with an administrator on the command line and logs in as this administrator.
    ///
    /// # Panics
    /// Panics if a command or the log-in fails.
    pub fn second_organization(database: &Database, server: &Server) -> Self {
        let (email, password) = ("Admin@Second.example", "another long pass phrase");
        binary::succeed(database, &["organization", "create", "second"]);
        let arguments = ["admin", "create", "--email", email, "--organization", "second", "--password", password];
        binary::succeed(database, &arguments);
        Self::log_in_admin(server, email, password)
    }

    /// Logs in with an API key.
    ///
    /// # Panics
    /// Panics if the server rejects the log-in.
    pub fn key(server: &Server, key: &Key) -> Self {
        let client = Self::anonymous(server);
        let answer = client.post("/auth/login", &json!({"api_key": key.api_key, "password": key.password}));
        let token = answer.clone().ok();
        let token = token.as_str().unwrap_or_else(|| panic!("expected the token as a JSON string, found {}", answer.text));
        client.with_header("Authorization", &format!("Bearer {token}"))
    }

    /// Creates an API key with every scope as the first administrator and logs in with the key.
    pub fn new_key(server: &Server) -> Self {
        Self::key(server, &Self::admin(server).generate_key(&json!({})))
    }

    /// Creates an API key. This client must be logged in as an administrator.
    ///
    /// # Panics
    /// Panics if the server rejects the request.
    pub fn generate_key(&self, request: &Value) -> Key {
        let answer = self.post("/auth/keys/generate", request);
        assert_eq!(answer.status, 200, "{}", answer.text);
        let (api_key, password) = (answer.text_of("api_key"), answer.text_of("password"));
        let list = self.get("/auth/keys/list?pageSize=1000").ok();
        let keys = list.as_array().expect("a list of keys");
        let record = keys.iter().find(|record| record["api_key"] == *api_key).expect("the new key is listed");
        Key { api_key_ref: record["api_key_ref"].as_str().expect("a reference").to_owned(), api_key, password }
    }

    /// Returns the same client with an additional header, or with another value of a header.
    #[must_use]
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// Returns the same client without a header.
    #[must_use]
    pub fn without_header(&self, name: &str) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        client
    }

    /// Returns a client with the same credential for another server, or for the same server after a restart.
    #[must_use]
    pub fn at(&self, server: &Server) -> Self {
        Self { headers: self.headers.clone(), ..Self::anonymous(server) }
    }

    /// Returns a client with the same credential whose requests go to this client's server and to another one in turn.
    #[must_use]
    pub fn alternating(&self, other: &Server) -> Self {
        Self { other: Some((other.base_url().to_owned(), Arc::default())), ..self.clone() }
    }

    /// Returns the same client with separate connections, for use in another thread.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        Self { agent: new_agent(), ..self.clone() }
    }

    /// Returns the value of a header of the client.
    ///
    /// # Panics
    /// Panics if the client has no such header.
    pub fn header(&self, name: &str) -> &str {
        let header = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str()).expect("the client sends that header")
    }

    /// Sends a GET request.
    ///
    /// # Panics
    /// Panics if the server sends no response.
    pub fn get(&self, path: &str) -> Answer {
        self.try_get(path).unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    /// Sends a GET request and writes the successful response, of any size, to a file.
    ///
    /// # Panics
    /// Panics if the response is incomplete or if the status is not 200.
    pub fn download(&self, path: &str, file: &std::path::Path) -> HeaderMap {
        let mut head = http::Request::get(format!("{}{path}", self.base_url));
        for (name, value) in &self.headers {
            head = head.header(name, value);
        }
        let mut response =
            self.agent.run(head.body(()).expect("a request")).unwrap_or_else(|error| panic!("GET {path}: {error}"));
        assert_eq!(response.status(), 200, "GET {path}");
        let mut file = std::fs::File::create(file).expect("a file");
        std::io::copy(&mut response.body_mut().as_reader(), &mut file).unwrap_or_else(|error| panic!("GET {path}: {error}"));
        response.headers().clone()
    }

    /// Sends a POST request with a JSON body.
    ///
    /// # Panics
    /// Panics if the server sends no response.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_post(path, body).unwrap_or_else(|error| panic!("POST {path}: {error}"))
    }

    /// Sends a POST request, and repeats it while the server has too many others, as a client that has to know the result does.
    ///
    /// # Panics
    /// Panics if the server sends no response.
    pub fn post_patiently(&self, path: &str, body: &Value) -> Answer {
        loop {
            let answer = self.post(path, body);
            if answer.status != 503 {
                return answer;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Sends a POST request without a body.
    ///
    /// # Panics
    /// Panics if the server sends no response.
    pub fn post_nothing(&self, path: &str) -> Answer {
        self.send(&Request::post(path, "").without("Content-Type"))
    }

    /// Sends a DELETE request.
    ///
    /// # Panics
    /// Panics if the server sends no response.
    pub fn delete(&self, path: &str) -> Answer {
        self.send(&Request { method: "DELETE", ..Request::get(path) })
    }

    /// Sends any request.
    ///
    /// # Panics
    /// Panics if the server sends no response.
    pub fn send(&self, request: &Request<'_>) -> Answer {
        self.try_send(request).unwrap_or_else(|error| panic!("{} {}: {error}", request.method, request.path))
    }

    /// Sends a GET request to a server that may have stopped.
    ///
    /// # Errors
    /// Returns an error if the response is missing.
    pub fn try_get(&self, path: &str) -> Result<Answer, ureq::Error> {
        self.try_send(&Request::get(path))
    }

    /// Sends a POST request to a server that may have stopped.
    ///
    /// # Errors
    /// Returns an error if the response is missing or incomplete.
    pub fn try_post(&self, path: &str, body: &Value) -> Result<Answer, ureq::Error> {
        self.try_send(&Request::post(path, body.to_string()))
    }

    /// Sends any request to a server that may have stopped.
    ///
    /// # Errors
    /// Returns an error if the response is missing or incomplete.
    pub fn try_send(&self, request: &Request<'_>) -> Result<Answer, ureq::Error> {
        let base_url = match &self.other {
            Some((other, sent)) if sent.fetch_add(1, Ordering::Relaxed) % 2 == 1 => other,
            _ => &self.base_url,
        };
        let mut head = http::Request::builder().method(request.method).uri(format!("{base_url}{}", request.path));
        let replaced = |name: &str| request.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        for (name, value) in self.headers.iter().filter(|(name, _)| !replaced(name)) {
            head = head.header(name, value);
        }
        for (name, value) in &request.headers {
            head = head.header(*name, *value);
        }
        let mut response = match &request.body {
            Some(body) => self.agent.run(head.body(body.as_slice())?)?,
            None => self.agent.run(head.body(())?)?,
        };
        let bytes = response.body_mut().with_config().limit(64 << 20).read_to_vec()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        let status = response.status().as_u16();
        if status >= 400 {
            self.hold_against_description(request, status, &body);
        }
        Ok(Answer { status, headers: response.headers().clone(), bytes, text, body })
    }

    /// Checks that the OpenAPI description of the operation lists the code of an error response.
    fn hold_against_description(&self, request: &Request<'_>, status: u16, problem: &Value) {
        if !described::is_known() {
            let read = self.agent.get(format!("{}/openapi.json", self.base_url)).call();
            let Ok(text) = read.and_then(|mut response| response.body_mut().read_to_string()) else { return };
            described::learn(serde_json::from_str(&text).expect("a description in JSON"));
        }
        let misfit = described::misfit(request.method, request.path, status, problem);
        assert!(misfit.is_none(), "{}", misfit.unwrap_or_default());
    }
}

fn new_agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .timeout_global(Some(Duration::from_secs(ANSWER_SECONDS)))
        // Shorter than the server's limit for idle connections, so that the server closes no connection during a
        // request.
        .max_idle_age(Duration::from_secs(2))
        .max_redirects(0);
    config.build().into()
}
