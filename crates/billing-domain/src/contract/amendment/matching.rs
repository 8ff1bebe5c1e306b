//! Matching of an edit's elements to the contract's products (billing rules 7).

use super::{AmendmentContext, ProductPatch, start_of, still_bills};
use crate::contract::{Contract, ContractProduct};
use crate::patch::Patch;
use crate::refs::ProductNo;
use crate::violation::Violations;

/// Matches an edit's elements to the contract's products. The order of the elements has no influence.
///
/// Matching has these steps:
/// - An element with a product number matches by number.
/// - Other elements match by pricing, start and equal `where`, including ended products.
/// - Then by pricing and start, if only one such product still bills.
/// - The remaining elements match by pricing, if only one unmatched product still bills.
///
/// # Errors
/// Returns `unknown_product`, `ambiguous_product` and `pricing_mismatch`, with paths below the contract.
pub(super) fn match_products(
    contract: &Contract,
    patches: &[ProductPatch],
    now: &AmendmentContext<'_>,
) -> Result<Vec<Option<ProductNo>>, Violations> {
    let priced = |product: &&ContractProduct, patch: &ProductPatch| {
        product.newest_terms().is_some_and(|terms| terms.pricing.pricing_ref == patch.pricing_ref)
    };
    let mut found = Violations::none();
    let mut matched: Vec<Option<ProductNo>> = vec![None; patches.len()];
    for (i, patch) in patches.iter().enumerate() {
        let Some(no) = patch.product_no else { continue };
        let index = i.to_string();
        let (field, code, detail) = match contract.product(no) {
            None => ("product_no", "unknown_product", "must be the number of a product of the contract, or be omitted"),
            Some(product) if !priced(&product, patch) => {
                ("product_pricing_ref", "pricing_mismatch", "must be the pricing of the product that product_no names")
            }
            Some(_) if matched.contains(&Some(no)) => {
                ("product_no", "ambiguous_product", "must not be the number of another element's product")
            }
            Some(_) => {
                matched[i] = Some(no);
                continue;
            }
        };
        found.add(&["products", &index, field], code, detail);
    }
    let unnumbered = |patch: &ProductPatch| patch.product_no.is_none();
    for by_condition in [true, false] {
        for (i, patch) in patches.iter().enumerate().filter(|(_, patch)| unnumbered(patch)) {
            let Some(start) = patch.billing_start_date.filter(|_| matched[i].is_none()) else { continue };
            let same = |product: &&ContractProduct| {
                priced(product, patch)
                    && start_of(product) == Some(start)
                    && (!by_condition || has_condition_of(product, patch))
                    && !matched.contains(&Some(product.no))
            };
            let free: Vec<&ContractProduct> = contract.products.iter().filter(same).collect();
            let billing: Vec<&ContractProduct> = free.iter().copied().filter(|product| still_bills(product, now)).collect();
            if billing.len() > 1 {
                found.add(&["products", &i.to_string(), "product_no"], "ambiguous_product", SEVERAL_TWINS);
            }
            // Several products with the same start exist when earlier ones were replaced. Match the newest.
            matched[i] = billing.last().or(free.last()).map(|product| product.no);
        }
    }
    let by_start = matched.clone();
    let is_open = |(i, patch): &(usize, &ProductPatch)| by_start[*i].is_none() && unnumbered(patch);
    for (i, patch) in patches.iter().enumerate().filter(is_open) {
        let left: Vec<&ContractProduct> = contract
            .products
            .iter()
            .filter(|product| priced(product, patch) && still_bills(product, now) && !by_start.contains(&Some(product.no)))
            .filter(|product| !is_another(product, patch))
            .collect();
        let rivals = || patches.iter().enumerate().filter(is_open).filter(|(_, other)| other.pricing_ref == patch.pricing_ref);
        let undated = rivals().filter(|(_, other)| other.billing_start_date.is_none()).count();
        let means_it = rivals().count() == 1 || (undated == 1 && patch.billing_start_date.is_none());
        let index = i.to_string();
        match left.as_slice() {
            [] => {}
            [only] if means_it => matched[i] = Some(only.no),
            [_] if undated == 1 => {}
            _ => {
                let detail = "must be given, because several products of the contract have this pricing";
                found.add(&["products", &index, "billing_start_date"], "ambiguous_product", detail);
            }
        }
    }
    found.or(matched)
}

const SEVERAL_TWINS: &str = "must be given, because several products of the contract have this pricing and start";

/// Returns whether a product has the `where` that an element names.
fn has_condition_of(product: &ContractProduct, patch: &ProductPatch) -> bool {
    let condition = product.newest_terms().and_then(|terms| terms.condition.as_ref());
    match &patch.condition {
        Patch::Keep => false,
        Patch::Clear => condition.is_none(),
        Patch::Set(wanted) => condition == Some(wanted),
    }
}

/// Returns whether an element means another product because its `where` and its start are others: `w3` from May instead of `w2`
/// ends one product and begins another.
fn is_another(product: &ContractProduct, patch: &ProductPatch) -> bool {
    let condition = product.newest_terms().and_then(|terms| terms.condition.as_ref());
    let starts_elsewhere = patch.billing_start_date.is_some_and(|start| start_of(product) != Some(start));
    match (&patch.condition, condition) {
        (Patch::Set(wanted), Some(condition)) => starts_elsewhere && wanted.is_disjoint(condition),
        _ => false,
    }
}
