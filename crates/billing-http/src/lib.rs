//! The HTTP interface: routes, bodies, problem documents and the OpenAPI document.
//!
//! This crate handles headers, statuses, JSON keys and cookies. It contains no billing rule and no SQL. A request passes:
//!
//! 1. `middleware`: request id, timeout, panics, problem documents and the log line;
//! 2. the router, which is built from [`billing_api::operations`];
//! 3. the guard of the operation, which checks the credential, then the headers;
//! 4. a handler in `routes`, which extracts the input, runs one use case on a blocking thread and renders the result.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use billing_api::console::Console;
//! # use billing_application::{Services, webhooks::WebhookSenders};
//! # use billing_http::{HttpSettings, HttpState};
//! # fn serve(services: Services, senders: WebhookSenders, console: Arc<dyn Console>, settings: HttpSettings) -> std::io::Result<()> {
//! let state = HttpState::new(services, senders, console, settings);
//! let server = actix_web::HttpServer::new(move || billing_http::app(state.clone())).bind("127.0.0.1:8080")?;
//! # Ok(())
//! # }
//! ```

mod app;
mod auth;
mod blocking;
mod body;
mod call;
mod channel;
mod connection_activity;
mod console;
mod context;
mod endpoints;
mod event_excerpt;
mod fair_permits;
mod held_value;
mod identity;
mod in_flight;
mod ingest;
mod metrics;
mod middleware;
mod numbers;
mod pipe;
mod preference;
mod public_pages;
mod readiness;
mod refused;
mod respond;
mod router;
mod routes;
mod settings;
mod state;
mod static_text;
mod trace;
mod undrained_body;
mod writer_turn;

pub use app::{app, metrics_app};
pub use auth::address::subscriber as subscriber_address;
pub use connection_activity::ConnectionActivity;
pub use settings::{
    COOKIE_KEY_BYTES, CookieKey, DEFAULT_BATCH_LIMIT_BYTES, DEFAULT_BODY_LIMIT_BYTES, DEFAULT_REPORTS_AT_ONCE,
    DEFAULT_REQUEST_TIMEOUT, HttpSettings, LogInLimits, Network, PublicUrl, SettingError,
};
pub use state::HttpState;
