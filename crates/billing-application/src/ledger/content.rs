//! What a document says: its shares rated with the usage there is, less what other documents bill of the same.

use std::collections::BTreeSet;

use billing_domain::calendar::Date;
use billing_domain::contract::ProductPeriod;
use billing_domain::document::correction::{LedgerLine, sign};
use billing_domain::document::linking::{Share, shares_billing, shares_of_document};
use billing_domain::document::totals::{
    DocumentContent, DocumentLine, Documented, LineKey, RatedShare, UsageFacts, bill, billed_product, total_up, usage_keys,
};
use billing_domain::document::{DocumentHead, Purpose};
use billing_domain::money::{Currency, Money};
use billing_domain::ports::{DocumentedLine, Tx};
use billing_domain::refs::ProductNo;
use billing_domain::usage::{UsageKey, UsageTotal};

use super::{Account, Planned, corrupt};
use crate::error::{UseCaseError, UseCaseResult};

impl Account {
    /// What a planned document says with the usage there is.
    pub(crate) fn preview(&self, tx: &mut dyn Tx, planned: &Planned<'_>) -> UseCaseResult<DocumentContent> {
        self.content(tx, planned.currency(), &planned.rated(), None)
    }

    /// What a draft says with the usage there is: a period's own document is rated, an adjustment has its lines.
    pub(crate) fn draft_content(&self, tx: &mut dyn Tx, head: &DocumentHead) -> UseCaseResult<DocumentContent> {
        match head.purpose {
            Purpose::Regular(_) => self.content(tx, head.currency, &self.rated_shares(head)?, None),
            Purpose::Usage | Purpose::Adjustment => {
                let lines = tx.ledger_lines(self.organization, head.customer_id, head.document_ref)?;
                self.content_of_lines(head, &lines)
            }
        }
    }

    /// What a document of ledger lines says.
    pub(crate) fn content_of_lines(&self, head: &DocumentHead, lines: &[LedgerLine]) -> UseCaseResult<DocumentContent> {
        let mut products = Vec::new();
        for part in &head.parts {
            let product = self.contract.product(part.product_no);
            let product =
                product.ok_or_else(|| corrupt("a document", &head.document_ref, "bills a product that is not there"))?;
            let terms = product.period_at(head.period.start()).map(|period| period.terms).or(product.newest_terms());
            let terms = terms.ok_or_else(|| corrupt("a document", &head.document_ref, "bills a product without terms"))?;
            let of_part = lines.iter().filter(|line| line.product_no == part.product_no);
            let shown: Vec<_> = of_part.map(|line| line.shown(product.period_at(line.service_period.start()).as_ref())).collect();
            if !shown.is_empty() {
                products.push(billed_product(terms, part.product_no, part.discount_rate, part.tax_rate, head.currency, shown)?);
            }
        }
        Ok(total_up(head.currency, products)?)
    }

    /// The shares a regular draft bills, with the rates it was opened with.
    pub(crate) fn rated_shares(&self, head: &DocumentHead) -> UseCaseResult<Vec<RatedShare<'_>>> {
        let Purpose::Regular(slot) = head.purpose else {
            return Err(corrupt("a draft", &head.document_ref, "is no regular document"));
        };
        let numbers: Vec<ProductNo> = head.parts.iter().map(|part| part.product_no).collect();
        let shares = shares_of_document(&self.contract, &numbers, head.period, slot);
        let rated = shares.into_iter().filter_map(|share| {
            let part = head.parts.iter().find(|part| part.product_no == share.own.product_no)?;
            Some(RatedShare { share, discount_rate: part.discount_rate, tax_rate: part.tax_rate })
        });
        Ok(rated.collect())
    }

    /// Bills shares with the usage there is, and with a total that is about to be stored. Every amount of every
    /// regular document comes from here.
    pub(crate) fn content(
        &self,
        tx: &mut dyn Tx,
        currency: Currency,
        rated: &[RatedShare<'_>],
        about_to_be: Option<(&UsageKey, UsageTotal)>,
    ) -> UseCaseResult<DocumentContent> {
        let shares: Vec<Share<'_>> = rated.iter().map(|rated| rated.share).collect();
        let usage = self.usage(tx, &shares, about_to_be)?;
        let mut elsewhere = Documented::nothing();
        for share in &shares {
            self.add_elsewhere(tx, share, currency, about_to_be, &mut elsewhere)?;
        }
        let content = bill(self.contract.contract_ref, currency, rated, &usage, &elsewhere)?;
        if !content.adds_up() {
            return Err(UseCaseError::InvariantViolation("a document's total is not the sum of its lines"));
        }
        Ok(content)
    }

    /// What other documents bill of what a share bills: everything documented for it, less what the period's other
    /// documents bill for their own part. A document of another place may have billed it before an amendment.
    fn add_elsewhere(
        &self,
        tx: &mut dyn Tx,
        share: &Share<'_>,
        currency: Currency,
        about_to_be: Option<(&UsageKey, UsageTotal)>,
        elsewhere: &mut Documented,
    ) -> UseCaseResult<()> {
        let product_no = share.own.product_no;
        let product = self.product(product_no)?;
        let mut periods: Vec<ProductPeriod<'_>> = [share.fixed, share.usage].into_iter().flatten().collect();
        periods.dedup();
        for period in periods {
            let documented = self.documented(tx, std::iter::once(period), |_| true)?;
            if documented.is_empty() {
                continue;
            }
            let (mut own, mut drafts, mut issued) = (Vec::new(), Vec::new(), Vec::new());
            for part in shares_billing(product, period) {
                if part.own.period == share.own.period && part.slot == share.slot {
                    own.push(part);
                } else if self.stored(tx, &part)?.is_some_and(|document| !document.is_draft()) {
                    issued.push(part);
                } else {
                    drafts.push(part);
                }
            }
            let mut lines_of = |shares: &[Share<'_>]| {
                let usage = self.usage(tx, shares, about_to_be)?;
                self.lines_of_period(shares, period, currency, &usage)
            };
            let (own, drafts, issued) = (lines_of(&own)?, lines_of(&drafts)?, lines_of(&issued)?);
            let listed = own.iter().chain(&issued).map(|line| line.key(product_no));
            let keys: BTreeSet<LineKey> = documented.of_product(product_no).map(|(key, _)| key.clone()).chain(listed).collect();
            for key in keys {
                let lists = |lines: &[DocumentLine]| lines.iter().any(|line| line.key(product_no) == key);
                // What is billed of line items that are gone, or usage no more, comes off the document that bills the
                // usage. Children and corrections of usage never come off what is billed of it in advance.
                let is_own = lists(&own) || (share.usage == Some(period) && !lists(&drafts));
                let billed_in_advance = |line: &DocumentLine| line.usage.is_some() && line.key(product_no) == key;
                let in_advance = share.usage != Some(period) && own.iter().any(billed_in_advance);
                if is_own && !in_advance {
                    let theirs = issued.iter().filter(|line| line.key(product_no) == key);
                    let theirs = Money::sum(currency, theirs.map(|line| line.amount))?;
                    elsewhere.add(key.clone(), documented.minor(&key))?;
                    elsewhere.add(key, -theirs.minor())?;
                }
            }
        }
        Ok(())
    }

    /// The running totals that shares need.
    pub(crate) fn usage(
        &self,
        tx: &mut dyn Tx,
        shares: &[Share<'_>],
        about_to_be: Option<(&UsageKey, UsageTotal)>,
    ) -> UseCaseResult<UsageFacts> {
        let keys = usage_keys(self.contract.contract_ref, shares);
        let mut totals = tx.usage(self.organization, self.contract.customer_id, &keys)?;
        totals.extend(about_to_be.map(|(key, total)| (key.clone(), total)));
        Ok(UsageFacts::new(totals))
    }

    /// What documents bill of service periods, of those lines that count.
    pub(crate) fn documented<'p>(
        &self,
        tx: &mut dyn Tx,
        periods: impl Iterator<Item = ProductPeriod<'p>>,
        counts: impl Fn(&DocumentedLine) -> bool,
    ) -> UseCaseResult<Documented> {
        let mut wanted: Vec<(ProductNo, Date)> =
            periods.map(|period| (period.product_no, period.period.span().start())).collect();
        wanted.sort();
        wanted.dedup();
        let mut documented = Documented::nothing();
        let contract = &self.contract;
        for line in tx.documented(self.organization, contract.customer_id, contract.contract_ref, &wanted)? {
            if counts(&line) {
                documented.add(line.line.key(), sign(line.kind) * line.line.amount.minor())?;
            }
        }
        Ok(documented)
    }
}
