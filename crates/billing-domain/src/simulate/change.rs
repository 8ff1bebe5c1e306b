//! Changes of a contract: edits and quantities (billing rules 7).

use chrono::NaiveDate;

use super::terms::{ProductEdit, Terms, product};
use super::value::Given;
use crate::contract::amendment::{ContractEdit, EffectiveFrom, ProductPatch, QuantityChange};
use crate::contract::{Contract, ContractProduct};
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{LineItemId, PricingRef};
use crate::refusal::Refusal;
use crate::text::OneLine;

/// An edit of a contract. It takes effect from each product's next period unless another day is set. Products that the
/// edit does not name stay unchanged.
#[derive(Clone, Debug)]
pub struct ContractChange {
    po_number: Option<Given<OneLine>>,
    since: ChangeStart,
    products: Products,
    version: Option<u32>,
}

#[derive(Clone, Debug)]
enum ChangeStart {
    NextPeriod,
    CurrentPeriod,
    Day(Given<NaiveDate>),
}

#[derive(Clone, Debug)]
enum Products {
    Kept { changed: Vec<ProductEdit>, removed: Vec<Given<PricingRef>>, added: Vec<Terms> },
    List(Vec<ProductEdit>),
}

impl ContractChange {
    pub(super) const fn new() -> Self {
        let products = Products::Kept { changed: Vec::new(), removed: Vec::new(), added: Vec::new() };
        Self { po_number: None, since: ChangeStart::NextPeriod, products, version: None }
    }

    /// Sets the effective date of the edit, in the past or future.
    #[must_use]
    pub fn effective_from(mut self, day: impl Into<Given<NaiveDate>>) -> Self {
        self.since = ChangeStart::Day(day.into());
        self
    }

    /// Applies the edit from the start of each product's current period. For removed products, today is the last day.
    #[must_use]
    pub fn include_current_invoice(mut self) -> Self {
        self.since = ChangeStart::CurrentPeriod;
        self
    }

    /// Sets the purchase order number.
    #[must_use]
    pub fn po_number(mut self, text: impl Into<Given<OneLine>>) -> Self {
        self.po_number = Some(text.into());
        self
    }

    /// Sets the contract version that the edit is based on.
    #[must_use]
    pub const fn version(mut self, version: u32) -> Self {
        self.version = Some(version);
        self
    }

    /// Changes the product with a pricing.
    #[must_use]
    pub fn product(mut self, pricing: impl Into<Given<PricingRef>>, change: impl FnOnce(ProductEdit) -> ProductEdit) -> Self {
        if let Products::Kept { changed, .. } = &mut self.products {
            changed.push(change(product(pricing)));
        }
        self
    }

    /// Adds a product.
    #[must_use]
    pub fn add_product(mut self, terms: Terms) -> Self {
        if let Products::Kept { added, .. } = &mut self.products {
            added.push(terms);
        }
        self
    }

    /// Ends the products with a pricing.
    #[must_use]
    pub fn remove(mut self, pricing: impl Into<Given<PricingRef>>) -> Self {
        if let Products::Kept { removed, .. } = &mut self.products {
            removed.push(pricing.into());
        }
        self
    }

    /// Sets the full list of products, as in a request. Products missing from the list end.
    #[must_use]
    pub fn products(mut self, list: impl IntoIterator<Item = ProductEdit>) -> Self {
        self.products = Products::List(list.into_iter().collect());
        self
    }

    pub(super) fn added(&self) -> &[Terms] {
        match &self.products {
            Products::Kept { added, .. } => added,
            Products::List(_) => &[],
        }
    }

    /// Converts the change into the edit of a contract.
    pub(super) fn read(&self, contract: &Contract) -> Result<ContractEdit, Refusal> {
        let products = match &self.products {
            Products::Kept { changed, removed, added } if changed.is_empty() && removed.is_empty() && added.is_empty() => None,
            Products::Kept { changed, removed, added } => {
                let mut list = with_kept(contract, changed, removed)?;
                for (terms, no) in added.iter().zip(contract.products.len()..) {
                    list.push(terms.patch(no)?);
                }
                Some(list)
            }
            Products::List(list) => Some(list.iter().map(ProductEdit::patch).collect::<Result<_, Refusal>>()?),
        };
        let po_number = match &self.po_number {
            Some(text) => Patch::Set(text.read("po_number")?),
            None => Patch::Keep,
        };
        let since = match &self.since {
            ChangeStart::NextPeriod => EffectiveFrom::NextPeriod,
            ChangeStart::CurrentPeriod => EffectiveFrom::CurrentPeriod,
            ChangeStart::Day(day) => EffectiveFrom::Day(day.read("effective_from")?),
        };
        Ok(ContractEdit { po_number, metadata: Patch::Keep, products, since, version: self.version })
    }
}

/// Returns the products of a contract with their changes, without the removed products.
fn with_kept(contract: &Contract, changed: &[ProductEdit], removed: &[Given<PricingRef>]) -> Result<Vec<ProductPatch>, Refusal> {
    let removed: Vec<PricingRef> =
        removed.iter().map(|pricing| pricing.read("product_pricing_ref")).collect::<Result<_, Refusal>>()?;
    let kept: Vec<(&ContractProduct, &PricingRef)> = contract
        .products
        .iter()
        .filter(|product| !product.is_removed())
        .filter_map(|product| Some((product, &product.newest_terms()?.pricing.pricing_ref)))
        .filter(|(_, pricing)| !removed.contains(pricing))
        .collect();
    let mut patches: Vec<Option<ProductPatch>> = vec![None; kept.len()];
    let mut others = Vec::new();
    for change in changed {
        let patch = change.patch()?;
        let starts = |product: &ContractProduct| {
            product.newest_terms().is_some_and(|terms| Some(terms.schedule.range().start()) == patch.billing_start_date)
        };
        let same: Vec<usize> = (0..kept.len()).filter(|i| *kept[*i].1 == patch.pricing_ref).collect();
        let meant = same.iter().find(|i| starts(kept[**i].0)).or(if same.len() == 1 { same.first() } else { None }).copied();
        match meant {
            Some(i) => patches[i] = Some(ProductPatch { product_no: Some(kept[i].0.no), ..patch }),
            // The ledger decides whether to reject such an element.
            None => others.push(patch),
        }
    }
    let plain = |(product, pricing): (&ContractProduct, &PricingRef)| ProductPatch {
        product_no: Some(product.no),
        ..ProductPatch::of(pricing.clone())
    };
    let kept = kept.into_iter().zip(patches).map(|(kept, patch)| patch.unwrap_or_else(|| plain(kept)));
    Ok(kept.chain(others).collect())
}

/// A quantity of a fixed line item, such as seats, from a day on.
#[derive(Clone, Debug)]
pub struct QuantityEdit {
    pricing: Given<PricingRef>,
    line_item: Given<LineItemId>,
    quantity: Given<Quantity>,
    from: Option<Given<NaiveDate>>,
    prorate: bool,
}

/// Returns a quantity of a pricing's fixed line item, effective from today.
pub fn quantity_of(
    pricing: impl Into<Given<PricingRef>>,
    line_item: impl Into<Given<LineItemId>>,
    quantity: impl Into<Given<Quantity>>,
) -> QuantityEdit {
    QuantityEdit { pricing: pricing.into(), line_item: line_item.into(), quantity: quantity.into(), from: None, prorate: true }
}

impl QuantityEdit {
    /// Sets the effective date of the quantity, in the past or future.
    #[must_use]
    pub fn from(mut self, day: impl Into<Given<NaiveDate>>) -> Self {
        self.from = Some(day.into());
        self
    }

    /// Applies the quantity from the next period on.
    #[must_use]
    pub const fn from_next_period(mut self) -> Self {
        self.prorate = false;
        self
    }

    pub(super) fn read(&self) -> Result<QuantityChange, Refusal> {
        let line_item_id = self.line_item.read("line_item_id")?;
        let of_item =
            QuantityChange::of(self.pricing.read("product_pricing_ref")?, line_item_id, self.quantity.read("quantity")?);
        let from = self.from.as_ref().map(|day| day.read("from")).transpose()?;
        Ok(QuantityChange { from, prorate: self.prorate, ..of_item })
    }
}
