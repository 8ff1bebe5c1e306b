//! Next revisions of events, sent to PostgreSQL as one array per column.

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use uuid::Uuid;

use crate::arrays::{Columns, InsertRows, push_ids, push_rows};
use crate::sql_types::Id;

/// The immutable key of events.
const KEY: [&str; 2] = ["event_id", "customer_id"];
/// The additional column of a next revision: the revision that it replaces.
pub(crate) const SUPERSEDED: &str = "superseded";

/// A statement that replaces events with their next revisions, if they have the expected previous revision.
#[derive(Debug)]
pub(crate) struct ReplaceEvents {
    /// The columns of events, then [`SUPERSEDED`].
    columns: Columns,
    organization: Uuid,
    /// Whether the statement also names the customers by themselves, from which a distributed database finds their nodes.
    names_customers: bool,
}

impl ReplaceEvents {
    pub(crate) const fn new(columns: Columns, organization: Uuid) -> Self {
        Self { columns, organization, names_customers: false }
    }

    /// Names the customers by themselves if the database is distributed.
    pub(crate) fn on_nodes(self, is_spread: bool) -> Self {
        Self { names_customers: is_spread, ..self }
    }
}

/// Saves superseded revisions, and for each whether its document was issued with it. Later revisions that do not change
/// the total also stay on that document.
pub(crate) fn keep_revisions(columns: Columns, is_spread: bool) -> InsertRows {
    // Scalar queries, because PostgreSQL can turn EXISTS into a scan of all documents.
    let billed = "coalesce((SELECT documents.lifecycle IN ('ISSUED', 'UNCOLLECTIBLE') FROM documents \
        WHERE documents.document_id = n.document_id AND documents.customer_id = n.customer_id), FALSE) \
        AND (SELECT 1 FROM usage_event_revisions earlier WHERE earlier.event_id = n.event_id \
        AND earlier.customer_id = n.customer_id AND earlier.document_id = n.document_id AND earlier.billed LIMIT 1) IS NULL";
    let on_nodes = "coalesce((SELECT documents.lifecycle IN ('ISSUED', 'UNCOLLECTIBLE') FROM documents \
        WHERE documents.document_id = n.document_id AND documents.customer_id = n.customer_id \
        AND documents.customer_id = ANY({customers})), FALSE) \
        AND (SELECT 1 FROM usage_event_revisions earlier WHERE earlier.event_id = n.event_id \
        AND earlier.customer_id = n.customer_id AND earlier.customer_id = ANY({customers}) \
        AND earlier.document_id = n.document_id AND earlier.billed LIMIT 1) IS NULL";
    let billed = if is_spread { on_nodes } else { billed };
    InsertRows::new("usage_event_revisions", columns).with("billed", billed).on_conflict("")
}

// Without a static query id, diesel caches the statement by its text.
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
        if self.names_customers {
            for (before, after) in [(" AND customers.customer_id = ANY(", "))"), (" AND usage_events.customer_id = ANY(", ")")] {
                out.push_sql(before);
                push_ids(&self.columns, "customer_id", &mut out)?;
                out.push_sql(after);
            }
            return Ok(());
        }
        out.push_sql(")");
        Ok(())
    }
}
