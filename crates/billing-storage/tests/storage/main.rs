//! The store on real databases. `make test` names the PostgreSQL server they run on.

mod contract;
mod distribute;
mod frozen;
mod migrations;
mod opening;
mod rows;
mod seals;
mod support;
mod transactions;
