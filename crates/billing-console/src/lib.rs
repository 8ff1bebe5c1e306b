//! The console's pages: HTML of what the interface answers, for administrators with a browser.
//!
//! A page is a pure function of answers, as JSON, and of where it stands: whatever a page shows can be asked for over the
//! interface, too, and each page says with which call. Nothing here knows a use case, a session or a request. Pages work without
//! scripts.

mod answer;
mod chart;
mod contract;
mod customer;
mod document;
mod event;
mod figure;
mod form;
mod frame;
mod home;
mod input;
mod list;
mod log_in;
mod parts;
mod pricing;
mod start;
mod thing;
mod usage;

pub use answer::At;
pub use contract::{ContractAnswers, contract};
pub use customer::{CustomerAnswers, customer};
pub use document::{DocumentAnswers, document};
pub use event::event;
pub use form::{Field, Form, Group, form};
pub use frame::{Call, Crumb, Frame, Notice, ROOT, STYLE, STYLE_PATH, page, problem};
pub use home::{Counted, HomeAnswers, UsageToday, home};
pub use input::InputKind;
pub use list::{Column, Filter, Listing, Neighbours, Part, Shown, found, list};
pub use log_in::{LogIn, log_in};
pub use parts::{href, query};
pub use pricing::{PricingAnswers, pricing, quantities};
pub use start::{FirstCall, Start, Step, Waited, first_call, start, wait};
pub use thing::{GeneratedKey, generated_key, keys, thing};
pub use usage::{Explored, Slot, Span, UsageAnswers, usage};

pub mod listings;
