//! Pages for people: the console for administrators, and the reference of the operations.
//!
//! `pages` asks the interface through a [`Gateway`](billing_api::console::Gateway) for the data of a page. The other modules
//! render it: pure functions of responses as JSON. All data of a page is available through the API, and each page lists the
//! API calls. This crate knows no connections or cookies. Pages work without scripts; a small script improves them.

mod account;
mod assets;
mod audit;
mod bulk;
mod calculations;
mod chart;
mod charts_time;
mod clock;
mod conditions;
mod contract;
mod contract_tasks;
mod countries;
mod credit;
mod customer;
mod document;
mod document_credit;
mod effects;
mod event;
mod figure;
mod filters;
mod form;
mod format;
mod frame;
mod home;
mod import;
mod import_fields;
mod input;
mod keys;
mod limits;
mod list;
mod log_in;
mod logo;
mod pages;
mod parts;
mod price_table;
mod pricing;
mod reference;
mod roles;
mod run;
mod start;
mod team;
mod thing;
mod usage;
mod webhooks;
mod wizard;

pub use account::{AccountAnswers, Enrollment, account, confirmation, enrolled, recovery_codes};
pub use assets::{Asset, SCRIPT, STYLE};
pub use billing_api::json_view::{JsonAnswer, JsonView};
pub use bulk::{BulkPage, BulkRow, Selection, bulk_preview, bulk_result};
pub use contract::{ContractAnswers, contract, has_quantity, is_fixed, price, product_title, quantity_on};
pub use contract_tasks::{ON_DATE, TaskField, TaskFieldKind, TaskForm, task_choice, task_form};
pub use countries::country_choice;
pub use credit::{CreditAnswers, GrantAnswers, grant};
pub use customer::{CustomerAnswers, StatementAnswers, customer, statement};
pub use document::{DocumentAnswers, document};
pub use effects::{ACCEPTED, AGAIN, CONFIRMED, GRANT_NAME, MAX_CREDITS, Preview, is_seen, preview};
pub use event::event;
pub use filters::{ListFilters, NamedPeriod, PeriodFilters, period_filters, selected_part};
pub use form::{Field, Form, Group, Item, LIVE, List, RESIZE, Suggestions, form, was};
pub use format::{FORMAT_FIELDS, FormatEditor, FormatField, format_editor, format_fields};
pub use frame::{Call, Crumb, CurrentUser, Frame, Notice, ROOT, SandboxBar, apart, framed, page, problem};
pub use home::{ChartMonth, Counted, HomeAnswers, UsageMonths, home, usage_months};
pub use import::{
    IMPORT_PATH, PendingFile, format_of, import, import_check, import_columns, import_form, import_result, import_undo,
    undone_documents, usual_field,
};
pub use import_fields::{
    COLUMN_OF, COLUMN_QUESTIONS, ColumnQuestion, ON_EVERY_LINE, OpenQuestion, ReadField, import_fields, import_questions,
    missing_fields, open_questions, read_fields,
};
pub use input::{InputKind, NAME_FIELDS};
pub use keys::{GeneratedKey, KeyForm, generated_key, keys};
pub use limits::LimitAnswers;
pub use list::{CellFormat, Column, Filter, ListPage, Listing, PageLinks, View, found, headings, list, row};
pub use log_in::{LogIn, Step, log_in};
pub use logo::{LogoPage, logo};
pub use pages::Pages;
pub use parts::{amount_text, count_text, href, query, unit_of, with_digits, with_instants};
pub use price_table::{LABEL, PriceTable, add_price};
pub use pricing::{PricePreview, PricingAnswers, counts_all_events, price_preview, pricing, quantities};
pub use reference::key_calls;
pub use roles::{RoleOperation, RolePage, role};
pub use run::{MonthBefore, billing_preview, billing_run};
pub use start::{FirstCall, FirstStep, Start, Waited, first_call, start, wait};
pub use team::{Invitation, invited, team};
pub use thing::{FREE_CREDIT, TextKind, ThingAction, thing};
pub use usage::{ChartBucket, Explored, Span, UsageAnswers, usage, usage_lately, usage_sums};
pub use webhooks::{WebhookAnswers, WebhookForm, delivered, webhook, webhook_form, webhook_secret};
pub use wizard::{
    PREVIEWED, WizardOption, WizardPage, WizardPreview, WizardStep, wizard_customers, wizard_preview, wizard_pricings,
    wizard_term,
};

pub mod listings;
