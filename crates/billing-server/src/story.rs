//! The sample data of a sandbox: thirteen months of three customers, so that a newcomer sees charts, overdue invoices, a correction, seats
//! that changed, and an amount that reached its maximum. The calls are those of the API, and the clock is advanced as by a request.

use billing_api::job::{JobWork, Operation, Received, open};
use billing_api::operation::Described;
use billing_api::operations::{ChangeQuantity, CreateContract, CreateCustomer, CreatePricing, CreateUsageProduct, RecordPayment};
use billing_api::problem::Problem;
use billing_api::query::Query;
use billing_application::documents::{DocumentQuery, DocumentView, list_documents};
use billing_application::sandbox::{AdvanceRequest, advance_clock};
use billing_application::usage::{
    Atomicity, NO_ANSWER, NamedCustomer, NamedUsageProduct, NewUsageEvent, OnConflict, record_usage,
};
use billing_application::{Services, UseCase, read, run};
use billing_domain::access::Principal;
use billing_domain::calendar::{Date, TimeZone, Timestamp, plus_days, plus_months};
use billing_domain::document::DocumentKind;
use billing_domain::page::PageRequest;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, OrganizationId, UsageProductRef};
use serde_json::{Value, json};

use crate::failure::{CommandError, CommandResult};
use crate::sample::{SampleAccess, make_key, month_of};

/// The number of months before the present one.
const MONTHS: i64 = 13;
/// The days of a month on which usage is reported, from 0.
const DAYS: [u32; 6] = [2, 7, 12, 17, 22, 27];
/// The month and day on which usage of an invoiced month is reported late.
const LATE: (i64, u32) = (6, 17);
/// The first month whose invoices one customer does not pay.
const UNPAID_SINCE: i64 = 10;

/// Returns the instant at which the clock of a sandbox with sample data begins, for one that ends at `now`.
pub(crate) fn begins_at(now: Timestamp) -> Timestamp {
    TimeZone::UTC.start_of_day(plus_months(month_of(now), -MONTHS))
}

/// The caller of the story.
struct Caller<'s> {
    services: &'s Services,
    principal: Principal,
}

/// Creates the catalog, lets thirteen months pass up to `until`, and returns an API key.
pub(crate) fn tell(services: &Services, organization: OrganizationId, until: Timestamp) -> CommandResult<SampleAccess> {
    let caller = Caller { services, principal: Principal::of_command_line(organization) };
    let first = month_of(services.now());
    let contract_ref = caller.agree(first)?;
    let items = json!([
        {"line_item_id": "seats", "quantities": [{"from": first.to_string(), "quantity": "10"}]},
        {"line_item_id": "calls"}]);
    let seats = caller.contract("globex", "team-plan", first, &items)?;
    caller.contract("initech", "data-plan", first, &Value::Null)?;
    for month in 0..=MONTHS {
        let begin = plus_months(first, month);
        if let Some(quantity) = match month {
            3 => Some(14),
            8 => Some(12),
            _ => None,
        } {
            let change =
                json!({"product_pricing_ref": "team-plan", "line_item_id": "seats", "quantity": quantity, "prorate": true});
            caller.ask::<ChangeQuantity>(&seats, &change)?;
        }
        for day in DAYS {
            let noon = TimeZone::UTC.start_of_day(plus_days(begin, day)).plus_seconds(12 * 3600);
            if noon > until {
                break;
            }
            caller.advance(noon)?;
            caller.report(month, day)?;
            if day == DAYS[2] {
                caller.pay(month)?;
            }
        }
    }
    caller.advance(until)?;
    let key = make_key(services, organization)?;
    Ok(SampleAccess { key: Some(key), contract_ref, customer_ref: "acme".to_owned(), usage_product_ref: "api-calls".to_owned() })
}

impl Caller<'_> {
    /// Carries out an operation of the API, and returns its response.
    fn ask<O: Operation + Described>(&self, reference: &str, body: &Value) -> CommandResult<Value> {
        let refused = |problem: Problem| CommandError::Failed(format!("the sample data is refused: {}", problem.detail()));
        let query = Query::of("", "").map_err(refused)?;
        let received = Received { reference, query: &query, body: Some(body), session: None };
        let job = open::<O>(received).map_err(|problem| {
            let reasons: Vec<String> =
                problem.errors().iter().map(|error| format!("{} {}", error.pointer, error.detail)).collect();
            CommandError::Failed(format!("the sample data is refused: {} {}", problem.detail(), reasons.join("; ")))
        })?;
        let use_case = <O as Described>::SPEC.use_case().map_err(refused)?;
        let view = match job.work {
            JobWork::Read(work) | JobWork::Scan(work) | JobWork::Write(work) => {
                run(self.services, &self.principal, use_case, work)?
            }
            JobWork::Services(work) => work(self.services, &self.principal)?,
        };
        let answer = (job.render)(&view).body;
        serde_json::from_slice(&answer).map_err(|error| CommandError::Failed(error.to_string()))
    }

    /// Creates the catalog, the customers, and the contract of the first customer.
    fn agree(&self, first: Date) -> CommandResult<String> {
        for (reference, name, unit) in [("api-calls", "API calls", "calls"), ("storage-gb", "Storage", "GB")] {
            let product = json!({"usage_product_ref": reference, "name": name, "unit": unit});
            self.ask::<CreateUsageProduct>("", &product)?;
        }
        let fee = |id: &str, name: &str, amount: &str| json!({"line_item_id": id, "name": name, "kind": "FIXED", "price": {"model": "FLAT", "amount": amount}});
        let tiers = json!({"model": "GRADUATED", "tiers": [
            {"up_to": 100, "unit_price": "0.10"}, {"up_to": 1000, "unit_price": "0.05"}, {"unit_price": "0.01"}]});
        let calls = json!({"line_item_id": "calls", "name": "API calls", "kind": "USAGE", "usage_product_ref": "api-calls",
            "price": tiers});
        let storage = json!({"line_item_id": "storage", "name": "Storage", "kind": "USAGE", "usage_product_ref": "storage-gb",
            "maximum_amount": "250.00", "price": {"model": "PER_UNIT", "unit_price": "0.05"}});
        for (reference, name, line_items) in [
            ("api-plan", "API plan", json!([fee("platform-fee", "Platform fee", "49.00"), calls])),
            ("team-plan", "Team plan", json!([fee("seats", "Seats", "12.00"), calls])),
            ("data-plan", "Data plan", json!([fee("data-fee", "Data fee", "20.00"), storage])),
        ] {
            let pricing = json!({"product_pricing_ref": reference, "name": name, "currency": "EUR", "line_items": line_items});
            self.ask::<CreatePricing>("", &pricing)?;
        }
        for (reference, name) in [("acme", "Acme Ltd"), ("globex", "Globex Inc"), ("initech", "Initech GmbH")] {
            self.ask::<CreateCustomer>("", &json!({"customer_ref": reference, "name": name, "tax": 19}))?;
        }
        self.contract("acme", "api-plan", first, &Value::Null)
    }

    /// Creates a contract over two years, and returns its reference.
    fn contract(&self, customer: &str, pricing: &str, first: Date, line_items: &Value) -> CommandResult<String> {
        let last = plus_months(first, 24).pred_opt().unwrap_or(first);
        let mut product = json!({"product_pricing_ref": pricing, "billing_start_date": first.to_string(),
            "billing_end_date": last.to_string(), "net_terms": 14});
        if !line_items.is_null() {
            product["line_items"] = line_items.clone();
        }
        let made = self.ask::<CreateContract>("", &json!({"customer_ref": customer, "products": [product]}))?;
        Ok(made["contract_ref"].as_str().unwrap_or_default().to_owned())
    }

    fn advance(&self, to: Timestamp) -> CommandResult<()> {
        match advance_clock(self.services, &self.principal, AdvanceRequest::whole(to))?.failed.first() {
            Some(failed) => Err(CommandError::Failed(format!("the sample data is not billed: {}", failed.problem))),
            None => Ok(()),
        }
    }

    /// Reports the usage of a day. It grows from month to month.
    fn report(&self, month: i64, day: u32) -> CommandResult<()> {
        let scale = month + 2;
        let now = self.services.now();
        let mut events = vec![
            ("acme", "api-calls", now, scale * 45 + i64::from(day) * 3),
            ("globex", "api-calls", now, scale * 20 + i64::from(day)),
            ("initech", "storage-gb", now, scale * 90 + i64::from(day) * 5),
        ];
        if (month, day) == LATE {
            events.push(("acme", "api-calls", now.plus_seconds(-60 * 86_400), 800));
        }
        let event = |(customer, product, occurred_at, quantity): (&str, &str, Timestamp, i64)| {
            let broken = |reason: &dyn std::fmt::Display| CommandError::Failed(format!("the sample data is invalid: {reason}"));
            Ok::<_, CommandError>(NewUsageEvent {
                customer: NamedCustomer::Ref(CustomerRef::parse(customer).map_err(|reason| broken(&reason))?),
                usage_product: NamedUsageProduct::Ref(UsageProductRef::parse(product).map_err(|reason| broken(&reason))?),
                occurred_at,
                is_time_of_receipt: false,
                quantity: Quantity::parse(&quantity.to_string()).map_err(|reason| broken(&reason))?,
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
        let events = events.into_iter().map(event).collect::<CommandResult<Vec<_>>>()?;
        let recorded = run(self.services, &self.principal, UseCase::RecordUsage, |cx| {
            record_usage(cx, &events, Atomicity::PerEvent, NO_ANSWER)
        })?;
        recorded.into_iter().try_for_each(|event| event.map(drop).map_err(CommandError::from))
    }

    /// Pays what is due, but for a customer who stops paying.
    fn pay(&self, month: i64) -> CommandResult<()> {
        let page = PageRequest::new(1000, 0).map_err(|reason| CommandError::Failed(reason.to_string()))?;
        let query = DocumentQuery::default();
        let documents =
            read(self.services, &self.principal, UseCase::ListDocuments, |cx| list_documents(cx, &query, page.into()))?;
        let is_paid = |document: &&DocumentView| {
            document.kind != DocumentKind::Credit && (month < UNPAID_SINCE || document.parties.customer_ref.as_str() != "initech")
        };
        for document in documents.items.iter().filter(is_paid) {
            let due = document.owed.amount_due.filter(|due| document.issued.is_some() && due.minor() > 0);
            if let (Some(due), Some(opened)) = (due, &document.opened) {
                self.ask::<RecordPayment>(&opened.document_ref.to_string(), &json!({"amount": due.to_decimal().to_string()}))?;
            }
        }
        Ok(())
    }
}
