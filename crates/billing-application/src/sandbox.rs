//! The billing clock of a sandbox: what it shows, and how a request moves it.
//!
//! An advance stops at each instant at which something is due, and does there what the scheduler of a live server does. So the
//! documents, their dates and the notifications are those of a server that ran all the time.

use billing_domain::access::{Principal, Role};
use billing_domain::calendar::Timestamp;
use billing_domain::ledger::issue::next_due_after;
use billing_domain::ports::{Access, DueContract, SandboxClock, Tx, transact};
use billing_domain::refs::{ContractKey, OrganizationId};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;

use crate::administrators::{NewAdministrator, insert_administrator};
use crate::billing_run::{self, BillingReport};
use crate::book_repository::{load_books, load_headers};
use crate::carry_out::AuditContext;
use crate::error::{UseCaseError, UseCaseResult};
use crate::names::ObjectNames;
use crate::run_history::FailedContract;
use crate::{Cx, Services, Transactions, UseCase, allow};

/// The number of contracts looked up at a time.
const CONTRACTS_PER_PAGE: u32 = 200;

/// The billing clock of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockView {
    /// The instant that the clock shows.
    pub now: Timestamp,
    /// The first later instant at which something is due.
    pub next: Option<Timestamp>,
}

/// The parameters of an advance.
#[derive(Clone, Copy)]
pub struct AdvanceRequest<'r> {
    /// The instant to move the clock to.
    pub to: Timestamp,
    /// Whether to do what falls due. Otherwise, time passes as if the server had been off.
    pub run: bool,
    /// Returns whether there is time for another step.
    pub may_go_on: &'r dyn Fn() -> bool,
    /// Numbers notifications, or waits a moment for the thread that does. Called until none is without a position. `None` leaves them
    /// without.
    pub number: Option<&'r dyn Fn() -> UseCaseResult<()>>,
}

impl AdvanceRequest<'static> {
    /// Returns the parameters of an advance that does what falls due, up to its end, without a wait for the positions of
    /// notifications.
    pub const fn whole(to: Timestamp) -> Self {
        Self { to, run: true, may_go_on: &|| true, number: None }
    }
}

/// What happened in an advance, for one organization.
#[derive(Debug)]
pub struct ClockAdvance {
    /// The instant that the clock shows now.
    pub now: Timestamp,
    /// Whether this is the requested instant. If not, time ran out, and the same request goes on.
    pub reached: bool,
    /// The number of issued documents.
    pub issued: u64,
    /// The number of voided drafts.
    pub voided: u64,
    /// The number of notifications.
    pub notifications: u64,
    /// What still cannot be billed.
    pub failed: Vec<FailedContract>,
    /// The names of the contracts and documents that cannot be billed.
    pub names: ObjectNames,
}

/// Returns the billing clock of a sandbox.
///
/// # Errors
/// Returns [`UseCaseError::Conflict`] `not_a_sandbox` on a live server.
pub fn get_clock(cx: &mut Cx<'_>) -> UseCaseResult<ClockView> {
    let now = sandbox_of(cx.services)?.now();
    Ok(ClockView { now, next: next_instant(cx.tx, now)? })
}

/// Moves the billing clock of a sandbox, for all organizations. With `run`, it stops at each instant at which something is due.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Conflict`] `not_a_sandbox` on a live server, or `clock_is_advancing` if another advance does not end.
/// - [`UseCaseError::Invalid`] `clock_only_forward` for an earlier instant, or `out_of_range` for one after the year 2100.
pub fn advance_clock(services: &Services, principal: &Principal, wanted: AdvanceRequest<'_>) -> UseCaseResult<ClockAdvance> {
    let organization = allow(principal, UseCase::AdvanceClock)?;
    let clock = sandbox_of(services)?;
    require_in_range(wanted.to)?;
    let _advance = Advance::begin(clock)?;
    let begun_at = clock.now();
    if wanted.to < begun_at {
        let detail = format!("must not be before the clock, which shows {begun_at}: a sandbox cannot go back");
        return Err(Violations::one(&["to"], "clock_only_forward", detail).into());
    }
    let first = last_position(services, organization)?;
    let mut advanced = ClockAdvance {
        now: begun_at,
        reached: true,
        issued: 0,
        voided: 0,
        notifications: 0,
        failed: Vec::new(),
        names: ObjectNames::default(),
    };
    if wanted.run {
        advanced.reached = run_until(services, clock, organization, wanted, &mut advanced)?;
    }
    if advanced.reached {
        move_to(services, clock, wanted.to)?;
    }
    advanced.now = clock.now();
    if let Some(number) = wanted.number {
        wait_until_numbered(services, number, wanted.may_go_on)?;
    }
    advanced.notifications = last_position(services, organization)?.saturating_sub(first);
    let report = BillingReport { failed: std::mem::take(&mut advanced.failed), ..BillingReport::default() };
    let transactions = &mut Transactions::Separate(services, Some(principal));
    advanced.names = billing_run::names_in(transactions, organization, &report)?;
    advanced.failed = report.failed;
    Ok(advanced)
}

/// An administrator of a copy that became a sandbox.
#[derive(Clone, Debug)]
pub struct SandboxAdministrator {
    /// The name of the organization.
    pub organization: OneLine,
    /// The e-mail address, which names the administrator at the log-in.
    pub email: OneLine,
    /// The password.
    pub password: String,
}

/// Makes a copy of a live database a sandbox: removes what lets anybody in and what sends anything, and creates an owner of each
/// organization. Its clock shows what the billing clock of `services` shows.
///
/// # Errors
/// Returns [`UseCaseError::Conflict`] `is_a_sandbox` if the database is one already.
pub fn make_sandbox(services: &Services) -> UseCaseResult<Vec<SandboxAdministrator>> {
    transact(&*services.store, Access::Write, |tx| {
        if tx.sandbox_now()?.is_some() {
            let detail = "the database is a sandbox already".to_owned();
            return Err(UseCaseError::Conflict { code: "is_a_sandbox", detail });
        }
        tx.delete_access()?;
        let mut made = Vec::new();
        for (index, id) in tx.all_organizations()?.into_iter().enumerate() {
            let organization = tx.organization(id)?.ok_or(UseCaseError::InvariantViolation("an organization without a row"))?;
            let email = OneLine::parse(&format!("sandbox-{}@example.com", index + 1))
                .map_err(|_| UseCaseError::InvariantViolation("an e-mail address with a line break"))?;
            let password = services.keys.new_secret()?;
            let password_hash = services.passwords.hash(&password)?;
            let new = NewAdministrator { email: &email, role: Role::Owner, password_hash, one_time_until: None };
            insert_administrator(services, tx, AuditContext::command_line(id), new)?;
            made.push(SandboxAdministrator { organization: organization.name, email, password: password.to_string() });
        }
        tx.put_sandbox_now(services.now())?;
        Ok(made)
    })
}

/// Checks that the billing clock of a sandbox may show an instant.
///
/// # Errors
/// Returns [`UseCaseError::Invalid`] `out_of_range` outside the years 2000 to 2100.
pub fn require_in_range(at: Timestamp) -> UseCaseResult<()> {
    let is_in_range = ["2000-01-01T00:00:00Z", "2101-01-01T00:00:00Z"].map(|limit| Timestamp::parse(limit).ok());
    match is_in_range {
        [Some(first), Some(end)] if at >= first && at < end => Ok(()),
        _ => Err(Violations::one(&["to"], "out_of_range", "must be an instant of the years 2000 to 2100").into()),
    }
}

fn sandbox_of(services: &Services) -> UseCaseResult<&dyn SandboxClock> {
    services.sandbox.as_deref().ok_or_else(|| UseCaseError::Conflict {
        code: "not_a_sandbox",
        detail: "the clock of a live server cannot be moved: start a sandbox with `usage-billing serve --sandbox`".to_owned(),
    })
}

/// An advance in progress.
struct Advance<'c>(&'c dyn SandboxClock);

impl<'c> Advance<'c> {
    fn begin(clock: &'c dyn SandboxClock) -> UseCaseResult<Self> {
        if clock.begin_advance() {
            return Ok(Self(clock));
        }
        let detail = "another request moves the clock: wait for its response, and send this one again".to_owned();
        Err(UseCaseError::Conflict { code: "clock_is_advancing", detail })
    }
}

impl Drop for Advance<'_> {
    fn drop(&mut self) {
        self.0.end_advance();
    }
}

/// Does what is due now and at each instant up to `wanted.to`. Returns whether nothing is left to do.
fn run_until(
    services: &Services,
    clock: &dyn SandboxClock,
    organization: OrganizationId,
    wanted: AdvanceRequest<'_>,
    advanced: &mut ClockAdvance,
) -> UseCaseResult<bool> {
    loop {
        loop {
            let report = billing_run::run_billing_while(services, wanted.may_go_on)?;
            let is_cut_short = report.next.is_some();
            let is_done = report.issued.is_empty() && report.voided.is_empty();
            let own = |documents: &[billing_run::BilledDocument]| {
                documents.iter().filter(|document| document.organization == organization).count() as u64
            };
            advanced.issued += own(&report.issued);
            advanced.voided += own(&report.voided);
            advanced.failed = report.failed.into_iter().filter(|failed| failed.organization == organization).collect();
            if is_cut_short || !(wanted.may_go_on)() {
                return Ok(false);
            }
            if is_done {
                break;
            }
        }
        let next = transact(&*services.store, Access::Read, |tx| next_instant(tx, clock.now()))?;
        match next.filter(|next| *next <= wanted.to) {
            Some(next) => move_to(services, clock, next)?,
            None => return Ok(true),
        }
    }
}

/// Moves the clock. The store knows the instant before anything uses it, so that the clock of a server that stops does not go back.
fn move_to(services: &Services, clock: &dyn SandboxClock, at: Timestamp) -> UseCaseResult<()> {
    if at > clock.now() {
        transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.put_sandbox_now(at)?))?;
        clock.move_to(at);
    }
    Ok(())
}

/// Returns the first instant after `now` at which something is due. Contracts that are due already, because a document cannot be
/// issued, have no later instant in the store: their books know it.
fn next_instant(tx: &mut dyn Tx, now: Timestamp) -> UseCaseResult<Option<Timestamp>> {
    let mut next = tx.next_due_instant(now)?;
    let mut after: Option<DueContract> = None;
    loop {
        let page = tx.contracts_due(None, now, after, CONTRACTS_PER_PAGE)?;
        let Some(last) = page.last() else { return Ok(next) };
        after = Some(*last);
        for of_one in page.chunk_by(|one, other| one.key.organization == other.key.organization) {
            let keys: Vec<ContractKey> = of_one.iter().map(|due| due.key).collect();
            next = next.into_iter().chain(next_of(tx, &keys, now)?).min();
        }
    }
}

/// Returns the first instant after `now` at which one of these contracts of one organization has a document to issue.
fn next_of(tx: &mut dyn Tx, keys: &[ContractKey], now: Timestamp) -> UseCaseResult<Option<Timestamp>> {
    let Some(first) = keys.first() else { return Ok(None) };
    let headers = load_headers(tx, first.organization, keys)?;
    let books = load_books(tx, first.organization, headers, now)?;
    // A book that cannot be evaluated fails at each instant anyway.
    Ok(books.iter().filter_map(|book| next_due_after(book, now).ok().flatten()).min())
}

/// Waits until all notifications have positions, so that the feed has them.
fn wait_until_numbered(
    services: &Services,
    number: &dyn Fn() -> UseCaseResult<()>,
    may_go_on: &dyn Fn() -> bool,
) -> UseCaseResult<()> {
    loop {
        let waiting = transact(&*services.store, Access::Glance, |tx| Ok::<_, UseCaseError>(tx.organizations_to_number()?))?;
        if waiting.is_empty() || !may_go_on() {
            return Ok(());
        }
        number()?;
    }
}

fn last_position(services: &Services, organization: OrganizationId) -> UseCaseResult<u64> {
    transact(&*services.store, Access::Glance, |tx| Ok::<_, UseCaseError>(tx.last_position(organization)?))
}
