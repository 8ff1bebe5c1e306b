//! The threads that send requests to webhook endpoints.
//!
//! A request can take 15 seconds, and nobody knows the host. Meanwhile nothing may be held that others need: no transaction,
//! database connection or permit. The types ensure that:
//!
//! - Use cases get [`Services`](crate::Services), which have no sender. So nothing within a transaction can send.
//! - [`WebhookSenders`] alone has the sender, and no store. It calls the sender on threads of its own, and returns at once.
//! - An open transaction cannot move to another thread, so no function that runs there can have one.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Builder;

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{Clock, WebhookRequest, WebhookResponse, WebhookSender};
use billing_domain::refs::NotificationRef;
use billing_domain::webhook::{WebhookSecret, WebhookUrl};

/// Sends requests to webhook endpoints on threads of its own. Clones share the sender.
#[derive(Clone)]
pub struct WebhookSenders {
    sender: Arc<dyn WebhookSender>,
    clock: Arc<dyn Clock>,
}

/// The target of requests: the URL and the secrets that sign, the newest first.
#[derive(Clone, Debug)]
pub(super) struct WebhookTarget {
    pub(super) url: WebhookUrl,
    pub(super) secrets: Vec<WebhookSecret>,
}

/// A request that is to be sent.
#[derive(Clone, Debug)]
pub(super) struct OutgoingRequest {
    pub(super) target: Arc<WebhookTarget>,
    pub(super) notification_ref: NotificationRef,
    pub(super) body: String,
}

/// A request that was sent.
#[derive(Clone, Debug)]
pub(super) struct SentRequest {
    /// When it was sent.
    pub(super) at: Timestamp,
    /// The result. `None` if the sender panicked.
    pub(super) response: Option<WebhookResponse>,
}

impl std::fmt::Debug for WebhookSenders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookSenders").finish_non_exhaustive()
    }
}

impl WebhookSenders {
    /// Creates the threads' parent. It starts no thread.
    pub fn new(sender: Arc<dyn WebhookSender>, clock: Arc<dyn Clock>) -> Self {
        Self { sender, clock }
    }

    /// Starts a thread that sends one request after another. `next` gets the result of the request before, if there was one, and
    /// returns the next request, or `None` to end the thread.
    ///
    /// # Errors
    /// Returns an error when the operating system cannot create a thread.
    pub(super) fn start(
        &self,
        mut next: impl FnMut(Option<SentRequest>) -> Option<OutgoingRequest> + Send + 'static,
    ) -> io::Result<()> {
        let Self { sender, clock } = self.clone();
        Builder::new().name("webhook".to_owned()).spawn(move || {
            let mut sent = None;
            while let Some(OutgoingRequest { target, notification_ref, body }) = next(sent.take()) {
                let at = clock.now();
                let request =
                    WebhookRequest { url: &target.url, id: notification_ref, at, body: &body, secrets: &target.secrets };
                // A thread that ends without a result would leave its delivery claimed. The panic hook logs the panic.
                let response = catch_unwind(AssertUnwindSafe(|| sender.send(&request))).ok();
                sent = Some(SentRequest { at, response });
            }
        })?;
        Ok(())
    }
}
