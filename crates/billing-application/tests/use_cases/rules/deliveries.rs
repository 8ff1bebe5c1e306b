//! Deliveries of webhooks: endpoints that hang, fail or have a backlog delay no other organization.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use billing_application::notifications::number_notifications;
use billing_application::webhooks::{
    LaneShares, TestPreparation, WebhookDeliverer, WebhookSenders, claim_deliveries, prepare_test,
};
use billing_application::{Request, UseCase};
use billing_domain::notification::{Notification, NotificationType, Subject};
use billing_domain::ports::{
    Access, DeliveryFilter, IdSource as _, MockWebhookSender, NumberedNotification, StoreError, WebhookRequest, WebhookResponse,
    WebhookSender, transact,
};
use billing_domain::refs::{CustomerId, EndpointRef, NotificationRef, OrganizationId, ServerRef};
use billing_domain::webhook::{
    AttemptOutcome, Delivery, DeliveryState, EndpointProfile, EventType, MAX_ENDPOINTS, WebhookEndpoint, WebhookUrl,
};
use billing_testkit::fixtures;

use crate::support::Bench;

const NOON: &str = "2026-01-20T12:00:00Z";
/// Notifications of each endpoint with a backlog.
const BACKLOG: usize = 300;
/// Far longer than anything takes.
const GENEROUS: Duration = Duration::from_secs(60);

/// Receivers of webhooks. Those with `hang` in the URL do not answer until the test ends.
#[derive(Default)]
struct Receivers {
    state: Mutex<Received>,
    changed: Condvar,
}

#[derive(Default)]
struct Received {
    is_over: bool,
    /// The requests in progress by URL.
    hanging: BTreeMap<String, usize>,
    /// The answered requests.
    answered: Vec<NotificationRef>,
}

impl Receivers {
    fn locked(&self) -> MutexGuard<'_, Received> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the receivers are in a state.
    #[track_caller]
    fn wait_until(&self, what: &str, mut is_reached: impl FnMut(&Received) -> bool) {
        let until = Instant::now() + GENEROUS;
        let mut state = self.locked();
        while !is_reached(&state) {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what}: {:?}, {} answered", state.hanging, state.answered.len());
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn end(&self) {
        self.locked().is_over = true;
        self.changed.notify_all();
    }
}

impl WebhookSender for Receivers {
    fn send(&self, request: &WebhookRequest<'_>) -> WebhookResponse {
        let url = request.url.as_str().to_owned();
        let mut state = self.locked();
        let outcome = if url.contains("hang") {
            *state.hanging.entry(url.clone()).or_default() += 1;
            self.changed.notify_all();
            while !state.is_over {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            *state.hanging.entry(url).or_default() -= 1;
            AttemptOutcome::TimedOut
        } else {
            AttemptOutcome::Delivered
        };
        state.answered.push(request.id);
        drop(state);
        self.changed.notify_all();
        response(outcome)
    }
}

fn response(outcome: AttemptOutcome) -> WebhookResponse {
    WebhookResponse { status: None, outcome, retry_after_seconds: None, millis: 1, excerpt: None }
}

/// Ends the hanging requests also if the test fails, because their threads would never end.
struct End(Arc<Receivers>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn new_organization(bench: &Bench) -> OrganizationId {
    let organization = fixtures::organization(&*bench.ids);
    write(bench, |tx| tx.insert_organization(&organization).map(drop));
    organization.id
}

fn write<T>(bench: &Bench, mut work: impl FnMut(&mut dyn billing_domain::ports::Tx) -> Result<T, StoreError>) -> T {
    transact(&*bench.store, Access::Write, |tx| work(tx)).expect("a working store")
}

/// Stores an endpoint that accepted or refused the last attempt.
fn endpoint(bench: &Bench, organization: OrganizationId, url: &str, has_accepted: bool) -> WebhookEndpoint {
    let profile = EndpointProfile {
        url: WebhookUrl::parse(url).expect("a URL"),
        event_types: vec![EventType::all()],
        customer_refs: None,
        enabled: true,
        description: None,
    };
    let now = bench.now();
    let mut endpoint = WebhookEndpoint::new(EndpointRef::from_uuid(bench.ids.new_id()), organization, profile, now);
    endpoint.record(if has_accepted { AttemptOutcome::Delivered } else { AttemptOutcome::Rejected }, None, now);
    write(bench, |tx| tx.insert_webhook_endpoint(&endpoint));
    endpoint
}

/// Returns a new notification of no customer.
fn notification(bench: &Bench) -> Notification {
    Notification {
        notification_ref: NotificationRef::from_uuid(bench.ids.new_id()),
        customer_id: None,
        subject: Subject::Endpoint(EndpointRef::from_uuid(bench.ids.new_id())),
        sequence: 1,
        kind: NotificationType::EndpointDisabled,
        body: "{}".to_owned(),
        created_at: bench.now(),
        position: None,
    }
}

/// Stores notifications of an organization with positions.
fn notifications(bench: &Bench, organization: OrganizationId, count: usize) -> Vec<NumberedNotification> {
    let new: Vec<Notification> = (0..count).map(|_| notification(bench)).collect();
    let server = ServerRef::from_uuid(organization.as_uuid());
    write(bench, |tx| {
        tx.insert_notifications(organization, &new)?;
        let last = tx.lease_positions(organization, server, bench.now(), bench.now())?.expect("the lease");
        let number = |(one, position): (&Notification, u64)| NumberedNotification {
            notification_ref: one.notification_ref,
            customer_id: None,
            position,
        };
        let numbered: Vec<NumberedNotification> = new.iter().zip(last + 1..).map(number).collect();
        tx.number_notifications(organization, &numbered)?;
        Ok(numbered)
    })
}

/// Schedules notifications for an endpoint, as new ones and as a replay.
fn schedule(bench: &Bench, endpoint: &WebhookEndpoint, notifications: &[NumberedNotification]) {
    // Without a customer, the organization stands in its place.
    let customer = CustomerId::from_uuid(endpoint.organization.as_uuid());
    let delivery = |one: &NumberedNotification| {
        let notification = (customer, one.notification_ref);
        Delivery::new(endpoint.endpoint_ref, endpoint.organization, notification, one.position, bench.now())
    };
    let deliveries: Vec<Delivery> = notifications.iter().map(delivery).collect();
    write(bench, |tx| tx.schedule_webhook_deliveries(&deliveries));
}

fn start(bench: &Bench, receivers: &Arc<Receivers>) -> WebhookDeliverer {
    let senders = WebhookSenders::new(Arc::clone(receivers) as _, Arc::clone(&bench.clock) as _);
    let server = ServerRef::from_uuid(bench.ids.new_id());
    WebhookDeliverer::start(bench.services.clone(), senders, server, Arc::new(|_| ()))
}

#[test]
fn endpoints_that_hang_with_a_backlog_delay_no_other_organization() {
    let bench = Bench::at(NOON);
    let (receivers, attacker, neighbor) = (Arc::new(Receivers::default()), new_organization(&bench), new_organization(&bench));
    let _end = End(Arc::clone(&receivers));
    let backlog = notifications(&bench, attacker, BACKLOG);
    // A half of the endpoints accepted everything until now, the others did not.
    for number in 0..MAX_ENDPOINTS {
        let hanging = endpoint(&bench, attacker, &format!("https://hang.example/{number}"), number % 2 == 0);
        schedule(&bench, &hanging, &backlog);
    }
    let own = endpoint(&bench, neighbor, "https://neighbor.example/", true);
    let deliverer = start(&bench, &receivers);
    receivers.wait_until("all endpoints hang", |state| state.hanging.len() == MAX_ENDPOINTS);
    for delivered in 1..=20 {
        schedule(&bench, &own, &notifications(&bench, neighbor, 1));
        deliverer.waker().wake();
        // No request of the attacker has ended. They would all have to end first if the neighbor waited for them.
        receivers.wait_until("the neighbor's delivery", |state| state.answered.len() >= delivered);
    }
    let hanging: Vec<usize> = receivers.locked().hanging.values().copied().collect();
    let expected: Vec<usize> = (0..MAX_ENDPOINTS).map(|number| if number % 2 == 0 { 4 } else { 1 }).collect();
    let mut sorted = (hanging, expected);
    sorted.0.sort_unstable();
    sorted.1.sort_unstable();
    assert_eq!(sorted.0, sorted.1, "four requests to an endpoint that accepted the last one, and one to any other");
    receivers.end();
    deliverer.stop();
}

#[test]
fn an_endpoint_that_does_not_answer_is_left_alone_after_its_first_requests() {
    let bench = Bench::at(NOON);
    let (receivers, organization) = (Arc::new(Receivers::default()), new_organization(&bench));
    let _end = End(Arc::clone(&receivers));
    let hanging = endpoint(&bench, organization, "https://hang.example/", true);
    schedule(&bench, &hanging, &notifications(&bench, organization, BACKLOG));
    let deliverer = start(&bench, &receivers);
    receivers.wait_until("four requests", |state| state.hanging.values().sum::<usize>() == 4);
    receivers.end();
    receivers.wait_until("all are over", |state| state.hanging.values().sum::<usize>() == 0);
    deliverer.stop();
    // Nothing else was sent, although 16 more deliveries were claimed, and nothing is left behind with a lease.
    assert_eq!(receivers.locked().answered.len(), 4);
    let stored = bench.read(|tx| tx.webhook_endpoint(organization, hanging.endpoint_ref, None)).expect("the endpoint");
    assert_eq!((stored.pauses, stored.failures, stored.paused_until), (1, 4, Some(bench.now().plus_seconds(10))));
    assert!(!bench.read(|tx| tx.has_leased_deliveries(hanging.endpoint_ref, bench.now())));
}

#[test]
fn a_claim_takes_no_more_than_the_free_lanes_can_send() {
    let bench = Bench::at(NOON);
    let organizations = [new_organization(&bench), new_organization(&bench)];
    for organization in organizations {
        let backlog = notifications(&bench, organization, 50);
        for number in 0..4 {
            let url = format!("https://{number}.example/");
            schedule(&bench, &endpoint(&bench, organization, &url, true), &backlog);
        }
    }
    let mut lanes = LaneShares::new(8);
    let server = ServerRef::from_uuid(bench.ids.new_id());
    let mut claim = || claim_deliveries(&bench.services, server, &mut lanes).expect("a working store");
    let claimed = claim();
    // The first organization takes half of the lanes, and the second one half of the others.
    let shares: Vec<_> = claimed.iter().map(|one| (one.organization, one.lanes, one.deliveries.len())).collect();
    assert_eq!(shares.iter().map(|(_, lanes, deliveries)| (*lanes, *deliveries)).collect::<Vec<_>>(), [(4, 20), (2, 10)]);
    assert_ne!(shares[0].0, shares[1].0);
    assert!(claim().is_empty(), "the lanes that are left are for other organizations");
}

#[test]
fn a_notification_of_another_organization_is_numbered_between_those_of_a_backlog() {
    let bench = Bench::at(NOON);
    let (attacker, neighbor) = (new_organization(&bench), new_organization(&bench));
    let store = |organization, count: usize| {
        let new: Vec<Notification> = (0..count).map(|_| notification(&bench)).collect();
        write(&bench, |tx| tx.insert_notifications(organization, &new));
    };
    // Four transactions number these.
    store(attacker, 2000);
    let unnumbered = |organization| bench.read(|tx| tx.unnumbered_notifications(organization, 10_000)).len();
    let transactions = Cell::new(0);
    let is_stopped = || {
        transactions.set(transactions.get() + 1);
        if transactions.get() == 2 {
            store(neighbor, 1);
        }
        transactions.get() > 4
    };
    let server = ServerRef::from_uuid(bench.ids.new_id());
    let numbered = number_notifications(&bench.services, server, &is_stopped).expect("a working store");
    assert_eq!((unnumbered(neighbor), numbered), (0, 1501), "one transaction is the neighbor's");
    assert_eq!(number_notifications(&bench.services, server, &|| false).expect("a working store"), 500);
    assert_eq!(unnumbered(attacker), 0);
}

#[test]
fn all_of_a_backlog_arrives_once() {
    let bench = Bench::at(NOON);
    let (receivers, organization) = (Arc::new(Receivers::default()), new_organization(&bench));
    let backlog = notifications(&bench, organization, BACKLOG);
    let own = endpoint(&bench, organization, "https://own.example/", false);
    schedule(&bench, &own, &backlog);
    let deliverer = start(&bench, &receivers);
    receivers.wait_until("the whole backlog", |state| state.answered.len() == BACKLOG);
    deliverer.stop();
    let mut answered = receivers.locked().answered.clone();
    answered.sort_unstable();
    assert_eq!(answered, backlog.iter().map(|one| one.notification_ref).collect::<Vec<_>>());
    let delivered = DeliveryFilter { state: Some(DeliveryState::Delivered), ..DeliveryFilter::default() };
    let page = billing_domain::page::PageRequest::new(1, 0).expect("a page");
    assert_eq!(bench.read(|tx| tx.webhook_deliveries(organization, &delivered, page)).total, BACKLOG as u64);
}

#[test]
fn a_test_whose_sender_panics_has_no_attempt_and_a_refused_one_does_not_pause_the_endpoint() {
    let bench = Bench::at(NOON);
    let own = endpoint(&bench, bench.principal.organization(), "https://own.example/", true);
    let mut sender = MockWebhookSender::new();
    let is_to_own = |request: &WebhookRequest<'_>| request.url.as_str() == "https://own.example/";
    sender.expect_send().withf(is_to_own).times(1).returning(|_| panic!("as the test wants it"));
    sender.expect_send().withf(is_to_own).times(1).returning(|_| response(AttemptOutcome::Rejected));
    let senders = WebhookSenders::new(Arc::new(sender), Arc::clone(&bench.clock) as _);
    for outcome in [None, Some(AttemptOutcome::Rejected)] {
        let request = Request { principal: &bench.principal, use_case: UseCase::TestWebhookEndpoint, key: None };
        let prepared = prepare_test(&bench.services, request, own.endpoint_ref).expect("a test");
        let TestPreparation::Prepared(test) = prepared else { panic!("{prepared:?}") };
        let (done, attempt) = channel();
        senders.send_test(test, move |attempt| drop(done.send(attempt))).expect("a thread");
        assert_eq!(attempt.recv().ok().map(|attempt| attempt.outcome), outcome);
    }
    let stored = bench.read(|tx| tx.webhook_endpoint(own.organization, own.endpoint_ref, None)).expect("the endpoint");
    assert_eq!((stored.failures, stored.pauses, stored.paused_until), (own.failures, own.pauses, own.paused_until));
}
