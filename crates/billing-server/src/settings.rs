//! Flags and environment: every setting has both, and says the same in both.

use std::net::SocketAddr;
use std::path::PathBuf;

use billing_domain::format::DEFAULT_FORMAT_NAME;
use billing_http::{Network, PublicUrl};
use billing_import::{Delimiter, FileKind};
use billing_report::ReportFormat;
use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use secrecy::SecretString;

/// Usage billing: takes usage events over HTTP and puts each one on its invoice in the same request.
#[derive(Debug, Parser)]
#[command(name = "usage-billing", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Settings of `serve`, which runs when no command is given.
    #[command(flatten)]
    pub(crate) serve: ServeSettings,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves the interface; makes the database and the first administrator where there are none (the default).
    Serve(Box<ServeSettings>),
    /// Brings the database's schema up to date.
    Migrate(StoreSettings),
    /// Makes organizations.
    Organization {
        #[command(subcommand)]
        command: OrganizationCommand,
    },
    /// Makes administrators.
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Recomputes every invariant from raw events, read-only; names what is wrong and exits with 1 when anything is.
    Verify(StoreSettings),
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
    /// Makes an organization.
    Create {
        /// Its name, unique in the installation.
        name: String,
        #[command(flatten)]
        store: StoreSettings,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Makes an administrator; prints a generated password once when none is given.
    Create {
        /// E-mail: the log-in name.
        #[arg(long)]
        email: String,
        /// The organization, by name.
        #[arg(long)]
        organization: String,
        /// Password, 12 to 72 bytes.
        #[arg(long, env = "USAGE_BILLING_ADMIN_PASSWORD", hide_env_values = true)]
        password: Option<SecretString>,
        #[command(flatten)]
        store: StoreSettings,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StoreSettings {
    /// sqlite://PATH or postgres://…
    #[arg(
        long,
        env = "USAGE_BILLING_DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite://data/usage-billing.sqlite3"
    )]
    pub(crate) database_url: SecretString,

    /// Connections to the database at most.
    #[arg(long, env = "USAGE_BILLING_DATABASE_CONNECTIONS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=500))]
    pub(crate) database_connections: u32,
}

#[derive(Debug, Args)]
pub(crate) struct ServeSettings {
    #[command(flatten)]
    pub(crate) store: StoreSettings,

    /// Address to listen on.
    #[arg(long, env = "USAGE_BILLING_LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    /// The address clients use, when it isn't the one listened on; https makes cookies secure.
    #[arg(long, env = "USAGE_BILLING_PUBLIC_URL")]
    pub(crate) public_url: Option<PublicUrl>,

    /// E-mail of the first administrator.
    #[arg(long, env = "USAGE_BILLING_ADMIN_EMAIL", default_value = "admin@example.com")]
    pub(crate) admin_email: String,

    /// Password of the first administrator, 12 to 72 bytes; generated and printed once when not given.
    #[arg(long, env = "USAGE_BILLING_ADMIN_PASSWORD", hide_env_values = true)]
    pub(crate) admin_password: Option<SecretString>,

    /// On an empty database, also make a sample customer, contract and API key, and print calls that use them.
    #[arg(long, env = "USAGE_BILLING_SAMPLE", value_parser = FalseyValueParser::new())]
    pub(crate) sample: bool,

    /// Secrets that sign bearer tokens, newest first, comma-separated, 32 bytes or more each; kept in the
    /// database when not given.
    #[arg(long, env = "USAGE_BILLING_JWT_SECRETS", hide_env_values = true, value_delimiter = ',')]
    pub(crate) jwt_secrets: Vec<SecretString>,

    /// How long a bearer token works, in seconds.
    #[arg(long, env = "USAGE_BILLING_TOKEN_LIFETIME_SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(i64).range(300..=86_400))]
    pub(crate) token_lifetime_seconds: i64,

    /// Threads that serve requests.
    #[arg(long, env = "USAGE_BILLING_WORKERS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: u16,

    /// Proxies whose X-Forwarded-For is believed, comma-separated addresses or networks.
    #[arg(long, env = "USAGE_BILLING_TRUSTED_PROXIES", value_delimiter = ',')]
    pub(crate) trusted_proxies: Vec<Network>,

    /// Seconds between two billing runs, with which answers to requests older than a week are forgotten; 0 for none by this server.
    #[arg(long, env = "USAGE_BILLING_RUN_EVERY_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(crate) run_every_seconds: u64,

    /// Failed log-ins of one name or key within 15 minutes before further ones are slowed down.
    #[arg(long, env = "USAGE_BILLING_LOGIN_FAILURES", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) login_failures: u32,

    /// Log-ins from one address in a minute.
    #[arg(long, env = "USAGE_BILLING_LOGINS_PER_MINUTE", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) logins_per_minute: u32,

    /// Log lines as JSON instead of text.
    #[arg(long, env = "USAGE_BILLING_LOG_JSON", value_parser = FalseyValueParser::new())]
    pub(crate) log_json: bool,
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

    /// Lines taken in one transaction.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) lines_per_transaction: u16,

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
pub(crate) struct ReportSettings {
    /// The organization whose usage is reported, by name.
    #[arg(long, default_value = "default")]
    pub(crate) organization: String,

    /// How the report is written.
    #[arg(long, default_value = "csv", value_parser = report_format)]
    pub(crate) format: ReportFormat,

    /// Events that happened at this instant or later: RFC 3339 with an offset.
    #[arg(long)]
    pub(crate) from: Option<String>,

    /// Events that happened before this instant.
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
pub(crate) struct DemoSettings {
    /// Keep the demo's database in this new file instead of a temporary one.
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
}
