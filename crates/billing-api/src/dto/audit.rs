//! The audit log: its entries and how changes are rendered.

use std::collections::HashSet;

use billing_application::audit::{AuditDiff, AuditRenderer, AuditSubject, ImportFileSummary, ImportUndoSummary, RunSummary};
use billing_application::documents::DocumentView;
use billing_application::error::UseCaseError;
use billing_application::names::Named;
use billing_domain::audit::AuditEntry;
use billing_domain::calendar::Timestamp;
use billing_domain::charge::Charge;
use billing_domain::notification::Fact;
use billing_domain::notification::epoch::Epoch;
use billing_domain::party::Organization;
use billing_domain::receivables::{Application, ApplicationSource, Payment};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::administrators::AdministratorJson;
use super::bank_accounts::BankAccountJson;
use super::contract_view::ContractJson;
use super::credit::GrantJson;
use super::customers::CustomerJson;
use super::declare::answer;
use super::entities::EntityJson;
use super::enums::{AuditActionWord, AuditedKindWord, BillWithWord, DocumentKindWord, DocumentStateWord, PaymentKindWord};
use super::exchange_rates::AuditedExchangeRateJson;
use super::formats::FormatJson;
use super::keys::ApiKeyJson;
use super::limits::AuditedLimitJson;
use super::metadata::MetadataJson;
use super::notifications::notification_body;
use super::pricings::PricingJson;
use super::usage_products::UsageProductJson;
use super::values::{CurrencyCode, DateText, LineText, ProseText, TimestampText};
use super::webhooks::AuditedEndpointJson;
use super::wire::{AssignedRef, ExactNumber, NamedRef};
use crate::problem::Problem;

/// Fields that name an element of a list for readers. A reduced element has them, too.
const LABELS: [&str; 2] = ["product_name", "name"];
/// Maximum bytes of an entry's `before` and `after` values.
const MAX_TOLD_BYTES: usize = 64 * 1024;

answer! {
    /// An entry of the audit log.
    AuditEntryJson of view: Named<AuditEntry> {
        let entry = &view.item;
        let object = view.names.of(entry.kind, &entry.reference);
        /// Reference.
        audit_ref: AssignedRef = entry.audit_ref,
        /// Time of the change.
        at: TimestampText = entry.at,
        /// Author of the change: `admin:` or `api_key:` and a reference, `command_line`, `scheduler`, or `nobody` for an
        /// unauthenticated caller.
        #[schema(example = "admin:0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b")]
        actor: String = entry.author.to_string(),
        /// E-mail address of the administrator or name of the API key. Null for other authors, and for callers who are neither
        /// administrators nor owners.
        #[schema(example = "dana@example.com")]
        actor_name: Option<String> = view.names.of_actor(entry.author),
        /// Action.
        action: AuditActionWord = entry.action,
        /// Kind of the changed object.
        object_kind: AuditedKindWord = entry.kind,
        /// Reference of the changed object; the name of an organization or file, the currencies and date of an exchange
        /// rate.
        #[schema(example = "acme")]
        object_ref: String = entry.reference.clone(),
        /// Today's name of the object: the number of a document or contract, the number of the document of a payment or
        /// application, the e-mail address of an administrator, the URL of a webhook endpoint, or the name. Null if it no
        /// longer exists or has no other name than the reference.
        #[schema(example = "C-28")]
        object_name: Option<String> = object.map(|object| object.name.clone()),
        /// Customer that the object belongs to.
        customer_ref: Option<NamedRef> = object.and_then(|object| object.customer_ref.as_ref()),
        /// Name of the customer.
        customer_name: Option<LineText> = object.and_then(|object| object.customer_name.as_ref()),
        /// Previous values of the changed fields; null for a created object.
        before: Option<AuditSnapshotJson> = entry.before.as_ref(),
        /// New values of the changed fields, or all values of a created object; null for a deleted object.
        after: Option<AuditSnapshotJson> = entry.after.as_ref(),
        /// Id of the request; null if no request caused it.
        request_id: Option<String> = entry.request_id.as_ref().map(ToString::to_string),
    }
}

/// An object, or some of its fields, as recorded in the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSnapshotJson(String);

impl From<&String> for AuditSnapshotJson {
    fn from(text: &String) -> Self {
        Self(text.clone())
    }
}

impl Serialize for AuditSnapshotJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Value = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl PartialSchema for AuditSnapshotJson {
    fn schema() -> RefOr<Schema> {
        let description = "The fields of the object as in API responses, without null fields.";
        let anything = AdditionalProperties::FreeForm(true);
        ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(anything)).description(Some(description)).into()
    }
}

impl ToSchema for AuditSnapshotJson {}

answer! {
    /// An organization in the audit log.
    AuditedOrganizationJson of organization: Organization {
        /// Name.
        name: LineText = &organization.name,
        /// Entity that bills by default.
        default_entity_ref: Option<NamedRef> = organization.default_entity.as_ref(),
    }
}

answer! {
    /// A charge in the audit log.
    AuditedChargeJson of charge: Charge {
        /// Contract that the charge belongs to.
        contract_ref: AssignedRef = charge.contract_ref,
        /// Service date.
        date: DateText = charge.date,
        /// Description on documents.
        name: LineText = &charge.name,
        /// Quantity.
        quantity: ExactNumber = charge.quantity,
        /// Price per unit.
        unit_price: ExactNumber = charge.unit_price,
        /// Unit name.
        unit: Option<LineText> = charge.unit.as_ref(),
        /// Currency of the product.
        currency: CurrencyCode = charge.currency,
        /// Document that bills the charge.
        bill_with: BillWithWord = charge.bill_with,
        /// Whether the product's discount applies.
        discountable: bool = charge.discountable,
        /// Whether the charge is for a good instead of a service.
        goods: bool = charge.goods,
        /// Note, not shown on documents.
        note: Option<ProseText> = charge.note.as_ref(),
        /// Reason for the charge.
        reason: Option<ProseText> = charge.reason.as_ref(),
    }
}

answer! {
    /// A document in the audit log. The other fields are in the document itself.
    AuditedDocumentJson of view: DocumentView {
        /// Document kind.
        kind: DocumentKindWord = view.kind,
        /// State.
        state: DocumentStateWord = view.state,
        /// Date of issue.
        issue_date: Option<DateText> = view.issued.map(|issued| issued.issue_date),
        /// Due date.
        due_date: Option<DateText> = view.issued.and_then(|issued| issued.due_date),
        /// Total.
        total: ExactNumber = view.content.total,
        /// Amount written off.
        written_off_amount: ExactNumber = view.owed.written_off,
        /// Amount due.
        amount_due: Option<ExactNumber> = view.owed.amount_due,
        /// Reason for the latest write-off or its reversal.
        write_off_reason: Option<LineText> = view.write_offs.last().and_then(|write_off| write_off.reason.as_ref()),
    }
}

answer! {
    /// A payment or refund in the audit log.
    AuditedPaymentJson of payment: Payment {
        let reversal = payment.reversal.as_ref();
        /// Direction: payment or refund.
        kind: PaymentKindWord = payment.kind,
        /// Document that the payment or refund is recorded on; null for a deposit.
        document_ref: Option<AssignedRef> = payment.document_ref,
        /// Amount.
        amount: ExactNumber = payment.amount,
        /// Currency.
        currency: CurrencyCode = payment.amount.currency(),
        /// Date of payment.
        paid_date: DateText = payment.paid_date,
        /// Reference of the payer or the bank.
        reference: Option<LineText> = payment.reference.as_ref(),
        /// Payment method.
        method: Option<LineText> = payment.method.as_ref(),
        /// Metadata; omitted without keys.
        @omitted metadata: Option<MetadataJson> = Some(&payment.metadata).filter(|metadata| !metadata.is_empty()),
        /// Date of the reversal.
        reversed_date: Option<DateText> = reversal.map(|reversal| reversal.date),
        /// Reason for the reversal.
        reason: Option<LineText> = reversal.and_then(|reversal| reversal.reason.as_ref()),
    }
}

answer! {
    /// An application of a credit or payment in the audit log.
    AuditedApplicationJson of application: Application {
        let (credit, payment) = match application.from {
            ApplicationSource::Credit(credit) => (Some(credit), None),
            ApplicationSource::Payment(payment) => (None, Some(payment)),
        };
        /// Credit that the amount comes from.
        from_document_ref: Option<AssignedRef> = credit,
        /// Payment that the amount comes from.
        from_payment_ref: Option<AssignedRef> = payment,
        /// Document that the amount settles.
        to_document_ref: AssignedRef = application.to,
        /// Amount.
        amount: ExactNumber = application.amount,
    }
}

answer! {
    /// A billing run in the audit log.
    AuditedRunJson of summary: RunSummary {
        /// Numbers of the issued documents.
        issued: Vec<String> = summary.issued.iter().map(ToString::to_string),
        /// Numbers of the voided drafts.
        voided: Vec<String> = summary.voided.iter().map(ToString::to_string),
    }
}

answer! {
    /// An import of usage events in the audit log.
    AuditedFileJson of file: ImportFileSummary {
        /// Import reference.
        import_ref: AssignedRef = file.import_ref,
        /// Number of recorded events.
        recorded: u64 = file.taken.recorded,
        /// Number of recorded events that got other values.
        updated: u64 = file.taken.updated,
        /// Number of events that were already recorded.
        already_there: u64 = file.taken.already_there,
        /// Number of rejected events, and of lines that cannot be read.
        refused: u64 = file.refused,
        /// Number of lines, and of elements of lines, that the usage format skips.
        skipped: u64 = file.taken.skipped,
        /// Number of documents that recorded events were assigned to.
        documents: u64 = file.taken.documents.len() as u64,
    }
}

answer! {
    /// The reversal of an import by one request, in the audit log.
    AuditedUndoJson of file: ImportUndoSummary {
        /// Import reference.
        import_ref: AssignedRef = file.import_ref,
        /// Number of deleted events.
        deleted: u64 = file.deleted,
        /// Number of events that were already deleted.
        already_deleted: u64 = file.already_deleted,
        /// Number of events that could not be deleted.
        refused: u64 = file.refused,
    }
}

/// Renders objects for the audit log as the API returns them.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonAuditRenderer;

impl AuditRenderer for JsonAuditRenderer {
    fn render_diff(&self, before: Option<AuditSubject<'_>>, after: Option<AuditSubject<'_>>) -> Option<AuditDiff> {
        let (before, after) = match (before.map(shown), after.map(shown)) {
            (Some(before), Some(after)) => difference(&before, &after)?,
            (before, after) => (before.map(without_null), after.map(without_null)),
        };
        Some(AuditDiff { before: before.map(|before| bounded(&before)), after: after.map(|after| bounded(&after)) })
    }

    fn reason(&self, error: &UseCaseError) -> (&'static str, String) {
        let problem = Problem::of(error);
        (problem.code(), problem.detail().to_owned())
    }

    fn render_notification(&self, fact: &Fact, epoch: Epoch, at: Timestamp) -> String {
        notification_body(fact, epoch, at)
    }
}

fn shown(thing: AuditSubject<'_>) -> Value {
    fn of(answer: impl Serialize) -> Value {
        let mut value = serde_json::to_value(answer).expect("texts and numbers under names can be written");
        // The entry has the time of the change.
        if let Some(fields) = value.as_object_mut() {
            fields.remove("updated_at");
        }
        value
    }
    match thing {
        AuditSubject::Organization(organization) => of(AuditedOrganizationJson::from(organization)),
        AuditSubject::Administrator(administrator) => of(AdministratorJson::from(administrator)),
        AuditSubject::ApiKey(key) => of(ApiKeyJson::from(key)),
        AuditSubject::Customer(customer) => of(CustomerJson::from(customer)),
        AuditSubject::Entity(view) => of(EntityJson::from(view)),
        AuditSubject::UsageProduct(product) => of(UsageProductJson::from(product)),
        AuditSubject::Pricing(pricing) => of(PricingJson::from(pricing)),
        AuditSubject::Format(view) => of(FormatJson::from(view)),
        AuditSubject::BankAccount(account) => of(BankAccountJson::from(account)),
        AuditSubject::Endpoint(endpoint) => of(AuditedEndpointJson::from(endpoint)),
        AuditSubject::ExchangeRate(rate) => of(AuditedExchangeRateJson::from(rate)),
        AuditSubject::Contract(view) => of(ContractJson::from(view)),
        AuditSubject::Charge(charge) => of(AuditedChargeJson::from(charge)),
        AuditSubject::Document(view) => of(AuditedDocumentJson::from(view)),
        AuditSubject::CreditGrant(view) => of(GrantJson::from(view)),
        AuditSubject::Limit(view) => of(AuditedLimitJson::from(view)),
        AuditSubject::Payment(payment) => of(AuditedPaymentJson::from(payment)),
        AuditSubject::Application(application) => of(AuditedApplicationJson::from(application)),
        AuditSubject::BillingRun(summary) => of(AuditedRunJson::from(summary)),
        AuditSubject::UsageFile(file) => of(AuditedFileJson::from(file)),
        AuditSubject::UndoneFile(file) => of(AuditedUndoJson::from(file)),
    }
}

/// Returns the differences of two values on either side; `None` if they are equal.
///
/// Objects are reduced to the fields that differ. Lists of objects with distinct first fields are reduced to the elements
/// that differ, each with its first field and its name. Other lists are returned whole.
fn difference(before: &Value, after: &Value) -> Option<(Option<Value>, Option<Value>)> {
    if before == after {
        return None;
    }
    Some(match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let (mut was, mut is) = (Map::new(), Map::new());
            for name in before.keys().chain(after.keys().filter(|name| !before.contains_key(*name))) {
                let of = |side: &Map<String, Value>| side.get(name).cloned().unwrap_or_default();
                if let Some((old, new)) = difference(&of(before), &of(after)) {
                    was.extend(old.map(|old| (name.clone(), old)));
                    is.extend(new.map(|new| (name.clone(), new)));
                }
            }
            (Some(was.into()), Some(is.into()))
        }
        (Value::Array(before), Value::Array(after)) => {
            let (was, is) = elements(before, after).unwrap_or_else(|| (before.clone(), after.clone()));
            (Some(was.into()), Some(is.into()))
        }
        (before, after) => (Some(before.clone()).filter(|it| !it.is_null()), Some(after.clone()).filter(|it| !it.is_null())),
    })
}

/// Returns the elements of two lists that differ, if the first fields identify the elements.
fn elements(before: &[Value], after: &[Value]) -> Option<(Vec<Value>, Vec<Value>)> {
    let (old, new) = (by_first_field(before)?, by_first_field(after)?);
    let (mut was, mut is) = (Vec::new(), Vec::new());
    for (first, element) in &old {
        match new.iter().find(|(other, _)| other == first) {
            None => was.push(without_null((*element).clone())),
            Some((_, other)) => {
                if let Some((old, new)) = difference(element, other) {
                    let named = |side: Option<Value>, element: &Value| {
                        let fields = side.as_ref().and_then(Value::as_object).into_iter().flatten();
                        let fields = fields.map(|(name, value)| (name.clone(), value.clone()));
                        let labels = LABELS.iter().filter_map(|label| Some(((*label).to_owned(), element.get(*label)?.clone())));
                        let first = [(first.0.clone(), first.1.clone())];
                        Value::from_iter(first.into_iter().chain(labels.filter(|(_, label)| label.is_string())).chain(fields))
                    };
                    was.push(named(old, element));
                    is.push(named(new, other));
                }
            }
        }
    }
    let made = new.iter().filter(|(first, _)| old.iter().all(|(other, _)| other != first));
    is.extend(made.map(|(_, element)| without_null((*element).clone())));
    // The same elements in another order.
    if was.is_empty() && is.is_empty() { None } else { Some((was, is)) }
}

/// Indexes elements by their first fields. Returns `None` for duplicates or elements without fields.
fn by_first_field(elements: &[Value]) -> Option<Vec<((&String, &Value), &Value)>> {
    let mut seen = HashSet::new();
    let named = elements.iter().map(|element| {
        let first = element.as_object().and_then(|fields| fields.iter().next())?;
        seen.insert((first.0, first.1.to_string())).then_some((first, element))
    });
    named.collect()
}

/// Returns a value without null fields.
fn without_null(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            fields.map(|(name, value)| (name, without_null(value))).collect()
        }
        Value::Array(elements) => elements.into_iter().map(without_null).collect(),
        other => other,
    }
}

/// Returns the value as text, or its length if the text is too long.
fn bounded(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= MAX_TOLD_BYTES { text } else { json!({"omitted_bytes": text.len()}).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_by_the_fields_that_differ() {
        let none = json!({});
        for (before, after, was, is) in [
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), json!({"b": 2}), json!({"b": 3})),
            (json!({"a": null}), json!({"a": "x"}), none.clone(), json!({"a": "x"})),
            (json!({"a": "x"}), json!({}), json!({"a": "x"}), none.clone()),
            // Nested objects are reduced to the differences.
            (
                json!({"address": {"city": "Köln", "zip_code": "1"}}),
                json!({"address": {"city": "Bonn", "zip_code": "1"}}),
                json!({"address": {"city": "Köln"}}),
                json!({"address": {"city": "Bonn"}}),
            ),
            // Elements with the same first field are reduced; added and removed elements are whole.
            (
                json!({"products": [{"ref": "a", "tax": 7, "note": null}, {"ref": "b", "tax": 7}, {"ref": "c", "note": null}]}),
                json!({"products": [{"ref": "b", "tax": 7}, {"ref": "a", "tax": 19, "note": null}, {"ref": "d"}]}),
                json!({"products": [{"ref": "a", "tax": 7}, {"ref": "c"}]}),
                json!({"products": [{"ref": "a", "tax": 19}, {"ref": "d"}]}),
            ),
            // A reduced element has its name.
            (
                json!({"items": [{"id": "a", "name": "Calls", "price": 1}]}),
                json!({"items": [{"id": "a", "name": "Calls", "price": 2}]}),
                json!({"items": [{"id": "a", "name": "Calls", "price": 1}]}),
                json!({"items": [{"id": "a", "name": "Calls", "price": 2}]}),
            ),
            // Elements without distinct first fields are whole, also if only their order differs.
            (
                json!({"t": [{"p": 1}, {"p": 1}]}),
                json!({"t": [{"p": 1}]}),
                json!({"t": [{"p": 1}, {"p": 1}]}),
                json!({"t": [{"p": 1}]}),
            ),
            (json!({"s": ["x", "y"]}), json!({"s": ["y"]}), json!({"s": ["x", "y"]}), json!({"s": ["y"]})),
            (
                json!({"s": [{"ref": 1}, {"ref": 2}]}),
                json!({"s": [{"ref": 2}, {"ref": 1}]}),
                json!({"s": [{"ref": 1}, {"ref": 2}]}),
                json!({"s": [{"ref": 2}, {"ref": 1}]}),
            ),
        ] {
            assert_eq!(difference(&before, &after), Some((Some(was), Some(is))), "{before} {after}");
        }
        assert_eq!(difference(&json!({"a": [1.50]}), &json!({"a": [1.50]})), None);
    }

    #[test]
    fn what_was_made_is_told_without_null_and_never_longer_than_its_limit() {
        let made = json!({"name": "Acme", "email": null, "address": {"city": "Bonn", "state": null}, "notes": []});
        assert_eq!(bounded(&without_null(made)), r#"{"name":"Acme","address":{"city":"Bonn"},"notes":[]}"#);
        let long = |bytes: usize| json!({"note": "x".repeat(bytes - r#"{"note":""}"#.len())});
        assert_eq!(bounded(&long(MAX_TOLD_BYTES)).len(), MAX_TOLD_BYTES);
        assert_eq!(bounded(&long(MAX_TOLD_BYTES + 1)), r#"{"omitted_bytes":65537}"#);
    }
}
