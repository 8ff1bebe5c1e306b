//! Filters of webhook deliveries.

use billing_domain::calendar::Timestamp;
use billing_domain::notification::{NotificationType, Subject};
use billing_domain::ports::DeliveryFilter;
use billing_domain::refs::EndpointRef;
use billing_domain::webhook::DeliveryState;

use super::lists::possible;
use super::{DEFAULT_PAGE_SIZE, Paged, SearchRef, paged};
use crate::dto::declare::params;

params! {
    /// Filters and page of webhook deliveries.
    DeliveryParams {
        /// Endpoint reference.
        endpoint_ref: Option<SearchRef<EndpointRef>>,
        /// State.
        state: Option<DeliveryState>,
        /// Type of the notification.
        kind as "type": Option<NotificationType>,
        /// Subject of the notification.
        subject: Option<SearchRef<Subject>>,
        /// Earliest time of creation, RFC 3339 with an offset.
        from: Option<Timestamp>,
        /// Latest time of creation, exclusive.
        to: Option<Timestamp>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl DeliveryParams {
    /// Returns the filter; `None` if nothing can match.
    pub fn filter(&self) -> Option<DeliveryFilter> {
        Some(DeliveryFilter {
            endpoint_ref: possible(self.endpoint_ref)?,
            state: self.state,
            kind: self.kind,
            subject: possible(self.subject)?,
            from: self.from,
            to: self.to,
        })
    }
}

paged! {
    DeliveryParams;
    ordered
}
