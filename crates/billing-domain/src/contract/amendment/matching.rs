//! Matching of an edit's elements to the contract's products (billing rules 7).

use super::{AmendmentContext, ProductPatch, start_of, still_bills};
use crate::contract::{Contract, ContractProduct};
use crate::refs::ProductNo;
use crate::violation::Violations;

/// Matches an edit's elements to the contract's products. The order of the elements has no influence.
///
/// Matching has these steps:
/// - An element with a product number matches by number.
/// - Other elements match by pricing and start, including ended products.
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
    for (i, patch) in patches.iter().enumerate().filter(|(_, patch)| unnumbered(patch)) {
        let Some(start) = patch.billing_start_date else { continue };
        let same = |product: &&ContractProduct| priced(product, patch) && start_of(product) == Some(start);
        let free: Vec<&ContractProduct> =
            contract.products.iter().filter(same).filter(|product| !matched.contains(&Some(product.no))).collect();
        // Several products with the same start exist when earlier ones were replaced. Match the newest.
        matched[i] = free.iter().rev().find(|product| still_bills(product, now)).or(free.last()).map(|product| product.no);
    }
    let by_start = matched.clone();
    let is_open = |(i, patch): &(usize, &ProductPatch)| by_start[*i].is_none() && unnumbered(patch);
    for (i, patch) in patches.iter().enumerate().filter(is_open) {
        let left: Vec<&ContractProduct> = contract
            .products
            .iter()
            .filter(|product| priced(product, patch) && still_bills(product, now) && !by_start.contains(&Some(product.no)))
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
