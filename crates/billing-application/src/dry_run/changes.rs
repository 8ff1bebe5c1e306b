//! The figures of documents before and after a change, and their totals by currency.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::Period;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{DocumentKind, DocumentState};
use billing_domain::money::{Currency, MoneySum};
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, ProductNo};
use billing_domain::text::OneLine;

use crate::documents::DocumentView;
use crate::error::UseCaseResult;

/// The effect of a change on a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectKind {
    /// A draft is opened and stays open.
    Opened,
    /// The document is issued.
    Issued,
    /// The content of an existing draft changes.
    Recomputed,
    /// The document is voided.
    Voided,
    /// The payments, credits or write-offs of an issued document change.
    Settled,
    /// The document is planned under the new terms of its contract, and not opened yet.
    Planned,
    /// The document is planned under the current terms of its contract, and no longer under the new terms.
    Removed,
}

/// A figure before and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureChange {
    /// The figure before the change. `None` if the document does not have it.
    pub before: Option<MoneySum>,
    /// The figure after the change. `None` if the document does not have it.
    pub after: Option<MoneySum>,
    /// `after − before`. A missing figure counts as zero.
    pub difference: MoneySum,
}

impl FigureChange {
    fn new(currency: Currency, before: Option<MoneySum>, after: Option<MoneySum>) -> UseCaseResult<Self> {
        let zero = MoneySum::zero(currency);
        let difference = after.unwrap_or(zero).checked_sub(before.unwrap_or(zero))?;
        Ok(Self { before, after, difference })
    }

    /// Adds figures of one currency. A missing figure counts as zero.
    fn sum(currency: Currency, figures: impl Iterator<Item = Self>) -> UseCaseResult<Self> {
        let zero = MoneySum::zero(currency);
        let (mut before, mut after) = (zero, zero);
        for figure in figures {
            before = before.checked_add(figure.before.unwrap_or(zero))?;
            after = after.checked_add(figure.after.unwrap_or(zero))?;
        }
        Self::new(currency, Some(before), Some(after))
    }
}

/// The figures of an affected document before and after a change.
#[derive(Clone, Debug)]
pub struct DocumentChange {
    /// The effect on the document.
    pub effect: EffectKind,
    /// The document's reference and number. `None` for a planned document.
    pub document: Option<(DocumentRef, DocumentNumber)>,
    /// Invoice, credit or debit.
    pub kind: DocumentKind,
    /// The contract that the document bills.
    pub contract_ref: ContractRef,
    /// The contract's number.
    pub contract_number: String,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The customer's name on the document.
    pub customer_name: OneLine,
    /// The document's own period.
    pub period: Period,
    /// The currency of the figures.
    pub currency: Currency,
    /// The state before the change. `None` if the document neither exists nor is planned.
    pub state_before: Option<DocumentState>,
    /// The state after the change. `None` if the document is no longer planned.
    pub state: Option<DocumentState>,
    /// The amount that the document bills: its total, negative for a credit, and zero if it is void.
    pub billed: FigureChange,
    /// The amount due, or the unapplied amount of a credit as a negative number. `None` for drafts and planned documents.
    pub outstanding: FigureChange,
}

impl DocumentChange {
    /// Compares a document before and after a change. `shown` is the view after the change, or the view before it if the
    /// document is removed.
    fn new(
        effect: EffectKind,
        shown: &DocumentView,
        before: Option<&DocumentView>,
        after: Option<&DocumentView>,
    ) -> UseCaseResult<Self> {
        let currency = shown.currency;
        let billed_of = |view: Option<&DocumentView>| view.map(billed).transpose();
        let outstanding_of = |view: Option<&DocumentView>| view.map(outstanding).transpose().map(Option::flatten);
        Ok(Self {
            effect,
            document: shown.opened.as_ref().map(|opened| (opened.document_ref, opened.number.clone())),
            kind: shown.kind,
            contract_ref: shown.contract_ref,
            contract_number: shown.contract_number.clone(),
            customer_ref: shown.parties.customer_ref.clone(),
            customer_name: shown.parties.customer_name.clone(),
            period: shown.period,
            currency,
            state_before: before.map(|before| before.state),
            state: after.map(|after| after.state),
            billed: FigureChange::new(currency, billed_of(before)?, billed_of(after)?)?,
            outstanding: FigureChange::new(currency, outstanding_of(before)?, outstanding_of(after)?)?,
        })
    }

    /// Returns this change together with an earlier change of the same document.
    pub(crate) fn following(self, earlier: &Self) -> UseCaseResult<Self> {
        let effect = if earlier.effect == EffectKind::Opened && self.effect == EffectKind::Recomputed {
            earlier.effect
        } else {
            self.effect
        };
        let figure = |earlier: FigureChange, later: FigureChange| FigureChange::new(self.currency, earlier.before, later.after);
        let (billed, outstanding) = (figure(earlier.billed, self.billed)?, figure(earlier.outstanding, self.outstanding)?);
        Ok(Self { effect, state_before: earlier.state_before, billed, outstanding, ..self })
    }

    /// Returns the change of a document that exists or is planned after the change.
    pub(super) fn compare(effect: EffectKind, before: Option<&DocumentView>, after: &DocumentView) -> UseCaseResult<Self> {
        Self::new(effect, after, before, Some(after))
    }

    /// Returns the change of a planned document that is no longer planned after the change.
    pub(super) fn removed(before: &DocumentView) -> UseCaseResult<Self> {
        Self::new(EffectKind::Removed, before, Some(before), None)
    }
}

/// Returns the amount that a document bills: its total, negative for a credit, and zero if it is void.
fn billed(view: &DocumentView) -> UseCaseResult<MoneySum> {
    let zero = MoneySum::zero(view.currency);
    Ok(match (view.state, view.kind) {
        (DocumentState::Void, _) => zero,
        (_, DocumentKind::Credit) => zero.checked_sub(view.content.total)?,
        (_, DocumentKind::Invoice | DocumentKind::Debit) => view.content.total.into(),
    })
}

/// Returns the amount due of a document, or the unapplied amount of a credit as a negative number. A draft owes nothing yet.
fn outstanding(view: &DocumentView) -> UseCaseResult<Option<MoneySum>> {
    let zero = MoneySum::zero(view.currency);
    Ok(match (view.state, view.owed.amount_due, view.owed.unapplied) {
        (DocumentState::Draft, ..) => None,
        (_, Some(due), _) => Some(due.into()),
        (_, None, Some(unapplied)) => Some(zero.checked_sub(unapplied)?),
        (_, None, None) => Some(zero),
    })
}

/// The sums of all changed documents in a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectTotals {
    /// The currency of the sums.
    pub currency: Currency,
    /// The sums of the billed amounts.
    pub billed: FigureChange,
    /// The sums of the outstanding amounts.
    pub outstanding: FigureChange,
}

impl EffectTotals {
    /// Returns the sums by currency, ordered by currency code.
    pub(crate) fn by_currency(changes: &[DocumentChange]) -> UseCaseResult<Vec<Self>> {
        let currencies: BTreeSet<Currency> = changes.iter().map(|change| change.currency).collect();
        let total = |currency: Currency| -> UseCaseResult<Self> {
            let of_currency = || changes.iter().filter(move |change| change.currency == currency);
            Ok(Self {
                currency,
                billed: FigureChange::sum(currency, of_currency().map(|change| change.billed))?,
                outstanding: FigureChange::sum(currency, of_currency().map(|change| change.outstanding))?,
            })
        };
        currencies.into_iter().map(total).collect()
    }
}

/// The planned documents of contracts as before a change. Each is matched with at most one document after the change.
#[derive(Debug, Default)]
pub(super) struct PlannedDocuments(BTreeMap<ContractRef, Vec<DocumentView>>);

impl PlannedDocuments {
    /// Returns whether the planned documents of a contract are known.
    pub(super) fn has_contract(&self, contract: ContractRef) -> bool {
        self.0.contains_key(&contract)
    }

    /// Adds the planned documents of a contract.
    pub(super) fn insert(&mut self, contract: ContractRef, planned: Vec<DocumentView>) {
        self.0.insert(contract, planned);
    }

    /// Removes and returns the planned document that a document after the change replaces. Planned documents have no
    /// reference. Therefore both must have the same purpose and kind, and the first day of their periods must be the same. Of
    /// several such documents, the one with the most products in common is returned.
    pub(super) fn take(&mut self, after: &DocumentView) -> Option<DocumentView> {
        let planned = self.0.get_mut(&after.contract_ref)?;
        let is_candidate = |before: &DocumentView| {
            let key = |view: &DocumentView| (view.kind, view.purpose, view.currency, view.period.start());
            key(before) == key(after) && before.parties.entity_ref == after.parties.entity_ref
        };
        let candidates = planned.iter().enumerate().filter(|(_, before)| is_candidate(before));
        let best = candidates.min_by_key(|(_, before)| Reverse(common_products(before, after)));
        let index = best.map(|(index, _)| index)?;
        Some(planned.remove(index))
    }

    /// Removes and returns the planned documents of a contract that were not taken.
    pub(super) fn take_rest(&mut self, contract: ContractRef) -> Vec<DocumentView> {
        self.0.remove(&contract).unwrap_or_default()
    }
}

/// Returns the number of products that both documents bill.
fn common_products(one: &DocumentView, other: &DocumentView) -> usize {
    let bills = |product_no: ProductNo| other.content.products.iter().any(|product| product.product_no == product_no);
    one.content.products.iter().filter(|product| bills(product.product_no)).count()
}
