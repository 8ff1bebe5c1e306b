//! Prepaid credit on a document: what the document takes from grants, or returns to them (billing rules 12).

use super::DocumentKind;
use super::lines::FamilySums;
use super::numbering::DocumentNumber;
use super::totals::DocumentContent;
use crate::money::{Money, MoneyError};
use crate::refs::CreditGrantRef;
use crate::tax::TaxTreatment;
use crate::text::OneLine;

/// An amount of a credit grant on a document. It lowers the net amounts of one tax treatment before tax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepaidAmount {
    /// The grant.
    pub grant_ref: CreditGrantRef,
    /// The name of the grant.
    pub name: OneLine,
    /// The invoice that sold the credit; `None` for given credit.
    pub sold_by: Option<DocumentNumber>,
    /// Rate, category and reason of the tax.
    pub treatment: TaxTreatment,
    /// The amount, with the sign of the document's kind: credit that a credit note returns is above zero.
    pub amount: Money,
}

impl DocumentContent {
    /// Returns the content of a document of a kind with prepaid credit, instead of the credit that it has. Taxes and total follow.
    /// `before` holds the sums of the family's earlier documents.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn with_prepaid(self, kind: DocumentKind, prepaid: Vec<PrepaidAmount>, before: &FamilySums) -> Result<Self, MoneyError> {
        Self { prepaid, ..self }.with_taxes(kind, before)
    }

    /// Returns the sum of the prepaid amounts.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when the sum is out of range.
    pub fn total_prepaid(&self) -> Result<Money, MoneyError> {
        Money::sum(self.total.currency(), self.prepaid.iter().map(|prepaid| prepaid.amount))
    }

    /// Returns the sum of the prepaid amounts of a tax treatment.
    pub(super) fn prepaid_at(&self, treatment: &TaxTreatment) -> Result<Money, MoneyError> {
        let alike = self.prepaid.iter().filter(|prepaid| prepaid.treatment == *treatment);
        Money::sum(self.total.currency(), alike.map(|prepaid| prepaid.amount))
    }
}
