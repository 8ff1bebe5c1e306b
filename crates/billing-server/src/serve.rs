//! `serve`: first start, HTTP server, scheduler and graceful shutdown.

use std::io::IsTerminal;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpServer;
use actix_web::dev::ServerHandle;
use billing_application::organizations::{FirstStart, first_organization, first_start};
use billing_application::webhooks::WebhookDeliverer;
use billing_auth::BcryptPasswords;
use billing_console::{Pages, key_calls};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::Clock as _;
use billing_domain::refs::ServerRef;
use billing_domain::text::OneLine;
use billing_http::{DEFAULT_REPORTS_AT_ONCE, HttpSettings, HttpState, LogInLimits, PublicUrl};
use billing_storage::{Database, DatabaseUrl, SandboxLock};
use secrecy::ExposeSecret;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::composition::{Composition, SignerSettings, begin_sandbox, open_to_serve, print_processes};
use crate::connections::{Connections, MAX_METRICS_CONNECTIONS, max_connections_per_worker};
use crate::environment::{Clocks, SystemClock};
use crate::failure::{CommandError, CommandResult};
use crate::listen::listen;
use crate::sample::{self, SampleAccess};
use crate::say;
use crate::scheduler::{CountsWriter, LockWatch, NotificationNumberer, Scheduler, SecretsReader};
use crate::settings::{MEGABYTE, ServeSettings};
use crate::story;
use crate::telemetry::Telemetry;

/// The time for accepted requests to finish after SIGTERM, in seconds.
const SHUTDOWN_SECONDS: u64 = 8;

/// The cost of password hashes in a sandbox: bcrypt's least, for a fast start.
const SANDBOX_PASSWORD_COST: u32 = 4;

/// The time for a client to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// The time that the server still accepts requests while it already reports that it is not ready.
const NOTICE: Duration = Duration::from_millis(500);

/// Serves until a signal stops the server.
pub(crate) fn serve(mut settings: ServeSettings) -> CommandResult<()> {
    let telemetry = start_logging(settings.log_json)?;
    // This precedes everything that opens files.
    let max_connections = max_connections_per_worker(settings.store.database_connections, settings.workers);
    // A sandbox without a database lives in a folder that is deleted when the server ends.
    let folder = if settings.sandbox && !settings.store.names_database() { Some(temporary_folder()?) } else { None };
    if let Some(folder) = &folder {
        settings.store = settings.store.with_file(&folder.path().join("sandbox.sqlite3"));
    }
    let database = open_to_serve(&settings.store, settings.sandbox)?;
    let lock = if settings.sandbox { Some(only_server(&settings)?) } else { None };
    let clocks = Clocks::new(if settings.sandbox { Some(sandbox_clock(&settings, &database)?) } else { None });
    let signer = SignerSettings { secrets: settings.jwt_secrets()?, lifetime_seconds: settings.token_lifetime_seconds };
    let cost = if settings.sandbox { SANDBOX_PASSWORD_COST } else { settings.password_cost };
    let passwords = BcryptPasswords::with_cost(cost).map_err(|error| CommandError::Setting(error.to_string()))?;
    let deadline = Duration::from_secs(settings.print_seconds);
    let printer = print_processes(settings.fonts_dir.clone(), settings.print_memory_mib, deadline, settings.sandbox)?;
    let composition = Composition::new(database, clocks, signer, passwords, printer, settings.webhooks())?;
    composition.services.store.ready().map_err(CommandError::store)?;
    let listener = listen_on(settings.listen, "")?;
    // Port 0 is any free port, and the printed lines name it.
    settings.listen = listener.local_addr().unwrap_or(settings.listen);
    let public_url = match &settings.public_url {
        Some(url) => url.clone(),
        None => listened_on(&settings)?,
    };
    let http = http_settings(&settings, &composition, &public_url);
    let state = HttpState::new(composition.services.clone(), composition.webhook_senders.clone(), Arc::new(Pages), http);
    let shared = state.clone();
    let keep_alive = Duration::from_secs(settings.keep_alive_seconds);
    let places = max_connections.saturating_mul(usize::from(settings.workers));
    let connections = Connections::new(places, settings.trusted_proxies.clone());
    let accepted = connections.clone();
    let server = HttpServer::new(move || billing_http::app(shared.clone()))
        .disable_signals()
        .workers(usize::from(settings.workers))
        .shutdown_timeout(SHUTDOWN_SECONDS)
        .keep_alive(keep_alive)
        .client_request_timeout(HEAD_TIME)
        .max_connections(max_connections)
        .on_connect(move |stream, data| accepted.register(stream, data))
        .listen(listener)
        .map_err(|error| CommandError::Failed(format!("cannot listen: {error}")))?;
    let metrics = settings.metrics_listen.map(|address| listen_on(address, " for metrics")).transpose()?;
    // This follows the bind, because a password that is printed once must not be lost to a port in use.
    for line in first(&settings, &composition, &public_url)? {
        say(&line)?;
    }
    say(&format!("Usage Billing is ready at {public_url} (console: {public_url}/console, API reference: {public_url}/docs)"))?;
    let background = Background::start(&settings, &composition, &state, lock)
        .map_err(|error| CommandError::Failed(format!("cannot start a thread: {error}")))?;
    let writing = state.clone();
    let served = actix_web::rt::System::new().block_on(async move {
        let running = server.run();
        if let Some(listener) = metrics {
            serve_metrics(&state, listener, &settings, keep_alive)?;
        }
        // A client that begins a request at the end of the keep-alive time still has the full time for its head.
        actix_web::rt::spawn(connections.close_stalled(keep_alive + HEAD_TIME));
        actix_web::rt::spawn(stop_on_signal(state, running.handle()));
        running.await
    });
    background.stop(&writing);
    if let Err(error) = composition.database.close() {
        tracing::warn!(%error, "the -wal file of the database is still needed: copy both files");
    }
    if let Some(telemetry) = telemetry {
        telemetry.end();
    }
    served.map_err(|error| CommandError::Failed(format!("the server stopped: {error}")))
}

/// Returns the instant of the sandbox's clock. With sample data, a new one begins earlier, so that the data leads up to the present.
fn sandbox_clock(settings: &ServeSettings, database: &Database) -> CommandResult<Timestamp> {
    let now = present(settings);
    begin_sandbox(database, settings.now, if settings.sample { story::begins_at(now) } else { now })
}

/// Returns the instant at which a new sandbox begins, or to which its sample data leads.
fn present(settings: &ServeSettings) -> Timestamp {
    settings.now.unwrap_or_else(|| SystemClock::default().now())
}

/// Takes the lock of the sandbox's only server.
fn only_server(settings: &ServeSettings) -> CommandResult<SandboxLock> {
    let url = DatabaseUrl::parse(settings.store.database_url()?.expose_secret())?;
    let taken = SandboxLock::take(&url).map_err(CommandError::Failed)?;
    taken.ok_or_else(|| CommandError::Failed("another server of this sandbox runs: a sandbox has one server".to_owned()))
}

fn temporary_folder() -> CommandResult<TempDir> {
    let made = tempfile::Builder::new().prefix("usage-billing-sandbox").tempdir();
    made.map_err(|error| CommandError::Failed(format!("cannot create a temporary folder: {error}")))
}

fn http_settings(settings: &ServeSettings, composition: &Composition, public_url: &PublicUrl) -> HttpSettings {
    let connections = settings.store.database_connections;
    HttpSettings {
        trusted_proxies: settings.trusted_proxies.clone(),
        reports_at_once: reports_at_once(connections),
        requests_at_once: requests_at_once(connections, composition.database.groups_at_once()),
        groups_at_once: composition.database.groups_at_once(),
        event_cache: settings.event_cache.saturating_mul(MEGABYTE),
        metrics_apart: settings.metrics_listen.is_some(),
        log_in: LogInLimits {
            failures: settings.login_failures,
            attempts_per_address_per_minute: settings.logins_per_minute,
            ..LogInLimits::default()
        },
        ..HttpSettings::new(public_url.clone(), composition.cookie_key.clone())
    }
}

/// Serves metrics on a port of their own. The server ends with the process.
fn serve_metrics(
    state: &HttpState,
    listener: TcpListener,
    settings: &ServeSettings,
    keep_alive: Duration,
) -> std::io::Result<()> {
    let state = state.clone();
    // Its places are its own.
    let connections = Connections::new(MAX_METRICS_CONNECTIONS, settings.trusted_proxies.clone());
    let accepted = connections.clone();
    let metrics = HttpServer::new(move || billing_http::metrics_app(state.clone()))
        .disable_signals()
        .workers(1)
        .keep_alive(keep_alive)
        .client_request_timeout(HEAD_TIME)
        .max_connections(MAX_METRICS_CONNECTIONS)
        .on_connect(move |stream, data| accepted.register(stream, data));
    actix_web::rt::spawn(connections.close_stalled(keep_alive + HEAD_TIME));
    actix_web::rt::spawn(metrics.listen(listener)?.run());
    Ok(())
}

/// The threads that work beside the requests.
struct Background {
    scheduler: Option<Scheduler>,
    counts: CountsWriter,
    deliverer: WebhookDeliverer,
    numberer: NotificationNumberer,
    secrets: Option<SecretsReader>,
    lock: Option<LockWatch>,
}

impl Background {
    fn start(
        settings: &ServeSettings,
        composition: &Composition,
        state: &HttpState,
        lock: Option<SandboxLock>,
    ) -> std::io::Result<Self> {
        let services = &composition.services;
        let every = Duration::from_secs(settings.run_every_seconds);
        // In a sandbox, advances do what the scheduler does.
        let runs = settings.run_every_seconds > 0 && !settings.sandbox;
        let scheduler = runs.then(|| Scheduler::start(state.clone(), services.clone(), &composition.clocks.machine, every));
        let observing = state.clone();
        let deliverer = WebhookDeliverer::start(
            services.clone(),
            composition.webhook_senders.clone(),
            ServerRef::from_uuid(services.ids.new_id()),
            Arc::new(move |outcome| observing.record_webhook_attempt(outcome)),
        );
        let retention = (!settings.sandbox).then_some(settings.notification_days);
        let secrets = composition.renewed_signer.clone().map(|signer| SecretsReader::start(services.clone(), signer));
        Ok(Self {
            scheduler: scheduler.transpose()?,
            counts: CountsWriter::start(state.clone(), services.clone(), !settings.sandbox)?,
            numberer: NotificationNumberer::start(services.clone(), retention, deliverer.waker())?,
            deliverer,
            secrets: secrets.transpose()?,
            lock: lock.map(LockWatch::start).transpose()?,
        })
    }

    /// Stops the threads after the last request. What requests have counted is written first.
    fn stop(self, state: &HttpState) {
        let Self { scheduler, counts, deliverer, numberer, secrets, lock } = self;
        counts.stop();
        if let Some(secrets) = secrets {
            secrets.stop();
        }
        state.finish();
        if let Some(scheduler) = scheduler {
            scheduler.stop();
        }
        numberer.stop();
        deliverer.stop();
        if let Some(lock) = lock {
            lock.stop();
        }
    }
}

fn listen_on(address: SocketAddr, what_for: &str) -> CommandResult<TcpListener> {
    listen(address).map_err(|error| CommandError::Setting(format!("cannot listen on {address}{what_for}: {error}")))
}

/// Returns the limit of concurrent reports. A report uses a connection while it is sent, and most connections must stay
/// available for usage. With at least two reports, one organization cannot block the reports of the others; fewer than four
/// connections are too few for that.
fn reports_at_once(connections: u32) -> usize {
    let least = if connections < 4 { 1 } else { 2 };
    usize::try_from(connections / 4).unwrap_or(DEFAULT_REPORTS_AT_ONCE).clamp(least, DEFAULT_REPORTS_AT_ONCE)
}

/// Returns the limit of requests that use a connection at the same time. Reports use the same connections, and so does the usage
/// writer of a database with several writers.
fn requests_at_once(connections: u32, groups_at_once: usize) -> usize {
    let writer = if groups_at_once > 1 { groups_at_once } else { 0 };
    let connections_of_all = usize::try_from(connections).unwrap_or(usize::MAX);
    connections_of_all.saturating_sub(writer + reports_at_once(connections)).max(1)
}

/// Waits for SIGTERM or SIGINT. It then reports that the server is not ready, so that load balancers send no new
/// requests, and finishes accepted requests.
async fn stop_on_signal(state: HttpState, server: ServerHandle) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        tracing::error!("cannot wait for signals; the server stops without finishing its requests");
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: no new requests are accepted, accepted requests are finished");
    state.stop_being_ready();
    tokio::time::sleep(NOTICE).await;
    server.stop(true).await;
}

fn listened_on(settings: &ServeSettings) -> CommandResult<PublicUrl> {
    let url = format!("http://{}", settings.listen);
    url.parse().map_err(|error| CommandError::Setting(format!("--listen {}: {error}", settings.listen)))
}

/// Creates the first administrator and, if requested, the sample. Returns the lines to print. They are printed after the
/// transactions, so a start that is killed in between prints no password: every later start prints the command that sets one.
fn first(settings: &ServeSettings, composition: &Composition, public_url: &PublicUrl) -> CommandResult<Vec<String>> {
    let services = &composition.services;
    // If standard output is not a terminal, it may be a log with many readers. The secrets of a sandbox open nothing else.
    let shows_passwords = settings.sandbox || std::io::stdout().is_terminal();
    let generated = services.keys.new_secret().map_err(|error| CommandError::Failed(error.to_string()))?;
    let given = settings.admin_password()?;
    let password = given.as_ref().map_or(generated.as_str(), |password| password.expose_secret());
    let made = first_start(services, &settings.admin_email, password)?;
    let mut lines = Vec::new();
    if let Some(FirstStart { administrator, .. }) = &made {
        lines.push(format!("Console: {public_url}/console. Log in as {}.", administrator.email));
        if given.is_none() {
            lines.push(if shows_passwords {
                format!("Password (shown only once): {password}")
            } else {
                format!("The password is printed only to a terminal. To set one: {}", reset_command(administrator.email.as_str()))
            });
        }
    }
    let sample = match first_organization(services)? {
        Some(organization) if settings.sandbox && settings.sample && made.is_some() => {
            Some(story::tell(services, organization.id, present(settings))?)
        }
        Some(organization) if settings.sample => sample::make(services, organization.id, shows_passwords)?,
        Some(_) | None => None,
    };
    if let Some(FirstStart { organization, .. }) = made.as_ref().filter(|_| settings.sandbox && !settings.sample) {
        let key = sample::make_key(services, organization.id)?;
        lines.extend([format!("API key: {}", key.key.api_key), format!("Password of the API key: {}", &*key.password)]);
    }
    // On a first start at a terminal, the key of the sample and the password of the administrator are printed.
    let has_key = settings.sandbox || sample.as_ref().is_some_and(|access| access.key.is_some());
    if made.is_none() || !has_key {
        lines.extend(way_to_a_key(public_url, &settings.admin_email));
    }
    if let Some(access) = sample {
        lines.extend(calls(public_url, &access));
    }
    Ok(lines)
}

/// Returns the calls with which an administrator creates an API key.
fn way_to_a_key(public_url: &PublicUrl, email: &OneLine) -> Vec<String> {
    let [log_in, generate] = key_calls(public_url, email.as_str()).map(|call| format!("  {}", call.replace('\n', "\n  ")));
    vec![
        "To create an API key, log in as an administrator:".to_owned(),
        String::new(),
        log_in,
        String::new(),
        generate,
        String::new(),
        format!(
            "To set a password that is forgotten or was never printed (with the same --database-url): {}",
            reset_command(email.as_str())
        ),
    ]
}

fn reset_command(email: &str) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "usage-billing".to_owned());
    format!("{program} admin reset-password --email {email}")
}

/// Returns the three calls that report a first event and show its invoice. Without a key, the first call has placeholders.
fn calls(public_url: &PublicUrl, access: &SampleAccess) -> Vec<String> {
    let SampleAccess { key, contract_ref, customer_ref, usage_product_ref } = access;
    let (what_exists, api_key, password) = match key {
        Some(made) => {
            ("A sample customer with a contract and an API key exist. Report a first event:", &*made.key.api_key, &*made.password)
        }
        None => (
            "A sample customer with a contract exists. Create an API key as above, and report a first event with it:",
            "...",
            "...",
        ),
    };
    vec![
        String::new(),
        what_exists.to_owned(),
        String::new(),
        format!(
            "  TOKEN=$(curl -s {public_url}/auth/login -H 'Content-Type: application/json' \\\n    \
             -d '{{\"api_key\":\"{api_key}\",\"password\":\"{password}\"}}' | tr -d '\"')"
        ),
        String::new(),
        format!(
            "  curl -s {public_url}/api/usage/event -H \"Authorization: Bearer $TOKEN\" -H 'Version: V0' \\\n    \
             -H 'Content-Type: application/json' \\\n    \
             -d \"{{\\\"timestamp\\\":\\\"$(date -u +%FT%TZ)\\\",\\\"customer_ref\\\":\\\"{customer_ref}\\\",\
             \\\"usage_product_ref\\\":\\\"{usage_product_ref}\\\",\\\"quantity\\\":1500}}\""
        ),
        String::new(),
        format!(
            "  curl -s {public_url}/api/contracts/invoices/current/{contract_ref} -H \"Authorization: Bearer $TOKEN\" -H 'Version: V0'"
        ),
        String::new(),
    ]
}

/// Log levels without `RUST_LOG`. The command reports that the server is ready and stops, so the library need not.
const USUAL_FILTER: &str = "info,actix_server=warn,actix_http::h1::dispatcher=off";

/// Starts logging and, with the feature `telemetry`, tracing.
fn start_logging(json: bool) -> CommandResult<Option<Telemetry>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(USUAL_FILTER));
    let colours = std::io::stderr().is_terminal();
    // A failed write, as to a closed terminal, must not be reported: reporting it there panics.
    let lines = tracing_subscriber::fmt::layer().log_internal_errors(false).with_writer(std::io::stderr).with_ansi(colours);
    let lines = if json { lines.json().boxed() } else { lines.boxed() };
    let telemetry = Telemetry::start()?;
    let subscriber = tracing_subscriber::registry().with(filter).with(lines).with(telemetry.as_ref().map(Telemetry::layer));
    if let Err(error) = subscriber.try_init() {
        tracing::warn!(%error, "logging is already started");
    }
    Ok(telemetry)
}
