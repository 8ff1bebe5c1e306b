//! Converts the values of histories to the domain's types.

use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::catalog::{
    FixedPrice, LineItem, LineItemPrice, PriceModel as DomainModel, Pricing, PricingContent, Recurrence, Selector, Tier, Tiers,
    UsageCharge, UsagePrice, UsageProduct, UsageProductProfile,
};
use billing_domain::codes::{CountryCode, UnitCode};
use billing_domain::contract::Contract;
use billing_domain::contract::ContractProduct;
use billing_domain::contract::amendment::{self, ContractEdit, EffectiveFrom, TaxTreatmentPatch};
use billing_domain::contract::resolve;
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{
    MeteredCharge, ProductTerms, Quantities, QuantityStep, RequestedLineItem, RequestedProduct, SelectedCharge, SelectedLineItem,
};
use billing_domain::labels::{LabelKey, Where};
use billing_domain::metadata::Metadata;
use billing_domain::money::{Currency, Percentage};
use billing_domain::party::legal::{DocumentSettings, Strictness};
use billing_domain::party::{Address, Customer, CustomerProfile, Entity, EntityProfile, NumberPrefix};
use billing_domain::patch::Patch;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, CustomerId, CustomerRef, EntityRef, LineItemId, PricingRef, ProductNo, UsageProductRef};
use billing_domain::tax::{DatedTax, DefaultTaxes, StatedTax, TaxBasis, TaxCategory, TaxTreatment};
use billing_domain::text::{OneLine, Prose};
use billing_domain::usage::{ReportData, ReportValue};
use uuid::Uuid;

use crate::histories::model::calendar::{Date, plus};
use crate::histories::model::terms::{Item, default_entity};
use crate::histories::model::{LastDay, Model, QuantityRequest};
use crate::histories::spec::*;

const USAGE: [&str; 2] = ["calls", "storage"];

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect(text)
}

/// Returns a number with few decimals, or with all of them.
fn digits(value: u128, few: usize, all: usize) -> String {
    let (value, places) = value.checked_sub(FINE).map_or((value, few), |fine| (fine, all));
    let one = 10u128.pow(u32::try_from(places).expect("few places"));
    format!("{}.{:0places$}", value / one, value % one)
}

pub(crate) fn quantity(amount: Amount) -> Quantity {
    Quantity::parse(&digits(amount, 3, 9)).expect("a quantity")
}

pub(crate) fn rate(rate: Rate) -> Percentage {
    Percentage::parse(&format!("{}.{:02}", rate / 100, rate % 100)).expect("a rate")
}

pub(crate) fn price(price: Price) -> billing_domain::money::Price {
    billing_domain::money::Price::parse(&digits(price, 4, 12)).expect("a price")
}

pub(crate) fn signed_price(price: SignedPrice) -> billing_domain::money::SignedPrice {
    let (sign, size) = (if price < 0 { "-" } else { "" }, price.unsigned_abs());
    billing_domain::money::SignedPrice::parse(&format!("{sign}{}", digits(size, 4, 12))).expect("a price")
}

pub(crate) fn line(text: &str) -> OneLine {
    OneLine::parse(text).expect(text)
}

pub(crate) fn usage_ref(usage: usize) -> UsageProductRef {
    UsageProductRef::parse(USAGE[usage]).expect("a reference")
}

pub(crate) fn entity_ref(entity: usize) -> EntityRef {
    EntityRef::parse(&format!("E{entity}")).expect("a reference")
}

/// Returns the number of an entity.
pub(crate) fn entity(entity_ref: &EntityRef) -> usize {
    entity_ref.as_str()[1..].parse().expect("an entity's number")
}

pub(crate) fn pricing_ref(pricing: usize) -> PricingRef {
    PricingRef::parse(&format!("P{pricing}")).expect("a reference")
}

pub(crate) fn item_id(id: &str) -> LineItemId {
    LineItemId::parse(id).expect("an id")
}

/// Returns the prefix of an entity's numbers.
pub(crate) fn prefix(spec: &EntitySpec) -> NumberPrefix {
    NumberPrefix::parse(&format!("N{}", spec.prefix)).expect("a prefix")
}

pub(crate) fn entities(catalog: &Catalog) -> Vec<Entity> {
    let entity = |(index, spec): (usize, &EntitySpec)| Entity {
        entity_ref: entity_ref(index),
        profile: EntityProfile {
            time_zone: TimeZone::parse(spec.zone).expect("a zone"),
            grace_hours: spec.grace_hours,
            taxes: taxes(&spec.taxes),
            legal_name: Some(line("Seller")),
            tax_id: Some(line("1")),
            address: Some(address()),
            paper: DocumentSettings {
                strictness: if spec.strict { Strictness::Strict } else { Strictness::Lenient },
                tax_currency: spec.lacks_rate.then(|| Currency::from_code("PLN").expect("a currency")),
                ..DocumentSettings::default()
            },
            ..EntityProfile::plain(line(&format!("E{index}")), prefix(spec))
        },
        created_at: at("2025-01-01T00:00:00Z"),
        updated_at: at("2025-01-01T00:00:00Z"),
    };
    catalog.entities.iter().enumerate().map(entity).collect()
}

fn address() -> Address {
    Address {
        line1: Some(Prose::parse("Street 1").expect("an address")),
        city: Some(Prose::parse("Town").expect("an address")),
        zip_code: Some(Prose::parse("12345").expect("an address")),
        country_code: Some(CountryCode::parse("DE").expect("a country")),
        ..Address::default()
    }
}

fn taxes(specs: &TaxSpecs) -> DefaultTaxes {
    DefaultTaxes::new(specs.iter().map(|(from, spec)| DatedTax { from: *from, stated: stated_tax(spec) }).collect())
}

pub(crate) fn stated_tax(spec: &TaxSpec) -> StatedTax {
    StatedTax { rate: spec.rate.map(rate), basis: spec.category.map(basis).unwrap_or_default() }
}

/// Returns a category, with a reason if the category needs one.
pub(crate) fn basis(category: Category) -> TaxBasis {
    let category = match category {
        "S" => TaxCategory::S,
        "Z" => TaxCategory::Z,
        "E" => TaxCategory::E,
        "AE" => TaxCategory::Ae,
        other => panic!("{other} is not in the histories"),
    };
    TaxBasis {
        category: Some(category),
        exemption_code: None,
        exemption_reason: category.needs_reason().then(|| line("because")),
    }
}

/// Returns the treatment of a rate and an optional category.
pub(crate) fn treatment((rate_of, category): (Rate, Option<Category>)) -> TaxTreatment {
    TaxTreatment { rate: rate(rate_of), basis: category.map(basis).unwrap_or_default() }
}

pub(crate) fn customer(catalog: &Catalog) -> Customer {
    let spec = &catalog.customer;
    Customer {
        id: CustomerId::from_uuid(Uuid::from_u128(1)),
        customer_ref: CustomerRef::parse("acme").expect("a reference"),
        profile: CustomerProfile {
            taxes: taxes(&spec.taxes),
            legal_name: spec.complete.then(|| line("Buyer")),
            billing_address: spec.complete.then(address),
            entity_ref: spec.entity.map(entity_ref),
            net_terms: spec.net_terms,
            apply_balance: spec.applies_balance,
            ..CustomerProfile::plain(line("Acme"))
        },
        created_at: at("2025-01-01T00:00:00Z"),
        updated_at: at("2025-01-01T00:00:00Z"),
    }
}

/// Returns the present catalog, which requests refer to.
pub(crate) fn catalog(catalog: &Catalog) -> resolve::Catalog {
    let created_at = at("2025-01-01T00:00:00Z");
    let usage_product = |(index, aggregation): (usize, &billing_domain::catalog::Aggregation)| UsageProduct {
        usage_product_ref: usage_ref(index),
        profile: UsageProductProfile {
            name: line(USAGE[index]),
            unit: None,
            unit_code: UnitCode::ONE,
            aggregation: *aggregation,
            unique_by: Some(label_key()),
        },
        created_at,
        updated_at: created_at,
    };
    let pricing = |(index, spec): (usize, &PricingSpec)| Pricing {
        pricing_ref: pricing_ref(index),
        content: PricingContent {
            name: line(&format!("P{index}")),
            currency: Currency::from_code(spec.currency).expect("a currency"),
            minimum_fee: spec.minimum_fee.map(price),
            line_items: spec.items.iter().map(line_item).collect(),
        },
        created_at,
        updated_at: created_at,
    };
    resolve::Catalog {
        pricings: catalog.pricings.iter().enumerate().map(pricing).collect(),
        usage_products: catalog.usage.iter().enumerate().map(usage_product).collect(),
        entities: (0..catalog.entities.len()).map(entity_ref).collect(),
        default_entity: Some(entity_ref(default_entity(catalog))),
    }
}

fn line_item(item: &ItemSpec) -> LineItem {
    let charge = match &item.charge {
        ChargeSpec::Fixed { price, once } => {
            LineItemPrice::Fixed { price: fixed_price(price), recurrence: recurrence(*once), goods: false }
        }
        ChargeSpec::Usage(usage) => LineItemPrice::Usage(usage_charge(usage)),
    };
    LineItem { id: item_id(item.id), name: line(item.id), charge }
}

const fn recurrence(once: bool) -> Recurrence {
    if once { Recurrence::Once } else { Recurrence::EachPeriod }
}

fn fixed_price(model: &PriceModel) -> FixedPrice {
    FixedPrice::of(self::model(model)).expect("a fixed price")
}

fn usage_charge(usage: &UsageSpec) -> UsageCharge {
    UsageCharge {
        usage_product_ref: usage_ref(usage.usage),
        selector: match &usage.counts {
            Counts::Every => Selector::Every,
            Counts::Where(labels) => {
                let values = labels.iter().map(|label| LABELS[*label].to_owned()).collect();
                Selector::Where(Where::new([(LABEL_KEY.to_owned(), values)]).expect("a condition"))
            }
            Counts::Rest => Selector::Rest,
        },
        aggregation: None,
        price: match model(&usage.price) {
            DomainModel::Metered(price) => price,
            DomainModel::Flat { .. } => panic!("usage is never flat"),
        },
        included_quantity: quantity(usage.included),
        prepaid_quantity: usage.prepaid.map(quantity),
        minimum_amount: usage.minimum.map(price),
        maximum_amount: usage.maximum.map(price),
    }
}

fn model(model: &PriceModel) -> DomainModel {
    DomainModel::Metered(match model {
        PriceModel::Flat(amount) => return DomainModel::Flat { amount: price(*amount) },
        PriceModel::PerUnit(unit) => UsagePrice::PerUnit { unit_price: price(*unit) },
        PriceModel::Graduated(rows) => UsagePrice::Graduated(tiers(rows)),
        PriceModel::Volume(rows) => UsagePrice::Volume(tiers(rows)),
        PriceModel::Package { size, price: of_one } => {
            UsagePrice::Package { package_size: quantity(*size), package_price: price(*of_one) }
        }
        PriceModel::Percentage { rate: percent, fixed } => {
            UsagePrice::Percentage { rate: rate(*percent), fixed_amount: price(*fixed) }
        }
    })
}

fn tiers(rows: &[TierSpec]) -> Tiers {
    let tier = |row: &TierSpec| Tier {
        up_to: row.up_to.map(|bound| {
            billing_domain::money::Price::parse(&format!("{}.{:03}", bound / 1_000, bound % 1_000)).expect("a bound")
        }),
        unit_price: price(row.unit),
        flat_amount: price(row.flat),
    };
    Tiers::new(rows.iter().map(tier).collect()).expect("rising bounds")
}

fn steps(steps: &[(Date, Amount)]) -> Quantities {
    let steps = steps.iter().map(|(from, amount)| QuantityStep { from: *from, quantity: quantity(*amount) });
    Quantities::new(steps.collect()).expect("rising days")
}

/// Converts a line item of the model.
pub(crate) fn selected(item: &Item, usage: &[billing_domain::catalog::Aggregation]) -> SelectedLineItem {
    let charge = match &item.charge {
        ChargeSpec::Fixed { price, once } => SelectedCharge::Fixed {
            price: fixed_price(price),
            recurrence: recurrence(*once),
            quantities: steps(&item.quantities),
            goods: false,
        },
        ChargeSpec::Usage(of) => SelectedCharge::Usage(MeteredCharge {
            charge: usage_charge(of),
            unit: None,
            unit_code: UnitCode::ONE,
            aggregation: usage[of.usage],
            unique_by: (usage[of.usage] == billing_domain::catalog::Aggregation::Unique).then(label_key),
        }),
    };
    SelectedLineItem { id: item_id(item.id), name: line(item.id), charge }
}

/// Returns a patch of a category with its reason, or of neither.
fn treatment_patch(category: &Patch<Category>) -> TaxTreatmentPatch {
    let basis = map(category, |category| basis(category));
    let optional = |value: Option<OneLine>| value.map_or(Patch::Clear, Patch::Set);
    TaxTreatmentPatch {
        category: map(category, |category| self::basis(category).category.expect("a category")),
        exemption_code: Patch::Keep,
        exemption_reason: match basis {
            Patch::Keep => Patch::Keep,
            Patch::Clear => Patch::Clear,
            Patch::Set(basis) => optional(basis.exemption_reason),
        },
    }
}

fn map<T, U>(patch: &Patch<T>, to: impl FnOnce(&T) -> U) -> Patch<U> {
    match patch {
        Patch::Keep => Patch::Keep,
        Patch::Clear => Patch::Clear,
        Patch::Set(value) => Patch::Set(to(value)),
    }
}

fn set<T>(patch: Patch<T>) -> Option<T> {
    patch.apply(None)
}

fn item_request(request: &ItemRequest) -> RequestedLineItem {
    RequestedLineItem {
        id: item_id(request.id),
        quantities: request.quantities.as_deref().map(steps),
        name: Patch::Keep,
        price: map(&request.price, model),
        included_quantity: map(&request.included, |amount| quantity(*amount)),
        prepaid_quantity: map(&request.prepaid, |amount| quantity(*amount)),
        minimum_amount: map(&request.minimum, |amount| price(*amount)),
        maximum_amount: map(&request.maximum, |amount| price(*amount)),
    }
}

fn cycle((unit, count): (CycleUnit, u16)) -> BillingCycle {
    BillingCycle::new(unit, count).expect("a cycle")
}

fn prose(text: &str) -> Prose {
    Prose::parse(text).expect(text)
}

/// Converts an element of a create request.
pub(crate) fn requested(element: &Element) -> RequestedProduct {
    RequestedProduct {
        line_items: set(map(&element.items, |items| items.iter().map(item_request).collect())),
        minimum_fee: map(&element.minimum_fee, |fee| price(*fee)),
        entity_ref: set(map(&element.entity, |entity| entity_ref(*entity))),
        billing_cycle: set(map(&element.cycle, |of| cycle(*of))),
        issue_day: set(element.issue_day.clone()),
        payment_time: set(element.payment_time.clone()),
        tax: set(map(&element.tax, |tax| rate(*tax))),
        treatment: set(map(&element.category, |category| basis(category))).unwrap_or_default(),
        discount: set(map(&element.discount, |discount| rate(*discount))),
        net_terms: set(element.net_terms.clone()),
        note: set(map(&element.note, |note| prose(note))),
        ..RequestedProduct::plain(
            pricing_ref(element.pricing),
            element.start.expect("a start"),
            plus(element.end.expect("an end"), -1),
        )
    }
}

/// Creates a contract, or returns the reason for the refusal.
pub(crate) fn contract(elements: &[Element], specs: &Catalog, now: Timestamp) -> Result<Contract, String> {
    let requests: Vec<RequestedProduct> = elements.iter().map(requested).collect();
    let agreed: Vec<ProductTerms> = catalog(specs).agree_all(&requests).map_err(|violations| violations.to_string())?;
    let products: Vec<ContractProduct> =
        agreed.into_iter().zip(0..).map(|(terms, no)| ContractProduct::new(ProductNo(no), terms)).collect();
    billing_domain::contract::check_products(&products, |no| Some(usize::from(no.0)))
        .map_err(|violations| violations.to_string())?;
    let customer = customer(specs);
    Ok(Contract {
        contract_ref: ContractRef::from_uuid(Uuid::from_u128(2)),
        number: 1,
        customer_id: customer.id,
        customer_ref: customer.customer_ref,
        po_number: None,
        metadata: Metadata::default(),
        version: 1,
        created_at: now,
        updated_at: now,
        cancelled_at: None,
        is_watched: false,
        products,
    })
}

fn patch(element: &Element) -> amendment::ProductPatch {
    amendment::ProductPatch {
        product_no: element.no.map(ProductNo),
        billing_start_date: element.start,
        billing_end_date: element.end.map(|end| plus(end, -1)),
        reprice: element.reprice,
        line_items: map(&element.items, |items| items.iter().map(item_request).collect()),
        minimum_fee: map(&element.minimum_fee, |fee| price(*fee)),
        entity_ref: map(&element.entity, |entity| entity_ref(*entity)),
        billing_cycle: map(&element.cycle, |of| cycle(*of)),
        issue_day: element.issue_day.clone(),
        payment_time: element.payment_time.clone(),
        tax: map(&element.tax, |tax| rate(*tax)),
        treatment: treatment_patch(&element.category),
        discount: map(&element.discount, |discount| rate(*discount)),
        net_terms: element.net_terms.clone(),
        note: map(&element.note, |note| prose(note)),
        ..amendment::ProductPatch::of(pricing_ref(element.pricing))
    }
}

pub(crate) fn edit(request: &EditRequest, contract: &Contract) -> ContractEdit {
    ContractEdit {
        po_number: Patch::Keep,
        metadata: Patch::Keep,
        products: Some(request.elements.iter().map(patch).collect()),
        since: match request.since {
            From::Next => EffectiveFrom::NextPeriod,
            From::Current => EffectiveFrom::CurrentPeriod,
            From::Day(day) => EffectiveFrom::Day(day),
        },
        version: request.version.then_some(contract.version),
    }
}

pub(crate) const fn last_day(last_day: LastDay) -> amendment::CancelAt {
    match last_day {
        LastDay::PeriodEnd => amendment::CancelAt::PeriodEnd,
        LastDay::Today => amendment::CancelAt::Today,
        LastDay::Day(day) => amendment::CancelAt::Day(day),
    }
}

/// Converts a quantity change. The product is also named by its start.
pub(crate) fn quantity_change(request: &QuantityRequest, pricing: usize, start: Date) -> amendment::QuantityChange {
    amendment::QuantityChange {
        product_no: None,
        pricing_ref: pricing_ref(pricing),
        billing_start_date: Some(start),
        line_item_id: item_id(request.item),
        quantity: quantity(request.quantity),
        from: request.from,
        prorate: request.prorate,
    }
}

/// Returns the facts of an event without labels.
pub(crate) const fn facts<'a>(
    usage_product_ref: &'a UsageProductRef,
    occurred_at: Timestamp,
    labels: Option<&'a ReportData>,
) -> billing_domain::matching::EventFacts<'a> {
    billing_domain::matching::EventFacts { usage_product_ref, occurred_at, labels, validations: None }
}

fn label_key() -> LabelKey {
    LabelKey::parse(LABEL_KEY).expect("a label")
}

/// Returns the report data of an event with a label.
pub(crate) fn labels(label: Label) -> Option<ReportData> {
    let entry = |label: usize| (LABEL_KEY.to_owned(), ReportValue::Text(LABELS[label].to_owned()));
    label.map(|label| ReportData::new([entry(label)]))
}

/// Returns default taxes with another tax. The domain must have the same tax in force on each day.
pub(super) fn default_taxes(
    taxes: &TaxSpecs,
    theirs: &DefaultTaxes,
    (tax, from): (&TaxSpec, Option<Date>),
    today: Date,
) -> Result<TaxSpecs, String> {
    let (next, theirs) = (Model::with_tax(taxes, tax, from, today), theirs.with(stated_tax(tax), from, today));
    let days = taxes.iter().chain(&next).filter_map(|(from, _)| *from).flat_map(|day| [plus(day, -1), day]);
    for day in days.chain([plus(today, -1), today]) {
        let (expected, is) = (stated_tax(&Model::default_tax(&next, day)), theirs.on(day));
        if is != expected {
            return Err(format!("{tax:?} from {from:?}, set on {today} after {taxes:?}, is {is:?} on {day}, not {expected:?}"));
        }
    }
    Ok(next)
}
