//! The HTTP interface: routes, bodies, problem documents, OpenAPI
