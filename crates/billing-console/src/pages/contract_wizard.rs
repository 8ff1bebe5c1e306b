//! The wizard that creates a contract or adds products to a contract. The choices of completed steps are in the address, so
//! that each step can be repeated.

use crate::{
    ACCEPTED, CONFIRMED, Crumb, JsonView, ON_DATE, PREVIEWED, TaskField, TaskFieldKind, WizardOption, WizardPage, WizardPreview,
    WizardStep, href, listings,
};
use billing_api::console::{FormData, PageAnswer, WARNINGS_NOT_ACCEPTED};
use billing_api::dto::contract_view::{ContractCreatedJson, ContractJson};
use billing_api::dto::customers::CustomerJson;
use billing_api::dto::pricings::{LineItemJson, PricingJson};
use billing_api::dto::search::SearchResultJson;
use billing_api::json_view::JsonAnswer;
use billing_api::operation::OperationSpec;
use billing_api::operations::{CreateContract, EditContract, GetContract, GetCustomer, GetPricing, Search};
use billing_domain::calendar::{Date, parse_date, plus_months};
use serde_json::{Map, Value, json};

use super::api_client::or_nothing;
use super::contract_periods::{self, AS_CONTRACT, PERIODS};
use super::contract_tasks::{ALLOW_BACKDATED, crumbs_below, identity, others, reasons};
use super::form_data::{field, pairs, query};
use super::forms::FormPage;
use super::lists::{crumbs, few, some_of};
use super::page_builder::PageBuilder;
use super::reply::{belongs_beside, caption, html, to};
use super::session_user::SessionUser;
use billing_api::problem::{FieldProblem, Problem};

/// Query parameter that opens the form with all fields instead of the wizard.
const ADVANCED: &str = "advanced";
/// Hidden field of the wizard's forms, which tells them from the form with all fields.
const WIZARD: &str = "wizard";
/// Parameter that selects a step.
const STEP: &str = "step";
/// Parameter of a selected pricing, which can be repeated.
const PRICING: &str = "pricing";
/// Maximum number of pricings in one contract of the wizard. Each one is an API call.
const MAX_PRICINGS: usize = 6;
/// Number of pricings to choose from without a search.
const OFFERED_PRICINGS: &str = "30";
/// Number of search results to choose from.
const MAX_RESULTS: usize = 30;
/// Number of quantities that are always visible.
const QUANTITIES_AT_ONCE: usize = 8;
/// Last day of a contract that has no planned end.
const NO_END: &str = "2099-12-31";
/// The terms to choose from, in months.
const MONTHS: [i64; 3] = [12, 24, 36];

/// Renders a step of the wizard for a new contract, or the form with all fields.
pub(super) async fn show(user: &SessionUser, submitted: &FormData) -> Result<PageAnswer, Problem> {
    if field(submitted, ADVANCED).is_some() {
        return FormPage::shown_at(user, "new", "contracts", None).await.map(html);
    }
    Ok(html(page(user, None).await?.page(user, None)))
}

/// Handles the last step of the wizard, or the form with all fields.
pub(super) async fn submit(user: &SessionUser, submitted: &FormData) -> Result<PageAnswer, Problem> {
    if field(submitted, WIZARD).is_none() {
        return FormPage::taken_at(user, "new", "contracts", None, submitted).await;
    }
    act(user, None, submitted).await
}

/// Renders a step of the wizard. `reference` selects the contract to which products are added.
///
/// # Errors
/// Returns a problem if the contract does not exist, if an API call fails, or if the visitor may not change contracts.
pub(super) async fn page(user: &SessionUser, reference: Option<&str>) -> Result<PageBuilder, Problem> {
    let submitted = query(&user.request);
    let wizard = Wizard::of(user, reference, &submitted).await?;
    match wizard.step() {
        Step::Customer => wizard.customers().await,
        Step::Pricings => wizard.pricing_choice().await,
        Step::Term => Ok(wizard.term()),
        Step::Quantities => Ok(wizard.quantities(None).await?.0),
    }
}

/// Handles the last step: updates the preview, or creates or edits the contract as previewed.
///
/// # Errors
/// Returns problems that cannot be shown beside the form.
pub(super) async fn act(user: &SessionUser, reference: Option<&str>, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let wizard = Wizard::of(user, reference, submitted).await?;
    let Some(body) = wizard.body() else { return Err(Problem::unknown_route()) };
    let mut notice = None;
    if field(submitted, CONFIRMED).is_some() {
        if field(submitted, PREVIEWED) == Some(body.to_string().as_str()) {
            match wizard.carry_out(body).await {
                Ok(answer) => return Ok(answer),
                Err(problem) if !belongs_beside(&problem) => return Err(problem),
                // The preview has the warnings.
                Err(problem) if problem.code() == WARNINGS_NOT_ACCEPTED => {}
                Err(problem) => notice = Some(problem.detail().to_owned()),
            }
        } else {
            notice = Some("The values differ from the preview. Check the new preview, then continue.".to_owned());
        }
    }
    let (page, problem) = wizard.quantities(notice).await?;
    let page = page.page(user, None);
    Ok(match problem {
        Some(problem) => caption(problem, page),
        None => html(page),
    })
}

/// A step of the wizard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Customer,
    Pricings,
    Term,
    Quantities,
}

impl Step {
    const ALL: [Self; 4] = [Self::Customer, Self::Pricings, Self::Term, Self::Quantities];

    const fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::Pricings => "pricings",
            Self::Term => "term",
            Self::Quantities => "quantities",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Customer => "Customer",
            Self::Pricings => "Pricings",
            Self::Term => "Start and term",
            Self::Quantities => "Quantities and preview",
        }
    }

    const fn explanation(self) -> &'static str {
        match self {
            Self::Customer => "Select the customer who pays.",
            Self::Pricings => "Select one or more pricings.",
            Self::Term => "Set the first day, the last day and the times of invoices.",
            Self::Quantities => "Set quantities and a discount, and check the first documents.",
        }
    }
}

/// The first and the last billed day, or the name of an invalid field and the reason.
type BilledDays = Result<(String, String), (&'static str, &'static str)>;

/// The choices so far and the objects that they name.
struct Wizard<'a> {
    user: &'a SessionUser,
    submitted: &'a FormData,
    /// The contract to which products are added, or null for a new contract.
    contract: JsonAnswer<ContractJson>,
    /// The customer, or null before it is selected.
    customer: JsonAnswer<CustomerJson>,
    /// The selected pricings.
    pricings: Vec<JsonAnswer<PricingJson>>,
    today: Date,
}

impl<'a> Wizard<'a> {
    async fn of(user: &'a SessionUser, reference: Option<&str>, submitted: &'a FormData) -> Result<Self, Problem> {
        let contract = match reference {
            Some(reference) => user.get::<GetContract>(reference).await?,
            None => JsonAnswer::default(),
        };
        let customer_ref = match reference {
            Some(_) => contract.view().customer_ref().to_text(),
            None => field(submitted, "customer_ref").unwrap_or_default().to_owned(),
        };
        let customer = match customer_ref.as_str() {
            "" => JsonAnswer::default(),
            customer_ref => or_nothing(user.get::<GetCustomer>(customer_ref).await)?,
        };
        let mut selected: Vec<&str> = Vec::new();
        for (name, value) in submitted {
            if name == PRICING && !value.is_empty() && !selected.contains(&value.as_str()) && selected.len() < MAX_PRICINGS {
                selected.push(value);
            }
        }
        let mut pricings = Vec::new();
        for pricing_ref in selected {
            pricings.push(or_nothing(user.get::<GetPricing>(pricing_ref).await)?);
        }
        pricings.retain(|pricing| pricing.view().is_there());
        user.shows(
            if reference.is_some() { &EditContract::SPEC } else { &CreateContract::SPEC },
            reference.unwrap_or_default(),
            "",
        );
        let today = user.zone.service_date(user.now());
        Ok(Self { user, submitted, contract, customer, pricings, today })
    }

    fn is_new(&self) -> bool {
        !self.contract().is_there()
    }

    fn contract(&self) -> JsonView<'_, ContractJson> {
        self.contract.view()
    }

    fn pricings(&self) -> impl Iterator<Item = JsonView<'_, PricingJson>> {
        self.pricings.iter().map(JsonAnswer::view)
    }

    /// Returns the requested step, or the first step whose choice is missing.
    fn step(&self) -> Step {
        match field(self.submitted, STEP) {
            _ if !self.customer.view().is_there() => Step::Customer,
            Some("customer") if self.is_new() => Step::Customer,
            _ if self.pricings.is_empty() => Step::Pricings,
            Some("pricings") => Step::Pricings,
            Some("quantities") if self.days().is_ok() => Step::Quantities,
            _ => Step::Term,
        }
    }

    /// Returns a submitted value, or else a default.
    fn value(&self, name: &str, default: &str) -> String {
        field(self.submitted, name).unwrap_or(default).to_owned()
    }

    /// Returns the first and the last billed day.
    fn days(&self) -> BilledDays {
        let first = self.value("start", &self.today.to_string());
        let start = parse_date(&first).map_err(|_| ("start", "must be a date"))?;
        let last = match self.value("term", self.default_term()).as_str() {
            "open" => NO_END.to_owned(),
            AS_CONTRACT => self.contract().effective_end_date().to_text(),
            ON_DATE => self.value("end", ""),
            months => {
                let months = months.parse().ok().filter(|months| MONTHS.contains(months)).unwrap_or(MONTHS[0]);
                plus_months(start, months).pred_opt().unwrap_or(start).to_string()
            }
        };
        let last = parse_date(&last).map_err(|_| ("end", "must be a date"))?;
        if last < start {
            return Err(("end", "must not be before the first day"));
        }
        Ok((first, last.to_string()))
    }

    fn default_term(&self) -> &'static str {
        if self.is_new() { "12" } else { AS_CONTRACT }
    }

    /// Returns the day from which periods are counted, or `None` if they are counted from the last day.
    fn issue_day(&self, first: &str, last: &str) -> Option<Date> {
        let periods = self.value(PERIODS, contract_periods::default(self.is_new()));
        let (first, last) = (parse_date(first).ok()?, parse_date(last).ok()?);
        let term = self.value("term", self.default_term());
        let is_of_years = MONTHS.iter().any(|months| months.to_string() == term);
        let is_once = self.value("cycle", "MONTHLY") == "ONE_TIME";
        contract_periods::issue_day(&periods, (first, last), is_of_years).filter(|_| !is_once)
    }

    /// Returns the target of the wizard's forms.
    fn place(&self) -> String {
        match self.contract().contract_ref().to_text().as_str() {
            "" => href(&["new", "contracts"]),
            reference => href(&["contracts", reference, "add"]),
        }
    }

    /// Returns the address of a step with the choices so far.
    fn address(&self, step: Step, more: &[(&str, &str)]) -> String {
        let not_kept = [STEP, "q", "form_key", PREVIEWED, CONFIRMED, WIZARD];
        let replaced = |name: &str| not_kept.contains(&name) || more.iter().any(|(other, _)| *other == name);
        let kept = pairs(self.submitted).into_iter().filter(|(name, value)| !value.is_empty() && !replaced(name));
        let all: Vec<(&str, &str)> = kept.chain(more.iter().copied()).chain([(STEP, step.name())]).collect();
        format!("{}?{}", self.place(), crate::query(&all))
    }

    /// Returns the choices that the form of a step does not contain.
    fn hidden(&self, is_asked: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let never = [STEP, "q", "form_key", PREVIEWED, CONFIRMED, ACCEPTED, WIZARD];
        let is_kept = |(name, value): &&(String, String)| !value.is_empty() && !never.contains(&name.as_str()) && !is_asked(name);
        self.submitted.iter().filter(is_kept).cloned().collect()
    }

    /// Returns everything around a step.
    fn around(&self, current: Step, hidden: Vec<(String, String)>) -> WizardPage {
        let steps = Step::ALL.into_iter().filter(|step| self.is_new() || *step != Step::Customer);
        let step = |step: Step| {
            let is_before = step < current;
            WizardStep {
                label: step.label(),
                choice: if is_before { self.choice(step) } else { String::new() },
                address: is_before.then(|| self.address(step, &[])),
                is_current: step == current,
            }
        };
        let reference = self.contract().contract_ref().to_text();
        let (back, advanced) = if self.is_new() {
            (href(&["contracts"]), format!("{}?{ADVANCED}=yes", href(&["new", "contracts"])))
        } else {
            (href(&["contracts", &reference]), href(&["edit", "contracts", &reference]))
        };
        WizardPage {
            title: self.title(),
            explanation: current.explanation(),
            steps: steps.map(step).collect(),
            action: self.place(),
            hidden,
            back,
            advanced,
        }
    }

    /// Returns the choice of a completed step.
    fn choice(&self, step: Step) -> String {
        match step {
            Step::Customer => self.customer.view().profile().name().to_text(),
            Step::Pricings => self.pricings().map(|pricing| pricing.name().to_text()).collect::<Vec<_>>().join(", "),
            Step::Term => self.days().map(|(first, last)| format!("{first} – {last}")).unwrap_or_default(),
            Step::Quantities => String::new(),
        }
    }

    fn title(&self) -> String {
        match self.contract().contract_number().to_text().as_str() {
            "" => "New contract".to_owned(),
            number => format!("Add product to {number}"),
        }
    }

    fn built(&self, body: maud::Markup) -> PageBuilder {
        let crumbs: Vec<Crumb> = if self.is_new() { crumbs(&listings::CONTRACTS) } else { crumbs_below(self.contract()) };
        PageBuilder { title: self.title(), part: "contracts", crumbs, body }
    }

    /// Returns the objects of a kind that a search finds: reference and name.
    async fn found(&self, kind: &str, sought: &str) -> Result<Vec<(String, String)>, Problem> {
        let raw = crate::query(&[("q", sought)]);
        let found = self.user.get_with::<Search>("", &raw).await?;
        let of_kind = found.view().items().filter(|one| one.kind().is(kind)).take(MAX_RESULTS);
        let named = |one: JsonView<'_, SearchResultJson>| {
            let (reference, name) = (one.reference().to_text(), one.name().to_text());
            (reference.clone(), if name.is_empty() { reference } else { name })
        };
        Ok(of_kind.map(named).collect())
    }

    async fn customers(&self) -> Result<PageBuilder, Problem> {
        let sought = field(self.submitted, "q").unwrap_or_default();
        let found: Vec<(String, String)> = if sought.is_empty() {
            let newest = few(self.user, &listings::CUSTOMERS, &[]).await?;
            JsonView::<Vec<CustomerJson>>::of(&newest)
                .items()
                .map(|one| (one.customer_ref().to_text(), one.profile().name().to_text()))
                .collect()
        } else {
            self.found("CUSTOMER", sought).await?
        };
        let option = |(reference, name): (String, String)| {
            let address = self.address(Step::Pricings, &[("customer_ref", &reference)]);
            (WizardOption { note: reference.clone(), reference, name, is_selected: false }, address)
        };
        let options: Vec<(WizardOption, String)> = found.into_iter().map(option).collect();
        let around = self.around(Step::Customer, self.hidden(|_| false));
        Ok(self.built(crate::wizard_customers(&around, sought, &options)))
    }

    async fn pricing_choice(&self) -> Result<PageBuilder, Problem> {
        let sought = field(self.submitted, "q").unwrap_or_default();
        let of_pricing = |pricing: JsonView<'_, PricingJson>, is_selected: bool| WizardOption {
            reference: pricing.product_pricing_ref().to_text(),
            name: pricing.name().to_text(),
            note: pricing.currency().to_text(),
            is_selected,
        };
        // Selected pricings come first, also if the search does not find them.
        let mut options: Vec<WizardOption> = self.pricings().map(|pricing| of_pricing(pricing, true)).collect();
        let offered: Vec<WizardOption> = if sought.is_empty() {
            let all = some_of(self.user, &listings::PRICINGS, OFFERED_PRICINGS).await?;
            JsonView::<Vec<PricingJson>>::of(&all).items().map(|pricing| of_pricing(pricing, false)).collect()
        } else {
            let found = self.found("PRICING", sought).await?.into_iter();
            found.map(|(reference, name)| WizardOption { reference, name, note: String::new(), is_selected: false }).collect()
        };
        for option in offered {
            if options.iter().all(|other| other.reference != option.reference) {
                options.push(option);
            }
        }
        let is_submitted = field(self.submitted, STEP) == Some(Step::Term.name());
        let others: Vec<String> = is_submitted.then(|| "Select at least one pricing.".to_owned()).into_iter().collect();
        let around = self.around(Step::Pricings, self.hidden(|name| name == PRICING));
        Ok(self.built(crate::wizard_pricings(&around, sought, &options, &others)))
    }

    fn term(&self) -> PageBuilder {
        let text = |value: &str, label: &str| (value.to_owned(), label.to_owned());
        let months = MONTHS.iter().map(|months| text(&months.to_string(), &format!("{months} months")));
        let mut terms: Vec<(String, String)> = months.collect();
        terms.extend([text("open", "No planned end"), text(ON_DATE, "Until a date")]);
        if !self.is_new() {
            let last = self.contract().effective_end_date().to_text();
            terms.insert(0, text(AS_CONTRACT, &format!("Until the end of the contract, {last}")));
        }
        let periods = self.value(PERIODS, contract_periods::default(self.is_new()));
        let cycles = [("MONTHLY", "Every month"), ("QUARTERLY", "Every quarter"), ("YEARLY", "Every year"), ("ONE_TIME", "Once")];
        let times = [
            ("AFTER_USE", "After each period"),
            ("BEFORE_USE", "Before each period"),
            ("DURING_USE", "Fees on the first day of the period, usage with the next invoice"),
        ];
        let choices = |all: &[(&str, &str)]| TaskFieldKind::Select(all.iter().map(|(value, label)| text(value, label)).collect());
        let today = self.today.to_string();
        let mut fields = vec![
            TaskField::new("First day", "start", TaskFieldKind::Day, self.value("start", &today)).required(),
            TaskField::new("Term", "term", TaskFieldKind::Radios(terms), self.value("term", self.default_term())),
            TaskField::new("Last day", "end", TaskFieldKind::Day, self.value("end", "")).of_date(),
            contract_periods::field(self.is_new(), periods),
            TaskField::new("Invoices", "cycle", choices(&cycles), self.value("cycle", "MONTHLY")),
            TaskField::new("Time of payment", "payment_time", choices(&times), self.value("payment_time", "AFTER_USE")),
        ];
        if field(self.submitted, STEP) == Some(Step::Quantities.name())
            && let Err((name, reason)) = self.days()
        {
            fields.iter_mut().filter(|field| field.name == name).for_each(|field| field.wrong.push(reason.to_owned()));
        }
        let around = self.around(Step::Term, self.hidden(|name| fields.iter().any(|field| field.name == name)));
        self.built(crate::wizard_term(&around, &fields))
    }

    /// Returns the fields of the last step: those always visible, and those visible on request.
    fn fields(&self) -> (Vec<TaskField>, Vec<TaskField>) {
        let number = TaskFieldKind::Number;
        let mut quantities = Vec::new();
        for pricing in self.pricings() {
            for item in pricing.line_items().items().filter(|item| item.kind().is("FIXED")) {
                let (name, label) = (quantity_name(pricing, item), item.name().to_text());
                let label = if self.pricings.len() > 1 { format!("{}: {label}", pricing.name().to_text()) } else { label };
                quantities.push(TaskField::new(&label, &name, number.clone(), self.value(&name, "1")));
            }
        }
        let mut more = quantities.split_off(quantities.len().min(QUANTITIES_AT_ONCE));
        quantities.push(TaskField::new("Discount, %", "discount", number, self.value("discount", "")));
        if self.is_new() {
            let order = self.value("po_number", "");
            quantities.push(TaskField::new("Purchase order number", "po_number", TaskFieldKind::Text, order));
        }
        let terms = self.value("net_terms", "");
        let hint = "Days until payment is due, such as 30. Empty: the default of the customer or the entity.";
        more.push(TaskField::new("Net terms", "net_terms", TaskFieldKind::Text, terms).hint(hint));
        let backdated = self.value(ALLOW_BACKDATED, "");
        let label = "Allow up to 1,200 documents that are due at once";
        more.push(TaskField::new(label, ALLOW_BACKDATED, TaskFieldKind::Flag, backdated));
        (quantities, more)
    }

    /// Renders the last step with the effects of the current values. Returns the problem if the values are refused.
    async fn quantities(&self, notice: Option<String>) -> Result<(PageBuilder, Option<Problem>), Problem> {
        let Some(body) = self.body() else { return Ok((self.term(), None)) };
        let previewed = body.to_string();
        let rehearsed = self.user.rehearse(self.operation(), &self.reference(), Some(body)).await;
        let (effects, problem) = match rehearsed {
            Ok(effects) => (effects, None),
            Err(problem) if belongs_beside(&problem) => (JsonAnswer::default(), Some(problem)),
            Err(problem) => return Err(problem),
        };
        let (mut fields, mut more) = self.fields();
        let errors: Vec<FieldProblem> = problem.iter().flat_map(Problem::errors).map(|error| self.own(error)).collect();
        for field in fields.iter_mut().chain(&mut more) {
            field.wrong = reasons(&errors, &field.name);
        }
        let shown: Vec<&TaskField> = fields.iter().chain(&more).collect();
        let refused = problem.as_ref().map(|problem| others(problem.detail(), &errors, &shown));
        let others: Vec<String> = notice.into_iter().chain(refused.unwrap_or_default()).collect();
        let asked: Vec<&str> = shown.iter().map(|field| field.name.as_str()).collect();
        let mut hidden = self.hidden(|name| asked.contains(&name));
        hidden.push((WIZARD.to_owned(), "yes".to_owned()));
        hidden.push(("form_key".to_owned(), self.value("form_key", &self.user.unique())));
        let button = if self.is_new() { "Create contract" } else { "Add product" };
        let is_accepted = field(self.submitted, ACCEPTED).is_some();
        let preview = WizardPreview { fields, more, previewed, effects, is_accepted, others, button };
        let page = self.built(crate::wizard_preview(&self.around(Step::Quantities, hidden), &preview));
        Ok((page, problem))
    }

    /// Returns an error with the field of the wizard instead of the field of the request.
    fn own(&self, error: &FieldProblem) -> FieldProblem {
        let mut own = error.clone();
        let parts: Vec<&str> = error.pointer.trim_start_matches('/').split('/').collect();
        if let ["products", place, "line_items", item, "quantities", ..] = parts.as_slice() {
            let index = |text: &str| text.parse::<usize>().ok();
            let existing = self.contract().products().items().count();
            let pricing = index(place).and_then(|place| self.pricings().nth(place.checked_sub(existing)?));
            let name = pricing
                .zip(index(item))
                .and_then(|(pricing, item)| Some(quantity_name(pricing, pricing.line_items().items().nth(item)?)));
            if let Some(name) = name {
                own.pointer = format!("/{name}");
            }
        }
        own
    }

    fn operation(&self) -> &'static OperationSpec {
        if self.is_new() { &CreateContract::SPEC } else { &EditContract::SPEC }
    }

    fn reference(&self) -> String {
        self.contract().contract_ref().to_text()
    }

    async fn carry_out(&self, body: Value) -> Result<PageAnswer, Problem> {
        let answer = self.user.change_as_previewed(self.operation(), &self.reference(), self.submitted, Some(body)).await?;
        let contract_ref = JsonView::<ContractCreatedJson>::of(&answer.json()?).contract_ref().to_text();
        let done = if self.is_new() { "new.contracts" } else { "task.add" };
        Ok(to(&format!("{}?done={done}", href(&["contracts", &contract_ref]))))
    }

    /// Returns the body of the API call, or `None` if a choice is missing.
    fn body(&self) -> Option<Value> {
        let (first, last) = self.days().ok()?;
        if !self.customer.view().is_there() || self.pricings.is_empty() {
            return None;
        }
        let added = self.pricings().map(|pricing| self.product(pricing, &first, &last));
        let mut body = Map::new();
        if self.is_new() {
            body.insert("customer_ref".to_owned(), self.customer.view().customer_ref().json().clone());
            body.extend(field(self.submitted, "po_number").map(|order| ("po_number".to_owned(), Value::from(order))));
            body.insert("products".to_owned(), added.collect());
        } else {
            let existing = self.contract().products().items().map(|product| Value::Object(identity(product)));
            body.insert("version".to_owned(), self.contract().version().json().clone());
            body.insert("products".to_owned(), existing.chain(added).collect());
        }
        if field(self.submitted, ALLOW_BACKDATED).is_some() {
            body.insert(ALLOW_BACKDATED.to_owned(), Value::Bool(true));
        }
        Some(Value::Object(body))
    }

    /// Returns a product of the API call.
    fn product(&self, pricing: JsonView<'_, PricingJson>, first: &str, last: &str) -> Value {
        let mut product = json!({
            "product_pricing_ref": pricing.product_pricing_ref().json(),
            "billing_start_date": first,
            "billing_end_date": last,
            "billing_cycle": {"unit": self.value("cycle", "MONTHLY")},
            "payment_time": self.value("payment_time", "AFTER_USE"),
        });
        if let Some(day) = self.issue_day(first, last) {
            product["issue_day"] = Value::from(day.to_string());
        }
        for name in ["discount", "net_terms"] {
            if let Some(value) = field(self.submitted, name) {
                product[name] = Value::from(value);
            }
        }
        let quantity = |item: JsonView<'_, LineItemJson>| {
            let quantity = field(self.submitted, &quantity_name(pricing, item)).filter(|quantity| *quantity != "1");
            quantity.filter(|_| item.kind().is("FIXED"))
        };
        let items = || pricing.line_items().items();
        // Without a list, the product has all line items of the pricing.
        if items().any(|item| quantity(item).is_some()) {
            let item = |item: JsonView<'_, LineItemJson>| {
                let mut selected = json!({"line_item_id": item.line_item_id().json()});
                if let Some(quantity) = quantity(item) {
                    selected["quantities"] = json!([{"from": first, "quantity": quantity}]);
                }
                selected
            };
            product["line_items"] = items().map(item).collect();
        }
        product
    }
}

/// Returns the name of the field with the quantity of a line item.
fn quantity_name(pricing: JsonView<'_, PricingJson>, item: JsonView<'_, LineItemJson>) -> String {
    format!("quantity/{}/{}", pricing.product_pricing_ref().to_text(), item.line_item_id().to_text())
}
