//! The plain values that make up histories. The generator draws them, the driver makes them concrete, the model reads them,
//! and they are converted to the domain's requests. Prices and quantities are whole numbers, so the model needs no decimals.

use billing_domain::catalog::Aggregation;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;

use crate::histories::model::calendar::Date;

/// A price in ten-thousandths of a currency's unit; from [`FINE`] on, in units of its twelfth decimal.
pub(crate) type Price = u128;
/// A [`Price`] with a sign.
pub(crate) type SignedPrice = i128;
/// A quantity in thousandths; from [`FINE`] on, in units of its ninth decimal.
pub(crate) type Amount = u128;
/// A price or quantity with all its decimals is this number and its digits. It is above any number without them.
pub(crate) const FINE: u128 = 1 << 100;
/// A rate in hundredths of a percent.
pub(crate) type Rate = u32;

/// The label of an event, as an index of [`LABELS`]; `None` for an event without one.
pub(crate) type Label = Option<usize>;
/// The key of labels. The aggregation `UNIQUE` counts their distinct values.
pub(crate) const LABEL_KEY: &str = "model";
/// The values of labels.
pub(crate) const LABELS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    pub(crate) entities: Vec<EntitySpec>,
    /// The index of the organization's default entity.
    pub(crate) default_entity: usize,
    pub(crate) customer: CustomerSpec,
    pub(crate) usage: Vec<Aggregation>,
    pub(crate) pricings: Vec<PricingSpec>,
}

/// A tax category at a rate of 0.
pub(crate) type Category = &'static str;

/// A stated tax.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TaxSpec {
    pub(crate) rate: Option<Rate>,
    pub(crate) category: Option<Category>,
}

/// Default taxes, each from its day on. The first may have no day.
pub(crate) type TaxSpecs = Vec<(Option<Date>, TaxSpec)>;

#[derive(Clone, Debug)]
pub(crate) struct EntitySpec {
    pub(crate) zone: &'static str,
    pub(crate) grace_hours: u16,
    /// The number in its prefix.
    pub(crate) prefix: usize,
    pub(crate) taxes: TaxSpecs,
    /// Whether the entity issues only complete documents.
    pub(crate) strict: bool,
    /// Whether the entity reports tax in a currency without a known exchange rate.
    pub(crate) lacks_rate: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct CustomerSpec {
    pub(crate) entity: Option<usize>,
    pub(crate) taxes: TaxSpecs,
    /// Whether the customer and the entities have all legally required information.
    pub(crate) complete: bool,
    pub(crate) net_terms: Option<NetTerms>,
    pub(crate) applies_balance: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PricingSpec {
    pub(crate) currency: &'static str,
    pub(crate) minimum_fee: Option<Price>,
    pub(crate) items: Vec<ItemSpec>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ItemSpec {
    pub(crate) id: &'static str,
    pub(crate) charge: ChargeSpec,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChargeSpec {
    Fixed { price: PriceModel, once: bool },
    Usage(UsageSpec),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UsageSpec {
    pub(crate) usage: usize,
    pub(crate) counts: Counts,
    pub(crate) price: PriceModel,
    pub(crate) included: Amount,
    pub(crate) prepaid: Option<Amount>,
    pub(crate) minimum: Option<Price>,
    pub(crate) maximum: Option<Price>,
}

/// The events that a line item counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Counts {
    Every,
    /// Those with one of these labels.
    Where(Vec<usize>),
    /// Those that no `where` of the usage product counts.
    Rest,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PriceModel {
    Flat(Price),
    PerUnit(Price),
    Graduated(Vec<TierSpec>),
    Volume(Vec<TierSpec>),
    Package { size: Amount, price: Price },
    Percentage { rate: Rate, fixed: Price },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TierSpec {
    pub(crate) up_to: Option<Amount>,
    pub(crate) unit: Price,
    pub(crate) flat: Price,
}

/// The overrides of a line item. Days count from the day of the step.
#[derive(Clone, Debug)]
pub(crate) struct PickSpec {
    pub(crate) id: &'static str,
    pub(crate) quantities: Option<Vec<(i64, Amount)>>,
    pub(crate) price: Patch<PriceModel>,
    pub(crate) included: Patch<Amount>,
    pub(crate) prepaid: Patch<Amount>,
    pub(crate) minimum: Patch<Price>,
    pub(crate) maximum: Patch<Price>,
}

/// A contract product to agree on. Days count from the day of the step.
#[derive(Clone, Debug)]
pub(crate) struct ProductSpec {
    pub(crate) pricing: usize,
    /// A product that this one renews, with the same pricing, from the day after the last day.
    pub(crate) renews: Option<usize>,
    pub(crate) start_in: i64,
    pub(crate) days: i64,
    pub(crate) items: Option<Vec<PickSpec>>,
    pub(crate) minimum_fee: Option<Price>,
    pub(crate) entity: Option<usize>,
    pub(crate) cycle: Option<(CycleUnit, u16)>,
    /// The issue day, in days after the first day.
    pub(crate) issue_in: Option<i64>,
    pub(crate) payment_time: Option<PaymentTime>,
    pub(crate) tax: Option<Rate>,
    pub(crate) category: Option<Category>,
    pub(crate) discount: Option<Rate>,
    pub(crate) net_terms: Option<NetTerms>,
    pub(crate) note: Option<&'static str>,
}

/// The change of an edit to one of the contract's products.
#[derive(Clone, Debug)]
pub(crate) enum ChangeSpec {
    /// The edit's list leaves the product out.
    Leave,
    /// The edit's list names the product.
    Name(Box<PatchSpec>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PatchSpec {
    /// Whether the element has its product's start even if the start is not needed.
    pub(crate) says_start: bool,
    /// Whether the element has its product's number.
    pub(crate) says_no: bool,
    /// The number of days by which the first day moves.
    pub(crate) start_moves: Option<i64>,
    /// The end, in days from today. Mostly used for an ended product.
    pub(crate) end_in: Option<i64>,
    /// The end, in days after the newest agreed end.
    pub(crate) end_later: Option<i64>,
    /// The index of an end that was agreed before.
    pub(crate) end_again: Option<usize>,
    pub(crate) reprice: bool,
    pub(crate) items: ItemsSpec,
    pub(crate) minimum_fee: Patch<Price>,
    pub(crate) payment_time: Patch<PaymentTime>,
    pub(crate) cycle: Patch<(CycleUnit, u16)>,
    /// The issue day, in days after the first day.
    pub(crate) issue_in: Patch<i64>,
    pub(crate) entity: Patch<usize>,
    pub(crate) tax: Patch<Rate>,
    pub(crate) category: Patch<Category>,
    pub(crate) discount: Patch<Rate>,
    pub(crate) net_terms: Patch<NetTerms>,
    pub(crate) note: Patch<&'static str>,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum ItemsSpec {
    #[default]
    Keep,
    All,
    /// The line items that are agreed now, with other values for one of them.
    Same {
        which: usize,
        pick: Box<PickSpec>,
    },
    /// A selection of the pricing's line items.
    These(Vec<PickSpec>),
}

/// A day, relative to today or to a product's periods.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DaySpec {
    /// Days from today.
    In(i64),
    /// The start of a period, counted from the period of today.
    Period { product: usize, after: i64 },
    /// The day after a product's last day.
    End { product: usize },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum SinceSpec {
    Next,
    Current,
    Day(DaySpec),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum LastDaySpec {
    PeriodEnd,
    Today,
    Day(DaySpec),
}

/// An instant of usage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// Seconds before now. Negative values are in the future.
    Ago(i64),
    /// Seconds from the first instant of a period of a product.
    Boundary { product: usize, period: usize, seconds: i64 },
    /// Thousandths of a period of a product after its start, but not after now.
    Inside { product: usize, period: usize, thousandths: i64 },
    /// The instant that the event had when it was recorded. Only for updates.
    First,
}

/// A part of an available amount.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PartSpec {
    All,
    /// Thousandths of the amount.
    Some(i64),
    /// The whole amount and these additional minor units.
    More(i64),
}

/// A money step. Days count from today.
#[derive(Clone, Debug)]
pub(crate) enum MoneySpec {
    Pay { document: usize, part: PartSpec, takes_more: bool, days: Option<i64> },
    Deposit { entity: usize, pricing: usize, minor: i64, days: Option<i64> },
    Reverse { payment: usize, days: Option<i64> },
    Refund { source: usize, part: PartSpec },
    Apply { source: usize, document: usize, part: PartSpec },
    Unapply { application: usize },
    WriteOff { document: usize, undo: bool },
}

/// A credit grant. Days count from today.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrantSpec {
    pub(crate) minor: i64,
    /// The invoice that sells the credit, among the invoices; mostly one that can. Without it, the credit is given.
    pub(crate) source: Option<usize>,
    /// Whether sold credit is usable before its invoice is paid.
    pub(crate) paid: bool,
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    /// The document or else the pricing whose account has the given credit.
    pub(crate) account: usize,
}

/// One step of a history. Numbers that name products, events and documents are taken modulo their count, so that any step can
/// be left out.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    EditPricing {
        pricing: usize,
        content: PricingSpec,
    },
    EditEntity {
        entity: usize,
        zone: &'static str,
        grace_hours: u16,
        prefix: Option<usize>,
        is_default: bool,
        tax: Option<(TaxSpec, Option<DaySpec>)>,
        strict: bool,
        lacks_rate: bool,
    },
    EditCustomer {
        entity: Option<usize>,
        tax: Option<(TaxSpec, Option<DaySpec>)>,
        complete: bool,
        net_terms: Option<NetTerms>,
        applies_balance: bool,
    },
    Money(MoneySpec),
    Grant(GrantSpec),
    /// An edit of the amount and the last day of a grant.
    EditGrant {
        grant: usize,
        minor: Option<i64>,
        to: Option<Option<i64>>,
    },
    Edit {
        since: SinceSpec,
        version: bool,
        changes: Vec<ChangeSpec>,
        added: Vec<ProductSpec>,
        reversed: bool,
    },
    Quantity {
        product: usize,
        item: usize,
        quantity: Amount,
        from: Option<DaySpec>,
        prorate: bool,
    },
    Cancel {
        last_day: LastDaySpec,
    },
    Resume,
    Event {
        usage: usize,
        of: Option<usize>,
        when: When,
        quantity: Amount,
        label: Label,
    },
    Update {
        event: usize,
        when: Option<When>,
        quantity: Option<Amount>,
        label: Option<Label>,
    },
    Delete {
        event: usize,
    },
    Charge {
        product: usize,
        /// Whether the request names the product's pricing.
        names_product: bool,
        day: DaySpec,
        quantity: Amount,
        price: SignedPrice,
        fixed: bool,
        discountable: bool,
        issue: bool,
    },
    EditCharge {
        charge: usize,
        day: Option<DaySpec>,
        quantity: Option<Amount>,
        price: Option<SignedPrice>,
        issue: bool,
    },
    DeleteCharge {
        charge: usize,
    },
    Issue {
        document: usize,
    },
    Void {
        document: usize,
    },
    Run,
    /// A preview, followed by a run at its due instant. The run must issue the same documents.
    Foreseen {
        next: bool,
    },
    Clock {
        seconds: i64,
    },
}

/// A whole history.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) catalog: Catalog,
    pub(crate) products: Vec<ProductSpec>,
    pub(crate) steps: Vec<Step>,
}

/// A line item of a request, with dates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ItemRequest {
    pub(crate) id: &'static str,
    pub(crate) quantities: Option<Vec<(Date, Amount)>>,
    pub(crate) price: Patch<PriceModel>,
    pub(crate) included: Patch<Amount>,
    pub(crate) prepaid: Patch<Amount>,
    pub(crate) minimum: Patch<Price>,
    pub(crate) maximum: Patch<Price>,
}

/// An element of a request's list of products, with dates. The end is the day after the last day.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element {
    pub(crate) no: Option<u16>,
    pub(crate) pricing: usize,
    pub(crate) start: Option<Date>,
    pub(crate) end: Option<Date>,
    pub(crate) reprice: bool,
    pub(crate) items: Patch<Vec<ItemRequest>>,
    pub(crate) minimum_fee: Patch<Price>,
    pub(crate) entity: Patch<usize>,
    pub(crate) cycle: Patch<(CycleUnit, u16)>,
    pub(crate) issue_day: Patch<Date>,
    pub(crate) payment_time: Patch<PaymentTime>,
    pub(crate) tax: Patch<Rate>,
    pub(crate) category: Patch<Category>,
    pub(crate) discount: Patch<Rate>,
    pub(crate) net_terms: Patch<NetTerms>,
    pub(crate) note: Patch<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum From {
    Next,
    Current,
    Day(Date),
}

/// An edit with dates.
#[derive(Clone, Debug)]
pub(crate) struct EditRequest {
    pub(crate) since: From,
    /// Whether the edit names its base version.
    pub(crate) version: bool,
    pub(crate) elements: Vec<Element>,
}
