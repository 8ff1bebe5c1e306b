//! The setup up to the first invoice: existing objects, short forms for the missing ones, the first API call and the wait
//! for its event.

use crate::{Crumb, FirstCall, FirstStep, InputKind, Item, Listing, Notice, Start, View, Waited, href, listings};
use billing_api::console::{FormData, PageAnswer};
use billing_api::dto::contract_view::ContractJson;
use billing_api::dto::customers::CustomerJson;
use billing_api::dto::entities::EntityJson;
use billing_api::dto::events::EventJson;
use billing_api::dto::pricings::PricingJson;
use billing_api::dto::usage_products::UsageProductJson;
use billing_api::json_view::{JsonAnswer, JsonView};
use billing_api::operation::OperationSpec;
use billing_api::operations::{
    CreateContract, CreateCustomer, CreatePricing, CreateUsageProduct, EditEntity, GenerateKey, GetDocument, GetPricing,
};
use billing_domain::calendar::{TimeZone, plus_months};
use serde_json::{Value, json};

use super::api_client::or_nothing;
use super::form_data::{field as field_of, key, query};
use super::form_fields::{self, InitialValues, ListEdits};
use super::lists::{few, listed};
use super::openapi_index::shapes;
use super::page_builder::PageBuilder;
use super::pricing_form;
use super::references;
use super::reply::{belongs_beside, caption, html};
use super::session_user::{Answered, SessionUser};
use super::short_forms::{FieldRow, FixedRow, ShortForm};
use super::suggestions;
use billing_api::problem::Problem;

/// Path segment below the root.
pub(super) const START: &str = "start";
/// Number of rejected usage counts on the waiting page.
const FEW_REFUSED: &str = "5";

/// An object that a step creates or edits through the API.
struct SetupResource {
    name: &'static str,
    title: &'static str,
    why: &'static str,
    /// The operation.
    operation: &'static OperationSpec,
    listing: &'static Listing,
    reference: &'static str,
    fields: &'static [FieldRow],
    /// Additional body values.
    fixed: &'static [FixedRow],
}

impl SetupResource {
    fn form(&self) -> ShortForm {
        ShortForm::of(self.fields, &[], self.fixed)
    }

    /// Returns the values of a submitted form with the values that have no input.
    fn completed(&self, submitted: &FormData) -> FormData {
        self.form().completed(submitted, false)
    }

    /// Returns the reference of the existing object; empty if there is none.
    fn reference_of<'f>(&self, found: &'f Value) -> &'f str {
        found[self.reference].as_str().unwrap_or_default()
    }
}

const STEPS: [SetupResource; 5] = [
    SetupResource {
        name: "entity",
        title: "Entity",
        why: "The company that issues invoices. Its time zone determines service periods.",
        operation: &EditEntity::SPEC,
        listing: &listings::ENTITIES,
        reference: "entity_ref",
        fields: &[
            ("name", "Name", "Name in the console.", true),
            ("legal_name", "Legal name", "Name on invoices, as registered.", true),
            ("address/line1", "Street and number", "", true),
            ("address/zip_code", "Postal code", "", false),
            ("address/city", "City", "", true),
            ("address/country_code", "Country", "", true),
            ("vat_id", "VAT ID", "Invoices need a VAT ID or a tax number.", false),
            ("tax_id", "Tax number", "", false),
            ("timezone", "Time zone", "Such as Europe/Berlin.", true),
            ("number_prefix", "Prefix of document numbers", "It cannot be changed after the first document.", true),
        ],
        fixed: &[],
    },
    SetupResource {
        name: "usage-product",
        title: "Usage product",
        why: "The product whose usage is counted. Events report a quantity of a usage product.",
        operation: &CreateUsageProduct::SPEC,
        listing: &listings::USAGE_PRODUCTS,
        reference: "usage_product_ref",
        fields: &[
            ("name", "Name", "Such as API calls.", true),
            ("usage_product_ref", "Reference", references::NEW_REFERENCE, false),
            ("unit", "Unit", "Name of one unit, such as call.", false),
        ],
        fixed: &[],
    },
    SetupResource {
        name: "pricing",
        title: "Pricing",
        why: "A unit price and an optional monthly fee. The forms for other price models also offer tiers and packages.",
        operation: &CreatePricing::SPEC,
        listing: &listings::PRICINGS,
        reference: "product_pricing_ref",
        fields: &[
            ("name", "Name", "Name on invoices.", true),
            ("currency", "Currency", "Three letters, such as EUR.", true),
            ("line_items/0/usage_product_ref", "Usage product", "Product whose usage is billed.", true),
            ("line_items/0/price/unit_price", "Unit price", "Such as 0.05.", true),
            ("line_items/1/price/amount", "Fee per month", "Default: no fee.", false),
        ],
        fixed: &[
            ("line_items/0/kind", "USAGE", "line_items/0/usage_product_ref"),
            ("line_items/0/price/model", "PER_UNIT", "line_items/0/usage_product_ref"),
            ("line_items/1/name", "Monthly fee", "line_items/1/price/amount"),
            ("line_items/1/kind", "FIXED", "line_items/1/price/amount"),
            ("line_items/1/price/model", "FLAT", "line_items/1/price/amount"),
        ],
    },
    SetupResource {
        name: "customer",
        title: "Customer",
        why: "The company that invoices are addressed to. Each event refers to a customer.",
        operation: &CreateCustomer::SPEC,
        listing: &listings::CUSTOMERS,
        reference: "customer_ref",
        fields: &[
            ("name", "Name", "Name in the console.", true),
            ("legal_name", "Legal name", "Name on invoices, as registered.", true),
            ("customer_ref", "Reference", references::NEW_REFERENCE, false),
            ("billing_address/line1", "Street and number", "", true),
            ("billing_address/zip_code", "Postal code", "", false),
            ("billing_address/city", "City", "", true),
            ("billing_address/country_code", "Country", "", true),
            ("vat_id", "VAT ID", "", false),
            ("tax", "Tax in percent", "Such as 19. A tax of 0 needs a category in the form with all fields.", false),
            ("email", "E-mail address", "For your records. The service sends no e-mail.", false),
        ],
        fixed: &[],
    },
    SetupResource {
        name: "contract",
        title: "Contract",
        why: "Assigns a pricing to the customer for a period. The contract is billed monthly.",
        operation: &CreateContract::SPEC,
        listing: &listings::CONTRACTS,
        reference: "contract_ref",
        fields: &[
            ("customer_ref", "Customer", "", true),
            ("products/0/product_pricing_ref", "Pricing", "", true),
            ("products/0/billing_start_date", "First day", "Earlier events are rejected.", true),
            ("products/0/billing_end_date", "Last day", "", true),
        ],
        fixed: &[],
    },
];

/// Loads the first existing object of a step. The page does not show the call.
async fn there(user: &SessionUser, made: &SetupResource) -> Result<Value, Problem> {
    let oldest_first = made.listing.order.map(|order| (View::ORDER, order.trim_start_matches('-')));
    let asked: Vec<(&str, &str)> = [("pageSize", "1")].into_iter().chain(oldest_first).collect();
    let mut found = few(&user.quietly(), made.listing, &asked).await?;
    let first = found.as_array_mut().filter(|found| !found.is_empty()).map(|found| found.swap_remove(0));
    Ok(first.unwrap_or(Value::Null))
}

/// Loads the existing objects of all steps.
async fn everything(user: &SessionUser) -> Result<[Value; 5], Problem> {
    let mut found = [const { Value::Null }; 5];
    for (found, made) in found.iter_mut().zip(&STEPS) {
        *found = there(user, made).await?;
    }
    Ok(found)
}

/// Returns whether a step is complete. An entity exists from the beginning, but without an address.
fn is_done(made: &SetupResource, found: &Value) -> bool {
    !found.is_null() && (made.name != "entity" || JsonView::<EntityJson>::of(found).profile().address().is_there())
}

/// Progress of the setup up to the first invoice.
pub(super) enum Progress {
    /// No step is complete.
    Nothing,
    /// Some steps are complete.
    Begun,
    /// A contract exists, so usage can be billed.
    Complete,
}

/// Returns the progress of the setup.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn progress(user: &SessionUser) -> Result<Progress, Problem> {
    let found = everything(user).await?;
    let done = STEPS.iter().zip(&found).filter(|(made, found)| is_done(made, found)).count();
    let [.., contract] = &found;
    Ok(match done {
        0 => Progress::Nothing,
        // Once a contract exists, its documents report a missing address.
        _ if !contract.is_null() => Progress::Complete,
        _ => Progress::Begun,
    })
}

/// Initial values of the forms.
struct Defaults {
    zone: TimeZone,
    found: [Value; 5],
    first: String,
    last: String,
}

impl Defaults {
    async fn of(user: &SessionUser) -> Result<Self, Problem> {
        let zone = user.zone;
        let today = zone.service_date(user.now());
        // Starts on the first of the month, so that a whole month is billed first.
        let first: String = today.to_string().chars().take(8).chain("01".chars()).collect();
        let first_day = billing_domain::calendar::parse_date(&first).unwrap_or(today);
        let last = plus_months(first_day, 12).pred_opt().unwrap_or(first_day).to_string();
        Ok(Self { zone, found: everything(user).await?, first, last })
    }

    fn value(&self, made: &SetupResource, field: &str) -> String {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let [entity, usage_product, pricing, customer, _] = &self.found;
        match (made.name, field) {
            ("entity", "timezone") => self.zone.name().to_owned(),
            ("entity", field) => entity.pointer(&format!("/{field}")).map(text).unwrap_or_default(),
            ("pricing", "line_items/0/usage_product_ref") => {
                JsonView::<UsageProductJson>::of(usage_product).usage_product_ref().to_text()
            }
            ("contract", "customer_ref") => JsonView::<CustomerJson>::of(customer).customer_ref().to_text(),
            ("contract", "products/0/product_pricing_ref") => {
                JsonView::<PricingJson>::of(pricing).product_pricing_ref().to_text()
            }
            ("contract", "products/0/billing_start_date") => self.first.clone(),
            ("contract", "products/0/billing_end_date") => self.last.clone(),
            _ => String::new(),
        }
    }
}

/// Renders the setup page, with the errors of a rejected step.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn page(user: &SessionUser, refused: Option<(&str, &FormData, &Problem)>) -> Result<String, Problem> {
    let usual = Defaults::of(user).await?;
    let next = STEPS.iter().zip(&usual.found).position(|(made, found)| !is_done(made, found));
    let mut steps: Vec<FirstStep> =
        STEPS.iter().zip(&usual.found).map(|(made, found)| step(made, found, &usual, refused)).collect();
    if let Some(next) = next {
        steps[next].suggestions = suggestions::suggestions(user, &steps[next].items, STEPS[next].listing.part).await?;
    }
    for (made, found) in STEPS.iter().zip(&usual.found) {
        user.shows(made.operation, made.reference_of(found), "");
    }
    let events = few(user, &listings::EVENTS, &[("pageSize", "1")]).await?;
    let billed = JsonView::<Vec<EventJson>>::of(&events)
        .items()
        .next()
        .map(|event| (event.related_document_numbers().to_text(), href(&["documents", &event.related_document_ref().to_text()])));
    let body = crate::start(&Start { steps, billed, form_key: user.unique() });
    let asked = query(&user.request);
    let done = field_of(&asked, "done").and_then(|name| STEPS.iter().find(|made| made.name == name));
    let done = done.map(|made| Notice::Done(format!("{} saved.", made.title)));
    Ok(PageBuilder::of("First steps", START, body).page(user, done))
}

fn step(made: &SetupResource, found: &Value, usual: &Defaults, refused: Option<(&str, &FormData, &Problem)>) -> FirstStep {
    let refused = refused.filter(|(name, ..)| *name == made.name);
    let errors = refused.map_or(&[][..], |(_, _, problem)| problem.errors());
    let value = |name: &str| match refused {
        Some((_, submitted, _)) => field_of(submitted, name).unwrap_or_default().to_owned(),
        None => usual.value(made, name),
    };
    let values: FormData = made.fields.iter().map(|(name, ..)| ((*name).to_owned(), value(name))).collect();
    let all = form_fields::items(shapes(made.operation), "", InitialValues::Said(&values), errors);
    let mut items = made.form().arranged(all).fields;
    for item in &mut items {
        if let Item::Field(field) = item
            && field.name == made.reference
        {
            field.kind = InputKind::NewReference;
        }
    }
    let others = refused.map_or_else(Vec::new, |(_, _, problem)| form_fields::others(problem, &items));
    let reference = made.reference_of(found);
    let there = is_done(made, found).then(|| {
        let name = made.listing.name_of(crate::JsonView::of(found));
        (if name.is_empty() { reference.to_owned() } else { name }, href(&[made.listing.part, reference]))
    });
    let whole = Some(match made.name {
        "entity" => href(&["edit", made.listing.part, reference]),
        _ => href(&["new", made.listing.part]),
    });
    FirstStep { name: made.name, title: made.title, why: made.why, there, items, suggestions: Vec::new(), others, whole }
}

/// Creates the object of a submitted step or shows its errors. The last step creates an API key.
///
/// # Errors
/// Returns problems that have a page of their own.
pub(super) async fn act(user: &SessionUser, name: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    if name == "key" {
        return first_call(user, submitted).await;
    }
    let made = STEPS.iter().find(|made| made.name == name).ok_or_else(Problem::unknown_route)?;
    match make(user, made, submitted).await {
        Ok(_) => Ok(super::reply::to(&format!("{}?done={name}", href(&[START])))),
        Err(problem) if belongs_beside(&problem) => {
            let page = page(user, Some((name, submitted, &problem))).await?;
            Ok(caption(problem, page))
        }
        Err(problem) => Err(problem),
    }
}

async fn make(user: &SessionUser, made: &SetupResource, submitted: &FormData) -> Answered {
    let found = there(user, made).await?;
    let reference = made.reference_of(&found);
    let completed = pricing_form::named(user, &made.completed(submitted)).await?;
    let create =
        async |completed: &FormData| user.change(made.operation, reference, key(completed), Some(body(made, completed))).await;
    if reference.is_empty() { references::created(made.reference, &completed, create).await } else { create(&completed).await }
}

/// Returns the API request body for the values of a form.
fn body(made: &SetupResource, completed: &FormData) -> Value {
    Value::Object(form_fields::body(shapes(made.operation), "", completed, None, ListEdits::Replaced))
}

/// Creates the API key and returns the first call, for the first contract and the usage product of its pricing.
async fn first_call(user: &SessionUser, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let [_, usage_product, first_pricing, _, contract] = everything(user).await?;
    let contract = JsonView::<ContractJson>::of(&contract);
    let contract_ref = contract.contract_ref().to_text();
    if contract_ref.is_empty() {
        // No contract can bill an event yet, so the setup page shows the missing steps.
        return Ok(super::reply::to(&href(&[START])));
    }
    let pricing = match contract.products().items().next() {
        Some(product) => user.quietly().get::<GetPricing>(&product.product_pricing_ref().to_text()).await?,
        None => first_pricing.into(),
    };
    let metered = pricing.view().line_items().items().map(|item| item.usage_product_ref()).find(|product| product.is_there());
    let usage_product_ref =
        metered.map_or_else(|| JsonView::<UsageProductJson>::of(&usage_product).usage_product_ref().to_text(), JsonView::to_text);
    let made = user.carry_out::<GenerateKey>("", key(submitted), Some(json!({"name": "First steps"}))).await?;
    let call = FirstCall {
        made,
        service: user.service(),
        customer_ref: contract.customer_ref().to_text(),
        usage_product_ref,
        contract_ref,
    };
    Ok(html(framed(user, "First event", crate::first_call(&call))))
}

/// Renders the page that waits for a contract's first event and then shows its invoice.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn wait(user: &SessionUser) -> Result<PageAnswer, Problem> {
    let asked = query(&user.request);
    let contract_ref = field_of(&asked, "contract_ref").unwrap_or_default().to_owned();
    let events = few(user, &listings::EVENTS, &[("contract_ref", &contract_ref), ("pageSize", "1")]).await?;
    let document_ref = JsonView::<Vec<EventJson>>::of(&events).items().next().map(|event| event.related_document_ref().to_text());
    let document = match document_ref {
        Some(reference) => or_nothing(user.get::<GetDocument>(&reference).await)?,
        None => JsonAnswer::default(),
    };
    let today = TimeZone::UTC.service_date(user.now()).to_string();
    let raw = crate::query(&[("from", &today), ("pageSize", FEW_REFUSED), ("pageNumber", "0")]);
    let refused = listed(user, &listings::REFUSED, &raw).await?.elements;
    let has_document = document.view().is_there();
    let is_looking = !has_document && field_of(&asked, "paused").is_none();
    let body = crate::wait(&Waited { document, refused, contract_ref, is_looking });
    let title = if has_document { "First invoice" } else { "Waiting for the first event" };
    Ok(PageAnswer::Page { html: framed(user, title, body), problem: None, refreshes: is_looking })
}

fn framed(user: &SessionUser, title: &str, body: maud::Markup) -> String {
    let crumbs = vec![Crumb { name: "First steps".to_owned(), href: href(&[START]) }];
    PageBuilder { crumbs, ..PageBuilder::of(title, START, body) }.page(user, None)
}

#[cfg(test)]
mod tests {
    use super::super::openapi_index::{BodyField, BodyFieldKind};
    use super::*;

    fn submitted(pairs: &[(&str, &str)]) -> FormData {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn made(name: &str) -> &'static SetupResource {
        STEPS.iter().find(|made| made.name == name).expect(name)
    }

    #[test]
    fn a_form_says_a_body_of_the_interface() {
        let pricing = [
            ("name", "Plan"),
            ("currency", "EUR"),
            ("line_items/0/usage_product_ref", "calls"),
            ("line_items/0/price/unit_price", "0.05"),
            ("line_items/1/price/amount", ""),
        ];
        let body = |name: &str, submitted: &FormData| body(made(name), &made(name).completed(submitted));
        let usage = json!({"kind": "USAGE", "usage_product_ref": "calls", "price": {"model": "PER_UNIT", "unit_price": "0.05"}});
        assert_eq!(
            body("pricing", &submitted(&pricing)),
            json!({"name": "Plan", "currency": "EUR", "line_items": [usage.clone()]})
        );
        let mut with_fee = pricing;
        with_fee[4].1 = "49";
        let fee = json!({"name": "Monthly fee", "kind": "FIXED", "price": {"model": "FLAT", "amount": "49"}});
        assert_eq!(body("pricing", &submitted(&with_fee))["line_items"], json!([usage, fee]));
        let address = submitted(&[("name", "We"), ("address/city", "Berlin"), ("address/country_code", "DE")]);
        assert_eq!(body("entity", &address), json!({"name": "We", "address": {"city": "Berlin", "country_code": "DE"}}));
    }

    #[test]
    fn every_step_changes_state_and_has_fields_of_its_body() {
        fn has(shapes: &[BodyField], names: &[&str]) -> bool {
            let [name, rest @ ..] = names else { return true };
            shapes.iter().filter(|shape| shape.name == *name).any(|shape| match &shape.says {
                BodyFieldKind::One { .. } => rest.is_empty(),
                BodyFieldKind::Parts(parts) => has(parts, rest),
                BodyFieldKind::Several(parts) => has(parts, &rest[1..]),
            })
        }
        for made in &STEPS {
            assert!(made.fields.len() <= 12, "{}", made.name);
            assert!(made.operation.changes_state(), "{}", made.operation.id);
            for (name, ..) in made.fields {
                assert!(has(shapes(made.operation), &name.split('/').collect::<Vec<_>>()), "{}: {name}", made.operation.id);
            }
        }
    }

    #[test]
    fn an_entity_without_an_address_is_a_step_that_is_still_to_be_taken() {
        assert!(!is_done(made("entity"), &json!({"entity_ref": "e", "address": null})));
        assert!(is_done(made("entity"), &json!({"entity_ref": "e", "address": {"city": "Berlin"}})));
        assert!(!is_done(made("customer"), &Value::Null));
        assert!(is_done(made("customer"), &json!({"customer_ref": "c"})));
    }
}
