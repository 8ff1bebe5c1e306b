//! The sums below the products of a document, down to the amount due.

use billing_domain::credit::unit::UnitAmounts;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::prepaid::PrepaidAmount;
use billing_domain::document::totals::{DocumentContent, Tax};
use billing_domain::document::{AppliedAtIssue, DocumentKind};
use billing_domain::money::{Money, MoneyError, Percentage};
use billing_domain::tax::{TaxCategory, TaxInCurrency, TaxTreatment};

use super::{PrintResult, Writer, unsummed};
use crate::texts::{Entry, Text};
use crate::translations::with;

impl Writer<'_> {
    /// Returns the sums above the last entry of the totals: the subtotal and what lowers it, the taxes, and what was applied at the
    /// issue.
    pub(super) fn sums(&self, content: &DocumentContent) -> PrintResult<Vec<Entry>> {
        let (words, figures) = (self.words, &self.figures);
        let (mut sums, lowering) = (Vec::new(), self.lowering(content)?);
        let taxes: Vec<&Tax> = content.taxes.iter().filter(|tax| is_shown(tax)).collect();
        if !lowering.is_empty() {
            sums.push(Entry::figure(words.sub_total, figures.money(content.sub_total)?));
        }
        sums.extend(lowering);
        // Without a tax, the net amount is the total.
        if !taxes.is_empty() {
            sums.push(Entry::figure(words.net, figures.money(net(content).map_err(unsummed)?)?));
        }
        for tax in taxes {
            let label = format!("{}{}{}", self.tax_name(tax.treatment.rate)?, words.tax_on, figures.amount(tax.base)?);
            sums.push(Entry::figure(label, figures.money(tax.amount)?));
        }
        if let Some(TaxInCurrency { rate, total, amounts: _ }) = self.paper.and_then(|paper| paper.tax_in_currency.as_ref()) {
            let converted = figures.price(rate.rate.as_decimal(), rate.to)?;
            let how = format!("1 {} = {converted} {}, {}", rate.from, rate.to, figures.date(rate.date)?);
            let label = format!("{}{}{} ({how})", self.tax_label, words.tax_in, rate.to);
            sums.push(Entry::figure(label, figures.money(*total)?));
        }
        sums.push(Entry::figure(words.total, figures.money(content.total)?));
        if let Some(at_issue) = self.printout.at_issue.as_ref().filter(|_| !self.is_credit()) {
            for AppliedAtIssue { document_number, amount } in &at_issue.applied {
                let label = with(words.applied, &self.applied_name(document_number.as_ref()));
                sums.push(Entry::figure(label, figures.money(self.negated(*amount)?)?));
            }
        }
        Ok(sums)
    }

    /// Returns the number of the other document of an applied amount. An amount of a deposit has no document.
    fn applied_name(&self, document_number: Option<&DocumentNumber>) -> String {
        document_number.map_or_else(|| self.words.payment_received.to_owned(), DocumentNumber::to_string)
    }

    pub(super) fn is_credit(&self) -> bool {
        self.printout.head.kind == DocumentKind::Credit
    }

    /// Returns what is due after the amounts that were applied at the issue. A draft and a document of format 1 or 2 have none.
    pub(super) fn due(&self, content: &DocumentContent) -> Money {
        self.printout.at_issue.as_ref().map_or(content.total, |at_issue| at_issue.due)
    }

    /// Returns the amount due, or the credited amount.
    pub(super) fn total(&self, content: &DocumentContent) -> PrintResult<Entry> {
        let (label, amount) =
            if self.is_credit() { (self.words.credited, content.total) } else { (self.words.amount_due, self.due(content)) };
        Ok(Entry::figure(label, self.figures.money(amount)?))
    }

    /// Returns what a credit was applied to at its issue, and what is left of it.
    pub(super) fn rest(&self) -> PrintResult<Vec<Entry>> {
        let Some(at_issue) = self.printout.at_issue.as_ref().filter(|_| self.is_credit()) else { return Ok(Vec::new()) };
        let mut rest = Vec::new();
        for AppliedAtIssue { document_number, amount } in &at_issue.applied {
            let label = with(self.words.applied_to, &self.applied_name(document_number.as_ref()));
            rest.push(Entry::figure(label, self.figures.money(self.negated(*amount)?)?));
        }
        rest.push(Entry::figure(self.words.credit_left, self.figures.money(at_issue.due)?));
        Ok(rest)
    }

    /// Returns what lowers the subtotal before tax: the discount, then the prepaid credit of each grant.
    fn lowering(&self, content: &DocumentContent) -> PrintResult<Vec<Entry>> {
        let mut entries = Vec::new();
        if content.total_discount.minor() != 0 {
            let name = match content.products.as_slice() {
                [product] => self.discount_name(product.rates.discount)?,
                _ => self.words.discount.to_owned(),
            };
            entries.push(Entry::figure(name, self.figures.money(self.negated(content.total_discount)?)?));
        }
        for prepaid in &content.prepaid {
            let label = self.prepaid_name(prepaid, content.taxes.len() > 1)?;
            entries.push(Entry::figure(label, self.figures.money(self.negated(prepaid.amount)?)?));
        }
        Ok(entries)
    }

    /// Returns the name of prepaid credit, as e-invoices have it, with the amount in the entity's unit of credit. The tax tells two entries of one grant apart.
    fn prepaid_name(&self, prepaid: &PrepaidAmount, shows_tax: bool) -> PrintResult<String> {
        let Text(mut name) = Text::new(&prepaid.label());
        if let Some(UnitAmounts { name: of_unit, amounts: [amount] }) = prepaid.units() {
            let Text(of_unit) = Text::new(of_unit.as_str());
            name = format!("{name}, {} {of_unit}", self.figures.number(amount)?);
        }
        if shows_tax {
            name = format!("{name} ({})", self.tax_name(prepaid.treatment.rate)?);
        }
        Ok(name)
    }
}

/// Returns the subtotal less discounts and prepaid credit.
fn net(content: &DocumentContent) -> Result<Money, MoneyError> {
    content.sub_total.checked_sub(content.total_discount)?.checked_sub(content.total_prepaid()?)
}

/// Returns whether a tax is printed. It is omitted if nothing is subject to tax or if nothing is stated about the tax.
fn is_shown(tax: &Tax) -> bool {
    let TaxTreatment { rate, basis } = &tax.treatment;
    *rate != Percentage::ZERO || basis.category.is_some_and(|category| category != TaxCategory::O)
}
