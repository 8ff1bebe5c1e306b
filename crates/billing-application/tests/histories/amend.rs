//! Steps that edit and cancel contracts.

use billing_application::contracts::{cancel_contract, edit_contract};
use billing_domain::contract::amendment::{ContractEdit, Reach};
use billing_domain::patch::Patch;
use billing_testkit::fixtures;

use crate::convert;
use crate::model::calendar::{plus, service_date};
use crate::model::contract::{ProductPatch, Wanted};
use crate::spec::*;
use crate::world::{Checked, Expected, World, expect};

impl World {
    pub(crate) fn edit(
        &mut self,
        contract: usize,
        current: bool,
        po_number: &Patch<&'static str>,
        products: Option<&ProductsChange>,
    ) -> Checked<bool> {
        if self.contracts.is_empty() {
            return Ok(false);
        }
        let index = contract % self.contracts.len();
        let patches = products.map(|change| self.patches(index, change));
        let predicted = self.model.edited(index, patches.as_deref(), current, self.now());
        let reach = if current { Reach::CurrentInvoice } else { Reach::NextInvoice };
        let po_number = match po_number {
            Patch::Keep => Patch::Keep,
            Patch::Clear => Patch::Clear,
            Patch::Set(text) => Patch::Set(fixtures::line(text)),
        };
        let products = patches.map(|patches| patches.into_iter().map(convert::patch).collect());
        let edit = ContractEdit { po_number, products, reach };
        let made = edit_contract(&self.bench.services, &self.bench.principal, self.contracts[index], None, &edit);
        let outcome = made.map(|_| ());
        let expected = match &predicted {
            None => Expected::Refused,
            // Entity and currency of what is issued can't change; the model knows no documents.
            Some(next) if self.changes_series(index, next) => Expected::Either,
            Some(_) => Expected::Done,
        };
        expect(expected, "an edit", &outcome)?;
        if let (Ok(()), Some(next)) = (&outcome, predicted) {
            self.model.contracts[index] = next;
        }
        Ok(outcome.is_ok())
    }

    /// Whether an edit gives a product another entity or currency than it has in any version.
    fn changes_series(&self, index: usize, next: &crate::model::Contract) -> bool {
        self.model.contracts[index].products.iter().any(|product| {
            let after = next.products.iter().find(|after| after.no == product.no).expect("products are kept");
            let newest = after.newest_terms();
            let versions = product.segments.iter().filter_map(|segment| segment.terms.as_ref());
            versions.into_iter().any(|terms| terms.entity != newest.entity || terms.currency != newest.currency)
        })
    }

    fn patches(&self, index: usize, change: &ProductsChange) -> Vec<ProductPatch> {
        let contract = &self.model.contracts[index];
        let today = service_date("UTC", self.now());
        let present: Vec<_> = contract.products.iter().filter(|product| !product.is_removed).collect();
        let mut patches = Vec::new();
        for (product, change) in present.iter().zip(change.present.iter().cycle()) {
            let ProductChange::Change(change) = change else { continue };
            let wanted = &product.newest_terms().wanted;
            let twins = present.iter().filter(|other| other.newest_terms().wanted.pricing == wanted.pricing).count();
            patches.push(ProductPatch {
                pricing: wanted.pricing,
                start: (twins > 1).then_some(wanted.start),
                end: change.end_in.map(|days| plus(today, days)),
                items: self.items(wanted, change),
                entity: change.entity.clone(),
                cycle: change.cycle.clone(),
                issue_day: Patch::Keep,
                payment_time: change.payment_time.clone(),
                tax: change.tax.clone(),
                discount: change.discount.clone(),
                net_terms: change.net_terms.clone(),
                note: change.note.clone(),
            });
        }
        patches.extend(change.added.iter().map(|product| convert::added(convert::wanted(product, today))));
        patches
    }

    /// Line items of a patch; kept ones that the pricing has dropped would be refused, too.
    fn items(&self, wanted: &Wanted, change: &ProductPatchSpec) -> Patch<Vec<&'static str>> {
        let has = |id: &&'static str| self.model.catalog.pricings[wanted.pricing].items.iter().any(|item| item.id == *id);
        let known = |ids: &[&'static str]| ids.iter().copied().filter(has).collect::<Vec<_>>();
        let present = wanted.items.as_deref().unwrap_or_default();
        match &change.items {
            Patch::Set(ids) if change.known_items => Patch::Set(known(ids)),
            Patch::Keep if change.known_items && known(present) != present => Patch::Set(known(present)),
            asked => asked.clone(),
        }
    }

    pub(crate) fn cancel(&mut self, contract: usize, current: bool) -> Checked<bool> {
        if self.contracts.is_empty() {
            return Ok(false);
        }
        let index = contract % self.contracts.len();
        let predicted = self.model.cancelled(index, current, self.now());
        let reach = if current { Reach::CurrentInvoice } else { Reach::NextInvoice };
        let made = cancel_contract(&self.bench.services, &self.bench.principal, self.contracts[index], reach);
        let outcome = made.map(|_| ());
        expect(if predicted.is_some() { Expected::Done } else { Expected::Refused }, "a cancel", &outcome)?;
        if let Some(next) = predicted {
            self.model.contracts[index] = next;
            self.closed = current.then_some(index);
        }
        Ok(outcome.is_ok())
    }
}
