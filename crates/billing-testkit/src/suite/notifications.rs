//! Notifications, their numbering, and notices.

use billing_domain::calendar::Timestamp;
use billing_domain::ledger::BillingFailure;
use billing_domain::notification::{Notice, Notification, NotificationType, Subject};
use billing_domain::ports::{Access, IdSource as _, Lock, NotificationFilter, NumberedNotification, Store, StoreError, transact};
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, EndpointRef, NotificationRef, OrganizationId, ServerRef};
use billing_domain::runs::{DocumentFailure, FailedDocument};

use super::{World, later, long_ago, read, world, write};
use crate::Singly as _;
use crate::{FreshIds, fixtures};

/// Creates a notification of the world's customer.
fn notification(w: &World, subject: Subject, sequence: u64) -> Notification {
    Notification {
        notification_ref: NotificationRef::from_uuid(FreshIds.new_id()),
        customer_id: Some(w.customer.id),
        subject,
        sequence,
        kind: NotificationType::DocumentOpened,
        body: format!(r#"{{ "sequence" : {sequence}, "data":{{"total":1.50}}}}"#),
        created_at: later(1),
        position: None,
    }
}

fn document() -> Subject {
    Subject::Document(DocumentRef::from_uuid(FreshIds.new_id()))
}

fn insert(store: &dyn Store, organization: OrganizationId, notifications: &[Notification]) {
    write(store, |tx| tx.insert_notifications(organization, notifications));
}

/// Numbers notifications in this order, and returns them with their positions.
fn number(store: &dyn Store, organization: OrganizationId, notifications: &[Notification]) -> Vec<Notification> {
    let server = ServerRef::from_uuid(FreshIds.new_id());
    write(store, |tx| {
        let last = tx.lease_positions(organization, server, later(1), later(1))?.expect("the lease");
        let numbered: Vec<NumberedNotification> = notifications
            .iter()
            .zip(last + 1..)
            .map(|(notification, position)| NumberedNotification {
                notification_ref: notification.notification_ref,
                customer_id: notification.customer_id,
                position,
            })
            .collect();
        tx.number_notifications(organization, &numbered)?;
        let with_position = notifications.iter().zip(numbered);
        Ok(with_position.map(|(one, numbered)| Notification { position: Some(numbered.position), ..one.clone() }).collect())
    })
}

fn feed(store: &dyn Store, organization: OrganizationId, filter: &NotificationFilter) -> Vec<Notification> {
    read(store, |tx| tx.notifications(organization, filter, 0, 1000))
}

pub fn notifications_come_back_with_every_field_once_they_are_numbered(store: &dyn Store) {
    let w = world(store);
    let full = Notification { kind: NotificationType::ContractEnding, ..notification(&w, document(), 3) };
    let of_endpoint = Notification {
        customer_id: None,
        subject: Subject::Endpoint(EndpointRef::from_uuid(FreshIds.new_id())),
        kind: NotificationType::EndpointDisabled,
        body: "{}".to_owned(),
        ..notification(&w, document(), 1)
    };
    insert(store, w.org, &[full.clone(), of_endpoint.clone()]);
    insert(store, w.org, &[]);
    assert_eq!(feed(store, w.org, &NotificationFilter::default()), []);
    assert_eq!(read(store, |tx| tx.notification(w.org, full.notification_ref)), Some(full.clone()));
    assert!(read(store, |tx| tx.organizations_to_number()).contains(&w.org));
    let numbered = number(store, w.org, &[of_endpoint, full]);
    assert_eq!(numbered.iter().map(|one| one.position).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert_eq!(feed(store, w.org, &NotificationFilter::default()), numbered);
    assert_eq!(read(store, |tx| tx.notification(w.org, numbered[1].notification_ref)), Some(numbered[1].clone()));
    assert!(!read(store, |tx| tx.organizations_to_number()).contains(&w.org));
    let part = |after, limit| read(store, |tx| tx.notifications(w.org, &NotificationFilter::default(), after, limit));
    assert_eq!((part(1, 1000), part(0, 1)), (numbered[1..].to_vec(), numbered[..1].to_vec()));
    assert_eq!((part(2, 1000), part(u64::MAX, 1000)), (vec![], vec![]));
    let unknown = NotificationRef::from_uuid(FreshIds.new_id());
    assert_eq!(read(store, |tx| tx.notification(w.org, unknown)), None);
}

pub fn each_field_of_a_filter_narrows_the_notifications(store: &dyn Store) {
    let w = world(store);
    let plain = notification(&w, document(), 1);
    let second = Notification { kind: NotificationType::DocumentIssued, ..notification(&w, plain.subject, 2) };
    let elsewhere =
        Notification { customer_id: Some(CustomerId::from_uuid(FreshIds.new_id())), ..notification(&w, document(), 1) };
    insert(store, w.org, &[plain.clone(), second.clone(), elsewhere.clone()]);
    let numbered = number(store, w.org, &[plain, second, elsewhere]);
    let found = |filter: NotificationFilter| -> Vec<u64> {
        feed(store, w.org, &filter).into_iter().filter_map(|one| one.position).collect()
    };
    let all = NotificationFilter::default();
    assert_eq!(found(all), [1, 2, 3]);
    assert_eq!(found(NotificationFilter { kind: Some(NotificationType::DocumentIssued), ..all }), [2]);
    assert_eq!(found(NotificationFilter { subject: Some(numbered[0].subject), ..all }), [1, 2]);
    assert_eq!(found(NotificationFilter { customer_id: Some(w.customer.id), ..all }), [1, 2]);
    assert_eq!(found(NotificationFilter { customer_id: numbered[2].customer_id, ..all }), [3]);
    let contract = Subject::Contract(ContractRef::from_uuid(FreshIds.new_id()));
    assert!(found(NotificationFilter { subject: Some(contract), ..all }).is_empty());
}

pub fn a_subject_uses_a_sequence_once(store: &dyn Store) {
    let w = world(store);
    let first = notification(&w, document(), 1);
    insert(store, w.org, std::slice::from_ref(&first));
    let again = notification(&w, first.subject, 1);
    let inserted = transact(store, Access::Write, |tx| tx.insert_notifications(w.org, std::slice::from_ref(&again)));
    assert!(matches!(inserted, Err(StoreError::Corrupt(_))), "{inserted:?}");
    assert_eq!(read(store, |tx| tx.notification(w.org, again.notification_ref)), None);
}

pub fn unnumbered_notifications_come_by_reference_and_name_those_that_wait(store: &dyn Store) {
    let w = world(store);
    let subject = document();
    // Their references are in this order.
    let second = notification(&w, subject, 2);
    let other = notification(&w, document(), 1);
    let first = notification(&w, subject, 1);
    let third = notification(&w, subject, 3);
    insert(store, w.org, &[third.clone(), first.clone(), other.clone(), second.clone()]);
    let unnumbered = |limit| {
        let found = read(store, |tx| tx.unnumbered_notifications(w.org, limit));
        found.into_iter().map(|one| (one.notification_ref, one.is_after_unnumbered)).collect::<Vec<_>>()
    };
    let refs = [&second, &other, &first, &third].map(|one| one.notification_ref);
    assert_eq!(unnumbered(10), [(refs[0], true), (refs[1], false), (refs[2], false), (refs[3], true)]);
    assert_eq!(unnumbered(2), [(refs[0], true), (refs[1], false)]);
    number(store, w.org, &[first]);
    assert_eq!(unnumbered(10), [(refs[0], false), (refs[1], false), (refs[3], true)]);
    let found = read(store, |tx| tx.unnumbered_notifications(w.org, 1));
    let facts = found.first().map(|one| (one.customer_id, one.subject, one.sequence, one.kind));
    assert_eq!(facts, Some((second.customer_id, second.subject, 2, second.kind)));
}

pub fn one_server_at_a_time_has_the_lease_of_an_organization(store: &dyn Store) {
    let (w, other) = (world(store), world(store));
    let [first, second] = [FreshIds.new_id(), FreshIds.new_id()].map(ServerRef::from_uuid);
    let lease =
        |organization, server, now: i64| write(store, |tx| tx.lease_positions(organization, server, later(now), later(now + 10)));
    assert_eq!(lease(w.org, first, 0), Some(0));
    assert_eq!((lease(w.org, second, 9), lease(other.org, second, 9)), (None, Some(0)));
    assert_eq!(lease(w.org, first, 9), Some(0), "the lease is extended");
    assert_eq!(lease(w.org, second, 10), None);
    assert_eq!(lease(w.org, second, 19), Some(0), "the lease has run out");
    assert_eq!(lease(w.org, first, 20), None);
    let one = notification(&w, document(), 1);
    insert(store, w.org, std::slice::from_ref(&one));
    write(store, |tx| {
        let last = tx.lease_positions(w.org, second, later(20), later(30))?.expect("the lease");
        let numbered =
            NumberedNotification { notification_ref: one.notification_ref, customer_id: one.customer_id, position: last + 1 };
        tx.number_notifications(w.org, &[numbered])?;
        assert_eq!(tx.webhook_subscriptions(w.org)?, []);
        tx.insert_deliveries(w.org, &[], later(20))
    });
    assert_eq!(lease(w.org, second, 21), Some(1));
}

pub fn notices_come_when_their_instants_have_come(store: &dyn Store) {
    let w = world(store);
    let notice = |subject, kind, at| Notice { customer_id: w.customer.id, subject, kind, at: later(at) };
    let overdue = notice(document(), NotificationType::DocumentOverdue, 20);
    let ending = notice(Subject::Contract(w.contract.contract_ref), NotificationType::ContractEnding, 10);
    write(store, |tx| tx.put_notices(w.org, &[overdue, ending]));
    write(store, |tx| tx.put_notices(w.org, &[]));
    let due = |now, limit| -> Vec<Notice> {
        let found = read(store, |tx| tx.due_notices(Some(w.org), later(now), limit));
        found
            .into_iter()
            .map(|(organization, notice)| {
                assert_eq!(organization, w.org);
                notice
            })
            .collect()
    };
    assert_eq!((due(9, 10), due(10, 10), due(20, 10), due(20, 1)), (vec![], vec![ending], vec![ending, overdue], vec![ending]));
    assert!(read(store, |tx| tx.due_notices(None, later(20), 1000)).contains(&(w.org, ending)));
    let moved = Notice { at: later(30), ..ending };
    write(store, |tx| tx.put_notices(w.org, &[moved]));
    assert_eq!(due(30, 10), [overdue, moved]);
    assert!(!write(store, |tx| tx.take_notice(w.org, &ending)), "it has moved");
    let other = world(store);
    assert!(!write(store, |tx| tx.take_notice(other.org, &moved)), "it is another organization's");
    assert!(write(store, |tx| tx.take_notice(w.org, &moved)));
    assert!(!write(store, |tx| tx.take_notice(w.org, &moved)));
    assert_eq!(due(30, 10), [overdue]);
}

pub fn documents_and_contracts_count_their_notifications(store: &dyn Store) {
    let w = world(store);
    let key = w.contract.key(w.org);
    let of_contract = || {
        let header = read(store, |tx| tx.agreement(key, None));
        header.map(|header| (header.notifications.count, header.notifications.failure))
    };
    let of_document = |document_ref: DocumentRef| {
        let found = read(store, |tx| tx.book_documents_by_refs(w.org, &[w.customer.id], &[document_ref]));
        found.first().map(|document| document.notifications)
    };
    assert_eq!(of_contract(), Some((1, None)));
    let head = w.open(store, w.head(1));
    assert_eq!(of_document(head.document_ref), Some(1));
    let issued = w.frozen(&head, fixtures::cents(100));
    assert!(write(store, |tx| {
        tx.lock_contract(key, Lock::Exclusive)?;
        tx.issue_document(head.key(w.org), &issued)
    }));
    assert_eq!(of_document(head.document_ref), Some(2));
    write(store, |tx| tx.count_document_notification(head.key(w.org)));
    assert_eq!(of_document(head.document_ref), Some(3));
    let discarded = w.open(store, w.head(2));
    w.void(store, &discarded);
    assert_eq!(of_document(discarded.document_ref), Some(2));
    let january = FailedDocument { period: fixtures::period("2026-01-01", "2026-01-31"), document_ref: Some(head.document_ref) };
    let first = [None, Some(january)].map(|document| DocumentFailure { document, code: "documents".to_owned() });
    let failure = BillingFailure { count: 21, first: first.to_vec(), notified_at: later(7) };
    write(store, |tx| {
        tx.lock_contract(key, Lock::Exclusive)?;
        tx.count_contract_notification(key)?;
        tx.put_billing_failure(key, Some(&failure))
    });
    assert_eq!(of_contract(), Some((2, Some(failure))));
    write(store, |tx| {
        tx.lock_contract(key, Lock::Exclusive)?;
        tx.put_billing_failure(key, None)
    });
    assert_eq!(of_contract(), Some((2, None)));
}

pub fn old_notifications_are_deleted_from_the_beginning_of_the_feed(store: &dyn Store) {
    let w = world(store);
    let made = |created_at: Timestamp| Notification { created_at, ..notification(&w, document(), 1) };
    let all = [made(later(1)), made(later(2)), made(later(9)), made(later(3)), made(later(1))];
    insert(store, w.org, &all);
    assert_eq!(read(store, |tx| tx.oldest_notification(w.org)), None);
    let numbered = number(store, w.org, &all[..4]);
    assert_eq!(read(store, |tx| tx.oldest_notification(w.org)), Some(later(1)));
    let purge = |before, limit| write(store, |tx| tx.purge_notifications(w.org, before, limit));
    assert_eq!((purge(later(1), 10), purge(later(4), 1), purge(later(4), 10), purge(later(4), 10)), (0, 1, 1, 0));
    // The third one is later, so the fourth one stays with it.
    assert_eq!(feed(store, w.org, &NotificationFilter::default()), numbered[2..]);
    assert_eq!(purge(later(10), 10), 2);
    assert_eq!(read(store, |tx| tx.notification(w.org, all[4].notification_ref)), Some(all[4].clone()), "it has no position");
    assert_eq!(number(store, w.org, &all[4..])[0].position, Some(5), "positions continue");
}

pub fn issued_documents_without_a_notification_are_found(store: &dyn Store) {
    let w = world(store);
    let (first, second) = (w.issue(store, w.head(1), fixtures::cents(100)), w.issue(store, w.head(2), fixtures::cents(100)));
    let far = fixtures::at("9000-01-01T00:00:00Z");
    let missing = |from, to| read(store, |tx| tx.issued_without_notification(w.org, from, to));
    assert_eq!(missing(long_ago(), far), [first.document_ref, second.document_ref]);
    let of = |document_ref, sequence, kind| Notification { kind, ..notification(&w, Subject::Document(document_ref), sequence) };
    insert(
        store,
        w.org,
        &[
            of(first.document_ref, 2, NotificationType::DocumentIssued),
            of(second.document_ref, 1, NotificationType::DocumentOpened),
        ],
    );
    assert_eq!(missing(long_ago(), far), [second.document_ref]);
    assert_eq!((missing(far, far), missing(long_ago(), long_ago())), (vec![], vec![]));
}

pub fn another_organization_has_a_feed_of_its_own(store: &dyn Store) {
    let (w, other) = (world(store), world(store));
    let own = notification(&w, document(), 1);
    insert(store, w.org, std::slice::from_ref(&own));
    number(store, w.org, std::slice::from_ref(&own));
    assert_eq!(feed(store, other.org, &NotificationFilter::default()), []);
    assert_eq!(read(store, |tx| tx.notification(other.org, own.notification_ref)), None);
    assert_eq!(read(store, |tx| tx.unnumbered_notifications(other.org, 10)), []);
    assert_eq!(read(store, |tx| tx.oldest_notification(other.org)), None);
    assert_eq!(write(store, |tx| tx.purge_notifications(other.org, later(100), 10)), 0);
    assert_eq!(read(store, |tx| tx.issued_without_notification(other.org, long_ago(), later(100_000_000))), []);
    assert_eq!(feed(store, w.org, &NotificationFilter::default()).len(), 1);
}
