//! Flags and environment variables. Every setting has both, with the same syntax.

use std::fmt::Display;
use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use billing_application::sandbox::require_in_range;
use billing_application::usage::DEFAULT_EVENT_CACHE;
use billing_auth::{COSTS, DEFAULT_COST};
use billing_domain::access::{
    DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS, MAX_TOKEN_LIFETIME_SECONDS, Role, SecretPurpose, check_log_in_name,
};
use billing_domain::calendar::Timestamp;
use billing_domain::event_input::OnConflict;
use billing_domain::format::DEFAULT_FORMAT_NAME;
use billing_domain::notification::{NOTIFICATION_DAYS, NOTIFICATIONS_KEPT_DAYS};
use billing_domain::report::ReportFormat;
use billing_domain::text::OneLine;
use billing_http::{Network, PublicUrl};
use billing_import::{DecimalSeparator, Delimiter, FileKind};
use billing_pdf::{DEFAULT_DEADLINE, DEFAULT_MEMORY_MIB};
use billing_storage::NodeAddress;
use billing_webhooks::{PermittedNetwork, WebhookProxy, WebhookSettings};
use clap::{Args, Parser, Subcommand, ValueEnum};
use secrecy::{ExposeSecret as _, SecretString};
use validator::ValidateEmail as _;

use crate::failure::{CommandError, CommandResult};

/// A billing back end that your software calls over HTTP. It records usage events, bills each event on an invoice, and returns
/// the number of the invoice in the response.
///
/// Without a command, it runs `serve`. Every setting is a flag or an environment variable. The flag takes precedence. Secrets can
/// also be in files, which further flags name.
#[derive(Debug, Parser)]
#[command(name = "usage-billing", version, max_term_width = 110, after_help = FIRST_COMMANDS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Settings of `serve`, which runs when no command is given.
    #[command(flatten)]
    pub(crate) serve: ServeSettings,
}

/// The commands for a first try.
/// The number of bytes of a megabyte.
pub(crate) const MEGABYTE: usize = 1024 * 1024;
const FIRST_COMMANDS: &str = "First commands:
  usage-billing demo             bills three customers for one month in a temporary database
  usage-billing serve --sample   starts the server with sample data in a new database, and prints calls that use the data
  usage-billing admin reset-password --email admin@example.com
                                 sets and prints a new password of an administrator

The console is at http://127.0.0.1:8080/console, the API reference at http://127.0.0.1:8080/docs.
Exit codes: 0 success; 1 failure; 2 invalid setting.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Starts the HTTP server (default). Creates the database and the first administrator if missing.
    Serve(Box<ServeSettings>),
    /// Applies pending schema migrations and exits.
    Migrate(MigrateSettings),
    /// Creates organizations. An organization is a separate business in one installation.
    Organization {
        #[command(subcommand)]
        command: OrganizationCommand,
    },
    /// Creates, lists and disables administrators. Administrators are people who log in to the console.
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Lists and rotates API keys.
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Lists and rotates the secrets that sign tokens and encrypt cookies.
    Secret {
        #[command(subcommand)]
        command: SecretCommand,
    },
    /// Recomputes every invariant from the raw events, read-only. Prints each violation and exits with 1 if there is any.
    Verify(VerifySettings),
    /// Backs up a SQLite database to a new file, also while a server runs.
    Backup(BackupSettings),
    /// Replaces the SQLite database by a backup, which is checked first. The former database keeps its content under another
    /// name. Stop the server before.
    Restore(RestoreSettings),
    /// Tells a PostgreSQL database that it was restored from a backup by other tools. Stop all servers before.
    Restored(RestoredSettings),
    /// Makes a PostgreSQL database that other tools copied from a live one a sandbox. Removes administrators, API keys, secrets and
    /// webhook endpoints, and prints a new administrator of each organization. There is no way back.
    Sandbox(SandboxSettings),
    /// Imports usage events from a file. Repeated runs create no duplicates. Exits with 1 if any line is rejected.
    Import(ImportSettings),
    /// Writes usage events as a table.
    Report(ReportSettings),
    /// Prints the OpenAPI document.
    Openapi {
        /// Describes decimals as strings, like /openapi.json?numbers=string.
        #[arg(long)]
        numbers_as_strings: bool,
    },
    /// Bills the last month of three sample customers, and prints each document with its calculation.
    Demo(DemoSettings),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OrganizationCommand {
    /// Creates an organization with a default entity.
    Create {
        /// Name, on one line, unique in the installation.
        #[arg(value_parser = OneLine::parse)]
        name: OneLine,
        #[command(flatten)]
        store: StoreSettings,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Creates an administrator. Prints a generated password once if `--password` is missing.
    Create {
        /// E-mail address for the log-in, unique in the installation.
        #[arg(long, value_parser = email_address)]
        email: OneLine,
        /// Name of the organization.
        #[arg(long, value_name = "NAME", value_parser = OneLine::parse)]
        organization: OneLine,
        /// Password of 12 to 72 bytes, not a common one. Default: generated and printed once.
        #[arg(long, env = "USAGE_BILLING_ADMIN_PASSWORD", hide_env_values = true)]
        password: Option<SecretString>,
        /// File with the password, instead of `--password`. One line break at its end is ignored.
        #[arg(long, value_name = "FILE", env = "USAGE_BILLING_ADMIN_PASSWORD_FILE", value_parser = secret_file)]
        password_file: Option<SecretString>,
        /// Role. Each role includes the ones before: `read` reads; `finance` changes customers and contracts, and issues and
        /// settles documents; `operator` reports usage and changes the catalog; `owner` manages administrators and API keys.
        #[arg(long, default_value = "owner", value_parser = role)]
        role: Role,
        #[command(flatten)]
        store: StoreSettings,
    },
    /// Lists administrators with e-mail, reference, role, creation time and state.
    List {
        /// Name of the organization.
        #[arg(long, value_name = "NAME", default_value = "default", value_parser = OneLine::parse)]
        organization: OneLine,
        #[command(flatten)]
        store: StoreSettings,
    },
    /// Disables the log-in of an administrator and ends the sessions. API keys stay valid.
    Disable(AdminSelector),
    /// Enables the log-in of a disabled administrator. The password is unchanged.
    Enable(AdminSelector),
    /// Changes the role of an administrator and ends the sessions.
    Role {
        #[command(flatten)]
        of: AdminSelector,
        /// Role: read, finance, operator or owner.
        #[arg(long, value_parser = role)]
        role: Role,
    },
    /// Sets a new password of an administrator and ends the sessions. Prints a generated password once if `--password` is missing.
    ResetPassword {
        #[command(flatten)]
        of: AdminSelector,
        /// Password of 12 to 72 bytes, not a common one. Default: generated and printed once.
        #[arg(long, env = "USAGE_BILLING_ADMIN_PASSWORD", hide_env_values = true)]
        password: Option<SecretString>,
        /// File with the password, instead of `--password`. One line break at its end is ignored.
        #[arg(long, value_name = "FILE", env = "USAGE_BILLING_ADMIN_PASSWORD_FILE", value_parser = secret_file)]
        password_file: Option<SecretString>,
        /// Removes the second factor, for administrators who lost their device and their recovery codes.
        #[arg(long)]
        remove_second_factor: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Lists API keys with log-in name, reference, name, scopes, last use and end.
    List {
        /// Name of the organization.
        #[arg(long, value_name = "NAME", default_value = "default", value_parser = OneLine::parse)]
        organization: OneLine,
        #[command(flatten)]
        store: StoreSettings,
    },
    /// Replaces a key by a new one with the same name and scopes, and prints its password once. Both keys are valid during the
    /// overlap.
    Rotate {
        /// Log-in name of the key.
        #[arg(long, value_name = "KEY")]
        key: String,
        /// Hours for which the old key stays valid, 0 to 720.
        #[arg(long, value_name = "HOURS", default_value_t = DEFAULT_OVERLAP_HOURS, value_parser = clap::value_parser!(u16).range(0..=MAX_OVERLAP_HOURS as i64))]
        overlap_hours: u16,
        /// Name of the organization.
        #[arg(long, value_name = "NAME", default_value = "default", value_parser = OneLine::parse)]
        organization: OneLine,
        #[command(flatten)]
        store: StoreSettings,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Lists the secrets with name, purpose and creation time, without their values.
    List(StoreSettings),
    /// Replaces a secret by a new one. Running servers load a secret for tokens within two minutes, and existing tokens stay valid.
    /// Servers load a secret for cookies when they start, and all sessions end.
    Rotate {
        /// Purpose of the secret: tokens or cookies.
        #[arg(long = "for", value_name = "WHAT", value_parser = secret_purpose)]
        purpose: SecretPurpose,
        /// Invalidates everything that earlier secrets signed, within 30 seconds. Use it after a theft.
        #[arg(long)]
        end_present: bool,
        #[command(flatten)]
        store: StoreSettings,
    },
}

/// An existing administrator.
#[derive(Debug, Args)]
pub(crate) struct AdminSelector {
    /// E-mail address of the administrator.
    #[arg(long, value_parser = OneLine::parse)]
    pub(crate) email: OneLine,
    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StoreSettings {
    /// Database URL: sqlite://PATH or postgres://USER:PASSWORD@HOST/DATABASE. Default: sqlite://data/usage-billing.sqlite3.
    #[arg(long, value_name = "URL", env = "USAGE_BILLING_DATABASE_URL", hide_env_values = true)]
    database_url: Option<SecretString>,

    /// File with the database URL, instead of `--database-url`. One line break at its end is ignored.
    #[arg(long, value_name = "FILE", env = "USAGE_BILLING_DATABASE_URL_FILE", value_parser = secret_file)]
    database_url_file: Option<SecretString>,

    /// Maximum number of database connections, 2 to 500. On SQLite, the number of reading connections.
    #[arg(long, value_name = "NUMBER", env = "USAGE_BILLING_DATABASE_CONNECTIONS", default_value = "16", value_parser = within::<u32>(2..=500))]
    pub(crate) database_connections: u32,

    /// Nodes of a Citus cluster that this program reaches under another address than their name in `pg_dist_node`.
    #[arg(long, value_name = "NAME:PORT=HOST:PORT", env = "USAGE_BILLING_DATABASE_NODES", value_delimiter = ',', value_parser = NodeAddress::parse)]
    pub(crate) database_nodes: Vec<NodeAddress>,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateSettings {
    /// Also distributes the tables over the nodes of a Citus cluster. Without the extension Citus, this changes nothing.
    #[arg(long)]
    pub(crate) distribute: bool,

    /// Number of shards of `--distribute`: a power of two, 8 to 256. Four times the number of workers that the cluster will have.
    /// Changing it later copies all rows.
    #[arg(long, value_name = "NUMBER", default_value = "32", requires = "distribute", value_parser = shard_count)]
    pub(crate) shards: u32,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Debug, Args)]
pub(crate) struct ServeSettings {
    #[command(flatten)]
    pub(crate) store: StoreSettings,

    /// IP address and port to listen on. 0.0.0.0 means every address, port 0 means any free port.
    #[arg(long, value_name = "ADDRESS:PORT", env = "USAGE_BILLING_LISTEN", default_value = "127.0.0.1:8080", value_parser = address_and_port)]
    pub(crate) listen: SocketAddr,

    /// IP address and port that serve only /metrics. Default: /metrics on the main address.
    #[arg(long, value_name = "ADDRESS:PORT", env = "USAGE_BILLING_METRICS_LISTEN", value_parser = address_and_port)]
    pub(crate) metrics_listen: Option<SocketAddr>,

    /// URL at which clients reach the server, http:// or https:// without a path. https makes cookies secure. Default: the address
    /// of `--listen`.
    #[arg(long, value_name = "URL", env = "USAGE_BILLING_PUBLIC_URL")]
    pub(crate) public_url: Option<PublicUrl>,

    /// E-mail address of the first administrator. Read only at the first start.
    #[arg(long, value_name = "EMAIL", env = "USAGE_BILLING_ADMIN_EMAIL", default_value = "admin@example.com", value_parser = email_address)]
    pub(crate) admin_email: OneLine,

    /// Password of the first administrator, 12 to 72 bytes, not a common one. Read only at the first start. Default: generated, and
    /// printed once if standard output is a terminal.
    #[arg(long, value_name = "PASSWORD", env = "USAGE_BILLING_ADMIN_PASSWORD", hide_env_values = true)]
    admin_password: Option<SecretString>,

    /// File with the password of the first administrator, instead of `--admin-password`. One line break at its end is ignored.
    #[arg(long, value_name = "FILE", env = "USAGE_BILLING_ADMIN_PASSWORD_FILE", value_parser = secret_file)]
    admin_password_file: Option<SecretString>,

    /// As long as there is no catalog, also creates a sample customer and contract, and prints calls that use them. If standard
    /// output is a terminal, also creates and prints an API key. In the environment: true or false.
    #[arg(long, env = "USAGE_BILLING_SAMPLE", value_parser = truth)]
    pub(crate) sample: bool,

    /// Starts a sandbox: a server whose billing clock stands still and is moved by requests. Without a database URL, its data is in
    /// a temporary file and is deleted at the end. In the environment: true or false.
    #[arg(long, env = "USAGE_BILLING_SANDBOX", value_parser = truth)]
    pub(crate) sandbox: bool,

    /// Instant of a new sandbox's clock in RFC 3339, such as 2026-01-15T00:00:00Z. Default: the machine's time.
    #[arg(long, value_name = "INSTANT", env = "USAGE_BILLING_NOW", requires = "sandbox", value_parser = instant)]
    pub(crate) now: Option<Timestamp>,

    /// Comma-separated secrets that sign bearer tokens, newest first, each of at least 32 bytes. Default: secrets in the
    /// database.
    #[arg(long, value_name = "SECRETS", env = "USAGE_BILLING_JWT_SECRETS", hide_env_values = true, value_delimiter = ',')]
    jwt_secrets: Vec<SecretString>,

    /// File with these secrets, separated by commas, instead of `--jwt-secrets`. One line break at its end is ignored.
    #[arg(long, value_name = "FILE", env = "USAGE_BILLING_JWT_SECRETS_FILE", value_parser = secret_file)]
    jwt_secrets_file: Option<SecretString>,

    /// Lifetime of bearer tokens in seconds, 300 to 86400.
    #[arg(long, value_name = "SECONDS", env = "USAGE_BILLING_TOKEN_LIFETIME_SECONDS", default_value = "3600", value_parser = within::<i64>(300..=MAX_TOKEN_LIFETIME_SECONDS))]
    pub(crate) token_lifetime_seconds: i64,

    /// Number of HTTP threads, 1 to 256.
    #[arg(long, value_name = "NUMBER", env = "USAGE_BILLING_WORKERS", default_value = "1", value_parser = within::<u16>(1..=256))]
    pub(crate) workers: u16,

    /// Approximate maximum memory in MB of the contracts and drafts that the server keeps for events, 0 to 100000. A pair of customer
    /// and usage product takes about 5 KB, and more with many prices. 0 disables this cache.
    #[arg(long, value_name = "MB", env = "USAGE_BILLING_EVENT_CACHE", default_value_t = DEFAULT_EVENT_CACHE / MEGABYTE, value_parser = within::<usize>(0..=100_000))]
    pub(crate) event_cache: usize,

    /// Seconds for which an idle connection stays open, 1 to 3600. It must be longer than in the clients and proxies in front, or
    /// else a request occasionally arrives on a connection that is being closed.
    #[arg(long, value_name = "SECONDS", env = "USAGE_BILLING_KEEP_ALIVE_SECONDS", default_value = "75", value_parser = within::<u64>(1..=3600))]
    pub(crate) keep_alive_seconds: u64,

    /// Comma-separated addresses or networks, such as 10.0.0.0/8, of proxies with a trusted X-Forwarded-For or Forwarded. Default:
    /// none.
    #[arg(long, value_name = "NETWORKS", env = "USAGE_BILLING_TRUSTED_PROXIES", value_delimiter = ',')]
    pub(crate) trusted_proxies: Vec<Network>,

    /// Seconds between two billing runs of this server, 0 to 86400. Each run also deletes expired idempotency records. 0 disables
    /// the runs.
    #[arg(long, value_name = "SECONDS", env = "USAGE_BILLING_RUN_EVERY_SECONDS", default_value = "60", value_parser = within::<u64>(0..=86_400))]
    pub(crate) run_every_seconds: u64,

    /// Days for which notifications are retained, 7 to 365.
    #[arg(long, value_name = "DAYS", env = "USAGE_BILLING_NOTIFICATION_DAYS", default_value_t = NOTIFICATIONS_KEPT_DAYS, value_parser = within::<u16>(NOTIFICATION_DAYS))]
    pub(crate) notification_days: u16,

    /// Permits webhook endpoints with http:// URLs. In the environment: true or false.
    #[arg(long, env = "USAGE_BILLING_WEBHOOK_ALLOW_HTTP", value_parser = truth)]
    webhook_allow_http: bool,

    /// Networks or IP addresses, comma-separated, to which webhooks are sent although they are not public, also with any port.
    #[arg(long, value_name = "NETWORKS", env = "USAGE_BILLING_WEBHOOK_ALLOW_NETWORKS", value_delimiter = ',')]
    webhook_allow_networks: Vec<PermittedNetwork>,

    /// URL of the HTTP proxy that webhooks go through. The proxy must reject addresses that are not public. Default: none.
    #[arg(long, value_name = "URL", env = "USAGE_BILLING_WEBHOOK_PROXY", hide_env_values = true)]
    webhook_proxy: Option<WebhookProxy>,

    /// Folder with additional fonts for PDF documents. The built-in fonts have Latin, Greek and Cyrillic characters. For other
    /// characters, the Noto Sans fonts below /usr/share/fonts are used, too.
    #[arg(long, value_name = "FOLDER", env = "USAGE_BILLING_FONTS_DIR", value_parser = folder)]
    pub(crate) fonts_dir: Option<PathBuf>,

    /// Memory in MiB that a process that prints PDF documents may use, 128 to 65536. A server has at most two such processes, and a
    /// third while a logo is uploaded.
    #[arg(long, value_name = "MIB", env = "USAGE_BILLING_PRINT_MEMORY_MIB", default_value_t = DEFAULT_MEMORY_MIB, value_parser = within::<u32>(128..=65_536))]
    pub(crate) print_memory_mib: u32,

    /// Seconds for printing a PDF document, 1 to 25.
    #[arg(long, value_name = "SECONDS", env = "USAGE_BILLING_PRINT_SECONDS", default_value_t = DEFAULT_DEADLINE.as_secs(), value_parser = within::<u64>(1..=25))]
    pub(crate) print_seconds: u64,

    /// Failed log-ins per name or key in 15 minutes before further log-ins are slowed down, 1 to 10000.
    #[arg(long, value_name = "NUMBER", env = "USAGE_BILLING_LOGIN_FAILURES", default_value = "10", value_parser = within::<u32>(1..=10_000))]
    pub(crate) login_failures: u32,

    /// Maximum number of log-ins per address and minute, 1 to 1000000.
    #[arg(long, value_name = "NUMBER", env = "USAGE_BILLING_LOGINS_PER_MINUTE", default_value = "100", value_parser = within::<u32>(1..=1_000_000))]
    pub(crate) logins_per_minute: u32,

    /// Cost of password hashes, 10 to 16. Each step doubles the time; 12 takes about 0.25 s. A log-in renews a hash of another cost.
    #[arg(long, value_name = "NUMBER", env = "USAGE_BILLING_PASSWORD_COST", default_value_t = DEFAULT_COST, value_parser = within::<u32>(COSTS))]
    pub(crate) password_cost: u32,

    /// Writes log lines as JSON. In the environment: true or false.
    #[arg(long, env = "USAGE_BILLING_LOG_JSON", value_parser = truth)]
    pub(crate) log_json: bool,
}

/// Database of a server without a setting.
const DEFAULT_DATABASE_URL: &str = "sqlite://data/usage-billing.sqlite3";

/// The largest file of a secret in bytes.
const MAX_SECRET_FILE_BYTES: usize = 64 * 1024;

impl StoreSettings {
    /// Returns whether a database is named.
    pub(crate) const fn names_database(&self) -> bool {
        self.database_url.is_some() || self.database_url_file.is_some()
    }

    /// Returns the same settings with a SQLite file.
    pub(crate) fn with_file(&self, file: &Path) -> Self {
        let url = SecretString::from(format!("sqlite://{}", file.display()));
        Self { database_url: Some(url), database_url_file: None, ..self.clone() }
    }

    /// Returns the database URL.
    ///
    /// # Errors
    /// Returns [`CommandError::Setting`] if both the URL and a file are set.
    pub(crate) fn database_url(&self) -> CommandResult<SecretString> {
        let url = chosen_secret("--database-url", self.database_url.as_ref(), self.database_url_file.as_ref())?;
        Ok(url.unwrap_or_else(|| SecretString::from(DEFAULT_DATABASE_URL)))
    }
}

impl ServeSettings {
    /// Returns where webhooks may be sent.
    pub(crate) fn webhooks(&self) -> WebhookSettings {
        WebhookSettings {
            allow_http: self.webhook_allow_http,
            networks: self.webhook_allow_networks.clone(),
            proxy: self.webhook_proxy.clone(),
        }
    }

    /// Returns the password of the first administrator, if it is set.
    ///
    /// # Errors
    /// Returns [`CommandError::Setting`] if both the password and a file are set.
    pub(crate) fn admin_password(&self) -> CommandResult<Option<SecretString>> {
        chosen_secret("--admin-password", self.admin_password.as_ref(), self.admin_password_file.as_ref())
    }

    /// Returns the secrets that sign bearer tokens, newest first. There are none if the secrets of the database are used.
    ///
    /// # Errors
    /// Returns [`CommandError::Setting`] if both the secrets and a file are set.
    pub(crate) fn jwt_secrets(&self) -> CommandResult<Vec<SecretString>> {
        let first = self.jwt_secrets.iter().find(|secret| !secret.expose_secret().is_empty());
        match (&self.jwt_secrets_file, first) {
            (None, _) => Ok(self.jwt_secrets.clone()),
            (Some(_), Some(_)) => Err(set_twice("--jwt-secrets")),
            (Some(file), None) => Ok(file.expose_secret().split(',').map(SecretString::from).collect()),
        }
    }
}

/// Returns a secret from its setting or from its file. An empty setting counts as missing beside a file, because an environment
/// variable of an image or a unit can be emptied but not removed.
///
/// # Errors
/// Returns [`CommandError::Setting`] if both are set.
pub(crate) fn chosen_secret(
    flag: &str,
    value: Option<&SecretString>,
    file: Option<&SecretString>,
) -> CommandResult<Option<SecretString>> {
    match (value, file) {
        (Some(value), Some(_)) if !value.expose_secret().is_empty() => Err(set_twice(flag)),
        (_, Some(file)) => Ok(Some(file.clone())),
        (value, None) => Ok(value.cloned()),
    }
}

fn set_twice(flag: &str) -> CommandError {
    CommandError::Setting(format!("{flag} and {flag}-file are both set: set only one of them, as a flag or in the environment"))
}

/// Reads the file of a secret, without one line break at its end. Errors contain the path, never the content.
fn secret_file(path: &str) -> Result<SecretString, String> {
    let unreadable = |error: std::io::Error| format!("cannot read {path:?}: {error}");
    let file = File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(MAX_SECRET_FILE_BYTES as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() > MAX_SECRET_FILE_BYTES {
        return Err(format!("{path:?} must have at most {MAX_SECRET_FILE_BYTES} bytes"));
    }
    let line = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    Ok(SecretString::from(line))
}

/// Parses the instant of a sandbox's clock.
fn instant(text: &str) -> Result<Timestamp, String> {
    let at = Timestamp::parse(text).map_err(|_| "must be an instant in RFC 3339, such as 2026-01-15T00:00:00Z".to_owned())?;
    require_in_range(at).map_err(|_| "must be an instant of the years 2000 to 2100".to_owned())?;
    Ok(at)
}

/// Parses an integer within a range; the error for any other text contains the range.
fn within<N: FromStr + PartialOrd + Display + Clone>(range: RangeInclusive<N>) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
    }
}

fn shard_count(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number: &u32| (8..=256).contains(number) && number.is_power_of_two());
    number.ok_or_else(|| "must be a power of two from 8 to 256".to_owned())
}

fn address_and_port(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an IP address and a port from 0 to 65535, such as 127.0.0.1:8080".to_owned())
}

fn folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("must be an existing folder".to_owned()) }
}

fn email_address(text: &str) -> Result<OneLine, String> {
    let address = OneLine::parse(text).ok().filter(|address| address.as_str().validate_email());
    let address = address.ok_or_else(|| "must be an e-mail address, such as billing@example.com".to_owned())?;
    check_log_in_name(&address).map_err(|reason| reason.to_string())?;
    Ok(address)
}

fn secret_purpose(text: &str) -> Result<SecretPurpose, String> {
    match text {
        "tokens" => Ok(SecretPurpose::BearerToken),
        "cookies" => Ok(SecretPurpose::SessionCookie),
        _ => Err("must be tokens or cookies".to_owned()),
    }
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "must be read, finance, operator or owner".to_owned())
}

fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// Settings of `import`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ImportSettings {
    /// File: CSV with a header line, NDJSON, or a JSON array of events, plain or compressed with gzip.
    pub(crate) file: PathBuf,

    /// Name of the usage format that maps lines to events.
    #[arg(long, default_value = DEFAULT_FORMAT_NAME)]
    pub(crate) format: String,

    /// Name of the organization that the usage belongs to.
    #[arg(long, default_value = "default")]
    pub(crate) organization: String,

    /// Import name. Identifies lines without an idempotency_key, with their line number. Default: the file name.
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// Type of the file. Default: from the file extension.
    #[arg(long, value_enum)]
    pub(crate) input: Option<InputKind>,

    /// CSV delimiter. Default: that of a first line `sep=;`, else detected, if comma, semicolon or tab.
    #[arg(long, value_parser = Delimiter::parse)]
    pub(crate) delimiter: Option<Delimiter>,

    /// Decimal separator in quantity cells of CSV.
    #[arg(long, default_value = ".", value_parser = DecimalSeparator::parse)]
    pub(crate) decimal: DecimalSeparator,

    /// Reports recorded, rejected and duplicate events without storing anything.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// File for rejected lines with their reasons. Default: FILE.rejects.ndjson.
    #[arg(long)]
    pub(crate) rejects: Option<PathBuf>,

    /// Lines per transaction, 1 to 10000. Default: 1000; 10000 for a dry run, which then includes document totals.
    #[arg(long, value_name = "NUMBER", value_parser = within::<u16>(1..=10_000))]
    pub(crate) lines_per_transaction: Option<u16>,

    /// First line to import. Lines count from 1, including the header line; in a JSON array, elements count.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = within::<u64>(1..=u64::MAX))]
    pub(crate) from_line: u64,

    /// What happens to an event whose idempotency_key was used for other values: it is rejected, or it updates the recorded event.
    #[arg(long, value_enum, default_value_t = ConflictWord::Reject)]
    pub(crate) on_conflict: ConflictWord,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

/// What happens to an event whose key was used for other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConflictWord {
    /// The event is rejected.
    Reject,
    /// The recorded event gets these values.
    Update,
}

impl From<ConflictWord> for OnConflict {
    fn from(word: ConflictWord) -> Self {
        match word {
            ConflictWord::Reject => Self::Reject,
            ConflictWord::Update => Self::Update,
        }
    }
}

/// Type of a file to import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputKind {
    /// RFC 4180 with a header line.
    Csv,
    /// A JSON object on each line.
    Ndjson,
    /// An array of JSON objects, such as a usage report.
    Json,
}

impl From<InputKind> for FileKind {
    fn from(kind: InputKind) -> Self {
        match kind {
            InputKind::Csv => Self::Csv,
            InputKind::Ndjson => Self::Ndjson,
            InputKind::Json => Self::Json,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct VerifySettings {
    /// Records time and result in the database, for the console's home page and `GET /api/verification`.
    #[arg(long)]
    pub(crate) record: bool,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Debug, Args)]
pub(crate) struct ReportSettings {
    /// Name of the organization that the usage belongs to.
    #[arg(long, default_value = "default")]
    pub(crate) organization: String,

    /// Format of the report: csv, json or xlsx.
    #[arg(long, default_value = "csv", value_parser = report_format)]
    pub(crate) format: ReportFormat,

    /// Only events at or after this time: RFC 3339 with an offset.
    #[arg(long)]
    pub(crate) from: Option<String>,

    /// Only events before this time: RFC 3339 with an offset.
    #[arg(long)]
    pub(crate) to: Option<String>,

    /// Only events of this customer.
    #[arg(long)]
    pub(crate) customer_ref: Option<String>,

    /// Only events of this usage product.
    #[arg(long)]
    pub(crate) usage_product_ref: Option<String>,

    /// Only events of this contract.
    #[arg(long)]
    pub(crate) contract_ref: Option<String>,

    /// Only events whose latest revision is on this document.
    #[arg(long)]
    pub(crate) document_ref: Option<String>,

    /// Output file. Replaces an existing file when the report is complete. Default: standard output.
    #[arg(long)]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

fn report_format(word: &str) -> Result<ReportFormat, String> {
    let words = ReportFormat::ALL.map(ReportFormat::as_str).join(", ");
    ReportFormat::parse(word).ok_or_else(|| format!("must be one of {words}"))
}

#[derive(Debug, Args)]
pub(crate) struct BackupSettings {
    /// New file, readable only by its owner. An existing file is rejected.
    pub(crate) file: PathBuf,

    /// Makes the copy a sandbox: without administrators, API keys, secrets and webhook endpoints, with a clock that shows the latest
    /// instant in the database. Prints a new administrator of each organization. Its personal data is real.
    #[arg(long)]
    pub(crate) sandbox: bool,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreSettings {
    /// Backup: a SQLite file. If a `-wal` file is beside it, its content is restored too.
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Debug, Args)]
pub(crate) struct RestoredSettings {
    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Debug, Args)]
pub(crate) struct SandboxSettings {
    /// Name of the database, to confirm that it may lose its administrators and secrets.
    #[arg(long, value_name = "NAME")]
    pub(crate) confirm: String,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Debug, Args)]
pub(crate) struct DemoSettings {
    /// New file in which to keep the database of the demo. Default: a temporary file.
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
}

#[cfg(test)]
mod tests;
