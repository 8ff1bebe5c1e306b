//! Use cases of operations that take more than one function of the application.

use std::time::{Duration, Instant};

use billing_application::contracts::{self, ContractView};
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::names::{self, NameRequest, Named};
use billing_application::sandbox::{self, AdvanceRequest, ClockAdvance};
use billing_application::{Cx, Services, formats, run_history, usage};
use billing_application::{notifications, webhooks};
use billing_domain::access::Principal;
use billing_domain::audit::AuditedKind;
use billing_domain::format::MappedRecord;
use billing_domain::imports::ImportRecord;
use billing_domain::notification::Subject;
use billing_domain::page::{ListSortKey, Page, PageRequest};
use billing_domain::ports::{DeliveryFilter, ImportFilter, ListedDelivery, RefusedFilter, RunFilter};
use billing_domain::refs::{BillingRunRef, ContractRef, ImportRef};

use crate::dto::billing::BillingRunResponse;
use crate::dto::clock::ClockAdvanceBody;
use crate::dto::contract_changes::{AmendmentOptions, AmendmentOutcome};
use crate::dto::contracts::ContractEditBody;
use crate::dto::formats::FormatTestBody;
use crate::dto::imports::ImportResponse;
use crate::dto::refused::Refused;

/// Returns the page that a query finds. A query with a malformed reference is `None` and finds nothing.
pub fn found<Q, T>(query: Option<Q>, find: impl FnOnce(&Q) -> UseCaseResult<Page<T>>) -> UseCaseResult<Page<T>> {
    query.map_or_else(|| Ok(Page::empty()), |query| find(&query))
}

/// Does the same as [`found`] for a list without pages.
pub fn all_found<Q, T>(query: Option<Q>, find: impl FnOnce(&Q) -> UseCaseResult<Vec<T>>) -> UseCaseResult<Vec<T>> {
    query.map_or_else(|| Ok(Vec::new()), |query| find(&query))
}

/// Converts a record with a format or a mapping and stores nothing.
pub fn test_format(services: &Services, principal: &Principal, body: &FormatTestBody) -> UseCaseResult<MappedRecord> {
    let incomplete = UseCaseError::InvariantViolation("a test without a format and a mapping");
    let (tested, event) = body.clone().tested().ok_or(incomplete)?;
    formats::test_format(services, principal, &tested, &event)
}

/// The time after which an advance of a sandbox's clock stops. A request has some seconds more.
const ADVANCE_TIME: Duration = Duration::from_secs(20);

/// The pause between two looks at notifications without a position.
const NUMBERED_PAUSE: Duration = Duration::from_millis(2);

/// Moves the clock of a sandbox as far as the time of a request permits.
pub fn advance_clock(services: &Services, principal: &Principal, body: &ClockAdvanceBody) -> UseCaseResult<ClockAdvance> {
    let begun = Instant::now();
    let may_go_on = || begun.elapsed() < ADVANCE_TIME;
    let number = || {
        notifications::wake_numbering();
        std::thread::sleep(NUMBERED_PAUSE);
        Ok(())
    };
    let wanted = AdvanceRequest { to: body.to, run: body.run, may_go_on: &may_go_on, number: Some(&number) };
    sandbox::advance_clock(services, principal, wanted)
}

/// Edits a contract as its body says.
pub fn edit_contract(cx: &mut Cx<'_>, contract_ref: ContractRef, body: &ContractEditBody) -> UseCaseResult<AmendmentOutcome> {
    let edit = body.edit();
    amend(cx, body.options, |cx, allow_backdated| {
        contracts::edit_contract(cx, contract_ref, body.customer_ref.as_ref(), &edit, allow_backdated)
    })
}

/// Amends a contract, or with `dry_run` returns the effects of the amendment.
pub fn amend(
    cx: &mut Cx<'_>,
    AmendmentOptions { dry_run, allow_backdated }: AmendmentOptions,
    mut work: impl FnMut(&mut Cx<'_>, bool) -> UseCaseResult<ContractView>,
) -> UseCaseResult<AmendmentOutcome> {
    if dry_run {
        let effects = cx.dry_run(&mut |cx| work(cx, allow_backdated).map(drop))?;
        return Ok(AmendmentOutcome::DryRun(Box::new(effects)));
    }
    Ok(AmendmentOutcome::Done(Box::new(work(cx, allow_backdated)?)))
}

/// Lists billing runs with the names of their authors.
pub fn list_billing_runs(
    cx: &mut Cx<'_>,
    filter: &RunFilter,
    by: ListSortKey,
    page: PageRequest,
) -> UseCaseResult<Page<BillingRunResponse>> {
    let found = run_history::list_billing_runs(cx, filter, by, page)?;
    let found = Page { total: found.total, items: found.items.into_iter().map(|head| (head, None)).collect() };
    names::name_page(cx, found, |(head, _), names| names.add_actor(head.author))
}

/// Returns a billing run with the names of its author, contracts and documents.
pub fn get_billing_run(cx: &mut Cx<'_>, run_ref: BillingRunRef) -> UseCaseResult<BillingRunResponse> {
    let run = run_history::get_billing_run(cx, run_ref)?;
    names::name_one(cx, (run.head.clone(), Some(run)), |(head, run), names| {
        names.add_actor(head.author);
        for document in run.iter().flat_map(|run| &run.documents) {
            names.add(AuditedKind::Document, document.document_ref);
        }
        for failure in run.iter().flat_map(|run| &run.failures) {
            names.add(AuditedKind::Contract, failure.contract_ref);
            if let Some(document_ref) = failure.document.and_then(|document| document.document_ref) {
                names.add(AuditedKind::Document, document_ref);
            }
        }
    })
}

/// Lists imports with the names of their authors.
pub fn list_imports(
    cx: &mut Cx<'_>,
    filter: &ImportFilter,
    by: ListSortKey,
    page: PageRequest,
) -> UseCaseResult<Page<ImportResponse>> {
    let found = usage::list_imports(cx, filter, by, page)?;
    let found = Page { total: found.total, items: found.items.into_iter().map(|import| (import, None)).collect() };
    names::name_page(cx, found, |(import, _), names| add_actors(import, names))
}

/// Returns an import with the names of its authors.
pub fn get_import(cx: &mut Cx<'_>, import_ref: ImportRef) -> UseCaseResult<ImportResponse> {
    let found = usage::get_import(cx, import_ref)?;
    names::name_one(cx, (found.import, Some(found.left)), |(import, _), names| add_actors(import, names))
}

/// Requests the names of the authors of an import and of its undo.
pub fn add_actors(import: &ImportRecord, names: &mut NameRequest) {
    names.add_actor(import.author);
    if let Some(undone) = &import.undone {
        names.add_actor(undone.author);
    }
}

/// Lists rejected usage with the names of customers and usage products.
pub fn list_refused_usage(cx: &mut Cx<'_>, filter: &RefusedFilter, page: PageRequest) -> UseCaseResult<Page<Refused>> {
    let found = usage::list_refused_usage(cx, filter, page)?;
    names::name_page(cx, found, |(key, _), names| {
        names.add(AuditedKind::Customer, &key.customer_ref);
        names.add(AuditedKind::UsageProduct, &key.usage_product_ref);
    })
}

/// Lists deliveries with the names of their subjects and endpoints.
pub fn list_webhook_deliveries(
    cx: &mut Cx<'_>,
    filter: Option<DeliveryFilter>,
    page: PageRequest,
) -> UseCaseResult<Page<Named<ListedDelivery>>> {
    let Some(filter) = filter else { return Ok(Page::empty()) };
    let found = webhooks::list_deliveries(cx, &filter, page)?;
    names::name_page(cx, found, |listed, names| {
        names.add_subject(listed.subject);
        names.add_subject(Subject::Endpoint(listed.delivery.endpoint_ref));
    })
}
