//! The table of the forms: for each its place, its operation, its texts, and where it leads.

use billing_api::operation::{AuthRequirement, Flag, OperationSpec};
use billing_api::operations::{
    Apply, CreateBankAccount, CreateContract, CreateCustomer, CreateEntity, CreateGrant, CreateLimit, CreatePricing,
    CreateUsageProduct, DeleteCharge, DeleteEntity, DeleteEvent, DeleteLimit, EditBankAccount, EditCharge, EditContract,
    EditCustomer, EditEntity, EditGrant, EditLimit, EditPricing, EditUsageProduct, IssueDocument, RecordCharge, RecordDeposit,
    RecordPayment, Refund, ReversePayment, SellCredit, Unapply, UpdateEvent, VoidDocument, WriteOff,
};
use billing_api::problem::Problem;
use billing_application::UseCase;

use super::form_fields::ListEdits;
use crate::listings;

/// A form of the console.
pub(super) struct FormAction {
    /// Place of the form: `new` or `edit` and a part of the console, or `do` and an action.
    pub(super) place: [&'static str; 2],
    /// The operation.
    pub(super) operation: &'static OperationSpec,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) button: &'static str,
    /// Notice after success.
    pub(super) success_message: &'static str,
    /// Notice after success with the submitted amount in place of `{}`.
    pub(super) amount_message: Option<&'static str>,
    /// Part of the console that contains the edited object or the action's subject.
    pub(super) of: Option<&'static str>,
    /// Body fields that the form omits: the reference, and fields without use in a form.
    pub(super) hidden_fields: &'static [&'static str],
    /// Body field that receives the reference.
    pub(super) reference_field: Option<&'static str>,
    /// Body field that the form sets to true.
    pub(super) set_field: Option<&'static str>,
    /// Body field that is prefilled from another field of the object.
    pub(super) prefill: Option<(&'static str, &'static str)>,
    /// Redirect after success: a part of the console, and the response field with the reference. Without a field, it
    /// leads to the list.
    pub(super) redirect: (&'static str, &'static str),
    /// How an edit changes the elements of lists.
    pub(super) lists: ListEdits,
}

impl FormAction {
    const fn new(place: [&'static str; 2], operation: &'static OperationSpec, title: &'static str) -> Self {
        Self {
            place,
            operation,
            title,
            description: "",
            button: "Create",
            success_message: "Changes saved.",
            amount_message: None,
            of: None,
            hidden_fields: &[],
            reference_field: None,
            set_field: None,
            prefill: None,
            redirect: (place[1], ""),
            lists: ListEdits::Replaced,
        }
    }

    const fn edit(
        part: &'static str,
        operation: &'static OperationSpec,
        title: &'static str,
        reference: &'static [&'static str; 1],
    ) -> Self {
        let leads = (part, reference[0]);
        Self {
            of: Some(part),
            hidden_fields: reference,
            redirect: leads,
            button: "Save",
            ..Self::new(["edit", part], operation, title)
        }
    }

    const fn act(
        what: &'static str,
        part: &'static str,
        operation: &'static OperationSpec,
        title: &'static str,
        button: &'static str,
    ) -> Self {
        Self { of: Some(part), button, ..Self::new(["do", what], operation, title) }
    }

    /// Creates an action on a document that leads to a document.
    const fn on_document(
        what: &'static str,
        operation: &'static OperationSpec,
        title: &'static str,
        button: &'static str,
    ) -> Self {
        Self::act(what, "documents", operation, title, button).leading("documents", "document_ref")
    }

    /// Creates an action on a payment or application that leads to a document, because these objects have no page of
    /// their own.
    const fn on_money(what: &'static str, operation: &'static OperationSpec, title: &'static str, button: &'static str) -> Self {
        Self { of: None, ..Self::on_document(what, operation, title, button) }
    }

    const fn beginning(self, field: &'static str, from: &'static str) -> Self {
        Self { prefill: Some((field, from)), ..self }
    }

    const fn leading(self, part: &'static str, reference: &'static str) -> Self {
        Self { redirect: (part, reference), ..self }
    }

    const fn telling(self, tells: &'static str) -> Self {
        Self { description: tells, ..self }
    }

    const fn confirming(self, success_message: &'static str) -> Self {
        Self { success_message, ..self }
    }

    /// Names the submitted amount in the notice after success.
    const fn counting(self, amount_message: &'static str) -> Self {
        Self { amount_message: Some(amount_message), ..self }
    }

    pub(super) fn use_case(&self) -> Result<UseCase, Problem> {
        match self.operation.needs {
            AuthRequirement::Permission(use_case) => Ok(use_case),
            AuthRequirement::Nothing | AuthRequirement::Anything => Err(Problem::unknown_route()),
        }
    }

    pub(super) fn has_dry_run(&self) -> bool {
        self.operation.is(Flag::DryRun)
    }

    /// Returns whether the action creates or edits prices, whose preview shows amounts by quantity.
    pub(super) fn has_prices(&self) -> bool {
        self.place[1] == listings::PRICINGS.part
    }

    /// Returns whether a preview precedes the action.
    pub(super) fn has_preview(&self) -> bool {
        self.has_dry_run() || self.has_prices()
    }
}

/// All forms of the console.
const FORM_ACTIONS: &[FormAction] = &[
    FormAction::new(["new", "customers"], &CreateCustomer::SPEC, "New customer")
        .leading("customers", "customer_ref")
        .telling("Creates a customer, who receives documents and to whom usage events refer.")
        .confirming("Customer created."),
    FormAction::edit("customers", &EditCustomer::SPEC, "Edit customer", &["customer_ref"])
        .telling("Changes the customer. Issued documents stay as they are.")
        .confirming("Customer updated."),
    FormAction::new(["new", "usage-products"], &CreateUsageProduct::SPEC, "New usage product")
        .leading("usage-products", "usage_product_ref")
        .telling("Creates a product whose usage is counted. Usage events report a quantity of it.")
        .confirming("Usage product created."),
    FormAction::edit("usage-products", &EditUsageProduct::SPEC, "Edit usage product", &["usage_product_ref"])
        .telling("Changes the usage product for new contracts. Existing contracts keep their values.")
        .confirming("Usage product updated."),
    FormAction::new(["new", "entities"], &CreateEntity::SPEC, "New entity")
        .leading("entities", "entity_ref")
        .telling("Creates an entity: a company that issues documents under numbers of its own.")
        .confirming("Entity created."),
    FormAction::edit("entities", &EditEntity::SPEC, "Edit entity", &["entity_ref"])
        .telling("Changes the company that issues documents. Issued documents stay as they are.")
        .confirming("Entity updated."),
    FormAction::act("delete-entity", "entities", &DeleteEntity::SPEC, "Delete entity", "Delete entity")
        .leading("entities", "")
        .telling("Deletes the entity. This is possible while no customer, contract or payment names it.")
        .confirming("Entity deleted."),
    FormAction::new(["new", "bank-accounts"], &CreateBankAccount::SPEC, "New bank account")
        .leading("bank-accounts", "billing_account_id")
        .telling("Creates a bank account that documents show for payments.")
        .confirming("Bank account created."),
    FormAction::edit("bank-accounts", &EditBankAccount::SPEC, "Edit bank account", &["billing_account_id"])
        .telling("Changes the bank account. Issued documents stay as they are.")
        .confirming("Bank account updated."),
    FormAction::new(["new", "pricings"], &CreatePricing::SPEC, "New pricing")
        .leading("pricings", "product_pricing_ref")
        .telling("Creates a price list with one or more line items.")
        .confirming("Pricing created."),
    FormAction::edit("pricings", &EditPricing::SPEC, "Edit pricing", &["product_pricing_ref"])
        .telling("Changes prices for new contracts. Existing contracts keep their prices until you change them there.")
        .confirming("Pricing updated."),
    FormAction::new(["new", "contracts"], &CreateContract::SPEC, "New contract")
        .leading("contracts", "contract_ref")
        .telling("Creates a contract that bills a customer by one or more pricings.")
        .confirming("Contract created."),
    FormAction {
        hidden_fields: &["customer_ref"],
        lists: ListEdits::Merged,
        ..FormAction::edit("contracts", &EditContract::SPEC, "Edit contract", &["contract_ref"])
    }
    .telling("List all products that the contract keeps. By default, changes apply from the next period of each product.")
    .confirming("Contract updated."),
    FormAction {
        hidden_fields: &["contract_ref", "charge_ref"],
        reference_field: Some("contract_ref"),
        ..FormAction::act("charge", "contracts", &RecordCharge::SPEC, "Add charge or credit", "Add charge")
    }
    .leading("charges", "charge_ref")
    .telling("Adds an amount to the documents of the contract. A negative unit price is a credit.")
    .confirming("Charge created."),
    FormAction::edit("charges", &EditCharge::SPEC, "Edit charge", &["charge_ref"])
        .telling("Changes the charge and the documents that bill it.")
        .confirming("Charge updated."),
    FormAction::act("delete-charge", "charges", &DeleteCharge::SPEC, "Delete charge", "Delete charge")
        .leading("charges", "")
        .telling("Deletes the charge and no longer bills it.")
        .confirming("Charge deleted."),
    FormAction {
        hidden_fields: &["customer_ref"],
        reference_field: Some("customer_ref"),
        ..FormAction::act("limit", "customers", &CreateLimit::SPEC, "New limit", "Create limit")
    }
    .leading("customers", "customer_ref")
    .telling("Rejects usage that would raise a number of the customer above a maximum, and notifies when it reaches a threshold.")
    .confirming("Limit created."),
    FormAction::edit("limits", &EditLimit::SPEC, "Edit limit", &["limit_ref"])
        .telling("Changes the maximum and the thresholds at once. Usage that was accepted before stays.")
        .confirming("Limit updated."),
    FormAction::act("delete-limit", "limits", &DeleteLimit::SPEC, "Delete limit", "Delete limit")
        .leading("limits", "")
        .telling("Deletes the limit. It no longer rejects usage, and it no longer notifies.")
        .confirming("Limit deleted."),
    FormAction {
        hidden_fields: &["customer_ref"],
        reference_field: Some("customer_ref"),
        ..FormAction::act("grant-credit", "customers", &CreateGrant::SPEC, "Grant credit", "Grant credit")
    }
    .leading("credit", "grant_ref")
    .telling("Gives the customer prepaid credit, which the next documents take before tax.")
    .confirming("Credit granted.")
    .counting("Credit of {} granted."),
    FormAction {
        hidden_fields: &["customer_ref"],
        reference_field: Some("customer_ref"),
        ..FormAction::act("sell-credit", "customers", &SellCredit::SPEC, "Sell credit", "Sell credit")
    }
    .leading("credit", "grant_ref")
    .telling("Issues an invoice for prepaid credit. The credit is usable once the invoice is paid.")
    .confirming("Credit sold."),
    FormAction::edit("credit", &EditGrant::SPEC, "Edit credit", &["grant_ref"])
        .telling("Changes the credit for the drafts and for later documents. What issued documents have drawn stays.")
        .confirming("Credit updated."),
    FormAction {
        // The console asks for trust in the clock only if the server has none: see `clock_not_trusted`.
        hidden_fields: &["trust_clock"],
        ..FormAction::on_document("issue", &IssueDocument::SPEC, "Issue document", "Issue document")
    }
    .telling("The document becomes final. Usage reported for it later is billed by a debit or a credit.")
    .confirming("Document issued."),
    FormAction::on_document("void", &VoidDocument::SPEC, "Void document", "Void document")
        .telling(
            "The document is no longer in force. Its usage and fees are billed again if the contract still includes them. \
             Voiding cannot be undone.",
        )
        .confirming("Document voided."),
    FormAction::on_document("pay", &RecordPayment::SPEC, "Record payment", "Record payment")
        .beginning("amount", "amount_due")
        .telling("Records that the customer has paid the document, fully or in part.")
        .confirming("Payment recorded.")
        .counting("Payment of {} recorded."),
    FormAction {
        hidden_fields: &["undo"],
        ..FormAction::on_document("write-off", &WriteOff::SPEC, "Write off the amount due", "Write off amount")
    }
    .telling("Records that the amount due is no longer expected.")
    .confirming("Amount written off."),
    FormAction {
        hidden_fields: &["undo", "reason"],
        set_field: Some("undo"),
        ..FormAction::on_document("reverse-write-off", &WriteOff::SPEC, "Reverse the write-off", "Reverse write-off")
    }
    .telling("Records that the amount that was written off is expected again. It becomes due.")
    .confirming("Write-off reversed."),
    FormAction::on_document("refund", &Refund::SPEC, "Refund the unapplied amount", "Refund amount")
        .beginning("amount", "unapplied_amount")
        .telling("Records that you have paid the unapplied amount back to the customer, fully or in part.")
        .confirming("Refund recorded.")
        .counting("Refund of {} recorded."),
    FormAction::on_document("apply", &Apply::SPEC, "Apply the unapplied amount to a document", "Apply amount")
        .beginning("amount", "unapplied_amount")
        .telling("Settles another document of the customer with the unapplied amount, fully or in part.")
        .confirming("Amount applied.")
        .counting("{} applied."),
    FormAction::act("deposit", "customers", &RecordDeposit::SPEC, "Record deposit", "Record deposit")
        .leading("customers", "customer_ref")
        .telling(
            "Records a payment without a document. It pays what is due. The rest stays unapplied and pays the next documents.",
        )
        .confirming("Deposit recorded.")
        .counting("Deposit of {} recorded."),
    FormAction::on_money("refund-payment", &Refund::SPEC, "Refund the unapplied amount of a payment", "Refund amount")
        .telling("Records that you have paid the unapplied amount back to the customer, fully or in part.")
        .confirming("Refund recorded.")
        .counting("Refund of {} recorded."),
    FormAction::on_money("apply-payment", &Apply::SPEC, "Apply the unapplied amount of a payment to a document", "Apply amount")
        .telling("Settles another document of the customer with the unapplied amount, fully or in part.")
        .confirming("Payment applied.")
        .counting("{} applied."),
    FormAction::on_money("unapply", &Unapply::SPEC, "Reverse application", "Reverse application")
        .telling("The applied amount is available again, and the settled document is due again.")
        .confirming("Application reversed."),
    FormAction::on_money("reverse", &ReversePayment::SPEC, "Reverse payment", "Reverse payment")
        .telling("Records that a payment or refund has failed, such as a returned debit. The settled amounts become due again.")
        .confirming("Payment reversed."),
    FormAction {
        hidden_fields: &["event_ref", "customer_ref", "usage_product_ref"],
        reference_field: Some("event_ref"),
        ..FormAction::edit("events", &UpdateEvent::SPEC, "Edit usage event", &["event_ref"])
    }
    .telling("Corrects the usage event and the documents that bill it.")
    .confirming("Usage event updated."),
    FormAction::act("delete-event", "events", &DeleteEvent::SPEC, "Delete usage event", "Delete usage event")
        .leading("events", "")
        .telling("Deletes the usage event and corrects the documents that bill it.")
        .confirming("Usage event deleted."),
];

/// Returns the form at a place.
///
/// # Errors
/// Returns a problem if there is none.
pub(super) fn form_action(kind: &str, what: &str) -> Result<&'static FormAction, Problem> {
    FORM_ACTIONS.iter().find(|action| action.place == [kind, what]).ok_or_else(Problem::unknown_route)
}

#[cfg(test)]
mod tests {
    use super::super::openapi_index::shapes;
    use super::*;
    use crate::Listing;

    #[test]
    fn every_form_says_what_it_does() {
        for action in FORM_ACTIONS {
            let place = action.place.join("/");
            assert!(action.description.ends_with('.') && action.success_message.ends_with('.'), "{place}");
            assert!(action.amount_message.is_none_or(|message| message.matches("{}").count() == 1), "{place}");
        }
    }

    #[test]
    fn every_form_changes_state_by_an_operation_and_leads_to_a_part() {
        for action in FORM_ACTIONS {
            assert!(action.operation.changes_state(), "{}", action.operation.id);
            assert!(Listing::of(action.redirect.0).is_some(), "{}", action.redirect.0);
            let all: Vec<&str> = shapes(action.operation).iter().map(|shape| shape.name.as_str()).collect();
            for named in action.hidden_fields.iter().chain(&action.reference_field).filter(|named| **named != action.redirect.1) {
                assert!(all.contains(named), "{}: {named} in {all:?}", action.operation.id);
            }
        }
    }
}
