//! The audit log: what it tells of changes, and its entries.

use std::collections::HashSet;

use billing_application::audit::{AuditDiff, AuditRenderer, AuditSubject, ImportFileSummary, ImportUndoSummary, RunSummary};
use billing_application::documents::DocumentView;
use billing_application::error::UseCaseError;
use billing_domain::access::Administrator;
use billing_domain::audit::AuditEntry;
use billing_domain::charge::Charge;
use billing_domain::party::Organization;
use billing_domain::receivables::{Application, ApplicationSource, Payment};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::bank_accounts::BankAccountJson;
use super::contract_view::ContractJson;
use super::customers::CustomerJson;
use super::declare::answer;
use super::entities::EntityJson;
use super::enums::{
    AuditActionWord, AuditedKindWord, BillWithWord, DocumentKindWord, DocumentStateWord, PaymentKindWord, RoleWord,
};
use super::exchange_rates::ExchangeRateJson;
use super::formats::FormatJson;
use super::keys::ApiKeyJson;
use super::pricings::PricingJson;
use super::usage_products::UsageProductJson;
use super::wire::{AssignedRef, CurrencyCode, DateText, EmailText, ExactNumber, LineText, NamedRef, ProseText, TimestampText};
use crate::problem::Problem;

/// The most bytes that an entry keeps of what a thing was, and of what it is.
const MAX_TOLD_BYTES: usize = 64 * 1024;

answer! {
    /// An entry of the audit log.
    AuditEntryJson of entry: AuditEntry {
        /// Reference.
        audit_ref: AssignedRef = entry.audit_ref,
        /// When it was done.
        at: TimestampText = entry.at,
        /// Who did it: `admin:` or `api_key:` and a reference, `command_line`, `scheduler`, or `nobody` for who didn't show who they are.
        #[schema(example = "admin:0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b")]
        actor: String = entry.author.to_string(),
        /// What was done.
        action: AuditActionWord = entry.action,
        /// To what.
        object_kind: AuditedKindWord = entry.kind,
        /// Its reference; of an organization and a file the name, of an exchange rate its currencies and day.
        #[schema(example = "acme")]
        object_ref: String = entry.reference.clone(),
        /// What of it changed, as it was; null of what was made.
        before: Option<AuditSnapshotJson> = entry.before.as_ref(),
        /// What of it changed, as it is, or all that was made; null of what is gone.
        after: Option<AuditSnapshotJson> = entry.after.as_ref(),
        /// By which request; null of what no request did.
        request_id: Option<String> = entry.request_id.as_ref().map(ToString::to_string),
    }
}

/// A thing, or some of its fields, as it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditSnapshotJson(String);

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
        let description = "Fields as the thing itself is answered, without those that are null.";
        let anything = AdditionalProperties::FreeForm(true);
        ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(anything)).description(Some(description)).into()
    }
}

impl ToSchema for AuditSnapshotJson {}

answer! {
    /// What is told of an organization.
    AuditedOrganizationJson of organization: Organization {
        /// Its name.
        name: LineText = &organization.name,
        /// Who bills where nothing else says so.
        default_entity_ref: Option<NamedRef> = organization.default_entity.as_ref(),
    }
}

answer! {
    /// What is told of an administrator; never a secret.
    AuditedAdministratorJson of administrator: Administrator {
        /// Who.
        email: EmailText = &administrator.email,
        /// What they may do.
        role: RoleWord = administrator.role,
        /// Since when a log-in takes a code, too.
        second_factor_since: Option<TimestampText> = administrator.second_factor.since(),
        /// Since when they can't log in.
        disabled_at: Option<TimestampText> = administrator.disabled_at,
    }
}

answer! {
    /// What is told of a charge.
    AuditedChargeJson of charge: Charge {
        /// The contract it is charged in.
        contract_ref: AssignedRef = charge.contract_ref,
        /// The day it counts on.
        date: DateText = charge.date,
        /// What it is for.
        name: LineText = &charge.name,
        /// How many.
        quantity: ExactNumber = charge.quantity,
        /// The price of one.
        unit_price: ExactNumber = charge.unit_price,
        /// What one is called.
        unit: Option<LineText> = charge.unit.as_ref(),
        /// The product's.
        currency: CurrencyCode = charge.currency,
        /// Which document bills it.
        bill_with: BillWithWord = charge.bill_with,
        /// Whether the product's discount applies to it.
        discountable: bool = charge.discountable,
        /// For whoever reads it.
        note: Option<ProseText> = charge.note.as_ref(),
        /// Why it was made.
        reason: Option<ProseText> = charge.reason.as_ref(),
    }
}

answer! {
    /// What is told of a document, which itself has the rest.
    AuditedDocumentJson of view: DocumentView {
        /// What it does to what the customer owes.
        kind: DocumentKindWord = view.kind,
        /// How far it has come.
        state: DocumentStateWord = view.state,
        /// When it was issued.
        issue_date: Option<DateText> = view.issued.map(|issued| issued.issue_date),
        /// When it has to be paid.
        due_date: Option<DateText> = view.issued.and_then(|issued| issued.due_date),
        /// What it comes to.
        total: ExactNumber = view.content.total,
        /// What was given up on.
        written_off_amount: ExactNumber = view.owed.written_off,
        /// What is left to pay.
        amount_due: Option<ExactNumber> = view.owed.amount_due,
        /// Why something was given up on last, or why that was taken back.
        write_off_reason: Option<LineText> = view.write_offs.last().and_then(|write_off| write_off.reason.as_ref()),
    }
}

answer! {
    /// What is told of a payment or a refund.
    AuditedPaymentJson of payment: Payment {
        let reversal = payment.reversal.as_ref();
        /// Which way the money went.
        kind: PaymentKindWord = payment.kind,
        /// The document it was recorded on.
        document_ref: AssignedRef = payment.document_ref,
        /// How much.
        amount: ExactNumber = payment.amount,
        /// Its currency.
        currency: CurrencyCode = payment.amount.currency(),
        /// When it was paid.
        paid_date: DateText = payment.paid_date,
        /// The payer's or the bank's reference.
        reference: Option<LineText> = payment.reference.as_ref(),
        /// How it was paid.
        method: Option<LineText> = payment.method.as_ref(),
        /// When it bounced.
        reversed_date: Option<DateText> = reversal.map(|reversal| reversal.date),
        /// Why it bounced.
        reason: Option<LineText> = reversal.and_then(|reversal| reversal.reason.as_ref()),
    }
}

answer! {
    /// What is told of a credit or a payment that was applied to a document.
    AuditedApplicationJson of application: Application {
        let (credit, payment) = match application.from {
            ApplicationSource::Credit(credit) => (Some(credit), None),
            ApplicationSource::Payment(payment) => (None, Some(payment)),
        };
        /// The credit it is from.
        from_document_ref: Option<AssignedRef> = credit,
        /// The payment it is from.
        from_payment_ref: Option<AssignedRef> = payment,
        /// The document it settles.
        to_document_ref: AssignedRef = application.to,
        /// How much.
        amount: ExactNumber = application.amount,
    }
}

answer! {
    /// What is told of a billing run.
    AuditedRunJson of summary: RunSummary {
        /// Numbers of the documents that were issued.
        issued: Vec<String> = summary.issued.iter().map(ToString::to_string),
        /// Numbers of the drafts that were put out of force.
        voided: Vec<String> = summary.voided.iter().map(ToString::to_string),
    }
}

answer! {
    /// What is told of a file of usage events.
    AuditedFileJson of file: ImportFileSummary {
        /// The import.
        import_ref: AssignedRef = file.import_ref,
        /// Events recorded.
        recorded: u64 = file.taken.recorded,
        /// Events that were there already.
        already_there: u64 = file.taken.already_there,
        /// Lines refused.
        refused: u64 = file.refused,
        /// Documents that recorded events went on.
        documents: u64 = file.taken.documents.len() as u64,
    }
}

answer! {
    /// What is told of an import that was undone, as far as one request did.
    AuditedUndoJson of file: ImportUndoSummary {
        /// The import.
        import_ref: AssignedRef = file.import_ref,
        /// Events deleted.
        deleted: u64 = file.deleted,
        /// Events that were deleted before.
        already_deleted: u64 = file.already_deleted,
        /// Events that couldn't be deleted.
        refused: u64 = file.refused,
    }
}

/// Tells the audit log of things as the interface answers them.
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
}

fn shown(thing: AuditSubject<'_>) -> Value {
    fn of(answer: impl Serialize) -> Value {
        serde_json::to_value(answer).expect("texts and numbers under names can be written")
    }
    match thing {
        AuditSubject::Organization(organization) => of(AuditedOrganizationJson::from(organization)),
        AuditSubject::Administrator(administrator) => of(AuditedAdministratorJson::from(administrator)),
        AuditSubject::ApiKey(key) => of(ApiKeyJson::from(key)),
        AuditSubject::Customer(customer) => of(CustomerJson::from(customer)),
        AuditSubject::Entity(view) => of(EntityJson::from(view)),
        AuditSubject::UsageProduct(product) => of(UsageProductJson::from(product)),
        AuditSubject::Pricing(pricing) => of(PricingJson::from(pricing)),
        AuditSubject::Format(view) => of(FormatJson::from(view)),
        AuditSubject::BankAccount(account) => of(BankAccountJson::from(account)),
        AuditSubject::ExchangeRate(rate) => of(ExchangeRateJson::from(rate)),
        AuditSubject::Contract(view) => of(ContractJson::from(view)),
        AuditSubject::Charge(charge) => of(AuditedChargeJson::from(charge)),
        AuditSubject::Document(view) => of(AuditedDocumentJson::from(view)),
        AuditSubject::Payment(payment) => of(AuditedPaymentJson::from(payment)),
        AuditSubject::Application(application) => of(AuditedApplicationJson::from(application)),
        AuditSubject::BillingRun(summary) => of(AuditedRunJson::from(summary)),
        AuditSubject::UsageFile(file) => of(AuditedFileJson::from(file)),
        AuditSubject::UndoneFile(file) => of(AuditedUndoJson::from(file)),
    }
}

/// What differs between two values, on either side where it has something; `None` where nothing does.
///
/// Of objects the fields that differ. Of lists of objects that are told apart by their first field the elements that differ, each
/// with that field; other lists whole.
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

/// The elements of two lists that differ, where every element is told by its first field.
fn elements(before: &[Value], after: &[Value]) -> Option<(Vec<Value>, Vec<Value>)> {
    let (old, new) = (by_first_field(before)?, by_first_field(after)?);
    let (mut was, mut is) = (Vec::new(), Vec::new());
    for (first, element) in &old {
        match new.iter().find(|(other, _)| other == first) {
            None => was.push(without_null((*element).clone())),
            Some((_, other)) => {
                if let Some((old, new)) = difference(element, other) {
                    let named = |side: Option<Value>| {
                        let fields = side.as_ref().and_then(Value::as_object).into_iter().flatten();
                        let fields = fields.map(|(name, value)| (name.clone(), value.clone()));
                        Value::from_iter([(first.0.clone(), first.1.clone())].into_iter().chain(fields))
                    };
                    was.push(named(old));
                    is.push(named(new));
                }
            }
        }
    }
    let made = new.iter().filter(|(first, _)| old.iter().all(|(other, _)| other != first));
    is.extend(made.map(|(_, element)| without_null((*element).clone())));
    // The same elements in another order.
    if was.is_empty() && is.is_empty() { None } else { Some((was, is)) }
}

/// Elements by their first fields: `None` where two have the same, or where there is an element without.
fn by_first_field(elements: &[Value]) -> Option<Vec<((&String, &Value), &Value)>> {
    let mut seen = HashSet::new();
    let named = elements.iter().map(|element| {
        let first = element.as_object().and_then(|fields| fields.iter().next())?;
        seen.insert((first.0, first.1.to_string())).then_some((first, element))
    });
    named.collect()
}

/// A value without the fields of objects that are null.
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

/// As text, or how long that would be.
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
            // Of what is below, no more than differs.
            (
                json!({"address": {"city": "Köln", "zip_code": "1"}}),
                json!({"address": {"city": "Bonn", "zip_code": "1"}}),
                json!({"address": {"city": "Köln"}}),
                json!({"address": {"city": "Bonn"}}),
            ),
            // Elements that are told by their first field, with it; made and gone ones whole.
            (
                json!({"products": [{"ref": "a", "tax": 7, "note": null}, {"ref": "b", "tax": 7}, {"ref": "c", "note": null}]}),
                json!({"products": [{"ref": "b", "tax": 7}, {"ref": "a", "tax": 19, "note": null}, {"ref": "d"}]}),
                json!({"products": [{"ref": "a", "tax": 7}, {"ref": "c"}]}),
                json!({"products": [{"ref": "a", "tax": 19}, {"ref": "d"}]}),
            ),
            // What can't be told apart, whole; another order, too.
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
