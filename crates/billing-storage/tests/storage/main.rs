//! Tests the store on real databases. `make test` starts the PostgreSQL server and passes its URL.

mod citus;
mod contract;
mod distribute;
mod frozen;
mod latest_instant;
mod migrations;
mod opening;
mod replaced;
mod restore;
mod rows;
mod seals;
mod stamp_generations;
mod support;
mod transactions;
