//! Specifications → requests of the use cases.

use billing_domain::calendar::TimeZone;
use billing_domain::catalog::{
    Charge, LineItem, PricingContent, Recurrence, Tier, Tiers, UsageCharge, UsagePrice, UsageProductProfile,
};
use billing_domain::contract::amendment;
use billing_domain::contract::schedule::BillingCycle;
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::party::{CustomerProfile, EntityProfile, PaymentDetails};
use billing_domain::patch::Patch;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{EntityRef, LineItemId};
use billing_domain::usage::{ReportData, ReportValue, Validations};
use billing_testkit::{CountingIds, fixtures};

use crate::model::calendar::{Date, plus};
use crate::model::contract::{ProductPatch, Wanted};
use crate::spec::*;

const USAGE: [&str; 2] = ["calls", "storage"];

pub(crate) fn price_text(price: Price) -> String {
    format!("{}.{:04}", price / 10_000, price % 10_000)
}

pub(crate) fn quantity(amount: Amount) -> Quantity {
    fixtures::quantity(&format!("{}.{:03}", amount / 1_000, amount % 1_000))
}

pub(crate) fn rate(rate: Rate) -> billing_domain::money::Percentage {
    fixtures::percent(&format!("{}.{:02}", rate / 100, rate % 100))
}

pub(crate) fn price(price: Price) -> billing_domain::money::Price {
    fixtures::price(&price_text(price))
}

pub(crate) fn usage_name(usage: usize) -> &'static str {
    USAGE[usage]
}

pub(crate) fn entity_ref(entity: usize) -> EntityRef {
    fixtures::entity_ref(&format!("E{entity}"))
}

pub(crate) fn entity(spec: &EntitySpec, index: usize) -> EntityProfile {
    EntityProfile {
        time_zone: TimeZone::parse(spec.zone).expect("a zone"),
        grace_hours: spec.grace_hours,
        net_terms: spec.net_terms,
        ..fixtures::entity(&format!("E{index}")).profile
    }
}

pub(crate) fn customer(spec: &CustomerSpec, index: usize) -> CustomerProfile {
    let entity_ref = spec.entity.map(entity_ref);
    let plain = fixtures::customer(&CountingIds::new(), &format!("C{index}")).profile;
    CustomerProfile { entity_ref, tax: spec.tax.map(rate), net_terms: spec.net_terms, ..plain }
}

pub(crate) fn usage_product(index: usize, aggregation: billing_domain::catalog::Aggregation) -> UsageProductProfile {
    UsageProductProfile { aggregation, ..fixtures::usage_product(usage_name(index)).profile }
}

pub(crate) fn pricing(spec: &PricingSpec, index: usize) -> PricingContent {
    PricingContent {
        name: fixtures::line(&format!("P{index}")),
        currency: fixtures::currency(spec.currency),
        minimum_fee: spec.minimum_fee.map(price),
        line_items: spec.items.iter().map(line_item).collect(),
    }
}

fn line_item(item: &ItemSpec) -> LineItem {
    let charge = match &item.charge {
        ChargeSpec::Flat { amount, once } => {
            let recurrence = if *once { Recurrence::Once } else { Recurrence::EachPeriod };
            Charge::Fixed { amount: price(*amount), recurrence }
        }
        ChargeSpec::Usage(usage) => Charge::Usage(UsageCharge {
            usage_product_ref: fixtures::usage_product_ref(usage_name(usage.usage)),
            price: usage_price(&usage.model),
            included_quantity: quantity(usage.included),
            prepaid_quantity: usage.prepaid.map(quantity),
            minimum_amount: usage.minimum.map(price),
            maximum_amount: usage.maximum.map(price),
        }),
    };
    LineItem { id: fixtures::line_item_id(item.id), name: fixtures::line(item.id), charge }
}

fn usage_price(model: &PriceModel) -> UsagePrice {
    match model {
        PriceModel::PerUnit(unit) => UsagePrice::PerUnit { unit_price: price(*unit) },
        PriceModel::Graduated(rows) => UsagePrice::Graduated(tiers(rows)),
        PriceModel::Volume(rows) => UsagePrice::Volume(tiers(rows)),
        PriceModel::Package { size, price: of_one } => {
            UsagePrice::Package { package_size: quantity(*size), package_price: price(*of_one) }
        }
        PriceModel::Percentage { rate: percent, fixed } => {
            UsagePrice::Percentage { rate: rate(*percent), fixed_amount: price(*fixed) }
        }
    }
}

fn tiers(rows: &[TierSpec]) -> Tiers {
    let tier = |row: &TierSpec| Tier {
        up_to: row.up_to.map(|bound| fixtures::price(&format!("{}.{:03}", bound / 1_000, bound % 1_000))),
        unit_price: price(row.unit),
        flat_amount: price(row.flat),
    };
    Tiers::new(rows.iter().map(tier).collect()).expect("rising bounds")
}

/// What a product spec asks for on a day.
pub(crate) fn wanted(spec: &ProductSpec, today: Date) -> Wanted {
    let start = plus(today, spec.start_in);
    Wanted {
        pricing: spec.pricing,
        start,
        end: plus(start, spec.days),
        items: spec.items.clone(),
        entity: spec.entity,
        cycle: spec.cycle,
        issue_day: spec.issue_in.map(|days| plus(start, days)),
        payment_time: spec.payment_time,
        tax: spec.tax,
        discount: spec.discount,
        net_terms: spec.net_terms,
        note: spec.note,
    }
}

/// An element of an edit's list for a product that isn't there yet.
pub(crate) fn added(wanted: Wanted) -> ProductPatch {
    fn set<T>(value: Option<T>) -> Patch<T> {
        value.map_or(Patch::Keep, Patch::Set)
    }
    ProductPatch {
        pricing: wanted.pricing,
        start: Some(wanted.start),
        end: Some(wanted.end),
        items: set(wanted.items),
        entity: set(wanted.entity),
        cycle: set(wanted.cycle),
        issue_day: set(wanted.issue_day),
        payment_time: set(wanted.payment_time),
        tax: set(wanted.tax),
        discount: set(wanted.discount),
        net_terms: set(wanted.net_terms),
        note: set(wanted.note),
    }
}

fn billing_cycle((unit, count): (billing_domain::contract::schedule::CycleUnit, u16)) -> BillingCycle {
    BillingCycle::new(unit, count).expect("a cycle")
}

fn ids(items: Vec<&str>) -> Vec<LineItemId> {
    items.into_iter().map(fixtures::line_item_id).collect()
}

pub(crate) fn requested(wanted: Wanted) -> RequestedProduct {
    RequestedProduct {
        pricing_ref: fixtures::pricing_ref(&format!("P{}", wanted.pricing)),
        billing_start_date: wanted.start,
        billing_end_date: plus(wanted.end, -1),
        line_items: wanted.items.map(ids),
        entity_ref: wanted.entity.map(entity_ref),
        billing_cycle: wanted.cycle.map(billing_cycle),
        issue_day: wanted.issue_day,
        payment_time: wanted.payment_time,
        tax: wanted.tax.map(rate),
        discount: wanted.discount.map(rate),
        net_terms: wanted.net_terms,
        note: wanted.note.map(fixtures::prose),
        payment: PaymentDetails::default(),
    }
}

pub(crate) fn patch(patch: ProductPatch) -> amendment::ProductPatch {
    fn map<T, U>(patch: Patch<T>, to: impl FnOnce(T) -> U) -> Patch<U> {
        match patch {
            Patch::Keep => Patch::Keep,
            Patch::Clear => Patch::Clear,
            Patch::Set(value) => Patch::Set(to(value)),
        }
    }
    amendment::ProductPatch {
        pricing_ref: fixtures::pricing_ref(&format!("P{}", patch.pricing)),
        billing_start_date: patch.start,
        billing_end_date: patch.end.map(|end| plus(end, -1)),
        line_items: map(patch.items, ids),
        entity_ref: map(patch.entity, entity_ref),
        billing_cycle: map(patch.cycle, billing_cycle),
        issue_day: patch.issue_day,
        payment_time: patch.payment_time,
        tax: map(patch.tax, rate),
        discount: map(patch.discount, rate),
        net_terms: patch.net_terms,
        note: map(patch.note, fixtures::prose),
        bank_transfer: Patch::Keep,
        online: Patch::Keep,
        crypto: Patch::Keep,
    }
}

pub(crate) fn validations(checks: ChecksSpec) -> Validations {
    Validations { currency: checks.currency.map(fixtures::currency), entity_ref: checks.entity.map(entity_ref) }
}

pub(crate) fn report_data(data: u8) -> ReportData {
    ReportData::new(vec![("data".to_owned(), ReportValue::Number(data.to_string()))]).expect("report data")
}
