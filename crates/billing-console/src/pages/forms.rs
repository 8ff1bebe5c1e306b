//! Forms that create and change objects and run actions. Fields come from the OpenAPI schema of the operation's body. A short
//! form shows the usual fields, and "Advanced" shows all of them. If an action can change documents, and for prices, the form
//! shows a preview first.

use crate::{
    ACCEPTED, AGAIN, CONFIRMED, Crumb, Form, InputKind, Item, JsonView, LIVE, Listing, Preview, PricePreview, RESIZE,
    Suggestions, href, listings,
};
use billing_api::console::{FormData, PageAnswer, WARNINGS_NOT_ACCEPTED};
use billing_api::dto::documents::DocumentJson;
use billing_api::dto::effects::EffectsJson;
use billing_api::json_view::JsonAnswer;
use billing_api::operations::DryRun;
use billing_application::UseCase;
use serde_json::{Map, Value};

use super::bulk::{OPEN_PERIOD, is_period_open};
use super::charge_form::charge_form;
use super::customer_tax;
use super::form_data::{field, query};
use super::form_fields::{self, InitialValues, ListEdits};
use super::lists::{crumbs, few};
use super::openapi_index::{BodyField, shapes};
use super::page_builder::PageBuilder;
use super::pricing_form;
use super::references;
use super::reply::{after, belongs_beside, caption, html};
use super::resources;
use super::session_user::{AnswerOf, Answered, SessionUser};
use super::short_forms::{self, MAX_VISIBLE, ShortForm, ShortItems};
use super::suggestions::{has_field, suggestions};
use billing_api::operation::{AuthRequirement, Flag, OperationSpec};
use billing_api::operations::{
    Apply, CreateBankAccount, CreateContract, CreateCustomer, CreateEntity, CreatePricing, CreateUsageProduct, DeleteCharge,
    DeleteEntity, DeleteEvent, EditBankAccount, EditCharge, EditContract, EditCustomer, EditEntity, EditPricing,
    EditUsageProduct, IssueDocument, RateNewPricing, RecordCharge, RecordDeposit, RecordPayment, Refund, ReversePayment, Unapply,
    UpdateEvent, VoidDocument, WriteOff,
};
use billing_api::problem::Problem;

/// Query parameter of the form with all fields.
const ADVANCED: &str = "advanced";

/// A form of the console.
struct FormAction {
    /// Place of the form: `new` or `edit` and a part of the console, or `do` and an action.
    place: [&'static str; 2],
    /// The operation.
    operation: &'static OperationSpec,
    title: &'static str,
    description: &'static str,
    button: &'static str,
    /// Notice after success.
    success_message: &'static str,
    /// Notice after success with the submitted amount in place of `{}`.
    amount_message: Option<&'static str>,
    /// Part of the console that contains the edited object or the action's subject.
    of: Option<&'static str>,
    /// Body fields that the form omits: the reference, and fields without use in a form.
    hidden_fields: &'static [&'static str],
    /// Body field that receives the reference.
    reference_field: Option<&'static str>,
    /// Body field that the form sets to true.
    set_field: Option<&'static str>,
    /// Body field that is prefilled from another field of the object.
    prefill: Option<(&'static str, &'static str)>,
    /// Redirect after success: a part of the console, and the response field with the reference. Without a field, it
    /// leads to the list.
    redirect: (&'static str, &'static str),
    /// How an edit changes the elements of lists.
    lists: ListEdits,
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

    fn use_case(&self) -> Result<UseCase, Problem> {
        match self.operation.needs {
            AuthRequirement::Permission(use_case) => Ok(use_case),
            AuthRequirement::Nothing | AuthRequirement::Anything => Err(Problem::unknown_route()),
        }
    }

    fn has_dry_run(&self) -> bool {
        self.operation.is(Flag::DryRun)
    }

    /// Returns whether the action creates or edits prices, whose preview shows amounts by quantity.
    fn has_prices(&self) -> bool {
        self.place[1] == listings::PRICINGS.part
    }

    /// Returns whether a preview precedes the action.
    fn has_preview(&self) -> bool {
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

/// Returns whether a form exists at a place and the visitor may submit it.
pub(super) fn may(user: &SessionUser, kind: &str, what: &str) -> bool {
    form_action(kind, what).and_then(FormAction::use_case).is_ok_and(|use_case| user.may(use_case))
}

fn form_action(kind: &str, what: &str) -> Result<&'static FormAction, Problem> {
    FORM_ACTIONS.iter().find(|action| action.place == [kind, what]).ok_or_else(Problem::unknown_route)
}

/// Returns the notice after a successful action.
pub(super) fn done(place: &str) -> Option<&'static str> {
    let (kind, what) = place.split_once('.')?;
    form_action(kind, what).ok().map(|action| action.success_message)
}

/// Returns the notice with the amount after a successful action. Only an amount and a currency are shown, so that an address
/// cannot contain another text.
pub(super) fn amount_notice(place: &str, asked: &FormData) -> Option<String> {
    let (kind, what) = place.split_once('.')?;
    let message = form_action(kind, what).ok()?.amount_message?;
    let (amount, currency) = (field(asked, "amount")?, field(asked, "currency")?);
    let is_amount = amount.len() <= 24 && amount.bytes().all(|digit| digit.is_ascii_digit() || digit == b'.');
    let is_currency = currency.len() == 3 && currency.bytes().all(|letter| letter.is_ascii_uppercase());
    (is_amount && is_currency).then(|| message.replace("{}", &crate::amount_text(amount, currency)))
}

/// A form and the object it concerns.
pub(super) struct FormPage<'a> {
    user: &'a SessionUser,
    action: &'static FormAction,
    reference: Option<&'a str>,
    /// The existing object.
    present: JsonAnswer,
    /// The short form; `None` for the form with all fields.
    short: Option<ShortForm>,
}

impl<'a> FormPage<'a> {
    /// Loads the form at a place.
    ///
    /// # Errors
    /// Returns a problem if the form or its object does not exist, or if the visitor may not submit the form.
    pub(super) async fn at(user: &'a SessionUser, kind: &str, what: &str, reference: Option<&'a str>) -> Result<Self, Problem> {
        let action = form_action(kind, what)?;
        // New objects have no reference yet; all other forms require one.
        if reference.is_none() != (kind == "new") {
            return Err(Problem::unknown_route());
        }
        user.allow(action.use_case()?)?;
        let present = match (action.of, reference) {
            (Some(part), Some(reference)) => resources::read(user, part, reference).await?,
            _ => JsonAnswer::default(),
        };
        let asked = query(&user.request);
        let short = match action.place {
            _ if field(&asked, ADVANCED).is_some() => None,
            ["new" | "edit", part] => short_forms::catalog_form(part),
            ["do", "charge"] => Some(charge_form(&asked, &user.zone.service_date(user.now()).to_string())),
            _ => None,
        };
        Ok(Self { user, action, reference, present, short })
    }

    /// Renders the form at a place.
    ///
    /// # Errors
    /// Returns the problems of [`at`](Self::at).
    pub(super) async fn shown_at(
        user: &'a SessionUser,
        kind: &str,
        what: &str,
        reference: Option<&'a str>,
    ) -> Result<String, Problem> {
        Self::at(user, kind, what, reference).await?.show().await
    }

    /// Handles the submitted form of a place.
    ///
    /// # Errors
    /// Returns problems that cannot be shown beside the form.
    pub(super) async fn taken_at(
        user: &'a SessionUser,
        kind: &str,
        what: &str,
        reference: Option<&'a str>,
        submitted: &FormData,
    ) -> Result<PageAnswer, Problem> {
        Self::at(user, kind, what, reference).await?.take(submitted).await
    }

    fn place(&self) -> Vec<&'a str> {
        self.action.place.into_iter().chain(self.reference).collect()
    }

    /// Returns the address that receives the form, which is also that of the form.
    fn address(&self) -> String {
        let asked = query(&self.user.request);
        let advanced = field(&asked, ADVANCED).map(|_| format!("{ADVANCED}=yes"));
        let query = self.short.as_ref().map(|short| short.query.clone()).or(advanced).filter(|query| !query.is_empty());
        let page = href(&self.place());
        query.map_or(page.clone(), |query| format!("{page}?{query}"))
    }

    /// Returns the title. The name of an edited object is more readable than its reference.
    fn title(&self) -> String {
        let title = self.short.as_ref().map_or("", |short| short.title);
        match (self.action.place[0], self.name()) {
            ("edit", Some(name)) => format!("{} {name}", self.action.title),
            ("do", _) if !title.is_empty() => title.to_owned(),
            _ if !title.is_empty() => format!("{}: {}{}", self.action.title, title[..1].to_lowercase(), &title[1..]),
            _ => self.action.title.to_owned(),
        }
    }

    /// Returns the name of the present object, or its reference.
    fn name(&self) -> Option<String> {
        let listing = self.action.of.and_then(Listing::of);
        let name = listing.map(|listing| listing.name_of(self.present.view())).filter(|name| !name.is_empty());
        name.or_else(|| self.reference.map(str::to_owned))
    }

    /// Returns the sentence about the form's effect.
    fn tells(&self) -> &'static str {
        self.short.as_ref().map(|short| short.tells).filter(|tells| !tells.is_empty()).unwrap_or(self.action.description)
    }

    /// Returns the fields of the form.
    fn shapes(&self) -> Vec<BodyField> {
        let kept = |shape: &&BodyField| !self.action.hidden_fields.contains(&shape.name.as_str()) && shape.name != "dry_run";
        shapes(self.action.operation).iter().filter(kept).cloned().collect()
    }

    /// Returns whether the form edits an existing object, so that unchanged fields keep their values.
    fn edits(&self) -> bool {
        self.action.place[0] == "edit"
    }

    /// Returns the page to return to.
    fn back(&self) -> String {
        match (self.action.of, self.reference) {
            (Some(part), Some(reference)) => href(&[part, reference]),
            _ => href(&[self.action.redirect.0]),
        }
    }

    /// Renders the form, or the preview of an operation without fields.
    ///
    /// # Errors
    /// Returns the problem of a failed API call.
    pub(super) async fn show(&self) -> Result<String, Problem> {
        if self.shapes().is_empty() && self.action.has_dry_run() {
            let effects = self.rehearsed(&FormData::new()).await?;
            return Ok(self.preview(effects, &vec![("form_key".to_owned(), self.user.unique())]));
        }
        let begins = self.action.prefill.map(|(field, from)| {
            let mut submitted = Map::new();
            submitted.insert(field.to_owned(), self.present.view().json().get(from).cloned().unwrap_or_default());
            Value::Object(submitted)
        });
        let short = self.short.as_ref().filter(|_| !self.edits());
        let defaults = short.map(ShortForm::defaults).filter(|defaults| !defaults.is_empty());
        let source = match (&begins, &defaults) {
            (Some(begins), _) => InitialValues::Present(begins),
            (None, Some(defaults)) => InitialValues::Said(defaults),
            (None, None) if self.edits() => InitialValues::Present(self.present.view().json()),
            (None, None) => InitialValues::Nothing,
        };
        self.form(source, None).await
    }

    /// Handles a submitted form.
    ///
    /// # Errors
    /// Returns problems that cannot be shown beside the form.
    pub(super) async fn take(&self, submitted: &FormData) -> Result<PageAnswer, Problem> {
        if let Some(wanted) = field(submitted, RESIZE) {
            return self.form(InitialValues::Said(&pricing_form::changed(submitted, wanted)), None).await.map(html);
        }
        if field(submitted, AGAIN).is_some() {
            return self.form(InitialValues::Said(submitted), None).await.map(html);
        }
        let submitted = &if self.has_line_items() { pricing_form::normalized(submitted) } else { submitted.clone() };
        let refused = match self.carry_out(submitted).await {
            Ok(answer) => return Ok(answer),
            Err(problem) => problem,
        };
        if !belongs_beside(&refused) || self.shapes().is_empty() {
            return Err(refused);
        }
        let page = self.form(InitialValues::Said(submitted), Some(&refused)).await?;
        Ok(caption(refused, page))
    }

    async fn carry_out(&self, submitted: &FormData) -> Result<PageAnswer, Problem> {
        // The script asks for a preview with every change of a field, which must store nothing.
        let is_live = field(submitted, LIVE).is_some();
        if self.action.has_prices() && (is_live || field(submitted, CONFIRMED).is_none()) {
            return self.price_preview(submitted).await.map(html);
        }
        if self.action.has_dry_run() && (is_live || field(submitted, CONFIRMED).is_none()) {
            let effects = self.rehearsed(submitted).await?;
            return Ok(html(self.preview(effects, submitted)));
        }
        if is_live {
            return Err(Problem::unknown_route());
        }
        let answer = match self.changed(submitted).await {
            Err(problem) if problem.code() == WARNINGS_NOT_ACCEPTED && self.action.has_dry_run() => {
                let effects = self.rehearsed(submitted).await?;
                return Ok(caption(problem, self.preview(effects, submitted)));
            }
            answer => answer?,
        };
        let amount = self.action.amount_message.and_then(|_| field(submitted, "amount"));
        Ok(after(self.action.place, self.action.redirect, amount, &answer.json()?.into()))
    }

    /// Runs the operation. The key prevents a second execution when the form is sent twice.
    async fn changed(&self, submitted: &FormData) -> Answered {
        let (operation, reference) = (self.action.operation, self.reference.unwrap_or_default());
        let change = async |submitted: &FormData| {
            let body = self.body(submitted).await?;
            self.user.change_as_previewed(operation, reference, submitted, body).await
        };
        match self.action.place[0] {
            "new" => references::created(self.action.redirect.1, submitted, change).await,
            _ => change(submitted).await,
        }
    }

    /// Returns whether the form has the line items of a pricing.
    fn has_line_items(&self) -> bool {
        self.short.as_ref().is_some_and(ShortForm::has_line_items)
    }

    async fn rehearsed(&self, submitted: &FormData) -> AnswerOf<DryRun> {
        let reference = self.reference.unwrap_or_default();
        self.user.rehearse(self.action.operation, reference, self.body(submitted).await?).await
    }

    /// Renders the preview of a pricing: its amounts by quantity.
    async fn price_preview(&self, submitted: &FormData) -> Result<String, Problem> {
        let mut pricing = Map::new();
        for shape in self.shapes() {
            // An edit omits unchanged fields.
            pricing.extend(self.present.view().json().get(&shape.name).map(|value| (shape.name, value.clone())));
        }
        let Some(Value::Object(changes)) = self.body(submitted).await? else { return Err(Problem::internal()) };
        pricing.extend(changes);
        pricing.remove("product_pricing_ref");
        let pricing = Value::Object(pricing);
        let quantities = crate::quantities(JsonView::of(&pricing), "");
        // Without a line item for usage, the API still checks the pricing.
        let quantities = if quantities.is_empty() { vec!["1".to_owned()] } else { quantities };
        let mut asked = pricing.clone();
        asked["quantities"] = Value::from(quantities);
        let rates = self.user.post::<RateNewPricing>(asked).await?;
        let preview = PricePreview {
            title: self.title(),
            tells: self.tells(),
            pricing: pricing.into(),
            rates,
            action: self.address(),
            button: self.action.button,
            submitted: resent(submitted),
            back: self.back(),
        };
        Ok(self.page(crate::price_preview(&preview)))
    }

    async fn body(&self, submitted: &FormData) -> Result<Option<Value>, Problem> {
        let named = if self.has_line_items() { Some(pricing_form::named(self.user, submitted).await?) } else { None };
        Ok(self.body_of(named.as_ref().unwrap_or(submitted)))
    }

    fn body_of(&self, submitted: &FormData) -> Option<Value> {
        let mut shapes = self.shapes();
        let takes_one = !shapes.is_empty() || self.action.reference_field.is_some() || self.action.set_field.is_some();
        let present = self.edits().then(|| self.present.view().json());
        let mut body = match &self.short {
            None => form_fields::body(&shapes, "", submitted, present, self.action.lists),
            Some(short) => {
                let submitted = short.completed(submitted, present.is_some());
                // A field that the form does not have stays as it is.
                let has = |name: &str| submitted.iter().any(|(submitted, _)| short_forms::top(submitted) == name);
                shapes.retain(|shape| has(&shape.name));
                form_fields::body(&shapes, "", &submitted, present, self.action.lists)
            }
        };
        if let (Some(field), Some(reference)) = (self.action.reference_field, self.reference) {
            body.insert(field.to_owned(), reference.into());
        }
        body.extend(self.action.set_field.map(|field| (field.to_owned(), Value::Bool(true))));
        // The version makes the edit fail if the object changed after the form was shown.
        if let Some(version) = body.get("version").is_none().then(|| field(submitted, "version")).flatten() {
            body.insert("version".to_owned(), form_fields::whole_number(version));
        }
        takes_one.then_some(Value::Object(body))
    }

    async fn form(&self, source: InitialValues<'_>, problem: Option<&Problem>) -> Result<String, Problem> {
        let shapes = self.shapes();
        let values = self.has_line_items().then(|| pricing_form::prepared(&shapes, source));
        let source = values.as_ref().map_or(source, InitialValues::Said);
        let mut items = form_fields::items(&shapes, "", source, problem.map_or(&[][..], Problem::errors));
        for item in &mut items {
            if let Item::Field(field) = item
                && self.action.place[0] == "new"
                && field.name == self.action.redirect.1
            {
                (field.kind, field.required) = (InputKind::NewReference, false);
                field.meaning = references::NEW_REFERENCE.to_owned();
            }
        }
        let is_small = items.len() <= MAX_VISIBLE && items.iter().all(|item| matches!(item, Item::Field(_)));
        let ShortItems { fields, more, hidden } = match &self.short {
            Some(short) => short.arranged(customer_tax::with_choice(items, source)),
            None => ShortItems { fields: items, more: Vec::new(), hidden: FormData::new() },
        };
        let shown = [fields.as_slice(), &more].concat();
        let form = Form {
            title: self.title(),
            tells: self.tells(),
            action: self.address(),
            button: if self.action.has_preview() { "Preview" } else { self.action.button },
            confirm: self.action.has_prices().then_some(self.action.button),
            key: source.submitted("form_key").unwrap_or_else(|| self.user.unique()),
            suggestions: self.all_suggestions(&shown).await?,
            others: problem.map(|problem| form_fields::others(problem, &shown)).unwrap_or_default(),
            is_warned: problem.is_some_and(|problem| problem.code() == WARNINGS_NOT_ACCEPTED),
            items: fields,
            more,
            hidden,
            is_short: self.short.is_some() || is_small,
            is_live: self.action.has_prices(),
            advanced: self.advanced(),
            back: self.back(),
        };
        Ok(self.page(crate::form(&form)))
    }

    /// Returns the existing object as a document.
    fn document(&self) -> JsonView<'_, DocumentJson> {
        self.present.view().read_as()
    }

    /// Returns the address of the form with all fields, if the shown form leaves out some.
    fn advanced(&self) -> Option<String> {
        self.short.as_ref().filter(|short| short.has_advanced).map(|_| format!("{}?{ADVANCED}=yes", href(&self.place())))
    }

    fn preview(&self, effects: JsonAnswer<EffectsJson>, submitted: &FormData) -> String {
        let (reference, today) = (self.reference.unwrap_or_default(), self.user.zone.service_date(self.user.now()));
        let is_open = self.action.place == ["do", "issue"] && is_period_open(effects.view(), reference, &today.to_string());
        let preview = Preview {
            title: self.title(),
            tells: if is_open { OPEN_PERIOD } else { self.tells() },
            effects,
            action: self.address(),
            button: self.action.button,
            is_accepted: field(submitted, ACCEPTED).is_some(),
            submitted: resent(submitted),
            has_form: !self.shapes().is_empty(),
            back: self.back(),
        };
        self.page(crate::preview(&preview))
    }

    fn page(&self, body: maud::Markup) -> String {
        let part = self.action.of.unwrap_or(self.action.redirect.0);
        let mut crumbs = Listing::of(part).map(crumbs).unwrap_or_default();
        if let (Some(part), Some(reference), Some(name)) = (self.action.of, self.reference, self.name()) {
            crumbs.push(Crumb { name, href: href(&[part, reference]) });
        }
        // The page shows no calls, because a form shows no data of the API.
        PageBuilder { title: self.title(), part, crumbs, body }.page(&self.user.quietly(), None)
    }

    /// Loads the suggestions for reference fields.
    async fn all_suggestions(&self, shown: &[Item]) -> Result<Vec<Suggestions>, Problem> {
        let mut suggestions = suggestions(self.user, shown, if self.edits() { "" } else { self.action.place[1] }).await?;
        if has_field(shown, "document_ref") && self.document().customer().is_there() {
            suggestions.push(self.open_documents().await?);
        }
        Ok(suggestions)
    }

    /// Loads the documents of the customer that an amount of the present document can settle.
    async fn open_documents(&self) -> Result<Suggestions, Problem> {
        let document = self.document();
        let (customer_ref, currency) = (document.customer().customer_ref().to_text(), document.currency().to_text());
        let narrowed = [
            ("customer_ref", customer_ref.as_str()),
            ("currency", currency.as_str()),
            ("has_amount_due", "true"),
            ("totals", "false"),
        ];
        let open = few(&self.user.quietly(), &listings::DOCUMENTS, &narrowed).await?;
        let choice = |one: JsonView<'_, DocumentJson>| {
            let (number, due, currency) = (one.document_number(), one.amount_due(), one.currency());
            let due = crate::amount_text(&due.to_text(), &currency.to_text());
            (one.document_ref().to_text(), format!("{}, {due} due", number.to_text()))
        };
        Ok(Suggestions { field: "document_ref", choices: JsonView::<Vec<DocumentJson>>::of(&open).items().map(choice).collect() })
    }
}

/// Returns the submitted fields that a preview sends again.
fn resent(submitted: &FormData) -> FormData {
    let of_form = |name: &str| ![CONFIRMED, ACCEPTED, AGAIN, RESIZE, LIVE].contains(&name);
    submitted.iter().filter(|(name, _)| of_form(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_says_what_it_does() {
        for action in FORM_ACTIONS {
            let place = action.place.join("/");
            assert!(action.description.ends_with('.') && action.success_message.ends_with('.'), "{place}");
            assert!(action.amount_message.is_none_or(|message| message.matches("{}").count() == 1), "{place}");
        }
    }

    #[test]
    fn a_notice_has_an_amount_and_no_other_text() {
        let notice = |amount: &str, currency: &str| {
            let asked = vec![("amount".to_owned(), amount.to_owned()), ("currency".to_owned(), currency.to_owned())];
            amount_notice("do.pay", &asked)
        };
        assert_eq!(notice("1200", "EUR").as_deref(), Some("Payment of 1,200.00 EUR recorded."));
        for (amount, currency) in [("120 to <b>", "EUR"), ("120", "Euros"), ("", "EUR")] {
            assert_eq!(notice(amount, currency), None, "{amount} {currency}");
        }
        assert_eq!(amount_notice("do.issue", &vec![("amount".to_owned(), "1".to_owned())]), None);
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
