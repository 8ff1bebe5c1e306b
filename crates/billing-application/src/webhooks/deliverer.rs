//! Sends due deliveries, on threads of their own.
//!
//! One thread claims deliveries and records what became of them; other threads send. A slow endpoint occupies only its own
//! threads, at most four, and the results of the others are recorded meanwhile. If the server is killed, its leases end, and the
//! deliveries are sent again.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use billing_domain::ports::WebhookRequest;
use billing_domain::refs::ServerRef;
use billing_domain::webhook::{AttemptOutcome, WebhookSecret, WebhookUrl};

use super::attempts::{ClaimedDelivery, ClaimedEndpoint, SentDelivery, claim_deliveries, record_deliveries};
use crate::Services;

/// The maximum number of deliveries that are claimed and not recorded.
const MAX_CLAIMED: usize = 100;
/// The number of requests that are sent to an endpoint at the same time.
const REQUESTS_OF_ENDPOINT: usize = 4;
/// The time after a claim within which requests begin. Deliveries that wait longer are given back.
const BEGIN_WITHIN: Duration = Duration::from_secs(10);
/// The longest time for which results wait for others of their claim.
const RECORD_AFTER: Duration = Duration::from_secs(1);
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
    pub fn start(services: Services, server: ServerRef, observer: DeliveryObserver) -> Self {
        let (events, received) = channel();
        let is_stopping = Arc::new(AtomicBool::new(false));
        let work = DeliveryLoop {
            services,
            server,
            observer,
            events: events.clone(),
            is_stopping: Arc::clone(&is_stopping),
            claimed: 0,
            sent: Vec::new(),
            oldest_sent: None,
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
    server: ServerRef,
    observer: DeliveryObserver,
    events: Sender<Event>,
    is_stopping: Arc<AtomicBool>,
    /// The number of deliveries that are claimed and not recorded.
    claimed: usize,
    /// Those of them that are sent or given back.
    sent: Vec<SentDelivery>,
    /// When the first of these arrived.
    oldest_sent: Option<Instant>,
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
            if is_last || is_stopping && self.claimed == 0 {
                return;
            }
            if !is_stopping {
                self.claim();
            }
            // Results that arrive together are recorded together.
            let mut next = received.recv_timeout(self.pause());
            loop {
                match next {
                    Ok(Event::Sent(one)) => {
                        self.oldest_sent.get_or_insert_with(Instant::now);
                        self.sent.push(*one);
                    }
                    Ok(Event::Wake) => self.looks_at = Instant::now(),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
                next = received.recv_timeout(Duration::ZERO);
            }
        }
    }

    /// Returns the time until the next look at the clock.
    fn pause(&self) -> Duration {
        let until_record = self.oldest_sent.map_or(LOOK_EVERY, |oldest| RECORD_AFTER.saturating_sub(oldest.elapsed()));
        until_record.min(self.looks_at.saturating_duration_since(Instant::now())).max(SHORTEST_PAUSE)
    }

    /// Records the results if all deliveries of the claims are back, or if the first result has waited long enough.
    fn record_sent(&mut self, is_last: bool) {
        let has_waited = self.oldest_sent.is_some_and(|oldest| oldest.elapsed() >= RECORD_AFTER);
        if self.sent.is_empty() || !(is_last || has_waited || self.sent.len() >= self.claimed) {
            return;
        }
        if let Err(error) = record_deliveries(&self.services, self.server, &self.sent) {
            // A later attempt records them, unless their leases end before and another server sends the deliveries again.
            tracing::warn!(%error, deliveries = self.sent.len(), "cannot record deliveries of webhooks");
            self.oldest_sent = Some(Instant::now());
            return;
        }
        self.claimed = self.claimed.saturating_sub(self.sent.len());
        self.sent.clear();
        self.oldest_sent = None;
        self.looks_at = Instant::now();
    }

    /// Claims due deliveries and begins to send them.
    fn claim(&mut self) {
        if Instant::now() < self.looks_at {
            return;
        }
        let room = MAX_CLAIMED.saturating_sub(self.claimed);
        if room > 0 {
            self.claim_up_to(room);
        }
        self.looks_at = Instant::now() + if self.claimed > 0 { LOOK_EVERY_WHILE_SENDING } else { LOOK_EVERY };
    }

    /// Claims at most this number of deliveries.
    fn claim_up_to(&mut self, room: usize) {
        let limit = u32::try_from(room).unwrap_or(u32::MAX);
        match claim_deliveries(&self.services, self.server, limit) {
            Ok(endpoints) => endpoints.into_iter().for_each(|endpoint| self.begin(endpoint)),
            Err(error) => tracing::warn!(%error, "cannot claim deliveries of webhooks"),
        }
    }

    /// Begins to send the deliveries of an endpoint.
    fn begin(&mut self, endpoint: ClaimedEndpoint) {
        let ClaimedEndpoint { url, secrets, deliveries } = endpoint;
        let many = deliveries.len();
        self.claimed += many;
        let lanes = Arc::new(EndpointLanes {
            services: self.services.clone(),
            observer: Arc::clone(&self.observer),
            events: self.events.clone(),
            is_stopping: Arc::clone(&self.is_stopping),
            is_paused: AtomicBool::new(false),
            until: Instant::now() + BEGIN_WITHIN,
            url,
            secrets,
            waiting: Mutex::new(deliveries.into()),
        });
        let mut begun = 0;
        for _ in 0..many.min(REQUESTS_OF_ENDPOINT) {
            let lane = Arc::clone(&lanes);
            match Builder::new().name("webhook".to_owned()).spawn(move || lane.run()) {
                Ok(_) => begun += 1,
                Err(error) => tracing::error!(%error, "cannot start a thread that delivers webhooks"),
            }
        }
        if begun == 0 {
            lanes.give_back();
        }
    }
}

/// The deliveries of an endpoint, sent by a few threads.
struct EndpointLanes {
    services: Services,
    observer: DeliveryObserver,
    events: Sender<Event>,
    is_stopping: Arc<AtomicBool>,
    /// Whether the endpoint asked to wait, or is gone.
    is_paused: AtomicBool,
    /// No request begins after this instant.
    until: Instant,
    url: WebhookUrl,
    secrets: Vec<WebhookSecret>,
    waiting: Mutex<VecDeque<ClaimedDelivery>>,
}

impl EndpointLanes {
    fn next(&self) -> Option<ClaimedDelivery> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn run(&self) {
        let may_begin = || {
            !self.is_stopping.load(Ordering::Relaxed) && !self.is_paused.load(Ordering::Relaxed) && Instant::now() < self.until
        };
        while may_begin() {
            let Some(claimed) = self.next() else { return };
            self.send(claimed);
        }
        self.give_back();
    }

    fn send(&self, claimed: ClaimedDelivery) {
        let ClaimedDelivery { delivery, body } = claimed;
        let at = self.services.now();
        let request = WebhookRequest { url: &self.url, id: delivery.notification_ref, at, body: &body, secrets: &self.secrets };
        // A delivery whose thread panics would count as claimed for ever. The panic hook logs the panic.
        let response = catch_unwind(AssertUnwindSafe(|| self.services.webhooks.send(&request))).ok();
        if let Some(response) = &response {
            (self.observer)(response.outcome);
            if matches!(response.outcome, AttemptOutcome::Overloaded | AttemptOutcome::Gone) {
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
