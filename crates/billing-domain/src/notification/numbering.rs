//! The order in which notifications take their positions, and the webhook endpoints that want them.

use std::collections::{BTreeMap, BTreeSet};

use super::{NotificationType, Subject};
use crate::refs::{CustomerId, CustomerRef, EndpointRef, NotificationRef};

/// A notification without a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unnumbered {
    /// The reference.
    pub notification_ref: NotificationRef,
    /// The customer whom the subject belongs to; `None` for an endpoint.
    pub customer_id: Option<CustomerId>,
    /// The subject.
    pub subject: Subject,
    /// The number among the notifications of the subject.
    pub sequence: u64,
    /// The type.
    pub kind: NotificationType,
    /// Whether the previous notification of the subject has no position either.
    pub is_after_unnumbered: bool,
}

/// Returns notifications, given in the order of their references, in the order of their positions.
///
/// The notifications of a subject are ordered by sequence, because servers whose clocks differ can assign their references in
/// another order. A notification is left out if the previous one of its subject has no position and is not among the given ones.
pub fn order(unnumbered: Vec<Unnumbered>) -> Vec<Unnumbered> {
    let mut ordered: Vec<Unnumbered> = Vec::with_capacity(unnumbered.len());
    let mut taken: BTreeSet<(Subject, u64)> = BTreeSet::new();
    // By the notification that each one waits for.
    let mut waiting: BTreeMap<(Subject, u64), Unnumbered> = BTreeMap::new();
    for notification in unnumbered {
        let previous = (notification.subject, notification.sequence.saturating_sub(1));
        if notification.is_after_unnumbered && !taken.contains(&previous) {
            waiting.insert(previous, notification);
            continue;
        }
        let mut next = Some(notification);
        while let Some(notification) = next {
            let place = (notification.subject, notification.sequence);
            taken.insert(place);
            ordered.push(notification);
            next = waiting.remove(&place);
        }
    }
    ordered
}

/// The notifications that an enabled webhook endpoint wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The endpoint.
    pub endpoint_ref: EndpointRef,
    /// The wanted types. A type is exact, `*`, or ends with `.*`.
    pub event_types: Vec<String>,
    /// The wanted customers; `None` for notifications of all customers, and those of no customer.
    pub customer_refs: Option<Vec<CustomerRef>>,
}

impl Subscription {
    /// Returns whether the endpoint wants notifications of a type. The request for a test sends the test itself, to its endpoint
    /// alone.
    pub fn wants(&self, kind: NotificationType) -> bool {
        kind != NotificationType::WebhookTest && self.event_types.iter().any(|pattern| matches_type(pattern, kind))
    }
}

/// Returns whether a pattern of an endpoint matches a type. A pattern is a type, `*`, or the part of a type before its period
/// with `.*`.
pub fn matches_type(pattern: &str, kind: NotificationType) -> bool {
    let word = kind.as_str();
    match pattern.strip_suffix(".*") {
        Some(group) => word.split('.').next() == Some(group),
        None => pattern == "*" || pattern == word,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::refs::{ContractRef, DocumentRef};

    fn document(number: u128) -> Subject {
        Subject::Document(DocumentRef::from_uuid(Uuid::from_u128(number)))
    }

    fn unnumbered(reference: u128, subject: Subject, sequence: u64, is_after_unnumbered: bool) -> Unnumbered {
        Unnumbered {
            notification_ref: NotificationRef::from_uuid(Uuid::from_u128(reference)),
            customer_id: None,
            subject,
            sequence,
            kind: NotificationType::DocumentOpened,
            is_after_unnumbered,
        }
    }

    #[test]
    fn positions_follow_references_and_within_a_subject_sequences() {
        let contract = Subject::Contract(ContractRef::from_uuid(Uuid::from_u128(1)));
        for (given, expected) in [
            (vec![], vec![]),
            (vec![(document(1), 1, false), (document(2), 1, false), (document(1), 2, true)], vec![1, 2, 3]),
            // The first notification of document 1 has the reference of a clock that is ahead.
            (vec![(document(1), 2, true), (document(2), 1, false), (document(1), 1, false)], vec![2, 3, 1]),
            (vec![(document(1), 3, true), (document(1), 2, true), (document(1), 1, false)], vec![3, 2, 1]),
            // The previous notification is numbered.
            (vec![(document(1), 7, false), (document(1), 8, true)], vec![1, 2]),
            // The previous notification is not here.
            (vec![(document(1), 7, true), (document(1), 8, true), (contract, 7, false)], vec![3]),
        ] {
            let given: Vec<Unnumbered> = given
                .into_iter()
                .zip(1..)
                .map(|((subject, sequence, waits), reference)| unnumbered(reference, subject, sequence, waits))
                .collect();
            let ordered: Vec<u128> = order(given.clone()).iter().map(|one| one.notification_ref.as_uuid().as_u128()).collect();
            assert_eq!(ordered, expected, "{given:?}");
        }
    }

    #[test]
    fn a_pattern_matches_a_type_a_group_or_everything() {
        for (pattern, opened, changed) in [
            ("*", true, true),
            ("document.*", true, false),
            ("document.opened", true, false),
            ("contract.*", false, true),
            ("contract.changed", false, true),
            ("document", false, false),
            ("doc.*", false, false),
            ("", false, false),
        ] {
            assert_eq!(matches_type(pattern, NotificationType::DocumentOpened), opened, "{pattern}");
            assert_eq!(matches_type(pattern, NotificationType::ContractChanged), changed, "{pattern}");
        }
    }
}
