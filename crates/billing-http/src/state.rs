//! The state that all workers of one server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::{HttpRequest, web};
use billing_application::Services;
use billing_application::error::UseCaseResult;
use billing_application::keys::KeyUses;
use billing_application::usage::{RefusedUsageCounts, UsageWriter, WriterLimits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::gate::LogInGate;
use crate::in_flight::InFlightRequests;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::settings::HttpSettings;

/// The state shared by all workers. Clones are cheap and share the same state; create one value per server.
#[derive(Clone)]
pub struct HttpState(Arc<Shared>);

struct Shared {
    services: Services,
    settings: HttpSettings,
    log_ins: LogInGate,
    twins: InFlightRequests,
    reports: Arc<Semaphore>,
    scans: Arc<Semaphore>,
    prints: Arc<Semaphore>,
    trials: Arc<Semaphore>,
    writer: Arc<UsageWriter>,
    refused: RefusedUsageCounts,
    key_uses: KeyUses,
    metrics: Metrics,
    stopping: AtomicBool,
}

impl HttpState {
    /// Creates the state of one server and starts its usage writer.
    pub fn new(services: Services, settings: HttpSettings) -> Self {
        let log_ins = LogInGate::new(&settings.log_in);
        let reports = Arc::new(Semaphore::new(settings.reports_at_once));
        let scans = Arc::new(Semaphore::new(settings.reports_at_once.max(1)));
        let prints = Arc::new(Semaphore::new(settings.prints_at_once));
        let trials = Arc::new(Semaphore::new(settings.trials_at_once));
        let (twins, stopping) = (InFlightRequests::default(), AtomicBool::new(false));
        let limits = WriterLimits { groups: settings.groups_at_once, ..WriterLimits::default() };
        let writer = Arc::new(UsageWriter::start(services.clone(), limits));
        let metrics = Metrics::new(Arc::clone(&writer), Arc::clone(&services.store));
        let (refused, key_uses) = (RefusedUsageCounts::default(), KeyUses::default());
        Self(Arc::new(Shared {
            services,
            settings,
            log_ins,
            twins,
            reports,
            scans,
            prints,
            trials,
            writer,
            refused,
            key_uses,
            metrics,
            stopping,
        }))
    }

    /// Stops the usage writer and saves the counts of rejected usage and the last uses of API keys. Call it at process
    /// exit, when no request is in progress.
    pub fn finish(&self) {
        self.0.writer.stop();
        if let Err(error) = self.write_refused_usage() {
            tracing::error!(%error, "cannot store the counts of rejected usage");
        }
        if let Err(error) = self.0.key_uses.write(&self.0.services, true) {
            tracing::error!(%error, "cannot store the last uses of API keys");
        }
    }

    /// Saves the counts of rejected usage. Call it every few seconds.
    ///
    /// # Errors
    /// Returns the store's error. Unsaved counts are saved by the next call.
    pub fn write_refused_usage(&self) -> UseCaseResult<()> {
        self.0.refused.write(&self.0.services)
    }

    /// Saves the last use of each API key. Call it every few seconds.
    ///
    /// # Errors
    /// Returns the store's error. Unsaved times are saved by the next call.
    pub fn write_key_uses(&self) -> UseCaseResult<()> {
        self.0.key_uses.write(&self.0.services, false)
    }

    pub(crate) fn key_uses(&self) -> &KeyUses {
        &self.0.key_uses
    }

    pub(crate) fn refused_usage(&self) -> &RefusedUsageCounts {
        &self.0.refused
    }

    /// Makes the readiness probe fail, so that load balancers send no new requests. Requests that still arrive are
    /// served.
    pub fn stop_being_ready(&self) {
        self.0.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn check_not_stopping(&self) -> Result<(), Problem> {
        if self.0.stopping.load(Ordering::Relaxed) { Err(Problem::not_ready("the service is stopping")) } else { Ok(()) }
    }

    pub(crate) fn services(&self) -> &Services {
        &self.0.services
    }

    pub(crate) fn settings(&self) -> &HttpSettings {
        &self.0.settings
    }

    /// Returns a permit to create a report, or an error if all permits are taken.
    pub(crate) fn permit_report(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.0.reports).try_acquire_owned().map_err(|_| Problem::too_many_reports())
    }

    /// Waits for a permit to scan events, at most for the setting [`turn_wait`](HttpSettings::turn_wait).
    pub(crate) async fn permit_scan(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.turn(&self.0.scans).await
    }

    /// Waits for a permit to render a document, at most for the setting [`turn_wait`](HttpSettings::turn_wait).
    pub(crate) async fn permit_print(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.turn(&self.0.prints).await
    }

    /// Waits for a permit to try a usage format, at most for the setting [`turn_wait`](HttpSettings::turn_wait).
    pub(crate) async fn permit_trial(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.turn(&self.0.trials).await
    }

    async fn turn(&self, of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = tokio::time::timeout(self.0.settings.turn_wait, Arc::clone(of).acquire_owned()).await;
        permit.ok().and_then(Result::ok).ok_or_else(Problem::overloaded)
    }

    pub(crate) fn log_ins(&self) -> &LogInGate {
        &self.0.log_ins
    }

    pub(crate) fn writer(&self) -> &UsageWriter {
        &self.0.writer
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn twins(&self) -> &InFlightRequests {
        &self.0.twins
    }
}

/// Returns the state of the server that received the request.
pub(crate) fn state_of(request: &HttpRequest) -> HttpState {
    let state = request.app_data::<web::Data<HttpState>>().expect("the application registers its state");
    HttpState::clone(state)
}
