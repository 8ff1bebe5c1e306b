//! Rows given to PostgreSQL as an array for each column: the statement is the same for any number of rows, and stays prepared.
//! SQLite, which is asked in the same process, is given row after row.

use billing_domain::calendar::Timestamp;
use chrono::NaiveDate;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, Bool, Integer, Nullable, Text};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::sql_types::{Day, Dec, Id, Json, JsonText, Ts};

/// The values of a column, one for each row.
#[derive(Debug)]
pub(crate) enum Column {
    Ids(Vec<Option<Uuid>>),
    Numbers(Vec<Option<i32>>),
    Days(Vec<Option<NaiveDate>>),
    Instants(Vec<Option<Timestamp>>),
    Decimals(Vec<Option<Decimal>>),
    Texts(Vec<Option<String>>),
    Json(Vec<Option<JsonText>>),
    Flags(Vec<Option<bool>>),
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
    NaiveDate => Days: Day;
    Timestamp => Instants: Ts;
    Decimal => Decimals: Dec;
    String => Texts: Text;
    JsonText => Json: Json;
    bool => Flags: Bool;
}

/// A column of rows, each of which has a value there.
pub(crate) fn column<R, V: InColumn>(rows: &[R], value: impl Fn(&R) -> V) -> Column {
    optional_column(rows, |row| Some(value(row)))
}

/// A column of rows, some of which may have none there.
pub(crate) fn optional_column<R, V: InColumn>(rows: &[R], value: impl Fn(&R) -> Option<V>) -> Column {
    V::column(rows.iter().map(value).collect())
}

/// Inserts any number of rows; those that are there already are passed over.
#[derive(Debug)]
pub(crate) struct InsertRows {
    table: &'static str,
    columns: Vec<(&'static str, Column)>,
}

impl InsertRows {
    pub(crate) const fn new(table: &'static str, columns: Vec<(&'static str, Column)>) -> Self {
        Self { table, columns }
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
        push_names(&self.columns, &mut out);
        out.push_sql(" SELECT * FROM ");
        push_rows(&self.columns, &mut out)?;
        out.push_sql(" ON CONFLICT DO NOTHING");
        Ok(())
    }
}

/// The names of columns, in parentheses.
pub(crate) fn push_names(columns: &[(&'static str, Column)], out: &mut AstPass<'_, '_, Pg>) {
    for (i, (name, _)) in columns.iter().enumerate() {
        out.push_sql(if i > 0 { ", " } else { " (" });
        out.push_sql(name);
    }
    out.push_sql(")");
}

/// Columns as rows.
pub(crate) fn push_rows<'b>(columns: &'b [(&'static str, Column)], out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
    for (i, (_, column)) in columns.iter().enumerate() {
        out.push_sql(if i > 0 { ", " } else { "unnest(" });
        column.push_bind(out)?;
    }
    out.push_sql(")");
    Ok(())
}
