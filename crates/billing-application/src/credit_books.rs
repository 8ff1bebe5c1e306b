//! Sets the prepaid credit of customers in the books of their contracts (billing rules 12).
//!
//! No credit of a draft is stored: it follows from the grants and from the drafts of all contracts of the customer. A transaction
//! that decides by it has locked the customer's accounts before, because credit changes only under that lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::calendar::Timestamp;
use billing_domain::credit::{CreditBalance, CreditDraw, CreditGrant};
use billing_domain::ledger::ContractBook;
use billing_domain::ledger::credit::{CreditFamily, CreditView, cover};
use billing_domain::ports::Tx;
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractKey, ContractRef, CreditGrantRef, CustomerId, DocumentRef, OrganizationId};

use crate::basics::distinct;
use crate::book_rows::{load_headers, load_open_books, recount_lacking};
use crate::error::UseCaseResult;

/// The credit of customers, without that of customers who have no grants.
pub(crate) type CreditViews = BTreeMap<CustomerId, CreditView>;

/// Sets the credit of the watched customers in books with rows. The books of their other contracts with drafts are loaded.
pub(crate) fn set_credit(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: &mut [ContractBook],
    now: Timestamp,
) -> UseCaseResult<()> {
    let mut books: Vec<&mut ContractBook> = books.iter_mut().filter(|book| book.contract.is_watched).collect();
    let customers = distinct(books.iter().map(|book| book.contract.customer_id));
    if customers.is_empty() {
        return Ok(());
    }
    set_credit_of(tx, organization, &customers, &mut books, Vec::new(), now)?;
    Ok(())
}

/// Sets the credit of customers in all their books with rows. The books of their other contracts with drafts are loaded, as far as
/// `others` doesn't have them. Returns these books, and the credit.
pub(crate) fn set_credit_of(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customers: &[CustomerId],
    books: &mut [&mut ContractBook],
    mut others: Vec<ContractBook>,
    now: Timestamp,
) -> UseCaseResult<(Vec<ContractBook>, CreditViews)> {
    let mut grants = KnownGrants::default();
    grants.read(tx, organization, customers, books.iter().map(|book| &**book).chain(&others))?;
    let accounts = grants.accounts_to_cover()?;
    if !accounts.is_empty() {
        let known: BTreeSet<ContractRef> =
            books.iter().map(|book| &**book).chain(&others).map(|book| book.contract.contract_ref).collect();
        let with_drafts = tx.contracts_with_drafts(organization, &accounts)?.into_keys();
        let missing: Vec<ContractKey> = with_drafts.filter(|key| !known.contains(&key.contract)).collect();
        if !missing.is_empty() {
            let headers = load_headers(tx, organization, &missing)?;
            let loaded = load_open_books(tx, organization, headers, &[], now)?;
            // Their drafts can return credit to grants that are used up.
            grants.read(tx, organization, customers, &loaded)?;
            others.extend(loaded);
        }
    }
    let views = grants.views();
    let mut all: Vec<&mut ContractBook> = Vec::new();
    for book in books.iter_mut().map(|book| &mut **book).chain(&mut others) {
        if views.contains_key(&book.contract.customer_id) {
            recount_lacking(tx, organization, book)?;
            all.push(book);
        }
    }
    let views = views.into_iter().map(|(customer, view)| {
        let of_customer = all.iter_mut().map(|book| &mut **book).filter(|book| book.contract.customer_id == customer);
        Ok((customer, share(view, of_customer.collect())?))
    });
    let views = views.collect::<UseCaseResult<_>>()?;
    Ok((others, views))
}

/// Returns the grants of customers that something is left of, with their amounts.
pub(crate) fn balances_of(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customers: &[CustomerId],
    now: Timestamp,
) -> UseCaseResult<Vec<(CreditGrant, CreditBalance)>> {
    if customers.is_empty() {
        return Ok(Vec::new());
    }
    let (_, views) = set_credit_of(tx, organization, customers, &mut [], Vec::new(), now)?;
    let mut balances = Vec::new();
    for view in views.into_values() {
        let draws = draws_of(&view)?;
        for grant in view.grants {
            let balance = grant.balance(&draws)?;
            balances.push((grant, balance));
        }
    }
    Ok(balances)
}

/// Returns the credit that the drafts of a customer take.
pub(crate) fn draws_of(view: &CreditView) -> UseCaseResult<Vec<CreditDraw>> {
    Ok(cover(&view.grants, view.families.iter())?)
}

/// Sets the same credit in all books of a customer, with what the drafts of these books need. Returns it.
pub(crate) fn share(mut view: CreditView, mut books: Vec<&mut ContractBook>) -> UseCaseResult<CreditView> {
    let mut families: Vec<CreditFamily> = Vec::new();
    for book in &mut books {
        book.set_credit(view.clone());
        families.extend(book.credit_families()?);
    }
    view.families = Arc::new(families);
    books.into_iter().for_each(|book| book.set_credit(view.clone()));
    Ok(view)
}

/// Passes the credit of a book on to the other books of its customer, after a decision: what the decision drew, and what the drafts
/// need now.
pub(crate) fn pass_credit_on(books: &mut BTreeMap<ContractRef, ContractBook>, from: ContractRef) -> UseCaseResult<()> {
    let Some(decided) = books.get(&from).filter(|book| book.credit().is_some()) else { return Ok(()) };
    let customer_id = decided.contract.customer_id;
    let is_other = |book: &ContractBook| book.contract.customer_id == customer_id && book.contract.contract_ref != from;
    if !books.values().any(is_other) {
        return Ok(());
    }
    let Some(decided) = books.remove(&from) else { return Ok(()) };
    for book in books.values_mut().filter(|book| is_other(book)) {
        book.take_over_credit(&decided)?;
    }
    books.insert(from, decided);
    Ok(())
}

/// The grants that books need.
#[derive(Default)]
struct KnownGrants {
    grants: BTreeMap<CreditGrantRef, CreditGrant>,
    /// The families that are known to have sold credit, or not.
    families: BTreeSet<DocumentRef>,
    /// Whether the grants with something left are here.
    has_open: bool,
}

impl KnownGrants {
    /// Reads the grants with something left, those that sums of the books name, and those that documents of the books sold.
    fn read<'b>(
        &mut self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        customers: &[CustomerId],
        books: impl IntoIterator<Item = &'b ContractBook>,
    ) -> UseCaseResult<()> {
        let (mut named, mut families) = (BTreeSet::new(), BTreeSet::new());
        for book in books.into_iter().filter(|book| customers.contains(&book.contract.customer_id)) {
            let taken = book.sums().flat_map(|(_, sums)| sums.prepaid());
            named.extend(taken.filter(|(.., minor)| *minor != 0).map(|(_, grant_ref, _)| grant_ref));
            families.extend(book.documents().map(|document| document.family));
        }
        named.retain(|grant_ref| !self.grants.contains_key(grant_ref));
        families.retain(|family| !self.families.contains(family));
        if self.has_open && named.is_empty() && families.is_empty() {
            return Ok(());
        }
        let found = tx.grants_of(organization, customers, &Vec::from_iter(named), &Vec::from_iter(families.iter().copied()))?;
        self.grants.extend(found.into_iter().map(|grant| (grant.grant_ref, grant)));
        self.families.extend(families);
        self.has_open = true;
        Ok(())
    }

    /// Returns the accounts of which documents can take credit.
    fn accounts_to_cover(&self) -> UseCaseResult<BTreeSet<AccountKey>> {
        let mut accounts = BTreeSet::new();
        for grant in self.grants.values() {
            if grant.undrawn()?.minor() > 0 {
                accounts.insert(grant.account.clone());
            }
        }
        Ok(accounts)
    }

    fn views(self) -> CreditViews {
        let mut views = CreditViews::new();
        for grant in self.grants.into_values() {
            let view = views.entry(grant.account.customer_id).or_default();
            view.sales.extend(grant.sale.as_ref().map(|sale| sale.document_ref));
            view.grants.push(grant);
        }
        views
    }
}
