//! Simulations of billing: terms, steps and a day in, documents out. Use it to see what a contract bills and to test billing
//! rules. It needs no store, no server and no clock.
//!
//! ```
//! use billing_domain::simulate::{Simulation, graduated, terms};
//!
//! # fn main() -> Result<(), billing_domain::refusal::Refusal> {
//! let prices = graduated([(Some("100"), "0.10"), (Some("1000"), "0.05"), (None, "0.01")]);
//! let bill = Simulation::new()
//!     .contract(terms("2026-01-15", "2026-12-31").fixed("platform", "49.00").usage("calls", prices).tax("19"))
//!     .event("2026-02-10T12:00:00Z", "calls", "1500")
//!     .event("2026-03-02T09:00:00Z", "calls", "200")
//!     .until("2026-03-05")?;
//! let january = &bill.documents()[0];
//! assert_eq!(january.to_string(), "UB-INV-1 ISSUED 2026-01-15…2026-01-31: 31.98 EUR");
//! assert_eq!(bill.documents()[1].total().to_string(), "129.71 EUR");
//! assert_eq!(bill.documents()[2].to_string(), "UB-INV-3 DRAFT 2026-03-01…2026-03-31: 76.16 EUR");
//! # Ok(())
//! # }
//! ```
//!
//! Later events are single steps, and a step can be rejected:
//!
//! ```
//! use billing_domain::simulate::{Simulation, item, terms};
//!
//! # fn main() -> Result<(), billing_domain::refusal::Refusal> {
//! let cheaper = item("fee").price("90.00");
//! let bill = Simulation::new()
//!     .contract(terms("2026-01-01", "2026-12-31").pricing("plan").fixed("fee", "100.00"))
//!     .on("2026-03-10")
//!     .edit(|contract| contract.effective_from("2026-02-01").product("plan", |plan| plan.line_item(cheaper)))
//!     .on("2026-04-10")
//!     .cancel_on("2025-01-01")
//!     .refused("out_of_range")
//!     .until("2026-04-30")?;
//! assert_eq!(bill.document("UB-CRD-1").to_string(), "UB-CRD-1 ISSUED 2026-02-01…2026-02-28: 10.00 EUR");
//! assert_eq!(bill.owed().to_string(), "280.00 EUR");
//! # Ok(())
//! # }
//! ```

mod accounts;
mod bill;
mod change;
mod credit;
mod document;
mod event;
mod events;
mod life;
mod money;
mod party;
mod price;
mod setup;
mod simulation;
mod step;
mod terms;
mod value;

pub use bill::Bill;
pub use change::{ContractChange, QuantityEdit, quantity_of};
pub use credit::{CreditTerms, credit};
pub use document::{SimulatedDocument, SimulatedLine, overview};
pub use event::EventChange;
pub use party::{ChargeChange, ChargeTerms, CustomerChange, DefaultTax, EntityChange, charge, customer, default_tax, entity};
pub use price::{PriceList, Prices, SimulatedTier, flat, graduated, package, per_unit, percentage, pricing, volume};
pub use simulation::Simulation;
pub use step::StepBuilder;
pub use terms::{LineItemTerms, ProductEdit, Terms, item, product, terms};
pub use value::{Given, SimulatedValue, StepTime};
