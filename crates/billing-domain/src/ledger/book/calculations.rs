//! The calculations of a document's lines ([`LineCalculation`]), completed by the amounts that other documents bill (billing
//! rules 5, 10).
//!
//! The amounts of a line item and service period on all documents add up to its price. So the amount of a line is the price
//! less what the other documents bill, whichever document it is on. What each of them bills is summed up from their lines,
//! never from the difference, so that an amount that isn't billed as it should be is found.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::ContractBook;
use crate::contract::ProductPeriod;
use crate::contract::terms::SelectedLineItem;
use crate::decimal::exact_add;
use crate::document::calculation::{LineCalculation, MAX_NAMED_DOCUMENTS, PreviouslyBilled, UnissuedAmount};
use crate::document::lines::{BillWith, DiscountAndTax, DocumentLine, LedgerLine, LineKey, sign};
use crate::document::numbering::DocumentNumber;
use crate::document::totals::DocumentContent;
use crate::document::{DocumentKind, Purpose};
use crate::money::{AmountOutOfRange, Currency, Money};
use crate::refs::{DocumentRef, ProductNo};
use crate::refusal::{Refusal, WaitReason};

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

/// The content of a document to be issued, whose lines are explained.
#[derive(Clone, Debug)]
pub(in crate::ledger) struct ExplainedContent {
    /// The content with the calculations of its lines.
    pub(in crate::ledger) content: DocumentContent,
    /// The named documents that don't have a number yet.
    pub(in crate::ledger) mentions: Vec<UnnumberedMention>,
}

/// A line of another document that bills the same price.
#[derive(Clone, Copy)]
struct OtherLine<'b> {
    document_ref: DocumentRef,
    family: DocumentRef,
    is_issued: bool,
    /// The signed amount in minor units.
    minor: i64,
    /// The signed change of the quantity; `None` for a regular document, whose lines have the quantity of the whole period.
    change: Option<Decimal>,
    line: &'b LedgerLine,
}

type OtherLines<'b> = BTreeMap<LineKey, Vec<OtherLine<'b>>>;

/// The price of a service period.
struct PricedPeriod<'b> {
    /// The period; `None` if it is no longer planned.
    period: Option<ProductPeriod<'b>>,
    /// The price; empty for a regular document, whose lines already have their calculation.
    price: Vec<DocumentLine>,
}

/// A line that is explained, with its document.
struct Explained<'l> {
    key: LineKey,
    rates: &'l DiscountAndTax,
    has_default_tax: bool,
    /// The index among the document's lines.
    index: usize,
    /// The signed amount in minor units.
    minor: i64,
    /// The signed change of the quantity; `None` for a regular document.
    change: Option<Decimal>,
}

/// The document of the lines that are explained.
#[derive(Clone, Copy)]
struct ExplainedDocument {
    family: DocumentRef,
    kind: DocumentKind,
    is_regular: bool,
}

/// What other documents bill of a line's price.
#[derive(Default)]
struct BilledElsewhere {
    issued: i64,
    issued_documents: BTreeSet<DocumentRef>,
    unissued: i64,
    drafts: BTreeSet<DocumentRef>,
}

impl BilledElsewhere {
    fn add(&mut self, other: &OtherLine<'_>) -> Result<(), Refusal> {
        let (sum, documents) =
            if other.is_issued { (&mut self.issued, &mut self.issued_documents) } else { (&mut self.unissued, &mut self.drafts) };
        *sum = sum.checked_add(other.minor).ok_or(AmountOutOfRange)?;
        let is_named = other.minor != 0 || other.change.is_some_and(|change| !change.is_zero());
        documents.extend(is_named.then_some(other.document_ref));
        Ok(())
    }

    /// Adds an amount that no document bills yet, or another line of the same document.
    fn add_unissued(&mut self, minor: i64) -> Result<(), Refusal> {
        self.unissued = self.unissued.checked_add(minor).ok_or(AmountOutOfRange)?;
        Ok(())
    }

    fn sum(&self) -> Result<i64, Refusal> {
        Ok(self.issued.checked_add(self.unissued).ok_or(AmountOutOfRange)?)
    }
}

/// The explanation of a line: its calculation, and the documents that the calculation names.
struct Explanation {
    calculation: LineCalculation,
    issued: BTreeSet<DocumentRef>,
    drafts: BTreeSet<DocumentRef>,
}

impl ContractBook {
    /// Completes the calculations of a draft's content as it is shown. They name issued documents and drafts by the numbers
    /// that these have.
    pub(super) fn explain_draft(&self, document_ref: DocumentRef, content: &mut DocumentContent) -> Result<(), Refusal> {
        let explanations = self.explanations(document_ref, content)?;
        for (line, explanation) in content.lines_mut().zip(explanations) {
            let Explanation { mut calculation, issued, drafts } = explanation;
            if let Some(previously) = &mut calculation.previously {
                previously.documents = self.numbers_of(issued);
            }
            if let Some(unissued) = &mut calculation.unissued {
                unissued.documents = self.numbers_of(drafts);
            }
            line.calculation = Some(Box::new(calculation));
        }
        Ok(())
    }

    /// Completes the calculations of a content to be issued, which name issued documents alone, because drafts can change.
    ///
    /// # Errors
    /// Returns [`Refusal::Waits`] if a calculation doesn't give the amount of its line. This is a
    /// defect, and the document waits until it is corrected.
    pub(in crate::ledger) fn explain_issued(
        &self,
        document_ref: DocumentRef,
        mut content: DocumentContent,
    ) -> Result<ExplainedContent, Refusal> {
        let document = self.require_document(document_ref)?;
        let explanations = self.explanations(document_ref, &content)?;
        let mut mentions = Vec::new();
        let places = content.products.iter().enumerate();
        let places: Vec<(usize, usize)> =
            places.flat_map(|(product, of)| (0..of.lines.len()).map(move |line| (product, line))).collect();
        for ((line, explanation), (product, index)) in content.lines_mut().zip(explanations).zip(places) {
            let Explanation { mut calculation, issued, drafts: _ } = explanation;
            if let Some(previously) = &mut calculation.previously {
                let named = outermost(issued);
                let is_unnumbered = |named: &DocumentRef| self.number_of(*named).is_some_and(|number| number.sequence == 0);
                let unnumbered = named.iter().copied().filter(is_unnumbered);
                mentions.extend(unnumbered.map(|document_ref| UnnumberedMention { product, line: index, document_ref }));
                previously.documents = self.numbers_of(named);
            }
            line.calculation = Some(Box::new(calculation));
            if let Err(unexplained) = line.check(document.head.kind) {
                let detail = format!(
                    "the document of the period from {} cannot be issued, because its line {} is wrong: {unexplained}",
                    document.head.period.start(),
                    line.name
                );
                return Err(Refusal::waits(WaitReason::WrongCalculation, detail));
            }
        }
        Ok(ExplainedContent { content, mentions })
    }

    /// Returns the explanation of each line of a content.
    fn explanations(&self, document_ref: DocumentRef, content: &DocumentContent) -> Result<Vec<Explanation>, Refusal> {
        let head = self.require_document(document_ref)?;
        let document = ExplainedDocument {
            family: head.family,
            kind: head.head.kind,
            is_regular: matches!(head.head.purpose, Purpose::Regular(_)),
        };
        let others = self.lines_beside(document_ref, content)?;
        let mut lines = Vec::new();
        for product in &content.products {
            for line in &product.lines {
                let usage = line.usage.as_ref().filter(|_| !document.is_regular);
                lines.push(Explained {
                    key: line.key(product.product_no),
                    rates: &product.rates,
                    has_default_tax: line.has_default_tax,
                    index: lines.len(),
                    minor: signed(document.kind, line.amount)?,
                    change: usage.map(|usage| signed_quantity(document.kind, usage.quantity)),
                });
            }
        }
        let mut prices: BTreeMap<(ProductNo, NaiveDate), PricedPeriod<'_>> = BTreeMap::new();
        let mut explanations = Vec::with_capacity(lines.len());
        for (line, shown) in lines.iter().zip(content.lines()) {
            let priced = match prices.entry((line.key.product_no, line.key.period_start)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let period = *unknown.key();
                    unknown.insert(self.priced(period, document.is_regular)?)
                }
            };
            explanations.push(self.explanation(line, shown, priced, (&lines, &others), document)?);
        }
        Ok(explanations)
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

    /// Returns the numbers that documents already have, in the order of opening.
    fn numbers_of(&self, documents: BTreeSet<DocumentRef>) -> Vec<DocumentNumber> {
        let numbers = outermost(documents).into_iter().filter_map(|document_ref| self.number_of(document_ref));
        numbers.filter(|number| number.sequence > 0).cloned().collect()
    }

    /// Returns the lines of other documents with the keys of a content's lines. A line of usage also has the key of the
    /// quantity billed in advance.
    fn lines_beside(&self, document_ref: DocumentRef, content: &DocumentContent) -> Result<OtherLines<'_>, Refusal> {
        let mut keys: BTreeSet<LineKey> = BTreeSet::new();
        for product in &content.products {
            for line in &product.lines {
                let key = line.key(product.product_no);
                keys.extend(in_advance(&key));
                keys.insert(key);
            }
        }
        let mut found: OtherLines<'_> = BTreeMap::new();
        for (other, lines) in self.lines.iter().filter(|(other, _)| **other != document_ref) {
            let (kind, family, is_issued, is_regular) = match (self.documents.get(other), self.elsewhere.get(other)) {
                (Some(document), _) => {
                    let is_regular = matches!(document.head.purpose, Purpose::Regular(_));
                    (document.head.kind, document.family, document.status.is_issued(), is_regular)
                }
                // The book doesn't hold issued children.
                (None, Some((number, family))) => (number.kind, *family, true, false),
                (None, None) => continue,
            };
            for line in lines.iter().filter(|line| keys.contains(&line.key)) {
                let usage = line.usage.as_ref().filter(|_| !is_regular);
                let change = usage.map(|usage| signed_quantity(kind, usage.quantity));
                let minor = signed(kind, line.amount)?;
                let other = OtherLine { document_ref: *other, family, is_issued, minor, change, line };
                found.entry(line.key.clone()).or_default().push(other);
            }
        }
        Ok(found)
    }

    /// Returns the price of a service period, if an explanation needs it.
    fn priced(&self, (no, start): (ProductNo, NaiveDate), is_regular: bool) -> Result<PricedPeriod<'_>, Refusal> {
        let period = self.contract.period_from(no, start);
        let is_needed = |period: &&ProductPeriod<'_>| !is_regular || period.terms.line_items.iter().any(is_prepaid);
        let price = period.as_ref().filter(is_needed).map(|period| self.price_of(period)).transpose()?;
        Ok(PricedPeriod { period, price: price.unwrap_or_default() })
    }

    fn explanation(
        &self,
        line: &Explained<'_>,
        shown: &DocumentLine,
        priced: &PricedPeriod<'_>,
        (lines, others): (&[Explained<'_>], &OtherLines<'_>),
        document: ExplainedDocument,
    ) -> Result<Explanation, Refusal> {
        let currency = shown.amount.currency();
        let of_key = |key: &LineKey| others.get(key).map_or(&[][..], Vec::as_slice);
        let siblings = || lines.iter().filter(|sibling| sibling.index != line.index);
        let is_in_force = |rates: &DiscountAndTax| {
            priced.period.is_some_and(|period| self.are_current(rates, line.key.line_item_id.as_ref(), period.terms))
        };
        let same_line = |priced: &&DocumentLine| priced.key(line.key.product_no) == line.key;
        let of_price = || priced.price.iter().find(same_line).and_then(|price| price.calculation.as_deref());
        let calculation = shown.calculation.as_deref().or_else(of_price);
        let price = calculation.map_or(Ok(Money::zero(currency)), |calculation| calculation.price(currency))?;

        // An amount that its family takes back as a whole, because it is billed at another discount or tax, is no longer part
        // of the price.
        let mut alike = BilledElsewhere::default();
        let is_alike =
            |rates: &DiscountAndTax, has_default_tax: bool| (rates, has_default_tax) == (line.rates, line.has_default_tax);
        for other in of_key(&line.key).iter().filter(|other| other.family == document.family) {
            if is_alike(&other.line.rates, other.line.has_default_tax) {
                alike.add(other)?;
            }
        }
        for sibling in siblings().filter(|sibling| sibling.key == line.key && is_alike(sibling.rates, sibling.has_default_tax)) {
            alike.add_unissued(sibling.minor)?;
        }
        let is_reversed = alike.sum()?.checked_add(line.minor) == Some(0);
        let is_taken_back = !document.is_regular && line.minor != 0 && price.minor() != 0 && is_reversed;
        if is_taken_back || !is_in_force(line.rates) {
            return Ok(explained(LineCalculation::default(), alike, None, currency));
        }

        // What other documents bill of the price, at any discount and tax in force.
        let calculation = calculation.cloned().unwrap_or_default();
        let item = priced
            .period
            .and_then(|period| period.terms.line_items.iter().find(|item| Some(&item.id) == line.key.line_item_id.as_ref()));
        let prepaid = in_advance(&line.key).filter(|_| item.is_some_and(is_prepaid));
        let mut elsewhere = BilledElsewhere::default();
        let mut is_issued_in_advance = false;
        for key in [Some(&line.key), prepaid.as_ref()].into_iter().flatten() {
            for other in of_key(key).iter().filter(|other| is_in_force(&other.line.rates)) {
                elsewhere.add(other)?;
                is_issued_in_advance |= other.is_issued && prepaid.as_ref() == Some(key);
            }
            for sibling in siblings().filter(|sibling| sibling.key == *key && is_in_force(sibling.rates)) {
                elsewhere.add_unissued(sibling.minor)?;
            }
            let is_own = document.is_regular && *key == line.key;
            if let Some(period) = priced.period.as_ref().filter(|_| !is_own) {
                self.add_draft(&mut elsewhere, period, &priced.price, key)?;
            }
        }
        let mut quantity = self.quantity_elsewhere(line, &calculation, priced, (lines, of_key(&line.key)))?;
        if is_issued_in_advance {
            quantity = quantity.max(calculation.prepaid_quantity);
        }
        let mut explanation = explained(calculation, elsewhere, quantity, currency);
        if document.kind == DocumentKind::Credit {
            explanation.calculation.turn_to_credit(price);
        }
        Ok(explanation)
    }

    /// Adds what the draft that bills a key bills of it, as previews show it, whether the draft is opened or not.
    fn add_draft(
        &self,
        elsewhere: &mut BilledElsewhere,
        period: &ProductPeriod<'_>,
        price: &[DocumentLine],
        key: &LineKey,
    ) -> Result<(), Refusal> {
        let home = self.billing_document(period, key.bill_with);
        if home.is_some_and(|home| home.status.is_issued()) {
            return Ok(());
        }
        let mut rest = price.iter().find(|line| line.key(period.product_no) == *key).map_or(0, |line| line.amount.minor());
        for (billed, minor) in self.documented.of_period(period.product_no, period.start()) {
            if billed.line == *key && self.has_current_rates(billed, period.terms) {
                rest = rest.checked_sub(minor).ok_or(AmountOutOfRange)?;
            }
        }
        elsewhere.add_unissued(rest)?;
        elsewhere.drafts.extend(home.filter(|_| rest != 0).map(|home| home.head.document_ref));
        Ok(())
    }

    /// Returns the quantity of usage that issued documents bill beside a line. An issued regular document bills the usage up to
    /// its issue, including the changes on documents that are issued later, so the quantity follows from the usage and from the
    /// changes on drafts.
    fn quantity_elsewhere(
        &self,
        line: &Explained<'_>,
        calculation: &LineCalculation,
        priced: &PricedPeriod<'_>,
        (lines, others): (&[Explained<'_>], &[OtherLine<'_>]),
    ) -> Result<Option<Decimal>, Refusal> {
        let Some(used) = calculation.usage_quantity.filter(|_| line.key.bill_with == BillWith::Usage) else { return Ok(None) };
        let is_billed = priced.period.is_some_and(|period| self.is_billed(&period, line.key.bill_with));
        let is_counted = |other: &&OtherLine<'_>| other.is_issued != is_billed;
        let mut changes = others.iter().filter(is_counted).filter_map(|other| other.change);
        let changes = changes.try_fold(Decimal::ZERO, exact_add)?;
        if !is_billed {
            return Ok(Some(changes));
        }
        let mut own = lines.iter().filter(|sibling| sibling.key == line.key).filter_map(|sibling| sibling.change);
        Ok(Some(exact_add(used, -own.try_fold(changes, exact_add)?)?))
    }
}

/// Returns the signed amount of a line on a document of a kind, in minor units.
fn signed(kind: DocumentKind, amount: Money) -> Result<i64, Refusal> {
    Ok(amount.minor().checked_mul(sign(kind)).ok_or(AmountOutOfRange)?)
}

/// Returns the signed change of a quantity by a line on a document of a kind.
fn signed_quantity(kind: DocumentKind, quantity: Decimal) -> Decimal {
    match kind {
        DocumentKind::Invoice | DocumentKind::Debit => quantity,
        DocumentKind::Credit => -quantity,
    }
}

/// Returns the key of the quantity that is billed in advance of a line of usage.
fn in_advance(key: &LineKey) -> Option<LineKey> {
    let is_usage = key.bill_with == BillWith::Usage && key.line_item_id.is_some();
    is_usage.then(|| LineKey { bill_with: BillWith::Fixed, ..key.clone() })
}

/// Returns whether a line item bills a quantity of its usage in advance.
fn is_prepaid(item: &SelectedLineItem) -> bool {
    item.metered().is_some_and(|metered| metered.charge.prepaid_quantity.is_some())
}

/// Returns the explanation of a line by its price and what other documents bill of it.
fn explained(
    calculation: LineCalculation,
    elsewhere: BilledElsewhere,
    quantity: Option<Decimal>,
    currency: Currency,
) -> Explanation {
    let BilledElsewhere { issued: billed, issued_documents, unissued, drafts } = elsewhere;
    let quantity = quantity.filter(|quantity| !quantity.is_zero());
    let previously = (quantity.is_some() || billed != 0).then(|| PreviouslyBilled {
        quantity,
        amount: Money::from_minor(billed, currency),
        documents: Vec::new(),
    });
    let unissued =
        (unissued != 0).then(|| UnissuedAmount { amount: Money::from_minor(unissued, currency), documents: Vec::new() });
    let calculation = LineCalculation { previously, unissued, ..calculation };
    Explanation { calculation, issued: issued_documents, drafts }
}

/// Returns documents in the order of opening. Of more than [`MAX_NAMED_DOCUMENTS`], returns the first and the latest ones.
fn outermost(documents: BTreeSet<DocumentRef>) -> BTreeSet<DocumentRef> {
    let half = MAX_NAMED_DOCUMENTS / 2;
    if documents.len() <= MAX_NAMED_DOCUMENTS {
        return documents;
    }
    let latest = documents.iter().rev().take(half).copied();
    documents.iter().take(half).copied().chain(latest).collect()
}
