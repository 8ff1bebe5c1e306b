//! Prepaid credit on a document: what the document takes from grants, or returns to them (billing rules 12).

use super::numbering::DocumentNumber;
use crate::credit::unit::{CreditUnit, UnitAmounts};
use crate::money::Money;
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
    /// The entity's unit of credit, in which documents show the amount too; `None` without one.
    pub unit: Option<CreditUnit>,
}

impl PrepaidAmount {
    /// Returns the name of the grant, with the number of the invoice that sold the credit: `Credit, UB-INV-1`.
    pub fn label(&self) -> String {
        let name = self.name.as_str();
        self.sold_by.as_ref().map_or_else(|| name.to_owned(), |number| format!("{name}, {number}"))
    }

    /// Returns the amount in the entity's unit of credit, if it has one.
    pub fn units(&self) -> Option<UnitAmounts<1>> {
        self.unit.as_ref().map(|unit| unit.convert([self.amount.to_decimal()]))
    }
}
