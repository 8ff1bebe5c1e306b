//! The audit log: each use case that changes something but usage events adds one entry, in the transaction of the change.
//!
//! Usage events are told by their revisions; nothing is added on their way.

use billing_domain::access::{Administrator, ApiKey, Permission, Principal, RequestId};
use billing_domain::audit::{AuditAction, AuditActor, AuditEntry, AuditPosition, AuditedKind};
use billing_domain::catalog::{Pricing, UsageProduct};
use billing_domain::charge::Charge;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::party::Organization;
use billing_domain::party::bank::BankAccount;
use billing_domain::ports::{Access, AuditFilter, AuditPart, Tx, transact};
use billing_domain::receivables::{Application, Payment};
use billing_domain::refs::{AuditRef, BillingRunRef, ImportRef, OrganizationId};
use billing_domain::tax::ExchangeRate;

use crate::catalog::{CustomerView, EntityView};
use crate::contracts::ContractView;
use crate::documents::DocumentView;
use crate::error::{UseCaseError, UseCaseResult};
use crate::formats::FormatView;
use crate::usage::ImportSummary;
use crate::{Services, UseCase, allow};

/// A thing that was changed, as it was or is.
#[derive(Clone, Copy, Debug)]
pub enum AuditSubject<'a> {
    /// An organization.
    Organization(&'a Organization),
    /// An administrator.
    Administrator(&'a Administrator),
    /// An API key.
    ApiKey(&'a ApiKey),
    /// A customer.
    Customer(&'a CustomerView),
    /// A supplier entity.
    Entity(&'a EntityView),
    /// A usage product.
    UsageProduct(&'a UsageProduct),
    /// A pricing.
    Pricing(&'a Pricing),
    /// A usage format.
    Format(&'a FormatView),
    /// A bank account.
    BankAccount(&'a BankAccount),
    /// An exchange rate.
    ExchangeRate(&'a ExchangeRate),
    /// A contract.
    Contract(&'a ContractView),
    /// A charge.
    Charge(&'a Charge),
    /// A document.
    Document(&'a DocumentView),
    /// A payment or a refund.
    Payment(&'a Payment),
    /// A credit or a payment that was applied to a document.
    Application(&'a Application),
    /// What a billing run did in a transaction.
    BillingRun(&'a RunSummary),
    /// A file of usage events.
    UsageFile(&'a ImportFileSummary),
    /// What was undone of a file of usage events.
    UndoneFile(&'a ImportUndoSummary),
}

/// What a billing run did in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The same in all transactions of a run.
    pub run_ref: BillingRunRef,
    /// The documents that were issued.
    pub issued: Vec<DocumentNumber>,
    /// The drafts that were put out of force.
    pub voided: Vec<DocumentNumber>,
}

/// What became of a file of usage events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportFileSummary {
    /// What its lines are known by, where it has a name.
    pub name: Option<String>,
    /// The import.
    pub import_ref: ImportRef,
    /// What was taken.
    pub taken: ImportSummary,
    /// Lines that were refused.
    pub refused: u64,
}

/// An import that was undone, as far as one request did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportUndoSummary {
    /// What the file's lines were known by, where it had a name.
    pub name: Option<String>,
    /// The import.
    pub import_ref: ImportRef,
    /// Events that were deleted.
    pub deleted: u64,
    /// Events that were deleted before.
    pub already_deleted: u64,
    /// Events that couldn't be deleted.
    pub refused: u64,
}

/// What a file without a name is called.
const NO_NAME: &str = "-";

impl AuditSubject<'_> {
    /// What it is.
    pub const fn kind(self) -> AuditedKind {
        match self {
            Self::Organization(_) => AuditedKind::Organization,
            Self::Administrator(_) => AuditedKind::Administrator,
            Self::ApiKey(_) => AuditedKind::ApiKey,
            Self::Customer(_) => AuditedKind::Customer,
            Self::Entity(_) => AuditedKind::Entity,
            Self::UsageProduct(_) => AuditedKind::UsageProduct,
            Self::Pricing(_) => AuditedKind::Pricing,
            Self::Format(_) => AuditedKind::Format,
            Self::BankAccount(_) => AuditedKind::BankAccount,
            Self::ExchangeRate(_) => AuditedKind::ExchangeRate,
            Self::Contract(_) => AuditedKind::Contract,
            Self::Charge(_) => AuditedKind::Charge,
            Self::Document(_) => AuditedKind::Document,
            Self::Payment(_) => AuditedKind::Payment,
            Self::Application(_) => AuditedKind::Application,
            Self::BillingRun(_) => AuditedKind::BillingRun,
            Self::UsageFile(_) | Self::UndoneFile(_) => AuditedKind::UsageFile,
        }
    }

    /// What it is known by. A document that isn't opened has nothing.
    fn reference(self) -> String {
        match self {
            Self::Organization(organization) => organization.name.to_string(),
            Self::Administrator(administrator) => administrator.admin_ref.to_string(),
            Self::ApiKey(key) => key.api_key_ref.to_string(),
            Self::Customer(view) => view.customer.customer_ref.to_string(),
            Self::Entity(view) => view.entity.entity_ref.to_string(),
            Self::UsageProduct(product) => product.usage_product_ref.to_string(),
            Self::Pricing(pricing) => pricing.pricing_ref.to_string(),
            Self::Format(view) => view.format.format_ref.to_string(),
            Self::BankAccount(account) => account.account_ref.to_string(),
            Self::ExchangeRate(rate) => format!("{}/{}/{}", rate.from.code(), rate.to.code(), rate.date),
            Self::Contract(view) => view.contract.contract_ref.to_string(),
            Self::Charge(charge) => charge.charge_ref.to_string(),
            Self::Document(view) => view.opened.as_ref().map_or_else(String::new, |opened| opened.document_ref.to_string()),
            Self::Payment(payment) => payment.payment_ref.to_string(),
            Self::Application(application) => application.application_ref.to_string(),
            Self::BillingRun(summary) => summary.run_ref.to_string(),
            Self::UsageFile(ImportFileSummary { name, .. }) | Self::UndoneFile(ImportUndoSummary { name, .. }) => {
                name.clone().unwrap_or_else(|| NO_NAME.to_owned())
            }
        }
    }
}

/// What is told of a change: objects of JSON, as short as they can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditDiff {
    /// What it was; none of what was made.
    pub before: Option<String>,
    /// What it is; none of what is gone.
    pub after: Option<String>,
}

/// Tells changes as the interface shows things.
pub trait AuditRenderer: Send + Sync {
    /// What was made or is gone, whole, or those of its fields that differ. `None` where nothing that is shown differs. Never a secret.
    fn render_diff(&self, before: Option<AuditSubject<'_>>, after: Option<AuditSubject<'_>>) -> Option<AuditDiff>;

    /// Why something wasn't done: a stable word for machines, and what went wrong.
    fn reason(&self, error: &UseCaseError) -> (&'static str, String);
}

/// Who is told to have done something, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditContext<'a> {
    pub(crate) organization: OrganizationId,
    pub(crate) author: AuditActor,
    pub(crate) request_id: Option<&'a RequestId>,
}

impl<'a> AuditContext<'a> {
    pub(crate) fn of(principal: &'a Principal) -> Self {
        Self {
            organization: principal.organization(),
            author: AuditActor::of(principal.actor()),
            request_id: principal.request_id(),
        }
    }

    /// The service itself.
    pub(crate) const fn scheduler(organization: OrganizationId) -> Self {
        Self { organization, author: AuditActor::Scheduler, request_id: None }
    }

    /// The service's commands, which nobody logs in for.
    pub(crate) const fn command_line(organization: OrganizationId) -> Self {
        Self { organization, author: AuditActor::CommandLine, request_id: None }
    }
}

/// What happened to a thing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AuditChange<'a> {
    /// It wasn't there before.
    Made(AuditSubject<'a>),
    /// It is another than it was. Where the interface shows no difference there was no change.
    From(AuditSubject<'a>, AuditSubject<'a>),
    /// It is gone.
    Gone(AuditSubject<'a>),
    /// Nothing that is shown of it changed.
    Unshown(AuditSubject<'a>),
}

/// Adds what was done to the audit log, in the transaction that does it.
pub(crate) fn record_audit_event(
    tx: &mut dyn Tx,
    services: &Services<'_>,
    doer: AuditContext<'_>,
    action: AuditAction,
    change: AuditChange<'_>,
) -> UseCaseResult<()> {
    let (thing, told) = match change {
        AuditChange::Made(made) => (made, services.teller.render_diff(None, Some(made))),
        AuditChange::From(before, after) => (after, services.teller.render_diff(Some(before), Some(after))),
        AuditChange::Gone(gone) => (gone, services.teller.render_diff(Some(gone), None)),
        AuditChange::Unshown(thing) => (thing, Some(AuditDiff { before: None, after: None })),
    };
    let Some(AuditDiff { before, after }) = told else { return Ok(()) };
    let entry = AuditEntry {
        audit_ref: AuditRef::from_uuid(services.ids.new_id()),
        at: services.now(),
        author: doer.author,
        action,
        kind: thing.kind(),
        reference: thing.reference(),
        before,
        after,
        request_id: doer.request_id.cloned(),
    };
    Ok(tx.append_audit_entry(doer.organization, &entry)?)
}

/// How often what anybody can repeat at will is noted of one thing at most, in seconds: a flood of log-ins is no flood of entries.
const REPEATED_EVERY_SECONDS: i64 = 60;

/// As [`note`], of what changes nothing that is shown, unless the same was noted of the thing within the last minute.
pub(crate) fn record_audit_event_throttled(
    tx: &mut dyn Tx,
    services: &Services<'_>,
    doer: AuditContext<'_>,
    action: AuditAction,
    thing: AuditSubject<'_>,
) -> UseCaseResult<()> {
    if was_recorded_recently(tx, services, doer.organization, action, thing)? {
        return Ok(());
    }
    record_audit_event(tx, services, doer, action, AuditChange::Unshown(thing))
}

/// Whether an action was noted of a thing within the last minute.
pub(crate) fn was_recorded_recently(
    tx: &mut dyn Tx,
    services: &Services<'_>,
    organization: OrganizationId,
    action: AuditAction,
    thing: AuditSubject<'_>,
) -> UseCaseResult<bool> {
    let filter = AuditFilter {
        action: Some(action),
        kind: Some(thing.kind()),
        reference: Some(thing.reference()),
        from: Some(services.now().plus_seconds(-REPEATED_EVERY_SECONDS)),
        ..AuditFilter::default()
    };
    let newest = tx.audit_entries(organization, &filter, AuditPart { after: None, skip: 0, limit: 1 })?;
    Ok(!newest.is_empty())
}

/// Which part of the log is wanted, and whether all that pass a filter are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditQuery {
    /// The part.
    pub part: AuditPart,
    /// Whether all are counted, which costs what they are.
    pub with_total: bool,
}

/// Entries of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditList {
    /// The entries, the newest first.
    pub items: Vec<AuditEntry>,
    /// Where the list goes on.
    pub next: Option<AuditPosition>,
    /// How many pass the filter, where that was asked for.
    pub total: Option<u64>,
}

/// Reads a part of the organization's audit log; what was done to API keys and administrators is for owners alone.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn list_audit_entries(
    services: &Services,
    principal: &Principal,
    filter: &AuditFilter,
    wanted: AuditQuery,
) -> UseCaseResult<AuditList> {
    let organization = allow(principal, UseCase::ListAuditEntries)?;
    // Who may not list keys and administrators sees nothing of them here, either.
    let filter = &AuditFilter { without_access: !principal.has(Permission::Owner), ..filter.clone() };
    transact(&*services.store, Access::Read, |tx| {
        let limit = wanted.part.limit;
        // One more tells whether the list goes on.
        let part = AuditPart { limit: limit.saturating_add(1), ..wanted.part };
        let mut items = tx.audit_entries(organization, filter, part)?;
        let goes_on = items.len() > usize::try_from(limit).unwrap_or(usize::MAX);
        if goes_on {
            items.pop();
        }
        let next = items.last().filter(|_| goes_on).map(AuditEntry::position);
        let total = if wanted.with_total { Some(tx.count_audit_entries(organization, filter)?) } else { None };
        Ok(AuditList { items, next, total })
    })
}
