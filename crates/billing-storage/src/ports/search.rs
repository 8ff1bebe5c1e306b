//! Search by number, reference, key, name, e-mail address or tax number: a few lookups, each by an index or in a small table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use billing_domain::audit::AuditedKind;
use billing_domain::document::DocumentKind;
use billing_domain::ports::{ObjectKey, ObjectName, SearchHit, SearchHitKind, SearchTerms, StoreResult};
use billing_domain::refs::{DocumentRef, OrganizationId};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use uuid::Uuid;

use super::event_keys::key_digest;
use super::lists::push_begins;
use crate::row::{Cell, Row};
use crate::sql_types::Id;
use crate::statement::Statement;
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};

type DocumentColumns = (Id, Text, Text, BigInt, Nullable<Text>, Nullable<Text>);
type DocumentFields = (Cell<Uuid>, String, String, i64, Option<String>, Option<String>);
type ContractColumns = (Id, BigInt, Nullable<Text>, Nullable<Text>);
type ContractFields = (Cell<Uuid>, i64, Option<String>, Option<String>);
type NamedColumns = (Text, Text);
type KeyedColumns = (Id, Nullable<Text>, Nullable<Text>, Nullable<Text>);
type KeyedFields = (Cell<Uuid>, Option<String>, Option<String>, Option<String>);
type ReferredColumns = (Text, Nullable<Text>, Nullable<Text>, Nullable<Text>);
type ReferredFields = (String, Option<String>, Option<String>, Option<String>);
type PaymentColumns = (Id, Nullable<Text>, Nullable<Text>, Nullable<Text>, Nullable<Id>);
type PaymentFields = (Cell<Uuid>, Option<String>, Option<String>, Option<String>, Option<Cell<Uuid>>);
type ApiKeyColumns = (Id, Text, Nullable<Text>);

/// The hits by kind and reference, each resource once, with whether it is an exact match.
struct Finds {
    found: BTreeMap<(SearchHitKind, String), (bool, SearchHit)>,
}

impl Finds {
    fn add(&mut self, is_exact: bool, found: SearchHit) {
        let key = (found.kind, found.reference.clone());
        let known = self.found.entry(key).or_insert((is_exact, found));
        known.0 |= is_exact;
    }
}

fn plain(kind: SearchHitKind, reference: impl ToString) -> SearchHit {
    SearchHit {
        kind,
        reference: reference.to_string(),
        number: None,
        name: None,
        customer_ref: None,
        customer_name: None,
        document_ref: None,
    }
}

/// Returns a hit without its own data, with the reference and name of its customer.
fn of_customer<K: Display>(
    kind: SearchHitKind,
    row: &Row<K>,
    key: impl Display,
    (customer_ref, customer_name): (Option<String>, Option<String>),
) -> StoreResult<SearchHit> {
    Ok(SearchHit {
        customer_ref: row.optional_leaf("customer_ref", customer_ref.as_deref())?,
        customer_name: row.optional_leaf("customer_name", customer_name.as_deref())?,
        ..plain(kind, key)
    })
}

/// Returns the hit of an object with a reference and a name. The customer of a customer is the customer itself.
fn named_hit(kind: SearchHitKind, reference: &str, name: String) -> StoreResult<SearchHit> {
    let row = Row::new("customers", reference);
    let (customer_ref, customer_name) = if kind == SearchHitKind::Customer {
        (Some(row.leaf("customer_ref", reference)?), Some(row.leaf("name", &name)?))
    } else {
        (None, None)
    };
    Ok(SearchHit { name: Some(name), customer_ref, customer_name, ..plain(kind, reference) })
}

/// The maximum number of customers, newest first, whose event keys are searched.
const MAX_CUSTOMERS_OF_KEYS: i64 = 10_000;

/// The reference and the name of a row's customer.
const CUSTOMER: &str = "(SELECT c.customer_ref FROM customers c WHERE c.customer_id = t.customer_id), \
                        (SELECT c.name FROM customers c WHERE c.customer_id = t.customer_id)";

/// A table of resources with a reference and a name.
struct Named {
    kind: SearchHitKind,
    audited: AuditedKind,
    table: &'static str,
    reference: &'static str,
}

static NAMED: [Named; 5] = [
    named(SearchHitKind::Customer, AuditedKind::Customer, "customers", "customer_ref"),
    named(SearchHitKind::Entity, AuditedKind::Entity, "entities", "entity_ref"),
    named(SearchHitKind::Pricing, AuditedKind::Pricing, "pricings", "pricing_ref"),
    named(SearchHitKind::UsageProduct, AuditedKind::UsageProduct, "usage_products", "usage_product_ref"),
    named(SearchHitKind::Format, AuditedKind::Format, "usage_formats", "format_ref"),
];

const fn named(kind: SearchHitKind, audited: AuditedKind, table: &'static str, reference: &'static str) -> Named {
    Named { kind, audited, table, reference }
}

impl Transaction<'_> {
    /// Returns the hits, exact matches first.
    pub(super) fn found(
        &mut self,
        organization: OrganizationId,
        sought: &SearchTerms,
        limit: u32,
    ) -> StoreResult<Vec<SearchHit>> {
        let mut finds = Finds { found: BTreeMap::new() };
        self.find_documents(organization, sought, limit, &mut finds)?;
        self.find_contracts(organization, sought, limit, &mut finds)?;
        for named in &NAMED {
            self.find_named(organization, named, sought, limit, &mut finds)?;
        }
        self.find_customers_by_number(organization, sought, limit, &mut finds)?;
        self.find_by_words(organization, sought, limit, &mut finds)?;
        self.find_events(organization, sought, limit, &mut finds)?;
        self.find_payments(organization, sought, limit, &mut finds)?;
        self.find_charges(organization, sought, &mut finds)?;
        self.find_bank_accounts(organization, sought, &mut finds)?;
        if sought.with_api_keys {
            self.find_api_keys(organization, sought, limit, &mut finds)?;
        }
        let mut found: Vec<(bool, SearchHit)> = finds.found.into_values().collect();
        // The sort is stable, so equal hits stay ordered by kind and reference.
        found.sort_by_key(|(is_exact, _)| !is_exact);
        Ok(found.into_iter().map(|(_, found)| found).take(usize::try_from(limit).unwrap_or(usize::MAX)).collect())
    }

    fn find_documents(
        &mut self,
        organization: OrganizationId,
        sought: &SearchTerms,
        limit: u32,
        finds: &mut Finds,
    ) -> StoreResult<()> {
        let mut conditions: Vec<(bool, Statement<()>)> = Vec::new();
        if let Some(id) = sought.id {
            let mut s = Statement::new(" AND t.document_id = ");
            s.id(id);
            conditions.push((true, s));
        }
        if let Some(number) = &sought.document_number {
            let mut s = Statement::new(" AND t.number_prefix = ");
            s.text(number.prefix.as_str()).sql(" AND t.kind = ").text(number.kind.to_text()).sql(" AND t.sequence = ");
            s.number(i64::try_from(number.sequence).unwrap_or(i64::MAX));
            conditions.push((true, s));
        }
        if let Some(end) = sought.number_end {
            // Only entities have prefixes, so the index of whole numbers finds the documents.
            let mut s = Statement::new(" AND t.number_prefix IN (SELECT number_prefix FROM entities WHERE organization_id = ");
            s.id(organization.as_uuid()).sql(") AND t.kind IN (");
            let kinds = end.kind.map_or(DocumentKind::ALL.to_vec(), |kind| vec![kind]);
            for (place, kind) in kinds.into_iter().enumerate() {
                s.sql(if place == 0 { "" } else { ", " }).text(kind.to_text());
            }
            s.sql(") AND t.sequence = ").number(i64::try_from(end.sequence).unwrap_or(i64::MAX));
            conditions.push((false, s));
        }
        let mut s = Statement::new(" AND t.po_number = ");
        s.text(sought.text.as_str());
        conditions.push((true, s));
        for (is_exact, condition) in conditions {
            let mut s: Statement<DocumentColumns> = Statement::new("SELECT t.document_id, t.number_prefix, t.kind, t.sequence, ");
            s.sql(CUSTOMER).sql(" FROM documents t WHERE t.organization_id = ").id(organization.as_uuid());
            s.append(condition).sql(" ORDER BY t.document_id LIMIT ").number(i64::from(limit));
            let rows: Vec<DocumentFields> = with_conn!(self, "documents", |conn| s.load(conn))?;
            for (id, prefix, kind, sequence, customer_ref, customer_name) in rows {
                let id = Row::new("documents", "").cell("document_id", id)?;
                let row = Row::new("documents", id);
                let kind: DocumentKind = row.leaf("kind", &kind)?;
                let number = format!("{prefix}-{}-{sequence}", kind.abbreviation());
                let hit = of_customer(SearchHitKind::Document, &row, id, (customer_ref, customer_name))?;
                finds.add(is_exact, SearchHit { number: Some(number), ..hit });
            }
        }
        Ok(())
    }

    fn find_contracts(
        &mut self,
        organization: OrganizationId,
        sought: &SearchTerms,
        limit: u32,
        finds: &mut Finds,
    ) -> StoreResult<()> {
        let mut conditions: Vec<Statement<()>> = Vec::new();
        if let Some(id) = sought.id {
            let mut s = Statement::new(" AND t.contract_id = ");
            s.id(id);
            conditions.push(s);
        }
        if let Some(number) = sought.contract_number {
            let mut s = Statement::new(" AND t.number = ");
            s.number(i64::try_from(number).unwrap_or(i64::MAX));
            conditions.push(s);
        }
        let mut s = Statement::new(" AND t.po_number = ");
        s.text(sought.text.as_str());
        conditions.push(s);
        for condition in conditions {
            let mut s: Statement<ContractColumns> = Statement::new("SELECT t.contract_id, t.number, ");
            s.sql(CUSTOMER).sql(" FROM contracts t WHERE t.organization_id = ").id(organization.as_uuid());
            s.append(condition).sql(" ORDER BY t.contract_id LIMIT ").number(i64::from(limit));
            let rows: Vec<ContractFields> = with_conn!(self, "contracts", |conn| s.load(conn))?;
            for (id, number, customer_ref, customer_name) in rows {
                let id = Row::new("contracts", "").cell("contract_id", id)?;
                let row = Row::new("contracts", id);
                let hit = of_customer(SearchHitKind::Contract, &row, id, (customer_ref, customer_name))?;
                finds.add(true, SearchHit { number: Some(format!("C-{number}")), ..hit });
            }
        }
        Ok(())
    }

    fn find_named(
        &mut self,
        organization: OrganizationId,
        named: &Named,
        sought: &SearchTerms,
        limit: u32,
        finds: &mut Finds,
    ) -> StoreResult<()> {
        let Named { kind, table, reference, .. } = named;
        let text = sought.text.as_str();
        let select = |organization: OrganizationId| {
            let mut s: Statement<NamedColumns> = Statement::new(format!("SELECT {reference}, name FROM {table} WHERE "));
            s.sql("organization_id = ").id(organization.as_uuid()).sql(" AND ");
            s
        };
        let mut by_reference = select(organization);
        by_reference.sql(*reference).sql(" = ").text(text);
        let mut by_name = select(organization);
        push_begins(&mut by_name, "name", text);
        // An exact match is the shortest name with that prefix.
        by_name.sql(" ORDER BY lower(name").on_postgres(" COLLATE \"C\"").sql("), ").sql(*reference);
        by_name.sql(" LIMIT ").number(i64::from(limit));
        for (s, by_reference) in [(by_reference, true), (by_name, false)] {
            let rows: Vec<(String, String)> = with_conn!(self, "lists", |conn| s.load(conn))?;
            for (reference, name) in rows {
                let is_exact = by_reference || name.eq_ignore_ascii_case(text);
                finds.add(is_exact, named_hit(*kind, &reference, name)?);
            }
        }
        Ok(())
    }

    /// Finds customers by their whole e-mail address or tax number.
    fn find_customers_by_number(
        &mut self,
        organization: OrganizationId,
        sought: &SearchTerms,
        limit: u32,
        finds: &mut Finds,
    ) -> StoreResult<()> {
        let text = sought.text.as_str();
        let mut by_email = Statement::<()>::new("email IS NOT NULL AND lower(email");
        by_email.on_postgres(" COLLATE \"C\"").sql(") = ").text(text.to_ascii_lowercase());
        let mut by_tax_id = Statement::<()>::new("tax_id = ");
        by_tax_id.text(text);
        for condition in [by_email, by_tax_id] {
            let mut s: Statement<NamedColumns> = Statement::new("SELECT customer_ref, name FROM customers WHERE ");
            s.sql("organization_id = ").id(organization.as_uuid()).sql(" AND ").append(condition);
            // Few rows match. Without the sign, SQLite could read all customers in this order.
            s.sql(" ORDER BY ").on_sqlite("+").sql("customer_ref LIMIT ").number(i64::from(limit));
            let rows: Vec<(String, String)> = with_conn!(self, "customers", |conn| s.load(conn))?;
            for (reference, name) in rows {
                finds.add(true, named_hit(SearchHitKind::Customer, &reference, name)?);
            }
        }
        Ok(())
    }

    /// Finds objects by the beginning of words in their names, and customers also by those of their e-mail address.
    fn find_by_words(
        &mut self,
        organization: OrganizationId,
        sought: &SearchTerms,
        limit: u32,
        finds: &mut Finds,
    ) -> StoreResult<()> {
        let found = self.by_words(organization, sought.text.as_str(), limit)?;
        let of_table = |table: &str| NAMED.iter().find(|named| named.table == table);
        let objects: BTreeSet<ObjectKey> =
            found.into_iter().filter_map(|(table, reference)| Some((of_table(&table)?.audited, reference))).collect();
        for ((audited, reference), ObjectName { name, .. }) in self.names_of(organization, &objects)? {
            if let Some(Named { kind, .. }) = NAMED.iter().find(|named| named.audited == audited) {
                finds.add(false, named_hit(*kind, &reference, name)?);
            }
        }
        Ok(())
    }

    /// Finds events by key. An index by key alone would cost time for every event, so the keys of each of the newest customers
    /// are searched separately.
    fn find_events(
        &mut self,
        organization: OrganizationId,
        sought: &SearchTerms,
        limit: u32,
        finds: &mut Finds,
    ) -> StoreResult<()> {
        let mut statements: Vec<Statement<KeyedColumns>> = Vec::new();
        if let Some(id) = sought.id {
            let mut s = Statement::new(
                "SELECT t.event_id, NULL, c.customer_ref, c.name FROM usage_events t \
                 JOIN customers c ON c.customer_id = t.customer_id WHERE t.event_id = ",
            );
            s.id(id).sql(" AND c.organization_id = ").id(organization.as_uuid());
            statements.push(s);
        }
        let text = sought.text.as_str();
        let is_spread = self.is_spread;
        if is_spread {
            let mut s = Statement::new("SELECT k.event_id, CAST(");
            s.text(text).sql(" AS TEXT), c.customer_ref, c.name FROM customers c JOIN usage_event_keys k ");
            s.sql("ON k.customer_id = c.customer_id WHERE c.organization_id = ").id(organization.as_uuid());
            s.sql(" AND k.key_digest = ").id(key_digest(text));
            statements.push(s);
        }
        // A scalar subquery per customer, because PostgreSQL would scan all keys for a join. A distributed database does not support it.
        let mut s = Statement::new(
            "SELECT f.event_id, f.idempotency_key, f.customer_ref, f.name FROM (SELECT (SELECT k.event_id \
             FROM usage_event_keys k WHERE k.customer_id = c.customer_id AND k.key_digest = ",
        );
        s.id(key_digest(text)).sql(") AS event_id, ").on_postgres("CAST(").text(text).on_postgres(" AS TEXT)");
        s.sql(" AS idempotency_key, c.customer_ref, c.name FROM (SELECT customer_id, customer_ref, name FROM customers WHERE ");
        s.sql("organization_id = ").id(organization.as_uuid()).sql(" ORDER BY created_at DESC, customer_ref DESC LIMIT ");
        s.number(MAX_CUSTOMERS_OF_KEYS).sql(") c) f WHERE f.event_id IS NOT NULL");
        if !is_spread {
            statements.push(s);
        }
        for mut s in statements {
            s.sql(" LIMIT ").number(i64::from(limit));
            let rows: Vec<KeyedFields> = with_conn!(self, "usage_events", |conn| s.load(conn))?;
            for (id, number, customer_ref, customer_name) in rows {
                let id = Row::new("usage_events", "").cell("event_id", id)?;
                let row = Row::new("usage_events", id);
                let hit = of_customer(SearchHitKind::UsageEvent, &row, id, (customer_ref, customer_name))?;
                finds.add(true, SearchHit { number, ..hit });
            }
        }
        Ok(())
    }

    fn find_payments(
        &mut self,
        organization: OrganizationId,
        sought: &SearchTerms,
        limit: u32,
        finds: &mut Finds,
    ) -> StoreResult<()> {
        let mut conditions: Vec<Statement<()>> = Vec::new();
        if let Some(id) = sought.id {
            let mut s = Statement::new(" AND t.payment_id = ");
            s.id(id);
            conditions.push(s);
        }
        let mut s = Statement::new(" AND t.reference = ");
        s.text(sought.text.as_str());
        conditions.push(s);
        for condition in conditions {
            let mut s: Statement<PaymentColumns> = Statement::new("SELECT t.payment_id, t.reference, ");
            s.sql(CUSTOMER).sql(", t.document_id FROM payments t WHERE t.organization_id = ").id(organization.as_uuid());
            s.append(condition).sql(" ORDER BY t.payment_id LIMIT ").number(i64::from(limit));
            let rows: Vec<PaymentFields> = with_conn!(self, "payments", |conn| s.load(conn))?;
            for (id, number, customer_ref, customer_name, document_id) in rows {
                let id = Row::new("payments", "").cell("payment_id", id)?;
                let row = Row::new("payments", id);
                let hit = of_customer(SearchHitKind::Payment, &row, id, (customer_ref, customer_name))?;
                let document_ref = row.optional("document_id", document_id)?.map(DocumentRef::from_uuid);
                finds.add(true, SearchHit { number, document_ref, ..hit });
            }
        }
        Ok(())
    }

    /// Finds charges by reference only, because names have no index.
    fn find_charges(&mut self, organization: OrganizationId, sought: &SearchTerms, finds: &mut Finds) -> StoreResult<()> {
        let mut s: Statement<ReferredColumns> = Statement::new("SELECT t.charge_ref, t.name, ");
        s.sql(CUSTOMER).sql(" FROM charges t WHERE t.organization_id = ").id(organization.as_uuid());
        s.sql(" AND t.charge_ref = ").text(sought.text.as_str()).sql(" AND NOT t.deleted");
        let rows: Vec<ReferredFields> = with_conn!(self, "charges", |conn| s.load(conn))?;
        for (reference, name, customer_ref, customer_name) in rows {
            let row = Row::new("charges", &reference);
            let hit = of_customer(SearchHitKind::Charge, &row, &reference, (customer_ref, customer_name))?;
            finds.add(true, SearchHit { name, ..hit });
        }
        Ok(())
    }

    fn find_bank_accounts(&mut self, organization: OrganizationId, sought: &SearchTerms, finds: &mut Finds) -> StoreResult<()> {
        let mut s: Statement<ReferredColumns> =
            Statement::new("SELECT account_ref, account_name, NULL, NULL FROM bank_accounts WHERE organization_id = ");
        s.id(organization.as_uuid()).sql(" AND account_ref = ").text(sought.text.as_str());
        let rows: Vec<ReferredFields> = with_conn!(self, "bank_accounts", |conn| s.load(conn))?;
        for (reference, name, ..) in rows {
            finds.add(true, SearchHit { name, ..plain(SearchHitKind::BankAccount, &reference) });
        }
        Ok(())
    }

    fn find_api_keys(
        &mut self,
        organization: OrganizationId,
        sought: &SearchTerms,
        limit: u32,
        finds: &mut Finds,
    ) -> StoreResult<()> {
        let text = sought.text.as_str();
        let mut s: Statement<ApiKeyColumns> =
            Statement::new("SELECT api_key_id, api_key, name FROM api_keys WHERE organization_id = ");
        s.id(organization.as_uuid()).sql(" AND (api_key = ").text(text).sql(" OR ");
        push_begins(&mut s, "name", text);
        if let Some(id) = sought.id {
            s.sql(" OR api_key_id = ").id(id);
        }
        s.sql(") ORDER BY name, api_key_id LIMIT ").number(i64::from(limit));
        let rows: Vec<(Cell<Uuid>, String, Option<String>)> = with_conn!(self, "api_keys", |conn| s.load(conn))?;
        for (id, api_key, name) in rows {
            let id = Row::new("api_keys", "").cell("api_key_id", id)?;
            let has_name = name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(text));
            let is_exact = has_name || api_key == text || sought.id == Some(id);
            finds.add(is_exact, SearchHit { number: Some(api_key), name, ..plain(SearchHitKind::ApiKey, id) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::document::numbering::NumberEnd;
    use billing_domain::ports::SearchTerms;
    use billing_domain::refs::OrganizationId;
    use billing_domain::text::OneLine;
    use uuid::Uuid;

    use crate::query_plans::plans_of;

    #[test]
    fn the_end_of_a_number_is_found_by_the_index_of_whole_numbers() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let number_end = NumberEnd::parse("166");
        let text = OneLine::parse("166").expect("a line");
        let (document_number, contract_number, id) = (None, None, None);
        let sought = SearchTerms { text, document_number, number_end, contract_number, id, with_api_keys: false };
        let plans = plans_of(|tx| {
            assert_eq!(tx.found(organization, &sought, 20).expect("a search"), []);
        });
        let steps: Vec<&String> = plans.iter().flat_map(|plan| &plan.steps).collect();
        let by_number = "documents_numbers (organization_id=? AND number_prefix=? AND kind=? AND sequence=?)";
        assert!(steps.iter().any(|step| step.contains(by_number)), "{steps:?}");
        assert!(steps.iter().all(|step| !step.starts_with("SCAN t")), "{steps:?}");
    }
}
