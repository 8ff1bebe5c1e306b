//! Compares documents with the amounts owed by the model (billing rules 5), after every step.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::document::lines::BillWith;
use billing_domain::document::{BookDocument, DocumentKind, LifecycleStatus, Purpose};
use billing_domain::money::Percentage;
use billing_domain::party::NetTerms;
use billing_domain::refs::DocumentRef;
use billing_domain::tax::TaxTreatment;

use crate::histories::convert;
use crate::histories::model::calendar::Date;
use crate::histories::model::rating::round_ratio;
use crate::histories::model::{Part, Slot, With};
use crate::histories::world::{Checked, World, sign, slot};

/// The key of an amount: product, first day of the service period, line item, and the items that it is billed with.
type Key = (u16, Date, Option<String>, With);
type RateKey = (Percentage, TaxTreatment);

#[derive(Default)]
struct BilledSums {
    sums: BTreeMap<Key, i64>,
    by_rate: BTreeMap<(DocumentRef, Key, RateKey), i64>,
    /// The keys that children or their corrections bill.
    of_children: BTreeSet<Key>,
    places: BTreeSet<(u16, Date, Slot)>,
    discounts: BTreeMap<(DocumentRef, u16, RateKey), (i64, i64)>,
    taxes: BTreeMap<(DocumentRef, TaxTreatment), (i64, i64)>,
}

impl World {
    pub(crate) fn check(&mut self) -> Checked {
        let problems = self.own_check();
        if !problems.is_empty() {
            return Err(format!("the ledger's own check: {problems:?}"));
        }
        let seen = self.seen()?;
        let parts = self.model.parts();
        self.check_lines(&seen, &parts)?;
        self.check_rates(&seen, &parts)?;
        for ((family, no, rates), (base, amount)) in &seen.discounts {
            let expected = percent(*base, rates.0);
            if *amount != expected && !self.has_void(*family) {
                return Err(format!(
                    "discount of family {family}, product {no} at {rates:?}: {amount}, not {expected} of {base}"
                ));
            }
        }
        for ((family, tax), (base, amount)) in &seen.taxes {
            let expected = percent(*base, tax.rate);
            if *amount != expected && !self.has_void(*family) {
                return Err(format!("tax of family {family} at {tax:?}: {amount}, not {expected} of {base}"));
            }
        }
        self.check_events()?;
        self.check_charges()?;
        self.check_money()
    }

    /// Returns whether a document of a family is void. The family's sums are rounded at issue. With a void document, they may be
    /// a cent off until a document is issued at the same rates.
    fn has_void(&self, family: DocumentRef) -> bool {
        self.book.documents().any(|document| document.family == family && document.status == LifecycleStatus::Void)
    }

    fn seen(&self) -> Checked<BilledSums> {
        let mut seen = BilledSums::default();
        for document in self.book.documents().filter(|document| !document.status.is_void()) {
            let head = &document.head;
            let content = self.content(document)?;
            let sign = sign(head.kind);
            if let Some(slot) = slot(document) {
                seen.places.extend(head.parts.iter().map(|no| (no.0, head.period.start(), slot)));
            }
            let corrects_children = head.purpose == Purpose::Adjustment && head.net_terms == NetTerms::DueUponUsage;
            let is_child = head.purpose == Purpose::Usage || corrects_children;
            let (mut sub_total, mut discount) = (0, 0);
            let mut bases: BTreeMap<TaxTreatment, i64> = BTreeMap::new();
            for product in &content.products {
                let rates = (product.rates.discount, product.rates.tax.clone());
                let mut of_lines = 0;
                for line in &product.lines {
                    let with = if line.bill_with == BillWith::Fixed { With::Fixed } else { With::Usage };
                    let id = line.line_item_id.as_ref().map(|id| id.as_str().to_owned());
                    let key = (product.product_no.0, line.period_start, id, with);
                    of_lines += line.amount.minor();
                    *seen.sums.entry(key.clone()).or_insert(0) += sign * line.amount.minor();
                    *seen.by_rate.entry((document.family, key.clone(), rates.clone())).or_insert(0) += sign * line.amount.minor();
                    if is_child {
                        seen.of_children.insert(key);
                    }
                }
                if of_lines != product.sub_total.minor() || product.net.minor() != of_lines - product.discount.minor() {
                    return Err(format!("a product of {} doesn't add up", self.told(document)));
                }
                sub_total += of_lines;
                discount += product.discount.minor();
                *bases.entry(rates.1.clone()).or_insert(0) += product.net.minor();
                let sum = seen.discounts.entry((document.family, product.product_no.0, rates)).or_insert((0, 0));
                *sum = (sum.0 + sign * of_lines, sum.1 + sign * product.discount.minor());
            }
            let mut tax = 0;
            for of_rate in &content.taxes {
                if bases.remove(&of_rate.treatment) != Some(of_rate.base.minor()) {
                    return Err(format!("the tax at {:?} of {} has another base", of_rate.treatment, self.told(document)));
                }
                tax += of_rate.amount.minor();
                let sum = seen.taxes.entry((document.family, of_rate.treatment.clone())).or_insert((0, 0));
                *sum = (sum.0 + sign * of_rate.base.minor(), sum.1 + sign * of_rate.amount.minor());
            }
            let adds_up = content.sub_total.minor() == sub_total
                && content.total_discount.minor() == discount
                && content.total_tax.minor() == tax
                && content.total.minor() == sub_total - discount + tax
                && bases.is_empty();
            if !adds_up {
                return Err(format!("the totals of {} don't add up", self.told(document)));
            }
            if document.status.is_issued() && document.total != Some(content.total) {
                return Err(format!("{} has a total of {:?}, not {}", self.told(document), document.total, content.total));
            }
        }
        Ok(seen)
    }

    fn check_lines(&self, seen: &BilledSums, parts: &[Part]) -> Checked {
        let mut owed: BTreeMap<Key, i64> = BTreeMap::new();
        let mut settled: BTreeSet<(u16, Date)> = BTreeSet::new();
        for part in parts {
            let key = (part.product, part.start, part.item.clone(), part.with);
            let sum = seen.sums.get(&key).copied().unwrap_or(0);
            let product = self.model.product(part.product);
            let index = product.periods.iter().position(|period| period.start == part.own).expect("a period");
            let is_covered = seen.places.contains(&(part.product, part.own, part.slot));
            let due = self.model.due_at(product, index, part.slot);
            let waits = self.model.may_lack(product.periods[index].terms.entity);
            let is_settled = is_covered || self.has_run && due <= self.now && !waits;
            let fits = sum == part.minor || !is_settled && (sum == 0 || seen.of_children.contains(&key));
            if is_settled && part.with == With::Usage {
                settled.insert((part.product, part.start));
            }
            if !fits {
                let whose = if is_covered { "a document is there" } else { "no document is there" };
                return Err(format!(
                    "{key:?} costs {}, and documents say {sum} ({whose}, {:?} of {} due {due})",
                    part.minor, part.slot, part.own
                ));
            }
            owed.insert(key, part.minor);
        }
        for (key, sum) in &seen.sums {
            // L3: if an edit drops a line item, the amount that children billed for it stays until the period's usage is billed.
            let waits = seen.of_children.contains(key) && !settled.contains(&(key.0, key.1));
            if *sum != 0 && !owed.contains_key(key) && !waits {
                return Err(format!("{key:?} isn't owed, and documents say {sum}"));
            }
        }
        Ok(())
    }

    fn check_rates(&self, seen: &BilledSums, parts: &[Part]) -> Checked {
        let terms: BTreeMap<(u16, Date), &Part> = parts.iter().map(|part| ((part.product, part.start), part)).collect();
        for ((family, key, rates), sum) in seen.by_rate.iter().filter(|(_, sum)| **sum != 0) {
            let Some(part) = terms.get(&(key.0, key.1)) else {
                if seen.of_children.contains(key) {
                    continue;
                }
                return Err(format!("{key:?} isn't owed, and {rates:?} has {sum}"));
            };
            let is_discountable = self.model.is_discountable(key.2.as_deref());
            let discount = convert::rate(part.terms.discount.filter(|_| is_discountable).unwrap_or(0));
            let stated = part.terms.tax.map(convert::rate);
            // A value that the contract leaves to a default keeps the default of its document.
            let is_other_category = rates.1.rate == convert::rate(0)
                && part.terms.category.is_some_and(|category| convert::basis(category) != rates.1.basis);
            if rates.0 != discount || stated.is_some_and(|stated| stated != rates.1.rate) || is_other_category {
                return Err(format!("{key:?} of {family} stands at {rates:?} with {sum}, not at {discount:?} and {stated:?}"));
            }
        }
        // No tax has a sum of the wrong sign: an amount is credited at the tax at which it was billed.
        let mut at_taxes: BTreeMap<(&Key, &TaxTreatment), i64> = BTreeMap::new();
        for ((_, key, (_, tax)), sum) in &seen.by_rate {
            *at_taxes.entry((key, tax)).or_insert(0) += sum;
        }
        for ((key, tax), sum) in at_taxes {
            let all = seen.sums.get(key).copied().unwrap_or(0);
            if sum != 0 && (all == 0 || sum.signum() != all.signum()) {
                return Err(format!("{key:?} has {sum} at {tax:?}, of {all} in all"));
            }
        }
        Ok(())
    }

    /// Checks that each live event is on a document in force, or on a void document that waits for its replacement.
    fn check_events(&self) -> Checked {
        for (kept, event) in self.events.iter().zip(&self.model.events).filter(|(_, event)| !event.deleted) {
            let document = self.book.document(kept.standing).ok_or_else(|| format!("{event:?} stands nowhere"))?;
            if document.status == LifecycleStatus::Discarded {
                return Err(format!("{event:?} stands on a discarded {}", self.told(document)));
            }
        }
        Ok(())
    }
}

impl World {
    /// Checks that each live charge is on a document in force, or waits for the replacement of a void document. A negative charge
    /// counts nothing if its period bills nothing else. It can then be on an open credit and debit that cancel each other out and
    /// are discarded.
    fn check_charges(&self) -> Checked {
        for charge in self.book.charges().live() {
            let waits = || {
                let is_void =
                    |other: &BookDocument| other.status == LifecycleStatus::Void && other.head.parts.contains(&charge.product_no);
                self.book.documents().any(is_void)
            };
            let counts_nothing = || {
                let is_credit = |other: &BookDocument| {
                    other.status == LifecycleStatus::Discarded
                        && (other.head.kind, other.head.purpose) == (DocumentKind::Credit, Purpose::Adjustment)
                        && other.head.parts.contains(&charge.product_no)
                };
                charge.unit_price.as_decimal().is_sign_negative() && self.book.documents().any(is_credit)
            };
            // A charge of nothing has no line. It loses its draft if an edit joins its period with an issued one.
            let is_nothing = || charge.amount().is_ok_and(|amount| amount.minor() == 0);
            if self.book.documents_of_charge(charge).is_empty() && !waits() && !counts_nothing() && !is_nothing() {
                return Err(format!("{charge:?} is on no document"));
            }
        }
        Ok(())
    }
}

/// Returns a percentage of minor units, rounded half away from zero.
fn percent(minor: i64, rate: Percentage) -> i64 {
    let rate: u32 = (rate.as_decimal() * rust_decimal::Decimal::from(100)).try_into().expect("hundredths of a percent");
    round_ratio(i128::from(minor) * i128::from(rate), 10_000)
}
