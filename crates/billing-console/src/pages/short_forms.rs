//! Short forms: the fields of a request body that a task needs, with labels and defaults. The form with all fields remains as
//! "Advanced".

use crate::{InputKind, Item, country_choice, was};
use billing_api::console::FormData;

use super::charge_form;
use super::customer_tax::{self, TAX_CHOICE};
use super::form_data::field;
use super::limit_form::{self, METRIC};
use super::pricing_form::{self, LINE_ITEMS};

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
pub(super) struct ShortField {
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

    /// Returns whether the form has the line items of a pricing.
    pub(super) fn has_line_items(&self) -> bool {
        self.fields.iter().any(|field| field.name == LINE_ITEMS)
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
        let (mut fields, mut more) = (chosen(&self.fields), chosen(&self.more));
        if self.fields.iter().any(|field| field.name == TAX_CHOICE) {
            customer_tax::adapt(&mut fields);
        }
        if self.fields.iter().any(|field| field.name == METRIC) {
            limit_form::adapt(&mut fields, &mut more);
        }
        let mut hidden = FormData::new();
        add_values(&items, &mut hidden);
        let fields = fields.into_iter().map(|item| match item {
            Item::List(list) if list.name == LINE_ITEMS => Item::List(pricing_form::arranged(list, &mut hidden)),
            other => other,
        });
        let fields = fields.collect();
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
}

impl ShortField {
    pub(super) fn of(below: &str, (name, label, meaning, is_required): &FieldRow) -> Self {
        Self { name: format!("{below}{name}"), label: (*label).to_owned(), meaning: *meaning, is_required: *is_required }
    }

    pub(super) fn applied_to(&self, item: Item) -> Item {
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
pub(super) fn removed(items: &mut Vec<Item>, name: &str) -> Option<Item> {
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
pub(super) fn add_values(items: &[Item], values: &mut FormData) {
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
            ("customer_ref", "Reference", "", false),
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
            ("apply_balance", "Unapplied amounts settle new documents", "Default: yes.", false),
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
            ("entity_ref", "Reference", "", false),
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
            ("usage_product_ref", "Reference", "", false),
            ("unit", "Unit", "Name of one unit on documents, such as call.", false),
            ("aggregation", "Aggregation", "The largest, the latest and the unique values start at 0 in each period.", false),
        ],
        more: &[
            ("unit_code", "Unit code", "", false),
            ("unique_by", "Counted label", "For UNIQUE: the label whose distinct values count.", false),
        ],
        has_advanced: false,
    },
    CatalogForm {
        part: "pricings",
        fields: &[
            ("name", "Name", "Name on documents.", true),
            ("currency", "Currency", "Three letters, such as EUR.", true),
            (LINE_ITEMS, "Line items", "Fees, seats and meters. Line items without an amount are not created.", false),
        ],
        more: &[("product_pricing_ref", "Reference", "", false), ("minimum_fee", "Minimum fee per period", "", false)],
        has_advanced: true,
    },
    CatalogForm {
        part: "bank-accounts",
        fields: &[
            ("billing_account_id", "Reference", "", false),
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
    let short = ShortForm { has_advanced: *has_advanced, ..ShortForm::of(fields, more, &[]) };
    let defaults = if short.has_line_items() { pricing_form::defaults() } else { FormData::new() };
    Some(ShortForm { defaults, ..short })
}

#[cfg(test)]
mod tests {
    use super::super::form_fields::{InitialValues, items};
    use super::super::openapi_index::shapes;
    use super::*;

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
            // Of the line items of a pricing, the form has the usual fields.
            let is_complete = shapes(operation).iter().all(|shape| listed(&shape.name)) && !short.has_line_items();
            assert_eq!(is_complete, !form.has_advanced, "{operation:?}");
        }
    }
}
