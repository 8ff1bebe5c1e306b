//! HTML pages of the console, rendered from API responses, for administrators with a browser.
//!
//! A page is a pure function of API responses as JSON and of its place. All data of a page is available through the API,
//! and each page lists the API calls. This crate knows no use cases, sessions or requests. Pages work without scripts.

mod account;
mod chart;
mod contract;
mod customer;
mod document;
mod effects;
mod event;
mod figure;
mod form;
mod format;
mod frame;
mod home;
mod import;
mod input;
mod json_view;
mod keys;
mod list;
mod log_in;
mod parts;
mod pricing;
mod run;
mod start;
mod team;
mod thing;
mod usage;
mod webhooks;

pub use account::{AccountAnswers, Enrollment, account, confirmation, enrolled, recovery_codes};
pub use contract::{ContractAnswers, contract};
pub use customer::{CustomerAnswers, customer};
pub use document::{DocumentAnswers, document};
pub use effects::{AGAIN, CONFIRMED, Preview, is_seen, preview};
pub use event::event;
pub use form::{Field, Form, Group, Item, List, RESIZE, Suggestions, form, was};
pub use format::{FORMAT_FIELDS, FormatEditor, FormatField, format_editor, format_fields};
pub use frame::{Call, Crumb, CurrentUser, Frame, Notice, ROOT, STYLE, STYLE_PATH, apart, framed, page, problem};
pub use home::{Counted, HomeAnswers, UsageToday, home, usage_today};
pub use import::{IMPORT_PATH, PendingFile, import, import_check, import_form, import_result, import_undo, usual_field};
pub use input::InputKind;
pub use json_view::JsonView;
pub use keys::{GeneratedKey, KeyForm, generated_key, keys};
pub use list::{CellFormat, Column, Filter, ListPage, Listing, PageLinks, View, found, headings, list, row};
pub use log_in::{LogIn, Step, log_in};
pub use parts::{encoded, href, query, with_instants};
pub use pricing::{PricingAnswers, pricing, quantities};
pub use run::{billing_preview, billing_run};
pub use start::{FirstCall, FirstStep, Start, Waited, first_call, start, wait};
pub use team::{Invitation, invited, team};
pub use thing::thing;
pub use usage::{ChartBucket, Explored, Span, UsageAnswers, usage, usage_lately, usage_sums};
pub use webhooks::{WebhookAnswers, WebhookForm, delivered, webhook, webhook_form, webhook_secret};

pub mod listings;
