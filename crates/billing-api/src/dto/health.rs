//! Health of the service.

use serde::Serialize;
use utoipa::ToSchema;

/// The health of the service.
#[derive(Debug, Serialize, ToSchema)]
pub struct HealthJson {
    /// Always `ok`; other states are problem documents.
    #[schema(example = "ok")]
    pub status: &'static str,
    /// The nodes of a distributed database. The customers of a node that does not serve get 503 `node_unavailable`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub nodes: Vec<NodeJson>,
}

/// A node of a distributed database.
#[derive(Debug, Serialize, ToSchema)]
pub struct NodeJson {
    /// The host and port of the node.
    #[schema(example = "worker-1:5432")]
    pub name: String,
    /// Whether the node serves its customers.
    pub serves: bool,
}
