//! Related rows as one more column of a row: a JSON array with an array of columns per related row. One statement reads
//! resources and their parts, regardless of their number. The related rows have no order: to sort them, SQLite would open a temporary
//! B-tree for each row that they are related to, which costs more than the rest of a short statement.

use std::marker::PhantomData;

use diesel::backend::Backend;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, Nullable, Text};
use diesel::sqlite::Sqlite;
use uuid::Uuid;

use crate::column_values::Columns;
use crate::hand_written::expression;
use crate::nodes::shards::Nodes;
use crate::schema::CustomerColumns;
use crate::sql_types::{Id, Json};

/// The text before and after a column that converts it to exact JSON, identical on both databases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextEncoding {
    postgres: [&'static str; 2],
    sqlite: [&'static str; 2],
}

impl TextEncoding {
    /// A number or a text, unchanged.
    pub(crate) const PLAIN: Self = Self { postgres: ["", ""], sqlite: ["", ""] };
    /// An identifier in hexadecimal.
    pub(crate) const ID: Self = Self { postgres: ["", "::text"], sqlite: ["hex(", ")"] };
    /// A decimal or a JSON column as text.
    pub(crate) const TEXT: Self = Self { postgres: ["", "::text"], sqlite: ["", ""] };
    /// An instant in microseconds since 1970.
    pub(crate) const MICROS: Self = Self { postgres: ["(extract(epoch FROM ", ") * 1000000)::bigint"], sqlite: ["", ""] };
    /// A day counted from 1970.
    pub(crate) const DAY: Self = Self { postgres: ["(", " - DATE '1970-01-01')"], sqlite: ["", ""] };
    /// A boolean.
    pub(crate) const FLAG: Self = Self { postgres: ["", ""], sqlite: ["json(iif(", ", 'true', 'false'))"] };
}

/// An element of the array.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NestedColumn {
    /// A column.
    One(&'static str, TextEncoding),
    /// An array of columns.
    All(&'static [NestedColumn]),
}

/// A database's JSON functions.
trait JsonAggregation: Backend {
    /// The function that aggregates an array of rows.
    const ROWS: &'static str;
    /// The function that builds an array of columns.
    const COLUMNS: &'static str;

    /// Returns the text before and after a column.
    fn around(form: TextEncoding) -> [&'static str; 2];

    /// Writes the condition that names the customers of a table, if the database may be distributed.
    fn push_customers<'b>(table: &str, customers: &'b [Uuid], out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()>;
}

impl JsonAggregation for Pg {
    const ROWS: &'static str = "json_agg(";
    const COLUMNS: &'static str = "json_build_array(";

    fn around(form: TextEncoding) -> [&'static str; 2] {
        form.postgres
    }

    fn push_customers<'b>(table: &str, customers: &'b [Uuid], out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()> {
        for part in [" AND ", table, ".customer_id = ANY("] {
            out.push_sql(part);
        }
        out.push_bind_param::<Array<Id>, _>(customers)?;
        out.push_sql(")");
        Ok(())
    }
}

impl JsonAggregation for Sqlite {
    const ROWS: &'static str = "json_group_array(";
    const COLUMNS: &'static str = "json_array(";

    fn around(form: TextEncoding) -> [&'static str; 2] {
        form.sqlite
    }

    fn push_customers<'b>(_: &str, _: &'b [Uuid], _: &mut AstPass<'_, 'b, Self>) -> QueryResult<()> {
        Ok(())
    }
}

fn tell<DB: JsonAggregation>(out: &mut AstPass<'_, '_, DB>, columns: &[NestedColumn]) {
    out.push_sql(DB::COLUMNS);
    for (place, reported) in columns.iter().enumerate() {
        out.push_sql(if place == 0 { "" } else { ", " });
        match reported {
            NestedColumn::One(column, form) => {
                let [before, after] = DB::around(*form);
                for sql in [before, column, after] {
                    out.push_sql(sql);
                }
            }
            NestedColumn::All(columns) => tell(out, columns),
        }
    }
    out.push_sql(")");
}

macro_rules! nested_rows {
    (@reported all $columns:ident) => {
        NestedColumn::All(<$columns as Columns>::TOLD)
    };
    (@reported $form:ident $column:literal) => {
        NestedColumn::One($column, TextEncoding::$form)
    };
    ($($(#[$doc:meta])* $name:ident: [$($form:ident $column:tt),+ $(,)?] $from:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name(Nodes);

        impl $name {
            /// Returns the rows below rows that are on these nodes.
            pub(crate) fn on(nodes: &Nodes) -> Self {
                Self(nodes.clone())
            }
        }

        expression!($name = Self => Nullable<Json>);

        impl<DB: JsonAggregation> QueryFragment<DB> for $name {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
                out.push_sql("(SELECT ");
                out.push_sql(DB::ROWS);
                tell(&mut out, &[$(nested_rows!(@reported $form $column)),+]);
                out.push_sql(") FROM ");
                push_from($from, &self.0, &mut out)?;
                out.push_sql(")");
                Ok(())
            }
        }
    )+};
}

/// A column of a contract's customer, read with the contract.
#[derive(Debug)]
pub(crate) struct CustomerColumn<ST> {
    column: &'static str,
    /// The nodes of the contracts. Without them, a distributed database cannot lock the contracts.
    nodes: Nodes,
    sql_type: PhantomData<ST>,
}

impl<ST> CustomerColumn<ST> {
    pub(crate) fn new(column: &'static str, nodes: &Nodes) -> Self {
        Self { column, nodes: nodes.clone(), sql_type: PhantomData }
    }
}

expression!(CustomerColumn<Text> => Nullable<Text>);
expression!(CustomerColumn<Id> => Nullable<Id>);

impl<ST, DB: JsonAggregation> QueryFragment<DB> for CustomerColumn<ST> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("(SELECT customers.");
        out.push_sql(self.column);
        out.push_sql(" FROM customers WHERE customers.customer_id = contracts.customer_id");
        if let Some(customers) = self.nodes.customers() {
            DB::push_customers("customers", customers, &mut out)?;
        }
        out.push_sql(")");
        Ok(())
    }
}

/// Writes the tables and conditions of a subquery. In the text, `{t}` stands for the condition that names the customers of the
/// table `t` on a distributed database.
fn push_from<'b, DB: JsonAggregation>(from: &str, nodes: &'b Nodes, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
    let customers = nodes.customers();
    if customers.is_some() {
        // The query id is that of the statement without customers.
        out.unsafe_to_cache_prepared();
    }
    let mut parts = from.split(['{', '}']);
    out.push_sql(parts.next().unwrap_or_default());
    while let Some(table) = parts.next() {
        if let Some(customers) = customers {
            DB::push_customers(table, customers, out)?;
        }
        out.push_sql(parts.next().unwrap_or_default());
    }
    Ok(())
}

nested_rows! {
    /// A document's products, with their places.
    PartsOfDocument: [PLAIN "p.position", PLAIN "p.product_no"]
        "document_parts p WHERE p.document_id = documents.document_id AND p.customer_id = documents.customer_id{p}";
    /// The sums of a family, read with its root document.
    SumsOfFamily: [
        PLAIN "s.product_no", PLAIN "s.discount_rate", PLAIN "s.tax_rate", PLAIN "s.tax_basis",
        PLAIN "s.base_minor", PLAIN "s.amount_minor"
    ]
        "family_sums s WHERE s.family_document_id = documents.document_id AND s.customer_id = documents.customer_id{s}";
    /// The contract's charges, read with the contract's first document. A charge always has a document.
    ChargesOfContract: [
        PLAIN "s.charge_ref", ID "s.customer_id", ID "s.contract_id", PLAIN "s.product_no", DAY "s.charged_on", PLAIN "s.name",
        TEXT "s.quantity", TEXT "s.unit_price", PLAIN "s.unit", PLAIN "s.currency", PLAIN "s.bill_with", PLAIN "s.discountable",
        PLAIN "s.goods", PLAIN "s.note", PLAIN "s.reason", MICROS "s.recorded_at", PLAIN "s.revision", MICROS "s.revised_at",
        PLAIN "s.revised_by", PLAIN "s.deleted"
    ]
        "charges s WHERE documents.number_in_contract = 1 AND s.contract_id = documents.contract_id \
         AND s.customer_id = documents.customer_id{s}";
    /// The terms of a contract's products.
    SegmentsOfContract: [PLAIN "s.product_no", DAY "s.in_force_from", PLAIN "s.version", PLAIN "s.end_reason", TEXT "s.terms"]
        "contract_products s WHERE s.contract_id = contracts.contract_id AND s.customer_id = contracts.customer_id{s}";
    /// A contract's customer.
    CustomerOfContract: [
        ID "customers.customer_id", PLAIN "customers.customer_ref", all CustomerColumns, MICROS "customers.created_at",
        MICROS "customers.updated_at"
    ]
        "customers WHERE customers.customer_id = contracts.customer_id{customers}";
    /// A locked contract's version when the statement began. A previous lock holder may have changed it since.
    VersionBefore: [PLAIN "v.version"]
        "contracts v WHERE v.contract_id = contracts.contract_id AND v.customer_id = contracts.customer_id{v}";
    /// A running total's drafts and void documents that have events of its period which are not deleted. No index
    /// contains events by document. The index by period and then document finds a document with one row, regardless of
    /// the number of events. The query reads the first row in an order that only this index has. Otherwise PostgreSQL
    /// could scan the table for the first row when it estimates that the document is common. Only the first total of a period
    /// has the documents, because all totals of a period have the same ones.
    DocumentsOfTotal: [ID "d.document_id"]
        "(SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM usage_totals f WHERE f.customer_id = usage_totals.customer_id{f} \
         AND f.contract_id = usage_totals.contract_id AND f.product_no = usage_totals.product_no \
         AND f.period_start = usage_totals.period_start \
         AND (f.usage_product_ref, f.line_item_id) < (usage_totals.usage_product_ref, usage_totals.line_item_id))) once \
         CROSS JOIN documents d \
         WHERE d.customer_id = usage_totals.customer_id AND d.contract_id = usage_totals.contract_id \
         AND d.organization_id = usage_totals.organization_id AND d.lifecycle IN ('DRAFT', 'VOID'){d} \
         AND (SELECT e.document_id FROM usage_events e WHERE e.customer_id = usage_totals.customer_id{e} \
         AND e.contract_id = usage_totals.contract_id AND e.product_no = usage_totals.product_no \
         AND e.service_start = usage_totals.period_start AND e.document_id >= d.document_id AND NOT e.deleted \
         ORDER BY e.document_id LIMIT 1) = d.document_id";
}

#[cfg(test)]
mod tests {
    use diesel::debug_query;

    use super::*;

    #[test]
    fn nested_rows_name_the_customers_of_each_table_on_a_distributed_database() {
        let customer = Uuid::from_u128(1);
        for (is_spread, named) in [(false, 0), (true, 3)] {
            let rows = DocumentsOfTotal::on(&Nodes::of(is_spread, [customer]));
            let text = debug_query::<Pg, _>(&rows).to_string();
            assert_eq!(text.matches(".customer_id = ANY(").count(), named, "{text}");
            let text = debug_query::<Sqlite, _>(&rows).to_string();
            assert!(!text.contains("ANY(") && !text.contains(['{', '}']), "{text}");
        }
    }
}
