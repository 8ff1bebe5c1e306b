//! Tests of the billing rules, without a database, a server or a clock.

mod accounts;
mod agreeing;
mod amending;
mod calendar_table;
mod contract_chain;
mod corners;
mod covering;
mod e_invoices;
mod family_sums;
mod histories;
mod linking;
mod matching;
mod metering;
mod metering_laws;
mod notifications;
mod papers;
mod quantities;
mod scenarios;
mod shared_credit;
mod simulations;
mod totals;
