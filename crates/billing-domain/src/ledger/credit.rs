//! The credit that documents take and return (billing rules 12).
//!
//! [`cover`] is the only place that decides it. Drafts store no credit: their content is covered anew whenever it is computed. An
//! issue freezes what the document takes at that moment.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::NaiveDate;

use crate::calendar::Period;
use crate::credit::{CreditDraw, CreditGrant};
use crate::document::lines::{FamilySums, SumKey, sign};
use crate::document::totals::DocumentContent;
use crate::document::{BookDocument, DocumentHead};
use crate::money::{AmountOutOfRange, Money, MoneyError, MoneySum};
use crate::receivables::AccountKey;
use crate::refs::{ContractRef, CreditGrantRef, DocumentRef};
use crate::refusal::Refusal;
use crate::tax::TaxTreatment;

/// The credit of a customer, as a book needs it to compute the content of its drafts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreditView {
    /// The grants of the customer's accounts that have something left, and those that sums of the book's families name.
    pub grants: Vec<CreditGrant>,
    /// The invoices that sold credit, also used-up credit. Their families take no credit.
    pub sales: BTreeSet<DocumentRef>,
    /// The families with drafts of the customer's contracts. Those of the book's own contract are not read, so that all books of a
    /// customer can share them.
    pub families: Arc<Vec<CreditFamily>>,
}

/// A document family with drafts that can take credit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditFamily {
    /// The invoice that is the root of the family.
    pub family: DocumentRef,
    /// The account of the documents.
    pub account: AccountKey,
    /// The contract of the documents.
    pub contract_ref: ContractRef,
    /// The first day of the root's period.
    pub first_day: NaiveDate,
    /// The sums of the issued documents.
    pub sums: FamilySums,
    /// The drafts in the order of their issue (billing rules 5).
    pub drafts: Vec<CreditNeed>,
}

/// The amounts of a document that credit can cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditNeed {
    /// The document.
    pub document_ref: DocumentRef,
    /// The days from the first to the last day of the lines' service periods.
    pub days: Period,
    /// The net amount of each tax treatment, lowest rate first, in minor units; below zero for what a credit note takes back.
    pub nets: Vec<(TaxTreatment, i64)>,
}

impl CreditView {
    /// Returns the free credit of an account on a day: of all grants, or only of those that cover usage of any contract. `drafts` are
    /// the draws of all drafts.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn free_on(
        &self,
        account: &AccountKey,
        day: NaiveDate,
        drafts: &[CreditDraw],
        is_for_any_contract: bool,
    ) -> Result<MoneySum, MoneyError> {
        let fits = |grant: &&CreditGrant| {
            grant.account == *account && grant.covers_any(day, day) && !(is_for_any_contract && grant.contract_ref.is_some())
        };
        let mut free = MoneySum::zero(account.currency);
        for grant in self.grants.iter().filter(fits) {
            free = free.checked_add(grant.balance(drafts)?.free)?;
        }
        Ok(free)
    }
}

impl CreditFamily {
    /// Returns the position among the families of an account: the earliest is covered first.
    pub fn position(&self) -> (NaiveDate, DocumentRef) {
        (self.first_day, self.family)
    }

    /// Returns the family of a root document, without drafts.
    pub(super) fn of_root(root: &BookDocument, sums: FamilySums) -> Self {
        let DocumentHead { document_ref, contract_ref, period, .. } = &root.head;
        Self {
            family: *document_ref,
            account: AccountKey::of(root),
            contract_ref: *contract_ref,
            first_day: period.start(),
            sums,
            drafts: Vec::new(),
        }
    }
}

impl CreditNeed {
    /// Returns the need of a document with a content.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub(super) fn of(head: &DocumentHead, content: &DocumentContent) -> Result<Self, MoneyError> {
        let start = content.lines().map(|line| line.service_period.start()).min();
        let end = content.lines().map(|line| line.service_period.end()).max();
        let days = start.zip(end).and_then(|(start, end)| Period::new(start, end)).unwrap_or(head.period);
        let nets = content.nets()?.into_iter().map(|(tax, net)| (tax.clone(), sign(head.kind) * net.minor())).collect();
        Ok(Self { document_ref: head.document_ref, days, nets })
    }
}

/// Returns the credit that drafts take from grants, and return to them. Each draft builds on the issued documents of its family
/// and on the drafts before it.
///
/// At each tax treatment, a document returns what its family would have taken above its net amount. Otherwise it takes the least
/// of three amounts, but nothing below zero:
/// - its own net amount
/// - the net amount of the family up to and with the document, less what the family has taken
/// - the free credit of the grants that fit
///
/// Returned credit is free when the document is issued.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`], or [`Refusal::Broken`] if credit returns to a grant that isn't given.
pub fn cover<'f>(
    grants: &[CreditGrant],
    families: impl IntoIterator<Item = &'f CreditFamily>,
) -> Result<Vec<CreditDraw>, Refusal> {
    let mut free: Vec<FreeCredit<'_>> = grants.iter().map(FreeCredit::of).collect::<Result<_, _>>()?;
    free.sort_by_key(|free| free.grant.position());
    let mut families: Vec<&CreditFamily> = families.into_iter().collect();
    families.sort_by_key(|family| family.position());
    let mut draws = Vec::new();
    for family in families {
        let mut sums = family.sums.clone();
        for draft in &family.drafts {
            for (treatment, net) in &draft.nets {
                let taken = cover_net(&mut free, family, &sums, (draft, treatment, *net))?;
                let key = treatment.normalized();
                let mut base = *net;
                for (grant_ref, minor) in taken {
                    base = base.checked_sub(minor).ok_or(AmountOutOfRange)?;
                    sums.add(SumKey::Prepaid(key.clone(), grant_ref), 0, minor)?;
                    let amount = Money::from_minor(minor, family.account.currency);
                    let document_ref = draft.document_ref;
                    draws.push(CreditDraw { document_ref, grant_ref, treatment: treatment.clone(), amount });
                }
                sums.add(SumKey::Tax(key), base, 0)?;
            }
        }
    }
    Ok(draws)
}

/// A grant, and what drafts can still take of it.
struct FreeCredit<'g> {
    grant: &'g CreditGrant,
    minor: i64,
}

impl<'g> FreeCredit<'g> {
    fn of(grant: &'g CreditGrant) -> Result<Self, MoneyError> {
        Ok(Self { grant, minor: grant.undrawn()?.minor() })
    }
}

/// Returns what a draft takes at a tax treatment, or returns as amounts below zero. `sums` are the sums of the documents before it.
fn cover_net(
    free: &mut [FreeCredit<'_>],
    family: &CreditFamily,
    sums: &FamilySums,
    (draft, treatment, net): (&CreditNeed, &TaxTreatment, i64),
) -> Result<Vec<(CreditGrantRef, i64)>, Refusal> {
    let (net_before, prepaid) = sums.net_and_prepaid(&treatment.normalized())?;
    let coverable = net_before.checked_add(net).ok_or(AmountOutOfRange)?.max(0);
    let rest = coverable.checked_sub(prepaid).ok_or(AmountOutOfRange)?;
    if rest < 0 {
        return return_credit(free, sums, treatment, rest);
    }
    let mut missing = net.min(rest).max(0);
    let mut taken = Vec::new();
    for free in free.iter_mut().filter(|free| free.grant.account == family.account) {
        let minor = missing.min(free.minor);
        if minor > 0 && free.grant.fits(family.contract_ref, draft.days, treatment) {
            taken.push((free.grant.grant_ref, minor));
            free.minor -= minor;
            missing -= minor;
        }
    }
    Ok(taken)
}

/// Returns how an excess, below zero, returns to the grants of a family: in the opposite order of taking, and to each grant at most
/// what the family has taken of it. So the credit that can be used longest comes back first.
fn return_credit(
    free: &[FreeCredit<'_>],
    sums: &FamilySums,
    treatment: &TaxTreatment,
    excess: i64,
) -> Result<Vec<(CreditGrantRef, i64)>, Refusal> {
    let mut excess = excess;
    let mut returned = Vec::new();
    for free in free.iter().rev() {
        let grant_ref = free.grant.grant_ref;
        let taken = sums.get(&SumKey::Prepaid(treatment.normalized(), grant_ref)).amount;
        let minor = excess.max(-taken.max(0));
        if minor < 0 {
            returned.push((grant_ref, minor));
            excess -= minor;
        }
    }
    if excess < 0 {
        return Err(Refusal::Broken(format!("credit of {excess} minor units returns to no grant of the book")));
    }
    Ok(returned)
}
