//! The contents of documents: what a draft would bill, and with which rates.

use super::*;
use crate::contract::terms::SelectedLineItem;
use crate::ledger::reconcile::UnbilledLine;

impl ContractBook {
    /// Returns the current content of a draft. Its calculations have no amounts of other documents. The book can't compute the
    /// content of other documents.
    ///
    /// # Errors
    /// Returns [`Refusal::AmountOutOfRange`], or [`Refusal::Broken`] when the book lacks a required row.
    pub fn content(&self, document_ref: DocumentRef) -> Result<DocumentContent, Refusal> {
        let document = self.require_document(document_ref)?;
        let contents = match self.credit() {
            // Without credit, a draft depends on its family alone.
            None => self.drafts_before_credit(document.family, Some(document_ref))?,
            Some(_) => self.draft_contents()?,
        };
        let own = contents.into_iter().find(|(draft, _)| draft.head.document_ref == document_ref);
        own.map(|(_, content)| content).ok_or_else(|| Refusal::Broken(format!("document {document_ref} is no draft")))
    }

    /// Returns the contents of a family's drafts without credit, in the order of their issue. Discount and tax are differences to
    /// the issued documents, then to the drafts that are issued earlier (billing rules 5). Credit changes no discount. `last` ends the
    /// list, which otherwise has all drafts.
    pub(in crate::ledger) fn drafts_before_credit(
        &self,
        family: DocumentRef,
        last: Option<DocumentRef>,
    ) -> Result<Vec<(&BookDocument, DocumentContent)>, Refusal> {
        let mut sums = self.sums_of(family);
        let mut contents = Vec::new();
        for draft in self.drafts_of_family(family)? {
            let content = total_up(draft.head.currency, draft.head.kind, self.rated_lines(draft, None)?, &sums)?;
            content.add_to(&mut sums, draft.head.kind, 1)?;
            contents.push((draft, content));
            if last == Some(draft.head.document_ref) {
                break;
            }
        }
        Ok(contents)
    }

    /// Returns the content of a draft if it is issued now with the lines that `keep` selects. Its discount and tax build on the
    /// issued documents of its family only.
    ///
    /// # Errors
    /// Returns the errors of [`content`](Self::content).
    pub(in crate::ledger) fn content_if_issued(
        &self,
        document_ref: DocumentRef,
        now: Timestamp,
        keep: impl Fn(&DocumentLine) -> bool,
    ) -> Result<DocumentContent, Refusal> {
        let document = self.require_document(document_ref)?;
        let mut lines = self.rated_lines(document, Some(now))?;
        for rated in &mut lines {
            rated.lines.retain(&keep);
        }
        let content = total_up(document.head.currency, document.head.kind, lines, &self.sums_of(document.family))?;
        self.with_credit_if_issued(document, content)
    }

    /// Returns the current content of a draft with all data that is frozen when the draft is discarded.
    ///
    /// # Errors
    /// Returns the errors of [`content`](Self::content).
    pub fn draft_content(&self, document_ref: DocumentRef) -> Result<DraftContent, Refusal> {
        let head = &self.require_document(document_ref)?.head;
        let mut content = self.content(document_ref)?;
        self.explain_draft(document_ref, &mut content)?;
        let rate = self.rate_of_document(head)?.flatten();
        Ok(DraftContent {
            parties: Parties::of(&self.customer, self.entity(&head.entity_ref)?),
            po_number: self.contract.po_number.clone(),
            note: self.note_of(head),
            paper: Some(Box::new(self.paper_of(head, &content, rate)?)),
            content,
        })
    }

    /// Returns the note of a document that isn't issued: the notes of the newest terms of its products.
    pub fn note_of(&self, head: &DocumentHead) -> Option<Prose> {
        match head.purpose {
            Purpose::Regular(_) => {
                let products = head.parts.iter().filter_map(|no| self.contract.product(*no)?.newest_terms());
                join_notes(products.filter_map(|terms| terms.note.as_ref()))
            }
            Purpose::Usage | Purpose::Adjustment => None,
        }
    }

    /// Returns the lines of a draft with their rates, for an issue at `issued_at` or, if `None`, at the expected time.
    fn rated_lines(&self, document: &BookDocument, issued_at: Option<Timestamp>) -> Result<Vec<RatedLines<'_>>, Refusal> {
        match document.head.purpose {
            Purpose::Regular(kind) => {
                let mut rated = Vec::new();
                for no in &document.head.parts {
                    let product = self.product(*no)?;
                    let slot = BillingSlot { product_no: *no, period_start: document.head.period.start(), kind };
                    if let Some(part) = part_in(product, slot) {
                        rated.extend(self.lines_of_part(&part, issued_at)?);
                    }
                }
                if document.head.kind == DocumentKind::Credit {
                    // The credit replaces a debit with a negative total, so its amounts have the opposite sign.
                    for line in rated.iter_mut().flat_map(|rated| &mut rated.lines) {
                        line.amount = Money::zero(line.amount.currency()).checked_sub(line.amount)?;
                    }
                }
                Ok(rated)
            }
            Purpose::Usage if waits_as_bill(document) => self.lines_of_ledger(&self.lines_if_issued(document, issued_at)?),
            Purpose::Usage | Purpose::Adjustment => self.lines_of_ledger(self.lines_of(document.head.document_ref)),
        }
    }

    /// Returns the lines of a child document that waits to be issued, for an issue at `issued_at` or, if `None`, now.
    ///
    /// Billed amounts get the default tax in force on the day of issue, not on the day of the event (billing rules 7). Negative
    /// lines, and amounts that later documents took back, keep the tax at which they were billed.
    fn lines_if_issued(&self, child: &BookDocument, issued_at: Option<Timestamp>) -> Result<Vec<LedgerLine>, Refusal> {
        let mut issued: Vec<LedgerLine> = Vec::new();
        for (index, line) in self.lines_of(child.head.document_ref).iter().enumerate() {
            let period = self.product(line.key.product_no)?.period_at(line.key.period_start);
            let mut rest = line.clone();
            if let (Some(period), Some(at)) = (period, issued_at.or(self.as_of))
                && line.has_default_tax
                && line.amount.minor() > 0
            {
                let day = self.today(period.terms, at)?.min(period.days().last_day());
                let tax = self.treatment_on(period.terms, day)?;
                let moved = if tax == line.rates.tax { 0 } else { self.amount_not_taken_back(child, index, line) };
                if moved != 0 {
                    let amount = Money::from_minor(moved, line.amount.currency());
                    rest = LedgerLine { amount: line.amount.checked_sub(amount)?, usage: None, ..rest };
                    issued.push(LedgerLine { rates: DiscountAndTax { tax, ..line.rates.clone() }, amount, ..line.clone() });
                }
            }
            if rest.amount.minor() != 0 || line.amount.minor() == 0 {
                issued.push(rest);
            }
        }
        Ok(issued)
    }

    /// Returns the part of a waiting child's line that no later document took back, in minor units. Amounts taken back reduce
    /// the latest child first.
    fn amount_not_taken_back(&self, child: &BookDocument, index: usize, line: &LedgerLine) -> i64 {
        let billed = line.billed_by(child.family);
        let of_period = self.documented.of_period(line.key.product_no, line.key.period_start);
        let billed_now: i64 = of_period.filter(|(key, _)| **key == billed).map(|(_, minor)| minor).sum();
        let mut before = 0;
        for other in self.documents().filter(|other| waits_as_bill(other) && other.family == child.family) {
            let order = |document: &BookDocument| (document.head.number_in_contract, document.head.document_ref);
            let (is_same, is_earlier) = (order(other) == order(child), order(other) < order(child));
            let lines = self.lines_of(other.head.document_ref).iter().enumerate();
            let earlier = lines.filter(|(at, _)| is_earlier || is_same && *at < index).map(|(_, line)| line);
            before += earlier.filter(|it| it.billed_by(child.family) == billed).map(|it| it.amount.minor().max(0)).sum::<i64>();
        }
        (billed_now - before).clamp(0, line.amount.minor())
    }

    /// Returns ledger lines as document lines, grouped by product and rates.
    pub(in crate::ledger) fn lines_of_ledger(&self, lines: &[LedgerLine]) -> Result<Vec<RatedLines<'_>>, Refusal> {
        let mut groups: BTreeMap<(ProductNo, &DiscountAndTax), Vec<&LedgerLine>> = BTreeMap::new();
        for line in lines {
            groups.entry((line.key.product_no, &line.rates)).or_default().push(line);
        }
        let mut rated = Vec::new();
        for ((product_no, rates), lines) in groups {
            let product = self.product(product_no)?;
            let period = |line: &LedgerLine| product.period_at(line.key.period_start);
            let terms = period(lines[0]).map(|period| period.terms).or(product.newest_terms());
            let terms = terms.ok_or_else(|| Refusal::Broken(format!("product {} has no terms", product_no.0)))?;
            let shown =
                |line: &LedgerLine| line.shown(period(line).as_ref(), self.charges.name_of(line.key.line_item_id.as_ref()));
            let lines = lines.into_iter().map(shown).collect();
            rated.push(RatedLines { product_no, terms, rates: rates.clone(), lines });
        }
        Ok(rated)
    }

    /// Returns the lines that a product's part of a regular draft bills: the prices of its periods, less the amounts that other
    /// documents bill. Periods of an issued document are omitted, because adjustments correct that document.
    pub(in crate::ledger) fn lines_of_part(
        &self,
        part: &ProductPart<'_>,
        issued_at: Option<Timestamp>,
    ) -> Result<Vec<RatedLines<'_>>, Refusal> {
        let product = self.product(part.own.product_no)?;
        let find = |period: &ProductPeriod<'_>| -> Result<ProductPeriod<'_>, Refusal> {
            product.period_from(period.start()).ok_or_else(|| Refusal::Broken("a period of another contract".to_owned()))
        };
        let own = find(&part.own)?;
        let issue_day = self.issue_day_of(part, issued_at)?;
        let mut by_rates: Vec<RatedLines<'_>> = Vec::new();
        let accounts = if part.fixed == part.usage {
            vec![(part.fixed, &[BillWith::Fixed, BillWith::Usage][..])]
        } else {
            vec![(part.fixed, &[BillWith::Fixed][..]), (part.usage, &[BillWith::Usage][..])]
        };
        for (period, withs) in accounts {
            let Some(period) = period else { continue };
            let period = find(&period)?;
            let open: Vec<BillWith> = withs.iter().copied().filter(|with| !self.is_billed(&period, *with)).collect();
            let unbilled = self.unbilled(&period, &self.price_of(&period)?, false)?;
            for unbilled in unbilled.lines.into_iter().filter(|unbilled| open.contains(&unbilled.line.bill_with)) {
                let amount = unbilled.rest()?;
                let is_left_out = unbilled.is_unpriced || self.is_unused_selection(&period, &unbilled);
                if is_left_out && amount.minor() == 0 {
                    continue;
                }
                let (rates, has_default_tax) = self.rates_on(unbilled.line.line_item_id.as_ref(), &period, issue_day)?;
                let line = DocumentLine { amount, has_default_tax, ..unbilled.line };
                match by_rates.iter_mut().find(|rated| rated.rates == rates) {
                    Some(rated) => rated.lines.push(line),
                    None => by_rates.push(RatedLines { product_no: product.no, terms: period.terms, rates, lines: vec![line] }),
                }
            }
        }
        if by_rates.is_empty() {
            let (rates, _) = self.rates_on(None, &own, issue_day)?;
            by_rates.push(RatedLines { product_no: product.no, terms: own.terms, rates, lines: Vec::new() });
        }
        Ok(by_rates)
    }

    /// Returns whether a line is of a line item with `where` or `rest` that counts no event, costs nothing and is billed nowhere:
    /// sixty prices by attributes are not sixty empty lines.
    fn is_unused_selection(&self, period: &ProductPeriod<'_>, unbilled: &UnbilledLine) -> bool {
        let UnbilledLine { line, billed, .. } = unbilled;
        let item = line.line_item_id.as_ref().and_then(|id| period.terms.line_item(id));
        let Some((item, metered)) = item.and_then(|item| Some((item, item.metered()?))) else { return false };
        let key = usage_key(self.contract.contract_ref, period, &metered.charge.usage_product_ref);
        line.bill_with == BillWith::Usage
            && line.amount.minor() == 0
            && billed.is_empty()
            && item.own_total(&key).is_some_and(|own| self.usage.get(&own).events == 0)
    }

    /// Returns the service date on which a part's document is issued. A draft is expected to be issued when it is due.
    fn issue_day_of(&self, part: &ProductPart<'_>, issued_at: Option<Timestamp>) -> Result<NaiveDate, Refusal> {
        let issued_at = match issued_at {
            Some(at) => at,
            None => self.as_of.into_iter().fold(self.due_at(part)?, Timestamp::max),
        };
        self.today(part.own.terms, issued_at)
    }

    /// Returns the lines of a period's price with the current usage.
    pub(in crate::ledger) fn price_of(&self, period: &ProductPeriod<'_>) -> Result<Vec<DocumentLine>, MoneyError> {
        lines_of_period(&self.contract, period, period.terms.line_items.iter(), (&self.usage, &self.charges))
    }

    /// Returns the same lines with other usage, and without those of line items that the book has no usage of: if it was loaded for
    /// drafts, it has only the totals that an event changes, and a pricing can have hundreds of line items (billing rules 6).
    pub(in crate::ledger) fn price_of_changed(
        &self,
        period: &ProductPeriod<'_>,
        is_changed: impl Fn(&SelectedLineItem) -> bool,
        usage: &UsageTotals,
    ) -> Result<Vec<DocumentLine>, MoneyError> {
        let is_needed = |item: &&SelectedLineItem| self.extent == Extent::Whole || is_changed(item);
        let line_items = period.terms.line_items.iter().filter(is_needed);
        lines_of_period(&self.contract, period, line_items, (usage, &self.charges))
    }

    /// Returns the discount and tax of a line of a period on a document that is issued on a day, and whether the tax follows a
    /// default. A charge that isn't discountable has no discount (billing rules 5, 7).
    ///
    /// A default tax is the one in force on the day of issue, or on the last day of the service period if that is earlier. A
    /// charge above zero is a supply of its own, so its date replaces the last day.
    pub(in crate::ledger) fn rates_on(
        &self,
        line_item: Option<&LineItemId>,
        period: &ProductPeriod<'_>,
        issue_day: NaiveDate,
    ) -> Result<(DiscountAndTax, bool), Refusal> {
        let terms = period.terms;
        let of_charge = self.charges.supply_of(line_item).filter(|charge| period.days().contains(charge.date));
        let supplied_on = of_charge.map_or(period.days().last_day(), |charge| charge.date);
        let tax = self.treatment_on(terms, issue_day.min(supplied_on))?;
        let rates = DiscountAndTax { discount: self.discount_of(line_item, terms), tax };
        Ok((rates, !terms.stated_tax().is_complete()))
    }

    /// Returns the discount of a line in percent.
    pub(in crate::ledger) fn discount_of(&self, line_item: Option<&LineItemId>, terms: &ProductTerms) -> Percentage {
        let is_discountable = self.charges.of_line(line_item).is_none_or(|charge| charge.discountable);
        terms.discount.filter(|_| is_discountable).unwrap_or(Percentage::ZERO)
    }

    /// Returns the tax treatment of terms under the default taxes of a day. The terms take precedence over the customer, and
    /// the customer over the entity (billing rules 7, 10).
    pub fn treatment_on(&self, terms: &ProductTerms, day: NaiveDate) -> Result<TaxTreatment, Refusal> {
        let entity = self.entity(&terms.entity_ref)?.profile.taxes.on(day);
        Ok(TaxTreatment::of(&[terms.stated_tax(), self.customer.profile.taxes.on(day), entity]))
    }

    /// Returns whether a billed amount has the discount and tax in force (billing rules 5). A tax that the contract leaves to a
    /// default keeps the treatment that the document had at its issue.
    pub(in crate::ledger) fn has_current_rates(&self, billed: &BilledKey, terms: &ProductTerms) -> bool {
        self.are_current(&billed.rates, billed.line.line_item_id.as_ref(), terms)
    }

    /// Returns whether a discount and tax are in force for a line.
    pub(in crate::ledger) fn are_current(
        &self,
        rates: &DiscountAndTax,
        line_item: Option<&LineItemId>,
        terms: &ProductTerms,
    ) -> bool {
        rates.discount == self.discount_of(line_item, terms) && terms.stated_tax().allows(&rates.tax)
    }
}
