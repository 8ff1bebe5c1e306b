//! Loads, settles and saves receivables accounts. This module knows which rows a decision about money needs and in which
//! order accounts are locked.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{AppliedAtIssue, AtIssue, DocumentKind};
use billing_domain::ledger::receivables::{AccountEntry, AccountParties, DecisionContext, Issuance, ReceivablesAccount};
use billing_domain::ledger::{ContractBook, Entry};
use billing_domain::money::{Money, MoneySum};
use billing_domain::notification::notify;
use billing_domain::notification::{Fact, Notice};
use billing_domain::ports::{ApplicationsOf, DocumentsOf, PaymentsOf, StoreError, Tx};
use billing_domain::receivables::{AccountKey, AccountRows, ApplicationSource};
use billing_domain::refs::{ApplicationRef, CustomerId, DocumentRef, OrganizationId, PaymentRef};

use crate::basics::{corrupt, distinct};
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};
use crate::notifications;

/// The rows of an account that a decision needs.
#[derive(Debug, Default)]
pub(crate) struct AccountQuery {
    /// These documents.
    pub(crate) documents: Vec<DocumentRef>,
    /// These payments.
    pub(crate) payments: Vec<PaymentRef>,
    /// Credits and payments with their applications.
    pub(crate) sources: Vec<ApplicationSource>,
    /// An application with its source and target.
    pub(crate) application: Option<ApplicationRef>,
    /// All documents of these families.
    pub(crate) families: Vec<DocumentRef>,
    /// All sources with an unapplied amount.
    pub(crate) unapplied: bool,
    /// Open documents, up to this total amount due.
    pub(crate) open_up_to: Option<MoneySum>,
}

/// Loads rows into an account.
pub(crate) fn read(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    account: &mut ReceivablesAccount,
    wanted: AccountQuery,
) -> UseCaseResult<()> {
    let key = account.key().clone();
    let AccountQuery { mut documents, mut payments, sources, application, families, unapplied, open_up_to } = wanted;
    let mut rows = AccountRows::default();
    if let Some(application) = application {
        rows.applications.extend(tx.account_applications(organization, &key, ApplicationsOf::These(&[application]))?);
    }
    for source in &sources {
        rows.applications.extend(tx.account_applications(organization, &key, ApplicationsOf::From(*source))?);
    }
    for application in &rows.applications {
        documents.push(application.to);
    }
    for source in rows.applications.iter().map(|application| application.from).chain(sources) {
        match source {
            ApplicationSource::Credit(credit) => documents.push(credit),
            ApplicationSource::Payment(payment) => payments.push(payment),
        }
    }
    if !documents.is_empty() {
        rows.documents.extend(tx.account_documents(organization, &key, DocumentsOf::These(&distinct(documents)))?);
    }
    if !families.is_empty() {
        rows.documents.extend(tx.account_documents(organization, &key, DocumentsOf::Families(&distinct(families)))?);
    }
    if let Some(amount) = open_up_to.filter(|_| account.applies_balance()) {
        rows.documents.extend(tx.account_documents(organization, &key, DocumentsOf::OpenUpTo(amount))?);
    }
    if !payments.is_empty() {
        rows.payments.extend(tx.account_payments(organization, &key, PaymentsOf::These(&distinct(payments)))?);
    }
    if unapplied && account.applies_balance() && account.unapplied().minor() != 0 {
        rows.documents.extend(tx.account_documents(organization, &key, DocumentsOf::Unapplied)?);
        rows.payments.extend(tx.account_payments(organization, &key, PaymentsOf::Unapplied)?);
    }
    account.add(rows);
    Ok(())
}

/// The documents of an account that a transaction issues or voids.
struct DocumentTransitions {
    context: DecisionContext,
    parties: AccountParties,
    applies_balance: bool,
    issued: Vec<Issuance>,
    voided: Vec<DocumentRef>,
}

/// Settles the accounts of issued and voided documents. Locks the accounts in one fixed order, after contracts and before
/// document series.
pub(crate) fn settle_accounts<'b>(
    cx: &mut Cx<'_>,
    decided: impl IntoIterator<Item = (&'b ContractBook, &'b [Entry])>,
) -> UseCaseResult<Vec<ReceivablesAccount>> {
    let mut touched: BTreeMap<AccountKey, DocumentTransitions> = BTreeMap::new();
    for (book, entries) in decided {
        for entry in entries {
            let (Entry::Issued { document_ref, .. } | Entry::Voided { document_ref, .. }) = entry else { continue };
            let document = book.document(*document_ref).ok_or_else(|| corrupt("a book", document_ref, "isn't in it"))?;
            let zone = book.entity(&document.head.entity_ref)?.profile.time_zone;
            let of_account = touched.entry(AccountKey::of(document)).or_insert_with(|| DocumentTransitions {
                context: DecisionContext { at: cx.now, zone, by: cx.by },
                parties: AccountParties { customer_ref: book.customer.customer_ref.clone(), zone },
                applies_balance: book.customer.profile.apply_balance,
                issued: Vec::new(),
                voided: Vec::new(),
            });
            if matches!(entry, Entry::Voided { .. }) {
                of_account.voided.push(*document_ref);
            } else {
                let is_credit = document.head.kind == DocumentKind::Credit;
                let takes_back = if is_credit { book.takes_back(*document_ref) } else { Default::default() };
                of_account.issued.push(Issuance { document: document.clone(), takes_back });
            }
        }
    }
    if touched.is_empty() {
        return Ok(Vec::new());
    }
    let held = cx.tx.hold_accounts(cx.organization, &touched.keys().cloned().collect())?;
    let settle = |(key, touched): (AccountKey, DocumentTransitions)| {
        let unapplied = held.get(&key).copied().ok_or(UseCaseError::InvariantViolation("an account that isn't held"))?;
        let account = ReceivablesAccount::new(key, touched.applies_balance, unapplied).with_parties(touched.parties.clone());
        settle_account(cx, account, touched)
    };
    touched.into_iter().map(settle).collect()
}

fn settle_account(
    cx: &mut Cx<'_>,
    mut account: ReceivablesAccount,
    touched: DocumentTransitions,
) -> UseCaseResult<ReceivablesAccount> {
    let (organization, key) = (cx.organization, account.key().clone());
    let credits =
        || touched.issued.iter().map(|issue| &issue.document).filter(|document| document.head.kind == DocumentKind::Credit);
    let has_debts = credits().count() < touched.issued.len();
    let given = MoneySum::of(key.currency, credits().filter_map(|credit| credit.total))?;
    let wanted = AccountQuery {
        documents: touched.voided.clone(),
        sources: touched.voided.iter().map(|voided| ApplicationSource::Credit(*voided)).collect(),
        families: credits().map(|credit| credit.family).collect(),
        unapplied: has_debts || !touched.voided.is_empty(),
        open_up_to: (given.minor() > 0).then_some(given),
        ..AccountQuery::default()
    };
    read(cx.tx, organization, &mut account, wanted)?;
    let ids = &mut cx.ids();
    for voided in touched.voided {
        let payments = cx.tx.account_payments(organization, &key, PaymentsOf::Document(voided))?;
        account.add(AccountRows { payments, ..AccountRows::default() });
        account.void(voided, &touched.context, ids)?;
    }
    account.issue(touched.issued, &touched.context, ids)?;
    Ok(account)
}

/// Freezes the applied credits and balance with the documents that the transaction issues, so that they show what is due at
/// their issue. The documents must have their numbers.
pub(crate) fn freeze_applied(
    cx: &mut Cx<'_>,
    accounts: &[ReceivablesAccount],
    decided: &mut [(&mut ContractBook, Vec<Entry>)],
) -> UseCaseResult<()> {
    let mut applied: BTreeMap<DocumentRef, Vec<(Option<DocumentRef>, Money)>> = BTreeMap::new();
    let mut unknown: BTreeMap<CustomerId, BTreeSet<DocumentRef>> = BTreeMap::new();
    let known = accounts.iter().flat_map(|account| account.documents()).map(|document| &document.head);
    let mut numbers: BTreeMap<DocumentRef, DocumentNumber> = known.map(|head| (head.document_ref, head.number.clone())).collect();
    for (book, entries) in decided.iter() {
        for entry in entries {
            let Entry::Issued { document_ref, .. } = entry else { continue };
            let document = book.document(*document_ref).ok_or_else(|| corrupt("a book", document_ref, "isn't in it"))?;
            let key = AccountKey::of(document);
            let of_document = accounts.iter().find(|account| *account.key() == key);
            let of_document = of_document.map(|account| account.newly_applied(*document_ref)).unwrap_or_default();
            unknown.entry(key.customer_id).or_default().extend(of_document.iter().filter_map(|(other, _)| *other));
            applied.insert(*document_ref, of_document);
        }
    }
    for (customer_id, mut others) in unknown {
        others.retain(|other| !numbers.contains_key(other));
        if !others.is_empty() {
            let found = cx.tx.book_documents_by_refs(cx.organization, &[customer_id], &Vec::from_iter(others))?;
            numbers.extend(found.into_iter().map(|document| (document.head.document_ref, document.head.number)));
        }
    }
    for (_, entries) in decided {
        for entry in entries {
            let Entry::Issued { document_ref, issued, .. } = entry else { continue };
            let number_of = |other| numbers.get(&other).cloned().ok_or_else(|| corrupt("a document", &other, "is not there"));
            let named = |(other, amount): (Option<DocumentRef>, Money)| {
                Ok::<_, UseCaseError>(AppliedAtIssue { document_number: other.map(number_of).transpose()?, amount })
            };
            let of_document = applied.remove(document_ref).unwrap_or_default();
            let of_document = of_document.into_iter().map(named).collect::<UseCaseResult<Vec<_>>>()?;
            issued.at_issue = Some(AtIssue::new(issued.content.total, of_document)?);
        }
    }
    Ok(())
}

/// Returns the watched customers whose numbers the entries of books can change.
pub(crate) fn watched(decided: &[(&mut ContractBook, Vec<Entry>)]) -> Vec<CustomerId> {
    let changes_numbers = |entries: &[Entry]| entries.iter().any(|entry| !matches!(entry, Entry::Due(_)));
    let watched = decided.iter().filter(|(book, entries)| book.contract.is_watched && changes_numbers(entries));
    distinct(watched.map(|(book, _)| book.contract.customer_id))
}

/// Saves the decisions on accounts and their notifications, and returns the entries.
pub(crate) fn write(cx: &mut Cx<'_>, accounts: &mut [ReceivablesAccount]) -> UseCaseResult<Vec<AccountEntry>> {
    let SavedAccounts { entries, facts, notices } = save(cx, accounts)?;
    notifications::record(cx, &facts, &notices)?;
    Ok(entries)
}

/// The entries of saved accounts, and what notifications must state about them.
#[derive(Default)]
pub(crate) struct SavedAccounts {
    pub(crate) entries: Vec<AccountEntry>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) notices: Vec<Notice>,
}

/// Saves the decisions on accounts. Documents issued in the same transaction must be saved before. The caller records the
/// notifications.
pub(crate) fn save(cx: &mut Cx<'_>, accounts: &mut [ReceivablesAccount]) -> UseCaseResult<SavedAccounts> {
    let mut saved = SavedAccounts::default();
    for account in accounts {
        let entries = account.take_entries()?;
        if let Some(recorder) = cx.recorder() {
            recorder.capture_account(cx.tx, cx.organization, account, &entries, cx.now)?;
        }
        if !entries.is_empty() || account.is_unapplied_changed() {
            cx.tx.put_account(cx.organization, account.key(), &entries, account.unapplied(), cx.services.now())?;
        }
        let (facts, notices) = notify::of_account(account, &entries, cx.now)?;
        saved.facts.extend(facts);
        saved.notices.extend(notices);
        saved.entries.extend(entries);
    }
    Ok(saved)
}

/// Locks an account without loading its rows. Returns it with the context for decisions.
///
/// Locks all accounts of the customer, because an operation on money can change the number of a limit.
pub(crate) fn lock_account(cx: &mut Cx<'_>, key: AccountKey) -> UseCaseResult<(ReceivablesAccount, DecisionContext)> {
    let organization = cx.organization;
    cx.lock_accounts(&[key.customer_id])?;
    let unapplied = cx.tx.hold_account(organization, &key)?;
    let missing = |what: &str| StoreError::Corrupt(format!("an account's {what} is not there"));
    // Read after the lock: a first limit of the account is created under it.
    let (customer, is_watched) = cx.tx.watched_customer(organization, key.customer_id, None)?;
    if is_watched {
        cx.watch(&[customer.id])?;
    }
    let entities = cx.tx.entities_by_refs(organization, std::slice::from_ref(&key.entity_ref))?;
    let zone = entities.first().ok_or_else(|| missing("entity"))?.profile.time_zone;
    let parties = AccountParties { customer_ref: customer.customer_ref.clone(), zone };
    let account = ReceivablesAccount::new(key, customer.profile.apply_balance, unapplied).with_parties(parties);
    Ok((account, DecisionContext { at: cx.now, zone, by: cx.by }))
}
