//! Σ INVOICE + Σ DEBIT − Σ CREDIT of (contract product, line item, service period) = A(live usage), always
//! (billing rules 5): what documents say against what the model computes from raw events.

use std::collections::{BTreeMap, BTreeSet};

use billing_application::contracts::{current_invoices, next_invoices};
use billing_application::documents::DocumentView;
use billing_domain::document::linking::Slot;
use billing_domain::document::{DocumentKind, DocumentState, Purpose};

use crate::model::Key;
use crate::model::calendar::Date;
use crate::world::{Checked, World};

/// The place of a regular document: contract, product, first day of its own period, which of its documents.
type Place = (usize, u16, Date, Slot);

#[derive(Default)]
struct Seen {
    sums: BTreeMap<Key, i64>,
    /// Where lines stand; `None` for children and adjustments.
    stand: BTreeSet<(Key, Option<Place>)>,
    places: BTreeSet<Place>,
}

impl Seen {
    fn add(&mut self, contract: usize, document: &DocumentView) {
        let sign = if document.kind == DocumentKind::Credit { -1 } else { 1 };
        for product in &document.content.products {
            let no = product.product_no.0;
            let place = match document.purpose {
                Purpose::Regular(slot) => Some((contract, no, document.period.start(), slot)),
                Purpose::Usage | Purpose::Adjustment => None,
            };
            self.places.extend(place);
            for line in &product.lines {
                let id = line.line_item_id.as_ref().map(|id| id.as_str().to_owned());
                let key = (contract, no, line.service_period.start(), id);
                *self.sums.entry(key.clone()).or_insert(0) += sign * line.amount.minor();
                self.stand.insert((key, place));
            }
        }
    }
}

pub(crate) fn check_conservation(world: &World) -> Checked {
    let mut seen = Seen::default();
    for document in world.documents.iter().filter(|document| document.state != DocumentState::Void) {
        seen.add(world.contract_of(document), document);
    }
    for (i, contract) in world.contracts.iter().enumerate() {
        let (services, principal) = (&world.bench.services, &world.bench.principal);
        let current = current_invoices(services, principal, *contract).map_err(|error| error.to_string())?;
        let next = next_invoices(services, principal, *contract).map_err(|error| error.to_string())?;
        for planned in current.iter().chain(&next).filter(|document| document.opened.is_none()) {
            seen.add(i, planned);
        }
    }
    for (i, contract) in world.model.contracts.iter().enumerate() {
        let mut costs: BTreeMap<Key, i64> = BTreeMap::new();
        let mut unknown: BTreeSet<Key> = BTreeSet::new();
        // Service periods whose usage no document bills yet: it will bill what children bill of dropped line items, too.
        let mut unbilled: BTreeSet<(u16, Date)> = BTreeSet::new();
        for product in &contract.products {
            let is_settled = |own: usize, slot: Slot| {
                let there = seen.places.contains(&(i, product.no, product.periods[own].start, slot));
                let due = world.billed_at.is_some_and(|at| world.model.due_at(product, own, slot) <= at);
                there || due || world.closed == Some(i)
            };
            for (index, period) in product.periods.iter().enumerate() {
                let (own, slot) = product.usage_slot(index);
                if !is_settled(own, slot) {
                    unbilled.insert((product.no, period.start));
                }
            }
            for part in world.model.parts(i, product) {
                let place = (i, product.no, part.own, part.slot);
                let own = product.periods.iter().position(|period| period.start == part.own).expect("a period");
                if is_settled(own, part.slot) {
                    *costs.entry(part.key.clone()).or_insert(0) += part.minor;
                } else {
                    unknown.insert(part.key.clone());
                }
                seen.stand.remove(&(part.key, Some(place)));
            }
        }
        for (key, sum) in seen.sums.iter().filter(|(key, _)| key.0 == i) {
            let listed = costs.remove(key);
            let cost = listed.unwrap_or(0);
            // What children, adjustments and documents of another place bill of one that isn't opened yet is settled
            // when it is.
            let stands_elsewhere = seen.stand.iter().any(|(other, _)| other == key);
            let is_open = unknown.contains(key) || (listed.is_none() && unbilled.contains(&(key.1, key.2)));
            if cost != *sum && !(is_open && stands_elsewhere) {
                return Err(format!("{key:?} costs {cost}, and documents say {sum}"));
            }
        }
        if let Some((key, cost)) = costs.into_iter().find(|(_, cost)| *cost != 0) {
            return Err(format!("{key:?} costs {cost}, and no document says so"));
        }
    }
    Ok(())
}
