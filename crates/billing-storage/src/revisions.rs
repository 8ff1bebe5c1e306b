//! Next revisions of events given to PostgreSQL as an array for each column.

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use uuid::Uuid;

use crate::arrays::{Columns, InsertRows, push_rows};
use crate::sql_types::Id;

/// What events are found by; it never changes.
const KEY: [&str; 2] = ["event_id", "customer_id"];
/// What a row of next revisions says besides its columns: the revision before it.
pub(crate) const SUPERSEDED: &str = "superseded";

/// Puts next revisions in the place of events that have the revision before, each once.
#[derive(Debug)]
pub(crate) struct ReplaceEvents {
    /// Those of events, then [`SUPERSEDED`].
    columns: Columns,
    organization: Uuid,
}

impl ReplaceEvents {
    pub(crate) const fn new(columns: Columns, organization: Uuid) -> Self {
        Self { columns, organization }
    }
}

/// Keeps superseded revisions, and whether each is the one that its document was issued with: later ones that make no difference to
/// the total stay on it, too.
pub(crate) fn keep_revisions(columns: Columns) -> InsertRows {
    // Scalar queries: of EXISTS PostgreSQL may make one that reads all documents, to look each one up in that.
    let billed = "coalesce((SELECT documents.lifecycle IN ('ISSUED', 'UNCOLLECTIBLE') FROM documents \
        WHERE documents.document_id = n.document_id AND documents.customer_id = n.customer_id), FALSE) \
        AND (SELECT 1 FROM usage_event_revisions earlier WHERE earlier.event_id = n.event_id \
        AND earlier.customer_id = n.customer_id AND earlier.document_id = n.document_id AND earlier.billed LIMIT 1) IS NULL";
    InsertRows::new("usage_event_revisions", columns).with("billed", billed).on_conflict("")
}

// Without a fixed identity a statement is found again by its text.
impl QueryId for ReplaceEvents {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<C> diesel::RunQueryDsl<C> for ReplaceEvents {}

impl QueryFragment<Pg> for ReplaceEvents {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE usage_events SET ");
        for (name, _) in self.columns.iter().filter(|(name, _)| !KEY.contains(name) && *name != SUPERSEDED) {
            out.push_sql(name);
            out.push_sql(" = n.");
            out.push_sql(name);
            out.push_sql(", ");
        }
        out.push_sql("answered_document_id = coalesce(usage_events.answered_document_id, usage_events.document_id) FROM ");
        push_rows(&self.columns, &mut out)?;
        out.push_sql(" WHERE usage_events.event_id = n.event_id AND usage_events.customer_id = n.customer_id");
        out.push_sql(" AND usage_events.revision = n.superseded AND EXISTS (SELECT 1 FROM customers");
        out.push_sql(" WHERE customers.customer_id = n.customer_id AND customers.organization_id = ");
        out.push_bind_param::<Id, _>(&self.organization)?;
        out.push_sql(")");
        Ok(())
    }
}
