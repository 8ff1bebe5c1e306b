//! What diesel requires of hand-written SQL besides its text. Type parameters stand in brackets, each with a comma.

/// Implements the query id. diesel caches a prepared statement by its text, or after `=` by a type, whose text then must not depend
/// on values.
macro_rules! query_id {
    ([$($generic:tt)*] $type:ty) => {
        impl<$($generic)*> diesel::query_builder::QueryId for $type {
            type QueryId = ();
            const HAS_STATIC_QUERY_ID: bool = false;
        }
    };
    ([$($generic:tt)*] $type:ty = $key:ty) => {
        impl<$($generic)*> diesel::query_builder::QueryId for $type {
            type QueryId = $key;
            const HAS_STATIC_QUERY_ID: bool = true;
        }
    };
}
pub(crate) use query_id;

/// Implements what a statement needs: the type that it is cached by, after `=`, and the SQL type of its rows, after `=>`.
macro_rules! statement {
    ([$($generic:tt)*] $type:ty => $rows:ty) => {
        $crate::hand_written::query_id!([$($generic)*] $type);

        impl<$($generic)*> diesel::query_builder::Query for $type {
            type SqlType = $rows;
        }

        impl<$($generic)* C> diesel::RunQueryDsl<C> for $type {}
    };
    ([$($generic:tt)*] $type:ty = $key:ty) => {
        $crate::hand_written::query_id!([$($generic)*] $type = $key);

        impl<$($generic)* C> diesel::RunQueryDsl<C> for $type {}
    };
    ([$($generic:tt)*] $type:ty = $key:ty => $rows:ty) => {
        $crate::hand_written::statement!([$($generic)*] $type = $key);

        impl<$($generic)*> diesel::query_builder::Query for $type {
            type SqlType = $rows;
        }
    };
}
pub(crate) use statement;

/// Implements what an expression without aggregates needs, with its SQL type after `=>`.
macro_rules! expression {
    ($type:ty $(= $key:ty)? => $sql_type:ty) => {
        $crate::hand_written::query_id!([] $type $(= $key)?);

        impl diesel::Expression for $type {
            type SqlType = $sql_type;
        }

        impl<G> diesel::expression::ValidGrouping<G> for $type {
            type IsAggregate = diesel::expression::is_aggregate::No;
        }

        impl<QS> diesel::AppearsOnTable<QS> for $type {}
        impl<QS> diesel::SelectableExpression<QS> for $type {}
    };
}
pub(crate) use expression;
