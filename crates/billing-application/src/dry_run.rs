//! Dry runs. A use case is executed in a transaction that is rolled back. The affected documents are returned as before and
//! after the change. Dry runs and real changes share their code.

mod changes;

pub use changes::{DocumentChange, EffectKind, EffectTotals, FigureChange};

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use billing_domain::calendar::Timestamp;
use billing_domain::document::{Document, DocumentState};
use billing_domain::ledger::receivables::{AccountEntry, ReceivablesAccount};
use billing_domain::ledger::{ContractBook, Entry};
use billing_domain::money::Money;
use billing_domain::page::PageRequest;
use billing_domain::ports::{DocumentFilter, StoreError, Tx};
use billing_domain::refs::{ContractKey, CreditGrantRef, CustomerId, DocumentRef, OrganizationId};
use billing_domain::warning::Warning;

use crate::carry_out::{ChangeRecorder, Cx};
use crate::contracts::planned_invoices;
use crate::credit_books::balances_of;
use crate::documents::{DocumentView, view_all};
use crate::error::{UseCaseError, UseCaseResult};

use changes::PlannedDocuments;

/// The effects of a change on documents, ordered by creation.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Drafts that are opened and stay open.
    pub opened: Vec<DocumentView>,
    /// Documents that are issued.
    pub issued: Vec<DocumentView>,
    /// Existing drafts whose content changes.
    pub recomputed: Vec<DocumentView>,
    /// Documents that are voided.
    pub voided: Vec<DocumentView>,
    /// Issued documents whose payments, credits or write-offs change.
    pub settled: Vec<DocumentView>,
    /// The documents of all lists as before the change: the stored documents, and the documents that were planned. Planned
    /// documents that are no longer planned are included. Documents that neither existed nor were planned are missing.
    pub before: Vec<DocumentView>,
    /// For created or changed contracts: the planned documents of the current and next period that are not opened yet.
    pub planned: Vec<DocumentView>,
    /// The figures of all these documents before and after the change: first the stored documents, then the planned documents,
    /// and at last those that are no longer planned.
    pub changes: Vec<DocumentChange>,
    /// The sums of these figures by currency.
    pub totals: Vec<EffectTotals>,
    /// The grants whose free credit changes.
    pub credits: Vec<CreditChange>,
    /// The warnings of the use case.
    pub warnings: Vec<Warning>,
}

/// A grant whose free credit a use case changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditChange {
    /// The grant.
    pub grant_ref: CreditGrantRef,
    /// The free credit before the change; zero for a new grant.
    pub free_before: Money,
    /// The free credit after it.
    pub free: Money,
}

/// Records the resources that a use case affects.
#[derive(Debug, Default)]
struct DryRunRecorder {
    affected: RefCell<AffectedResources>,
    /// Whether the changes are saved.
    is_saved: bool,
}

#[derive(Debug, Default)]
struct AffectedResources {
    /// Contracts whose drafts may change.
    contracts: BTreeSet<ContractKey>,
    /// Contracts that are created or changed.
    agreed: BTreeSet<ContractKey>,
    /// Documents as before the change, with their customers. `None` for documents that did not exist.
    before: BTreeMap<DocumentRef, (CustomerId, Option<DocumentView>)>,
    /// The planned documents of contracts that are changed, or for which documents are opened, as before the change.
    planned: PlannedDocuments,
    /// The free credit of customers' grants before the change.
    credit: BTreeMap<CustomerId, BTreeMap<CreditGrantRef, Money>>,
}

impl Cx<'_> {
    /// Executes a use case, returns its effects on documents, and rolls it back.
    ///
    /// # Errors
    /// Returns any error of the use case.
    pub fn dry_run(&mut self, work: &mut dyn FnMut(&mut Cx<'_>) -> UseCaseResult<()>) -> UseCaseResult<Effects> {
        // An outer dry run rolls everything back and reports the effects.
        if self.recorder().is_some() {
            work(self)?;
            return Ok(Effects::default());
        }
        let recorder = DryRunRecorder::default();
        let outcome = self.attempt_with(Some(&recorder), &mut |cx| {
            work(cx)?;
            Err::<Infallible, _>(DryRunAbort::Finished(Box::new(recorder.take_effects(cx)?)))
        });
        match outcome {
            Ok(never) => match never {},
            Err(DryRunAbort::Finished(effects)) => Ok(*effects),
            Err(DryRunAbort::Failed(error)) => Err(error),
        }
    }

    /// Executes a part of a use case, and returns its effects on documents. In a dry run, which reports the effects of the whole use
    /// case, the part has none of its own.
    ///
    /// # Errors
    /// Returns any error of the part.
    pub(crate) fn with_effects<T>(
        &mut self,
        part: &mut dyn FnMut(&mut Cx<'_>) -> UseCaseResult<T>,
    ) -> UseCaseResult<(T, Vec<DocumentChange>)> {
        if self.recorder().is_some() {
            return Ok((part(self)?, Vec::new()));
        }
        let recorder = DryRunRecorder { is_saved: true, ..DryRunRecorder::default() };
        self.attempt_with(Some(&recorder), &mut |cx| Ok((part(cx)?, recorder.take_effects(cx)?.changes)))
    }
}

/// The reason why a dry run is rolled back.
enum DryRunAbort {
    Finished(Box<Effects>),
    Failed(UseCaseError),
}

impl From<StoreError> for DryRunAbort {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<UseCaseError> for DryRunAbort {
    fn from(error: UseCaseError) -> Self {
        Self::Failed(error)
    }
}

impl DryRunRecorder {
    fn touched(&self) -> RefMut<'_, AffectedResources> {
        self.affected.borrow_mut()
    }

    fn look_at(
        &self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        customer: CustomerId,
        named: &[DocumentRef],
        now: Timestamp,
    ) -> UseCaseResult<()> {
        let mut unknown = named.to_vec();
        unknown.retain(|document_ref| !self.touched().before.contains_key(document_ref));
        if unknown.is_empty() {
            return Ok(());
        }
        let there = tx.documents_by_refs(organization, &[customer], &unknown)?;
        let views = view_all(tx, organization, there, now)?;
        let mut touched = self.touched();
        let there = views.into_iter().filter_map(|view| Some((view.opened.as_ref()?.document_ref, view)));
        touched.before.extend(there.map(|(document_ref, view)| (document_ref, (customer, Some(view)))));
        for document_ref in unknown {
            touched.before.entry(document_ref).or_insert((customer, None));
        }
        Ok(())
    }

    /// Captures the planned documents of a contract, unless they are known or the contract is created by the change.
    fn capture_planned(&self, tx: &mut dyn Tx, contract: ContractKey, now: Timestamp) -> UseCaseResult<()> {
        let is_known = {
            let touched = self.touched();
            touched.planned.has_contract(contract.contract) || touched.agreed.contains(&contract)
        };
        if is_known {
            return Ok(());
        }
        let planned = match planned_invoices(tx, contract, now) {
            // The change can bring the amounts back into the range. Then it must not be rejected.
            Err(UseCaseError::AmountOutOfRange(_)) => Vec::new(),
            planned => planned?,
        };
        self.touched().planned.insert(contract.contract, planned);
        Ok(())
    }

    /// Returns the effects on all captured resources.
    fn take_effects(&self, cx: &mut Cx<'_>) -> UseCaseResult<Effects> {
        let (organization, now) = (cx.organization, cx.now);
        let AffectedResources { contracts, agreed, before, planned: mut planned_before, credit } = self.affected.take();
        let mut effects = Effects { warnings: cx.warnings().to_vec(), ..Effects::default() };
        let tx = &mut *cx.tx;
        let (mut refs, mut customers): (BTreeSet<DocumentRef>, BTreeSet<CustomerId>) =
            before.iter().map(|(document_ref, (customer, _))| (*document_ref, *customer)).unzip();
        for contract in contracts {
            let drafts = drafts(tx, organization, &all_of(contract))?;
            refs.extend(drafts.iter().map(|document| document.head.document_ref));
            customers.insert(contract.customer);
        }
        let mut after = if refs.is_empty() {
            Vec::new()
        } else {
            tx.documents_by_refs(organization, &Vec::from_iter(customers), &Vec::from_iter(refs))?
        };
        after.sort_by_key(|document| (document.head.created_at, document.head.document_ref));
        let refs: Vec<DocumentRef> = after.iter().map(|document| document.head.document_ref).collect();
        for (document_ref, view) in refs.into_iter().zip(view_all(tx, organization, after, now)?) {
            let was = before.get(&document_ref).and_then(|(_, was)| was.clone());
            effects.add(was, view, &mut planned_before)?;
        }
        for contract in &agreed {
            for view in planned_invoices(tx, *contract, now)? {
                let was = planned_before.take(&view);
                effects.changes.push(DocumentChange::compare(EffectKind::Planned, was.as_ref(), &view)?);
                effects.before.extend(was);
                effects.planned.push(view);
            }
        }
        // The terms of other contracts stay as they are, and so do the documents that are still planned for them.
        for contract in &agreed {
            for was in planned_before.take_rest(contract.contract) {
                effects.changes.push(DocumentChange::removed(&was)?);
                effects.before.push(was);
            }
        }
        effects.totals = EffectTotals::by_currency(&effects.changes)?;
        for (customer, before) in credit {
            let after = free_credit(tx, organization, customer, now)?;
            effects.credits.extend(credit_changes(&before, &after));
        }
        Ok(effects)
    }
}

impl ChangeRecorder for DryRunRecorder {
    fn is_dry_run(&self) -> bool {
        !self.is_saved
    }

    fn capture_books(
        &self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        decided: &[(&ContractBook, &[Entry])],
        now: Timestamp,
    ) -> UseCaseResult<()> {
        for (book, entries) in decided {
            let contract = book.contract.key(organization);
            if book.contract.is_watched {
                self.capture_credit(tx, organization, contract.customer, false, now)?;
            }
            let named = entries.iter().filter_map(|entry| match entry {
                Entry::Opened { head, .. } | Entry::Redrawn(head) => Some(head.document_ref),
                Entry::Issued { document_ref, .. }
                | Entry::Discarded { document_ref, .. }
                | Entry::Voided { document_ref, .. }
                | Entry::Lines { document_ref, .. } => Some(*document_ref),
                Entry::Amended(_)
                | Entry::EventsMoved { .. }
                | Entry::Charged { .. }
                | Entry::UsageMoved { .. }
                | Entry::Due(_) => None,
            });
            let named: Vec<DocumentRef> = named.collect();
            self.capture_drafts(tx, organization, &all_of(contract), now)?;
            self.look_at(tx, organization, contract.customer, &named, now)?;
            if entries.iter().any(|entry| matches!(entry, Entry::Amended(_) | Entry::Opened { .. })) {
                self.capture_planned(tx, contract, now)?;
            }
            let mut touched = self.touched();
            touched.contracts.insert(contract);
            if entries.iter().any(|entry| matches!(entry, Entry::Amended(_))) {
                touched.agreed.insert(contract);
            }
        }
        Ok(())
    }

    fn capture_account(
        &self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        account: &ReceivablesAccount,
        entries: &[AccountEntry],
        now: Timestamp,
    ) -> UseCaseResult<()> {
        let named = entries.iter().filter_map(|entry| match entry {
            AccountEntry::Settled { document_ref, .. } => Some(*document_ref),
            AccountEntry::WrittenOff(write_off) => Some(write_off.document_ref),
            AccountEntry::Recorded(payment) => payment.document_ref,
            AccountEntry::Applied(application) => Some(application.to),
            AccountEntry::Reversed { .. } | AccountEntry::Used { .. } | AccountEntry::Unapplied { .. } => None,
        });
        self.capture_credit(tx, organization, account.key().customer_id, false, now)?;
        self.look_at(tx, organization, account.key().customer_id, &named.collect::<Vec<_>>(), now)
    }

    fn capture_drafts(
        &self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        filter: &DocumentFilter,
        now: Timestamp,
    ) -> UseCaseResult<()> {
        let drafts = drafts(tx, organization, filter)?;
        let customers: Vec<CustomerId> = drafts.iter().map(|document| document.head.customer_id).collect();
        let views = view_all(tx, organization, drafts, now)?;
        let mut touched = self.touched();
        for (customer, view) in customers.into_iter().zip(views) {
            if let Some(opened) = &view.opened {
                touched.before.entry(opened.document_ref).or_insert((customer, Some(view)));
            }
        }
        Ok(())
    }

    fn capture_credit(
        &self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        customer: CustomerId,
        is_new: bool,
        now: Timestamp,
    ) -> UseCaseResult<()> {
        if self.touched().credit.contains_key(&customer) {
            return Ok(());
        }
        let free = free_credit(tx, organization, customer, now)?;
        if is_new || !free.is_empty() {
            let of_customer = DocumentFilter { customer_id: Some(customer), ..DocumentFilter::default() };
            self.capture_drafts(tx, organization, &of_customer, now)?;
            self.touched().credit.insert(customer, free);
        }
        Ok(())
    }

    fn capture_contract(&self, contract: ContractKey) {
        self.touched().agreed.insert(contract);
    }
}

impl Effects {
    /// Adds the effect on one stored document. A document that is opened by the change is compared with the planned one.
    fn add(&mut self, before: Option<DocumentView>, after: DocumentView, planned: &mut PlannedDocuments) -> UseCaseResult<()> {
        let was = before.as_ref().map(|before| before.state);
        let is_open = after.state == DocumentState::Draft;
        let is_void = after.state == DocumentState::Void;
        let (effect, to) = match was {
            // Opened and voided in the same change, so nobody can see the document.
            None if is_void => return Ok(()),
            None if is_open => (EffectKind::Opened, &mut self.opened),
            None | Some(DocumentState::Draft) if !is_open && !is_void => (EffectKind::Issued, &mut self.issued),
            Some(was) if is_void && was != DocumentState::Void => (EffectKind::Voided, &mut self.voided),
            Some(_) if before.as_ref().is_some_and(|before| before.says_the_same(&after)) => return Ok(()),
            Some(DocumentState::Draft) => (EffectKind::Recomputed, &mut self.recomputed),
            _ => (EffectKind::Settled, &mut self.settled),
        };
        let before = before.or_else(|| planned.take(&after));
        self.changes.push(DocumentChange::compare(effect, before.as_ref(), &after)?);
        to.push(after);
        self.before.extend(before);
        Ok(())
    }
}

/// Returns the free credit of a customer's grants that something is left of.
fn free_credit(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer: CustomerId,
    now: Timestamp,
) -> UseCaseResult<BTreeMap<CreditGrantRef, Money>> {
    let balances = balances_of(tx, organization, &[customer], now)?;
    Ok(balances.into_iter().map(|(grant, balance)| (grant.grant_ref, balance.free)).collect())
}

/// Returns the grants whose free credit differs. A grant that is used up is missing, and so is a new one before the change.
fn credit_changes(
    before: &BTreeMap<CreditGrantRef, Money>,
    after: &BTreeMap<CreditGrantRef, Money>,
) -> impl Iterator<Item = CreditChange> {
    let grants: BTreeSet<CreditGrantRef> = before.keys().chain(after.keys()).copied().collect();
    let change = |grant_ref: CreditGrantRef| {
        let (was, is) = (before.get(&grant_ref).copied(), after.get(&grant_ref).copied());
        let zero = Money::zero(was.or(is)?.currency());
        let (free_before, free) = (was.unwrap_or(zero), is.unwrap_or(zero));
        (free_before != free).then_some(CreditChange { grant_ref, free_before, free })
    };
    grants.into_iter().filter_map(change)
}

/// Returns the first drafts that match a filter.
fn drafts(tx: &mut dyn Tx, organization: OrganizationId, filter: &DocumentFilter) -> UseCaseResult<Vec<Document>> {
    let filter = DocumentFilter { state: Some(DocumentState::Draft), ..filter.clone() };
    Ok(tx.documents(organization, &filter, PageRequest::LARGEST)?.items)
}

/// Returns a filter for all documents of a contract.
fn all_of(contract: ContractKey) -> DocumentFilter {
    DocumentFilter { customer_id: Some(contract.customer), contract_ref: Some(contract.contract), ..DocumentFilter::default() }
}
