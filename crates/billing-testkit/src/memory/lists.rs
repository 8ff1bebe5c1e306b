//! Lists and search, by looking at everything.

use std::collections::BTreeMap;

use billing_domain::calendar::Timestamp;
use billing_domain::contract::{Agreed, Contract};
use billing_domain::document::{Document, DocumentHead, DocumentKind, Lifecycle};
use billing_domain::money::{Money, MoneySum};
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::Customer;
use billing_domain::ports::{
    ContractFilter, ContractSortKey, CustomerFilter, CustomerSortKey, DocumentAmounts, DocumentFilter, DocumentOrder,
    DocumentSums, Found, FoundKind, ListPart, Lists, Sought, StoreResult,
};
use billing_domain::refs::{ContractRef, CustomerId, CustomerRef, OrganizationId, PricingRef};
use billing_domain::text::OneLine;

use super::accounts::OfAccount;
use super::{MemoryTx, corrupt, page};

/// Whether a contract agrees on a pricing in any of its versions.
fn agrees_on(contract: &Contract, wanted: &PricingRef) -> bool {
    let segments = contract.products.iter().flat_map(|product| &product.segments);
    segments.into_iter().any(|segment| matches!(&segment.agreed, Agreed::Billed(terms) if terms.pricing.pricing_ref == *wanted))
}

impl MemoryTx {
    fn passing(&self, organization: OrganizationId, filter: &DocumentFilter) -> Vec<&Document> {
        self.state.documents.of(organization).filter(|row| self.passes(organization, filter, row)).collect()
    }

    fn passes(&self, organization: OrganizationId, filter: &DocumentFilter, row: &Document) -> bool {
        let head = &row.head;
        let (issue_date, due_date) = (row.lifecycle.issued().map(|issued| issued.issue_date), row.due_date());
        let due = amount_due(row).unwrap_or(0);
        let day = |day, from, to| within(Some(head.period.start()), filter.from, filter.to) && within(day, from, to);
        let is_overdue = || {
            filter.overdue.as_ref().is_none_or(|(wanted, todays)| {
                *wanted == (due > 0 && due_date.is_some_and(|day| day < todays.of(Some(&head.entity_ref))))
            })
        };
        is(filter.customer_id, &head.customer_id)
            && is(filter.contract_ref, &head.contract_ref)
            && is(filter.entity_ref.clone(), &head.entity_ref)
            && is(filter.kind, &head.kind)
            && is(filter.purpose, &head.purpose.into())
            && is(filter.currency, &head.currency)
            && is(filter.number.clone(), &head.number)
            && filter.state.is_none_or(|wanted| row.state() == Ok(wanted))
            && filter.po_number.as_ref().is_none_or(|wanted| self.po_number(organization, row) == Some(wanted))
            && day(issue_date, filter.issued_from, filter.issued_to)
            && within(due_date, filter.due_from, filter.due_to)
            && within(self.state.updated.get(&head.document_ref).copied(), filter.updated_since, None)
            && filter.has_amount_due.is_none_or(|wanted| wanted == (due > 0))
            && is_overdue()
    }

    /// As it is shown.
    fn po_number<'t>(&'t self, organization: OrganizationId, row: &'t Document) -> Option<&'t OneLine> {
        match &row.lifecycle {
            Lifecycle::Draft => {
                let mut contracts = self.state.contracts.of(organization);
                contracts.find(|of| of.contract.contract_ref == row.head.contract_ref)?.contract.po_number.as_ref()
            }
            Lifecycle::Issued(issued) | Lifecycle::Void(issued) | Lifecycle::Uncollectible(issued) => issued.po_number.as_ref(),
            Lifecycle::Discarded(said) => said.as_ref()?.po_number.as_ref(),
        }
    }

    fn customer_ref(&self, organization: OrganizationId, customer_id: CustomerId) -> Option<CustomerRef> {
        self.state.customers.of(organization).find(|row| row.id == customer_id).map(|row| row.customer_ref.clone())
    }

    /// Everything there is, with what it is told by: those that have one of these words are found by it.
    fn everything(&self, organization: OrganizationId, sought: &Sought) -> Vec<(Vec<String>, Found)> {
        let mut all = Vec::new();
        let of_document = |head: &DocumentHead| (self.customer_ref(organization, head.customer_id), head.document_ref);
        for row in self.state.documents.of(organization) {
            let (customer_ref, document_ref) = of_document(&row.head);
            let number = row.head.number.to_string();
            let po_number = self.po_number(organization, row).map(|po| po.as_str().to_owned());
            let words = [Some(document_ref.to_string()), Some(number.clone()), po_number];
            let document = found(FoundKind::Document, document_ref.to_string(), Some(number), None, customer_ref);
            all.push((words.into_iter().flatten().collect(), document));
        }
        for OfAccount { key, row: payment } in self.state.payments.of(organization) {
            let reference = payment.reference.as_ref().map(|reference| reference.as_str().to_owned());
            let words = [Some(payment.payment_ref.to_string()), reference.clone()].into_iter().flatten().collect();
            let customer_ref = self.customer_ref(organization, key.customer_id);
            let found = found(FoundKind::Payment, payment.payment_ref.to_string(), reference, None, customer_ref);
            all.push((words, Found { document_ref: Some(payment.document_ref), ..found }));
        }
        for charge in self.state.charges.of(organization).filter(|charge| !charge.deleted) {
            let (reference, name) = (charge.charge_ref.as_str().to_owned(), charge.name.as_str().to_owned());
            let customer_ref = self.customer_ref(organization, charge.customer_id);
            all.push((vec![reference.clone()], found(FoundKind::Charge, reference, None, Some(name), customer_ref)));
        }
        for account in self.state.bank_accounts.of(organization) {
            let reference = account.account_ref.as_str().to_owned();
            let name = account.profile.account_name.as_ref().map(|name| name.as_str().to_owned());
            all.push((vec![reference.clone()], found(FoundKind::BankAccount, reference, None, name, None)));
        }
        for row in self.state.contracts.of(organization) {
            let contract = &row.contract;
            let number = contract.number_text();
            let reference = contract.contract_ref.to_string();
            let po_number = contract.po_number.as_ref().map(|po| po.as_str().to_owned());
            let words = [Some(reference.clone()), Some(number.clone()), po_number].into_iter().flatten().collect();
            all.push((words, found(FoundKind::Contract, reference, Some(number), None, Some(contract.customer_ref.clone()))));
        }
        let mut named = |kind, reference: &str, name: &str, customer_ref| {
            let words = vec![reference.to_owned()];
            all.push((words, found(kind, reference.to_owned(), None, Some(name.to_owned()), customer_ref)));
        };
        for row in self.state.customers.of(organization) {
            named(FoundKind::Customer, row.customer_ref.as_str(), row.profile.name.as_str(), Some(row.customer_ref.clone()));
        }
        for row in self.state.entities.of(organization) {
            named(FoundKind::Entity, row.entity_ref.as_str(), row.profile.name.as_str(), None);
        }
        for row in self.state.pricings.of(organization) {
            named(FoundKind::Pricing, row.pricing_ref.as_str(), row.content.name.as_str(), None);
        }
        for row in self.state.usage_products.of(organization) {
            named(FoundKind::UsageProduct, row.usage_product_ref.as_str(), row.profile.name.as_str(), None);
        }
        let mut formats: BTreeMap<&str, &str> = BTreeMap::new();
        for row in self.state.formats.of(organization) {
            formats.insert(row.format.format_ref.as_str(), row.format.name.as_str());
        }
        for (reference, name) in formats {
            named(FoundKind::Format, reference, name, None);
        }
        for row in self.state.events.of(organization) {
            let keys = self.state.kept_events.of(organization).filter(|(_, kept)| kept.event_ref == row.event_ref);
            // A key shows no more than that it is the one looked for.
            let key = keys.map(|(_, kept)| kept.key.as_str().to_owned()).find(|key| key == sought.text.as_str());
            let reference = row.event_ref.to_string();
            let words = [Some(reference.clone()), key.clone()].into_iter().flatten().collect();
            let customer_ref = self.customer_ref(organization, row.customer_id);
            all.push((words, found(FoundKind::UsageEvent, reference, key, None, customer_ref)));
        }
        for row in self.state.api_keys.iter().filter(|row| sought.with_api_keys && row.organization == organization) {
            let reference = row.api_key_ref.to_string();
            let name = row.name.as_ref().map(|name| name.as_str().to_owned());
            let words = vec![reference.clone(), row.api_key.clone()];
            all.push((words, found(FoundKind::ApiKey, reference, Some(row.api_key.clone()), name, None)));
        }
        all
    }
}

fn found(
    kind: FoundKind,
    reference: String,
    number: Option<String>,
    name: Option<String>,
    customer_ref: Option<CustomerRef>,
) -> Found {
    Found { kind, reference, number, name, customer_ref, document_ref: None }
}

fn is<T: PartialEq>(wanted: Option<T>, value: &T) -> bool {
    wanted.is_none_or(|wanted| wanted == *value)
}

fn within<T: Ord>(value: Option<T>, from: Option<T>, to: Option<T>) -> bool {
    let reaches = |bound: Option<T>, kept: fn(&T, &T) -> bool| {
        bound.is_none_or(|bound| value.as_ref().is_some_and(|value| kept(&bound, value)))
    };
    reaches(from, |from, value| from <= value) && reaches(to, |to, value| value <= to)
}

/// What is left to pay of an issued invoice or debit.
fn amount_due(row: &Document) -> Option<i64> {
    let issued = row.lifecycle.issued()?;
    let owed = row.settlement.owed(row.head.kind, row.lifecycle.standing(), issued.content.total).ok()?;
    owed.amount_due.map(Money::minor)
}

impl Lists for MemoryTx {
    fn listed_documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        order: DocumentOrder,
        part: ListPart,
    ) -> StoreResult<Vec<Document>> {
        let mut passed = self.passing(organization, filter);
        passed.sort_by(|a, b| order.compare(&order.position(a), &order.position(b)));
        passed.retain(|row| part.after.is_none_or(|after| order.compare(&after, &order.position(row)).is_lt()));
        let (skip, limit) = (usize::try_from(part.skip).unwrap_or(usize::MAX), usize::try_from(part.limit).unwrap_or(usize::MAX));
        Ok(passed.into_iter().skip(skip).take(limit).cloned().collect())
    }

    fn document_sums(&mut self, organization: OrganizationId, filter: &DocumentFilter) -> StoreResult<DocumentSums> {
        let mut sums: BTreeMap<&str, (MoneySum, MoneySum)> = BTreeMap::new();
        let passed = self.passing(organization, filter);
        for row in &passed {
            let total = match &row.lifecycle {
                Lifecycle::Issued(issued) | Lifecycle::Uncollectible(issued) => issued.content.total.minor(),
                Lifecycle::Draft | Lifecycle::Void(_) | Lifecycle::Discarded(_) => 0,
            };
            let total = if row.head.kind == DocumentKind::Credit { -total } else { total };
            let currency = row.head.currency;
            let sum = sums.entry(currency.code()).or_insert((MoneySum::zero(currency), MoneySum::zero(currency)));
            let add = |to: MoneySum, more: i64| {
                to.checked_add(Money::from_minor(more, currency)).map_err(|_| corrupt("a sum is out of range"))
            };
            *sum = (add(sum.0, total)?, add(sum.1, amount_due(row).unwrap_or(0))?);
        }
        let amounts = |(total, due)| DocumentAmounts { total, due };
        Ok(DocumentSums { count: passed.len() as u64, amounts: sums.into_values().map(amounts).collect() })
    }

    fn contract_numbers(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[ContractRef],
    ) -> StoreResult<Vec<(ContractRef, u64)>> {
        let rows = self.state.contracts.of(organization).map(|row| &row.contract);
        let asked = rows.filter(|row| customers.contains(&row.customer_id) && refs.contains(&row.contract_ref));
        Ok(asked.map(|row| (row.contract_ref, row.number)).collect())
    }

    fn contracts(
        &mut self,
        organization: OrganizationId,
        filter: &ContractFilter,
        by: ContractSortKey,
        request: PageRequest,
    ) -> StoreResult<Page<Contract>> {
        let passes = |row: &Contract| {
            is(filter.customer_id, &row.customer_id)
                && is(filter.number, &row.number)
                && filter.po_number.as_ref().is_none_or(|wanted| row.po_number.as_ref() == Some(wanted))
                && filter.ends_before.is_none_or(|day| row.effective_end_date().is_some_and(|last| last < day))
                && filter.pricing_ref.as_ref().is_none_or(|wanted| agrees_on(row, wanted))
                && filter.state.as_ref().is_none_or(|(wanted, todays)| row.state_on(todays.of(row.stating_entity())) == *wanted)
        };
        let is_due = |due: Option<Timestamp>| filter.issues_before.is_none_or(|end| due.is_some_and(|due| due < end));
        let rows = self.state.contracts.of(organization).filter(|row| is_due(row.next_due_at) && passes(&row.contract));
        let rows = rows.map(|row| &row.contract);
        Ok(match by {
            ContractSortKey::Created => page(rows, request, |row| (row.created_at, row.contract_ref)),
            ContractSortKey::LastDay => page(rows, request, |row| {
                let last_day = row.effective_end_date();
                (last_day.is_none(), last_day, row.contract_ref)
            }),
        })
    }

    fn listed_customers(
        &mut self,
        organization: OrganizationId,
        filter: &CustomerFilter,
        by: CustomerSortKey,
        request: PageRequest,
    ) -> StoreResult<Page<Customer>> {
        let lower = |text: &str| text.to_ascii_lowercase();
        let passes = |row: &&Customer| {
            let profile = &row.profile;
            filter.name.as_ref().is_none_or(|wanted| lower(profile.name.as_str()).starts_with(&lower(wanted)))
                && filter
                    .email
                    .as_ref()
                    .is_none_or(|wanted| profile.email.as_ref().is_some_and(|email| lower(email.as_str()) == lower(wanted)))
                && filter
                    .tax_id
                    .as_ref()
                    .is_none_or(|wanted| profile.tax_id.as_ref().is_some_and(|tax_id| tax_id.as_str() == wanted))
        };
        let rows = self.state.customers.of(organization).filter(passes);
        Ok(match by {
            CustomerSortKey::Created => page(rows, request, |row| (row.created_at, row.customer_ref.clone())),
            CustomerSortKey::Name => page(rows, request, |row| (lower(row.profile.name.as_str()), row.customer_ref.clone())),
        })
    }

    fn search(&mut self, organization: OrganizationId, sought: &Sought, limit: u32) -> StoreResult<Vec<Found>> {
        let text = sought.text.as_str();
        let lower = text.to_ascii_lowercase();
        let rank = |words: &[String], found: &Found| {
            let name = found.name.as_deref().unwrap_or_default().to_ascii_lowercase();
            if words.iter().any(|word| word == text) || name == lower {
                Some(0)
            } else if name.starts_with(&lower) {
                Some(1)
            } else {
                None
            }
        };
        let everything = self.everything(organization, sought).into_iter();
        let mut all: Vec<(u8, Found)> = everything.filter_map(|(words, found)| Some((rank(&words, &found)?, found))).collect();
        all.sort_by(|(a, x), (b, y)| (a, x.kind, &x.reference).cmp(&(b, y.kind, &y.reference)));
        Ok(all.into_iter().map(|(_, found)| found).take(usize::try_from(limit).unwrap_or(usize::MAX)).collect())
    }
}
