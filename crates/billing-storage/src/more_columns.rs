//! More columns for a table than `diesel::table!` takes, which is 32. A feature of diesel raises this limit and the length of its
//! tuples to 64, but diesel then takes more than twice the time to compile.
//!
//! These columns can be compared, written, and selected from their table alone. They cannot be selected from a join or with `GROUP BY`,
//! and `all_columns` does not contain them. Code that needs more does not compile.

/// Declares the columns of the table `table` of this module.
macro_rules! more_columns {
    ($($column:ident -> $type:ty,)+) => {$(
        #[allow(non_camel_case_types, reason = "it has the name of the column, as in diesel::table!")]
        #[derive(Clone, Copy, Debug, diesel::query_builder::QueryId)]
        pub(crate) struct $column;

        impl diesel::Expression for $column {
            type SqlType = $type;
        }

        impl<DB: diesel::backend::Backend> diesel::query_builder::QueryFragment<DB> for $column
        where
            table: diesel::query_builder::QueryFragment<DB>,
        {
            fn walk_ast<'b>(&'b self, mut out: diesel::query_builder::AstPass<'_, 'b, DB>) -> diesel::QueryResult<()> {
                diesel::query_builder::QueryFragment::<DB>::walk_ast(&table, out.reborrow())?;
                out.push_sql(".");
                out.push_identifier(stringify!($column))
            }
        }

        impl diesel::SelectableExpression<table> for $column {}

        impl<QS> diesel::AppearsOnTable<QS> for $column
        where
            QS: diesel::query_source::AppearsInFromClause<table, Count = diesel::query_source::Once>,
        {
        }

        impl diesel::expression::ValidGrouping<()> for $column {
            type IsAggregate = diesel::expression::is_aggregate::No;
        }

        impl diesel::Column for $column {
            type Table = table;

            const NAME: &'static str = stringify!($column);
        }
    )+};
}
pub(crate) use more_columns;
