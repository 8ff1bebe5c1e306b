//! Prepaid credit: grants that a customer buys or is given, and that lower documents before tax (billing rules 12).
//!
//! This module holds the values. [`ledger::credit`](crate::ledger::credit) decides which document takes credit of which grant.

pub mod unit;

use chrono::NaiveDate;

use self::unit::{CreditUnit, UnitAmounts};
use crate::calendar::{Period, Timestamp};
use crate::document::lines::{FamilySums, signed_amount};
use crate::document::numbering::DocumentNumber;
use crate::document::prepaid::PrepaidAmount;
use crate::document::totals::DocumentContent;
use crate::document::{BookDocument, DocumentKind, DocumentState};
use crate::money::{Money, MoneyError};
use crate::patch::Patch;
use crate::receivables::AccountKey;
use crate::refs::{ContractRef, CreditGrantRef, CustomerRef, DocumentRef};
use crate::refusal::Refusal;
use crate::tax::TaxTreatment;
use crate::text::OneLine;

/// The maximum number of grants of an account with something left. Each of them is read for each event.
pub const MAX_GRANTS: usize = 100;

/// Credit of an account. Documents of the account take it before tax.
///
/// Given credit lowers the price, so it covers amounts at any tax. The tax on sold credit was due at its sale, so it covers only
/// amounts at the tax of its invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditGrant {
    /// The grant's reference.
    pub grant_ref: CreditGrantRef,
    /// The account whose documents take the credit.
    pub account: AccountKey,
    /// The credit that was given or sold, above zero.
    pub amount: Money,
    /// The name on documents.
    pub name: OneLine,
    /// The first day of the service that the credit covers; any day if `None`.
    pub from: Option<NaiveDate>,
    /// The last day of the service that the credit covers; any day if `None`.
    pub to: Option<NaiveDate>,
    /// The contract whose documents take the credit; every contract of the account if `None`.
    pub contract_ref: Option<ContractRef>,
    /// The sale; `None` for given credit.
    pub sale: Option<CreditSale>,
    /// What issued documents have taken, less what they have returned; at least zero.
    pub drawn: Money,
    /// The number of notifications about the grant.
    pub notifications: u64,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change of a field that an edit can name.
    pub updated_at: Timestamp,
}

/// The invoice that sold credit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditSale {
    /// The invoice. It is also the root of its family.
    pub document_ref: DocumentRef,
    /// The invoice's number.
    pub number: DocumentNumber,
    /// The tax treatment of the invoice.
    pub treatment: TaxTreatment,
    /// The net amount of the invoice.
    pub net: Money,
    /// The present state of the invoice.
    pub state: DocumentState,
    /// The present net amount of the issued documents of the invoice's family.
    pub family_net: Money,
}

impl CreditSale {
    /// Returns the sale of credit by a document with its content and its family's sums. `sells_already` tells whether another grant
    /// names the document.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`] `source_not_usable` unless the document is an issued invoice of the account without a parent,
    /// with one tax treatment, without prepaid credit in its family, and of no other grant.
    pub fn of(
        account: &AccountKey,
        document: &BookDocument,
        (content, sums): (&DocumentContent, &FamilySums),
        sells_already: bool,
    ) -> Result<Self, Refusal> {
        let head = &document.head;
        let unusable = |detail: &str| Err(Refusal::field(&["source_document_ref"], "source_not_usable", detail));
        if AccountKey::of(document) != *account {
            return unusable("must be a document of the same customer, entity and currency");
        }
        if head.kind != DocumentKind::Invoice || head.parent.is_some() || !document.status.is_issued() {
            return unusable("must be an issued invoice without a parent");
        }
        let [tax] = content.taxes.as_slice() else { return unusable("must have one tax rate, category and reason") };
        if !content.prepaid.is_empty() || sums.prepaid().any(|(.., minor)| minor != 0) {
            return unusable("must not be paid with credit, and neither must its credits and debits");
        }
        if sells_already {
            return unusable("must be of no other grant");
        }
        Ok(Self {
            document_ref: head.document_ref,
            number: head.number.clone(),
            treatment: tax.treatment.normalized(),
            net: tax.base,
            state: document.state()?,
            family_net: sums.net(head.currency)?,
        })
    }
}

/// The amounts of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditBalance {
    /// What documents may take in all.
    pub usable: Money,
    /// What issued documents have taken.
    pub drawn: Money,
    /// What drafts take.
    pub covered: Money,
    /// What further documents can take.
    pub free: Money,
}

/// A grant with its customer and its amounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantView {
    /// The grant.
    pub grant: CreditGrant,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// What is usable, drawn, covered and free.
    pub balance: CreditBalance,
    /// The entity's unit of credit; `None` without one.
    pub unit: Option<CreditUnit>,
}

impl GrantView {
    /// Returns the amount of the grant and what is usable, drawn, covered and free in the entity's unit of credit, if it has one.
    pub fn units(&self) -> Option<UnitAmounts<5>> {
        let CreditBalance { usable, drawn, covered, free } = self.balance;
        let amounts = [self.grant.amount, usable, drawn, covered, free].map(Money::to_decimal);
        self.unit.as_ref().map(|unit| unit.convert(amounts))
    }
}

/// Credit to grant, as requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCreditGrant {
    /// The account whose documents take the credit.
    pub account: AccountKey,
    /// The decimal amount in the account's currency.
    pub amount: String,
    /// The name on documents.
    pub name: OneLine,
    /// The first day of the service that the credit covers.
    pub from: Option<NaiveDate>,
    /// The last day of the service that the credit covers.
    pub to: Option<NaiveDate>,
    /// The contract whose documents take the credit.
    pub contract_ref: Option<ContractRef>,
}

/// The changes to a grant. Fields without a value stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreditGrantEdit {
    /// The name on documents.
    pub name: Option<OneLine>,
    /// The first day of the service that the credit covers.
    pub from: Patch<NaiveDate>,
    /// The last day of the service that the credit covers.
    pub to: Patch<NaiveDate>,
    /// The decimal amount of given credit.
    pub amount: Option<String>,
}

impl CreditGrant {
    /// Creates a grant of given credit or, with a sale, of sold credit.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`] for `amount` or `to`.
    pub fn new(
        new: NewCreditGrant,
        grant_ref: CreditGrantRef,
        sale: Option<CreditSale>,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        let NewCreditGrant { account, amount, name, from, to, contract_ref } = new;
        let (amount, drawn) = (account.amount_of(&amount)?, Money::zero(account.currency));
        require_days(from, to)?;
        Ok(Self {
            grant_ref,
            account,
            amount,
            name,
            from,
            to,
            contract_ref,
            sale,
            drawn,
            notifications: 0,
            created_at: now,
            updated_at: now,
        })
    }

    /// Returns the grant with an edit applied.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`]:
    /// - for `to` before `from`
    /// - `credit_in_use` for an amount below what issued documents have taken
    /// - `not_allowed` for the amount of sold credit
    pub fn edited(&self, edit: &CreditGrantEdit, now: Timestamp) -> Result<Self, Refusal> {
        let mut grant = self.clone();
        if let Some(text) = &edit.amount {
            grant.amount = self.account.amount_of(text)?;
            if self.sale.is_some() && grant.amount != self.amount {
                let detail = "must stay as sold: change the sale with a charge instead";
                return Err(Refusal::field(&["amount"], "not_allowed", detail));
            }
            if grant.amount.minor() < self.drawn.minor() {
                let detail = format!("must be at least {}, which documents have taken", self.drawn.to_decimal());
                return Err(Refusal::field(&["amount"], "credit_in_use", detail));
            }
        }
        grant.name = edit.name.clone().unwrap_or(grant.name);
        (grant.from, grant.to) = (edit.from.clone().apply(self.from), edit.to.clone().apply(self.to));
        require_days(grant.from, grant.to)?;
        if grant != *self {
            grant.updated_at = now;
        }
        Ok(grant)
    }

    /// Returns the credit that documents may take in all: the amount, and for sold credit the part of it that the sale's family
    /// still bills, rounded down. It is zero while the sale isn't paid.
    pub fn usable(&self) -> Money {
        let Some(sale) = &self.sale else { return self.amount };
        if sale.state != DocumentState::Paid {
            return Money::zero(self.amount.currency());
        }
        let [amount, net, family_net] = [self.amount, sale.net, sale.family_net].map(|amount| i128::from(amount.minor()));
        let usable = (amount * family_net).checked_div(net).unwrap_or(amount).clamp(0, amount);
        Money::from_minor(i64::try_from(usable).unwrap_or(self.amount.minor()), self.amount.currency())
    }

    /// Returns the usable credit that no issued document has taken; at least zero. Drafts can cover themselves with it.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn undrawn(&self) -> Result<Money, MoneyError> {
        let undrawn = self.usable().checked_sub(self.drawn)?;
        Ok(if undrawn.minor() < 0 { Money::zero(undrawn.currency()) } else { undrawn })
    }

    /// Returns the amounts of the grant. `drafts` are the draws of all drafts of the account.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn balance(&self, drafts: &[CreditDraw]) -> Result<CreditBalance, MoneyError> {
        let own = drafts.iter().filter(|draw| draw.grant_ref == self.grant_ref && draw.amount.minor() > 0);
        let covered = Money::sum(self.amount.currency(), own.map(|draw| draw.amount))?;
        let (usable, drawn, free) = (self.usable(), self.drawn, self.undrawn()?.checked_sub(covered)?);
        Ok(CreditBalance { usable, drawn, covered, free })
    }

    /// Returns whether the credit covers amounts of a document of a contract with these days, at a tax treatment.
    pub fn fits(&self, contract_ref: ContractRef, days: Period, treatment: &TaxTreatment) -> bool {
        self.contract_ref.is_none_or(|only| only == contract_ref)
            && self.sale.as_ref().is_none_or(|sale| sale.treatment == treatment.normalized())
            && self.covers_any(days.start(), days.last_day())
    }

    /// Returns whether the credit covers service of any day from the first to the last one.
    pub fn covers_any(&self, first: NaiveDate, last: NaiveDate) -> bool {
        self.from.is_none_or(|from| from <= last) && self.to.is_none_or(|to| first <= to)
    }

    /// Returns the position among the grants of an account: earliest end first, given before sold, oldest first.
    pub fn position(&self) -> impl Ord + use<> {
        (self.to.is_none(), self.to, self.sale.is_some(), self.created_at, self.grant_ref)
    }
}

fn require_days(from: Option<NaiveDate>, to: Option<NaiveDate>) -> Result<(), Refusal> {
    match (from, to) {
        (Some(from), Some(to)) if to < from => {
            Err(Refusal::field(&["to"], "out_of_range", format!("must be at least `from`, {from}")))
        }
        _ => Ok(()),
    }
}

/// An amount that an issued document has taken from a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditDraw {
    /// The document.
    pub document_ref: DocumentRef,
    /// The grant.
    pub grant_ref: CreditGrantRef,
    /// The tax treatment of the covered amounts.
    pub treatment: TaxTreatment,
    /// The amount; below zero if the document returned it.
    pub amount: Money,
}

impl CreditDraw {
    /// Returns the draws of a document of a kind that is issued with a content, in the order of its prepaid amounts. A void of the
    /// document gives them back.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn of_content(document_ref: DocumentRef, kind: DocumentKind, content: &DocumentContent) -> Result<Vec<Self>, MoneyError> {
        let draw = |prepaid: &PrepaidAmount| {
            let amount = signed_amount(kind, prepaid.amount)?;
            Ok(Self { document_ref, grant_ref: prepaid.grant_ref, treatment: prepaid.treatment.clone(), amount })
        };
        content.prepaid.iter().map(draw).collect()
    }
}
