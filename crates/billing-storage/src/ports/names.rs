//! The names of objects, one statement for all objects of a kind.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::audit::AuditedKind;
use billing_domain::ports::{ObjectKey, ObjectName, StoreResult};
use billing_domain::refs::OrganizationId;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text};
use uuid::Uuid;

use crate::row::{Cell, Row};
use crate::sql_types::Id;
use crate::statement::Statement;
use crate::tx::{Transaction, with_conn};

type ById = (Id, Text, Nullable<Text>, Nullable<Text>);
type ByText = (Text, Text, Nullable<Text>, Nullable<Text>);

/// Where a kind of objects has its names. The object's table has the alias `t`.
struct NameSource {
    kind: AuditedKind,
    /// The tables after the list of keys.
    tables: &'static str,
    /// The column of the reference.
    key: &'static str,
    key_type: KeyType,
    /// An expression for the name, which is never NULL.
    name: &'static str,
    /// Expressions for the reference and the name of the customer.
    customer: (&'static str, &'static str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyType {
    /// An identifier that the service assigned, unique by itself. SQLite must not prefer an index of the organization.
    Assigned,
    /// An assigned identifier that follows the organization in its index.
    AssignedInOrganization,
    /// A reference that a caller chose.
    Chosen,
}

const NO_CUSTOMER: (&str, &str) = ("NULL", "NULL");
const CUSTOMER: (&str, &str) = ("c.customer_ref", "c.name");
/// The number of the document with an alias.
macro_rules! document_number {
    ($alias:literal) => {
        concat!(
            $alias,
            ".number_prefix || CASE ",
            $alias,
            ".kind WHEN 'INVOICE' THEN '-INV-' WHEN 'CREDIT' THEN '-CRD-' ELSE '-DBT-' END || CAST(",
            $alias,
            ".sequence AS TEXT)"
        )
    };
}

const SOURCES: [NameSource; 15] = [
    source(AuditedKind::Administrator, "administrators t", "admin_id", KeyType::Assigned, "t.email"),
    source(AuditedKind::ApiKey, "api_keys t", "api_key_id", KeyType::Assigned, "coalesce(t.name, t.api_key)"),
    NameSource {
        customer: ("t.customer_ref", "t.name"),
        ..source(AuditedKind::Customer, "customers t", "customer_ref", KeyType::Chosen, "t.name")
    },
    source(AuditedKind::Entity, "entities t", "entity_ref", KeyType::Chosen, "t.name"),
    source(AuditedKind::UsageProduct, "usage_products t", "usage_product_ref", KeyType::Chosen, "t.name"),
    source(AuditedKind::Pricing, "pricings t", "pricing_ref", KeyType::Chosen, "t.name"),
    source(AuditedKind::Format, "usage_formats t", "format_ref", KeyType::Chosen, "t.name"),
    source(
        AuditedKind::BankAccount,
        "bank_accounts t",
        "account_ref",
        KeyType::Chosen,
        "coalesce(t.account_name, t.account_ref)",
    ),
    of_customer(
        AuditedKind::Contract,
        "contracts t LEFT JOIN customers c ON c.customer_id = t.customer_id",
        "contract_id",
        KeyType::Assigned,
        "'C-' || CAST(t.number AS TEXT)",
    ),
    of_customer(
        AuditedKind::Charge,
        "charges t LEFT JOIN customers c ON c.customer_id = t.customer_id",
        "charge_ref",
        KeyType::Chosen,
        "t.name",
    ),
    of_customer(
        AuditedKind::Limit,
        "limits t LEFT JOIN customers c ON c.customer_id = t.customer_id",
        "limit_id",
        KeyType::Assigned,
        "t.metric",
    ),
    of_customer(
        AuditedKind::Document,
        "documents t LEFT JOIN customers c ON c.customer_id = t.customer_id",
        "document_id",
        KeyType::Assigned,
        document_number!("t"),
    ),
    of_customer(
        AuditedKind::Payment,
        "payments t LEFT JOIN documents d ON d.document_id = t.document_id AND d.customer_id = t.customer_id \
         LEFT JOIN customers c ON c.customer_id = t.customer_id",
        "payment_id",
        KeyType::Assigned,
        concat!("coalesce(", document_number!("d"), ", c.name)"),
    ),
    of_customer(
        AuditedKind::Application,
        "applications t JOIN documents d ON d.document_id = t.to_document_id AND d.customer_id = t.customer_id \
         LEFT JOIN customers c ON c.customer_id = t.customer_id",
        "application_id",
        KeyType::Assigned,
        document_number!("d"),
    ),
    source(AuditedKind::WebhookEndpoint, "webhook_endpoints t", "endpoint_id", KeyType::AssignedInOrganization, "t.url"),
];

const fn source(kind: AuditedKind, tables: &'static str, key: &'static str, key_type: KeyType, name: &'static str) -> NameSource {
    NameSource { kind, tables, key, key_type, name, customer: NO_CUSTOMER }
}

const fn of_customer(
    kind: AuditedKind,
    tables: &'static str,
    key: &'static str,
    key_type: KeyType,
    name: &'static str,
) -> NameSource {
    NameSource { kind, tables, key, key_type, name, customer: CUSTOMER }
}

/// An object with its name, and the reference and name of its customer.
type NamedRow = (Cell<Uuid>, String, Option<String>, Option<String>);

impl NameSource {
    /// Creates the statement without the keys, which [`push_keys`](Self::push_keys) adds in the middle.
    fn statement<R>(&self, organization: OrganizationId, push_keys: impl FnOnce(&mut Statement<R>)) -> Statement<R> {
        let Self { tables, key, name, customer: (customer_ref, customer_name), .. } = self;
        let mut s = Statement::new(format!("SELECT t.{key}, {name}, {customer_ref}, {customer_name} FROM (VALUES "));
        push_keys(&mut s);
        // SQLite reads a cross join in this order: each key, then its row.
        s.sql(") k CROSS JOIN ").sql(*tables).sql(" WHERE ");
        if self.key_type == KeyType::Assigned {
            s.on_sqlite("+");
        }
        s.sql("t.organization_id = ").id(organization.as_uuid()).sql(format!(" AND t.{key} = k.column1"));
        s
    }
}

/// Adds the rows of a list of keys.
fn push_rows<R, K>(s: &mut Statement<R>, keys: &[K], push: impl Fn(&mut Statement<R>, &K)) {
    for (place, key) in keys.iter().enumerate() {
        s.sql(if place == 0 { "(" } else { ", (" });
        push(s, key);
        s.sql(")");
    }
}

impl Transaction<'_> {
    /// Returns the names of objects.
    pub(super) fn names_of(
        &mut self,
        organization: OrganizationId,
        objects: &BTreeSet<ObjectKey>,
    ) -> StoreResult<BTreeMap<ObjectKey, ObjectName>> {
        let mut names = BTreeMap::new();
        for source in &SOURCES {
            let references = objects.iter().filter(|(kind, _)| *kind == source.kind).map(|(_, reference)| reference.as_str());
            let found = if source.key_type == KeyType::Chosen {
                self.names_by_text(organization, source, &references.collect::<Vec<_>>())?
            } else {
                let ids: Vec<Uuid> = references.filter_map(|reference| Uuid::try_parse(reference).ok()).collect();
                self.names_by_id(organization, source, &ids)?
            };
            names.extend(found);
        }
        Ok(names)
    }

    fn names_by_id(
        &mut self,
        organization: OrganizationId,
        source: &NameSource,
        ids: &[Uuid],
    ) -> StoreResult<Vec<(ObjectKey, ObjectName)>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let s: Statement<ById> = source.statement(organization, |s| {
            push_rows(s, ids, |s, id| {
                s.id(*id);
            });
        });
        let rows: Vec<NamedRow> = with_conn!(self, "names", |conn| s.load(conn))?;
        let read = |(id, name, customer_ref, customer_name): NamedRow| {
            let id = Row::new("names", "").cell("id", id)?;
            named(source.kind, id.to_string(), name, (customer_ref, customer_name))
        };
        rows.into_iter().map(read).collect()
    }

    fn names_by_text(
        &mut self,
        organization: OrganizationId,
        source: &NameSource,
        references: &[&str],
    ) -> StoreResult<Vec<(ObjectKey, ObjectName)>> {
        if references.is_empty() {
            return Ok(Vec::new());
        }
        let s: Statement<ByText> = source.statement(organization, |s| {
            push_rows(s, references, |s, reference| {
                s.text(*reference);
            });
        });
        let rows: Vec<(String, String, Option<String>, Option<String>)> = with_conn!(self, "names", |conn| s.load(conn))?;
        let read =
            |(reference, name, customer_ref, customer_name)| named(source.kind, reference, name, (customer_ref, customer_name));
        rows.into_iter().map(read).collect()
    }
}

fn named(
    kind: AuditedKind,
    reference: String,
    name: String,
    (customer_ref, customer_name): (Option<String>, Option<String>),
) -> StoreResult<(ObjectKey, ObjectName)> {
    let row = Row::new("names", &reference);
    let customer_ref = row.optional_leaf("customer_ref", customer_ref.as_deref())?;
    let customer_name = row.optional_leaf("customer_name", customer_name.as_deref())?;
    Ok(((kind, reference), ObjectName { name, customer_ref, customer_name }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_plans::plans_of;

    #[test]
    fn each_object_is_looked_up_by_its_key() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let id = |number: u128| Uuid::from_u128(number).to_string();
        let objects: BTreeSet<ObjectKey> =
            AuditedKind::ALL.iter().flat_map(|kind| [(*kind, id(1)), (*kind, id(2)), (*kind, id(3))]).collect();
        let plans = plans_of(|tx| {
            assert!(tx.names_of(organization, &objects).expect("a look-up").is_empty());
        });
        assert_eq!(plans.len(), SOURCES.len());
        for (plan, source) in plans.iter().zip(&SOURCES) {
            let is_by_key = |step: &String| step.starts_with("SEARCH t ") && step.contains(&format!("{}=?", source.key));
            assert!(plan.steps.iter().any(is_by_key), "{plan:?}");
        }
    }
}
