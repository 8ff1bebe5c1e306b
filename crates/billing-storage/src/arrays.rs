//! Rows given to PostgreSQL as an array for each column: the statement is the same for any number of rows, and stays prepared.
//! SQLite, which is asked in the same process, is given row after row.

use billing_domain::calendar::Timestamp;
use chrono::NaiveDate;
use diesel::pg::Pg;
use diesel::query_builder::Query;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::sql_types::{Day, Dec, Id, Json, JsonText, Ts};

/// The values of a column, one for each row.
#[derive(Debug)]
pub(crate) enum Column {
    Ids(Vec<Option<Uuid>>),
    Numbers(Vec<Option<i32>>),
    Amounts(Vec<Option<i64>>),
    Days(Vec<Option<NaiveDate>>),
    Instants(Vec<Option<Timestamp>>),
    Decimals(Vec<Option<Decimal>>),
    Texts(Vec<Option<String>>),
    Json(Vec<Option<JsonText>>),
    Flags(Vec<Option<bool>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

/// A value that may stand in a column.
pub(crate) trait InColumn: Sized {
    /// The column of such values.
    fn column(values: Vec<Option<Self>>) -> Column;
}

macro_rules! in_column {
    ($($value:ty => $column:ident: $sql_type:ty;)+) => {
        $(impl InColumn for $value {
            fn column(values: Vec<Option<Self>>) -> Column {
                Column::$column(values)
            }
        })+

        impl Column {
            pub(crate) fn push_bind<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
                match self {
                    $(Self::$column(values) => out.push_bind_param::<Array<Nullable<$sql_type>>, _>(values),)+
                }
            }
        }
    };
}
in_column! {
    Uuid => Ids: Id;
    i32 => Numbers: Integer;
    i64 => Amounts: BigInt;
    NaiveDate => Days: Day;
    Timestamp => Instants: Ts;
    Decimal => Decimals: Dec;
    String => Texts: Text;
    JsonText => Json: Json;
    bool => Flags: Bool;
    Vec<u8> => Bytes: Binary;
}

/// A column of rows, each of which has a value there.
pub(crate) fn column<R, V: InColumn>(rows: &[R], value: impl Fn(&R) -> V) -> Column {
    optional_column(rows, |row| Some(value(row)))
}

/// A column of rows, some of which may have none there.
pub(crate) fn optional_column<R, V: InColumn>(rows: &[R], value: impl Fn(&R) -> Option<V>) -> Column {
    V::column(rows.iter().map(value).collect())
}

/// Columns of rows, by their names.
pub(crate) type Columns = Vec<(&'static str, Column)>;

/// The rows, as `n`.
pub(crate) fn push_rows<'b>(columns: &'b [(&'static str, Column)], out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
    for (i, (_, column)) in columns.iter().enumerate() {
        out.push_sql(if i > 0 { ", " } else { "unnest(" });
        column.push_bind(out)?;
    }
    for (i, (name, _)) in columns.iter().enumerate() {
        out.push_sql(if i > 0 { ", " } else { ") AS n (" });
        out.push_sql(name);
    }
    out.push_sql(")");
    Ok(())
}

/// Inserts any number of rows; those that are there already are passed over.
#[derive(Debug)]
pub(crate) struct InsertRows {
    table: &'static str,
    columns: Columns,
    /// One more column, and what a row `n` has there.
    looked_up: Option<(&'static str, &'static str)>,
    conflict: &'static str,
}

impl InsertRows {
    pub(crate) const fn new(table: &'static str, columns: Columns) -> Self {
        Self { table, columns, looked_up: None, conflict: " ON CONFLICT DO NOTHING" }
    }

    /// With one more column, by an expression over the row `n`.
    pub(crate) fn with(self, column: &'static str, expression: &'static str) -> Self {
        Self { looked_up: Some((column, expression)), ..self }
    }

    /// With another `ON CONFLICT`.
    pub(crate) fn on_conflict(self, conflict: &'static str) -> Self {
        Self { conflict, ..self }
    }
}

// Without a fixed identity a statement is found again by its text.
impl QueryId for InsertRows {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<C> diesel::RunQueryDsl<C> for InsertRows {}

impl QueryFragment<Pg> for InsertRows {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("INSERT INTO ");
        out.push_sql(self.table);
        let names = self.columns.iter().map(|(name, _)| *name).chain(self.looked_up.map(|(name, _)| name));
        for (i, name) in names.enumerate() {
            out.push_sql(if i > 0 { ", " } else { " (" });
            out.push_sql(name);
        }
        out.push_sql(") SELECT n.*");
        if let Some((_, expression)) = self.looked_up {
            out.push_sql(", ");
            out.push_sql(expression);
        }
        out.push_sql(" FROM ");
        push_rows(&self.columns, &mut out)?;
        out.push_sql(self.conflict);
        Ok(())
    }
}

/// Updates any number of rows, each found by its key.
#[derive(Debug)]
pub(crate) struct UpdateRows {
    table: &'static str,
    /// What is set, over the row `n`.
    set: &'static str,
    /// The first of them are the key.
    columns: Columns,
    keys: usize,
    /// What else a row must be, so that it is updated.
    condition: &'static str,
}

impl UpdateRows {
    /// Of those columns of the rows, so many of the first are the key.
    pub(crate) const fn new(table: &'static str, set: &'static str, columns: Columns, keys: usize) -> Self {
        Self { table, set, columns, keys, condition: "" }
    }

    /// Where this is so, too.
    pub(crate) fn only(self, condition: &'static str) -> Self {
        Self { condition, ..self }
    }
}

impl QueryId for UpdateRows {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<C> diesel::RunQueryDsl<C> for UpdateRows {}

impl QueryFragment<Pg> for UpdateRows {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE ");
        out.push_sql(self.table);
        out.push_sql(" SET ");
        out.push_sql(self.set);
        out.push_sql(" FROM ");
        push_rows(&self.columns, &mut out)?;
        for (i, (name, _)) in self.columns.iter().take(self.keys).enumerate() {
            out.push_sql(if i > 0 { " AND " } else { " WHERE " });
            out.push_sql(self.table);
            out.push_sql(".");
            out.push_sql(name);
            out.push_sql(" = n.");
            out.push_sql(name);
        }
        out.push_sql(self.condition);
        Ok(())
    }
}

/// A statement that answers columns of the rows that it wrote.
#[derive(Debug)]
pub(crate) struct Returning<Q, ST> {
    statement: Q,
    columns: &'static str,
    of: std::marker::PhantomData<ST>,
}

impl<Q, ST> Returning<Q, ST> {
    pub(crate) const fn new(statement: Q, columns: &'static str) -> Self {
        Self { statement, columns, of: std::marker::PhantomData }
    }
}

impl<Q, ST> QueryId for Returning<Q, ST> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q, ST> Query for Returning<Q, ST> {
    type SqlType = ST;
}

impl<Q, ST, C> diesel::RunQueryDsl<C> for Returning<Q, ST> {}

impl<Q: QueryFragment<Pg>, ST> QueryFragment<Pg> for Returning<Q, ST> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.statement.walk_ast(out.reborrow())?;
        out.push_sql(" RETURNING ");
        out.push_sql(self.columns);
        Ok(())
    }
}
