//! Compares documents with the amounts owed by the model (billing rules 5), after every step.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::document::calculation::{CalculatedTier, MAX_NAMED_DOCUMENTS, PackageCalculation};
use billing_domain::document::lines::{BillWith, DocumentLine, LineKey};
use billing_domain::document::totals::{BilledProduct, DocumentContent};
use billing_domain::document::{BookDocument, DocumentKind, LifecycleStatus, Purpose};
use billing_domain::ledger::{Entry, UnnumberedMention};
use billing_domain::money::Percentage;
use billing_domain::party::NetTerms;
use billing_domain::refs::DocumentRef;
use billing_domain::tax::TaxTreatment;
use ethnum::I256;

use crate::histories::convert;
use crate::histories::model::calendar::Date;
use crate::histories::model::rating::{self, round_ratio, round_wide, whole};
use crate::histories::model::terms::{Period, Product, Terms};
use crate::histories::model::{Part, Slot, With};
use crate::histories::spec::{ChargeSpec, UsageSpec};
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
        self.check_charges(&parts)?;
        self.check_prepaid()?;
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
                    return Err(format!("a product of {} doesn't add up", self.reported(document)));
                }
                sub_total += of_lines;
                discount += product.discount.minor();
                *bases.entry(rates.1.clone()).or_insert(0) += product.net.minor();
                let sum = seen.discounts.entry((document.family, product.product_no.0, rates)).or_insert((0, 0));
                *sum = (sum.0 + sign * of_lines, sum.1 + sign * product.discount.minor());
            }
            let mut prepaid = 0;
            for of_grant in &content.prepaid {
                prepaid += of_grant.amount.minor();
                match bases.get_mut(&of_grant.treatment) {
                    Some(base) => *base -= of_grant.amount.minor(),
                    None => return Err(format!("{} takes credit at another tax: {of_grant:?}", self.reported(document))),
                }
            }
            let mut tax = 0;
            for of_rate in &content.taxes {
                if bases.remove(&of_rate.treatment) != Some(of_rate.base.minor()) {
                    return Err(format!("the tax at {:?} of {} has another base", of_rate.treatment, self.reported(document)));
                }
                tax += of_rate.amount.minor();
                let sum = seen.taxes.entry((document.family, of_rate.treatment.clone())).or_insert((0, 0));
                *sum = (sum.0 + sign * of_rate.base.minor(), sum.1 + sign * of_rate.amount.minor());
            }
            let adds_up = content.sub_total.minor() == sub_total
                && content.total_discount.minor() == discount
                && content.total_tax.minor() == tax
                && content.total_prepaid().is_ok_and(|total| total.minor() == prepaid)
                && content.total.minor() == sub_total - discount - prepaid + tax
                && bases.is_empty();
            if !adds_up {
                return Err(format!("the totals of {} don't add up", self.reported(document)));
            }
            if document.status.is_issued() && document.total != Some(content.total) {
                return Err(format!("{} has a total of {:?}, not {}", self.reported(document), document.total, content.total));
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
            if !self.is_in_force(part, key.2.as_deref(), rates) {
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

    /// Returns whether a discount and tax are in force for a line of a part's period. A value that the contract leaves to a
    /// default keeps the default of its document.
    fn is_in_force(&self, part: &Part, item: Option<&str>, (discount, tax): &RateKey) -> bool {
        let is_discountable = self.model.is_discountable(item);
        let is_other_category =
            tax.rate == convert::rate(0) && part.terms.category.is_some_and(|category| convert::basis(category) != tax.basis);
        *discount == convert::rate(part.terms.discount.filter(|_| is_discountable).unwrap_or(0))
            && part.terms.tax.is_none_or(|stated| convert::rate(stated) == tax.rate)
            && !is_other_category
    }

    /// Checks what the lines of a document say about other documents (billing rules 10) when the document is issued. The
    /// previously billed amount is the sum of the lines of all issued documents with the same price, and of the named documents.
    pub(crate) fn check_elsewhere(
        &self,
        document: &BookDocument,
        content: &DocumentContent,
        mentions: &[UnnumberedMention],
    ) -> Checked {
        let parts = self.model.parts();
        for (product_index, product) in content.products.iter().enumerate() {
            for (line_index, line) in product.lines.iter().enumerate() {
                let mentions = mentions.iter().filter(|mention| (mention.product, mention.line) == (product_index, line_index));
                let named: BTreeSet<DocumentRef> = mentions.map(|mention| mention.document_ref).collect();
                self.check_previously(document, (product, line), &named, &parts)
                    .map_err(|problem| format!("{}: {problem}: {line:?}", self.reported(document)))?;
            }
        }
        Ok(())
    }

    fn check_previously(
        &self,
        document: &BookDocument,
        (product, line): (&BilledProduct, &DocumentLine),
        named: &BTreeSet<DocumentRef>,
        parts: &[Part],
    ) -> Checked {
        let is_issued = |other: &DocumentRef| {
            let stands = self.book.document(*other).is_some_and(|other| other.status.is_issued());
            *other != document.head.document_ref && stands && self.frozen.contains_key(other)
        };
        if let Some(other) = named.iter().find(|other| !is_issued(other)) {
            return Err(format!("it names {other}, which is not issued"));
        }
        let calculation = line.calculation.as_deref().ok_or("no calculation")?;
        let amount = calculation.previously.as_ref().map_or(0, |previously| previously.amount.minor());
        let key = line.key(product.product_no);
        let of_period = || parts.iter().filter(|part| (part.product, part.start) == (product.product_no.0, line.period_start));
        let part = of_period().next();
        let item = line.line_item_id.as_ref().map(|id| id.as_str());
        // The quantity billed in advance has the price of the usage, too.
        let mut keys = vec![key.clone()];
        if of_period().any(|part| part.with == With::Fixed && part.item.as_deref() == item) && key.bill_with == BillWith::Usage {
            keys.push(LineKey { bill_with: BillWith::Fixed, ..key.clone() });
        }
        // The price that the factors give is the one that is owed. What drafts bill of it follows from the sum of all documents.
        let price = calculation.price(line.amount.currency()).map_err(|error| error.to_string())?.minor();
        let is_credited = document.head.kind == DocumentKind::Credit && !calculation.is_difference();
        let is_of_line = |part: &&Part| {
            let with = if part.with == With::Fixed { BillWith::Fixed } else { BillWith::Usage };
            part.item.as_deref() == line.line_item_id.as_ref().map(|id| id.as_str())
                && keys.iter().any(|key| key.bill_with == with)
        };
        let owed: i64 = of_period().filter(is_of_line).map(|part| part.minor).sum();
        if price != 0 && price != if is_credited { -owed } else { owed } {
            return Err(format!("its factors give {price} of a price of {owed}"));
        }
        if let Some(minimum_fee) = &calculation.minimum_fee {
            let excluded: i64 = minimum_fee.excluded.iter().map(|line| line.amount.minor()).sum();
            let others: i64 = of_period().filter(|part| part.item.is_some()).map(|part| part.minor).sum();
            if minimum_fee.billed.minor() + excluded != others {
                return Err(format!("its minimum fee counts and excludes lines that don't make {others}"));
            }
        }
        let rates_of = |product: &BilledProduct| (product.rates.discount, product.rates.tax.clone());
        // A line takes back what its family bills at the same rates, or bills what is missing to the price.
        let is_alike = |family: DocumentRef, other: &BilledProduct, of: &DocumentLine| {
            (family, rates_of(other), of.has_default_tax) == (document.family, rates_of(product), line.has_default_tax)
                && of.key(other.product_no) == key
        };
        let is_standing = |_: DocumentRef, other: &BilledProduct, _: &DocumentLine| {
            part.is_some_and(|part| self.is_in_force(part, item, &rates_of(other)))
        };
        let sum = |only: Option<&BTreeSet<DocumentRef>>, fits: &dyn Fn(DocumentRef, &BilledProduct, &DocumentLine) -> bool| {
            let mut sum = 0;
            let others = self.frozen.iter().filter(|(other, _)| is_issued(other) && only.is_none_or(|only| only.contains(other)));
            for (other, content) in others {
                let other = self.book.document(*other).expect("an issued document");
                for product in &content.products {
                    let fitting = product.lines.iter().filter(|of| keys.contains(&of.key(product.product_no)));
                    let fitting = fitting.filter(|of| fits(other.family, product, of));
                    sum += sign(other.head.kind) * fitting.map(|of| of.amount.minor()).sum::<i64>();
                }
            }
            sum
        };
        let all_are_named = named.len() < MAX_NAMED_DOCUMENTS;
        let is_sum = |fits: &dyn Fn(DocumentRef, &BilledProduct, &DocumentLine) -> bool| {
            sum(None, fits) == amount && (!all_are_named || sum(Some(named), fits) == amount)
        };
        if is_sum(&is_standing) || is_sum(&is_alike) {
            return Ok(());
        }
        Err(format!(
            "it says that {amount} are billed on {named:?}, which bill {} or {}, and all documents {} or {}",
            sum(Some(named), &is_standing),
            sum(Some(named), &is_alike),
            sum(None, &is_standing),
            sum(None, &is_alike)
        ))
    }

    /// Returns the sum of all documents for a line at its tax. It is not above zero if the line reverses a credit. The `entries` have
    /// the documents that are issued by the same decision.
    pub(crate) fn documented_at(&self, at: &BilledProduct, of: &DocumentLine, entries: &[Entry]) -> Checked<i64> {
        let content_in = |entry: &Entry, document: &BookDocument| match entry {
            Entry::Issued { document_ref, issued, .. } => {
                (*document_ref == document.head.document_ref).then(|| issued.content.clone())
            }
            _ => None,
        };
        let mut sum = 0;
        for document in self.book.documents().filter(|document| !document.status.is_void()) {
            let issued = entries.iter().find_map(|entry| content_in(entry, document));
            let content = issued.map_or_else(|| self.content(document), Ok)?;
            let is_same = |product: &&BilledProduct| product.product_no == at.product_no && product.rates.tax == at.rates.tax;
            for line in content.products.iter().filter(is_same).flat_map(|product| &product.lines) {
                if line.key(at.product_no) == of.key(at.product_no) {
                    sum += sign(document.head.kind) * line.amount.minor();
                }
            }
        }
        Ok(sum)
    }

    /// Checks that each live event is on a document in force, or on a void document that waits for its replacement.
    fn check_events(&self) -> Checked {
        for (kept, event) in self.events.iter().zip(&self.model.events).filter(|(_, event)| !event.deleted) {
            let document = self.book.document(kept.listed_on).ok_or_else(|| format!("{event:?} stands nowhere"))?;
            if document.status == LifecycleStatus::Discarded {
                return Err(format!("{event:?} stands on a discarded {}", self.reported(document)));
            }
        }
        // The list of events of an issued document is fixed at its issue. An event that returns stands on its parent, and another
        // document of the family can list it (billing rules 5).
        for (index, (kept, event)) in self.events.iter().zip(&self.model.events).enumerate() {
            let document = self.book.document(kept.listed_on).ok_or("an event stands nowhere")?;
            let of_family = |other: &DocumentRef| self.book.document(*other).is_some_and(|other| other.family == document.family);
            let is_listed = || self.listed.iter().any(|(other, listed)| listed.contains(&index) && of_family(other));
            if !event.deleted && document.status.is_issued() && !is_listed() {
                return Err(format!("{event:?} stands on an issued document that doesn't list it: {}", self.reported(document)));
            }
        }
        Ok(())
    }
}

impl World {
    /// Checks that an edit corrected the documents of events at once in the periods whose terms it changed, while their usage is
    /// not billed: they bill the price of the usage without minimums (billing rules 3). `before` are the products before the edit.
    pub(crate) fn check_children(&self, before: &[Product]) -> Checked {
        let mut sums: BTreeMap<Key, i64> = BTreeMap::new();
        let (mut billed, mut of_children) = (BTreeSet::new(), BTreeSet::new());
        for document in self.book.documents().filter(|document| !document.status.is_void()) {
            let (content, is_issued) = (self.content(document)?, document.status.is_issued());
            for (no, line) in content.products.iter().flat_map(|it| it.lines.iter().map(|line| (it.product_no.0, line))) {
                let (minor, is_usage) = (line.amount.minor(), line.bill_with == BillWith::Usage);
                let with = if is_usage { With::Usage } else { With::Fixed };
                if slot(document).is_none() {
                    let id = line.line_item_id.as_ref().map(|id| id.as_str().to_owned());
                    *sums.entry((no, line.period_start, id, with)).or_insert(0) += sign(document.head.kind) * minor;
                } else if is_issued && is_usage {
                    billed.insert((no, line.period_start));
                }
                if document.head.purpose == Purpose::Usage && (is_issued || minor != 0) {
                    of_children.insert((no, line.period_start, document.family));
                }
            }
        }
        for product in &self.model.products {
            let no = product.no;
            for (index, period) in product.periods.iter().enumerate().filter(|(_, it)| !billed.contains(&(no, it.start))) {
                let was = before.iter().find(|was| was.no == no).and_then(|was| was.period_at(period.start));
                // An end of the product takes effect on its own day, so it changes no period that ends before (billing rules 7).
                let of_same_end = |was: &Period| {
                    let end = if was.end == period.end { was.terms.end } else { period.terms.end };
                    Terms { end, ..(*period.terms).clone() }
                };
                if was.is_none_or(|was| was.start != period.start || was.terms.shows_as(&of_same_end(was))) {
                    continue;
                }
                let (carrier, of_carrier) = product.usage_slot(index);
                let invoice = if of_carrier == Slot::UsageDebit { Slot::Period } else { of_carrier };
                let find = |wanted: Slot| {
                    self.book.documents().find(|document| {
                        !document.status.is_void()
                            && slot(document) == Some(wanted)
                            && document.head.period.start() == product.periods[carrier].start
                            && document.head.parts.iter().any(|part| part.0 == no)
                    })
                };
                let is_due_upon_usage = |it: &BookDocument| it.head.net_terms == NetTerms::DueUponUsage;
                let decides = find(of_carrier).or_else(|| find(invoice)).filter(|it| is_due_upon_usage(it));
                let family = find(invoice).filter(|_| decides.is_some()).map(|invoice| invoice.family);
                if family.is_none_or(|family| !of_children.contains(&(no, period.start, family))) {
                    continue;
                }
                for item in &period.terms.items {
                    let ChargeSpec::Usage(usage) = &item.charge else { continue };
                    if usage.prepaid.is_some() {
                        continue;
                    }
                    let (q, events) = self.model.q(no, period, item);
                    let priced = UsageSpec { minimum: None, ..usage.clone() };
                    let expected = rating::usage(&priced, q, events, period.share(), period.terms.currency);
                    let sum = sums.get(&(no, period.start, Some(item.id.to_owned()), With::Usage)).copied().unwrap_or(0);
                    if sum != expected {
                        let (start, id) = (period.start, item.id);
                        return Err(format!(
                            "children of product {no}, {id} from {start} bill {sum} after an edit, not {expected}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that each live charge that costs or credits something is on a document in force, or waits for the replacement of a
    /// void document. A charge that counts nothing has no line: a negative charge if its period bills nothing else (billing rules 5).
    fn check_charges(&self, parts: &[Part]) -> Checked {
        for charge in self.book.charges().live() {
            let waits = || {
                let is_void =
                    |other: &BookDocument| other.status == LifecycleStatus::Void && other.head.parts.contains(&charge.product_no);
                self.book.documents().any(is_void)
            };
            let id = charge.line_item_id();
            let counts = parts.iter().any(|part| part.item.as_deref() == Some(id.as_str()) && part.minor != 0);
            if counts && self.book.documents_of_charge(charge).is_empty() && !waits() {
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

/// The decimals of factors as whole numbers.
const PLACES: usize = 12;

/// Returns a factor as a whole number, in units of its twelfth decimal.
fn raw(number: impl std::fmt::Display) -> I256 {
    let text = number.to_string();
    let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
    I256::from_str_radix(&format!("{integer}{fraction:0<PLACES$}"), 10).expect("at most twelve decimals")
}

/// Computes a line's amount in whole numbers, from nothing but the factors that its document shows.
fn amount_of_factors(line: &DocumentLine, kind: DocumentKind) -> Checked<i64> {
    let factors = line.calculation.as_ref().ok_or_else(|| format!("{line:?} has no calculation"))?;
    let exponent = line.amount.currency().exponent();
    let unit = whole(10).pow(12);
    let round = |amount: I256, (days, of): (u32, u32)| {
        round_wide(amount * whole(10).pow(exponent) * whole(days), unit * unit * whole(of))
    };
    let units = |quantity: I256, tiers: &[CalculatedTier], packages: Option<PackageCalculation>| {
        let mut amount = factors.unit_price.map_or(I256::ZERO, |price| raw(price.as_decimal()) * quantity);
        for tier in tiers {
            amount += raw(tier.unit_price.as_decimal()) * raw(tier.quantity) + raw(tier.flat_amount.as_decimal()) * unit;
        }
        amount + packages.map_or(I256::ZERO, |packages| raw(packages.count) * raw(packages.price.as_decimal()))
    };
    let is_usage = factors.usage_quantity.is_some() || factors.prepaid_quantity.is_some();
    let (of_whole, share) = ((1, 1), factors.proration.map_or((1, 1), |proration| (proration.days, proration.of_days)));
    let mut minor = if let Some(minimum_fee) = &factors.minimum_fee {
        (round(raw(minimum_fee.fee.as_decimal()) * unit, share) - minimum_fee.billed.minor()).max(0)
    } else if let Some(first) = factors.quantities.first() {
        let parts = factors
            .quantities
            .iter()
            .map(|part| units(raw(part.quantity.as_decimal()), &part.tiers, part.packages) * whole(part.days));
        let amount = round(parts.sum(), (1, first.of_days));
        if factors.quantities.iter().map(|part| part.amount.minor()).sum::<i64>() != amount {
            return Err(format!("the parts of {line:?} don't make {amount}"));
        }
        amount
    } else {
        let quantity = factors.billable_quantity.map_or(I256::ZERO, raw);
        let mut amount = units(quantity, &factors.tiers, factors.packages);
        if let Some(percentage) = factors.percentage {
            amount += raw(percentage.rate.as_decimal()) * raw(percentage.base) / whole(100);
            amount += raw(percentage.fixed_amount.as_decimal()) * whole(percentage.count) * unit;
        }
        round(amount, if is_usage { of_whole } else { share })
    };
    if let Some(minimum) = factors.minimum {
        minor = minor.max(round(raw(minimum) * unit, if is_usage { share } else { of_whole }));
    }
    if let Some(maximum) = factors.maximum {
        minor = minor.min(round(raw(maximum) * unit, of_whole));
    }
    let issued = factors.previously.as_ref().map(|previously| previously.amount.minor());
    let unissued = factors.unissued.as_ref().map(|unissued| unissued.amount.minor());
    // Without other documents, the factors give the amount on a credit, too.
    if issued.is_none() && unissued.is_none() {
        return Ok(minor);
    }
    Ok(sign(kind) * (minor - issued.unwrap_or(0) - unissued.unwrap_or(0)))
}

/// Checks that the factors of each line give its amount. Returns the number of lines.
pub(crate) fn explained(content: &DocumentContent, kind: DocumentKind) -> Checked<u32> {
    let mut count = 0;
    for line in content.products.iter().flat_map(|product| &product.lines) {
        line.check(kind).map_err(|unexplained| format!("{line:?}: {unexplained}"))?;
        let amount = amount_of_factors(line, kind)?;
        if amount != line.amount.minor() {
            return Err(format!("the factors of {line:?} give {amount}"));
        }
        count += 1;
    }
    Ok(count)
}
