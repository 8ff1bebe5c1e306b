//! Connects the adapters with the ports.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use billing_api::dto::audit::JsonAuditRenderer;
use billing_application::Services;
use billing_application::secrets::shared_secrets;
use billing_application::webhooks::WebhookSenders;
use billing_auth::{AesSealer, BcryptPasswords, JwtSigner, RandomKeys, TimedCodes};
use billing_domain::access::{SecretPurpose, SigningSecret, secrets_in_use};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{Access, Clock as _, KeyMaker, SandboxClock, Store, StoreError, transact};
use billing_formats::RhaiMapper;
use billing_http::{COOKIE_KEY_BYTES, CookieKey};
use billing_pdf::{DEFAULT_DEADLINE, DEFAULT_MEMORY_MIB, PROGRAM, PrintProcessSettings, PrintProcesses};
use billing_storage::{Database, DatabaseOptions, DatabaseUrl, require_whole};
use billing_webhooks::{HttpWebhooks, WebhookSettings};
use secrecy::{ExposeSecret, SecretString};

use crate::environment::{Clocks, StandingClock, UuidV7};
use crate::failure::{CommandError, CommandResult};
use crate::settings::StoreSettings;

/// The issuer and audience of bearer tokens.
const TOKEN_ISSUER: &str = "usage-billing";
/// The default lifetime of a bearer token in seconds.
const DEFAULT_TOKEN_LIFETIME_SECONDS: i64 = 3600;
/// The minimum size of a configured signing secret in bytes.
const MIN_SECRET_BYTES: usize = 32;

/// The use cases with all their dependencies.
pub(crate) struct Composition {
    /// The database of the services.
    pub(crate) database: Arc<Database>,
    pub(crate) clocks: Clocks,
    pub(crate) services: Services,
    /// The threads that send to webhook endpoints. Use cases have no access to them.
    pub(crate) webhook_senders: WebhookSenders,
    /// The encryption key of session cookies; all replicas share it.
    pub(crate) cookie_key: CookieKey,
    /// The signer of bearer tokens if its secrets are stored in the database, where they can be rotated.
    pub(crate) renewed_signer: Option<Arc<JwtSigner>>,
}

/// The configuration of bearer token signatures.
pub(crate) struct SignerSettings {
    pub(crate) secrets: Vec<SecretString>,
    pub(crate) lifetime_seconds: i64,
}

/// Opens the configured database, also while a server uses it.
pub(crate) fn open(store: &StoreSettings) -> CommandResult<Database> {
    open_with(store, false, false)
}

fn open_with(store: &StoreSettings, to_serve: bool, is_sandbox: bool) -> CommandResult<Database> {
    let url = DatabaseUrl::parse(store.database_url()?.expose_secret())?;
    let options = DatabaseOptions {
        connections: store.database_connections,
        to_serve,
        nodes: store.database_nodes.clone(),
        is_sandbox,
        ..DatabaseOptions::default()
    };
    Ok(Database::open(&url, options)?)
}

/// Opens an existing database with any schema version.
pub(crate) fn open_existing(store: &StoreSettings) -> CommandResult<Database> {
    let url = DatabaseUrl::parse(store.database_url()?.expose_secret())?;
    if let Some(file) = url.file().filter(|file| !file.exists()) {
        // In the middle of a restore, no file is there.
        require_whole(file).map_err(CommandError::Setting)?;
        return Err(CommandError::Setting(format!("no database exists at {}", file.display())));
    }
    open(store)
}

/// Opens an existing database with a current schema; changes nothing.
pub(crate) fn open_as_it_is(store: &StoreSettings) -> CommandResult<Database> {
    let database = open_existing(store)?;
    if !database.pending_migrations().map_err(CommandError::store)?.is_empty() {
        return Err(CommandError::Setting("the schema is not up to date: run `usage-billing migrate` first".to_owned()));
    }
    Ok(database)
}

/// Opens the database and migrates its schema.
pub(crate) fn open_migrated(store: &StoreSettings) -> CommandResult<Database> {
    migrated(open(store)?)
}

/// Opens and migrates the database for a server, which uses a SQLite file exclusively. Refuses a sandbox for a live server, and the
/// other way around, before it changes anything.
pub(crate) fn open_to_serve(store: &StoreSettings, is_sandbox: bool) -> CommandResult<Database> {
    let database = open_with(store, true, is_sandbox)?;
    // A database of an earlier version has no table of sandboxes, and is live.
    let now = if database.pending_migrations().map_err(CommandError::store)?.is_empty() { sandbox_now(&database)? } else { None };
    match (is_sandbox, now) {
        (true, Some(_)) | (false, None) => migrated(database),
        (true, None) if is_new(&database)? => migrated(database),
        (true, None) => Err(is_live()),
        (false, Some(now)) => Err(CommandError::Setting(format!(
            "the database is a sandbox, whose clock shows {now}: start the server with --sandbox, or name another database"
        ))),
    }
}

fn is_live() -> CommandError {
    let reason = "the database is live, and a sandbox moves the clock of all its data: name a new database, or copy this one with \
                  `usage-billing backup FILE --sandbox`";
    CommandError::Setting(reason.to_owned())
}

/// Returns whether a database has no organization yet.
fn is_new(database: &Database) -> CommandResult<bool> {
    let has_tables = database.pending_migrations().map_err(CommandError::store)?.is_empty();
    match transact::<_, StoreError>(database, Access::Read, |tx| tx.count_organizations()) {
        Ok(organizations) => Ok(organizations == 0),
        // Without the migrations, there is no table of organizations.
        Err(_) if !has_tables => Ok(true),
        Err(error) => Err(CommandError::store(error)),
    }
}

/// Returns the instant of the billing clock of a sandbox, or `None` for a live database.
pub(crate) fn sandbox_now(database: &Database) -> CommandResult<Option<Timestamp>> {
    transact::<_, StoreError>(database, Access::Read, |tx| tx.sandbox_now()).map_err(CommandError::store)
}

/// Makes a new database a sandbox whose clock shows `start`. Returns the instant of the clock of one that is a sandbox already; `named`
/// is the instant that the settings name.
pub(crate) fn begin_sandbox(database: &Database, named: Option<Timestamp>, start: Timestamp) -> CommandResult<Timestamp> {
    match (sandbox_now(database)?, named) {
        (Some(present), None) => Ok(present),
        (Some(present), Some(_)) => Err(CommandError::Setting(format!(
            "--now is for a new sandbox, and the clock of this one shows {present}: omit --now, and move the clock with \
             POST /api/clock/advance"
        ))),
        (None, _) if !is_new(database)? => Err(is_live()),
        (None, _) => {
            transact::<_, StoreError>(database, Access::Write, |tx| tx.put_sandbox_now(start)).map_err(CommandError::store)?;
            Ok(start)
        }
    }
}

fn migrated(database: Database) -> CommandResult<Database> {
    let applied = database.migrate().map_err(CommandError::store)?;
    if !applied.is_empty() {
        tracing::info!(migrations = ?applied, "applied schema migrations");
    }
    Ok(database)
}

impl Composition {
    /// Creates the composition of a server. Creates missing shared secrets of the replicas.
    pub(crate) fn new(
        database: Database,
        clocks: Clocks,
        signer: SignerSettings,
        passwords: BcryptPasswords,
        printer: PrintProcesses,
        webhooks: WebhookSettings,
    ) -> CommandResult<Self> {
        let database = Arc::new(database);
        let keys = RandomKeys;
        let now = clocks.machine.now();
        let bearer = match signer.secrets.as_slice() {
            [] => secrets_in_use(shared_secrets(&*database, &keys, now, SecretPurpose::BearerToken)?, now),
            configured => configured.iter().map(|secret| configured_secret(secret, &keys, now)).collect::<CommandResult<_>>()?,
        };
        let tokens = Arc::new(jwt_signer(&bearer)?);
        let cookie_key = cookie_key(&shared_secrets(&*database, &keys, now, SecretPurpose::SessionCookie)?)?;
        let webhooks = Arc::new(HttpWebhooks::new(webhooks));
        let webhook_senders = WebhookSenders::new(Arc::clone(&webhooks) as _, Arc::clone(&clocks.machine) as _);
        let services = Services {
            token_lifetime_seconds: signer.lifetime_seconds,
            passwords: Arc::new(passwords),
            webhook_urls: webhooks,
            ..services(&database, &clocks, Arc::clone(&tokens), printer)
        };
        let renewed_signer = signer.secrets.is_empty().then_some(tokens);
        Ok(Self { database, clocks, services, webhook_senders, cookie_key, renewed_signer })
    }
}

/// Creates the services of a command without a server. It issues no tokens to clients and stores no secret. In a sandbox, its billing
/// clock is the sandbox's.
pub(crate) fn offline(database: Database) -> CommandResult<Services> {
    let clocks = Clocks::new(sandbox_now(&database)?);
    let secret = RandomKeys.new_secret().map_err(|error| CommandError::Failed(error.to_string()))?;
    let bearer = configured_secret(&SecretString::from(secret), &RandomKeys, clocks.machine.now())?;
    let tokens = Arc::new(jwt_signer(&[bearer])?);
    let printer = print_processes(None, DEFAULT_MEMORY_MIB, DEFAULT_DEADLINE, clocks.sandbox.is_some())?;
    Ok(services(&Arc::new(database), &clocks, tokens, printer))
}

/// Returns services whose billing clock stands at an instant.
pub(crate) fn at(services: &Services, now: Option<Timestamp>) -> Services {
    let now = now.unwrap_or_else(|| services.machine_now());
    Services { clock: Arc::new(StandingClock::at(now)), ..services.clone() }
}

/// Creates the printer. It starts the program beside this one when it first prints.
pub(crate) fn print_processes(
    fonts_dir: Option<PathBuf>,
    memory_mib: u32,
    deadline: Duration,
    is_sandbox: bool,
) -> CommandResult<PrintProcesses> {
    let program = std::env::current_exe().map_err(|error| CommandError::Failed(format!("cannot find this program: {error}")))?;
    let (program, arguments) = (program.with_file_name(PROGRAM), Vec::new());
    Ok(PrintProcesses::new(PrintProcessSettings { program, arguments, fonts_dir, memory_mib, deadline, is_sandbox }))
}

fn jwt_signer(bearer: &[SigningSecret]) -> CommandResult<JwtSigner> {
    JwtSigner::new(bearer, TOKEN_ISSUER, TOKEN_ISSUER).map_err(|error| CommandError::Setting(error.to_string()))
}

fn services(database: &Arc<Database>, clocks: &Clocks, tokens: Arc<JwtSigner>, printer: PrintProcesses) -> Services {
    Services {
        store: Arc::clone(database) as Arc<dyn Store>,
        clock: clocks.billing(),
        machine: Arc::clone(&clocks.machine) as _,
        sandbox: clocks.sandbox.clone().map(|clock| clock as Arc<dyn SandboxClock>),
        ids: Arc::new(UuidV7),
        passwords: Arc::new(BcryptPasswords::new()),
        keys: Arc::new(RandomKeys),
        codes: Arc::new(TimedCodes),
        tokens,
        mapper: Arc::new(RhaiMapper::new()),
        sealer: Arc::new(AesSealer),
        teller: Arc::new(JsonAuditRenderer),
        printer: Arc::new(printer),
        e_invoices: Arc::new(billing_einvoice::Writer { is_sandbox: clocks.sandbox.is_some() }),
        webhook_urls: Arc::new(HttpWebhooks::new(WebhookSettings::default())),
        token_lifetime_seconds: DEFAULT_TOKEN_LIFETIME_SECONDS,
    }
}

/// Returns the newest shared secret, truncated to the key's size.
fn cookie_key(secrets: &[SigningSecret]) -> CommandResult<CookieKey> {
    let bytes = secrets.first().and_then(|secret| secret.secret.get(..COOKIE_KEY_BYTES)).unwrap_or_default();
    CookieKey::try_from(bytes).map_err(|error| CommandError::Failed(format!("the stored cookie secret is invalid: {error}")))
}

fn configured_secret(
    secret: &SecretString,
    keys: &RandomKeys,
    now: billing_domain::calendar::Timestamp,
) -> CommandResult<SigningSecret> {
    let text = secret.expose_secret();
    if text.len() < MIN_SECRET_BYTES {
        return Err(CommandError::Setting(format!("every secret of --jwt-secrets must have at least {MIN_SECRET_BYTES} bytes")));
    }
    // The name is a digest, so that replicas with the same configuration agree.
    let digest = keys.digest(text);
    let kid = digest.0.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    Ok(SigningSecret { kid, purpose: SecretPurpose::BearerToken, secret: text.as_bytes().to_vec(), created_at: now })
}
