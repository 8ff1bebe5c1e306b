//! A server on SQLite in memory, with an administrator and a fixed clock.
#![allow(dead_code, missing_docs, reason = "each test binary uses only a part")]

use std::cell::OnceCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::header::HeaderMap;
use actix_web::http::{Method, StatusCode};
use actix_web::test::{TestRequest, init_service, try_call_service};
use billing_application::webhooks::WebhookSenders;
use billing_application::{Services, organizations};
use billing_auth::{AesSealer, BcryptPasswords, JwtSigner, RandomKeys, TimedCodes};
use billing_console::Pages;
use billing_domain::ports::{MockDocumentPrinter, Store, WebhookSender};
use billing_formats::RhaiMapper;
use billing_http::{CookieKey, HttpSettings, HttpState};
use billing_testkit::{CountingIds, FixedClock, NoWebhooks, PlainEInvoices, PlainPrinter, fixtures};
use billing_teststore::TestStore;
use serde_json::Value;

pub(crate) const EMAIL: &str = "owner@example.com";
pub(crate) const PASSWORD: &str = "a long enough password";
pub(crate) const UNKNOWN: &str = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";

pub(crate) struct Server {
    pub(crate) state: HttpState,
    pub(crate) services: Services,
    pub(crate) store: Arc<TestStore>,
    pub(crate) clock: Arc<FixedClock>,
    /// The service with all its routes. It takes some 20 ms to make in a debug build.
    app: OnceCell<App>,
}

/// Answers a request.
type App = Rc<dyn Fn(TestRequest) -> Pin<Box<dyn Future<Output = Reply>>>>;

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    /// Returns the status and code of a problem document. Checks its required fields.
    pub(crate) fn problem(&self) -> (u16, String) {
        let problem = self.json();
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        assert_eq!(problem["status"], self.status.as_u16(), "{self:?}");
        assert_eq!(problem["request_id"].as_str(), self.header("x-request-id"), "{self:?}");
        for field in ["type", "title", "detail", "instance", "code"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {self:?}");
        }
        assert!(problem["errors"].is_array(), "{self:?}");
        assert!(self.status != StatusCode::SERVICE_UNAVAILABLE || self.header("retry-after").is_some(), "{self:?}");
        (self.status.as_u16(), problem["code"].as_str().expect("a code").to_owned())
    }

    /// Returns the pointer and code of each field error in a problem document.
    pub(crate) fn fields(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let errors = self.json()["errors"].as_array().expect("errors").clone();
        errors.iter().map(|error| (text(&error["pointer"]), text(&error["code"]))).collect()
    }

    /// Returns the session cookie as a browser sends it.
    pub(crate) fn cookie(&self) -> String {
        let cookie = self.header("set-cookie").expect("a cookie");
        cookie.split(';').next().expect("a value").to_owned()
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with("http://billing.test", |_| {})
    }

    pub(crate) fn with(public_url: &str, set: impl FnOnce(&mut HttpSettings)) -> Self {
        let store = Arc::new(TestStore::new());
        Self::on(Arc::clone(&store) as Arc<dyn Store>, store, public_url, set)
    }

    /// Returns a server on a wrapper of a store.
    pub(crate) fn on(used: Arc<dyn Store>, store: Arc<TestStore>, public_url: &str, set: impl FnOnce(&mut HttpSettings)) -> Self {
        let ids = Arc::new(CountingIds::new());
        let clock = Arc::new(FixedClock::at("2026-01-20T12:00:00Z"));
        let signer = JwtSigner::new(&[fixtures::signing_secret(&*ids)], "billing", "billing").expect("a signer");
        let services = Services {
            store: used,
            clock: Arc::clone(&clock) as _,
            machine: Arc::clone(&clock) as _,
            sandbox: None,
            ids,
            passwords: Arc::new(BcryptPasswords::with_cost(4).expect("the smallest cost")),
            keys: Arc::new(RandomKeys),
            codes: Arc::new(TimedCodes),
            tokens: Arc::new(signer),
            mapper: Arc::new(RhaiMapper::new()),
            sealer: Arc::new(AesSealer),
            teller: Arc::new(billing_api::dto::audit::JsonAuditRenderer),
            printer: Arc::new(PlainPrinter),
            e_invoices: Arc::new(PlainEInvoices),
            webhook_urls: Arc::new(NoWebhooks),
            token_lifetime_seconds: 3600,
        };
        organizations::first_start(&services, &fixtures::line(EMAIL), PASSWORD).expect("a first start");
        let key = CookieKey::try_from([7; 64].as_slice()).expect("a key");
        let mut settings = HttpSettings::new(public_url.parse().expect("a URL"), key);
        set(&mut settings);
        Self {
            state: HttpState::new(services.clone(), senders(&services), Arc::new(Pages), settings),
            services,
            store,
            clock,
            app: OnceCell::new(),
        }
    }

    /// Returns another server on the same data.
    pub(crate) fn another(&self, set: impl FnOnce(&mut HttpSettings)) -> Self {
        self.another_with(self.services.clone(), Arc::new(NoWebhooks), set)
    }

    /// Returns another server on the same data, with a printer.
    pub(crate) fn another_with_printer(&self, printer: MockDocumentPrinter, set: impl FnOnce(&mut HttpSettings)) -> Self {
        let services = Services { printer: Arc::new(printer), ..self.services.clone() };
        self.another_with(services, Arc::new(NoWebhooks), set)
    }

    /// Returns another server on the same data, with a sender of webhooks.
    pub(crate) fn another_with_sender(&self, sender: Arc<dyn WebhookSender>, set: impl FnOnce(&mut HttpSettings)) -> Self {
        self.another_with(self.services.clone(), sender, set)
    }

    fn another_with(&self, services: Services, sender: Arc<dyn WebhookSender>, set: impl FnOnce(&mut HttpSettings)) -> Self {
        let key = CookieKey::try_from([7; 64].as_slice()).expect("a key");
        let mut settings = HttpSettings::new("http://billing.test".parse().expect("a URL"), key);
        set(&mut settings);
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let senders = WebhookSenders::new(sender, Arc::clone(&services.machine));
        Self {
            state: HttpState::new(services.clone(), senders, Arc::new(Pages), settings),
            services,
            store,
            clock,
            app: OnceCell::new(),
        }
    }

    pub(crate) async fn call(&self, request: TestRequest) -> Reply {
        let app = match self.app.get() {
            Some(app) => Rc::clone(app),
            None => {
                let service = Rc::new(init_service(billing_http::app(self.state.clone())).await);
                let app: App = Rc::new(move |request| {
                    let service = Rc::clone(&service);
                    Box::pin(async move { answer(&*service, request.to_request()).await })
                });
                Rc::clone(self.app.get_or_init(|| app))
            }
        };
        app(from_elsewhere(request)).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Reply {
        let mut request = TestRequest::default().method(method).uri(path);
        for (name, value) in headers {
            request = request.append_header((*name, *value));
        }
        if let Some(body) = body {
            request = request.insert_header(("content-type", "application/json")).set_payload(body.to_owned());
        }
        self.call(request).await
    }

    pub(crate) async fn get(&self, path: &str, credential: (&str, &str)) -> Reply {
        self.send(Method::GET, path, &[credential], None).await
    }

    pub(crate) async fn post(&self, path: &str, credential: (&str, &str), body: &str) -> Reply {
        self.send(Method::POST, path, &[credential], Some(body)).await
    }

    pub(crate) async fn log_in(&self, body: &Value) -> Reply {
        self.send(Method::POST, "/auth/login", &[], Some(&body.to_string())).await
    }

    /// Creates the prerequisites of an event: a customer with a contract for calls at 0.0025 with 19% tax. Returns the response to
    /// the contract.
    pub(crate) async fn make_a_contract(&self, bearer: &str) -> Value {
        let pricing = r#"{"product_pricing_ref":"api","name":"API","currency":"EUR","line_items":[{"line_item_id":"calls","name":"Calls",
            "kind":"USAGE","usage_product_ref":"calls","price":{"model":"PER_UNIT","unit_price":"0.0025"}}]}"#;
        let contract = r#"{"customer_ref":"acme","products":[{"product_pricing_ref":"api","billing_start_date":"2026-01-01",
            "billing_end_date":"2026-12-31","billing_cycle":{"unit":"MONTHLY","cycle":1},"tax":19}]}"#;
        let parts = [
            ("/api/customers/", r#"{"customer_ref":"acme","name":"Acme"}"#),
            ("/api/usage/products/", r#"{"usage_product_ref":"calls","name":"API calls","unit":"call"}"#),
            ("/api/pricings/", pricing),
            ("/api/contracts/", contract),
        ];
        let mut last = Value::Null;
        for (path, body) in parts {
            let reply = self.post(path, ("authorization", bearer), body).await;
            assert_eq!(reply.status, 200, "{path}: {reply:?}");
            last = reply.json();
        }
        last
    }

    /// Returns the cookie of a new administrator session.
    pub(crate) async fn session(&self) -> String {
        self.log_in(&serde_json::json!({"email": EMAIL, "password": PASSWORD})).await.cookie()
    }

    /// Creates a key with these scopes and returns the response of `keys/generate`.
    pub(crate) async fn key(&self, scopes: &[&str]) -> Value {
        let session = self.session().await;
        let body = serde_json::json!({"scopes": scopes}).to_string();
        self.post("/auth/keys/generate", ("cookie", &session), &body).await.json()
    }

    /// Returns the `Authorization` header of a key.
    pub(crate) async fn bearer_of(&self, key: &Value) -> String {
        let answered = self.log_in(&serde_json::json!({"api_key": key["api_key"], "password": key["password"]})).await;
        format!("Bearer {}", answered.json().as_str().expect("a token"))
    }

    /// Returns the `Authorization` header of a new key with these scopes.
    pub(crate) async fn bearer(&self, scopes: &[&str]) -> String {
        self.bearer_of(&self.key(scopes).await).await
    }
}

/// Returns a sender of webhooks that reaches no endpoint.
fn senders(services: &Services) -> WebhookSenders {
    WebhookSenders::new(Arc::new(NoWebhooks), Arc::clone(&services.machine))
}

/// Sets the peer address of a request that arrives over the network.
pub(crate) fn from_elsewhere(request: TestRequest) -> TestRequest {
    request.peer_addr("192.0.2.1:4711".parse().expect("an address"))
}

/// Returns the response of a service.
pub(crate) async fn answer<S, R, B>(app: &S, request: R) -> Reply
where
    S: Service<R, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody,
{
    let (head, body) = match try_call_service(app, request).await {
        Ok(answered) => split(answered.into_parts().1).await,
        Err(error) => split(error.error_response()).await,
    };
    Reply { status: head.0, headers: head.1, text: body }
}

async fn split<B: MessageBody>(response: actix_web::HttpResponse<B>) -> ((StatusCode, HeaderMap), String) {
    let head = (response.status(), response.headers().clone());
    let bytes = to_bytes(response.into_body()).await.unwrap_or_else(|_| panic!("a readable body"));
    (head, String::from_utf8(bytes.to_vec()).expect("text"))
}
