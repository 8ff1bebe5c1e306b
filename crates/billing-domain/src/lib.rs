//! What a contract bills, as plain values: periods, rating, linking, documents. No database, no server, no clock.
//!
//! Start with a [`catalog::Pricing`], agree on [`contract::terms::ProductTerms`], put them in a
//! [`contract::Contract`], and ask [`document::totals::bill`] what a period costs:
//!
//! ```
//! use billing_domain::calendar::{Timestamp, parse_date};
//! use billing_domain::catalog::*;
//! use billing_domain::contract::ContractProduct;
//! use billing_domain::contract::terms::{ProductTerms, RequestedProduct};
//! use billing_domain::document::linking::share_for_usage;
//! use billing_domain::document::totals::{Documented, RatedShare, UsageFacts, bill, usage_key};
//! use billing_domain::money::{Currency, Percentage, Price};
//! use billing_domain::quantity::Quantity;
//! use billing_domain::refs::*;
//! use billing_domain::text::Line;
//! use billing_domain::usage::UsageTotal;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let at = Timestamp::parse("2026-01-01T00:00:00Z")?;
//! let calls = UsageProduct {
//!     usage_product_ref: UsageProductRef::parse("calls")?,
//!     profile: UsageProductProfile { name: Line::parse("API calls")?, unit: None, aggregation: Aggregation::Sum },
//!     created_at: at,
//! };
//! let pricing = Pricing {
//!     pricing_ref: PricingRef::parse("api")?,
//!     content: PricingContent {
//!         name: Line::parse("API")?,
//!         currency: Currency::from_code("EUR")?,
//!         minimum_fee: None,
//!         line_items: vec![LineItem {
//!             id: LineItemId::parse("calls")?,
//!             name: Line::parse("Calls")?,
//!             charge: Charge::Usage(UsageCharge {
//!                 usage_product_ref: calls.usage_product_ref.clone(),
//!                 price: UsagePrice::PerUnit { unit_price: Price::parse("0.0025")? },
//!                 included_quantity: Quantity::ZERO,
//!                 prepaid_quantity: None,
//!                 minimum_amount: None,
//!                 maximum_amount: None,
//!             }),
//!         }],
//!     },
//!     created_at: at,
//! };
//! let request = RequestedProduct {
//!     pricing_ref: pricing.pricing_ref.clone(),
//!     billing_start_date: parse_date("2026-01-01")?,
//!     billing_end_date: parse_date("2026-12-31")?,
//!     line_items: None,
//!     entity_ref: None,
//!     billing_cycle: None,
//!     issue_day: None,
//!     payment_time: None,
//!     tax: Some(Percentage::parse("19")?),
//!     discount: Some(Percentage::parse("10")?),
//!     net_terms: None,
//!     note: None,
//!     payment: Default::default(),
//! };
//! let terms = ProductTerms::agree(request, &pricing, &[calls], EntityRef::parse("default")?)?;
//! let product = ContractProduct::new(ProductNo(0), terms);
//!
//! // 12,345 calls in January, at 0.0025: 30.8625, rounded once.
//! let contract_ref = ContractRef::from_uuid(uuid::Uuid::from_u128(1));
//! let january = product.period_at(parse_date("2026-01-20")?).ok_or("covered")?;
//! let event = EventRef::from_uuid(uuid::Uuid::from_u128(2));
//! let used = UsageTotal::ZERO.plus(at, event, Quantity::parse("12345")?)?;
//! let usage = UsageFacts::new([(usage_key(contract_ref, &january, &UsageProductRef::parse("calls")?), used)]);
//! let share = RatedShare {
//!     share: share_for_usage(&product, january),
//!     discount_rate: Percentage::parse("10")?,
//!     tax_rate: Percentage::parse("19")?,
//! };
//! let invoice = bill(contract_ref, pricing.content.currency, &[share], &usage, &Documented::nothing())?;
//! assert_eq!(invoice.sub_total.to_string(), "30.86 EUR");
//! assert_eq!(invoice.total_discount.to_string(), "3.09 EUR");
//! assert_eq!(invoice.total_tax.to_string(), "5.28 EUR");
//! assert_eq!(invoice.total.to_string(), "33.05 EUR");
//! # Ok(())
//! # }
//! ```
//!
//! The `mocks` feature gives a `mockall` mock of every port.

pub mod access;
pub mod calendar;
pub mod catalog;
pub mod contract;
pub mod decimal;
pub mod document;
pub mod format;
pub mod idempotency;
pub mod matching;
pub mod money;
pub mod page;
pub mod party;
pub mod patch;
pub mod ports;
pub mod quantity;
pub mod rating;
pub mod refs;
pub mod report;
pub mod summary;
pub mod text;
pub mod usage;
pub mod violation;
