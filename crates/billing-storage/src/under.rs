//! What stands under a row, as one more column of it: a JSON array with an array of columns for each row there. One statement
//! reads a thing and its parts, however many there are of either.

use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate};
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::Nullable;
use diesel::sqlite::Sqlite;

use crate::sql_types::Json;

/// A column in the array, as both databases can tell it exactly and alike: a number or a text as it is, an identifier in
/// hexadecimal, a day or microsecond counted from 1970, a decimal or a JSON column as a text, a flag as 1 or 0.
macro_rules! told {
    (Pg, plain, $column:literal) => {
        $column
    };
    (Pg, id, $column:literal) => {
        concat!($column, "::text")
    };
    (Pg, dec, $column:literal) => {
        concat!($column, "::text")
    };
    (Pg, ts, $column:literal) => {
        concat!("(extract(epoch FROM ", $column, ") * 1000000)::bigint")
    };
    (Pg, day, $column:literal) => {
        concat!("(", $column, " - DATE '1970-01-01')")
    };
    (Pg, json, $column:literal) => {
        concat!($column, "::text")
    };
    (Pg, flag, $column:literal) => {
        concat!($column, "::integer")
    };
    (Sqlite, id, $column:literal) => {
        concat!("hex(", $column, ")")
    };
    (Sqlite, $kind:ident, $column:literal) => {
        $column
    };
}

macro_rules! under {
    ($($(#[$doc:meta])* $name:ident: [$first:ident $first_column:literal $(, $kind:ident $column:literal)* $(,)?] $from:literal by $order:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl QueryId for $name {
            type QueryId = Self;
            const HAS_STATIC_QUERY_ID: bool = true;
        }

        impl Expression for $name {
            type SqlType = Nullable<Json>;
        }

        impl<G> ValidGrouping<G> for $name {
            type IsAggregate = is_aggregate::No;
        }

        impl<QS> AppearsOnTable<QS> for $name {}
        impl<QS> SelectableExpression<QS> for $name {}

        impl QueryFragment<Pg> for $name {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
                out.push_sql(concat!(
                    "(SELECT json_agg(json_build_array(", told!(Pg, $first, $first_column) $(, ", ", told!(Pg, $kind, $column))*,
                    ") ORDER BY ", $order, ") FROM ", $from, ")"
                ));
                Ok(())
            }
        }

        impl QueryFragment<Sqlite> for $name {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
                out.push_sql(concat!(
                    "(SELECT json_group_array(json_array(", told!(Sqlite, $first, $first_column) $(, ", ", told!(Sqlite, $kind, $column))*,
                    ") ORDER BY ", $order, ") FROM ", $from, ")"
                ));
                Ok(())
            }
        }
    )+};
}

under! {
    /// Under a document: its products, in their order.
    PartsOfDocument: [plain "p.product_no"]
        "document_parts p WHERE p.document_id = documents.document_id AND p.customer_id = documents.customer_id"
        by "p.position";
    /// Under a document: the sums of its family, where it is the one without a parent.
    SumsOfFamily: [plain "s.product_no", plain "s.discount_rate", plain "s.tax_rate", plain "s.base_minor", plain "s.amount_minor"]
        "family_sums s WHERE s.family_document_id = documents.document_id AND s.customer_id = documents.customer_id"
        by "s.product_no, s.discount_rate, s.tax_rate";
    /// Under a contract's first document: the contract's charges. One is never without a document.
    ChargesOfContract: [
        plain "s.charge_ref", id "s.customer_id", id "s.contract_id", plain "s.product_no", day "s.charged_on", plain "s.name",
        dec "s.quantity", dec "s.unit_price", plain "s.unit", plain "s.currency", plain "s.bill_with", plain "s.discountable",
        plain "s.note", plain "s.reason", ts "s.recorded_at", plain "s.revision", ts "s.revised_at", plain "s.revised_by",
        plain "s.deleted"
    ]
        "charges s WHERE documents.number_in_contract = 1 AND s.contract_id = documents.contract_id \
         AND s.customer_id = documents.customer_id"
        by "s.charge_ref";
    /// Under a contract: what was agreed of its products, in the order in which it is put together.
    SegmentsOfContract: [plain "s.product_no", day "s.in_force_from", plain "s.version", plain "s.end_reason", json "s.terms"]
        "contract_products s WHERE s.contract_id = contracts.contract_id AND s.customer_id = contracts.customer_id"
        by "s.product_no, s.version, s.in_force_from";
    /// Above a contract: its customer.
    CustomerOfContract: [
        id "c.customer_id", plain "c.customer_ref", plain "c.name", plain "c.legal_name", plain "c.email", plain "c.tax_id",
        json "c.billing_address", plain "c.currency", dec "c.tax", plain "c.entity_ref", plain "c.net_terms", json "c.payment",
        flag "c.apply_balance", json "c.legal", plain "c.buyer_reference", ts "c.created_at"
    ]
        "customers c WHERE c.customer_id = contracts.customer_id"
        by "c.customer_id";
    /// Beside a contract that is held: its version when the statement began. Whoever held it before may have changed it since.
    VersionBefore: [plain "v.version"]
        "contracts v WHERE v.contract_id = contracts.contract_id AND v.customer_id = contracts.customer_id"
        by "v.version";
    /// Under a running total: the contract's drafts and void documents on which events of its period stand that aren't
    /// deleted. There is no index of events by document. The one there is, by period and then document, tells whether a
    /// document is there, whatever the number of events, by the first row of an order that only the index has: PostgreSQL
    /// would go through the table for a first row without one, where it takes the document for a common one.
    DocumentsOfTotal: [id "d.document_id"]
        "documents d WHERE d.customer_id = usage_totals.customer_id AND d.contract_id = usage_totals.contract_id \
         AND d.organization_id = usage_totals.organization_id AND d.lifecycle IN ('DRAFT', 'VOID') \
         AND (SELECT e.document_id FROM usage_events e WHERE e.customer_id = usage_totals.customer_id \
         AND e.contract_id = usage_totals.contract_id AND e.product_no = usage_totals.product_no \
         AND e.service_start = usage_totals.period_start AND e.document_id >= d.document_id AND NOT e.deleted \
         ORDER BY e.document_id LIMIT 1) = d.document_id"
        by "d.document_id";
}
