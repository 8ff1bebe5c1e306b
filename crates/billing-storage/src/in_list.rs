//! `column = any of these` as one statement for any number of values, so that it is prepared once.
//!
//! diesel's `eq_any` does that on PostgreSQL. On SQLite, `eq_any` writes a placeholder per value, and the statement is
//! not cached.
//!
//! A list of one value is by far the most frequent. On SQLite it becomes an equality, because a list takes a temporary
//! B-tree and a parser of JSON each time, which costs more than the rest of a short statement. So each list has two
//! texts on SQLite and one on PostgreSQL.

use chrono::NaiveDate;
use diesel::backend::Backend;
use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping};
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, Bool, Integer, Text};
use diesel::sqlite::Sqlite;
use uuid::Uuid;

use crate::hand_written::{expression, query_id};
use crate::sql_types::{Day, Id, days_since_1970};

/// The condition that `column` is one of `values`.
#[derive(Debug, QueryId)]
pub(crate) struct InList<C, V> {
    column: C,
    values: V,
    joined: Joined,
}

/// The column of a joined table that also equals one of the values.
#[derive(Debug, Default)]
struct Joined(Option<&'static str>);

query_id!([] Joined);

impl<C, V> InList<C, V> {
    /// Also names the column of a joined table, on a distributed database. It reads all shards otherwise.
    pub(crate) fn joining(self, column: &'static str, is_spread: bool) -> Self {
        Self { joined: Joined(is_spread.then_some(column)), ..self }
    }
}

/// A column for which SQLite uses no index.
#[derive(Debug, QueryId)]
pub(crate) struct Unindexed<C>(C);

/// Returns a column for a condition on rows that another condition finds. Without statistics, SQLite expects that an organization
/// has as few rows as a customer, and could read all rows of the organization instead.
pub(crate) const fn unindexed<C>(column: C) -> Unindexed<C> {
    Unindexed(column)
}

/// Identifiers to match.
#[derive(Debug)]
pub(crate) struct Ids {
    array: Vec<Uuid>,
    /// A JSON array of hexadecimal strings. Empty for one value.
    json: String,
}

/// Texts to match.
#[derive(Debug)]
pub(crate) struct Texts {
    array: Vec<String>,
    /// A JSON array. Empty for one value.
    json: String,
}

/// Small numbers to match.
#[derive(Debug)]
pub(crate) struct Numbers {
    array: Vec<i32>,
    /// A JSON array. Empty for one value.
    json: String,
}

/// Days to match.
#[derive(Debug)]
pub(crate) struct Days {
    array: Vec<NaiveDate>,
    /// A JSON array of days since 1970. Empty for one value.
    json: String,
}

impl Ids {
    fn new(ids: impl IntoIterator<Item = Uuid>) -> Self {
        let array: Vec<Uuid> = ids.into_iter().collect();
        let json = json_of(&array, |id| id.simple().to_string().into());
        Self { array, json }
    }
}

/// Returns a JSON array, or an empty text for one value, which is bound as it is.
fn json_of<T>(values: &[T], value: impl Fn(&T) -> serde_json::Value) -> String {
    if values.len() == 1 {
        return String::new();
    }
    values.iter().map(value).collect::<serde_json::Value>().to_string()
}

/// Matches rows whose column is one of these identifiers.
pub(crate) fn one_of_ids<C>(column: C, ids: impl IntoIterator<Item = Uuid>) -> InList<C, Ids> {
    InList { column, values: Ids::new(ids), joined: Joined::default() }
}

/// Adds an identifier condition to another condition that finds the rows. With an index on both, SQLite would look up
/// every pair of their values.
pub(crate) fn also_one_of_ids<C>(column: C, ids: impl IntoIterator<Item = Uuid>) -> InList<Unindexed<C>, Ids> {
    InList { column: Unindexed(column), values: Ids::new(ids), joined: Joined::default() }
}

/// Matches rows whose column is one of these texts.
pub(crate) fn one_of_texts<C, T: AsRef<str>>(column: C, texts: impl IntoIterator<Item = T>) -> InList<C, Texts> {
    let array: Vec<String> = texts.into_iter().map(|text| text.as_ref().to_owned()).collect();
    let json = json_of(&array, |text| text.as_str().into());
    InList { column, values: Texts { array, json }, joined: Joined::default() }
}

/// Matches rows whose column is one of these numbers.
pub(crate) fn one_of_numbers<C>(column: C, numbers: impl IntoIterator<Item = i32>) -> InList<C, Numbers> {
    let array: Vec<i32> = numbers.into_iter().collect();
    let json = json_of(&array, |number| (*number).into());
    InList { column, values: Numbers { array, json }, joined: Joined::default() }
}

/// Matches rows whose column is one of these days.
pub(crate) fn one_of_days<C>(column: C, days: impl IntoIterator<Item = NaiveDate>) -> InList<C, Days> {
    let array: Vec<NaiveDate> = days.into_iter().collect();
    let json = json_of(&array, |day| days_since_1970(*day).into());
    InList { column, values: Days { array, json }, joined: Joined::default() }
}

macro_rules! values {
    ($($values:ident, $sql_type:ty, $from_json:literal;)+) => {$(
        // The text depends on the number of values.
        query_id!([] $values);

        impl QueryFragment<Pg> for $values {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
                out.push_sql("= ANY(");
                out.push_bind_param::<Array<$sql_type>, _>(&self.array)?;
                out.push_sql(")");
                Ok(())
            }
        }

        impl QueryFragment<Sqlite> for $values {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
                if let [value] = self.array.as_slice() {
                    out.push_sql("= ");
                    out.push_bind_param::<$sql_type, _>(value)?;
                } else {
                    out.push_sql(concat!("IN (SELECT ", $from_json, " FROM json_each("));
                    out.push_bind_param::<Text, _>(&self.json)?;
                    out.push_sql("))");
                }
                Ok(())
            }
        }
    )+};
}
values! {
    Ids, Id, "unhex(value)";
    Texts, Text, "value";
    Numbers, Integer, "value";
    Days, Day, "value";
}

impl<C: Expression> Expression for Unindexed<C> {
    type SqlType = C::SqlType;
}

impl<C: ValidGrouping<G>, G> ValidGrouping<G> for Unindexed<C> {
    type IsAggregate = C::IsAggregate;
}

impl<C: AppearsOnTable<QS>, QS> AppearsOnTable<QS> for Unindexed<C> {}
impl<C: SelectableExpression<QS>, QS> SelectableExpression<QS> for Unindexed<C> {}

impl<C: QueryFragment<Pg>> QueryFragment<Pg> for Unindexed<C> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.0.walk_ast(out)
    }
}

impl<C: QueryFragment<Sqlite>> QueryFragment<Sqlite> for Unindexed<C> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        out.push_sql("+");
        self.0.walk_ast(out)
    }
}

impl<C, V> Expression for InList<C, V>
where
    C: Expression,
{
    type SqlType = Bool;
}

impl<C, V, G> ValidGrouping<G> for InList<C, V>
where
    C: ValidGrouping<G>,
{
    type IsAggregate = C::IsAggregate;
}

impl<C, V, QS> AppearsOnTable<QS> for InList<C, V> where C: AppearsOnTable<QS> {}
impl<C, V, QS> SelectableExpression<QS> for InList<C, V> where C: SelectableExpression<QS> {}

impl<C, V, DB> QueryFragment<DB> for InList<C, V>
where
    DB: Backend,
    C: QueryFragment<DB>,
    V: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        if let Joined(Some(column)) = self.joined {
            out.push_sql(column);
            out.push_sql(" ");
            self.values.walk_ast(out.reborrow())?;
            out.push_sql(" AND ");
        }
        self.column.walk_ast(out.reborrow())?;
        out.push_sql(" ");
        self.values.walk_ast(out)
    }
}

/// A value in a row of values.
#[derive(Debug)]
pub(crate) enum Value {
    Id(Uuid),
    Number(i32),
    Day(NaiveDate),
    Text(String),
}

/// The condition that several columns together equal one of these rows of values. The list must not be empty. It
/// is a list of rows, because SQLite finds each row by an index when the columns are a whole primary key. SQLite would
/// scan the table for conditions joined by OR. If the columns are only part of an index, SQLite needs one statement per
/// row.
///
/// PostgreSQL receives one array per column, so the statement is the same for any number of rows.
#[derive(Debug)]
pub(crate) struct InRows {
    columns: &'static str,
    rows: Vec<Vec<Value>>,
    arrays: Vec<Values>,
    /// Whether the condition also names the customers by themselves, from which a distributed database finds their nodes.
    names_customers: bool,
    /// The column of customers of a joined table, which is then named, too.
    joined: Option<&'static str>,
}

impl InRows {
    /// Names the customers by themselves if the database is distributed. Other databases could choose an index by customer.
    pub(crate) fn on_nodes(self, is_spread: bool) -> Self {
        Self { names_customers: is_spread, ..self }
    }

    /// Also names the customers of a joined table, if the database is distributed. It reads all nodes otherwise.
    pub(crate) fn joining(self, column: &'static str) -> Self {
        Self { joined: Some(column), ..self }
    }

    /// Does the same as [`joining`](Self::joining) if there is a joined table.
    pub(crate) fn joining_if(self, joined: Option<&'static str>) -> Self {
        Self { joined, ..self }
    }

    /// Returns the column of customers and its place.
    fn customers(&self) -> Option<(&'static str, &Values)> {
        let columns = self.columns.split(", ");
        columns.zip(&self.arrays).find(|(column, _)| self.names_customers && column.ends_with("customer_id"))
    }
}

/// The values of a column.
#[derive(Debug)]
enum Values {
    Ids(Vec<Uuid>),
    Numbers(Vec<i32>),
    Days(Vec<NaiveDate>),
    Texts(Vec<String>),
}

/// Larger lists are rare, and a prepared statement for each length would fill SQLite's cache.
const MAX_PREPARED_ROWS: usize = 256;

/// Matches rows whose columns equal one of these rows. Qualify a column with its table if another table has the same
/// column.
pub(crate) fn one_of_rows(columns: &'static str, rows: impl IntoIterator<Item = Vec<Value>>) -> InRows {
    let rows: Vec<Vec<Value>> = rows.into_iter().collect();
    let mut arrays: Vec<Values> = Vec::new();
    for value in rows.first().into_iter().flatten() {
        arrays.push(match value {
            Value::Id(_) => Values::Ids(Vec::with_capacity(rows.len())),
            Value::Number(_) => Values::Numbers(Vec::with_capacity(rows.len())),
            Value::Day(_) => Values::Days(Vec::with_capacity(rows.len())),
            Value::Text(_) => Values::Texts(Vec::with_capacity(rows.len())),
        });
    }
    for row in &rows {
        for (array, value) in arrays.iter_mut().zip(row) {
            match (array, value) {
                (Values::Ids(ids), Value::Id(id)) => ids.push(*id),
                (Values::Numbers(numbers), Value::Number(number)) => numbers.push(*number),
                (Values::Days(days), Value::Day(day)) => days.push(*day),
                (Values::Texts(texts), Value::Text(text)) => texts.push(text.clone()),
                // All rows of a list have the same columns.
                (Values::Ids(_) | Values::Numbers(_) | Values::Days(_) | Values::Texts(_), _) => {}
            }
        }
    }
    InRows { columns, rows, arrays, names_customers: false, joined: None }
}

expression!(InRows => Bool);

impl QueryFragment<Pg> for InRows {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if let Some((column, Values::Ids(customers))) = self.customers() {
            for column in [Some(column), self.joined].into_iter().flatten() {
                out.push_sql(column);
                out.push_sql(" = ANY(");
                out.push_bind_param::<Array<Id>, _>(customers)?;
                out.push_sql(") AND ");
            }
        }
        out.push_sql("(");
        out.push_sql(self.columns);
        out.push_sql(") IN (SELECT * FROM unnest(");
        for (i, array) in self.arrays.iter().enumerate() {
            if i > 0 {
                out.push_sql(", ");
            }
            match array {
                Values::Ids(ids) => out.push_bind_param::<Array<Id>, _>(ids)?,
                Values::Numbers(numbers) => out.push_bind_param::<Array<Integer>, _>(numbers)?,
                Values::Days(days) => out.push_bind_param::<Array<Day>, _>(days)?,
                Values::Texts(texts) => out.push_bind_param::<Array<Text>, _>(texts)?,
            }
        }
        out.push_sql("))");
        Ok(())
    }
}

impl QueryFragment<Sqlite> for InRows {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        out.push_sql("(");
        out.push_sql(self.columns);
        if let [row] = self.rows.as_slice() {
            // As for a list of one value: an equality takes no temporary B-tree.
            out.push_sql(") = ");
            return push_row(row, &mut out);
        }
        // The last row is repeated up to one of a few lengths, so that each length stays prepared.
        let length = self.rows.len().next_power_of_two();
        if length > MAX_PREPARED_ROWS {
            out.unsafe_to_cache_prepared();
        }
        out.push_sql(") IN (VALUES ");
        let last = self.rows.last().into_iter().cycle();
        let length = if length > MAX_PREPARED_ROWS { self.rows.len() } else { length };
        for (i, row) in self.rows.iter().chain(last).take(length).enumerate() {
            if i > 0 {
                out.push_sql(", ");
            }
            push_row(row, &mut out)?;
        }
        out.push_sql(")");
        Ok(())
    }
}

/// Writes a row of values in parentheses.
fn push_row<'b>(row: &'b [Value], out: &mut AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
    for (i, value) in row.iter().enumerate() {
        out.push_sql(if i > 0 { ", " } else { "(" });
        match value {
            Value::Id(id) => out.push_bind_param::<Id, _>(id)?,
            Value::Number(number) => out.push_bind_param::<Integer, _>(number)?,
            Value::Day(day) => out.push_bind_param::<Day, _>(day)?,
            Value::Text(text) => out.push_bind_param::<Text, _>(text)?,
        }
    }
    out.push_sql(")");
    Ok(())
}

#[cfg(test)]
mod tests {
    use diesel::prelude::*;

    use super::*;
    use crate::schema::document_parts;

    /// Returns the text of a query on a database.
    macro_rules! text_of {
        ($query:expr, $backend:ty) => {{
            let query = $query;
            diesel::debug_query::<$backend, _>(&query).to_string()
        }};
    }

    fn ids(many: u128) -> Vec<Uuid> {
        (0..many).map(Uuid::from_u128).collect()
    }

    fn rows(many: u128) -> Vec<Vec<Value>> {
        ids(many).into_iter().map(|id| vec![Value::Id(id), Value::Number(1)]).collect()
    }

    #[test]
    fn one_value_is_an_equality_on_sqlite_and_any_other_number_a_list() {
        for many in [0, 1, 2, 3] {
            let days = vec![NaiveDate::default(); usize::try_from(many).expect("a small number")];
            for text in [
                text_of!(document_parts::table.filter(one_of_ids(document_parts::document_id, ids(many))), Sqlite),
                text_of!(document_parts::table.filter(also_one_of_ids(document_parts::document_id, ids(many))), Sqlite),
                text_of!(document_parts::table.filter(one_of_days(document_parts::period_start, days)), Sqlite),
            ] {
                assert_eq!(text.contains("json_each("), many != 1, "{text}");
                assert_eq!(text.contains(" = ?"), many == 1, "{text}");
            }
        }
        for many in [1, 2, 3] {
            let text = text_of!(document_parts::table.filter(one_of_rows("document_id, product_no", rows(many))), Sqlite);
            assert_eq!(text.contains("IN (VALUES"), many != 1, "{text}");
            assert_eq!(text.contains("(document_id, product_no) = (?, ?)"), many == 1, "{text}");
        }
    }

    #[test]
    fn the_text_on_postgres_is_the_same_for_any_number_of_values() {
        // The values are written after the text.
        let before_values = |text: String| text.split("-- binds").next().expect("the statement").to_owned();
        let of_ids = |many| text_of!(document_parts::table.filter(one_of_ids(document_parts::document_id, ids(many))), Pg);
        let of_rows = |many| text_of!(document_parts::table.filter(one_of_rows("document_id, product_no", rows(many))), Pg);
        assert_eq!(before_values(of_ids(1)), before_values(of_ids(3)));
        assert_eq!(before_values(of_rows(1)), before_values(of_rows(3)));
    }

    #[test]
    fn lists_of_one_and_of_several_values_are_different_prepared_statements_of_a_connection() {
        let mut connection = SqliteConnection::establish(":memory:").expect("a connection");
        diesel::sql_query("CREATE TABLE document_parts (document_id BLOB, product_no INTEGER)")
            .execute(&mut connection)
            .expect("a table");
        for (document, product_no) in ids(3).into_iter().zip(0_i32..) {
            diesel::sql_query("INSERT INTO document_parts VALUES (?, ?)")
                .bind::<Id, _>(document)
                .bind::<Integer, _>(product_no)
                .execute(&mut connection)
                .expect("a row");
        }
        // The same query type with one value, with several, with none, and with one again.
        for many in [1, 2, 0, 3, 1] {
            let query = document_parts::table
                .filter(one_of_ids(document_parts::document_id, ids(many)))
                .order(document_parts::product_no)
                .select(document_parts::product_no);
            let found: Vec<i32> = query.load(&mut connection).expect("the rows");
            assert_eq!(found.len(), usize::try_from(many).expect("a small number"));
        }
    }
}
