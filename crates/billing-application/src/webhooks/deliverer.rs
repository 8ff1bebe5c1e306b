//! Sends due deliveries, on threads of their own.
//!
//! One thread claims deliveries and records what became of them. Other threads, the *lanes*, send. A slow endpoint occupies only
//! its own lanes, at most four, and the results of other endpoints are recorded meanwhile. If the server is killed, its leases
//! end, and the deliveries are sent again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use billing_domain::refs::{EndpointRef, OrganizationId, ServerRef};
use billing_domain::webhook::{AttemptOutcome, Delivery};

use super::attempts::{ClaimedDelivery, ClaimedEndpoint, SentDelivery, claim_deliveries, record_deliveries};
use super::lane_shares::LaneShares;
use super::senders::{OutgoingRequest, SentRequest, WebhookSenders, WebhookTarget};
use crate::Services;

/// The number of lanes. An organization with four lanes for each of its 16 endpoints has half of them.
const LANES: usize = 128;
/// The time after a claim within which requests begin. Deliveries that wait longer are given back.
const BEGIN_WITHIN: Duration = Duration::from_secs(2);
/// The longest time for which results wait for others of their endpoint.
const RECORD_AFTER: Duration = Duration::from_secs(1);
/// The time for which the results of an endpoint wait for those of others. Until they are recorded, the endpoint gets nothing.
const RECORD_ENDPOINT_AFTER: Duration = Duration::from_millis(50);
/// The time between two looks for due deliveries, if nothing wakes the thread.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same while requests are in progress. Their results do not cause a look each.
const LOOK_EVERY_WHILE_SENDING: Duration = Duration::from_millis(250);
/// The shortest time between two looks at the clock.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// The time that a stopping server waits for requests in progress.
const STOP_WITHIN: Duration = Duration::from_secs(3);

/// A function that gets the outcome of each attempt, for the metrics.
pub type DeliveryObserver = Arc<dyn Fn(AttemptOutcome) + Send + Sync>;

/// The handle of the threads. Dropping it stops them without waiting.
pub struct WebhookDeliverer {
    events: Sender<Event>,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Makes the threads look for due deliveries at once.
#[derive(Clone)]
pub struct WebhookWaker(Sender<Event>);

impl WebhookWaker {
    /// Makes the threads look for due deliveries at once.
    pub fn wake(&self) {
        // Without a receiver, the threads have stopped.
        let _ = self.0.send(Event::Wake);
    }
}

/// What the claiming thread waits for.
enum Event {
    /// A delivery was sent or given back.
    Sent(Box<SentDelivery>),
    /// A lane of an organization has ended.
    LaneEnded(OrganizationId),
    /// Deliveries may be due.
    Wake,
}

impl std::fmt::Debug for WebhookDeliverer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookDeliverer").finish_non_exhaustive()
    }
}

impl WebhookDeliverer {
    /// Starts the threads. `server` identifies this process.
    pub fn start(services: Services, senders: WebhookSenders, server: ServerRef, observer: DeliveryObserver) -> Self {
        let (events, received) = channel();
        let is_stopping = Arc::new(AtomicBool::new(false));
        let work = DeliveryLoop {
            services,
            senders,
            server,
            observer,
            events: events.clone(),
            is_stopping: Arc::clone(&is_stopping),
            lanes: LaneShares::new(LANES),
            awaited: BTreeMap::new(),
            sent: Vec::new(),
            records_at: None,
            looks_at: Instant::now(),
        };
        let thread = match Builder::new().name("webhooks".to_owned()).spawn(move || work.run(&received)) {
            Ok(thread) => Some(thread),
            Err(error) => {
                tracing::error!(%error, "cannot start the thread that delivers webhooks");
                None
            }
        };
        Self { events, is_stopping, thread }
    }

    /// Returns a handle that makes the threads look for due deliveries at once.
    pub fn waker(&self) -> WebhookWaker {
        WebhookWaker(self.events.clone())
    }

    /// Stops the threads, and waits a few seconds for requests in progress. Their deliveries are due again when the leases end.
    pub fn stop(mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.waker().wake();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that delivers webhooks panicked");
        }
    }
}

impl Drop for WebhookDeliverer {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.waker().wake();
    }
}

/// The claiming thread.
struct DeliveryLoop {
    services: Services,
    senders: WebhookSenders,
    server: ServerRef,
    observer: DeliveryObserver,
    events: Sender<Event>,
    is_stopping: Arc<AtomicBool>,
    lanes: LaneShares,
    /// The number of claimed deliveries of each endpoint that are neither sent nor given back.
    awaited: BTreeMap<EndpointRef, usize>,
    /// The deliveries that are sent or given back, and not recorded.
    sent: Vec<SentDelivery>,
    /// When these are recorded.
    records_at: Option<Instant>,
    /// When the next look for due deliveries is.
    looks_at: Instant,
}

impl DeliveryLoop {
    fn run(mut self, received: &Receiver<Event>) {
        let mut stops_at: Option<Instant> = None;
        loop {
            let is_stopping = self.is_stopping.load(Ordering::Relaxed);
            if is_stopping {
                stops_at.get_or_insert_with(|| Instant::now() + STOP_WITHIN);
            }
            let is_last = stops_at.is_some_and(|stops_at| stops_at <= Instant::now());
            self.record_sent(is_last);
            if is_last || is_stopping && self.awaited.is_empty() && self.sent.is_empty() {
                return;
            }
            if !is_stopping {
                self.claim();
            }
            // Results that arrive together are recorded together.
            let mut next = received.recv_timeout(self.pause());
            loop {
                match next {
                    Ok(Event::Sent(one)) => self.add_result(*one),
                    Ok(Event::LaneEnded(organization)) => self.lanes.release(organization),
                    Ok(Event::Wake) => self.looks_at = Instant::now(),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
                next = received.recv_timeout(Duration::ZERO);
            }
        }
    }

    /// Adds a delivery that was sent or given back. If all of its endpoint are back, they are recorded soon.
    fn add_result(&mut self, one: SentDelivery) {
        let endpoint_ref = one.delivery.endpoint_ref;
        self.sent.push(one);
        let awaited = self.awaited.get(&endpoint_ref).map_or(0, |awaited| awaited.saturating_sub(1));
        let wait = if awaited == 0 {
            self.awaited.remove(&endpoint_ref);
            RECORD_ENDPOINT_AFTER
        } else {
            self.awaited.insert(endpoint_ref, awaited);
            RECORD_AFTER
        };
        let at = Instant::now() + wait;
        self.records_at = Some(self.records_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Returns the time until the next look at the clock.
    fn pause(&self) -> Duration {
        let next = self.records_at.map_or(self.looks_at, |records_at| records_at.min(self.looks_at));
        next.saturating_duration_since(Instant::now()).clamp(SHORTEST_PAUSE, LOOK_EVERY)
    }

    /// Records the results when their time has come, or at once if no other is awaited.
    fn record_sent(&mut self, is_last: bool) {
        let is_time = self.records_at.is_some_and(|at| at <= Instant::now());
        if self.sent.is_empty() || !(is_last || is_time || self.awaited.is_empty()) {
            return;
        }
        match record_deliveries(&self.services, self.server, &self.sent) {
            Ok(later) => self.sent = later,
            // A later attempt records them, unless their leases end before and another server sends the deliveries again.
            Err(error) => {
                tracing::warn!(%error, deliveries = self.sent.len(), "cannot record deliveries of webhooks");
            }
        }
        self.records_at = (!self.sent.is_empty()).then(|| Instant::now() + RECORD_AFTER);
        self.looks_at = Instant::now();
    }

    /// Claims due deliveries and begins to send them.
    fn claim(&mut self) {
        if Instant::now() < self.looks_at {
            return;
        }
        match claim_deliveries(&self.services, self.server, &mut self.lanes) {
            Ok(endpoints) => endpoints.into_iter().for_each(|endpoint| self.begin(endpoint)),
            Err(error) => tracing::warn!(%error, "cannot claim deliveries of webhooks"),
        }
        self.looks_at = Instant::now() + if self.awaited.is_empty() { LOOK_EVERY } else { LOOK_EVERY_WHILE_SENDING };
    }

    /// Begins to send the deliveries of an endpoint.
    fn begin(&mut self, endpoint: ClaimedEndpoint) {
        let ClaimedEndpoint { organization, lanes, url, secrets, deliveries } = endpoint;
        for claimed in &deliveries {
            *self.awaited.entry(claimed.delivery.endpoint_ref).or_default() += 1;
        }
        let queue = Arc::new(EndpointQueue {
            observer: Arc::clone(&self.observer),
            events: self.events.clone(),
            is_stopping: Arc::clone(&self.is_stopping),
            is_paused: AtomicBool::new(false),
            until: Instant::now() + BEGIN_WITHIN,
            target: Arc::new(WebhookTarget { url, secrets }),
            waiting: Mutex::new(deliveries.into()),
        });
        let mut begun = 0;
        for _ in 0..lanes {
            let mut lane = Lane { queue: Arc::clone(&queue), organization, current: None };
            match self.senders.start(move |sent| lane.next(sent)) {
                Ok(()) => begun += 1,
                Err(error) => tracing::error!(%error, "cannot start a thread that delivers webhooks"),
            }
        }
        if begun == 0 {
            queue.give_back();
        }
    }
}

/// The claimed deliveries of an endpoint, which a few lanes send.
struct EndpointQueue {
    observer: DeliveryObserver,
    events: Sender<Event>,
    is_stopping: Arc<AtomicBool>,
    /// Whether the endpoint asked to wait, did not answer in time, or is gone.
    is_paused: AtomicBool,
    /// No request begins after this instant.
    until: Instant,
    target: Arc<WebhookTarget>,
    waiting: Mutex<VecDeque<ClaimedDelivery>>,
}

impl EndpointQueue {
    fn next(&self) -> Option<ClaimedDelivery> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn may_begin(&self) -> bool {
        !self.is_stopping.load(Ordering::Relaxed) && !self.is_paused.load(Ordering::Relaxed) && Instant::now() < self.until
    }

    fn record(&self, delivery: Delivery, SentRequest { at, response }: SentRequest) {
        if let Some(response) = &response {
            (self.observer)(response.outcome);
            if response.outcome.pauses_endpoint() || response.outcome == AttemptOutcome::Gone {
                self.is_paused.store(true, Ordering::Relaxed);
            }
        }
        let response = response.map(|response| (at, response));
        let _ = self.events.send(Event::Sent(Box::new(SentDelivery { delivery, response })));
    }

    /// Gives the waiting deliveries back without sending them.
    fn give_back(&self) {
        while let Some(ClaimedDelivery { delivery, .. }) = self.next() {
            let _ = self.events.send(Event::Sent(Box::new(SentDelivery { delivery, response: None })));
        }
    }
}

/// A lane of an endpoint. The drop at the end of its thread, or if no thread was created, returns it to the organization.
struct Lane {
    queue: Arc<EndpointQueue>,
    organization: OrganizationId,
    /// The delivery in progress.
    current: Option<Delivery>,
}

impl Lane {
    /// Takes the result of the delivery in progress, and returns the next request.
    fn next(&mut self, sent: Option<SentRequest>) -> Option<OutgoingRequest> {
        if let Some((delivery, sent)) = self.current.take().zip(sent) {
            self.queue.record(delivery, sent);
        }
        if !self.queue.may_begin() {
            self.queue.give_back();
            return None;
        }
        let ClaimedDelivery { delivery, body } = self.queue.next()?;
        let (target, notification_ref) = (Arc::clone(&self.queue.target), delivery.notification_ref);
        self.current = Some(delivery);
        Some(OutgoingRequest { target, notification_ref, body })
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let _ = self.queue.events.send(Event::LaneEnded(self.organization));
    }
}
