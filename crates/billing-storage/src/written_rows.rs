//! Inserts and updates of any number of rows. PostgreSQL receives one array per column, so the statement is the same for any number
//! of rows and stays prepared. SQLite runs in the same process and executes one prepared statement for each row.
//!
//! In expressions over a row, `{name}` is the row's value of the column `name`, and `{customers}` is the array of all customers. Only
//! a distributed database needs the array, because it finds the nodes of a statement by constants.

use std::marker::PhantomData;

use billing_domain::calendar::Timestamp;
use billing_domain::ports::StoreResult;
use chrono::NaiveDate;
use diesel::backend::Backend;
use diesel::connection::Connection as _;
use diesel::pg::{Pg, PgConnection};
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::query_dsl::{LoadQuery, RunQueryDsl as _};
use diesel::result::{Error, QueryResult};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text};
use diesel::sqlite::{Sqlite, SqliteConnection};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::hand_written::{query_id, statement};
use crate::sql_types::{Day, Dec, Id, Json, JsonText, Ts};
use crate::tx::{Connection, Transaction};

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
    /// The type of the stored value.
    type Stored;

    /// Returns the stored value, or `None` if it is missing.
    fn stored(self) -> Option<Self::Stored>;

    /// Returns the column of these values.
    fn column(values: Vec<Option<Self::Stored>>) -> Column;
}

impl<V: InColumn> InColumn for Option<V> {
    type Stored = V::Stored;

    fn stored(self) -> Option<V::Stored> {
        self.and_then(V::stored)
    }

    fn column(values: Vec<Option<V::Stored>>) -> Column {
        V::column(values)
    }
}

impl InColumn for &str {
    type Stored = String;

    fn stored(self) -> Option<String> {
        Some(self.to_owned())
    }

    fn column(values: Vec<Option<String>>) -> Column {
        Column::Texts(values)
    }
}

/// A column with its name.
type NamedColumn = (&'static str, Column);
/// Columns with their names.
pub(crate) type Columns = Vec<NamedColumn>;

/// A database that receives rows.
pub(crate) trait RowBackend: Backend {
    /// Writes the value of a column in the row.
    fn push_value<'b>(column: &'b NamedColumn, row: usize, out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()>;

    /// Writes the array of a column, or the value if the database receives one row at a time.
    fn push_array<'b>(column: &'b NamedColumn, row: usize, out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()> {
        Self::push_value(column, row, out)
    }

    /// Writes the table `n` of all rows, if the database receives them together.
    fn push_table<'b>(_columns: &'b Columns, _out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()> {
        Ok(())
    }
}

macro_rules! in_column {
    ($($value:ty => $column:ident: $sql_type:ty;)+) => {
        $(impl InColumn for $value {
            type Stored = Self;

            fn stored(self) -> Option<Self> {
                Some(self)
            }

            fn column(values: Vec<Option<Self>>) -> Column {
                Column::$column(values)
            }
        })+

        impl RowBackend for Pg {
            fn push_value<'b>((name, _): &'b NamedColumn, _: usize, out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()> {
                out.push_sql("n.");
                out.push_sql(name);
                Ok(())
            }

            fn push_array<'b>((_, column): &'b NamedColumn, _: usize, out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()> {
                match column {
                    $(Column::$column(values) => out.push_bind_param::<Array<Nullable<$sql_type>>, _>(values),)+
                }
            }

            fn push_table<'b>(columns: &'b Columns, out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()> {
                out.push_sql(" FROM ");
                push_rows(columns, "n", out)
            }
        }

        impl RowBackend for Sqlite {
            fn push_value<'b>((name, column): &'b NamedColumn, row: usize, out: &mut AstPass<'_, 'b, Self>) -> QueryResult<()> {
                let missing = || Error::QueryBuilderError(format!("{name} has no row {row}").into());
                match column {
                    $(Column::$column(values) => {
                        out.push_bind_param::<Nullable<$sql_type>, _>(values.get(row).ok_or_else(missing)?)
                    })+
                }
            }
        }

        impl Column {
            const fn len(&self) -> usize {
                match self {
                    $(Self::$column(values) => values.len(),)+
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

/// Returns the column of a value of each row.
pub(crate) fn column<R, V: InColumn>(rows: impl IntoIterator<Item = R>, mut value: impl FnMut(R) -> V) -> Column {
    V::column(rows.into_iter().map(|row| value(row).stored()).collect())
}

/// Returns the column of a value of each row.
///
/// # Errors
///
/// The first error of `value`.
pub(crate) fn checked_column<R, V: InColumn>(
    rows: impl IntoIterator<Item = R>,
    mut value: impl FnMut(R) -> StoreResult<V>,
) -> StoreResult<Column> {
    Ok(V::column(rows.into_iter().map(|row| value(row).map(V::stored)).collect::<StoreResult<_>>()?))
}

/// Writes the table of all rows.
pub(crate) fn push_rows<'b>(columns: &'b Columns, name: &str, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
    for (i, column) in columns.iter().enumerate() {
        out.push_sql(if i > 0 { ", " } else { "unnest(" });
        Pg::push_array(column, 0, out)?;
    }
    out.push_sql(") AS ");
    out.push_sql(name);
    for (i, (name, _)) in columns.iter().enumerate() {
        out.push_sql(if i > 0 { ", " } else { " (" });
        out.push_sql(name);
    }
    out.push_sql(")");
    Ok(())
}

/// The array of all customers in an expression.
const CUSTOMERS: &str = "customers";
/// The `ON CONFLICT` clause that skips existing rows.
const SKIP: &str = " ON CONFLICT DO NOTHING";

/// The rows of a statement.
#[derive(Debug)]
pub(crate) struct Rows {
    table: &'static str,
    columns: Columns,
    /// The row that SQLite receives.
    row: usize,
    /// Whether the database is distributed.
    is_spread: bool,
}

impl Rows {
    const fn new(table: &'static str, columns: Columns) -> Self {
        Self { table, columns, row: 0, is_spread: false }
    }

    fn len(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    fn column(&self, name: &str) -> QueryResult<&NamedColumn> {
        let missing = || Error::QueryBuilderError(format!("{} has no column {name}", self.table).into());
        self.columns.iter().find(|(column, _)| *column == name).ok_or_else(missing)
    }

    fn push_expression<'b, DB: RowBackend>(&'b self, text: &str, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let mut parts = text.split(['{', '}']);
        out.push_sql(parts.next().unwrap_or_default());
        while let Some(name) = parts.next() {
            match name {
                CUSTOMERS => DB::push_array(self.column("customer_id")?, self.row, out)?,
                _ => DB::push_value(self.column(name)?, self.row, out)?,
            }
            out.push_sql(parts.next().unwrap_or_default());
        }
        Ok(())
    }
}

/// A statement that inserts any number of rows and skips existing ones.
#[derive(Debug)]
pub(crate) struct InsertRows {
    rows: Rows,
    /// An additional column, and the expression that yields its value.
    looked_up: Option<(&'static str, &'static str)>,
    /// A joined table of customers.
    joined: Option<&'static str>,
    /// An additional condition over the row `n` that a row must meet to be inserted.
    condition: &'static str,
    conflict: &'static str,
}

impl InsertRows {
    pub(crate) const fn new(table: &'static str, columns: Columns) -> Self {
        Self { rows: Rows::new(table, columns), looked_up: None, joined: None, condition: "", conflict: SKIP }
    }

    /// Adds a column whose value is an expression over the row.
    pub(crate) fn with(self, column: &'static str, expression: &'static str) -> Self {
        Self { looked_up: Some((column, expression)), ..self }
    }

    /// Joins a table of customers, as `j`, with a condition over the row `n`. Unlike a subquery over the row, a join is also
    /// possible where a distributed database inserts rows. SQLite ignores it.
    pub(crate) fn joining(self, table_and_condition: &'static str) -> Self {
        Self { joined: Some(table_and_condition), ..self }
    }

    /// Adds a `WHERE` clause over the row `n`. SQLite ignores it.
    pub(crate) fn only(self, condition: &'static str) -> Self {
        Self { condition, ..self }
    }

    /// Replaces the `ON CONFLICT` clause.
    pub(crate) fn on_conflict(self, conflict: &'static str) -> Self {
        Self { conflict, ..self }
    }

    fn push_names<DB: RowBackend>(&self, out: &mut AstPass<'_, '_, DB>) {
        out.push_sql("INSERT INTO ");
        out.push_sql(self.rows.table);
        let names = self.rows.columns.iter().map(|(name, _)| *name).chain(self.looked_up.map(|(name, _)| name));
        for (i, name) in names.enumerate() {
            out.push_sql(if i > 0 { ", " } else { " (" });
            out.push_sql(name);
        }
        out.push_sql(")");
    }

    fn push_values<'b, DB: RowBackend>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        for (i, column) in self.rows.columns.iter().enumerate() {
            out.push_sql(if i > 0 { ", " } else { "" });
            DB::push_value(column, self.rows.row, out)?;
        }
        let Some((_, expression)) = self.looked_up else { return Ok(()) };
        out.push_sql(", ");
        self.rows.push_expression(expression, out)
    }
}

impl QueryFragment<Pg> for InsertRows {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.push_names(&mut out);
        out.push_sql(" SELECT ");
        self.push_values(&mut out)?;
        Pg::push_table(&self.rows.columns, &mut out)?;
        if let Some(joined) = self.joined {
            out.push_sql(" JOIN ");
            out.push_sql(joined);
            self.rows.push_expression(" AND j.customer_id = {customer_id} AND j.customer_id = ANY({customers})", &mut out)?;
        }
        out.push_sql(self.condition);
        out.push_sql(self.conflict);
        Ok(())
    }
}

impl QueryFragment<Sqlite> for InsertRows {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        self.push_names(&mut out);
        out.push_sql(" VALUES (");
        self.push_values(&mut out)?;
        out.push_sql(")");
        out.push_sql(self.conflict);
        Ok(())
    }
}

/// A statement that updates any number of rows, each found by its key.
#[derive(Debug)]
pub(crate) struct UpdateRows {
    /// The columns of the key come first, then those that change. Expressions read the others.
    rows: Rows,
    keys: usize,
    changes: usize,
    /// Additional assignments.
    also: &'static str,
    /// An additional condition that a row must meet to be updated.
    condition: &'static str,
}

impl UpdateRows {
    /// Creates the statement that sets columns of the rows with these keys.
    pub(crate) fn new(table: &'static str, keys: Columns, changes: Columns) -> Self {
        let (key_count, change_count) = (keys.len(), changes.len());
        let rows = Rows::new(table, keys.into_iter().chain(changes).collect());
        Self { rows, keys: key_count, changes: change_count, also: "", condition: "" }
    }

    /// Adds values that only expressions read.
    pub(crate) fn reading(mut self, columns: Columns) -> Self {
        self.rows.columns.extend(columns);
        self
    }

    /// Adds assignments of expressions over the row.
    pub(crate) fn also(self, assignments: &'static str) -> Self {
        Self { also: assignments, ..self }
    }

    /// Adds a condition over the row that rows must meet.
    pub(crate) fn only(self, condition: &'static str) -> Self {
        Self { condition, ..self }
    }
}

impl<DB: RowBackend> QueryFragment<DB> for UpdateRows {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let Rows { table, columns, row, is_spread } = &self.rows;
        out.push_sql("UPDATE ");
        out.push_sql(table);
        let mut before = " SET ";
        for column in columns.iter().skip(self.keys).take(self.changes) {
            out.push_sql(before);
            out.push_sql(column.0);
            out.push_sql(" = ");
            DB::push_value(column, *row, &mut out)?;
            before = ", ";
        }
        if !self.also.is_empty() {
            out.push_sql(before);
            self.rows.push_expression(self.also, &mut out)?;
        }
        DB::push_table(columns, &mut out)?;
        before = " WHERE ";
        for column in columns.iter().take(self.keys) {
            for text in [before, table, ".", column.0, " = "] {
                out.push_sql(text);
            }
            DB::push_value(column, *row, &mut out)?;
            before = " AND ";
        }
        if *is_spread {
            // A distributed database finds the nodes of a statement by constants.
            out.push_sql(" AND ");
            out.push_sql(table);
            self.rows.push_expression(".customer_id = ANY({customers})", &mut out)?;
        }
        self.rows.push_expression(self.condition, &mut out)
    }
}

/// A statement of [`Rows`] that returns columns of the rows that it wrote.
#[derive(Debug)]
pub(crate) struct Returning<'a, Q, ST> {
    statement: &'a Q,
    columns: &'static str,
    of: PhantomData<ST>,
}

statement!(['a, Q, ST,] Returning<'a, Q, ST> => ST);

impl<DB: Backend, Q: QueryFragment<DB>, ST> QueryFragment<DB> for Returning<'_, Q, ST> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.statement.walk_ast(out.reborrow())?;
        out.push_sql(" RETURNING ");
        out.push_sql(self.columns);
        Ok(())
    }
}

query_id!([] InsertRows);
query_id!([] UpdateRows);

/// A statement that writes [`Rows`].
pub(crate) trait WriteRows: QueryFragment<Pg> + QueryFragment<Sqlite> + QueryId {
    /// Returns the rows of the statement.
    fn rows(&mut self) -> &mut Rows;
}

impl WriteRows for InsertRows {
    fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }
}

impl WriteRows for UpdateRows {
    fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }
}

impl Transaction<'_> {
    /// Inserts rows and returns their number.
    pub(crate) fn insert_rows(&mut self, insert: InsertRows) -> StoreResult<usize> {
        // A distributed database counts rows that exist, too, unless it returns the inserted ones.
        if self.is_spread && insert.conflict == SKIP {
            return Ok(self.write_returning::<_, Integer, i32>(insert, "1")?.len());
        }
        self.write_rows(insert)
    }

    /// Updates rows and returns their number.
    pub(crate) fn update_rows(&mut self, update: UpdateRows) -> StoreResult<usize> {
        self.write_rows(update)
    }

    fn write_rows(&mut self, mut statement: impl WriteRows) -> StoreResult<usize> {
        statement.rows().is_spread = self.is_spread;
        let written = match &mut self.connection {
            Connection::Postgres(connection) => connection.execute_returning_count(&statement),
            Connection::Sqlite(connection) => (0..statement.rows().len())
                .map(|row| {
                    statement.rows().row = row;
                    connection.execute_returning_count(&statement)
                })
                .sum(),
        };
        written.map_err(|error| self.failed(statement.rows().table, &error))
    }

    /// Writes rows and returns columns of the written ones.
    pub(crate) fn write_returning<Q: WriteRows, ST, R>(&mut self, mut statement: Q, columns: &'static str) -> StoreResult<Vec<R>>
    where
        for<'q> Returning<'q, Q, ST>: LoadQuery<'q, PgConnection, R> + LoadQuery<'q, SqliteConnection, R>,
    {
        statement.rows().is_spread = self.is_spread;
        let of = PhantomData;
        let written: QueryResult<Vec<R>> = match &mut self.connection {
            Connection::Postgres(connection) => Returning { statement: &statement, columns, of }.load(*connection),
            Connection::Sqlite(connection) => {
                let mut written = Vec::new();
                (0..statement.rows().len())
                    .try_for_each(|row| {
                        statement.rows().row = row;
                        written.extend(Returning { statement: &statement, columns, of }.load(*connection)?);
                        Ok(())
                    })
                    .map(|()| written)
            }
        };
        written.map_err(|error| self.failed(statement.rows().table, &error))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use billing_domain::ports::{DueContracts as _, Notifications as _, NumberedNotification};
    use billing_domain::refs::{ContractKey, ContractRef, CustomerId, NotificationRef, OrganizationId};
    use diesel::debug_query;

    use super::*;
    use crate::query_plans::plans_of;

    /// Returns the text of a statement on PostgreSQL and on SQLite, without the values.
    fn texts(statement: &(impl QueryFragment<Pg> + QueryFragment<Sqlite>)) -> [String; 2] {
        [debug_query::<Pg, _>(statement).to_string(), debug_query::<Sqlite, _>(statement).to_string()]
            .map(|text| text.split(" -- binds").next().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_row_is_inserted_with_what_an_expression_looks_up() {
        let columns = vec![("id", column([1_i32, 2], |id| id)), ("name", column(["a", "b"], Some))];
        let insert = InsertRows::new("t", columns).with("price", "(SELECT price FROM p WHERE p.id = {id})");
        let [postgres, sqlite] = texts(&insert);
        assert_eq!(
            postgres,
            "INSERT INTO t (id, name, price) SELECT n.id, n.name, (SELECT price FROM p WHERE p.id = n.id) \
             FROM unnest($1, $2) AS n (id, name) ON CONFLICT DO NOTHING"
        );
        assert_eq!(
            sqlite,
            "INSERT INTO t (id, name, price) VALUES (?, ?, (SELECT price FROM p WHERE p.id = ?)) ON CONFLICT DO NOTHING"
        );
    }

    #[test]
    fn a_row_is_updated_by_its_key() {
        let update = UpdateRows::new("t", vec![("id", column([1_i32], |id| id))], vec![("name", column(["a"], Some))])
            .reading(vec![("many", column([2_i32], |many| many))])
            .also("count = t.count + {many}")
            .only(" AND t.count < {many}");
        let [postgres, sqlite] = texts(&update);
        assert_eq!(
            postgres,
            "UPDATE t SET name = n.name, count = t.count + n.many FROM unnest($1, $2, $3) AS n (id, name, many) \
             WHERE t.id = n.id AND t.count < n.many"
        );
        assert_eq!(sqlite, "UPDATE t SET name = ?, count = t.count + ? WHERE t.id = ? AND t.count < ?");
    }

    #[test]
    fn a_distributed_database_gets_the_customers_of_an_update_as_an_array() {
        let keys = vec![("customer_id", column([Uuid::nil()], |id| id))];
        let mut update = UpdateRows::new("t", keys, Vec::new()).also("count = t.count + 1");
        update.rows.is_spread = true;
        let [postgres, _] = texts(&update);
        assert_eq!(
            postgres,
            "UPDATE t SET count = t.count + 1 FROM unnest($1) AS n (customer_id) \
             WHERE t.customer_id = n.customer_id AND t.customer_id = ANY($2)"
        );
    }

    #[test]
    fn sqlite_finds_the_rows_of_an_update_by_their_keys() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let customer = CustomerId::from_uuid(Uuid::from_u128(2));
        let contract = ContractRef::from_uuid(Uuid::from_u128(3));
        let one = NumberedNotification {
            notification_ref: NotificationRef::from_uuid(Uuid::from_u128(4)),
            customer_id: Some(customer),
            position: 1,
        };
        let plans = plans_of(|tx| {
            let due = BTreeMap::from([(ContractKey { organization, customer, contract }, None)]);
            tx.set_next_dues(&due).expect("no contract");
            tx.number_notifications(organization, &[one]).expect_err("no notification");
        });
        let [contracts, notifications] = plans.as_slice() else { panic!("two statements: {plans:?}") };
        for (plan, key) in
            [(contracts, "contract_id=? AND customer_id=?"), (notifications, "customer_id=? AND notification_id=?")]
        {
            let [step] = plan.steps.as_slice() else { panic!("one step: {plan:?}") };
            assert!(step.starts_with("SEARCH") && step.contains(key), "{plan:?}");
        }
    }
}
