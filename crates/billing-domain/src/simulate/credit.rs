//! Credit grants of a simulation (billing rules 12).

use chrono::NaiveDate;

use super::life::Life;
use super::value::Given;
use crate::credit::{CreditGrant, CreditSale, NewCreditGrant};
use crate::receivables::AccountKey;
use crate::refs::CreditGrantRef;
use crate::refusal::Refusal;
use crate::text::OneLine;

/// The terms of a credit grant.
#[derive(Clone, Debug)]
pub struct CreditTerms {
    name: Given<OneLine>,
    amount: String,
    from: Option<Given<NaiveDate>>,
    to: Option<Given<NaiveDate>>,
    sold_by: Option<String>,
}

/// Returns given credit with a name, which identifies it, and an amount.
pub fn credit(name: impl Into<Given<OneLine>>, amount: &str) -> CreditTerms {
    CreditTerms { name: name.into(), amount: amount.to_owned(), from: None, to: None, sold_by: None }
}

impl CreditTerms {
    /// Sets the invoice that sells the credit.
    #[must_use]
    pub fn sold_by(mut self, number: &str) -> Self {
        self.sold_by = Some(number.to_owned());
        self
    }

    /// Sets the first day of the service that the credit covers.
    #[must_use]
    pub fn covers_from(mut self, day: impl Into<Given<NaiveDate>>) -> Self {
        self.from = Some(day.into());
        self
    }

    /// Sets the last day of the service that the credit covers.
    #[must_use]
    pub fn covers_until(mut self, day: impl Into<Given<NaiveDate>>) -> Self {
        self.to = Some(day.into());
        self
    }
}

impl Life {
    /// Loads the present state and amounts of the sales of credit into the book.
    pub(super) fn learn_sales(&mut self) -> Result<(), Refusal> {
        let Some(mut credit) = self.book.credit().cloned() else { return Ok(()) };
        for sale in credit.grants.iter_mut().filter_map(|grant| grant.sale.as_mut()) {
            if let Some(document) = self.book.document(sale.document_ref) {
                sale.state = document.state()?;
                sale.family_net = self.book.sums_of(sale.document_ref).net(document.head.currency)?;
            }
        }
        self.book.set_credit(credit);
        Ok(())
    }

    /// Grants credit to the account of the sale, or else of the first product.
    pub(super) fn grant(&mut self, terms: &CreditTerms) -> Result<(), Refusal> {
        let sold_by = terms.sold_by.as_ref().map(|number| self.numbered(number).cloned()).transpose()?;
        let account = match &sold_by {
            Some(document) => AccountKey::of(document),
            None => self.first_account()?,
        };
        let mut credit = self.book.credit().cloned().unwrap_or_default();
        let sale = match &sold_by {
            Some(document) => {
                let document_ref = document.head.document_ref;
                let (content, sums) = (self.content(document_ref)?, self.book.sums_of(document.family));
                let sells_already = !credit.sales.insert(document_ref);
                Some(CreditSale::of(&account, document, (&content, &sums), sells_already)?)
            }
            None => None,
        };
        let new = NewCreditGrant {
            account,
            amount: terms.amount.clone(),
            name: terms.name.read("name")?,
            from: terms.from.as_ref().map(|day| day.read("from")).transpose()?,
            to: terms.to.as_ref().map(|day| day.read("to")).transpose()?,
            contract_ref: None,
        };
        let grant_ref = CreditGrantRef::from_uuid(self.new_id());
        credit.grants.push(CreditGrant::new(new, grant_ref, sale, self.now)?);
        self.book.set_credit(credit);
        Ok(())
    }
}
