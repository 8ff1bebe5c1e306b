//! Forms that create and change objects and run actions. Fields come from the OpenAPI schema of the operation's body. A short
//! form shows the usual fields, and "Advanced" shows all of them. If an action can change documents, and for prices, the form
//! shows a preview first.

use crate::limits::is_prepaid;
use crate::{
    ACCEPTED, AGAIN, CONFIRMED, Crumb, Form, InputKind, Item, JsonView, LIVE, Listing, Preview, PricePreview, RESIZE,
    Suggestions, href, listings,
};
use billing_api::console::{FormData, PageAnswer, WARNINGS_NOT_ACCEPTED};
use billing_api::dto::contract_view::ContractJson;
use billing_api::dto::credit::GrantJson;
use billing_api::dto::documents::DocumentJson;
use billing_api::dto::effects::EffectsJson;
use billing_api::json_view::JsonAnswer;
use billing_api::operations::DryRun;
use serde_json::{Map, Value};

use super::bulk::{OPEN_PERIOD, is_period_open};
use super::charge_form::charge_form;
use super::credit_forms::{grant_form, sale_form};
use super::customer_tax;
use super::form_actions::{FormAction, form_action};
use super::form_data::{field, query};
use super::form_fields::{self, InitialValues};
use super::limit_form::limit_form;
use super::lists::{crumbs, few};
use super::openapi_index::{BodyField, shapes};
use super::page_builder::PageBuilder;
use super::pricing_form;
use super::references;
use super::reply::{after, belongs_beside, caption, html};
use super::resources;
use super::session_user::{AnswerOf, Answered, SessionUser};
use super::short_forms::{self, MAX_VISIBLE, ShortForm, ShortItems};
use super::suggestions::{SUGGESTED, has_field, suggestions};
use billing_api::operations::RateNewPricing;
use billing_api::problem::Problem;

/// Query parameter of the form with all fields.
const ADVANCED: &str = "advanced";

/// Returns whether a form exists at a place and the visitor may submit it.
pub(super) fn may(user: &SessionUser, kind: &str, what: &str) -> bool {
    form_action(kind, what).and_then(FormAction::use_case).is_ok_and(|use_case| user.may(use_case))
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
            ["do", "limit"] => Some(limit_form()),
            ["do", "grant-credit"] => Some(grant_form()),
            ["do", "sell-credit"] => Some(sale_form()),
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
        let possible = |shape: &&BodyField| can_have(self.action.place, self.present.view(), &shape.name);
        shapes(self.action.operation).iter().filter(kept).filter(possible).cloned().collect()
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
        // A contract has a number and no name of its own, so a form offers contracts only where the customer is known.
        if let (["do", "limit" | "grant-credit" | "sell-credit"], Some(customer_ref)) = (self.action.place, self.reference) {
            suggestions.push(self.contracts_of(customer_ref).await?);
        }
        if let (["do", "grant-credit"], Some(customer_ref)) = (self.action.place, self.reference) {
            suggestions.push(self.issued_invoices(customer_ref).await?);
        }
        Ok(suggestions)
    }

    /// Loads the contracts of a customer.
    async fn contracts_of(&self, customer_ref: &str) -> Result<Suggestions, Problem> {
        let narrowed = [("customer_ref", customer_ref), ("pageSize", SUGGESTED)];
        let contracts = few(&self.user.quietly(), &listings::CONTRACTS, &narrowed).await?;
        let choice = |one: JsonView<'_, ContractJson>| (one.contract_ref().to_text(), one.contract_number().to_text());
        let choices = JsonView::<Vec<ContractJson>>::of(&contracts).items().map(choice).collect();
        Ok(Suggestions { field: "contract_ref", choices })
    }

    /// Loads the latest issued invoices of a customer.
    async fn issued_invoices(&self, customer_ref: &str) -> Result<Suggestions, Problem> {
        let narrowed = [
            ("customer_ref", customer_ref),
            ("kind", "INVOICE"),
            ("order", "-created"),
            ("totals", "false"),
            ("pageSize", SUGGESTED),
        ];
        let invoices = few(&self.user.quietly(), &listings::DOCUMENTS, &narrowed).await?;
        let choice = |one: JsonView<'_, DocumentJson>| (one.document_ref().to_text(), one.document_number().to_text());
        let issued = JsonView::<Vec<DocumentJson>>::of(&invoices);
        let issued = issued.items().filter(|one| ["DRAFT", "VOID"].iter().all(|state| !one.state().is(state)));
        Ok(Suggestions { field: "source_document_ref", choices: issued.map(choice).collect() })
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

/// Returns whether the edited object can have a field: prepaid credit has no maximum, and the amount of sold credit follows from
/// its sale.
fn can_have(place: [&str; 2], present: JsonView<'_>, field: &str) -> bool {
    match (place, field) {
        (["edit", "limits"], "max") => !is_prepaid(present.read_as()),
        (["edit", "credit"], "amount") => !present.read_as::<GrantJson>().source_document_ref().is_there(),
        _ => true,
    }
}

/// Returns the submitted fields that a preview sends again.
fn resent(submitted: &FormData) -> FormData {
    let of_form = |name: &str| ![CONFIRMED, ACCEPTED, AGAIN, RESIZE, LIVE].contains(&name);
    submitted.iter().filter(|(name, _)| of_form(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_edit_has_no_field_that_its_object_cannot_have() {
        let [prepaid, owed] = ["PREPAID", "OWED"].map(|metric| json!({"metric": metric}));
        let [given, sold] = [Value::Null, json!("d1")].map(|sale| json!({"source_document_ref": sale}));
        for (place, present, field, expected) in [
            (["edit", "limits"], &prepaid, "max", false),
            (["edit", "limits"], &prepaid, "thresholds", true),
            (["edit", "limits"], &owed, "max", true),
            (["edit", "credit"], &sold, "amount", false),
            (["edit", "credit"], &sold, "to", true),
            (["edit", "credit"], &given, "amount", true),
        ] {
            assert_eq!(can_have(place, JsonView::of(present), field), expected, "{place:?} {field}");
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
}
