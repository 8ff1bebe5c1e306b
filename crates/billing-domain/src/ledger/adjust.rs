//! Differences: what a period costs now and isn't documented, and the open adjustments that collect it (billing rules 5).

use super::open::New;
use super::{ContractBook, Entry, Supplies};
use crate::calendar::{Period, Timestamp};
use crate::contract::ProductPeriod;
use crate::decimal::exact_add;
use crate::document::lines::{BillWith, DocumentLine, LedgerLine, LedgerUsage, LineKey, Rates, kind_of, merge, negated};
use crate::document::totals::{lines_of_period, lines_of_step};
use crate::document::{BookDocument, DocumentKind, Purpose};
use crate::money::Money;
use crate::refs::{DocumentRef, ProductNo};
use crate::refusal::Refusal;
use crate::usage::{UsageKey, UsageTotal};

impl ContractBook {
    /// What a change of usage makes a difference of to a period that is billed: its price with the new total, true-ups
    /// included, less everything documented. Lines show by how much their quantity changed.
    pub(super) fn difference(
        &self,
        period: &ProductPeriod<'_>,
        family: DocumentRef,
        key: &UsageKey,
        after: UsageTotal,
    ) -> Result<Vec<LedgerLine>, Refusal> {
        let mut changed = self.usage().clone();
        changed.put(key.clone(), after);
        let before = self.price_of(period)?;
        let target = lines_of_period(self.contract.contract_ref, period, &changed, self.charges())?;
        let mut lines = self.less_documented(period, BillWith::Usage, family, &target)?;
        for line in &mut lines {
            let same = |was: &&DocumentLine| was.key(period.product_no) == line.key;
            let was = before.iter().find(same).and_then(|was| was.usage.as_ref());
            if let (Some(usage), Some(was)) = (&mut line.usage, was) {
                usage.quantity = exact_add(usage.quantity, -was.quantity)?;
            }
        }
        lines.retain(|line| !line.is_nothing());
        Ok(lines)
    }

    /// Lines that are billed with a period's fixed items or its usage, less everything that is documented of that, at the
    /// rates in force in a family.
    pub(super) fn less_documented(
        &self,
        period: &ProductPeriod<'_>,
        with: BillWith,
        family: DocumentRef,
        target: &[DocumentLine],
    ) -> Result<Vec<LedgerLine>, Refusal> {
        let currency = period.terms.pricing.currency;
        let rates = |key: &LineKey| self.rates_of(key.line_item_id.as_ref(), period.terms, Some(family));
        let of_account = target.iter().filter(|line| line.bill_with == with);
        let mut lines: Vec<LedgerLine> =
            of_account.map(|line| LedgerLine::of(period.product_no, rates(&line.key(period.product_no)), line)).collect();
        for (billed, minor) in self.documented().of_period(period.product_no, period.start()) {
            if !self.stands_right(billed, period.terms) || billed.line.bill_with != with {
                continue;
            }
            let minus = Money::zero(currency).checked_sub(Money::from_minor(minor, currency))?;
            match lines.iter_mut().find(|line| line.key == billed.line) {
                Some(line) => line.amount = line.amount.checked_add(minus)?,
                None => lines.push(LedgerLine {
                    key: billed.line.clone(),
                    service_period: period.days(),
                    rates: rates(&billed.line),
                    usage: None,
                    amount: minus,
                }),
            }
        }
        Ok(lines)
    }

    /// The invoice an adjustment of a document's usage names as its parent (billing rules 5).
    pub(super) fn parent_for(&self, document: &BookDocument) -> Result<DocumentRef, Refusal> {
        match (document.head.kind, document.head.parent) {
            (DocumentKind::Invoice, _) => Ok(document.head.document_ref),
            (DocumentKind::Credit | DocumentKind::Debit, Some(parent)) => Ok(parent),
            (DocumentKind::Credit | DocumentKind::Debit, None) => {
                Err(Refusal::Broken(format!("document {} has no parent", document.head.document_ref)))
            }
        }
    }

    /// Puts a difference on the open adjustment of a parent and of the kind its sign asks for.
    pub(super) fn adjust(
        &mut self,
        parent: DocumentRef,
        period: (ProductNo, Period),
        lines: Vec<LedgerLine>,
        now: Timestamp,
        supplies: &mut impl Supplies,
    ) -> Result<DocumentRef, Refusal> {
        let currency = self.known(parent)?.head.currency;
        let kind = kind_of(Money::sum(currency, lines.iter().map(|line| line.amount))?);
        let document_ref = self.adjustment(parent, kind, period, now, supplies)?;
        let lines = if kind == DocumentKind::Credit { negated(lines)? } else { lines };
        self.collect(document_ref, period, lines)?;
        Ok(document_ref)
    }

    /// The open adjustment of a parent and kind, opened where there is none.
    pub(super) fn adjustment(
        &mut self,
        parent: DocumentRef,
        kind: DocumentKind,
        (product_no, period): (ProductNo, Period),
        now: Timestamp,
        supplies: &mut impl Supplies,
    ) -> Result<DocumentRef, Refusal> {
        if let Some(open) = self.open_adjustment(parent, kind) {
            return Ok(open.head.document_ref);
        }
        let head = &self.known(parent)?.head;
        let new = New {
            kind,
            purpose: Purpose::Adjustment,
            entity_ref: head.entity_ref.clone(),
            currency: head.currency,
            period,
            is_partial_period: self.is_partial(product_no, period),
            parts: vec![product_no],
            net_terms: head.net_terms,
            payment: head.payment.clone(),
            parent: Some(parent),
            replaces: None,
        };
        self.open(new, now, supplies)
    }

    fn is_partial(&self, product_no: ProductNo, days: Period) -> bool {
        let period = self.contract.product(product_no).and_then(|product| product.period_at(days.start()));
        period.is_none_or(|period| period.period.nominal() != days)
    }

    /// Adds lines to an open adjustment; its period then reaches from the first day it corrects to the last.
    pub(super) fn collect(
        &mut self,
        document_ref: DocumentRef,
        (product_no, days): (ProductNo, Period),
        lines: Vec<LedgerLine>,
    ) -> Result<(), Refusal> {
        let mut head = self.known(document_ref)?.head.clone();
        let merged = merge(self.lines_on(document_ref), lines)?;
        if let Some(period) = Period::new(head.period.start().min(days.start()), head.period.end().max(days.end())) {
            head.is_partial_period =
                if period == head.period { head.is_partial_period } else { self.is_partial(product_no, period) };
            head.period = period;
        }
        let named = merged.iter().map(|line| line.key.product_no).chain([product_no]);
        for no in named.collect::<Vec<_>>() {
            if !head.parts.contains(&no) {
                head.parts.push(no);
            }
        }
        head.parts.sort();
        self.put(Entry::Lines { document_ref, lines: merged })?;
        if head != self.known(document_ref)?.head {
            self.put(Entry::Redrawn(Box::new(head)))?;
        }
        // Amounts that can't be added up refuse the change.
        self.content(document_ref)?;
        Ok(())
    }

    /// The lines of a child or an own document's step, at the rates of its family.
    pub(super) fn step_lines(
        &self,
        period: &ProductPeriod<'_>,
        family: DocumentRef,
        key: &UsageKey,
        before: &UsageTotal,
        after: &UsageTotal,
    ) -> Result<Vec<LedgerLine>, Refusal> {
        let rates: Rates = self.rates(period.terms, Some(family));
        let lines = lines_of_step(period, &key.usage_product_ref, before, after)?;
        let mut steps: Vec<LedgerLine> = lines.iter().map(|line| LedgerLine::of(period.product_no, rates, line)).collect();
        for step in &mut steps {
            let of_line = self.documented().of_period(period.product_no, period.start());
            let billed: i64 = of_line.filter(|(billed, _)| billed.line == step.key).map(|(_, minor)| minor).sum();
            // No more is taken back than others than the period's own document have billed.
            if step.amount.minor() < -billed.max(0) {
                step.amount = Money::from_minor(-billed.max(0), step.amount.currency());
            }
        }
        Ok(steps)
    }
}

/// Whether lines change no amount.
pub(super) fn no_amount(lines: &[LedgerLine]) -> bool {
    lines.iter().all(|line| line.amount.minor() == 0)
}

/// Lines without a quantity that didn't change.
pub(super) fn without_quantities(lines: Vec<LedgerLine>) -> Vec<LedgerLine> {
    let strip =
        |line: LedgerLine| LedgerLine { usage: line.usage.filter(|usage: &LedgerUsage| !usage.quantity.is_zero()), ..line };
    lines.into_iter().map(strip).collect()
}
