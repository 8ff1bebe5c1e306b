//! Threads that report events until there is no server any more, and remember what they were told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Client;

/// How long acknowledgements may take to come. Far more than they need.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// What one thread was told.
#[derive(Debug, Default)]
pub struct LoadResult {
    /// Events sent and the results they were answered.
    pub acknowledged: Vec<(Value, Value)>,
    /// Refusals.
    pub refused: Vec<(u16, String)>,
    /// The event whose answer never came.
    pub in_doubt: Option<Value>,
}

/// Threads at work.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<[AtomicUsize]>,
    threads: Vec<JoinHandle<LoadResult>>,
}

impl Load {
    /// Starts threads; `event` makes the event that a thread sends, from the numbers of both, counted from 0.
    pub fn start(client: &Client, threads: usize, event: impl Fn(usize, usize) -> Value + Send + Sync + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged: Arc<[AtomicUsize]> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
        let event = Arc::new(event);
        let start = |thread| {
            let (client, stop, acknowledged, event) =
                (client.with_own_connections(), Arc::clone(&stop), Arc::clone(&acknowledged), Arc::clone(&event));
            std::thread::spawn(move || work(&client, &stop, &acknowledged[thread], |index| event(thread, index)))
        };
        let threads = (0..threads).map(start).collect();
        Self { stop, acknowledged, threads }
    }

    /// How many were acknowledged up to now.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged_of_each().iter().sum()
    }

    /// The same, of each thread: the first so many of what it will have been told.
    pub fn acknowledged_of_each(&self) -> Vec<usize> {
        self.acknowledged.iter().map(|acknowledged| acknowledged.load(Ordering::SeqCst)).collect()
    }

    /// Waits for a number of acknowledgements.
    ///
    /// # Panics
    /// When they don't come.
    pub fn wait_for(&self, acknowledged: usize) {
        let started = Instant::now();
        while self.acknowledged() < acknowledged {
            let alive = self.threads.iter().any(|thread| !thread.is_finished());
            assert!(alive && started.elapsed() < MAX_WAIT, "{} of {acknowledged} events were taken", self.acknowledged());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops what is still at work, and answers what each thread was told.
    ///
    /// # Panics
    /// When a thread did.
    pub fn end(self) -> Vec<LoadResult> {
        self.stop.store(true, Ordering::SeqCst);
        self.join()
    }

    /// Waits until every thread has lost its server, and answers what each was told.
    ///
    /// # Panics
    /// When a thread did.
    pub fn join(self) -> Vec<LoadResult> {
        self.threads.into_iter().map(|thread| thread.join().expect("the thread")).collect()
    }
}

fn work(client: &Client, stop: &AtomicBool, acknowledged: &AtomicUsize, event: impl Fn(usize) -> Value) -> LoadResult {
    let mut told = LoadResult::default();
    for index in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let event = event(index);
        match client.try_post("/api/usage/event", &event) {
            Ok(answer) if answer.status == 200 => {
                told.acknowledged.push((event, answer.body));
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
            Ok(answer) => told.refused.push((answer.status, answer.text)),
            Err(_) => {
                told.in_doubt = Some(event);
                break;
            }
        }
    }
    told
}
