//! Bulk inserts and updates. PostgreSQL receives one array per column, so the statement is the same for any number of
//! rows and stays prepared. SQLite runs in the same process and receives one row at a time.

use billing_domain::calendar::Timestamp;
use chrono::NaiveDate;
use diesel::RunQueryDsl as _;
use diesel::pg::{Pg, PgConnection};
use diesel::query_builder::Query;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::sql_types::{Day, Dec, Id, Json, JsonText, Ts};

/// The values of a column, one per row.
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

/// A value that a [`Column`] can contain.
pub(crate) trait InColumn: Sized {
    /// Returns the column of these values.
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

/// Returns a column in which every row has a value.
pub(crate) fn column<R, V: InColumn>(rows: &[R], value: impl Fn(&R) -> V) -> Column {
    optional_column(rows, |row| Some(value(row)))
}

/// Returns a column in which a row's value can be missing.
pub(crate) fn optional_column<R, V: InColumn>(rows: &[R], value: impl Fn(&R) -> Option<V>) -> Column {
    V::column(rows.iter().map(value).collect())
}

/// Columns with their names.
pub(crate) type Columns = Vec<(&'static str, Column)>;

/// Writes the rows as the table `n`.
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

/// The place of the array of customers in an expression.
const CUSTOMERS: &str = "{customers}";

/// A statement that inserts any number of rows and skips existing ones.
#[derive(Debug)]
pub(crate) struct InsertRows {
    table: &'static str,
    columns: Columns,
    /// An additional column, and the expression over row `n` that yields its value.
    looked_up: Option<(&'static str, &'static str)>,
    /// A joined table of customers.
    joined: Option<&'static str>,
    /// An additional condition over the row `n` that a row must meet to be inserted.
    condition: &'static str,
    conflict: &'static str,
}

/// Writes the values of a column of identifiers, or nothing if the column does not exist.
pub(crate) fn push_ids<'b>(columns: &'b [(&'static str, Column)], name: &str, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
    match columns.iter().find(|(column, _)| *column == name) {
        Some((_, column)) => column.push_bind(out),
        None => Ok(()),
    }
}

impl InsertRows {
    pub(crate) const fn new(table: &'static str, columns: Columns) -> Self {
        Self { table, columns, looked_up: None, joined: None, condition: "", conflict: " ON CONFLICT DO NOTHING" }
    }

    /// Adds a column whose value is an expression over the row `n`. In it, `{customers}` is the array of all customers.
    pub(crate) fn with(self, column: &'static str, expression: &'static str) -> Self {
        Self { looked_up: Some((column, expression)), ..self }
    }

    /// Joins a table of customers, as `j`, with a condition over the row `n`. Unlike a subquery over the row, a join is also
    /// possible where a distributed database inserts rows.
    pub(crate) fn joining(self, table_and_condition: &'static str) -> Self {
        Self { joined: Some(table_and_condition), ..self }
    }

    /// Inserts the rows and returns their number. A distributed database counts rows that exist, too, unless it returns the
    /// inserted ones.
    pub(crate) fn insert(self, connection: &mut PgConnection, is_spread: bool) -> QueryResult<usize> {
        if !is_spread {
            return self.execute(connection);
        }
        let inserted: Vec<i32> = Returning::<_, Integer>::new(self, "1").load(connection)?;
        Ok(inserted.len())
    }

    /// Replaces the `ON CONFLICT` clause.
    pub(crate) fn on_conflict(self, conflict: &'static str) -> Self {
        Self { conflict, ..self }
    }
}

// Without a static query id, diesel caches the statement by its text.
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
            for (i, part) in expression.split(CUSTOMERS).enumerate() {
                if i > 0 {
                    push_ids(&self.columns, "customer_id", &mut out)?;
                } else {
                    out.push_sql(", ");
                }
                out.push_sql(part);
            }
        }
        out.push_sql(" FROM ");
        push_rows(&self.columns, &mut out)?;
        if let Some(joined) = self.joined {
            out.push_sql(" JOIN ");
            out.push_sql(joined);
            out.push_sql(" AND j.customer_id = n.customer_id AND j.customer_id = ANY(");
            push_ids(&self.columns, "customer_id", &mut out)?;
            out.push_sql(")");
        }
        out.push_sql(self.condition);
        out.push_sql(self.conflict);
        Ok(())
    }
}

/// A statement that updates any number of rows, each found by its key.
#[derive(Debug)]
pub(crate) struct UpdateRows {
    table: &'static str,
    /// The assignments, over the row `n`.
    set: &'static str,
    /// All columns; the key columns come first.
    columns: Columns,
    keys: usize,
    /// An additional condition that a row must meet to be updated.
    condition: &'static str,
    /// Whether the statement also names the customers by themselves.
    names_customers: bool,
}

impl UpdateRows {
    /// Creates the statement; the first `keys` columns are the key.
    pub(crate) const fn new(table: &'static str, set: &'static str, columns: Columns, keys: usize) -> Self {
        Self { table, set, columns, keys, condition: "", names_customers: false }
    }

    /// Names the customers by themselves if the database is distributed.
    pub(crate) fn on_nodes(self, is_spread: bool) -> Self {
        Self { names_customers: is_spread, ..self }
    }

    /// Adds a condition that rows must meet.
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
        if self.names_customers {
            out.push_sql(" AND ");
            out.push_sql(self.table);
            out.push_sql(".customer_id = ANY(");
            push_ids(&self.columns, "customer_id", &mut out)?;
            out.push_sql(")");
        }
        out.push_sql(self.condition);
        Ok(())
    }
}

/// A statement that returns columns of the rows that it wrote.
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
