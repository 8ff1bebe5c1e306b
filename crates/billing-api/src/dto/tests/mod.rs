//! Request bodies: violations by pointer and code. Response bodies: their JSON.

mod access;
mod billing;
mod contract_changes;
mod contract_lines;
mod contract_view;
mod contracts;
mod documents;
mod events;
mod formats;
mod input;
mod legal;
mod parties;
mod pricings;
mod schemas;

use billing_application::catalog::{CustomerView, EntityView, TaxBasisPatch, TaxPatch, WantedCustomer, WantedEntity};
use billing_application::contracts::ContractRequest;
use billing_application::formats::{FormatContent, NamedFormat, TestedFormat};
use billing_application::keys::KeyRequest;
use billing_application::usage::EventUpdate;
use billing_domain::catalog::{PricingContent, UsageProductProfile};
use billing_domain::contract::amendment::{CancelAt, ContractEdit, QuantityChange};
use billing_domain::contract::terms::QuantityStep;
use billing_domain::format::UsageFormat;
use billing_domain::party::bank::BankAccountProfile;
use billing_domain::party::{Customer, CustomerProfile, Entity, EntityProfile};
use billing_domain::patch::Changes;
use billing_domain::refs::{BankAccountRef, CustomerRef, EntityRef, FormatRef, PricingRef, UsageProductRef};
use billing_domain::violation::Violations;
use billing_testkit::fixtures;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::bank_accounts::{BankAccountBody, BankAccountEditBody};
use super::billing::BillingRunBody;
use super::contract_changes::{AmendmentOptions, ContractCancelBody, ContractQuantityBody, ContractResumeBody};
use super::contracts::{ContractBody, ContractEditBody};
use super::customers::{CustomerBody, CustomerEditBody};
use super::declare::{read, read_optional};
use super::entities::{EntityBody, EntityEditBody};
use super::events::EventUpdateBody;
use super::formats::{FormatBody, FormatEditBody, FormatTestBody};
use super::formatted::{FormattedEventBody, FormattedUpdateBody};
use super::keys::KeyBody;
use super::pricings::{PricingBody, PricingEditBody};
use super::usage_products::{UsageProductBody, UsageProductEditBody};

type Read<T> = Result<T, Violations>;

fn contract(body: &Value) -> Read<ContractRequest> {
    read::<ContractBody>(body).map(|read| read.request)
}

fn contract_edit(body: &Value) -> Read<(Option<CustomerRef>, ContractEdit, AmendmentOptions)> {
    read::<ContractEditBody>(body).map(|read| (read.customer_ref.clone(), read.edit(), read.options))
}

fn quantity_change(body: &Value) -> Read<(QuantityChange, AmendmentOptions)> {
    read::<ContractQuantityBody>(body).map(|read| (read.change, read.options))
}

fn cancel(body: Option<&Value>) -> Read<(CancelAt, AmendmentOptions)> {
    read_optional::<ContractCancelBody>(body).map(|read| (read.ends(), read.options))
}

fn resume(body: Option<&Value>) -> Read<AmendmentOptions> {
    read_optional::<ContractResumeBody>(body).map(|read| read.options)
}

fn key(body: Option<&Value>) -> Read<KeyRequest> {
    read_optional::<KeyBody>(body).map(|read| read.request)
}

fn billing_run(body: Option<&Value>) -> Read<bool> {
    read_optional::<BillingRunBody>(body).map(|read| read.dry_run)
}

fn event_update(body: &Value) -> Read<(String, EventUpdate)> {
    read::<EventUpdateBody>(body).map(|read| (read.event_ref.clone(), read.update()))
}

fn formatted_event(body: &Value) -> Read<(Option<NamedFormat>, String)> {
    read::<FormattedEventBody>(body).map(|read| (read.format.named(), read.event))
}

fn formatted_update(body: &Value) -> Read<(String, Option<NamedFormat>, String)> {
    read::<FormattedUpdateBody>(body).map(|read| (read.event_ref, read.format.named(), read.event))
}

fn format_test(body: &Value) -> Read<(TestedFormat, String)> {
    read::<FormatTestBody>(body).map(|read| read.tested().expect("a format to test"))
}

fn customer(body: &Value) -> Read<(Option<CustomerRef>, CustomerProfile)> {
    let read: CustomerBody = read(body)?;
    Ok((read.customer_ref, customer_of(read.wanted)?))
}

/// Returns the customer that a request describes, on [`TODAY`].
fn customer_of(wanted: WantedCustomer) -> Read<CustomerProfile> {
    let mut profile = wanted.profile;
    profile.taxes = wanted.tax.apply(&profile.taxes, fixtures::date(TODAY))?;
    profile.check()?;
    Ok(profile)
}

fn entity(body: &Value) -> Read<(Option<EntityRef>, WantedEntity)> {
    let read: EntityBody = read(body)?;
    Ok((read.entity_ref, entity_of(read.wanted)?))
}

/// Returns the entity that a request describes, on [`TODAY`].
fn entity_of(mut wanted: WantedEntity) -> Read<WantedEntity> {
    let tax = TaxPatch::from(std::mem::take(&mut wanted.tax));
    wanted.profile.taxes = tax.apply(&wanted.profile.taxes, fixtures::date(TODAY))?;
    wanted.profile.check()?;
    Ok(wanted)
}

fn usage_product(body: &Value) -> Read<(Option<UsageProductRef>, UsageProductProfile)> {
    read::<UsageProductBody>(body).map(|read| (read.usage_product_ref, read.profile))
}

fn pricing(body: &Value) -> Read<(Option<PricingRef>, PricingContent)> {
    read::<PricingBody>(body).map(|read| (read.product_pricing_ref, read.content))
}

fn format(body: &Value) -> Read<(Option<FormatRef>, FormatContent)> {
    read::<FormatBody>(body).map(|read| (read.format_ref, read.content))
}

fn bank_account(body: &Value) -> Read<(BankAccountRef, BankAccountProfile)> {
    let read: BankAccountBody = read(body)?;
    read.profile.check()?;
    Ok((read.billing_account_id, read.profile))
}

/// The current date.
const TODAY: &str = "2026-06-15";

/// Returns a customer as in responses.
fn shown_customer(customer: &Customer) -> CustomerView {
    CustomerView { customer: customer.clone(), tax: customer.profile.taxes.on(fixtures::date(TODAY)), warnings: Vec::new() }
}

/// Returns an entity as in responses.
fn shown_entity(entity: &Entity, is_default: bool) -> EntityView {
    EntityView { entity: entity.clone(), is_default, tax: entity.profile.taxes.on(fixtures::date(TODAY)) }
}

/// Applies an edit.
fn edited<T: Clone + 'static>(present: &T, changes: Read<Changes<T>>) -> Read<T> {
    let mut value = present.clone();
    changes?.apply(&mut value);
    Ok(value)
}

fn customer_edit(body: &Value, reference: &CustomerRef, present: &CustomerProfile) -> Read<CustomerProfile> {
    let present = WantedCustomer::from(present.clone());
    customer_of(edited(&present, CustomerEditBody::read(body, reference))?)
}

fn entity_edit(body: &Value, reference: &EntityRef, present: &EntityProfile) -> Read<WantedEntity> {
    let present = WantedEntity { profile: present.clone(), is_default: None, tax: TaxBasisPatch::default() };
    entity_of(edited(&present, EntityEditBody::read(body, reference))?)
}

fn usage_product_edit(body: &Value, reference: &UsageProductRef, present: &UsageProductProfile) -> Read<UsageProductProfile> {
    edited(present, UsageProductEditBody::read(body, reference))
}

fn pricing_edit(body: &Value, reference: &PricingRef, present: &PricingContent) -> Read<PricingContent> {
    edited(present, PricingEditBody::read(body, reference))
}

fn format_edit(body: &Value, reference: &FormatRef, present: &UsageFormat) -> Read<FormatContent> {
    let present = FormatContent { name: present.name.clone(), mapping: present.mapping.clone() };
    edited(&present, FormatEditBody::read(body, reference))
}

fn bank_account_edit(body: &Value, reference: &BankAccountRef, present: &BankAccountProfile) -> Read<BankAccountProfile> {
    let made = edited(present, BankAccountEditBody::read(body, reference))?;
    made.check()?;
    Ok(made)
}

/// Parses JSON.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Serializes JSON.
fn shown(answer: &impl Serialize) -> String {
    serde_json::to_string_pretty(answer).expect("a serializable response")
}

/// Serializes a response, which must fit its schema in the OpenAPI document.
fn presented<T: Serialize + ToSchema>(answer: &T) -> String {
    schemas::assert_fits(answer);
    shown(answer)
}

/// Parses a response as a request body.
fn posted_back(answer: &impl Serialize) -> Value {
    json(&shown(answer))
}

/// Builds quantities with their first days.
fn steps(rows: &[(&str, &str)]) -> Vec<QuantityStep> {
    let step =
        |(from, quantity): &(&str, &str)| QuantityStep { from: fixtures::date(from), quantity: fixtures::quantity(quantity) };
    rows.iter().map(step).collect()
}

/// Returns the violations as lines of pointer and code; empty for a valid body.
fn refusals<T>(result: Result<T, Violations>) -> Vec<String> {
    let found = result.err().unwrap_or_default();
    found.iter().map(|violation| format!("/{} {}", violation.path.join("/"), violation.code)).collect()
}

/// Reads each body of a table and compares its violations.
fn check<T>(read: impl Fn(&Value) -> Result<T, Violations>, rows: &[(&str, &[&str])]) {
    for (body, expected) in rows {
        assert_eq!(refusals(read(&json(body))), *expected, "{body}");
    }
}

/// Returns a body with one field added or replaced.
fn with(body: &str, field: &str, value: &str) -> Value {
    let mut body = json(body);
    body.as_object_mut().expect("an object").insert(field.to_owned(), json(value));
    body
}

/// Sets one field of a valid body to each value of a table.
fn check_field<T>(read: impl Fn(&Value) -> Result<T, Violations>, body: &str, rows: &[(&str, &str, &[&str])]) {
    for (field, value, expected) in rows {
        assert_eq!(refusals(read(&with(body, field, value))), *expected, "{field}: {value}");
    }
}
