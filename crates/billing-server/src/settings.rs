//! Flags and environment variables. Every setting has both, with the same syntax.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use billing_auth::{COSTS, DEFAULT_COST};
use billing_domain::access::{DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS, MAX_TOKEN_LIFETIME_SECONDS, Role, SecretPurpose};
use billing_domain::format::DEFAULT_FORMAT_NAME;
use billing_domain::text::OneLine;
use billing_http::{Network, PublicUrl};
use billing_import::{Delimiter, FileKind};
use billing_report::ReportFormat;
use clap::{Args, Parser, Subcommand, ValueEnum};
use secrecy::SecretString;
use validator::ValidateEmail as _;

/// A billing back end that your software calls over HTTP: it takes usage events, puts each one on the invoice it belongs
/// to, and names that invoice in the answer.
///
/// Without a command it serves. Every setting is a flag or an environment variable; the flag wins.
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
const FIRST_COMMANDS: &str = "First commands:
  usage-billing demo             bills three customers for a month, in a temporary database
  usage-billing serve --sample   serves, with sample data in a new database, and prints calls that use it
  usage-billing admin reset-password --email admin@example.com
                                 prints a new password for an administrator

A server describes itself at http://127.0.0.1:8080/ and its operations at http://127.0.0.1:8080/docs.
Exit codes: 0 done; 1 failed; 2 a setting is wrong.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves the interface; makes the database and the first administrator where there are none (the default).
    Serve(Box<ServeSettings>),
    /// Brings the database's schema up to date, and ends.
    Migrate(MigrateSettings),
    /// Makes organizations: separate businesses in one installation.
    Organization {
        #[command(subcommand)]
        command: OrganizationCommand,
    },
    /// Makes, lists and disables administrators: people who log in to make API keys.
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Lists and rotates API keys.
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Lists and rotates the secrets that all servers and organizations share.
    Secret {
        #[command(subcommand)]
        command: SecretCommand,
    },
    /// Recomputes every invariant from raw events, read-only; names what is wrong and exits with 1 when anything is.
    Verify(VerifySettings),
    /// Copies a SQLite database into a new file, as it is at one moment, beside a server that writes.
    Backup(BackupSettings),
    /// Takes the usage events of a file, each line once however often it is run; exits with 1 when any is rejected.
    Import(ImportSettings),
    /// Writes usage events as a table, read-only.
    Report(ReportSettings),
    /// Prints the OpenAPI document.
    Openapi,
    /// Bills a sample catalog's last month and prints every document and where its numbers come from.
    Demo(DemoSettings),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OrganizationCommand {
    /// Makes an organization, with an entity that bills in it.
    Create {
        /// Its name: one line, unique in the installation.
        #[arg(value_parser = OneLine::parse)]
        name: OneLine,
        #[command(flatten)]
        store: StoreSettings,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Makes an administrator; prints a generated password once when none is given.
    Create {
        /// E-mail address: the log-in name, unique in the installation.
        #[arg(long, value_parser = email_address)]
        email: OneLine,
        /// The organization, by name.
        #[arg(long, value_name = "NAME", value_parser = OneLine::parse)]
        organization: OneLine,
        /// Password, 12 to 72 bytes and no common one; generated and printed once when not given.
        #[arg(long, env = "USAGE_BILLING_ADMIN_PASSWORD", hide_env_values = true)]
        password: Option<SecretString>,
        /// What they may do: read; finance, issue and settle documents, too; operator, report usage and change catalog and contracts,
        /// too; owner, manage administrators and API keys, too.
        #[arg(long, default_value = "owner", value_parser = role)]
        role: Role,
        #[command(flatten)]
        store: StoreSettings,
    },
    /// Lists an organization's administrators: e-mail, reference, role, when they were made, whether they may log in.
    List {
        /// The organization, by name.
        #[arg(long, value_name = "NAME", default_value = "default", value_parser = OneLine::parse)]
        organization: OneLine,
        #[command(flatten)]
        store: StoreSettings,
    },
    /// Ends an administrator's sessions, and refuses log-in from now on. API keys go on working.
    Disable(AdminSelector),
    /// Lets an administrator log in again, with the password they have.
    Enable(AdminSelector),
    /// Gives an administrator another role, and ends their sessions.
    Role {
        #[command(flatten)]
        of: AdminSelector,
        /// What they may do: read, finance, operator or owner.
        #[arg(long, value_parser = role)]
        role: Role,
    },
    /// Gives an administrator another password and ends their sessions; prints a generated one once when none is given.
    ResetPassword {
        #[command(flatten)]
        of: AdminSelector,
        /// Password, 12 to 72 bytes and no common one; generated and printed once when not given.
        #[arg(long, env = "USAGE_BILLING_ADMIN_PASSWORD", hide_env_values = true)]
        password: Option<SecretString>,
        /// Has log-ins take no code any more, for who has lost their device and the recovery codes.
        #[arg(long)]
        remove_second_factor: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Lists an organization's API keys: log-in name, reference, name, scopes, when it was used last, when it ends.
    List {
        /// The organization, by name.
        #[arg(long, value_name = "NAME", default_value = "default", value_parser = OneLine::parse)]
        organization: OneLine,
        #[command(flatten)]
        store: StoreSettings,
    },
    /// Makes a key in the place of another, of the same name and scopes, and prints its password once. Both work until the overlap
    /// is over.
    Rotate {
        /// The key, by its log-in name.
        #[arg(long, value_name = "KEY")]
        key: String,
        /// How many hours the key goes on working beside its successor: 0 to 720.
        #[arg(long, value_name = "HOURS", default_value_t = DEFAULT_OVERLAP_HOURS, value_parser = clap::value_parser!(u16).range(0..=MAX_OVERLAP_HOURS as i64))]
        overlap_hours: u16,
        /// The organization, by name.
        #[arg(long, value_name = "NAME", default_value = "default", value_parser = OneLine::parse)]
        organization: OneLine,
        #[command(flatten)]
        store: StoreSettings,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Lists the secrets: name, what for, when it was made; none is shown itself.
    List(StoreSettings),
    /// Makes a secret in the place of another. Servers take up one for tokens by themselves within two minutes; what the one before signed
    /// goes on working. One for cookies they take up when they start, and all sessions end.
    Rotate {
        /// What it is for: tokens, or cookies.
        #[arg(long = "for", value_name = "WHAT", value_parser = secret_purpose)]
        purpose: SecretPurpose,
        /// Ends what the secrets before have signed, within half a minute: after a theft.
        #[arg(long)]
        end_present: bool,
        #[command(flatten)]
        store: StoreSettings,
    },
}

/// One administrator who is there.
#[derive(Debug, Args)]
pub(crate) struct AdminSelector {
    /// E-mail address they log in with.
    #[arg(long, value_parser = OneLine::parse)]
    pub(crate) email: OneLine,
    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StoreSettings {
    /// Where the database is: sqlite://PATH or postgres://USER:PASSWORD@HOST/DATABASE.
    #[arg(
        long,
        value_name = "URL",
        env = "USAGE_BILLING_DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite://data/usage-billing.sqlite3"
    )]
    pub(crate) database_url: SecretString,

    /// The most connections to the database, 2 to 500; on SQLite those that read.
    #[arg(long, value_name = "NUMBER", env = "USAGE_BILLING_DATABASE_CONNECTIONS", default_value = "16", value_parser = within::<u32>(2..=500))]
    pub(crate) database_connections: u32,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateSettings {
    /// Also spreads the tables over the nodes of a cluster, on a database with the extension Citus; on others there is nothing to
    /// spread.
    #[arg(long)]
    pub(crate) distribute: bool,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Debug, Args)]
pub(crate) struct ServeSettings {
    #[command(flatten)]
    pub(crate) store: StoreSettings,

    /// IP address and port to listen on; 0.0.0.0 is every address of the machine, port 0 any that is free.
    #[arg(long, value_name = "ADDRESS:PORT", env = "USAGE_BILLING_LISTEN", default_value = "127.0.0.1:8080", value_parser = address_and_port)]
    pub(crate) listen: SocketAddr,

    /// IP address and port for /metrics alone; without it, metrics are told beside the interface.
    #[arg(long, value_name = "ADDRESS:PORT", env = "USAGE_BILLING_METRICS_LISTEN", value_parser = address_and_port)]
    pub(crate) metrics_listen: Option<SocketAddr>,

    /// Where clients reach the service, http:// or https:// without a path; the address listened on when not given. https makes
    /// cookies secure.
    #[arg(long, value_name = "URL", env = "USAGE_BILLING_PUBLIC_URL")]
    pub(crate) public_url: Option<PublicUrl>,

    /// E-mail address of the first administrator; read at the first start only.
    #[arg(long, value_name = "EMAIL", env = "USAGE_BILLING_ADMIN_EMAIL", default_value = "admin@example.com", value_parser = email_address)]
    pub(crate) admin_email: OneLine,

    /// Password of the first administrator, 12 to 72 bytes and no common one; read at the first start only. When not given, one is
    /// generated, and printed once if standard output is a terminal.
    #[arg(long, value_name = "PASSWORD", env = "USAGE_BILLING_ADMIN_PASSWORD", hide_env_values = true)]
    pub(crate) admin_password: Option<SecretString>,

    /// On an empty database, also make a sample customer, contract and API key, and print calls that use them. In the
    /// environment true or false.
    #[arg(long, env = "USAGE_BILLING_SAMPLE", value_parser = truth)]
    pub(crate) sample: bool,

    /// Secrets that sign bearer tokens, newest first, comma-separated, 32 bytes or more each; kept in the
    /// database when not given.
    #[arg(long, value_name = "SECRETS", env = "USAGE_BILLING_JWT_SECRETS", hide_env_values = true, value_delimiter = ',')]
    pub(crate) jwt_secrets: Vec<SecretString>,

    /// How long a bearer token works, 300 to 86400 seconds.
    #[arg(long, value_name = "SECONDS", env = "USAGE_BILLING_TOKEN_LIFETIME_SECONDS", default_value = "3600", value_parser = within::<i64>(300..=MAX_TOKEN_LIFETIME_SECONDS))]
    pub(crate) token_lifetime_seconds: i64,

    /// Threads that read and write HTTP, 1 to 256.
    #[arg(long, value_name = "NUMBER", env = "USAGE_BILLING_WORKERS", default_value = "1", value_parser = within::<u16>(1..=256))]
    pub(crate) workers: u16,

    /// Proxies whose X-Forwarded-For is believed, comma-separated addresses or networks such as 10.0.0.0/8; none when not given.
    #[arg(long, value_name = "NETWORKS", env = "USAGE_BILLING_TRUSTED_PROXIES", value_delimiter = ',')]
    pub(crate) trusted_proxies: Vec<Network>,

    /// Seconds between two billing runs, 0 to 86400, with which answers to requests older than a week are forgotten; 0 for
    /// none by this server.
    #[arg(long, value_name = "SECONDS", env = "USAGE_BILLING_RUN_EVERY_SECONDS", default_value = "60", value_parser = within::<u64>(0..=86_400))]
    pub(crate) run_every_seconds: u64,

    /// A folder with fonts, for characters of documents that the built-in ones lack: those have Latin, Greek and Cyrillic.
    #[arg(long, value_name = "FOLDER", env = "USAGE_BILLING_FONTS_DIR", value_parser = folder)]
    pub(crate) fonts_dir: Option<PathBuf>,

    /// Failed log-ins of one name or key within 15 minutes before further ones are slowed down, 1 to 10000.
    #[arg(long, value_name = "NUMBER", env = "USAGE_BILLING_LOGIN_FAILURES", default_value = "10", value_parser = within::<u32>(1..=10_000))]
    pub(crate) login_failures: u32,

    /// Log-ins from one address in a minute, 1 to 1000000.
    #[arg(long, value_name = "NUMBER", env = "USAGE_BILLING_LOGINS_PER_MINUTE", default_value = "100", value_parser = within::<u32>(1..=1_000_000))]
    pub(crate) logins_per_minute: u32,

    /// The work of hashing an administrator's password, 10 to 16: each step doubles it, 12 takes about a quarter of a second. A password
    /// that was hashed with another is hashed anew when it is next logged in with.
    #[arg(long, value_name = "NUMBER", env = "USAGE_BILLING_PASSWORD_COST", default_value_t = DEFAULT_COST, value_parser = within::<u32>(COSTS))]
    pub(crate) password_cost: u32,

    /// Log lines as JSON instead of text. In the environment true or false.
    #[arg(long, env = "USAGE_BILLING_LOG_JSON", value_parser = truth)]
    pub(crate) log_json: bool,
}

/// Parses an integer within a range; the error for any other text contains the range.
fn within<N: FromStr + PartialOrd + Display + Clone>(range: RangeInclusive<N>) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
    }
}

fn address_and_port(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an IP address and a port from 0 to 65535, such as 127.0.0.1:8080".to_owned())
}

fn folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("must be a folder that is there".to_owned()) }
}

fn email_address(text: &str) -> Result<OneLine, String> {
    let address = OneLine::parse(text).ok().filter(|address| address.as_str().validate_email());
    address.ok_or_else(|| "must be an e-mail address, such as billing@example.com".to_owned())
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

/// What an import takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ImportSettings {
    /// The file: CSV with a line of column names, NDJSON, or a JSON array of events.
    pub(crate) file: PathBuf,

    /// The usage format that makes events of its lines, by name.
    #[arg(long, default_value = DEFAULT_FORMAT_NAME)]
    pub(crate) format: String,

    /// The organization whose usage it is, by name.
    #[arg(long, default_value = "default")]
    pub(crate) organization: String,

    /// What lines without an idempotency_key are known by when they come again, with their numbers; the file's name when not
    /// given.
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// What the file is; told by the end of its name when not given.
    #[arg(long, value_enum)]
    pub(crate) input: Option<InputKind>,

    /// What is between two cells of CSV; comma, semicolon or tab is recognised when not given.
    #[arg(long, value_parser = Delimiter::parse)]
    pub(crate) delimiter: Option<Delimiter>,

    /// Says what would be recorded, refused and doubled, and stores nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Where rejected lines go, with their reasons; FILE.rejects.ndjson when not given.
    #[arg(long)]
    pub(crate) rejects: Option<PathBuf>,

    /// Lines taken in one transaction, 1 to 10000 [default: 1000; of a dry run 10000, so that it can say what documents come to].
    #[arg(long, value_name = "NUMBER", value_parser = within::<u16>(1..=10_000))]
    pub(crate) lines_per_transaction: Option<u16>,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

/// What a file to import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputKind {
    /// RFC 4180 with a line of column names.
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
    /// Records in the database when it ran and what it found: what the console's first page and `GET /api/verification` tell.
    #[arg(long)]
    pub(crate) record: bool,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Debug, Args)]
pub(crate) struct ReportSettings {
    /// The organization whose usage is reported, by name.
    #[arg(long, default_value = "default")]
    pub(crate) organization: String,

    /// How the report is written: csv, json or xlsx.
    #[arg(long, default_value = "csv", value_parser = report_format)]
    pub(crate) format: ReportFormat,

    /// Events that happened at this instant or later: RFC 3339 with an offset.
    #[arg(long)]
    pub(crate) from: Option<String>,

    /// Events that happened before this instant: RFC 3339 with an offset.
    #[arg(long)]
    pub(crate) to: Option<String>,

    /// This customer's events.
    #[arg(long)]
    pub(crate) customer_ref: Option<String>,

    /// Events of this usage product.
    #[arg(long)]
    pub(crate) usage_product_ref: Option<String>,

    /// Events that count in this contract.
    #[arg(long)]
    pub(crate) contract_ref: Option<String>,

    /// Events whose latest change stands on this document.
    #[arg(long)]
    pub(crate) document_ref: Option<String>,

    /// The file to write, in place of one that is there once the report is whole; standard output when not given.
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
    /// The file to make, which only its owner may read; one that is there is refused.
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) store: StoreSettings,
}

#[derive(Debug, Args)]
pub(crate) struct DemoSettings {
    /// Keep the demo's database in this new file instead of a temporary one.
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
}
