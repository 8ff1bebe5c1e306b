//! Threads that report events until the server stops, and that record the responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Client;

/// The time limit of acknowledgments. The limit is far longer than necessary.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The responses that one thread received.
#[derive(Debug, Default)]
pub struct LoadResult {
    /// The acknowledged events with their responses.
    pub acknowledged: Vec<(Value, Value)>,
    /// The status and text of each refusal.
    pub refused: Vec<(u16, String)>,
    /// The event that got no response.
    pub in_doubt: Option<Value>,
}

/// A set of running threads.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<[AtomicUsize]>,
    threads: Vec<JoinHandle<LoadResult>>,
}

impl Load {
    /// Starts threads. `event` creates the event that a thread sends, from the index of the thread and the index of the
    /// event. Both indexes start at 0.
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

    /// Returns the number of acknowledged events so far.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged_of_each().iter().sum()
    }

    /// Returns the number of acknowledged events of each thread so far. These are the first events in
    /// [`LoadResult::acknowledged`].
    pub fn acknowledged_of_each(&self) -> Vec<usize> {
        self.acknowledged.iter().map(|acknowledged| acknowledged.load(Ordering::SeqCst)).collect()
    }

    /// Waits for a number of acknowledgments.
    ///
    /// # Panics
    /// Panics if the acknowledgments do not arrive.
    pub fn wait_for(&self, acknowledged: usize) {
        let started = Instant::now();
        while self.acknowledged() < acknowledged {
            let alive = self.threads.iter().any(|thread| !thread.is_finished());
            assert!(alive && started.elapsed() < MAX_WAIT, "{} of {acknowledged} events were stored", self.acknowledged());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops all threads that still run, and returns the responses that each thread received.
    ///
    /// # Panics
    /// Panics if a thread panicked.
    pub fn end(self) -> Vec<LoadResult> {
        self.stop.store(true, Ordering::SeqCst);
        self.join()
    }

    /// Waits until every thread has lost its server, and returns the responses that each thread received.
    ///
    /// # Panics
    /// Panics if a thread panicked.
    pub fn join(self) -> Vec<LoadResult> {
        self.threads.into_iter().map(|thread| thread.join().expect("a thread without a panic")).collect()
    }
}

fn work(client: &Client, stop: &AtomicBool, acknowledged: &AtomicUsize, event: impl Fn(usize) -> Value) -> LoadResult {
    let mut reported = LoadResult::default();
    for index in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let event = event(index);
        match client.try_post("/api/usage/event", &event) {
            Ok(answer) if answer.status == 200 => {
                reported.acknowledged.push((event, answer.body));
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
            Ok(answer) => reported.refused.push((answer.status, answer.text)),
            Err(_) => {
                reported.in_doubt = Some(event);
                break;
            }
        }
    }
    reported
}
