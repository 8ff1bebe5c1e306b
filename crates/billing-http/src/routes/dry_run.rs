//! Runs state-changing operations by path, or previews them as dry runs.

use actix_web::HttpResponse;
use actix_web::web::Path;
use billing_application::error::ResourceKind;
use billing_application::usage::{self, FormattedEvent, FormattedUpdate, NO_ANSWER};
use billing_application::{Services, UseCase};
use billing_domain::access::Principal;
use billing_domain::refs::EventRef;
use billing_domain::violation::Violations;
use serde_json::Value;

use super::{OnceAnswer, catalog, charges, contracts, documents, in_path, money, usage as usage_routes};
use crate::body::{Body, OptionalBody};
use crate::caller::Caller;
use crate::dto::declare::read;
use crate::dto::effects::DryRunBody;
use crate::dto::events::{EventBody, EventUpdateBody};
use crate::dto::formatted::{FormattedEventBody, FormattedUpdateBody};
use crate::idempotent_call::DryRunWork;
use crate::ingest::IngestRequest;
use crate::middleware::RequestContext;
use crate::problem::Problem;

/// An operation that this module can run.
#[derive(Clone, Copy)]
pub(crate) struct DryRunOperation {
    /// Operation id, path and credential, as in the operation table.
    pub(crate) id: &'static str,
    pub(crate) path: &'static str,
    pub(crate) use_case: UseCase,
    /// Whether the operation changes documents and supports dry runs. Billing runs and imports have dry runs of their own
    /// and are not in this table.
    pub(crate) is_rehearsed: bool,
}

const fn rehearsed(id: &'static str, path: &'static str, use_case: UseCase) -> DryRunOperation {
    DryRunOperation { id, path, use_case, is_rehearsed: true }
}

const fn carried(id: &'static str, path: &'static str, use_case: UseCase) -> DryRunOperation {
    DryRunOperation { id, path, use_case, is_rehearsed: false }
}

/// All operations that this module can run.
pub(crate) const CARRIED: &[DryRunOperation] = &[
    rehearsed("apply", "/api/documents/apply/{source_ref}", UseCase::Apply),
    rehearsed("cancel_contract", "/api/contracts/cancel/{contract_ref}", UseCase::CancelContract),
    rehearsed("change_quantity", "/api/contracts/quantities/{contract_ref}", UseCase::ChangeQuantity),
    carried("create_bank_account", "/api/bank_accounts/", UseCase::CreateBankAccount),
    rehearsed("create_contract", "/api/contracts/", UseCase::CreateContract),
    carried("create_customer", "/api/customers/", UseCase::CreateCustomer),
    carried("create_entity", "/api/entities/", UseCase::CreateEntity),
    carried("create_pricing", "/api/pricings/", UseCase::CreatePricing),
    carried("create_usage_product", "/api/usage/products/", UseCase::CreateUsageProduct),
    rehearsed("delete_charge", "/api/charges/{charge_ref}", UseCase::DeleteCharge),
    rehearsed("delete_event", "/api/usage/event/{event_ref}", UseCase::DeleteEvent),
    carried("edit_bank_account", "/api/bank_accounts/edit/{billing_account_id}", UseCase::EditBankAccount),
    rehearsed("edit_charge", "/api/charges/edit/{charge_ref}", UseCase::EditCharge),
    rehearsed("edit_contract", "/api/contracts/edit/{contract_ref}", UseCase::EditContract),
    rehearsed("edit_customer", "/api/customers/edit/{customer_ref}", UseCase::EditCustomer),
    rehearsed("edit_entity", "/api/entities/edit/{entity_ref}", UseCase::EditEntity),
    carried("edit_pricing", "/api/pricings/edit/{product_pricing_ref}", UseCase::EditPricing),
    carried("edit_usage_product", "/api/usage/products/edit/{usage_product_ref}", UseCase::EditUsageProduct),
    rehearsed("issue_document", "/api/documents/issue/{document_ref}", UseCase::IssueDocument),
    carried("put_exchange_rate", "/api/exchange_rates/", UseCase::PutExchangeRate),
    rehearsed("record_charge", "/api/charges/", UseCase::RecordCharge),
    rehearsed("record_event", "/api/usage/event", UseCase::RecordUsage),
    rehearsed("record_formatted_event", "/api/usage/event/formatted", UseCase::RecordUsage),
    rehearsed("record_payment", "/api/documents/payments/{document_ref}", UseCase::RecordPayment),
    rehearsed("refund", "/api/documents/refund/{source_ref}", UseCase::Refund),
    rehearsed("resume_contract", "/api/contracts/resume/{contract_ref}", UseCase::ResumeContract),
    rehearsed("reverse_payment", "/api/documents/payments/reverse/{payment_ref}", UseCase::ReversePayment),
    rehearsed("unapply", "/api/documents/unapply/{application_ref}", UseCase::Unapply),
    rehearsed("update_event", "/api/usage/event/update", UseCase::UpdateEvent),
    rehearsed("update_formatted_event", "/api/usage/event/formatted/update", UseCase::UpdateEvent),
    rehearsed("void_document", "/api/documents/void/{document_ref}", UseCase::VoidDocument),
    rehearsed("write_off", "/api/documents/write-off/{document_ref}", UseCase::WriteOff),
];

pub(crate) async fn dry_run(caller: Caller, facts: RequestContext, Body(sent): Body) -> OnceAnswer {
    let DryRunBody { path, body } = read(&sent)?;
    // The body as it was sent, with all digits.
    let body = body.and_then(|_| sent.get("body").cloned());
    carry_out(caller.rehearsing(), facts, path.as_str(), body).await
}

/// Returns whether the operation on a path supports dry runs.
pub(crate) fn is_rehearsed(path: &str) -> bool {
    changing(path).is_some_and(|(operation, _)| operation.is_rehearsed)
}

/// Returns the use case of the operation on a path.
pub(crate) fn use_case(path: &str) -> Option<UseCase> {
    changing(path).map(|(operation, _)| operation.use_case)
}

/// Returns the state-changing operation on a path, and the reference in the path.
fn changing(path: &str) -> Option<(DryRunOperation, String)> {
    let asked: Vec<&str> = parts(path).collect();
    let fitting = CARRIED.iter().filter_map(|operation| {
        let template: Vec<&str> = parts(operation.path).collect();
        let is_reference = |wanted: &str| wanted.starts_with('{');
        let mut pairs = template.iter().zip(&asked);
        let fits = template.len() == asked.len() && pairs.clone().all(|(wanted, part)| is_reference(wanted) || wanted == part);
        let reference = pairs.find(|(wanted, _)| is_reference(wanted)).map_or("", |(_, part)| part);
        fits.then(|| (*operation, reference.to_owned()))
    });
    // A fixed path segment takes precedence over a reference.
    fitting.min_by_key(|(_, reference)| !reference.is_empty())
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

/// Runs a state-changing operation with the caller's idempotency key, or as a dry run.
///
/// # Errors
/// Returns the operation's refusal, or 422 `no_dry_run` if the operation on the path does not support dry runs.
pub(crate) async fn carry_out(caller: Caller, facts: RequestContext, path: &str, body: Option<Value>) -> OnceAnswer {
    let none = || {
        let detail = "must be the path of an operation that supports a dry run";
        Problem::from(Violations::one(&["path"], "no_dry_run", detail))
    };
    let (DryRunOperation { id, use_case, is_rehearsed, .. }, reference) = changing(path).ok_or_else(none)?;
    if caller.rehearses && !is_rehearsed {
        return Err(none());
    }
    let caller = Caller { use_case, ..caller };
    let path = Path::from(reference.clone());
    let optional = OptionalBody(body.clone());
    let needed = || {
        let missing = || Problem::from(Violations::one(&["body"], "required", "must be the body of the request"));
        body.clone().map(Body).ok_or_else(missing)
    };
    match id {
        "create_contract" => contracts::create_contract(caller, needed()?).await,
        "edit_contract" => contracts::edit_contract(caller, path, needed()?).await,
        "cancel_contract" => contracts::cancel_contract(caller, path, optional).await,
        "resume_contract" => contracts::resume_contract(caller, path, optional).await,
        "change_quantity" => contracts::change_quantity(caller, path, needed()?).await,
        "issue_document" => documents::issue_document(caller, path).await,
        "void_document" => documents::void_document(caller, path).await,
        "record_payment" => money::record_payment(caller, path, needed()?).await,
        "reverse_payment" => money::reverse_payment(caller, path, optional).await,
        "refund" => money::refund(caller, path, needed()?).await,
        "apply" => money::apply(caller, path, needed()?).await,
        "unapply" => money::unapply(caller, path).await,
        "write_off" => money::write_off(caller, path, optional).await,
        "record_charge" => charges::record_charge(caller, needed()?).await,
        "edit_charge" => charges::edit_charge(caller, path, needed()?).await,
        "delete_charge" => charges::delete_charge(caller, path).await,
        "create_customer" => catalog::create_customer(caller, needed()?).await,
        "edit_customer" => catalog::edit_customer(caller, path, needed()?).await,
        "create_entity" => catalog::create_entity(caller, needed()?).await,
        "edit_entity" => catalog::edit_entity(caller, path, needed()?).await,
        "create_usage_product" => catalog::create_usage_product(caller, needed()?).await,
        "edit_usage_product" => catalog::edit_usage_product(caller, path, needed()?).await,
        "create_pricing" => catalog::create_pricing(caller, needed()?).await,
        "edit_pricing" => catalog::edit_pricing(caller, path, needed()?).await,
        "create_bank_account" => catalog::create_bank_account(caller, needed()?).await,
        "edit_bank_account" => catalog::edit_bank_account(caller, path, needed()?).await,
        "put_exchange_rate" => catalog::put_exchange_rate(caller, needed()?).await,
        _ if caller.rehearses => on_events(caller, id, &reference, needed).await?.ok_or_else(none),
        "update_event" => usage_routes::update_event(IngestRequest::of(caller, facts), needed()?).await,
        "delete_event" => usage_routes::delete_event(IngestRequest::of(caller, facts), path).await,
        _ => Err(none()),
    }
}

/// Runs operations on usage events, which go through the usage writer. Returns `None` for other operations.
async fn on_events(
    caller: Caller,
    id: &str,
    reference: &str,
    needed: impl Fn() -> Result<Body, Problem>,
) -> Result<Option<HttpResponse>, Problem> {
    let work: DryRunWork = match id {
        "record_event" => {
            let event = EventBody::read_event(&needed()?.0)?;
            Box::new(move |services, principal| usage::record_event(services, principal, event.clone(), &NO_ANSWER).map(drop))
        }
        "record_formatted_event" => {
            let FormattedEventBody { format, event } = read(&needed()?.0)?;
            let format = format.named().ok_or_else(Problem::internal)?;
            let report = FormattedEvent { format, event, sent: None };
            let map = move |services: &Services<'_>, principal: &Principal| usage::map_formatted(services, principal, &report);
            let event = caller.clone().run(map).await?;
            Box::new(move |services, principal| {
                let recorded = usage::record_event(services, principal, event.clone(), &NO_ANSWER);
                recorded.map(drop).map_err(usage::of_mapped)
            })
        }
        "update_event" => {
            let wanted: EventUpdateBody = read(&needed()?.0)?;
            let (event_ref, update) = (in_path(EventRef::parse, &wanted.event_ref, ResourceKind::Event)?, wanted.update());
            Box::new(move |services, principal| usage::update_event(services, principal, event_ref, &update).map(drop))
        }
        "update_formatted_event" => {
            let FormattedUpdateBody { event_ref, format, event } = read(&needed()?.0)?;
            let event_ref = in_path(EventRef::parse, &event_ref, ResourceKind::Event)?;
            let wanted = FormattedUpdate { event_ref, format: format.named(), event };
            let map = move |services: &Services<'_>, principal: &Principal| usage::map_update(services, principal, &wanted);
            let update = caller.clone().run(map).await?;
            Box::new(move |services, principal| {
                usage::update_event(services, principal, event_ref, &update).map(drop).map_err(usage::of_mapped)
            })
        }
        "delete_event" => {
            let event_ref = in_path(EventRef::parse, reference, ResourceKind::Event)?;
            Box::new(move |services, principal| usage::delete_event(services, principal, event_ref))
        }
        _ => return Ok(None),
    };
    caller.rehearse(work).await.map(Some)
}
