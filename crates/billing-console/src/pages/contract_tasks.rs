//! The page of a contract and its small forms. Each form changes one term by one API call, after a preview of the affected
//! documents.

use crate::{
    ACCEPTED, AGAIN, CONFIRMED, ContractAnswers, Crumb, JsonView, ON_DATE, Preview, TaskField, TaskFieldKind, TaskForm,
    has_quantity, href, is_fixed, listings, price, product_title, quantity_on,
};
use billing_api::console::{FormData, PageAnswer, WARNINGS_NOT_ACCEPTED};
use billing_api::dto::bank_accounts::BankAccountJson;
use billing_api::dto::contract_lines::ContractLineItemJson;
use billing_api::dto::contract_view::{ContractJson, ContractProductJson};
use billing_api::dto::effects::EffectsJson;
use billing_api::dto::prices::{PriceJson, TierJson};
use billing_api::field;
use billing_api::json_view::JsonAnswer;
use billing_api::operation::OperationSpec;
use billing_api::operations::DryRun;
use billing_application::UseCase;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::form_data::{field, query};
use super::form_fields::whole_number;
use super::forms;
use super::lists::{crumbs, few, some_of};
use super::page_builder::PageBuilder;
use super::reply::{belongs_beside, caption, html as page_of, to};
use super::session_user::{AnswerOf, SessionUser};
use super::webhooks;
use billing_api::operations::{
    CancelContract, ChangeQuantity, CurrentInvoices, EditContract, GetContract, NextInvoices, ResumeContract,
};
use billing_api::problem::{FieldProblem, Problem};

/// Form field that selects a product (`0`) or a line item of a product (`0/seats`).
const TARGET: &str = "target";
/// Form field with the version of the contract that an edit is based on.
const VERSION: &str = "version";
/// Form field that permits many documents that are due at once.
pub(super) const ALLOW_BACKDATED: &str = "allow_backdated";
/// Maximum number of bank accounts to choose from.
const MAX_ACCOUNTS: &str = "100";
/// Number of tiers that a form can add to a price.
const MORE_TIERS: usize = 1;

/// The term of a contract that a form changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskKind {
    Seats,
    Price,
    Discount,
    EndProduct,
    MoveEnd,
    Invoicing,
    Cancel,
    Resume,
}

/// The part of a contract to which a form applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskScope {
    /// The contract.
    Contract,
    /// All products, or a selected one.
    Products,
    /// One product.
    Product,
    /// A line item with a quantity.
    FixedItem,
    /// A line item.
    LineItem,
}

/// A small form.
struct Task {
    kind: TaskKind,
    scope: TaskScope,
    /// Last segment of the form's address.
    name: &'static str,
    /// Id of the operation.
    operation: &'static OperationSpec,
    title: &'static str,
    explanation: &'static str,
    button: &'static str,
    /// Notice after success.
    success_message: &'static str,
}

/// All small forms of a contract.
const TASKS: [Task; 8] = [
    Task {
        kind: TaskKind::Seats,
        scope: TaskScope::FixedItem,
        name: "seats",
        operation: &ChangeQuantity::SPEC,
        title: "Change seats",
        explanation: "Changes the quantity from a date.",
        button: "Change seats",
        success_message: "Seats changed.",
    },
    Task {
        kind: TaskKind::Price,
        scope: TaskScope::LineItem,
        name: "price",
        operation: &EditContract::SPEC,
        title: "Change price",
        explanation: "Changes the price of a line item in this contract only. The pricing and other contracts keep their prices.",
        button: "Change price",
        success_message: "Price changed.",
    },
    Task {
        kind: TaskKind::Discount,
        scope: TaskScope::Product,
        name: "discount",
        operation: &EditContract::SPEC,
        title: "Change discount",
        explanation: "Changes the discount on all line items of a product.",
        button: "Change discount",
        success_message: "Discount changed.",
    },
    Task {
        kind: TaskKind::EndProduct,
        scope: TaskScope::Product,
        name: "end-product",
        operation: &EditContract::SPEC,
        title: "End product",
        explanation: "Ends one product. The other products of the contract continue.",
        button: "End product",
        success_message: "End of the product saved.",
    },
    Task {
        kind: TaskKind::MoveEnd,
        scope: TaskScope::Products,
        name: "end",
        operation: &EditContract::SPEC,
        title: "Move end",
        explanation: "Sets the last billed day to an earlier or a later day.",
        button: "Move end",
        success_message: "Last day changed.",
    },
    Task {
        kind: TaskKind::Invoicing,
        scope: TaskScope::Contract,
        name: "invoicing",
        operation: &EditContract::SPEC,
        title: "Change invoicing details",
        explanation: "Changes details of invoices that are not issued yet, for all products of the contract.",
        button: "Save",
        success_message: "Invoicing details changed.",
    },
    Task {
        kind: TaskKind::Cancel,
        scope: TaskScope::Contract,
        name: "cancel",
        operation: &CancelContract::SPEC,
        title: "Cancel contract",
        explanation: "Ends all products of the contract. Until the last day is over, the contract can be resumed.",
        button: "Cancel contract",
        success_message: "Cancellation recorded.",
    },
    Task {
        kind: TaskKind::Resume,
        scope: TaskScope::Contract,
        name: "resume",
        operation: &ResumeContract::SPEC,
        title: "Resume contract",
        explanation: "Reverses the cancellation. The terms before the cancellation apply again.",
        button: "Resume contract",
        success_message: "Contract resumed.",
    },
];

impl Task {
    fn use_case(&self) -> Result<UseCase, Problem> {
        self.operation.use_case()
    }
}

/// Returns the notice after a successful form or after added products.
pub(super) fn done(place: &str) -> Option<&'static str> {
    let name = place.strip_prefix("task.")?;
    if name == "add" {
        return Some("Product added.");
    }
    TASKS.iter().find(|task| task.name == name).map(|task| task.success_message)
}

/// Renders the page of a contract.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn contract(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let contract = user.get::<GetContract>(reference).await?;
    let current = user.get::<CurrentInvoices>(reference).await?;
    let next = user.get::<NextInvoices>(reference).await?;
    let latest = [("contract_ref", reference), ("order", "-created"), ("totals", "false")];
    let documents = few(user, &listings::DOCUMENTS, &latest).await?;
    let notifications = webhooks::of_subject(user, "contract", reference).await?;
    let title = contract.view().contract_number().to_text();
    let (may_change, may_charge) = (user.may(UseCase::EditContract), forms::may(user, "do", "charge"));
    let today = today(user);
    let answers = ContractAnswers { contract, current, next, documents, notifications, today, may_change, may_charge };
    let body = crate::contract(&answers);
    Ok(PageBuilder { title, part: "contracts", crumbs: crumbs(&listings::CONTRACTS), body })
}

/// Returns today's date in the visitor's time zone.
fn today(user: &SessionUser) -> String {
    user.zone.service_date(user.now()).to_string()
}

/// Returns the breadcrumbs to a page below a contract.
pub(super) fn crumbs_below(contract: JsonView<'_, ContractJson>) -> Vec<Crumb> {
    let own =
        Crumb { name: contract.contract_number().to_text(), href: href(&["contracts", &contract.contract_ref().to_text()]) };
    crumbs(&listings::CONTRACTS).into_iter().chain([own]).collect()
}

/// Renders a small form, a choice of the line item or product, or the preview of a form without fields.
///
/// # Errors
/// Returns a problem if the form or the contract does not exist, or if the visitor may not submit the form.
pub(super) async fn page(user: &SessionUser, reference: &str, name: &str) -> Result<PageBuilder, Problem> {
    let page = TaskPage::at(user, reference, name).await?;
    if page.task.kind == TaskKind::Resume {
        let submitted = vec![("form_key".to_owned(), user.unique())];
        return Ok(page.preview(page.rehearsed(None, &submitted).await?, &submitted));
    }
    match page.subject(&query(&user.request))? {
        TaskSubject::Choice(targets) => Ok(page.choice(&targets)),
        TaskSubject::Contract => page.form(None, None, None).await,
        TaskSubject::Part(target) => page.form(Some(target), None, None).await,
    }
}

/// Handles a submitted form.
///
/// # Errors
/// Returns problems that cannot be shown beside the form.
pub(super) async fn act(user: &SessionUser, reference: &str, name: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let page = TaskPage::at(user, reference, name).await?;
    let target = match page.subject(submitted)? {
        TaskSubject::Choice(_) => return Err(Problem::unknown_route()),
        TaskSubject::Contract => None,
        TaskSubject::Part(target) => Some(target),
    };
    if field(submitted, AGAIN).is_some() {
        return Ok(page_of(page.form(target, Some(submitted), None).await?.page(user, None)));
    }
    let refused = match page.carry_out(target, submitted).await {
        Ok(answer) => return Ok(answer),
        Err(problem) => problem,
    };
    if !belongs_beside(&refused) || page.task.kind == TaskKind::Resume {
        return Err(refused);
    }
    let shown = page.form(target, Some(submitted), Some(&refused)).await?.page(user, None);
    Ok(caption(refused, shown))
}

/// A product or a line item to which a form applies.
#[derive(Clone, Copy)]
struct Target<'c> {
    product: JsonView<'c, ContractProductJson>,
    item: Option<JsonView<'c, ContractLineItemJson>>,
}

impl Target<'_> {
    fn key(&self) -> String {
        let no = self.product.product_no().to_text();
        match self.item {
            Some(item) => format!("{no}/{}", item.line_item_id().to_text()),
            None => no,
        }
    }

    fn name(&self, contract: JsonView<'_, ContractJson>) -> String {
        let product = product_title(self.product, contract);
        match self.item {
            Some(item) => format!("{product}: {}", item.name().to_text()),
            None => product,
        }
    }
}

/// The parts of a contract to which a form applies.
enum TaskSubject<'c> {
    /// The contract.
    Contract,
    /// The selected or only part.
    Part(Target<'c>),
    /// One of these parts, which the visitor selects first.
    Choice(Vec<Target<'c>>),
}

/// A form and its contract.
struct TaskPage<'a> {
    user: &'a SessionUser,
    task: &'static Task,
    reference: &'a str,
    contract: JsonAnswer<ContractJson>,
    today: String,
}

impl<'a> TaskPage<'a> {
    async fn at(user: &'a SessionUser, reference: &'a str, name: &str) -> Result<Self, Problem> {
        let task = TASKS.iter().find(|task| task.name == name).ok_or_else(Problem::unknown_route)?;
        user.allow(task.use_case()?)?;
        let contract = user.get::<GetContract>(reference).await?;
        user.shows(task.operation, reference, "");
        Ok(Self { user, task, reference, contract, today: today(user) })
    }

    fn contract(&self) -> JsonView<'_, ContractJson> {
        self.contract.view()
    }

    fn products(&self) -> impl Iterator<Item = JsonView<'_, ContractProductJson>> {
        self.contract().products().items()
    }

    /// Returns whether a product is billed today or later.
    fn is_billing(&self, product: JsonView<'_, ContractProductJson>) -> bool {
        product.billing_end_date().to_text() >= self.today
    }

    /// Returns the parts to which the form can apply.
    fn targets(&self) -> Vec<Target<'_>> {
        let products = self.products().filter(|product| self.is_billing(*product));
        let scope = self.task.scope;
        if !matches!(scope, TaskScope::FixedItem | TaskScope::LineItem) {
            return products.map(|product| Target { product, item: None }).collect();
        }
        let mut targets = Vec::new();
        for product in products {
            let items = product.line_items().items().filter(|item| scope == TaskScope::LineItem || has_quantity(*item));
            targets.extend(items.map(|item| Target { product, item: Some(item) }));
        }
        targets
    }

    fn subject(&self, submitted: &FormData) -> Result<TaskSubject<'_>, Problem> {
        if self.task.scope == TaskScope::Contract {
            return Ok(TaskSubject::Contract);
        }
        let mut targets = self.targets();
        match field(submitted, TARGET) {
            Some(wanted) => {
                let found = targets.into_iter().find(|target| target.key() == wanted);
                found.map(TaskSubject::Part).ok_or_else(Problem::unknown_route)
            }
            None if self.task.scope == TaskScope::Products => Ok(TaskSubject::Contract),
            None if targets.len() == 1 => Ok(TaskSubject::Part(targets.remove(0))),
            None => Ok(TaskSubject::Choice(targets)),
        }
    }

    fn place(&self) -> String {
        href(&["contracts", self.reference, self.task.name])
    }

    fn back(&self) -> String {
        href(&["contracts", self.reference])
    }

    fn title(&self) -> String {
        let number = self.contract().contract_number().to_text();
        match self.task.kind {
            TaskKind::Cancel | TaskKind::Resume => format!("{} {number}", self.task.title),
            _ => format!("{} of {number}", self.task.title),
        }
    }

    fn built(&self, body: Markup) -> PageBuilder {
        PageBuilder { title: self.title(), part: "contracts", crumbs: crumbs_below(self.contract()), body }
    }

    fn choice(&self, targets: &[Target<'_>]) -> PageBuilder {
        let address = |target: &Target<'_>| format!("{}?{}", self.place(), crate::query(&[(TARGET, &target.key())]));
        let choices: Vec<(String, String)> =
            targets.iter().map(|target| (target.name(self.contract()), address(target))).collect();
        self.built(crate::task_choice(&self.title(), self.task.explanation, &choices, &self.back()))
    }

    /// Renders the form with submitted values and errors, or with the present values.
    async fn form(
        &self,
        target: Option<Target<'_>>,
        submitted: Option<&FormData>,
        problem: Option<&Problem>,
    ) -> Result<PageBuilder, Problem> {
        let accounts = match self.task.kind {
            TaskKind::Invoicing => self.accounts().await?,
            _ => Vec::new(),
        };
        let inputs = Inputs { page: self, target, submitted };
        let (mut fields, mut rows) = (inputs.fields(accounts), inputs.tiers());
        let backdated = "Allow up to 1,200 documents that are due at once";
        let value = inputs.value(ALLOW_BACKDATED, String::new());
        let mut more = vec![TaskField::new(backdated, ALLOW_BACKDATED, TaskFieldKind::Flag, value)];
        let errors = problem.map_or(&[][..], Problem::errors);
        for field in fields.iter_mut().chain(rows.iter_mut().flatten()).chain(&mut more) {
            field.wrong = reasons(errors, &field.name);
        }
        let shown: Vec<&TaskField> = fields.iter().chain(rows.iter().flatten()).chain(&more).collect();
        let others = problem.map(|problem| others(problem.detail(), errors, &shown)).unwrap_or_default();
        let version = self.contract().version().to_text();
        let mut hidden =
            vec![("form_key".to_owned(), inputs.value("form_key", self.user.unique())), (VERSION.to_owned(), version)];
        hidden.extend(target.map(|target| (TARGET.to_owned(), target.key())));
        let form = TaskForm {
            title: self.title(),
            explanation: self.task.explanation,
            present: self.present(target),
            action: self.place(),
            hidden,
            fields,
            rows,
            more,
            others,
            back: self.back(),
            advanced: (*self.task.operation == EditContract::SPEC).then(|| href(&["edit", "contracts", self.reference])),
        };
        Ok(self.built(crate::task_form(&form)))
    }

    /// Returns the names of the bank accounts to choose from.
    async fn accounts(&self) -> Result<Vec<(String, String)>, Problem> {
        let listing = &listings::BANK_ACCOUNTS;
        let found = some_of(self.user, listing, MAX_ACCOUNTS).await?;
        Ok(JsonView::<Value>::of(&found)
            .elements()
            .map(|one| (one.read_as::<BankAccountJson>().account_ref().to_text(), listing.name_of(one)))
            .collect())
    }

    /// Returns the present terms that the form changes.
    fn present(&self, target: Option<Target<'_>>) -> Vec<(&'static str, Markup)> {
        let Some(target) = target else {
            let last = self.contract().effective_end_date().to_text();
            let shows_end = [TaskKind::Cancel, TaskKind::MoveEnd].contains(&self.task.kind);
            return if shows_end { vec![("Last day", html! { (last) })] } else { Vec::new() };
        };
        let product = target.product;
        let mut present = vec![("Product", html! { (product_title(product, self.contract())) })];
        if let Some(item) = target.item {
            present.push(("Line item", html! { (item.name().to_text()) }));
            if is_fixed(item) {
                present.push(("Quantity", html! { (quantity_on(item, &self.first_day(product))) }));
            }
            present.push(("Price", price(item.price(), &product.currency().to_text())));
        }
        if matches!(self.task.kind, TaskKind::EndProduct | TaskKind::MoveEnd) {
            present.push(("Last day", html! { (product.billing_end_date().to_text()) }));
        }
        present
    }

    /// Returns today, or the first day of a product that has not begun.
    fn first_day(&self, product: JsonView<'_, ContractProductJson>) -> String {
        product.billing_start_date().to_text().max(self.today.clone())
    }

    /// Renders the preview of a change.
    fn preview(&self, effects: JsonAnswer<EffectsJson>, submitted: &FormData) -> PageBuilder {
        let is_accepted = field(submitted, ACCEPTED).is_some();
        let submitted =
            submitted.iter().filter(|(name, _)| ![CONFIRMED, ACCEPTED, AGAIN].contains(&name.as_str())).cloned().collect();
        let preview = Preview {
            title: self.title(),
            tells: self.task.explanation,
            effects,
            is_accepted,
            action: self.place(),
            button: self.task.button,
            submitted,
            has_form: self.task.kind != TaskKind::Resume,
            back: self.back(),
        };
        self.built(crate::preview(&preview))
    }

    async fn rehearsed(&self, target: Option<Target<'_>>, submitted: &FormData) -> AnswerOf<DryRun> {
        let body = Value::Object(self.body(target, submitted));
        self.user.rehearse(self.task.operation, self.reference, Some(body)).await
    }

    /// Shows the preview of a submitted form, or carries out a confirmed preview.
    async fn carry_out(&self, target: Option<Target<'_>>, submitted: &FormData) -> Result<PageAnswer, Problem> {
        if field(submitted, CONFIRMED).is_none() {
            let effects = self.rehearsed(target, submitted).await?;
            return Ok(page_of(self.preview(effects, submitted).page(self.user, None)));
        }
        // The key prevents a second execution when the form is sent twice.
        let body = Some(Value::Object(self.body(target, submitted)));
        match self.user.change_as_previewed(self.task.operation, self.reference, submitted, body).await {
            Err(problem) if problem.code() == WARNINGS_NOT_ACCEPTED => {
                let effects = self.rehearsed(target, submitted).await?;
                return Ok(caption(problem, self.preview(effects, submitted).page(self.user, None)));
            }
            answer => answer?.json()?,
        };
        Ok(to(&format!("{}?done=task.{}", self.back(), self.task.name)))
    }

    /// Returns the body of the API call for a submitted form.
    fn body(&self, target: Option<Target<'_>>, submitted: &FormData) -> Map<String, Value> {
        let text = |name: &str| field(submitted, name).unwrap_or_default();
        let mut body = match (self.task.kind, target) {
            (TaskKind::Seats, Some(target)) => self.quantity(target, submitted),
            (TaskKind::Price, Some(target)) => self.edit(submitted, |product| {
                let is_target = product.json() == target.product.json();
                Some(if is_target { prices_of(target, submitted) } else { Map::new() })
            }),
            (TaskKind::Discount, Some(target)) => self.edit(submitted, |product| {
                let is_target = product.json() == target.product.json();
                Some(if is_target { Map::from_iter([cleared("discount", text("discount"))]) } else { Map::new() })
            }),
            (TaskKind::EndProduct, Some(target)) => self.edit(submitted, |product| match text("end") {
                _ if product.json() != target.product.json() => Some(Map::new()),
                // The product ends because the list no longer has it.
                end if end != ON_DATE => None,
                _ => Some(Map::from_iter([("billing_end_date".to_owned(), Value::from(text("billing_end_date")))])),
            }),
            (TaskKind::MoveEnd, target) => self.edit(submitted, |product| {
                let moves = target.map_or_else(|| self.is_billing(product), |target| product.json() == target.product.json());
                let end = ("billing_end_date".to_owned(), Value::from(text("billing_end_date")));
                Some(if moves { Map::from_iter([end]) } else { Map::new() })
            }),
            (TaskKind::Invoicing, _) => self.invoicing(submitted),
            (TaskKind::Cancel, _) if text("end") == ON_DATE => {
                Map::from_iter([("last_day".to_owned(), Value::from(text("last_day")))])
            }
            _ => Map::new(),
        };
        let is_current = match self.task.kind {
            TaskKind::Price | TaskKind::Discount => text("start") == "current",
            TaskKind::Cancel => text("end") == "today",
            // An end on a date can change the current period.
            TaskKind::EndProduct => text("end") != "period",
            TaskKind::MoveEnd => true,
            TaskKind::Seats | TaskKind::Invoicing | TaskKind::Resume => false,
        };
        if is_current {
            body.insert("include_current_invoice".to_owned(), Value::Bool(true));
        }
        if matches!(self.task.kind, TaskKind::Price | TaskKind::Discount) && text("start") == ON_DATE {
            body.insert("effective_from".to_owned(), Value::from(text("effective_from")));
        }
        if text(ALLOW_BACKDATED) == "true" {
            body.insert(ALLOW_BACKDATED.to_owned(), Value::Bool(true));
        }
        body
    }

    fn quantity(&self, target: Target<'_>, submitted: &FormData) -> Map<String, Value> {
        let mut body = identity(target.product);
        body.extend([
            ("line_item_id".to_owned(), target.item.map(|item| item.line_item_id().json().clone()).unwrap_or_default()),
            ("quantity".to_owned(), Value::from(field(submitted, "quantity").unwrap_or_default())),
            ("prorate".to_owned(), Value::Bool(field(submitted, "prorate") != Some("false"))),
        ]);
        body.extend(field(submitted, "from").map(|from| ("from".to_owned(), Value::from(from))));
        body
    }

    /// Returns the body of an edit. `changes` returns the changed fields of a product, or `None` for a product that ends.
    fn edit(
        &self,
        submitted: &FormData,
        changes: impl Fn(JsonView<'_, ContractProductJson>) -> Option<Map<String, Value>>,
    ) -> Map<String, Value> {
        let products = self.products().filter_map(|product| {
            let mut edited = identity(product);
            edited.extend(changes(product)?);
            Some(Value::Object(edited))
        });
        let mut body = Map::from_iter([("products".to_owned(), products.collect())]);
        // The version makes the edit fail if the contract changed after the form was shown.
        body.extend(field(submitted, VERSION).map(|version| (VERSION.to_owned(), whole_number(version))));
        body
    }

    /// Returns the value that all products have in common; empty if they differ.
    fn common(&self, path: &str) -> String {
        let mut values = self.products().map(|product| product.any().at_path(path).to_text());
        let first = values.next().unwrap_or_default();
        if values.all(|other| other == first) { first } else { String::new() }
    }

    /// Returns the body with the invoicing details that differ from the present ones.
    fn invoicing(&self, submitted: &FormData) -> Map<String, Value> {
        // Browsers submit line breaks of a note as two characters.
        let text = |name: &str| field(submitted, name).unwrap_or_default().replace("\r\n", "\n");
        let mut changed: Map<String, Value> = Map::new();
        for name in ["net_terms", "note", "buyer_reference"] {
            if self.common(name) != text(name) {
                changed.extend([cleared(name, &text(name))]);
            }
        }
        let account = text(ACCOUNT);
        if self.common(&format!("{BANK_TRANSFER}.{ACCOUNT}")) != account {
            let details = if account.is_empty() { Value::Null } else { json!({ ACCOUNT: account }) };
            changed.insert(BANK_TRANSFER.to_owned(), details);
        }
        let mut body = self.edit(submitted, |_| Some(changed.clone()));
        if self.contract().po_number().to_text() != text("po_number") {
            body.extend([cleared("po_number", &text("po_number"))]);
        }
        body
    }
}

/// Field of a product with its bank account.
const BANK_TRANSFER: &str = "billing_bank_transfer_details";
/// Reference of a bank account.
const ACCOUNT: &str = "billing_account_id";

/// Returns the fields that identify a product in a change.
pub(super) fn identity(product: JsonView<'_, ContractProductJson>) -> Map<String, Value> {
    let names = [field!(ContractProductJson, product_no), field!(ContractProductJson, product_pricing_ref)];
    names.into_iter().map(|name| (name.to_owned(), product.any().named(name).json().clone())).collect()
}

/// Returns a field of an edit. An empty text clears the field.
fn cleared(name: &str, text: &str) -> (String, Value) {
    (name.to_owned(), if text.is_empty() { Value::Null } else { Value::from(text) })
}

/// Returns the line items of the product with the new price of one of them.
fn prices_of(target: Target<'_>, submitted: &FormData) -> Map<String, Value> {
    let priced = target.item.map(|item| (item.line_item_id().to_text(), item.price().model().to_text()));
    let item = |item: JsonView<'_, ContractLineItemJson>| {
        let mut edited = Map::from_iter([("line_item_id".to_owned(), item.line_item_id().json().clone())]);
        if let Some((_, model)) = priced.as_ref().filter(|(id, _)| item.line_item_id().is(id)) {
            edited.insert("price".to_owned(), new_price(model, submitted));
        }
        Value::Object(edited)
    };
    Map::from_iter([("line_items".to_owned(), target.product.line_items().items().map(item).collect())])
}

/// Returns the submitted fields with these names behind a prefix.
fn given(submitted: &FormData, prefix: &str, names: &[&str]) -> Map<String, Value> {
    let value = |name: &&str| Some(((*name).to_owned(), Value::from(field(submitted, &format!("{prefix}{name}"))?)));
    names.iter().filter_map(value).collect()
}

/// Returns a price of a model from a submitted form.
fn new_price(model: &str, submitted: &FormData) -> Value {
    let mut price = Map::from_iter([("model".to_owned(), Value::from(model))]);
    match price_fields(model) {
        Some(fields) => {
            let names: Vec<&str> = fields.iter().map(|(name, ..)| *name).collect();
            price.extend(given(submitted, "", &names));
        }
        None => {
            let place = |name: &str| name.strip_prefix("tiers/")?.split('/').next()?.parse::<usize>().ok();
            let last = submitted.iter().filter_map(|(name, _)| place(name)).max();
            let count = last.map_or(0, |last| last.min(MAX_TIERS) + 1);
            let names = TIER_FIELDS.map(|(name, _)| name);
            let tiers = (0..count).map(|place| given(submitted, &format!("tiers/{place}/"), &names));
            // An empty row is no tier.
            let tiers: Value = tiers.filter(|tier| !tier.is_empty()).map(Value::Object).collect();
            price.insert("tiers".to_owned(), tiers);
        }
    }
    Value::Object(price)
}

/// Largest index of a tier in a form.
const MAX_TIERS: usize = 199;

/// The fields of a tier and their labels.
const TIER_FIELDS: [(&str, &str); 3] = [("up_to", "Up to"), ("unit_price", "Unit price"), ("flat_amount", "Flat fee")];

/// A field of a price, its label, and whether it is an amount.
type PriceField = (&'static str, &'static str, bool);

/// Returns the fields of a price model, or `None` for a model with tiers.
fn price_fields(model: &str) -> Option<&'static [PriceField]> {
    let fields: &'static [PriceField] = match model {
        "FLAT" => &[("amount", "Price each per period", true)],
        "PER_UNIT" => &[("unit_price", "Price per unit", true)],
        "PACKAGE" => &[("package_price", "Price per package", true), ("package_size", "Units per package", false)],
        "PERCENTAGE" => &[("rate", "Percentage of the amount", false), ("fixed_amount", "Fee per event", true)],
        _ => return None,
    };
    Some(fields)
}

/// The inputs of a form with their values.
struct Inputs<'p> {
    page: &'p TaskPage<'p>,
    target: Option<Target<'p>>,
    submitted: Option<&'p FormData>,
}

impl Inputs<'_> {
    /// Returns the submitted value, or else the present one.
    fn value(&self, name: &str, present: String) -> String {
        match self.submitted {
            Some(submitted) => field(submitted, name).unwrap_or_default().to_owned(),
            None => present,
        }
    }

    fn input(&self, label: &str, name: &str, kind: TaskFieldKind, present: String) -> TaskField {
        TaskField::new(label, name, kind, self.value(name, present))
    }

    fn radios(&self, label: &str, name: &str, choices: &[(&str, &str)]) -> TaskField {
        let first = choices.first().map_or("", |(value, _)| *value);
        TaskField::radios(label, name, choices, self.value(name, first.to_owned()))
    }

    /// Returns a date that applies only if the choice before it says so.
    fn date(&self, label: &str, name: &str) -> TaskField {
        self.input(label, name, TaskFieldKind::Day, String::new()).of_date()
    }

    fn currency(&self) -> String {
        self.target.map(|target| target.product.currency().to_text()).unwrap_or_default()
    }

    /// Returns the fields of the form. `accounts` has the bank accounts to choose from.
    fn fields(&self, accounts: Vec<(String, String)>) -> Vec<TaskField> {
        let page = self.page;
        let product = |name: &str| self.target.map(|target| target.product.any().named(name).to_text()).unwrap_or_default();
        match page.task.kind {
            TaskKind::Seats => {
                let first = self.target.map(|target| page.first_day(target.product)).unwrap_or_default();
                let now = self.target.and_then(|target| target.item).map(|item| quantity_on(item, &first));
                vec![
                    self.input("New quantity", "quantity", TaskFieldKind::Number, now.unwrap_or_default()).required(),
                    self.input("From", "from", TaskFieldKind::Day, first).required(),
                    self.radios(
                        "Start",
                        "prorate",
                        &[
                            ("true", "On this day: the period is billed by the days of each quantity"),
                            ("false", "With the next period after this day"),
                        ],
                    ),
                ]
            }
            TaskKind::Price => self.prices().into_iter().chain(self.start()).collect(),
            TaskKind::Discount => {
                let discount = self.input("Discount, %", "discount", TaskFieldKind::Number, product("discount"));
                [discount.hint("Leave empty for no discount.")].into_iter().chain(self.start()).collect()
            }
            TaskKind::EndProduct => vec![self.end(), self.date("Last day", "billing_end_date")],
            TaskKind::MoveEnd => {
                let last = self.target.map_or_else(
                    || page.contract().effective_end_date().to_text(),
                    |target| target.product.billing_end_date().to_text(),
                );
                let label = if self.target.is_some() { "New last day" } else { "New last day of all products" };
                vec![self.input(label, "billing_end_date", TaskFieldKind::Day, last).required()]
            }
            TaskKind::Invoicing => self.invoicing(accounts),
            TaskKind::Cancel => vec![self.end(), self.date("Last day", "last_day")],
            TaskKind::Resume => Vec::new(),
        }
    }

    fn start(&self) -> [TaskField; 2] {
        let choices = [
            ("next", "With the next period"),
            ("current", "With the current period"),
            (ON_DATE, "On a date, which must be the first day of a period"),
        ];
        [self.radios("Start", "start", &choices), self.date("Date", "effective_from")]
    }

    fn end(&self) -> TaskField {
        let choices = [("period", "At the end of the current period"), ("today", "Today"), (ON_DATE, "On a date")];
        self.radios("End", "end", &choices)
    }

    fn present_price(&self) -> Option<JsonView<'_, PriceJson>> {
        Some(self.target?.item?.price())
    }

    /// Returns the fields of a price without tiers.
    fn prices(&self) -> Vec<TaskField> {
        let Some(price) = self.present_price() else { return Vec::new() };
        let fields = price_fields(&price.model().to_text()).unwrap_or_default();
        let input = |(name, label, is_amount): &(&str, &str, bool)| {
            let input = self.input(label, name, TaskFieldKind::Number, price.any().named(name).to_text()).required();
            if *is_amount { input.hint(self.currency()) } else { input }
        };
        fields.iter().map(input).collect()
    }

    /// Returns the rows of a price with tiers, with an empty row for another tier.
    fn tiers(&self) -> Vec<Vec<TaskField>> {
        let price = self.present_price().filter(|_| self.page.task.kind == TaskKind::Price);
        let Some(price) = price.filter(|price| price_fields(&price.model().to_text()).is_none()) else { return Vec::new() };
        let tiers: Vec<JsonView<'_, TierJson>> = price.tiers().items().collect();
        let row = |place: usize| {
            let present = |name: &str| tiers.get(place).map(|tier| tier.any().named(name).to_text()).unwrap_or_default();
            let input = |(name, label): (&str, &str)| {
                self.input(label, &format!("tiers/{place}/{name}"), TaskFieldKind::Number, present(name))
            };
            Vec::from(TIER_FIELDS.map(input))
        };
        (0..tiers.len() + MORE_TIERS).map(row).collect()
    }

    fn invoicing(&self, mut accounts: Vec<(String, String)>) -> Vec<TaskField> {
        let page = self.page;
        let text = |label: &str, name: &str, kind: TaskFieldKind| self.input(label, name, kind, page.common(name));
        let order = page.contract().po_number().to_text();
        let account = self.value(ACCOUNT, page.common(&format!("{BANK_TRANSFER}.{ACCOUNT}")));
        accounts.insert(0, (String::new(), "Default of the customer or the entity".to_owned()));
        if accounts.iter().all(|(reference, _)| *reference != account) {
            accounts.push((account.clone(), account.clone()));
        }
        vec![
            self.input("Purchase order number", "po_number", TaskFieldKind::Text, order),
            text("Net terms", "net_terms", TaskFieldKind::Text).hint("Days until payment is due. Empty: the default."),
            text("Buyer reference", "buyer_reference", TaskFieldKind::Text),
            TaskField::new("Bank account", ACCOUNT, TaskFieldKind::Select(accounts), account),
            text("Note on documents", "note", TaskFieldKind::Prose),
        ]
    }
}

/// Returns whether an error concerns a field of a form: the name is the end of the pointer.
fn concerns(error: &FieldProblem, name: &str) -> bool {
    error.pointer.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'))
}

/// Returns the errors of a field.
pub(super) fn reasons(errors: &[FieldProblem], name: &str) -> Vec<String> {
    errors.iter().filter(|error| concerns(error, name)).map(|error| error.detail.clone()).collect()
}

/// Returns the errors that belong to no visible field, or the detail of a problem without errors.
pub(super) fn others(detail: &str, errors: &[FieldProblem], fields: &[&TaskField]) -> Vec<String> {
    if errors.is_empty() {
        return vec![detail.to_owned()];
    }
    let is_beside = |error: &&FieldProblem| fields.iter().any(|field| concerns(error, &field.name));
    let named = |error: &FieldProblem| {
        let name = error.pointer.rsplit('/').next().unwrap_or_default().replace('_', " ");
        format!("{name}: {}.", error.detail)
    };
    errors.iter().filter(|error| !is_beside(error)).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(pairs: &[(&str, &str)]) -> FormData {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_form_changes_state_by_an_operation_with_a_preview() {
        for task in &TASKS {
            let operation = task.operation;
            assert!(operation.changes_state() && operation.is(billing_api::operation::Flag::DryRun), "{operation:?}");
            assert_eq!(done(&format!("task.{}", task.name)), Some(task.success_message));
        }
        assert_eq!(done("task.nothing"), None);
    }

    #[test]
    fn a_price_has_the_fields_of_its_model_and_no_empty_tiers() {
        let flat = submitted(&[("amount", "9.90"), ("unit_price", "7"), ("start", "next")]);
        assert_eq!(new_price("FLAT", &flat), json!({"model": "FLAT", "amount": "9.90"}));
        let tiers = submitted(&[
            ("tiers/0/up_to", "100"),
            ("tiers/0/unit_price", "0.10"),
            ("tiers/0/flat_amount", ""),
            ("tiers/1/unit_price", "0.05"),
            ("tiers/2/up_to", ""),
            ("tiers/2/unit_price", ""),
        ]);
        let expected = json!([{"up_to": "100", "unit_price": "0.10"}, {"unit_price": "0.05"}]);
        assert_eq!(new_price("VOLUME", &tiers), json!({"model": "VOLUME", "tiers": expected}));
        assert_eq!(new_price("VOLUME", &submitted(&[("tiers/99999999999/up_to", "1")])), json!({"model": "VOLUME", "tiers": []}));
    }

    #[test]
    fn only_the_price_of_the_target_changes() {
        let product = json!({"line_items": [
            {"line_item_id": "seats", "price": {"model": "FLAT", "amount": 9}},
            {"line_item_id": "calls", "price": {"model": "PER_UNIT", "unit_price": 1}, "included_quantity": 0}]});
        let product = JsonView::of(&product);
        let target = Target { product, item: product.line_items().items().nth(1) };
        let edited = Value::Object(prices_of(target, &submitted(&[("unit_price", "0.5")])));
        let calls = json!({"line_item_id": "calls", "price": {"model": "PER_UNIT", "unit_price": "0.5"}});
        assert_eq!(edited, json!({"line_items": [{"line_item_id": "seats"}, calls]}));
    }

    #[test]
    fn an_error_stands_beside_the_field_with_its_name() {
        let error = |pointer: &str| FieldProblem {
            pointer: pointer.to_owned(),
            code: "x",
            detail: "must be lower".to_owned(),
            expected: None,
            actual: None,
        };
        let errors = [error("/products/0/discount"), error("/products/0/line_items/1/price/tiers/0/up_to")];
        assert_eq!(reasons(&errors, "discount"), ["must be lower"]);
        assert_eq!(reasons(&errors, "tiers/0/up_to"), ["must be lower"]);
        assert!(reasons(&errors, "count").is_empty() && reasons(&errors, "tiers/1/up_to").is_empty());
    }
}
