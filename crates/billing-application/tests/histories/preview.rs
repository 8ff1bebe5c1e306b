//! What the preview shows is what gets issued when nothing happens in between (billing rules 7).

use billing_application::billing_run::run_billing;
use billing_application::contracts::{current_invoices, next_invoices};
use billing_application::documents::DocumentView;
use billing_domain::document::{DocumentState, Purpose};

use crate::check::check;
use crate::world::{Checked, World};

/// Later than any document of a current or next period is due, in seconds.
const LONG: i64 = 3 * 366 * 24 * 3600;

pub(crate) fn check_preview(world: &World) -> Checked {
    let (services, principal) = (&world.bench.services, &world.bench.principal);
    let mut shown: Vec<DocumentView> = Vec::new();
    for contract in &world.contracts {
        for view in [current_invoices, next_invoices] {
            shown.extend(view(services, principal, *contract).map_err(|error| error.to_string())?);
        }
    }
    shown.retain(|document| document.state == DocumentState::Draft && matches!(document.purpose, Purpose::Regular(_)));
    // A year and a day at a time, so that downtime is caught up with, too.
    let fork = world.bench.fork();
    let mut later = World {
        bench: fork,
        model: world.model.clone(),
        contracts: world.contracts.clone(),
        events: world.events.clone(),
        documents: Vec::new(),
        memory: world.memory.clone(),
        billed_at: None,
        closed: None,
    };
    later.bench.clock.advance(LONG);
    let report = run_billing(&later.bench.services, principal, false).map_err(|error| error.to_string())?;
    if let Some(failed) = report.failed.first() {
        return Err(format!("the billing run failed: {}", failed.problem));
    }
    later.billed_at = Some(later.now());
    check(&mut later).map_err(|problem| format!("much later: {problem}"))?;
    for preview in &shown {
        let issued = later.documents.iter().find(|document| same_place(document, preview));
        match issued {
            Some(issued) if issued.content == preview.content => {}
            None if preview.content.products.iter().flat_map(|product| &product.lines).all(|line| line.amount.minor() == 0) => {}
            // A debit of the wrong sign is issued as a credit.
            None if preview.content.total.minor() < 0 && preview.kind == billing_domain::document::DocumentKind::Debit => {}
            Some(issued) => return Err(format!("shown {:?}, issued {:?}", preview.content, issued.content)),
            None => return Err(format!("shown and never issued: {preview:?}")),
        }
    }
    Ok(())
}

fn same_place(document: &DocumentView, preview: &DocumentView) -> bool {
    let first = |view: &DocumentView| view.content.products.first().map(|product| product.product_no);
    document.state != DocumentState::Void
        && document.contract_ref == preview.contract_ref
        && document.purpose == preview.purpose
        && document.period.start() == preview.period.start()
        && first(document) == first(preview)
}
