//! Sends notifications to webhook endpoints (Standard Webhooks 1.0.0). The only crate that knows addresses, requests and signatures
//! of webhooks.
//!
//! A request goes only to public addresses, unless the settings permit a network. Addresses are judged where they are connected
//! to: the HTTP client gets its addresses from our resolver, which looks a host up once and rejects it if any of its addresses is
//! not permitted. Redirects are not followed, and proxies of the environment are ignored.

mod address;
mod client;
mod failure;
mod resolver;
mod settings;
mod signature;

pub use client::{HttpWebhooks, tls_config};
pub use settings::{PermittedNetwork, WebhookProxy, WebhookSettingError, WebhookSettings};
