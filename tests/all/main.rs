//! Tests that take long or need programs that a build doesn't need: `make test-all` runs them. They cover kills and crashes, full
//! disks, overload, browsers, and clients from third-party generators.

mod bank;
mod billing_guide;
mod browser;
mod clients;
mod crashes;
mod described_requests;
mod disk;
mod durable;
mod e_invoices;
mod hanging_webhooks;
mod kill;
mod kill_advance;
mod kill_corrections;
mod kill_deliveries;
mod kill_restore;
mod kill_webhooks;
mod overload;
mod packaging;
mod pdf;
mod printed_calculation;
mod reports;
mod slow_clients;
mod tls;
mod typescript;
mod webhook_libraries;
