//! The form that adds a row to a table of prices: a line item for values of labels, with a price per unit.

use crate::{Crumb, Field, Form, InputKind, Item, JsonView, LABEL, PriceTable, add_price, href, listings};
use billing_api::console::{FormData, PageAnswer};
use billing_api::dto::contract_view::ContractJson;
use billing_api::dto::pricings::{LineItemJson, PricingJson};
use billing_api::json_view::JsonAnswer;
use billing_api::operations::{EditPricing, GetPricing};
use billing_api::problem::{FieldProblem, Problem};
use serde_json::{Map, Value, json};

use super::form_data::{field, query};
use super::forms;
use super::lists::{crumbs, few};
use super::page_builder::PageBuilder;
use super::pricing_form::LINE_ITEMS;
use super::references;
use super::reply::{belongs_beside, caption, html, to};
use super::session_user::SessionUser;

/// The field with the key of an attribute without a column, and the field with its values.
const NEW_KEY: &str = "new/key";
const NEW_VALUES: &str = "new/values";
/// The field of a price per unit.
const UNIT_PRICE: &str = "price/unit_price";

/// The form of a pricing and a usage product.
struct RowForm<'a> {
    user: &'a SessionUser,
    pricing: JsonAnswer<PricingJson>,
    usage_product_ref: String,
    /// Index of the new line item: after the last one with a condition, so that the order of lines is that of the table. The first one
    /// comes before the line item that then counts the rest.
    place: usize,
    keys: Vec<String>,
    /// Index of the line item that counts all events of the usage product until now.
    whole: Option<usize>,
}

/// Renders the form, filled with the labels in the query. If the pricing does not bill the usage product, leads to the pricing.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn show(user: &SessionUser, reference: &str, asked: &FormData) -> Result<PageAnswer, Problem> {
    let form = RowForm::at(user, reference).await?;
    if form.keys.is_empty() && form.whole.is_none() {
        return Ok(to(&href(&["pricings", reference])));
    }
    Ok(html(form.page(&form.prefilled(asked), None)))
}

/// Adds the line item to the pricing. The form needs no idempotency key, because conditions must not overlap.
///
/// # Errors
/// Returns problems that cannot be shown beside the form.
pub(super) async fn act(user: &SessionUser, reference: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let form = RowForm::at(user, reference).await?;
    match user.change(&EditPricing::SPEC, reference, None, Some(form.body(submitted))).await {
        Ok(_) => Ok(to(&format!("{}?done=price", href(&["pricings", reference])))),
        Err(problem) if belongs_beside(&problem) => {
            let page = form.page(submitted, Some(&problem));
            Ok(caption(problem, page))
        }
        Err(problem) => Err(problem),
    }
}

/// Leads from rejected usage to the pricing by which the customer's contract meters the usage product. Of several contracts, the
/// one with the latest start counts, as for events. If the event names its customer or usage product otherwise than by reference,
/// leads to all pricings.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn of_rejected(user: &SessionUser, asked: &FormData) -> Result<PageAnswer, Problem> {
    let customer_ref = field(asked, "customer_ref").unwrap_or_default();
    let usage_product_ref = field(asked, "usage_product_ref").unwrap_or_default();
    let contracts = few(&user.quietly(), &listings::CONTRACTS, &[("customer_ref", customer_ref), ("pageSize", "100")]).await?;
    let today = user.zone.service_date(user.now()).to_string();
    let products = JsonView::<Vec<ContractJson>>::of(&contracts).items().flat_map(|contract| contract.products().items());
    let metered = products.filter(|product| {
        let mut items = product.line_items().items();
        items.any(|item| item.usage_product_ref().is(usage_product_ref))
    });
    let latest =
        metered.max_by_key(|product| (product.billing_end_date().to_text() >= today, product.billing_start_date().to_text()));
    let Some(product) = latest else { return Ok(to(&href(&[listings::PRICINGS.part]))) };
    let pricing = product.product_pricing_ref().to_text();
    if !forms::may(user, "edit", listings::PRICINGS.part) {
        return Ok(to(&href(&["pricings", &pricing])));
    }
    let labels = asked.iter().filter_map(|(name, text)| Some((name.strip_prefix(LABEL)?.to_owned(), text.clone())));
    Ok(to(&add_price(&pricing, usage_product_ref, &labels.collect::<Vec<_>>())))
}

/// Returns the field with the values of a label key.
fn label(key: &str) -> String {
    format!("where/{key}")
}

/// Returns the values of a field, one of each line. A value may contain commas.
fn values_of(submitted: &FormData, name: &str) -> Vec<String> {
    let lines = field(submitted, name).unwrap_or_default().lines().map(str::trim);
    lines.filter(|value| !value.is_empty()).map(str::to_owned).collect()
}

impl<'a> RowForm<'a> {
    async fn at(user: &'a SessionUser, reference: &str) -> Result<Self, Problem> {
        let pricing = user.get::<GetPricing>(reference).await?;
        let usage_product_ref = field(&query(&user.request), "usage_product_ref").unwrap_or_default().to_owned();
        let view = pricing.view();
        let table = PriceTable::all(view).0.into_iter().find(|table| table.usage_product_ref == usage_product_ref);
        let keys: Vec<String> = table.map(|table| table.keys.into_iter().map(str::to_owned).collect()).unwrap_or_default();
        let is_of_table =
            |item: &JsonView<'_, LineItemJson>| item.condition().is_there() && item.usage_product_ref().is(&usage_product_ref);
        let items: Vec<JsonView<'_, LineItemJson>> = view.line_items().items().collect();
        let is_whole = |item: &JsonView<'_, LineItemJson>| {
            crate::counts_all_events(*item) && item.usage_product_ref().is(&usage_product_ref)
        };
        let whole = if keys.is_empty() { items.iter().position(is_whole) } else { None };
        let place = items.iter().rposition(is_of_table).map_or(whole.unwrap_or(items.len()), |last| last + 1);
        Ok(Self { user, usage_product_ref, place, keys, whole, pricing })
    }

    /// Returns the field of an error: that of the new line item, or else the pointer.
    fn field_of<'e>(&self, error: &'e FieldProblem) -> &'e str {
        let pointer = error.pointer.trim_start_matches('/');
        let own = pointer.strip_prefix(&format!("{LINE_ITEMS}/{}/", self.place)).unwrap_or(pointer);
        match own.strip_prefix("where/").map(|key| key.split('/').next().unwrap_or(key)) {
            Some(key) => self.keys.iter().find(|known| *known == key).map_or(NEW_KEY, |_| &own[..("where/".len() + key.len())]),
            None if own == "where" => NEW_KEY,
            None => own,
        }
    }

    /// Returns the form data with the labels of a query.
    fn prefilled(&self, asked: &FormData) -> FormData {
        let text = |key: &String| Some((label(key), field(asked, &format!("{LABEL}{key}"))?.to_owned()));
        let mut values: FormData = self.keys.iter().filter_map(text).collect();
        // The first attribute of rejected usage is a guess for the first column.
        let first = asked.iter().find_map(|(name, text)| Some((name.strip_prefix(LABEL)?.to_owned(), text.clone())));
        if let (Some((key, text)), true) = (first, self.keys.is_empty()) {
            values.extend([(NEW_KEY.to_owned(), key), (NEW_VALUES.to_owned(), text)]);
        }
        values.push(("name".to_owned(), self.proposed_name(&values)));
        values
    }

    /// Returns the name that the labels give, such as `gpt-5 input`.
    fn proposed_name(&self, submitted: &FormData) -> String {
        let fields = self.keys.iter().map(|key| label(key)).chain([NEW_VALUES.to_owned()]);
        let values: Vec<String> = fields.flat_map(|name| values_of(submitted, &name)).collect();
        values.join(" ")
    }

    /// Returns the edit with the new line item.
    fn body(&self, submitted: &FormData) -> Value {
        let mut items = self.pricing.view().line_items().json().as_array().cloned().unwrap_or_default();
        let ids: Vec<String> = self.pricing.view().line_items().items().map(|item| item.line_item_id().to_text()).collect();
        let stated = |name: &str| field(submitted, name).map(str::to_owned);
        let name = stated("name").unwrap_or_else(|| self.proposed_name(submitted));
        let made = || references::free(&references::reference_of(&name).unwrap_or_else(|| "price".to_owned()), &ids);
        let known = self.keys.iter().map(|key| (key.clone(), values_of(submitted, &label(key))));
        let new = (stated(NEW_KEY).unwrap_or_default(), values_of(submitted, NEW_VALUES));
        let condition = known.chain([new]).filter(|(key, values)| !key.is_empty() && !values.is_empty());
        let condition = condition.map(|(key, values)| (key, Value::from(values)));
        if let Some(Value::Object(whole)) = self.whole.and_then(|whole| items.get_mut(whole)) {
            whole.insert("rest".to_owned(), Value::from(true));
        }
        let item = Map::from_iter([
            ("line_item_id".to_owned(), Value::from(stated("line_item_id").unwrap_or_else(made))),
            ("name".to_owned(), Value::from(name)),
            ("kind".to_owned(), Value::from("USAGE")),
            ("usage_product_ref".to_owned(), Value::from(self.usage_product_ref.as_str())),
            ("where".to_owned(), Value::Object(condition.collect())),
            ("price".to_owned(), json!({"model": "PER_UNIT", "unit_price": stated(UNIT_PRICE)})),
        ]);
        items.insert(self.place, Value::Object(item));
        json!({ LINE_ITEMS: items })
    }

    fn page(&self, submitted: &FormData, problem: Option<&Problem>) -> String {
        let errors = problem.map_or(&[][..], Problem::errors);
        let input = |name: &str, label: &str, meaning: &str, kind: InputKind| {
            let wrong = errors.iter().filter(|error| self.field_of(error) == name).map(|error| error.detail.clone()).collect();
            let value = field(submitted, name).unwrap_or_default().to_owned();
            let required = name == UNIT_PRICE || self.keys.is_empty() && [NEW_KEY, NEW_VALUES].contains(&name);
            let (name, label, meaning, of_words) = (name.to_owned(), label.to_owned(), meaning.to_owned(), Vec::new());
            Item::Field(Field { name, label, meaning, kind, required, value, wrong, of_words, switches: false, waits: false })
        };
        let text = |name: &str, label: &str, meaning: &str| input(name, label, meaning, InputKind::Text);
        let values = |key: &String| input(&label(key), key, "One value on each line. Empty: any value.", InputKind::Lines);
        let mut items: Vec<Item> = self.keys.iter().map(values).collect();
        let of_key = [
            text(NEW_KEY, "Attribute", "Key of the report data that selects the price, such as model."),
            input(NEW_VALUES, "Values", "One value on each line.", InputKind::Lines),
        ];
        items.push(text(UNIT_PRICE, "Price per unit", "Such as 0.000002."));
        items.push(text("name", "Name", "Name of the line on documents. Default: the values of the labels."));
        let mut more = vec![text("line_item_id", "Reference", "Default: made from the name.")];
        // Of a table, a new attribute is the exception.
        if self.keys.is_empty() {
            items.splice(0..0, of_key)
        } else {
            more.splice(0..0, of_key)
        };
        let is_beside = |error: &&FieldProblem| items.iter().chain(&more).any(|item| item.name() == self.field_of(error));
        let others = errors.iter().filter(|error| !is_beside(error));
        let others = others.map(|error| format!("{}: {}", self.field_of(error), error.detail)).collect();
        let detail = problem.filter(|problem| problem.errors().is_empty()).map(|problem| vec![problem.detail().to_owned()]);
        let (view, title) = (self.pricing.view(), format!("Add price of {}", self.usage_product_ref));
        let reference = view.product_pricing_ref().to_text();
        let back = href(&["pricings", &reference]);
        let form = Form {
            title: title.clone(),
            tells: if self.keys.is_empty() {
                "Adds a line item for events with these values. The present price then counts all other events. Existing contracts keep \
                 their prices until you reprice them."
            } else {
                "Adds a line item for events with these labels. Existing contracts keep their prices until you reprice them."
            },
            action: add_price(&reference, &self.usage_product_ref, &[]),
            button: "Add price",
            others: detail.unwrap_or(others),
            items,
            more,
            is_short: true,
            back: back.clone(),
            ..Form::default()
        };
        let own = Crumb { name: view.name().to_text(), href: back };
        let crumbs = crumbs(&listings::PRICINGS).into_iter().chain([own]).collect();
        PageBuilder { title, part: listings::PRICINGS.part, crumbs, body: crate::form(&form) }.page(&self.user.quietly(), None)
    }
}
