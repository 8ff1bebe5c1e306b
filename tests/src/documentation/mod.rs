//! Tests that use a page of the documentation as its reader does.
//!
//! They run the calls of the page one after another in one shell, and compare the responses with the page.

mod blocks;
mod shell;
mod shown;

use std::path::{Path, PathBuf};

use crate::server::{ADMIN_PASSWORD, free_port};
use crate::{Client, Clock, Database, Server, when};

pub use blocks::{Block, Kind, Page};
use shell::{Ran, Shell};

/// The page whose section [`LOG_IN`] describes how callers log in. Other pages continue after this section.
const API_GUIDE: &str = "docs/api.md";
const LOG_IN: &str = "Log in";
/// The values that pages show in place of values that differ between servers.
const SHOWN_ADDRESS: &str = "http://127.0.0.1:8080";
const SHOWN_PASSWORD: &str = "the password that was printed";
/// The ports that programs on a page listen on. The tests replace them by free ones.
const SHOWN_PORTS: [&str; 2] = ["8090", "8091"];
/// The flags with which a server sends webhooks to programs on a page.
const TO_PROGRAMS: [&str; 3] = ["--webhook-allow-http", "--webhook-allow-networks", "127.0.0.1"];

/// Returns the root directory of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the repository").to_owned()
}

/// The state in which the calls of a page start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// An empty database.
    Empty,
    /// A caller who has logged in as the API guide describes.
    LoggedIn,
    /// Sample data, after the calls that the server prints with it.
    Sample,
}

/// Runs the calls of a page on a separate server, with a clock that the page sets.
///
/// # Errors
/// Returns every failed call and every response that differs from the page, with its line.
pub fn try_page(page: &Page, start: Start) -> Result<(), String> {
    let mut reader = Reader::begin(page, start);
    match start {
        Start::Empty => {}
        Start::LoggedIn => {
            let guide = Page::read(API_GUIDE);
            for block in guide.blocks.iter().filter(|block| block.kind() == Kind::Calls && in_log_in(block)) {
                reader.call(&guide, block);
                reader.settle();
            }
        }
        Start::Sample => {
            let calls = sample_calls(&reader.server);
            reader.run("the printed calls", &calls);
        }
    }
    for block in page.blocks.iter().filter(|block| block.not_run.is_none()) {
        match block.kind() {
            Kind::Calls => {
                reader.settle();
                reader.call(page, block);
            }
            Kind::Transcript => {
                reader.settle();
                reader.transcript(page, block);
            }
            Kind::Answer => reader.shown.push((page.place(block), block.language.clone(), block.text.clone())),
            Kind::DocTest | Kind::Other => {}
        }
    }
    reader.settle();
    if reader.wrong.is_empty() { Ok(()) } else { Err(reader.wrong.join("\n\n")) }
}

/// Returns the calls that a server prints with its sample, with an API key in place of their placeholders. At a terminal, the
/// server would print a key.
///
/// # Panics
/// Panics if the server prints no calls.
pub fn sample_calls(server: &Server) -> String {
    let printed = server.stdout();
    let (_, calls) = printed.split_once("A sample customer with a contract exists.").expect("the calls of the sample");
    let calls: Vec<&str> = calls.lines().filter(|line| line.starts_with("  ")).collect();
    let (calls, placeholders) = (calls.join("\n"), r#""api_key":"...","password":"...""#);
    assert!(calls.contains(placeholders), "{printed}");
    let key = Client::admin(server).generate_key(&serde_json::json!({}));
    calls.replace(placeholders, &format!(r#""api_key":"{}","password":"{}""#, key.api_key, key.password))
}

/// Returns whether a block of the API guide is before the first section or in the section about logging in.
fn in_log_in(block: &Block) -> bool {
    block.section.is_empty() || block.section == LOG_IN
}

/// A reader who follows a page.
struct Reader {
    server: Server,
    clock: Clock,
    shell: Shell,
    /// The block that gets a token with `key.json`.
    log_in: String,
    /// Free ports for the programs of the page.
    ports: [String; 2],
    /// The place and the output of the last calls. `shown` contains the responses to these calls that the page has
    /// shown so far.
    printed: Option<(String, String)>,
    shown: Vec<(String, String, String)>,
    wrong: Vec<String>,
}

impl Reader {
    fn begin(page: &Page, start: Start) -> Self {
        let now = page.blocks.iter().find_map(|block| block.at.clone()).unwrap_or_else(when::now);
        let (database, clock) = (Database::sqlite(), Clock::at(&now));
        let flags: &[&str] = match start {
            Start::Empty => &[],
            Start::LoggedIn => &TO_PROGRAMS,
            Start::Sample => &["--sample"],
        };
        let server = Server::start_on_with(&database, &clock, flags);
        let mut environment = clock.environment().to_vec();
        environment.push(("USAGE_BILLING_DATABASE_URL", database.url().to_owned()));
        let shell = Shell::start(&environment, database);
        let guide = Page::read(API_GUIDE);
        let log_in = guide.blocks.iter().find(|block| block.section == LOG_IN && block.text.contains("TOKEN=$("));
        let log_in = log_in.expect("a block that logs software in").text.clone();
        let ports = SHOWN_PORTS.map(|_| free_port().to_string());
        Self { server, clock, shell, log_in, ports, printed: None, shown: Vec::new(), wrong: Vec::new() }
    }

    fn call(&mut self, page: &Page, block: &Block) {
        self.turn(block);
        self.run(&page.place(block), &block.text);
    }

    /// Sets the clock if the page says so, and logs in again, because a token is not valid on another day.
    fn turn(&mut self, block: &Block) {
        let Some(instant) = &block.at else { return };
        self.clock.set(instant);
        if self.shell.has("key.json") {
            let log_in = self.of_this_server(&self.log_in);
            let ran = self.shell.run(&log_in);
            assert!(ran.ended_well, "{}", ran.stderr);
        }
    }

    fn run(&mut self, place: &str, calls: &str) {
        let calls = self.of_this_server(calls);
        let Ran { stdout, stderr, ended_well } = self.shell.run(&calls);
        if !ended_well {
            self.wrong.push(format!("{place}: the calls fail\n{stdout}{stderr}"));
        }
        self.printed = Some((place.to_owned(), stdout));
    }

    fn transcript(&mut self, page: &Page, block: &Block) {
        self.turn(block);
        let mut commands = block.text.split("$ ");
        assert_eq!(commands.next(), Some(""), "{}: a transcript begins with a command", page.place(block));
        for command in commands {
            let (command, stated) = command.split_once('\n').unwrap_or((command, ""));
            let command = self.of_this_server(command);
            // A transcript also shows the standard error of a command, and a command may fail.
            let ran = self.shell.run(&format!("{{ {command}\n}} 2>&1 || true"));
            self.wrong.extend(shown::text(stated, &ran.stdout).map(|found| format!("{}: {found}", page.place(block))));
        }
    }

    fn of_this_server(&self, calls: &str) -> String {
        let calls = calls.replace(SHOWN_ADDRESS, self.server.base_url()).replace(SHOWN_PASSWORD, ADMIN_PASSWORD);
        let ports = SHOWN_PORTS.iter().zip(&self.ports);
        ports.fold(calls, |calls, (shown, port)| calls.replace(&format!(":{shown}"), &format!(":{port}")))
    }

    /// Compares the output of the last calls with the responses on the page.
    fn settle(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        match self.printed.take() {
            Some((place, printed)) => self.wrong.extend(shown::compare(&place, &printed, &shown)),
            None => self.wrong.extend(shown.iter().map(|(place, ..)| format!("{place}: an answer without a call"))),
        }
    }
}
