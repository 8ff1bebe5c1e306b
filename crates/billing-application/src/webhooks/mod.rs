//! Webhooks: endpoints that receive notifications, and the deliveries to them.
//!
//! The numbering of notifications creates the deliveries. [`WebhookDeliverer`] sends them, apart from all requests.
//! [`WebhookSenders`] alone waits for endpoints.

mod attempts;
mod deliverer;
mod deliveries;
mod endpoints;
mod facts;
mod lane_shares;
mod secrets;
mod senders;
mod test;

pub use attempts::{ClaimedDelivery, ClaimedEndpoint, SentDelivery, claim_deliveries, record_deliveries};
pub use deliverer::{DeliveryObserver, WebhookDeliverer, WebhookWaker};
pub use deliveries::{ReplayOutcome, ReplayRequest, list_deliveries, replay_deliveries, webhook_backlog};
pub use endpoints::{
    CreatedEndpoint, EndpointView, RotatedSecret, create_endpoint, delete_endpoint, edit_endpoint, get_endpoint, list_endpoints,
    rotate_secret,
};
pub use lane_shares::LaneShares;
pub use secrets::response_secret;
pub use senders::WebhookSenders;
pub use test::{PreparedTest, TestPreparation, prepare_test, record_test};
