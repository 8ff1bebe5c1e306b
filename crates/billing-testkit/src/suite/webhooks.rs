//! Webhook endpoints, their secrets, and deliveries.

use billing_domain::notification::{Notification, NotificationType, Subject};
use billing_domain::ports::{
    DeliveryCounts, DeliveryFilter, DeliveryLease, IdSource as _, Lock, NumberedNotification, ReplayCandidate, ReplayRange, Store,
};
use billing_domain::refs::{DocumentRef, EndpointRef, NotificationRef, ServerRef};
use billing_domain::text::OneLine;
use billing_domain::webhook::{
    AttemptOutcome, Delivery, DeliveryAttempt, DeliveryState, DisabledReason, EndpointProfile, EventType, SealedWebhookSecret,
    WebhookEndpoint, WebhookUrl,
};

use super::{World, all, later, read, world, write};
use crate::FreshIds;

/// Returns more endpoints than any store of the suite has.
const ALL: u32 = 1_000_000;

fn server() -> ServerRef {
    ServerRef::from_uuid(FreshIds.new_id())
}

fn endpoint(w: &World) -> WebhookEndpoint {
    let profile = EndpointProfile {
        url: WebhookUrl::parse("https://example.com/hooks?a=b").expect("a URL"),
        event_types: vec![EventType::parse("document.*").expect("types"), EventType::all()],
        customer_refs: None,
        enabled: true,
        description: None,
    };
    WebhookEndpoint::new(EndpointRef::from_uuid(FreshIds.new_id()), w.org, profile, later(1))
}

/// Stores an endpoint.
fn made(store: &dyn Store, w: &World) -> WebhookEndpoint {
    let endpoint = endpoint(w);
    write(store, |tx| tx.insert_webhook_endpoint(&endpoint));
    endpoint
}

/// Stores notifications with positions from 1, each about its own document.
fn reported(store: &dyn Store, w: &World, kinds: &[NotificationType]) -> Vec<Notification> {
    let one = |(kind, position): (&NotificationType, u64)| Notification {
        notification_ref: NotificationRef::from_uuid(FreshIds.new_id()),
        customer_id: Some(w.customer.id),
        subject: Subject::Document(DocumentRef::from_uuid(FreshIds.new_id())),
        sequence: 1,
        kind: *kind,
        body: format!(r#"{{"n":{position}}}"#),
        created_at: later(1),
        position: Some(position),
    };
    let all: Vec<Notification> = kinds.iter().zip(1..).map(one).collect();
    let new: Vec<Notification> = all.iter().map(|one| Notification { position: None, ..one.clone() }).collect();
    let place = |one: &Notification| NumberedNotification {
        notification_ref: one.notification_ref,
        customer_id: one.customer_id,
        position: one.position.expect("a position"),
    };
    let numbered: Vec<NumberedNotification> = all.iter().map(place).collect();
    write(store, |tx| {
        tx.insert_notifications(w.org, &new)?;
        tx.lease_positions(w.org, server(), later(1), later(2))?.expect("the lease");
        tx.number_notifications(w.org, &numbered)
    });
    all
}

/// Returns a delivery of a notification that is due at once.
fn delivery(w: &World, endpoint: &WebhookEndpoint, one: &Notification) -> Delivery {
    let position = one.position.expect("a position");
    Delivery::new(endpoint.endpoint_ref, w.org, (w.customer.id, one.notification_ref), position, later(10))
}

fn attempt(outcome: AttemptOutcome) -> DeliveryAttempt {
    DeliveryAttempt { at: later(11), millis: 12, status: Some(500), outcome, excerpt: Some("broken é".to_owned()) }
}

fn listed(store: &dyn Store, w: &World, filter: &DeliveryFilter) -> Vec<Delivery> {
    let page = read(store, |tx| tx.webhook_deliveries(w.org, filter, all()));
    assert_eq!(page.total, page.items.len() as u64);
    page.items.into_iter().map(|one| one.delivery).collect()
}

pub fn endpoints_come_back_with_every_field_and_go_with_their_secrets(store: &dyn Store) {
    let (w, other) = (world(store), world(store));
    let first = made(store, &w);
    let full = WebhookEndpoint {
        profile: EndpointProfile {
            customer_refs: Some(vec![w.customer.customer_ref.clone()]),
            enabled: false,
            description: Some(OneLine::parse("Accounting").expect("a line")),
            ..first.profile.clone()
        },
        disabled_reason: Some(DisabledReason::Gone),
        paused_until: Some(later(2)),
        pauses: 3,
        failing_since: Some(later(4)),
        failures: 5,
        last_delivered_at: Some(later(6)),
        notification_count: 7,
        created_at: later(8),
        updated_at: later(9),
        ..endpoint(&w)
    };
    let bare = WebhookEndpoint { created_at: later(8), ..endpoint(&w) };
    let changed = WebhookEndpoint { endpoint_ref: bare.endpoint_ref, ..full.clone() };
    write(store, |tx| tx.insert_webhook_endpoint(&full));
    write(store, |tx| tx.insert_webhook_endpoint(&bare));
    write(store, |tx| tx.update_webhook_endpoint(&changed));
    assert_eq!(read(store, |tx| tx.webhook_endpoints(w.org)), [first.clone(), full.clone(), changed]);
    assert!(read(store, |tx| tx.webhook_endpoints(other.org)).is_empty());
    for lock in [None, Some(Lock::Exclusive)] {
        assert_eq!(write(store, |tx| tx.webhook_endpoint(w.org, full.endpoint_ref, lock)), Some(full.clone()));
        assert_eq!(write(store, |tx| tx.webhook_endpoint(other.org, full.endpoint_ref, lock)), None);
    }
    assert_eq!(write(store, |tx| tx.try_lock_webhook_endpoint(w.org, full.endpoint_ref)), Some(full.clone()));

    let secret = |kid| SealedWebhookSecret { kid, sealed: vec![0, 255, 7], created_at: later(1), expires_at: None };
    let expiring = SealedWebhookSecret { sealed: vec![8], expires_at: Some(later(5)), ..secret(2) };
    write(store, |tx| {
        for secret in [secret(10), secret(2), secret(1), expiring.clone()] {
            tx.put_webhook_secret(full.endpoint_ref, &secret)?;
        }
        tx.delete_webhook_secret(full.endpoint_ref, 1)
    });
    let secrets = || read(store, |tx| tx.webhook_secrets(&[first.endpoint_ref, full.endpoint_ref]));
    assert_eq!(secrets(), [(full.endpoint_ref, expiring), (full.endpoint_ref, secret(10))]);
    write(store, |tx| tx.delete_webhook_endpoint(other.org, full.endpoint_ref));
    assert_eq!(secrets().len(), 2, "it is another organization's");
    write(store, |tx| tx.delete_webhook_endpoint(w.org, full.endpoint_ref));
    assert!(secrets().is_empty());
    assert_eq!(read(store, |tx| tx.webhook_endpoint(w.org, full.endpoint_ref, None)), None);
}

pub fn a_claimed_delivery_is_one_servers_until_its_lease_ends(store: &dyn Store) {
    let w = world(store);
    let at = made(store, &w);
    let reported = reported(store, &w, &[NotificationType::DocumentOpened, NotificationType::DocumentIssued]);
    let new: Vec<Delivery> = reported.iter().map(|one| delivery(&w, &at, one)).collect();
    write(store, |tx| tx.schedule_webhook_deliveries(&new));
    let is_due = |now| {
        let due = read(store, |tx| tx.due_webhook_endpoints(now, ALL));
        due.contains(&(w.org, at.endpoint_ref))
    };
    assert_eq!((is_due(later(9)), is_due(later(10))), (false, true));
    let (first, second) = (server(), server());
    let claim = |by, until, now, limit| {
        let lease = DeliveryLease { by, until };
        write(store, |tx| tx.claim_webhook_deliveries(at.endpoint_ref, lease, now, limit))
    };
    assert_eq!(claim(first, later(50), later(10), 1), new[..1]);
    assert_eq!((is_due(later(49)), is_due(later(50))), (false, true));
    let is_leased = |now| read(store, |tx| tx.has_leased_deliveries(at.endpoint_ref, now));
    assert_eq!((is_leased(later(49)), is_leased(later(50))), (true, false));
    let keys = [(w.customer.id, reported[1].notification_ref), (w.customer.id, NotificationRef::from_uuid(FreshIds.new_id()))];
    let bodies = read(store, |tx| tx.notification_bodies(&keys));
    assert_eq!(bodies, [(reported[1].notification_ref, reported[1].body.clone())]);

    // The second server claims both after the lease has ended. The result of the first one comes too late.
    assert_eq!(claim(second, later(90), later(50), 20), new);
    let mut failed = new[0].clone();
    failed.record(attempt(AttemptOutcome::Rejected), later(12), 0, None);
    let record = |delivery: &Delivery, by, attempt| write(store, |tx| tx.record_webhook_delivery(delivery, by, attempt));
    assert!(!record(&failed, first, 0));
    assert!(!record(&failed, second, 1), "the number of attempts differs");
    assert!(record(&failed, second, 0));
    assert!(!record(&failed, second, 1), "the lease has ended");
    let mut done = new[1].clone();
    done.record(attempt(AttemptOutcome::Delivered), later(12), 0, None);
    assert!(record(&done, second, 0));
    assert_eq!(listed(store, &w, &DeliveryFilter::default()), [done, failed.clone()]);
    assert!(!is_leased(later(51)));
    let counts = |pending, failed| vec![(at.endpoint_ref, DeliveryCounts { pending, failed })];
    let counted = || read(store, |tx| tx.webhook_delivery_counts(&[at.endpoint_ref]));
    assert_eq!(counted(), counts(1, 0));
    let backlog = read(store, |tx| tx.webhook_backlog());
    assert!(backlog.pending >= 1 && backlog.oldest.is_some(), "{backlog:?}");

    let paused = WebhookEndpoint { paused_until: Some(later(200)), ..at.clone() };
    write(store, |tx| tx.update_webhook_endpoint(&paused));
    assert_eq!((is_due(later(199)), is_due(later(200))), (false, true));
    assert_eq!(write(store, |tx| tx.cancel_webhook_deliveries(at.endpoint_ref, later(201))), 1);
    assert!(!is_due(later(1000)) && counted().is_empty());
    let over = Delivery { state: DeliveryState::Cancelled, due_at: None, updated_at: later(201), ..failed };
    assert_eq!(listed(store, &w, &DeliveryFilter { state: Some(DeliveryState::Cancelled), ..DeliveryFilter::default() }), [over]);
}

pub fn a_replay_finds_notifications_with_their_deliveries(store: &dyn Store) {
    let w = world(store);
    let (at, other) = (made(store, &w), made(store, &w));
    let kinds = [NotificationType::DocumentOpened, NotificationType::DocumentIssued, NotificationType::DocumentVoided];
    let reported = reported(store, &w, &kinds);
    let sent = Delivery { state: DeliveryState::Failed, due_at: None, attempt: 10, ..delivery(&w, &at, &reported[1]) };
    let elsewhere = delivery(&w, &other, &reported[2]);
    write(store, |tx| tx.schedule_webhook_deliveries(&[sent.clone(), elsewhere.clone()]));
    let found = |range: &ReplayRange, limit| -> Vec<(u64, Option<DeliveryState>)> {
        let found = read(store, |tx| tx.replay_candidates(w.org, at.endpoint_ref, range, limit));
        let is_told =
            |one: &ReplayCandidate| reported.iter().any(|of| of.notification_ref == one.notification_ref && of.kind == one.kind);
        assert!(found.iter().all(|one| is_told(one) && one.customer == w.customer.id), "{found:?}");
        found.into_iter().map(|one| (one.position, one.state)).collect()
    };
    let failed = Some(DeliveryState::Failed);
    assert_eq!(found(&ReplayRange::Positions(0, u64::MAX), 10), [(1, None), (2, failed), (3, None)]);
    assert_eq!(found(&ReplayRange::Positions(1, 2), 10), [(2, failed)]);
    assert_eq!(found(&ReplayRange::Positions(0, u64::MAX), 1), [(1, None)]);
    let named = vec![reported[2].notification_ref, NotificationRef::from_uuid(FreshIds.new_id())];
    assert_eq!(found(&ReplayRange::Notifications(named), 10), [(3, None)]);

    // A delivery that is scheduled again keeps its attempts and its creation.
    let again =
        Delivery { due_at: Some(later(30)), created_at: later(30), updated_at: later(30), ..delivery(&w, &at, &reported[1]) };
    write(store, |tx| tx.schedule_webhook_deliveries(std::slice::from_ref(&again)));
    let pending = Delivery { state: DeliveryState::Pending, attempt: 0, due_at: Some(later(30)), updated_at: later(30), ..sent };
    assert_eq!(listed(store, &w, &DeliveryFilter::default()), [elsewhere, pending]);
}

pub fn each_field_of_a_filter_narrows_the_deliveries(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let (at, other) = (made(store, &w), made(store, &w));
    let reported = reported(store, &w, &[NotificationType::DocumentOpened, NotificationType::DocumentIssued]);
    let first = delivery(&w, &at, &reported[0]);
    let second =
        Delivery { state: DeliveryState::Delivered, due_at: None, created_at: later(20), ..delivery(&w, &other, &reported[1]) };
    write(store, |tx| tx.schedule_webhook_deliveries(&[first.clone(), second.clone()]));
    let found = |filter: &DeliveryFilter| -> Vec<u64> { listed(store, &w, filter).iter().map(|one| one.position).collect() };
    let any = DeliveryFilter::default;
    assert_eq!(found(&any()), [2, 1]);
    assert_eq!(found(&DeliveryFilter { endpoint_ref: Some(at.endpoint_ref), ..any() }), [1]);
    assert_eq!(found(&DeliveryFilter { state: Some(DeliveryState::Delivered), ..any() }), [2]);
    assert_eq!(found(&DeliveryFilter { kind: Some(NotificationType::DocumentIssued), ..any() }), [2]);
    assert_eq!(found(&DeliveryFilter { subject: Some(reported[0].subject), ..any() }), [1]);
    assert_eq!(found(&DeliveryFilter { from: Some(later(20)), ..any() }), [2]);
    assert_eq!(found(&DeliveryFilter { to: Some(later(20)), ..any() }), [1]);
    assert!(read(store, |tx| tx.webhook_deliveries(stranger.org, &any(), all())).items.is_empty());
    let page = read(store, |tx| tx.webhook_deliveries(w.org, &any(), all()));
    let facts: Vec<_> = page.items.iter().map(|one| (one.kind, one.subject, one.sequence)).collect();
    assert_eq!(facts, [(reported[1].kind, reported[1].subject, 1), (reported[0].kind, reported[0].subject, 1)]);
    write(store, |tx| tx.delete_webhook_endpoint(w.org, at.endpoint_ref));
    assert_eq!(found(&any()), [2]);
}
