//! Operations that change something, by their path: carried out, or only rehearsed.

use actix_web::HttpResponse;
use actix_web::web::Path;
use billing_application::error::Thing;
use billing_application::usage::{self, FormattedEvent, FormattedUpdate, NO_ANSWER};
use billing_application::{Services, UseCase};
use billing_domain::access::{Need, Principal};
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
use crate::middleware::Facts;
use crate::once::Rehearsed;
use crate::operation::{Needs, Operation, REHEARSED};
use crate::operations::OPERATIONS;
use crate::problem::Problem;
use crate::reporting::Reporting;

pub(crate) async fn dry_run(caller: Caller, facts: Facts, Body(sent): Body) -> OnceAnswer {
    let DryRunBody { path, body } = read(&sent)?;
    // As it was sent, with all digits.
    let body = body.and_then(|_| sent.get("body").cloned());
    carry_out(caller.rehearsing(), facts, path.as_str(), body).await
}

/// Whether there are dry runs of the operation on a path.
pub(crate) fn is_rehearsed(path: &str) -> bool {
    changing(path).is_some_and(|(operation, _, _)| REHEARSED.contains(&operation.id))
}

/// What the operation on a path needs.
pub(crate) fn need(path: &str) -> Option<Need> {
    changing(path).and_then(|(operation, _, _)| operation.need())
}

/// The operation on a path that changes something, and the reference in that.
fn changing(path: &str) -> Option<(&'static Operation, UseCase, String)> {
    let asked: Vec<&str> = parts(path).collect();
    OPERATIONS.iter().filter(|operation| operation.changes_state()).find_map(|operation| {
        let Needs::Permission(use_case) = operation.needs else { return None };
        let template: Vec<&str> = parts(operation.path).collect();
        let mut reference = String::new();
        let fits = template.len() == asked.len()
            && template.iter().zip(&asked).all(|(wanted, part)| {
                let is_reference = wanted.starts_with('{');
                if is_reference {
                    reference = (*part).to_owned();
                }
                is_reference || wanted == part
            });
        fits.then_some((operation, use_case, reference))
    })
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

/// Carries out what changes something, as its caller wants it: under a key, or only to see what it does.
///
/// # Errors
/// What refuses it, and 422 `no_dry_run` for a path of no operation that can be rehearsed.
pub(crate) async fn carry_out(caller: Caller, facts: Facts, path: &str, body: Option<Value>) -> OnceAnswer {
    let none = || {
        let detail = "is the path of no operation that has a dry run";
        Problem::from(Violations::one(&["path"], "no_dry_run", detail))
    };
    let (operation, use_case, reference) = changing(path).ok_or_else(none)?;
    if caller.rehearses && !REHEARSED.contains(&operation.id) {
        return Err(none());
    }
    let caller = Caller { use_case, ..caller };
    let path = Path::from(reference.clone());
    let optional = OptionalBody(body.clone());
    let needed = || {
        let missing = || Problem::from(Violations::one(&["body"], "required", "must be the body of the request"));
        body.clone().map(Body).ok_or_else(missing)
    };
    match operation.id {
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
        _ if caller.rehearses => on_events(caller, operation.id, &reference, needed).await?.ok_or_else(none),
        "update_event" => usage_routes::update_event(Reporting::of(caller, facts), needed()?).await,
        "delete_event" => usage_routes::delete_event(Reporting::of(caller, facts), path).await,
        _ => Err(none()),
    }
}

/// What is done with usage events, which others wait for the writer with. `None` of any other operation.
async fn on_events(
    caller: Caller,
    id: &str,
    reference: &str,
    needed: impl Fn() -> Result<Body, Problem>,
) -> Result<Option<HttpResponse>, Problem> {
    let work: Rehearsed = match id {
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
            let (event_ref, update) = (in_path(EventRef::parse, &wanted.event_ref, Thing::Event)?, wanted.update());
            Box::new(move |services, principal| usage::update_event(services, principal, event_ref, &update).map(drop))
        }
        "update_formatted_event" => {
            let FormattedUpdateBody { event_ref, format, event } = read(&needed()?.0)?;
            let event_ref = in_path(EventRef::parse, &event_ref, Thing::Event)?;
            let wanted = FormattedUpdate { event_ref, format: format.named(), event };
            let map = move |services: &Services<'_>, principal: &Principal| usage::map_update(services, principal, &wanted);
            let update = caller.clone().run(map).await?;
            Box::new(move |services, principal| {
                usage::update_event(services, principal, event_ref, &update).map(drop).map_err(usage::of_mapped)
            })
        }
        "delete_event" => {
            let event_ref = in_path(EventRef::parse, reference, Thing::Event)?;
            Box::new(move |services, principal| usage::delete_event(services, principal, event_ref))
        }
        _ => return Ok(None),
    };
    caller.rehearse(work).await.map(Some)
}
