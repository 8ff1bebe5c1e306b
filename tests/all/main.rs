//! What takes long, or programs that a build doesn't need: `make test-all` runs it. Kills and crashes, full disks, overload, browsers,
//! clients that others' generators make.

mod bank;
mod browser;
mod clients;
mod crashes;
mod described_requests;
mod disk;
mod durable;
mod exact_numbers;
mod kill;
mod kill_corrections;
mod overload;
mod packaging;
mod pdf;
mod reports;
mod slow_clients;
mod tls;
