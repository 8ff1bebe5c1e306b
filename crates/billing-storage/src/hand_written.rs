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

/// Creates conditions with a fixed text. A bound value would hide a partial index from a prepared plan, and diesel prepares a statement
/// with its own literals again each time.
macro_rules! conditions {
    ($($(#[$doc:meta])* $name:ident: $text:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        expression!($name = Self => diesel::sql_types::Bool);

        impl<DB: diesel::backend::Backend> diesel::query_builder::QueryFragment<DB> for $name {
            fn walk_ast<'b>(&'b self, mut out: diesel::query_builder::AstPass<'_, 'b, DB>) -> diesel::QueryResult<()> {
                out.push_sql($text);
                Ok(())
            }
        }
    )+};
}

conditions! {
    /// The document is a draft.
    IsDraft: "documents.lifecycle = 'DRAFT'";
    /// Something of the document is due.
    IsDue: "documents.amount_due_minor > 0";
    /// Something of the document is not applied.
    IsDocumentUnapplied: "documents.unapplied_minor > 0";
    /// Something of the grant is not drawn.
    IsUndrawn: "credit_grants.drawn_minor < credit_grants.amount_minor";
    /// Something of the payment is not applied.
    IsPaymentUnapplied: "payments.unapplied_minor > 0";
}
