//! Short forms: the fields of a request body that a task needs, with labels and defaults. The form with all fields remains as
//! "Advanced".

use crate::{InputKind, Item, JsonView, country_choice, was};
use billing_api::console::FormData;
use billing_api::dto::pricings::PricingJson;

use super::charge_form;
use super::customer_tax::{self, TAX_CHOICE};
use super::form_data::field;

/// Maximum number of fields of a form that are visible at once.
pub(super) const MAX_VISIBLE: usize = 12;

/// A field: its full name in the body, its label, its description, and whether a value is required. An empty description is that
/// of the API.
pub(super) type FieldRow = (&'static str, &'static str, &'static str, bool);

/// A value without an input: a field, its value, and the field that must be filled for the value to apply, if any.
pub(super) type FixedRow = (&'static str, &'static str, &'static str);

/// A short form.
#[derive(Clone, Debug, Default)]
pub(super) struct ShortForm {
    /// Title; empty for the title of the form with all fields.
    pub(super) title: &'static str,
    /// One sentence about the effect; empty for that of the form with all fields.
    pub(super) tells: &'static str,
    /// An example of the effect.
    pub(super) example: &'static str,
    /// Query of the form's address.
    pub(super) query: String,
    /// Whether the form leaves out fields of the body.
    pub(super) has_advanced: bool,
    fields: Vec<ShortField>,
    more: Vec<ShortField>,
    fixed: Vec<FixedRow>,
    /// Values of a new form.
    pub(super) defaults: FormData,
}

#[derive(Clone, Debug)]
struct ShortField {
    name: String,
    label: String,
    meaning: &'static str,
    is_required: bool,
}

/// The items of a short form.
pub(super) struct ShortItems {
    pub(super) fields: Vec<Item>,
    /// Items that are visible on request.
    pub(super) more: Vec<Item>,
    /// The values of all other fields of the same groups and lists, which stay as they are.
    pub(super) hidden: FormData,
}

impl ShortForm {
    /// Creates a form with values that apply if another field is filled.
    pub(super) fn of(fields: &[FieldRow], more: &[FieldRow], fixed: &[FixedRow]) -> Self {
        let rows = |rows: &[FieldRow]| -> Vec<ShortField> { rows.iter().map(|row| ShortField::of("", row)).collect() };
        Self { fields: rows(fields), more: rows(more), fixed: fixed.to_vec(), ..Self::default() }
    }

    /// Returns the values of a new form.
    pub(super) fn defaults(&self) -> FormData {
        self.defaults.clone()
    }

    /// Arranges the items of the form with all fields.
    pub(super) fn arranged(&self, mut items: Vec<Item>) -> ShortItems {
        let mut chosen = |wanted: &[ShortField]| -> Vec<Item> {
            wanted.iter().filter_map(|field| Some(field.applied_to(removed(&mut items, &field.name)?))).collect()
        };
        let (mut fields, more) = (chosen(&self.fields), chosen(&self.more));
        if self.fields.iter().any(|field| field.name == TAX_CHOICE) {
            customer_tax::adapt(&mut fields);
        }
        let mut hidden = FormData::new();
        add_values(&items, &mut hidden);
        // Without a value, a field of its own is not sent, and the edit leaves it unchanged.
        let has = |name: &str| self.fields.iter().chain(&self.more).any(|field| top(&field.name) == top(name));
        hidden.retain(|(name, _)| has(name));
        ShortItems { fields, more, hidden }
    }

    /// Returns the fields with the values without an input. A new object has only the filled fields; an edit can clear a field.
    pub(super) fn completed(&self, submitted: &FormData, is_edit: bool) -> FormData {
        let submitted = &customer_tax::applied(submitted, is_edit);
        let is_filled = |name: &str| field(submitted, name).is_some();
        let filled = submitted.iter().filter(|(name, _)| is_edit || is_filled(name)).cloned();
        let fixed = self.fixed.iter().filter(|(_, _, with)| with.is_empty() || is_filled(with));
        filled.chain(fixed.map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned()))).collect()
    }

    /// Adds a field while there is room, and else among the fields that are visible on request.
    fn push(&mut self, field: ShortField, inputs: usize, visible: &mut usize) {
        *visible += inputs;
        if *visible <= MAX_VISIBLE { self.fields.push(field) } else { self.more.push(field) }
    }
}

impl ShortField {
    fn of(below: &str, (name, label, meaning, is_required): &FieldRow) -> Self {
        Self { name: format!("{below}{name}"), label: (*label).to_owned(), meaning: *meaning, is_required: *is_required }
    }

    fn applied_to(&self, item: Item) -> Item {
        match item {
            Item::Field(mut field) => {
                field.label = self.label.clone();
                field.required |= self.is_required;
                (field.switches, field.waits) = (false, false);
                field.of_words.clear();
                if field.name.ends_with("country_code") {
                    field.kind = country_choice(&field.value);
                } else if field.name == "bill_with" {
                    field.kind = InputKind::named(charge_form::INVOICES);
                }
                if !self.meaning.is_empty() {
                    field.meaning = self.meaning.to_owned();
                }
                Item::Field(field)
            }
            Item::List(mut list) => {
                list.label = self.label.clone();
                list.waits = false;
                list.of_words.clear();
                if !self.meaning.is_empty() {
                    list.meaning = self.meaning.to_owned();
                }
                Item::List(list)
            }
            group @ Item::Group(_) => group,
        }
    }
}

/// Returns the field of the body that contains a field.
pub(super) fn top(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// Removes an item at any depth.
fn removed(items: &mut Vec<Item>, name: &str) -> Option<Item> {
    if let Some(place) = items.iter().position(|item| item.name() == name) {
        return Some(items.remove(place));
    }
    items.iter_mut().find_map(|item| match item {
        Item::Field(_) => None,
        Item::Group(group) => removed(&mut group.items, name),
        Item::List(list) => list.elements.iter_mut().find_map(|element| removed(&mut element.items, name)),
    })
}

/// Adds the values of all fields.
fn add_values(items: &[Item], values: &mut FormData) {
    for item in items {
        match item {
            Item::Field(field) if field.value.is_empty() => {}
            Item::Field(field) => values.push((field.name.clone(), field.value.clone())),
            Item::Group(group) => add_values(&group.items, values),
            Item::List(list) => {
                for element in &list.elements {
                    values.extend(element.was.iter().map(|place| (was(&element.name), place.clone())));
                    add_values(&element.items, values);
                }
            }
        }
    }
}

/// The fields of a short form that creates or edits an object.
struct CatalogForm {
    part: &'static str,
    fields: &'static [FieldRow],
    more: &'static [FieldRow],
    has_advanced: bool,
}

const CATALOG_FORMS: &[CatalogForm] = &[
    CatalogForm {
        part: "customers",
        fields: &[
            ("name", "Name", "Usage events can use the name instead of the reference.", false),
            ("customer_ref", "Reference", "For the API, such as acme. It cannot be changed. Default: generated.", false),
            ("legal_name", "Legal name", "Name on documents. Documents without it are reported as incomplete.", false),
            ("email", "E-mail address", "For your records. The service sends no e-mail.", false),
            ("billing_address/line1", "Street and number", "", false),
            ("billing_address/zip_code", "Postal code", "", false),
            ("billing_address/city", "City", "", false),
            ("billing_address/country_code", "Country", "", false),
            ("vat_id", "VAT ID", "", false),
            (TAX_CHOICE, "Tax", "With “Domestic, standard”, the tax of the entity applies.", false),
            ("tax", "Tax in percent", "For “Other”, such as 19. Default: the tax of the entity.", false),
            ("tax_category", "Tax category", "For “Other”, if the tax is 0.", false),
            ("exemption_code", "Exemption code", "For “Other”, such as VATEX-EU-O.", false),
            ("exemption_reason", "Exemption reason", "For “Other”, in words.", false),
            ("net_terms", "Net terms", "Days until payment is due, or DUE_UPON_RECEIPT.", false),
            ("entity_ref", "Billed by", "Entity that issues the documents. Default: the default entity.", false),
        ],
        more: &[
            ("billing_address/line2", "Address, second line", "", false),
            ("billing_address/state", "State or province", "", false),
            ("billing_address/country", "Country name", "", false),
            ("language", "Language of documents", "Default: that of the entity.", false),
            ("tax_id", "Tax number", "", false),
            ("tax_from", "Tax applies from", "", false),
            ("buyer_reference", "Buyer reference", "", false),
            ("currency", "Currency", "For your records. Documents use the currency of their pricing.", false),
            ("apply_balance", "Apply credits and payments automatically", "Default: yes.", false),
        ],
        has_advanced: true,
    },
    CatalogForm {
        part: "entities",
        fields: &[
            ("name", "Name", "", false),
            ("legal_name", "Legal name", "Name on documents. Documents without it are reported as incomplete.", false),
            ("number_prefix", "Prefix of document numbers", "Such as UB. It cannot be changed after the first document.", false),
            ("address/line1", "Street and number", "", false),
            ("address/zip_code", "Postal code", "", false),
            ("address/city", "City", "", false),
            ("address/country_code", "Country", "", false),
            ("vat_id", "VAT ID", "Documents need a VAT ID or a tax number.", false),
            ("tax_id", "Tax number", "", false),
            ("timezone", "Time zone", "For service periods and issue dates, such as Europe/Berlin. Default: UTC.", false),
            ("billing_bank_transfer_details/billing_account_id", "Bank account", "For payments, shown on documents.", false),
            ("net_terms", "Net terms", "Days until payment is due, or DUE_UPON_RECEIPT.", false),
        ],
        more: &[
            ("entity_ref", "Reference", "For the API. It cannot be changed. Default: generated.", false),
            ("address/line2", "Address, second line", "", false),
            ("address/state", "State or province", "", false),
            ("address/country", "Country name", "", false),
            ("language", "Language of documents", "Default: English.", false),
            ("contact/name", "Contact", "Person or department for questions from payers.", false),
            ("contact/email", "E-mail address of the contact", "", false),
            ("contact/phone", "Telephone number of the contact", "", false),
            ("tax_label", "Name of the tax on documents", "", false),
            ("footer", "Text at the end of documents", "", false),
            ("default", "Default entity", "Bills customers and contracts that name no entity.", false),
        ],
        has_advanced: true,
    },
    CatalogForm {
        part: "usage-products",
        fields: &[
            ("name", "Name", "Such as API calls. Usage events can use the name instead of the reference.", false),
            ("usage_product_ref", "Reference", "Such as api-calls. It cannot be changed. Default: generated.", false),
            ("unit", "Unit", "Name of one unit on documents, such as call.", false),
            ("aggregation", "Aggregation", "", false),
        ],
        more: &[("unit_code", "Unit code", "", false)],
        has_advanced: false,
    },
    CatalogForm {
        part: "bank-accounts",
        fields: &[
            ("billing_account_id", "Reference", "For entities and customers, such as main. It cannot be changed.", false),
            ("account_name", "Account holder", "", false),
            ("iban", "IBAN", "", false),
            ("bic", "BIC", "", false),
            ("bank_name", "Name of the bank", "", false),
        ],
        more: &[
            ("account_number", "Account number", "National account number, if the account has no IBAN.", false),
            ("routing_number", "Routing number", "", false),
        ],
        has_advanced: false,
    },
];

/// Returns the short form that creates or edits an object of a part of the console.
pub(super) fn catalog_form(part: &str) -> Option<ShortForm> {
    let CatalogForm { fields, more, has_advanced, .. } = CATALOG_FORMS.iter().find(|form| form.part == part)?;
    Some(ShortForm { has_advanced: *has_advanced, ..ShortForm::of(fields, more, &[]) })
}

/// A price model with a form of its own.
pub(super) struct PriceForm {
    /// The word of the API.
    pub(super) model: &'static str,
    pub(super) title: &'static str,
    pub(super) tells: &'static str,
    pub(super) example: &'static str,
    /// Fields below the line item.
    fields: &'static [FieldRow],
}

pub(super) const PRICE_FORMS: &[PriceForm] = &[
    PriceForm {
        model: "FLAT",
        title: "Fixed fee or price per seat",
        tells: "Bills the same amount in every period, multiplied by the quantity in the contract.",
        example: "At 20.00 EUR per seat, a contract with 5 seats costs 100.00 EUR per period.",
        fields: &[("price/amount", "Amount", "Amount of one seat or of the fee for a whole period, such as 20.", true)],
    },
    PriceForm {
        model: "PER_UNIT",
        title: "Price per unit",
        tells: "Bills every unit of usage at the same price.",
        example: "At 0.05 EUR per call, 1,500 calls cost 75.00 EUR.",
        fields: &[("price/unit_price", "Unit price", "Such as 0.05.", true)],
    },
    PriceForm {
        model: "GRADUATED",
        title: "Graduated tiers",
        tells: "Bills each unit of usage at the price of its own tier.",
        example: "The first 1,000 calls cost 0.05 EUR each and all others 0.04 EUR each: 1,500 calls cost 70.00 EUR.",
        fields: &[("price/tiers", "Tiers", "In ascending order. The last tier has no upper quantity.", true)],
    },
    PriceForm {
        model: "VOLUME",
        title: "Volume tiers",
        tells: "Bills all units of usage at the price of the tier that contains the quantity.",
        example: "Up to 1,000 calls cost 0.05 EUR each, and more calls 0.04 EUR each: 1,500 calls cost 60.00 EUR.",
        fields: &[("price/tiers", "Tiers", "In ascending order. The last tier has no upper quantity.", true)],
    },
    PriceForm {
        model: "PACKAGE",
        title: "Packages",
        tells: "Bills whole packages of units, full or partial.",
        example: "A package of 1,000 calls costs 40.00 EUR: 1,500 calls are two packages and cost 80.00 EUR.",
        fields: &[
            ("price/package_size", "Units per package", "Such as 1000.", true),
            ("price/package_price", "Price of a package", "Such as 40.", true),
        ],
    },
    PriceForm {
        model: "PERCENTAGE",
        title: "Percentage of amounts",
        tells: "Bills a percentage of the reported amounts, and a fee for every event if you set one.",
        example: "At 1.5 % and 0.25 EUR per event, one event with an amount of 100.00 costs 1.75 EUR.",
        fields: &[
            ("price/rate", "Percentage", "Such as 1.5.", true),
            ("price/fixed_amount", "Fee per event", "Default: no fee.", false),
        ],
    },
];

/// Fields of every new pricing.
const PRICING_FIELDS: &[FieldRow] =
    &[("name", "Name", "Name on documents.", true), ("currency", "Currency", "Three letters, such as EUR.", true)];
const PRICING_MORE: &[FieldRow] = &[
    ("line_items/0/name", "Name of the line item", "Name of the line on documents.", false),
    ("product_pricing_ref", "Reference", "For the API. It cannot be changed. Default: generated.", false),
    ("minimum_fee", "Minimum fee per period", "", false),
];
/// Fields of a usage-priced line item that are visible on request.
const USAGE_MORE: &[FieldRow] = &[
    ("included_quantity", "Included quantity", "Quantity without charge in every period. Default: 0.", false),
    ("minimum_amount", "Minimum amount per period", "", false),
    ("maximum_amount", "Maximum amount per period", "", false),
    ("prepaid_quantity", "Prepaid quantity", "Quantity that is billed in advance.", false),
];
/// The fee beside a usage-priced line item.
const FEE: &str = "line_items/1/price/amount";

/// Returns the form for a new pricing of a model.
pub(super) fn new_pricing(model: &str) -> Option<ShortForm> {
    let form = PRICE_FORMS.iter().find(|form| form.model == model)?;
    let is_fixed = form.model == "FLAT";
    let below_item = |rows: &[FieldRow]| rows.iter().map(|row| ShortField::of("line_items/0/", row)).collect::<Vec<_>>();
    let (kind, id, name) = if is_fixed { ("FIXED", "fee", "Fee") } else { ("USAGE", "usage", "Usage") };
    let mut short = ShortForm::of(PRICING_FIELDS, &[], &[("line_items/0/line_item_id", id, ""), ("line_items/0/kind", kind, "")]);
    short.fixed.push(("line_items/0/price/model", form.model, ""));
    short.defaults.push(("line_items/0/name".to_owned(), name.to_owned()));
    if is_fixed {
        short.fields.extend(below_item(form.fields));
        short.fields.extend(below_item(&[("recurrence", "Charged", "Default: in each period.", false)]));
    } else {
        short.fields.extend(below_item(&[("usage_product_ref", "Usage product", "Product whose usage is billed.", true)]));
        short.fields.extend(below_item(form.fields));
        short.fields.push(ShortField::of("", &(FEE, "Fee per period", "Billed in addition to usage. Default: no fee.", false)));
        short.fixed.extend([
            ("line_items/1/line_item_id", "fee", FEE),
            ("line_items/1/name", "Fee", FEE),
            ("line_items/1/kind", "FIXED", FEE),
            ("line_items/1/price/model", "FLAT", FEE),
        ]);
        // Marks the line item of the fee as present.
        short.defaults.push(("line_items/1/".to_owned(), String::new()));
        short.more.extend(below_item(USAGE_MORE));
    }
    if form.fields.iter().any(|(name, ..)| *name == "price/tiers") {
        // A form begins with two tiers.
        short.defaults.extend([0, 1].map(|tier| (format!("line_items/0/price/tiers/{tier}/"), String::new())));
    }
    short.more.extend(PRICING_MORE.iter().map(|row| ShortField::of("", row)));
    (short.title, short.tells, short.example) = (form.title, form.tells, form.example);
    (short.query, short.has_advanced) = (crate::query(&[("model", form.model)]), true);
    Some(short)
}

/// Returns the form for the prices of an existing pricing: of each line item, the fields of its model.
pub(super) fn edited_prices(pricing: JsonView<'_, PricingJson>) -> ShortForm {
    let mut short = ShortForm { has_advanced: true, ..ShortForm::of(&PRICING_FIELDS[..1], &[], &[]) };
    let mut visible = 1;
    for (place, item) in pricing.line_items().items().enumerate() {
        let below = format!("line_items/{place}/");
        let (model, tiers) = (item.price().model(), item.price().tiers().items().count());
        let Some(form) = PRICE_FORMS.iter().find(|form| model.is(form.model)) else { continue };
        let of_item = |row: &FieldRow| {
            let field = ShortField::of(&below, row);
            ShortField { label: format!("{}: {}", item.name().to_text(), field.label), ..field }
        };
        for row in form.fields {
            short.push(of_item(row), (3 * tiers).max(1), &mut visible);
        }
        if item.kind().is("USAGE") {
            short.more.extend(USAGE_MORE.iter().map(of_item));
        }
    }
    short.more.push(ShortField::of("", &("minimum_fee", "Minimum fee per period", "", false)));
    short
}

#[cfg(test)]
mod tests {
    use billing_api::operations::{CreatePricing, EditPricing};
    use serde_json::{Value, json};

    use super::super::form_fields::{InitialValues, ListEdits, body, items};
    use super::super::openapi_index::shapes;
    use super::*;

    fn submitted(pairs: &[(&str, &str)]) -> FormData {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn names(items: &[Item]) -> Vec<&str> {
        items.iter().map(Item::name).collect()
    }

    #[test]
    fn every_short_form_has_few_fields_and_all_of_them_exist() {
        for form in CATALOG_FORMS {
            let operation = format!("create_{}", form.part.trim_end_matches('s').replace('-', "_"));
            let operation = billing_api::operations::named(&operation.replace("entitie", "entity")).expect("an operation");
            let short = catalog_form(form.part).expect(form.part);
            let source = InitialValues::Nothing;
            let all = customer_tax::with_choice(items(shapes(operation), "", source, &[]), source);
            let arranged = short.arranged(all);
            assert_eq!(names(&arranged.fields), form.fields.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), "{operation:?}");
            assert_eq!(names(&arranged.more), form.more.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), "{operation:?}");
            let of_choice = |item: &&Item| matches!(item, Item::Field(field) if !field.of_words.is_empty());
            assert!(arranged.fields.len() - arranged.fields.iter().filter(of_choice).count() <= MAX_VISIBLE, "{operation:?}");
            let is_of = |(field, ..): &FieldRow, name: &str| field.split('/').next() == Some(name);
            let listed = |name: &str| form.fields.iter().chain(form.more).any(|row| is_of(row, name));
            assert_eq!(shapes(operation).iter().all(|shape| listed(&shape.name)), !form.has_advanced, "{operation:?}");
        }
    }

    #[test]
    fn each_price_model_has_a_form_with_its_fields_only() {
        for form in PRICE_FORMS {
            let short = new_pricing(form.model).expect(form.model);
            let defaults = short.defaults();
            let arranged = short.arranged(items(shapes(&CreatePricing::SPEC), "", InitialValues::Said(&defaults), &[]));
            assert_eq!(arranged.fields.len(), short.fields.len(), "{}: {:?}", form.model, names(&arranged.fields));
            assert_eq!(arranged.hidden, FormData::new(), "{}", form.model);
            assert!(arranged.fields.len() <= MAX_VISIBLE && !form.example.is_empty(), "{}", form.model);
            let has_size = names(&arranged.fields).iter().any(|name| name.ends_with("package_size"));
            assert_eq!(has_size, form.model == "PACKAGE");
        }
        assert!(new_pricing("ANOTHER").is_none());
    }

    #[test]
    fn a_form_of_a_model_makes_a_whole_pricing() {
        let short = new_pricing("GRADUATED").expect("a form");
        let pairs = submitted(&[
            ("name", "Plan"),
            ("currency", "EUR"),
            ("line_items/0/usage_product_ref", "calls"),
            ("line_items/0/name", "Calls"),
            ("line_items/0/price/tiers/0/", ""),
            ("line_items/0/price/tiers/0/up_to", "1000"),
            ("line_items/0/price/tiers/0/unit_price", "0.05"),
            ("line_items/0/price/tiers/1/unit_price", "0.04"),
            ("line_items/0/price/tiers/2/", ""),
            (FEE, ""),
        ]);
        let price = json!({"model": "GRADUATED", "tiers": [{"up_to": "1000", "unit_price": "0.05"}, {"unit_price": "0.04"}]});
        let usage = json!({"line_item_id": "usage", "name": "Calls", "kind": "USAGE", "usage_product_ref": "calls",
            "price": price});
        let made = body(shapes(&CreatePricing::SPEC), "", &short.completed(&pairs, false), None, ListEdits::Replaced);
        assert_eq!(Value::Object(made), json!({"name": "Plan", "currency": "EUR", "line_items": [usage]}));
        let with_fee: FormData = pairs.into_iter().filter(|(name, _)| name != FEE).chain(submitted(&[(FEE, "49")])).collect();
        let made = body(shapes(&CreatePricing::SPEC), "", &short.completed(&with_fee, false), None, ListEdits::Replaced);
        let fee = json!({"line_item_id": "fee", "name": "Fee", "kind": "FIXED", "price": {"model": "FLAT", "amount": "49"}});
        assert_eq!(made["line_items"], json!([usage, fee]));
    }

    #[test]
    fn an_edit_of_prices_shows_the_fields_of_each_model_and_keeps_all_others() {
        let item = |id: &str, price: Value| json!({"line_item_id": id, "name": id, "kind": "USAGE", "usage_product_ref": "calls", "price": price});
        let pricing = json!({"name": "Plan", "currency": "EUR", "minimum_fee": null, "line_items": [
            item("a", json!({"model": "PER_UNIT", "unit_price": 0.05})),
            item("b", json!({"model": "PACKAGE", "package_size": 1000, "package_price": 40})),
        ]});
        let all = || items(shapes(&EditPricing::SPEC), "", InitialValues::Present(&pricing), &[]);
        let arranged = edited_prices(JsonView::of(&pricing)).arranged(all());
        let prices = ["line_items/0/price/unit_price", "line_items/1/price/package_size", "line_items/1/price/package_price"];
        assert_eq!(names(&arranged.fields), [&["name"][..], &prices].concat());
        assert!(matches!(&arranged.fields[1], Item::Field(field) if field.label == "a: Unit price"));
        let mut values = arranged.hidden;
        add_values(&arranged.fields, &mut values);
        add_values(&arranged.more, &mut values);
        let sent: Vec<_> = shapes(&EditPricing::SPEC).iter().filter(|shape| shape.name != "currency").cloned().collect();
        assert!(values.iter().all(|(name, _)| name != "currency"), "{values:?}");
        let unchanged = body(&sent, "", &values, Some(&pricing), ListEdits::Replaced);
        assert_eq!(Value::Object(unchanged), json!({}), "{values:?}");
        let many: Vec<Value> = (0..20).map(|n| item(&format!("i{n}"), json!({"model": "PER_UNIT", "unit_price": n}))).collect();
        let many = json!({"name": "Plan", "line_items": many});
        assert_eq!(edited_prices(JsonView::of(&many)).fields.len(), MAX_VISIBLE);
    }
}
