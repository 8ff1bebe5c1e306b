//! The console's pages: HTML of what the interface answers, for administrators with a browser.
//!
//! A page is a pure function of answers, as JSON, and of where it stands: whatever a page shows can be asked for over the
//! interface, too, and each page says with which call. Nothing here knows a use case, a session or a request. Pages work without
//! scripts.

mod answer;
mod contract;
mod customer;
mod document;
mod event;
mod form;
mod format;
mod frame;
mod home;
mod import;
mod input;
mod list;
mod log_in;
mod parts;
mod run;
mod thing;

pub use answer::At;
pub use contract::{ContractAnswers, contract};
pub use customer::{CustomerAnswers, customer};
pub use document::{DocumentAnswers, document};
pub use event::event;
pub use form::{Field, Form, Group, form};
pub use format::{FORMAT_FIELDS, FormatEditor, FormatField, format_editor, format_fields};
pub use frame::{Call, Crumb, Frame, Notice, ROOT, STYLE, STYLE_PATH, page, problem};
pub use home::{HomeAnswers, home};
pub use import::{CarriedFile, IMPORT_PATH, import, import_check, import_form, import_result, import_undo, usual_field};
pub use input::InputKind;
pub use list::{Column, Filter, Listing, Neighbours, Part, Shown, found, list};
pub use log_in::{LogIn, log_in};
pub use parts::{href, query};
pub use run::{billing_preview, billing_run};
pub use thing::{GeneratedKey, generated_key, keys, thing};

pub mod listings;
