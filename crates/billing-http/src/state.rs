//! The state that all workers of one server share.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::{HttpRequest, web};
use billing_application::Services;
use billing_application::billing_run::BillingReport;
use billing_application::error::UseCaseResult;
use billing_application::keys::KeyUses;
use billing_application::usage::{RefusedUsageCounts, UsageWriter, WriterLimits};
use billing_application::webhooks::WebhookSenders;
use billing_domain::refs::OrganizationId;
use billing_domain::webhook::AttemptOutcome;

use crate::auth::gate::LogInGate;
use crate::auth::remembered::RememberedLogIns;
use crate::blocking::blocking;
use crate::fair_permits::{FairPermit, FairPermits};
use crate::in_flight::InFlightRequests;
use crate::metrics::Metrics;
use crate::readiness::Readiness;
use crate::settings::HttpSettings;
use billing_api::console::Console;
use billing_api::problem::Problem;

/// The maximum number of concurrent scans of events. Each scan uses a database connection.
const MAX_SCANS: usize = 2;

/// The maximum number of tests of webhook endpoints at the same time. Each has a thread.
const MAX_WEBHOOK_TESTS: usize = 64;

/// The state shared by all workers. Clones are cheap and share the same state; create one value per server.
#[derive(Clone)]
pub struct HttpState(Arc<Shared>);

struct Shared {
    services: Services,
    settings: HttpSettings,
    log_ins: LogInGate,
    remembered_log_ins: RememberedLogIns,
    twins: InFlightRequests,
    reports: FairPermits,
    scans: FairPermits,
    prints: FairPermits,
    trials: FairPermits,
    parses: FairPermits,
    connections: FairPermits,
    webhook_tests: FairPermits,
    webhook_senders: WebhookSenders,
    writer: Arc<UsageWriter>,
    refused: RefusedUsageCounts,
    key_uses: KeyUses,
    metrics: Metrics,
    readiness: Readiness,
    console: Arc<dyn Console>,
    stopping: AtomicBool,
}

impl HttpState {
    /// Creates the state of one server and starts its usage writer.
    pub fn new(services: Services, webhook_senders: WebhookSenders, console: Arc<dyn Console>, settings: HttpSettings) -> Self {
        let log_ins = LogInGate::new(&settings.log_in);
        // A slow client prolongs its report, so one organization never has all permits. Other work ends by itself soon.
        let reports = FairPermits::with_reserve(settings.reports_at_once);
        let scans = FairPermits::with_half_reserved(settings.reports_at_once.clamp(1, MAX_SCANS));
        // A document can take as long to print as other requests wait for a permit.
        let prints = FairPermits::with_reserve(settings.prints_at_once);
        let trials = FairPermits::new(settings.trials_at_once);
        let parses = FairPermits::with_half_reserved(std::thread::available_parallelism().map_or(1, NonZero::get));
        let connections = FairPermits::for_short_requests(settings.requests_at_once);
        let webhook_tests = FairPermits::with_one_each(MAX_WEBHOOK_TESTS);
        let (twins, stopping) = (InFlightRequests::default(), AtomicBool::new(false));
        let limits =
            WriterLimits { groups: settings.groups_at_once, event_cache: settings.event_cache, ..WriterLimits::default() };
        let writer = Arc::new(UsageWriter::start(services.clone(), limits));
        let metrics = Metrics::new(Arc::clone(&writer), Arc::clone(&services.store));
        let readiness = Readiness::start(Arc::clone(&services.store));
        let (refused, key_uses) = (RefusedUsageCounts::default(), KeyUses::default());
        Self(Arc::new(Shared {
            services,
            settings,
            log_ins,
            remembered_log_ins: RememberedLogIns::default(),
            twins,
            reports,
            scans,
            prints,
            trials,
            parses,
            connections,
            webhook_tests,
            webhook_senders,
            writer,
            refused,
            key_uses,
            metrics,
            readiness,
            console,
            stopping,
        }))
    }

    /// Returns the pages for administrators.
    pub(crate) fn console(&self) -> &dyn Console {
        &*self.0.console
    }

    /// Stops the usage writer and saves the counts of rejected usage and the last uses of API keys. Call it at process
    /// exit, when no request is in progress.
    pub fn finish(&self) {
        self.0.readiness.stop();
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

    /// Records the interval of this server's periodic billing runs for the metrics.
    pub fn billing_runs_every(&self, interval: Duration) {
        self.0.metrics.billing_runs_every(interval);
    }

    /// Records the result of a periodic billing run for the metrics. Call it at the end of the run.
    pub fn record_billing_run(&self, run: &UseCaseResult<BillingReport>) {
        self.0.metrics.billing_ran(run, self.0.services.machine_now());
    }

    /// Records for the metrics that a periodic billing run was skipped.
    pub fn record_skipped_billing_run(&self) {
        self.0.metrics.billing_skipped();
    }

    /// Counts an attempt to deliver a notification to a webhook endpoint for the metrics.
    pub fn record_webhook_attempt(&self, outcome: AttemptOutcome) {
        self.0.metrics.webhook_attempted(outcome);
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

    /// Checks that the server is not stopping and can use its database. It never waits for the database.
    pub(crate) async fn check_ready(&self) -> Result<(), Problem> {
        if self.0.stopping.load(Ordering::Relaxed) {
            return Err(Problem::not_ready("the service is stopping"));
        }
        self.0.readiness.check().await.map_err(|reason| Problem::not_ready(&reason.to_string()))
    }

    pub(crate) fn services(&self) -> &Services {
        &self.0.services
    }

    pub(crate) fn settings(&self) -> &HttpSettings {
        &self.0.settings
    }

    /// Returns whether the database has one writer. A change that is one transaction then waits for its turn in the queue of the
    /// usage writer, so that organizations share the database's writer.
    pub(crate) fn has_one_writer(&self) -> bool {
        self.0.settings.groups_at_once <= 1
    }

    /// Waits for a permit to create a report, at most for the setting [`turn_wait`](HttpSettings::turn_wait).
    pub(crate) async fn permit_report(&self, organization: OrganizationId) -> Result<FairPermit, Problem> {
        let permit = self.0.reports.acquire(organization, self.0.settings.turn_wait);
        permit.await.ok_or_else(Problem::too_many_reports)
    }

    /// Waits for a permit to scan events, like [`permit_report`](Self::permit_report).
    pub(crate) async fn permit_scan(&self, organization: OrganizationId) -> Result<FairPermit, Problem> {
        self.permit(&self.0.scans, organization).await
    }

    /// Waits for a permit to render a document, like [`permit_report`](Self::permit_report).
    pub(crate) async fn permit_print(&self, organization: OrganizationId) -> Result<FairPermit, Problem> {
        self.permit(&self.0.prints, organization).await
    }

    /// Waits for a permit to try a usage format, like [`permit_report`](Self::permit_report).
    pub(crate) async fn permit_trial(&self, organization: OrganizationId) -> Result<FairPermit, Problem> {
        self.permit(&self.0.trials, organization).await
    }

    /// Waits for a permit to parse a large body on a blocking thread, like [`permit_report`](Self::permit_report).
    pub(crate) async fn permit_parse(&self, organization: OrganizationId) -> Result<FairPermit, Problem> {
        self.permit(&self.0.parses, organization).await
    }

    /// Waits for the organization's only permit to test a webhook endpoint, like [`permit_report`](Self::permit_report). It is
    /// the right to wait for an endpoint, and gives access to nothing that other organizations need.
    pub(crate) async fn permit_webhook_test(&self, organization: OrganizationId) -> Result<FairPermit, Problem> {
        let permit = self.0.webhook_tests.acquire(organization, self.0.settings.turn_wait);
        permit.await.ok_or_else(Problem::webhook_test_in_progress)
    }

    pub(crate) fn webhook_senders(&self) -> &WebhookSenders {
        &self.0.webhook_senders
    }

    /// Waits for a permit to use a database connection, like [`permit_report`](Self::permit_report), and runs work on a blocking
    /// thread. No other function gives such a permit. So it ends with the work, which has no way to wait for another host, and
    /// no async function can hold it.
    pub(crate) async fn with_connection<T: Send + 'static>(
        &self,
        organization: OrganizationId,
        work: impl FnOnce(&Services) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = self.permit(&self.0.connections, organization).await?;
        blocking(self.services(), move |services| {
            // The working thread releases the permit, even if the request was abandoned.
            let _permit = permit;
            work(services)
        })
        .await
    }

    async fn permit(&self, permits: &FairPermits, organization: OrganizationId) -> Result<FairPermit, Problem> {
        permits.acquire(organization, self.0.settings.turn_wait).await.ok_or_else(Problem::overloaded)
    }

    pub(crate) fn log_ins(&self) -> &LogInGate {
        &self.0.log_ins
    }

    pub(crate) fn remembered_log_ins(&self) -> &RememberedLogIns {
        &self.0.remembered_log_ins
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
