//! The calculations of a document's lines ([`LineCalculation`]), completed by the amounts that other documents bill (billing
//! rules 5).
//!
//! The amounts of a line item and service period on all documents add up to its price. So the amount of a line is the price
//! less what the other documents bill, whichever document it is on.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::ContractBook;
use crate::contract::ProductPeriod;
use crate::decimal::exact_add;
use crate::document::calculation::{LineCalculation, MAX_NAMED_DOCUMENTS, PreviouslyBilled};
use crate::document::lines::{BillWith, DiscountAndTax, DocumentLine, LedgerLine, LineKey, sign};
use crate::document::numbering::DocumentNumber;
use crate::document::totals::{DocumentContent, children_price};
use crate::document::{DocumentKind, LifecycleStatus, Purpose};
use crate::money::{AmountOutOfRange, Currency, Money};
use crate::refs::{DocumentRef, ProductNo};
use crate::refusal::Refusal;

/// A document that a calculation names, whose number is assigned only when the decision is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnnumberedMention {
    /// The index of the product in the content.
    pub product: usize,
    /// The index of the line in the product.
    pub line: usize,
    /// The named document.
    pub document_ref: DocumentRef,
}

/// A line of another document that bills the same price.
#[derive(Clone, Copy)]
struct OtherLine<'b> {
    document_ref: DocumentRef,
    family: DocumentRef,
    kind: DocumentKind,
    line: &'b LedgerLine,
}

impl OtherLine<'_> {
    fn minor(&self) -> Result<i64, Refusal> {
        Ok(self.line.amount.minor().checked_mul(sign(self.kind)).ok_or(AmountOutOfRange)?)
    }
}

type OtherLines<'b> = BTreeMap<LineKey, Vec<OtherLine<'b>>>;

/// The prices of a service period.
struct PricedPeriod<'b> {
    /// The period; `None` if it is no longer planned.
    period: Option<ProductPeriod<'b>>,
    price: Vec<DocumentLine>,
    /// The price without minimums, if child documents bill its usage.
    of_children: Vec<DocumentLine>,
}

/// A line that is explained, with its document.
struct Explained<'l> {
    key: LineKey,
    rates: &'l DiscountAndTax,
    has_default_tax: bool,
    family: DocumentRef,
    /// The index among the document's lines.
    index: usize,
    minor: i64,
}

/// The explanation of a line: its calculation, and the documents that the calculation names.
struct Explanation {
    calculation: LineCalculation,
    documents: BTreeSet<DocumentRef>,
}

impl ContractBook {
    /// Completes the calculations of a draft's content. Returns the named documents that don't have a number yet.
    ///
    /// In debug builds, a line that its calculation doesn't explain is a defect that refuses the decision.
    pub(in crate::ledger) fn explain(
        &self,
        document_ref: DocumentRef,
        content: &mut DocumentContent,
    ) -> Result<Vec<UnnumberedMention>, Refusal> {
        let document = self.require_document(document_ref)?;
        let (kind, family) = (document.head.kind, document.family);
        let is_regular = matches!(document.head.purpose, Purpose::Regular(_));
        let others = self.lines_beside(document_ref, content);
        let mut lines = Vec::new();
        for product in &content.products {
            for line in &product.lines {
                lines.push(Explained {
                    key: line.key(product.product_no),
                    rates: &product.rates,
                    has_default_tax: line.has_default_tax,
                    family,
                    index: lines.len(),
                    minor: line.amount.minor().checked_mul(sign(kind)).ok_or(AmountOutOfRange)?,
                });
            }
        }
        let mut prices: BTreeMap<(ProductNo, NaiveDate), PricedPeriod<'_>> = BTreeMap::new();
        let mut explanations = Vec::with_capacity(lines.len());
        for (line, shown) in lines.iter().zip(content.products.iter().flat_map(|product| &product.lines)) {
            let period = (line.key.product_no, line.key.period_start);
            let priced = match prices.entry(period) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(self.priced(period, is_regular)?),
            };
            let beside = (lines.as_slice(), &others);
            explanations.push(self.explanation(line, shown, priced, beside, (document_ref, is_regular))?);
        }
        let mut explanations = explanations.into_iter();
        let mut mentions = Vec::new();
        for (product_index, product) in content.products.iter_mut().enumerate() {
            for (line_index, line) in product.lines.iter_mut().enumerate() {
                let Some(Explanation { mut calculation, documents }) = explanations.next() else { continue };
                if let Some(previously) = &mut calculation.previously {
                    for named in outermost(documents) {
                        match self.number_of(named) {
                            Some(number) if number.sequence > 0 => previously.documents.push(number.clone()),
                            Some(_) => {
                                let (product, line) = (product_index, line_index);
                                mentions.push(UnnumberedMention { product, line, document_ref: named });
                            }
                            None => {}
                        }
                    }
                }
                line.calculation = Some(Box::new(calculation));
                if cfg!(debug_assertions)
                    && let Err(unexplained) = line.check(kind)
                {
                    return Err(Refusal::Broken(format!("document {document_ref}, line {}: {unexplained}", line.name)));
                }
            }
        }
        Ok(mentions)
    }

    /// Adds the numbers that were assigned to documents that a content's calculations name.
    pub(super) fn name_mentioned(
        &self,
        content: &mut DocumentContent,
        mentions: &[UnnumberedMention],
        given: &BTreeMap<DocumentRef, (u64, u32)>,
    ) {
        for UnnumberedMention { product, line, document_ref } in mentions {
            let number = self.number_of(*document_ref).zip(given.get(document_ref));
            let line = content.products.get_mut(*product).and_then(|product| product.lines.get_mut(*line));
            let previously = line.and_then(|line| line.calculation.as_mut()?.previously.as_mut());
            if let (Some((number, (sequence, _))), Some(previously)) = (number, previously) {
                previously.documents.push(DocumentNumber { sequence: *sequence, ..number.clone() });
            }
        }
    }

    /// Returns the number of a document in force, also of an issued child that the book has only lines of.
    pub(in crate::ledger) fn number_of(&self, document_ref: DocumentRef) -> Option<&DocumentNumber> {
        let known = self.documents.get(&document_ref).map(|document| &document.head.number);
        known.or_else(|| self.elsewhere.get(&document_ref).map(|(number, _)| number))
    }

    /// Returns the lines of other documents with the keys of a content's lines. A line of usage also has the key of the
    /// quantity billed in advance.
    fn lines_beside(&self, document_ref: DocumentRef, content: &DocumentContent) -> OtherLines<'_> {
        let mut keys: BTreeSet<LineKey> = BTreeSet::new();
        for product in &content.products {
            for line in &product.lines {
                let key = line.key(product.product_no);
                if let Some(in_advance) = in_advance(&key) {
                    keys.insert(in_advance);
                }
                keys.insert(key);
            }
        }
        let mut found: OtherLines<'_> = BTreeMap::new();
        for (other, lines) in &self.lines {
            let placed = match self.documents.get(other) {
                Some(document) => Some((document.head.kind, document.family)),
                None => self.elsewhere.get(other).map(|(number, family)| (number.kind, *family)),
            };
            let Some((kind, family)) = placed.filter(|_| *other != document_ref) else { continue };
            for line in lines.iter().filter(|line| keys.contains(&line.key)) {
                let other = OtherLine { document_ref: *other, family, kind, line };
                found.entry(line.key.clone()).or_default().push(other);
            }
        }
        found
    }

    /// Returns the prices of a service period. The lines of a regular document already have their calculation.
    fn priced(&self, (no, start): (ProductNo, NaiveDate), is_regular: bool) -> Result<PricedPeriod<'_>, Refusal> {
        let period = self.contract.product(no).and_then(|product| product.period_from(start));
        let (mut price, mut of_children) = (Vec::new(), Vec::new());
        if let Some(period) = period.as_ref().filter(|_| !is_regular) {
            price = self.price_of(period)?;
            if self.family_of_children(period)?.is_some() {
                of_children = children_price(&self.contract, period, self.usage())?;
            }
        }
        Ok(PricedPeriod { period, price, of_children })
    }

    fn explanation(
        &self,
        line: &Explained<'_>,
        shown: &DocumentLine,
        priced: &PricedPeriod<'_>,
        (lines, others): (&[Explained<'_>], &OtherLines<'_>),
        (document_ref, is_regular): (DocumentRef, bool),
    ) -> Result<Explanation, Refusal> {
        let currency = shown.amount.currency();
        let of_key = others.get(&line.key).map_or(&[][..], Vec::as_slice);
        let is_in_force = |rates: &DiscountAndTax| {
            priced.period.is_some_and(|period| self.are_current(rates, line.key.line_item_id.as_ref(), period.terms))
        };
        let same_line = |priced: &&DocumentLine| priced.key(line.key.product_no) == line.key;
        let price = priced.price.iter().find(same_line);
        let price_calculation = shown.calculation.as_deref().or_else(|| price.and_then(|price| price.calculation.as_deref()));
        let amount = net_of(price_calculation, currency)?.minor();

        // The amounts at the same discount and tax in the same family, and those at any discount and tax in force.
        let (mut alike, mut standing) = (line.minor, line.minor);
        let (mut alike_documents, mut standing_documents) = (BTreeSet::new(), BTreeSet::new());
        let mut quantity: Option<Decimal> = None;
        for other in of_key {
            let has_amount = other.line.amount.minor() != 0;
            if (&other.line.rates, other.line.has_default_tax, other.family) == (line.rates, line.has_default_tax, line.family) {
                alike = alike.checked_add(other.minor()?).ok_or(AmountOutOfRange)?;
                alike_documents.extend(has_amount.then_some(other.document_ref));
            }
            if is_in_force(&other.line.rates) {
                standing = standing.checked_add(other.minor()?).ok_or(AmountOutOfRange)?;
                let changed = other.line.usage.as_ref().map(|usage| usage.quantity).filter(|quantity| !quantity.is_zero());
                standing_documents.extend((has_amount || changed.is_some()).then_some(other.document_ref));
                if let Some(changed) = changed {
                    let changed = if other.kind == DocumentKind::Credit { -changed } else { changed };
                    quantity = Some(exact_add(quantity.unwrap_or_default(), changed)?);
                }
            }
        }
        for sibling in lines.iter().filter(|sibling| sibling.index != line.index && sibling.key == line.key) {
            if (sibling.rates, sibling.has_default_tax) == (line.rates, line.has_default_tax) {
                alike = alike.checked_add(sibling.minor).ok_or(AmountOutOfRange)?;
            }
            if is_in_force(sibling.rates) {
                standing = standing.checked_add(sibling.minor).ok_or(AmountOutOfRange)?;
            }
        }

        // An amount that is taken back as a whole, because it is billed at another discount or tax, is no longer part of the
        // price.
        let is_taken_back = !is_regular && line.minor != 0 && amount != 0 && alike == 0;
        if is_taken_back || !is_in_force(line.rates) {
            let previously = billed_before(None, Money::from_minor(-line.minor, currency));
            let calculation = LineCalculation { previously, ..LineCalculation::default() };
            return Ok(Explanation { calculation, documents: alike_documents });
        }
        let of_children = priced.of_children.iter().find(same_line);
        let mut now = (price_calculation, amount);
        if standing != amount {
            match of_children.filter(|of_children| of_children.amount.minor() == standing) {
                // The children bill the price without minimums. Their parent bills the rest.
                Some(of_children) => now = (of_children.calculation.as_deref(), standing),
                // A draft bills the rest of the price.
                None => standing_documents.extend(self.draft_that_bills(priced.period.as_ref(), line.key.bill_with)),
            }
        }
        let mut calculation = now.0.cloned().unwrap_or_default();
        let mut billed = now.1.checked_sub(line.minor).ok_or(AmountOutOfRange)?;
        if let Some(elsewhere) = calculation.previously.take() {
            // The quantity billed in advance is on the document of the fixed items.
            billed = billed.checked_add(elsewhere.amount.minor()).ok_or(AmountOutOfRange)?;
            quantity = elsewhere.quantity.max(quantity);
            let in_advance = in_advance(&line.key).and_then(|key| others.get(&key));
            standing_documents.extend(in_advance.into_iter().flatten().map(|other| other.document_ref));
            standing_documents.extend(self.draft_that_bills(priced.period.as_ref(), BillWith::Fixed));
        }
        standing_documents.remove(&document_ref);
        calculation.previously = billed_before(quantity, Money::from_minor(billed, currency));
        Ok(Explanation { calculation, documents: standing_documents })
    }

    /// Returns the draft that bills the fixed items or the usage of a service period, if it is opened.
    fn draft_that_bills(&self, period: Option<&ProductPeriod<'_>>, with: BillWith) -> Option<DocumentRef> {
        let home = self.billing_document(period?, with)?;
        (home.status == LifecycleStatus::Draft).then_some(home.head.document_ref)
    }
}

/// Returns the key of the quantity that is billed in advance of a line of usage.
fn in_advance(key: &LineKey) -> Option<LineKey> {
    let is_usage = key.bill_with == BillWith::Usage && key.line_item_id.is_some();
    is_usage.then(|| LineKey { bill_with: BillWith::Fixed, ..key.clone() })
}

/// Returns the amount that a calculation gives, less what it has as billed elsewhere; zero without a calculation.
fn net_of(calculation: Option<&LineCalculation>, currency: Currency) -> Result<Money, Refusal> {
    let Some(calculation) = calculation else { return Ok(Money::zero(currency)) };
    let price = calculation.price(currency)?;
    Ok(match &calculation.previously {
        Some(elsewhere) => price.checked_sub(elsewhere.amount)?,
        None => price,
    })
}

/// Returns what is billed before, without documents; `None` for nothing.
fn billed_before(quantity: Option<Decimal>, amount: Money) -> Option<PreviouslyBilled> {
    let quantity = quantity.filter(|quantity| !quantity.is_zero());
    (quantity.is_some() || amount.minor() != 0).then_some(PreviouslyBilled { quantity, amount, documents: Vec::new() })
}

/// Returns documents in the order of opening. Of more than [`MAX_NAMED_DOCUMENTS`], returns the first and the latest ones.
fn outermost(documents: BTreeSet<DocumentRef>) -> Vec<DocumentRef> {
    let mut documents = Vec::from_iter(documents);
    let half = MAX_NAMED_DOCUMENTS / 2;
    if documents.len() > MAX_NAMED_DOCUMENTS {
        documents.drain(half..documents.len() - half);
    }
    documents
}
