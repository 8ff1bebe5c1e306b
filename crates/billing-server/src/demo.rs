//! `demo`: bills last month for three customers, from the first event to the issued documents, and explains every
//! amount. It uses the real store and use cases, in a sandbox.

use std::fmt::Write as _;

use billing_application::documents::{DocumentQuery, DocumentView, list_documents};
use billing_application::organizations::first_start;
use billing_application::sandbox::{AdvanceRequest, ClockAdvance, advance_clock};
use billing_application::usage::{
    Atomicity, NO_ANSWER, NamedCustomer, NamedUsageProduct, NewUsageEvent, OnConflict, record_usage,
};
use billing_application::{Services, UseCase, read, run};
use billing_domain::access::Principal;
use billing_domain::calendar::{Date, TimeZone, Timestamp, plus_days, plus_months};
use billing_domain::catalog::UsagePrice;
use billing_domain::document::lines::DocumentLine;
use billing_domain::page::PageRequest;
use billing_domain::ports::Clock as _;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, UsageProductRef};
use billing_storage::{Database, DatabaseOptions, DatabaseUrl};

use crate::composition;
use crate::environment::SystemClock;
use crate::failure::{CommandError, CommandResult};
use crate::sample::{call_tiers, contract, customer, fixed, line, month_of, price, pricing, usage, usage_product};
use crate::say;
use crate::settings::DemoSettings;

/// The number of hours after the end of the month when the demo runs billing: later than the entity's grace period.
const RUN_AFTER_HOURS: i64 = 3;

/// A customer's usage of a product: the quantity on each day of the month.
struct UsagePattern {
    customer: &'static str,
    product: &'static str,
    /// The quantity of a day, counted from 0.
    of_day: fn(u32) -> String,
}

const HABITS: [UsagePattern; 4] = [
    UsagePattern { customer: "acme", product: "api-calls", of_day: |day| (40 + 7 * (day % 5)).to_string() },
    UsagePattern { customer: "globex", product: "storage-gb", of_day: |day| format!("{}.25", 100 + 3 * day) },
    UsagePattern { customer: "globex", product: "api-calls", of_day: |day| (day % 3 * 200).to_string() },
    UsagePattern { customer: "initech", product: "storage-gb", of_day: |day| format!("0.{:03}", 125 + day) },
];

pub(crate) fn demo(settings: DemoSettings) -> CommandResult<()> {
    let temporary = std::env::temp_dir().join(format!("usage-billing-demo-{}", uuid::Uuid::now_v7()));
    let file = settings.keep.clone().unwrap_or_else(|| temporary.join("demo.sqlite3"));
    if file.exists() {
        return Err(CommandError::Setting(format!("--keep must name a new file: {} exists", file.display())));
    }
    let url = DatabaseUrl::parse(&format!("sqlite://{}", file.display()))?;
    let outcome = bill_a_month(&url);
    if settings.keep.is_none() {
        let _ = std::fs::remove_dir_all(&temporary);
    }
    outcome
}

fn bill_a_month(url: &DatabaseUrl) -> CommandResult<()> {
    let database = Database::open(url, DatabaseOptions::default())?;
    database.migrate().map_err(CommandError::store)?;
    let this_month = month_of(SystemClock::default().now());
    let last_month = plus_months(this_month, -1);
    composition::begin_sandbox(&database, None, TimeZone::UTC.start_of_day(last_month))?;
    let services = &composition::offline(database)?;
    let principal = prepare(services, last_month)?;
    say(&format!("Three customers, one month: {last_month} to {}.\n", this_month.pred_opt().unwrap_or(last_month)))?;

    let mut events = 0;
    let mut day = last_month;
    for index in 0.. {
        if day >= this_month {
            break;
        }
        advance(services, &principal, TimeZone::UTC.start_of_day(day).plus_seconds(12 * 3600))?;
        events += report_day(services, &principal, index)?;
        day = plus_days(day, 1);
    }
    say(&format!("Reported {events} usage events. Each event was billed on its invoice in the same request.\n"))?;

    let advanced = advance(services, &principal, TimeZone::UTC.start_of_day(this_month).plus_seconds(RUN_AFTER_HOURS * 3600))?;
    if let Some(failed) = advanced.failed.first() {
        return Err(CommandError::Failed(format!("contract {} could not be billed: {}", failed.contract_ref, failed.problem)));
    }
    let page = PageRequest::new(100, 0).map_err(|reason| CommandError::Failed(reason.to_string()))?;
    let query = DocumentQuery::default();
    let documents = read(services, &principal, UseCase::ListDocuments, |cx| list_documents(cx, &query, page.into()))?;
    for document in documents.items {
        say(&shown(&document)?)?;
    }
    Ok(())
}

/// Moves the clock of the demo's sandbox.
fn advance(services: &Services, principal: &Principal, to: Timestamp) -> CommandResult<ClockAdvance> {
    Ok(advance_clock(services, principal, AdvanceRequest::whole(to))?)
}

/// Creates the demo's catalog and contracts.
fn prepare(services: &Services, start: Date) -> CommandResult<Principal> {
    let password = services.keys.new_secret().map_err(|error| CommandError::Failed(error.to_string()))?;
    let first = first_start(services, &line("demo@example.com")?, &password)?;
    let first = first.ok_or_else(|| CommandError::Failed("the database of the demo is not empty".to_owned()))?;
    let principal = Principal::of_command_line(first.organization.id);
    let p = &principal;
    usage_product(services, p, "api-calls", "API calls", "calls")?;
    usage_product(services, p, "storage-gb", "Storage", "GB")?;
    let calls = usage("calls", "API calls", "api-calls", call_tiers()?)?;
    let storage = usage("storage", "Storage", "storage-gb", UsagePrice::PerUnit { unit_price: price("0.0235")? })?;
    pricing(
        services,
        p,
        "api-plan",
        "API plan",
        "EUR",
        None,
        vec![fixed("platform-fee", "Platform fee", "49.00")?, calls.clone()],
    )?;
    pricing(services, p, "scale-plan", "Scale plan", "USD", None, vec![storage.clone(), calls])?;
    pricing(services, p, "starter-plan", "Starter plan", "EUR", Some("10.00"), vec![storage])?;
    customer(services, p, "acme", "Acme Ltd", Some("19"))?;
    customer(services, p, "globex", "Globex Inc", None)?;
    customer(services, p, "initech", "Initech GmbH", Some("19"))?;
    contract(services, p, "acme", "api-plan", start, None)?;
    contract(services, p, "globex", "scale-plan", start, Some("10"))?;
    contract(services, p, "initech", "starter-plan", start, None)?;
    Ok(principal)
}

/// Reports one day of every usage pattern and returns the number of events.
fn report_day(services: &Services, principal: &Principal, day: u32) -> CommandResult<usize> {
    let broken =
        |reason: &dyn std::fmt::Display| CommandError::Failed(format!("the sample data of the demo is invalid: {reason}"));
    let event = |habit: &UsagePattern| {
        Ok::<_, CommandError>(NewUsageEvent {
            customer: NamedCustomer::Ref(CustomerRef::parse(habit.customer).map_err(|reason| broken(&reason))?),
            usage_product: NamedUsageProduct::Ref(UsageProductRef::parse(habit.product).map_err(|reason| broken(&reason))?),
            occurred_at: services.now(),
            is_time_of_receipt: false,
            quantity: Quantity::parse(&(habit.of_day)(day)).map_err(|reason| broken(&reason))?,
            report_data: None,
            validations: None,
            formatted: None,
            key: None,
            on_conflict: OnConflict::Reject,
            occurred: false,
            hold_ref: None,
            import: None,
        })
    };
    let events = HABITS.iter().map(event).collect::<CommandResult<Vec<_>>>()?;
    let results = run(services, principal, UseCase::RecordUsage, |cx| record_usage(cx, &events, Atomicity::Atomic, NO_ANSWER))?;
    for result in results {
        result?;
    }
    Ok(events.len())
}

fn shown(document: &DocumentView) -> CommandResult<String> {
    let mut text = String::new();
    write_document(&mut text, document).map_err(|error| CommandError::Failed(error.to_string()))?;
    Ok(text)
}

fn write_document(text: &mut String, document: &DocumentView) -> std::fmt::Result {
    let number = document.opened.as_ref().map(|opened| opened.number.to_string()).unwrap_or_default();
    writeln!(text, "{number}  {}  {}  ({:?})", document.parties.customer_name, document.period, document.state)?;
    for product in &document.content.products {
        for line in &product.lines {
            write!(text, "  {:<16} {:>14}", line.name.as_str(), line.amount.to_string())?;
            for (place, step) in steps(line).into_iter().enumerate() {
                let lead = if place == 0 { "   ".to_owned() } else { format!("\n{:36}", "") };
                write!(text, "{lead}{step}")?;
            }
            writeln!(text)?;
        }
        if product.discount.minor() != 0 {
            let rate = product.rates.discount.as_decimal();
            writeln!(text, "  {:<16} {:>14}   {rate} % of {}", "Discount", format!("-{}", product.discount), product.sub_total)?;
        }
    }
    for tax in document.content.taxes.iter().filter(|tax| tax.amount.minor() != 0) {
        writeln!(text, "  {:<16} {:>14}   {} % of {}", "Tax", tax.amount.to_string(), tax.treatment.rate.as_decimal(), tax.base)?;
    }
    writeln!(text, "  {:<16} {:>14}", "Total", document.content.total.to_string())
}

/// Explains a line's amount by the steps of its calculation.
fn steps(line: &DocumentLine) -> Vec<String> {
    let unit = line.usage.as_ref().and_then(|usage| usage.unit.as_ref()).map_or("", |unit| unit.as_str());
    let steps = line.calculation.as_ref().map(|calculation| calculation.steps(line.amount.currency())).unwrap_or_default();
    steps.iter().map(|step| step.in_english(unit)).collect()
}
