//! The audit log. Each use case that changes data adds one entry, in the transaction of the change.
//!
//! Changes of usage events add no entries, because the events' revisions record them.

use billing_domain::access::{Administrator, ApiKey, Permission};
use billing_domain::audit::{AuditAction, AuditEntry, AuditPosition, AuditedKind};
use billing_domain::calendar::Timestamp;
use billing_domain::catalog::{Pricing, UsageProduct};
use billing_domain::charge::Charge;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::notification::Fact;
use billing_domain::notification::epoch::Epoch;
use billing_domain::party::Organization;
use billing_domain::party::bank::BankAccount;
use billing_domain::ports::{AuditFilter, AuditPart, Tx};
use billing_domain::receivables::{Application, Payment};
use billing_domain::refs::{AuditRef, BillingRunRef, CustomerId, ImportRef, OrganizationId};
use billing_domain::tax::ExchangeRate;
use billing_domain::webhook::WebhookEndpoint;

use crate::Services;
use crate::carry_out::{AuditContext, Cx};
use crate::catalog::{CustomerView, EntityView};
use crate::contracts::ContractView;
use crate::credit::GrantView;
use crate::documents::DocumentView;
use crate::error::{UseCaseError, UseCaseResult};
use crate::formats::FormatView;
use crate::limits::LimitView;
use crate::names::{self, Named};
use crate::usage::ImportSummary;

/// A resource before or after a change.
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
    /// A webhook endpoint.
    Endpoint(&'a WebhookEndpoint),
    /// An exchange rate.
    ExchangeRate(&'a ExchangeRate),
    /// A contract.
    Contract(&'a ContractView),
    /// A charge.
    Charge(&'a Charge),
    /// A document.
    Document(&'a DocumentView),
    /// A credit grant.
    CreditGrant(&'a GrantView),
    /// A limit.
    Limit(&'a LimitView),
    /// A payment or refund.
    Payment(&'a Payment),
    /// An application of a credit or payment to a document.
    Application(&'a Application),
    /// One transaction of a billing run.
    BillingRun(&'a RunSummary),
    /// An import of usage events.
    UsageFile(&'a ImportFileSummary),
    /// An undo of an import of usage events.
    UndoneFile(&'a ImportUndoSummary),
}

/// The results of one transaction of a billing run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The run's reference, which is the same for all its transactions.
    pub run_ref: BillingRunRef,
    /// The issued documents.
    pub issued: Vec<DocumentNumber>,
    /// The voided drafts.
    pub voided: Vec<DocumentNumber>,
}

/// The results of an import of usage events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportFileSummary {
    /// The import name, which identifies lines without a key.
    pub name: Option<String>,
    /// The import's reference.
    pub import_ref: ImportRef,
    /// The accepted events.
    pub taken: ImportSummary,
    /// The number of rejected lines.
    pub refused: u64,
}

/// The results of one request to undo an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportUndoSummary {
    /// The import name.
    pub name: Option<String>,
    /// The import's reference.
    pub import_ref: ImportRef,
    /// The number of events deleted by the request.
    pub deleted: u64,
    /// The number of events that were already deleted.
    pub already_deleted: u64,
    /// The number of events that could not be deleted.
    pub refused: u64,
}

/// The reference of an import without a name.
const NO_NAME: &str = "-";

impl AuditSubject<'_> {
    /// Returns the kind of the resource.
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
            Self::Endpoint(_) => AuditedKind::WebhookEndpoint,
            Self::ExchangeRate(_) => AuditedKind::ExchangeRate,
            Self::Contract(_) => AuditedKind::Contract,
            Self::Charge(_) => AuditedKind::Charge,
            Self::Document(_) => AuditedKind::Document,
            Self::CreditGrant(_) => AuditedKind::CreditGrant,
            Self::Limit(_) => AuditedKind::Limit,
            Self::Payment(_) => AuditedKind::Payment,
            Self::Application(_) => AuditedKind::Application,
            Self::BillingRun(_) => AuditedKind::BillingRun,
            Self::UsageFile(_) | Self::UndoneFile(_) => AuditedKind::UsageFile,
        }
    }

    /// Returns the customer whom the resource concerns, if the resource names one.
    const fn customer(self) -> Option<CustomerId> {
        match self {
            Self::Customer(view) => Some(view.customer.id),
            Self::Contract(view) => Some(view.contract.customer_id),
            Self::Charge(charge) => Some(charge.customer_id),
            Self::CreditGrant(view) => Some(view.grant.account.customer_id),
            Self::Limit(view) => Some(view.number.limit.customer_id),
            _ => None,
        }
    }

    /// Returns the reference of the resource. Empty for a document that is not opened.
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
            Self::Endpoint(endpoint) => endpoint.endpoint_ref.to_string(),
            Self::ExchangeRate(rate) => format!("{}/{}/{}", rate.from.code(), rate.to.code(), rate.date),
            Self::Contract(view) => view.contract.contract_ref.to_string(),
            Self::Charge(charge) => charge.charge_ref.to_string(),
            Self::Document(view) => view.opened.as_ref().map_or_else(String::new, |opened| opened.document_ref.to_string()),
            Self::CreditGrant(view) => view.grant.grant_ref.to_string(),
            Self::Limit(view) => view.number.limit.limit_ref.to_string(),
            Self::Payment(payment) => payment.payment_ref.to_string(),
            Self::Application(application) => application.application_ref.to_string(),
            Self::BillingRun(summary) => summary.run_ref.to_string(),
            Self::UsageFile(ImportFileSummary { name, .. }) | Self::UndoneFile(ImportUndoSummary { name, .. }) => {
                name.clone().unwrap_or_else(|| NO_NAME.to_owned())
            }
        }
    }
}

/// The difference of a change, as compact JSON objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditDiff {
    /// The resource before the change. `None` if it was created.
    pub before: Option<String>,
    /// The resource after the change. `None` if it was deleted.
    pub after: Option<String>,
}

/// Renders changes in the format of the API.
pub trait AuditRenderer: Send + Sync {
    /// Returns a created or deleted resource as a whole, or the changed fields. Returns `None` if no visible field changed.
    /// Never returns secrets.
    fn render_diff(&self, before: Option<AuditSubject<'_>>, after: Option<AuditSubject<'_>>) -> Option<AuditDiff>;

    /// Returns an error as a stable code and a message.
    fn reason(&self, error: &UseCaseError) -> (&'static str, String);

    /// Returns the notification of a fact that became true at an instant of an epoch, as webhooks send it.
    fn render_notification(&self, fact: &Fact, epoch: Epoch, at: Timestamp) -> String;
}

/// A change of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AuditChange<'a> {
    /// The resource was created.
    Made(AuditSubject<'a>),
    /// The resource was changed. Without a visible difference, no entry is recorded.
    From(AuditSubject<'a>, AuditSubject<'a>),
    /// The resource was deleted.
    Gone(AuditSubject<'a>),
    /// No visible field changed, but an entry is recorded.
    Unshown(AuditSubject<'a>),
}

impl<'a> AuditChange<'a> {
    /// Returns the changed resource.
    const fn subject(self) -> AuditSubject<'a> {
        match self {
            Self::Made(thing) | Self::From(_, thing) | Self::Gone(thing) | Self::Unshown(thing) => thing,
        }
    }
}

impl Cx<'_> {
    /// Records an audit event of the change.
    pub(crate) fn audit(&mut self, action: AuditAction, change: AuditChange<'_>) -> UseCaseResult<()> {
        let author = self.author();
        record_audit_event(self.tx, self.services, author, action, change)
    }

    /// Records an audit event of a change of a document or an account of a customer.
    pub(crate) fn audit_of(&mut self, customer: CustomerId, action: AuditAction, change: AuditChange<'_>) -> UseCaseResult<()> {
        let author = self.author();
        record(self.tx, self.services, (author, Some(customer)), action, change)
    }
}

/// Records an audit event in the transaction of the change.
pub(crate) fn record_audit_event(
    tx: &mut dyn Tx,
    services: &Services,
    doer: AuditContext<'_>,
    action: AuditAction,
    change: AuditChange<'_>,
) -> UseCaseResult<()> {
    let customer = change.subject().customer();
    record(tx, services, (doer, customer), action, change)
}

fn record(
    tx: &mut dyn Tx,
    services: &Services,
    (doer, customer): (AuditContext<'_>, Option<CustomerId>),
    action: AuditAction,
    change: AuditChange<'_>,
) -> UseCaseResult<()> {
    let (thing, reported) = match change {
        AuditChange::Made(made) => (made, services.teller.render_diff(None, Some(made))),
        AuditChange::From(before, after) => (after, services.teller.render_diff(Some(before), Some(after))),
        AuditChange::Gone(gone) => (gone, services.teller.render_diff(Some(gone), None)),
        AuditChange::Unshown(thing) => (thing, Some(AuditDiff { before: None, after: None })),
    };
    let Some(AuditDiff { before, after }) = reported else { return Ok(()) };
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
    Ok(tx.append_audit_entry(doer.organization, customer, &entry)?)
}

/// The minimum interval between equal entries for one resource, in seconds, for actions that anybody can repeat at will.
/// Prevents a flood of log-ins from flooding the log.
const REPEATED_EVERY_SECONDS: i64 = 60;

/// Does the same as [`record_audit_event`] for an action without visible changes, unless the same action was recorded within
/// the last minute.
pub(crate) fn record_audit_event_throttled(
    tx: &mut dyn Tx,
    services: &Services,
    doer: AuditContext<'_>,
    action: AuditAction,
    thing: AuditSubject<'_>,
) -> UseCaseResult<()> {
    if was_recorded_recently(tx, services, doer.organization, action, thing)? {
        return Ok(());
    }
    record_audit_event(tx, services, doer, action, AuditChange::Unshown(thing))
}

/// Returns whether an action on a resource was recorded within the last minute.
pub(crate) fn was_recorded_recently(
    tx: &mut dyn Tx,
    services: &Services,
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

/// The requested part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditQuery {
    /// The range of entries.
    pub part: AuditPart,
    /// Whether to count all entries that match the filter. The cost grows with their number.
    pub with_total: bool,
}

/// A part of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditList {
    /// The entries, newest first, with the names of their authors and objects.
    pub items: Vec<Named<AuditEntry>>,
    /// The position of the last entry, if more follow.
    pub next: Option<AuditPosition>,
    /// The number of entries that match the filter, if requested.
    pub total: Option<u64>,
}

/// Returns a part of the organization's audit log. Only owners see entries about API keys and administrators.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the entries cannot be read.
pub fn list_audit_entries(cx: &mut Cx<'_>, filter: &AuditFilter, wanted: AuditQuery) -> UseCaseResult<AuditList> {
    // Principals that cannot list keys and administrators must not see them here either.
    let filter = &AuditFilter { without_access: !cx.principal()?.has(Permission::Owner), ..filter.clone() };
    let limit = wanted.part.limit;
    // An additional entry shows whether more follow.
    let part = AuditPart { limit: limit.saturating_add(1), ..wanted.part };
    let mut items = cx.tx.audit_entries(cx.organization, filter, part)?;
    let goes_on = items.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    if goes_on {
        items.pop();
    }
    let next = items.last().filter(|_| goes_on).map(AuditEntry::position);
    let total = if wanted.with_total { Some(cx.tx.count_audit_entries(cx.organization, filter)?) } else { None };
    let items = names::name_all(cx, items, |entry, names| {
        names.add_actor(entry.author);
        names.add(entry.kind, &entry.reference);
    })?;
    Ok(AuditList { items, next, total })
}
