//! What histories are made of, as plain values: drawn by the generator, made concrete by the driver, read by the model
//! and turned into the domain's requests. Prices and quantities are whole numbers, so that the model needs no decimals.

use billing_domain::catalog::Aggregation;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;

use crate::histories::model::calendar::Date;

/// Ten-thousandths of a currency's unit.
pub(crate) type Price = u32;
/// As a [`Price`], above or below zero.
pub(crate) type SignedPrice = i64;
/// Thousandths.
pub(crate) type Amount = u32;
/// Hundredths of a percent.
pub(crate) type Rate = u32;

#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    pub(crate) entities: Vec<EntitySpec>,
    /// Which of them is the organization's default.
    pub(crate) default_entity: usize,
    pub(crate) customer: CustomerSpec,
    pub(crate) usage: Vec<Aggregation>,
    pub(crate) pricings: Vec<PricingSpec>,
}

/// What kind of tax something bears at a rate of 0.
pub(crate) type Category = &'static str;

/// What is stated about tax.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TaxSpec {
    pub(crate) rate: Option<Rate>,
    pub(crate) category: Option<Category>,
}

/// Default taxes, each from its day on; the first may have none.
pub(crate) type TaxSpecs = Vec<(Option<Date>, TaxSpec)>;

#[derive(Clone, Debug)]
pub(crate) struct EntitySpec {
    pub(crate) zone: &'static str,
    pub(crate) grace_hours: u16,
    /// The number in its prefix.
    pub(crate) prefix: usize,
    pub(crate) taxes: TaxSpecs,
    /// Whether it issues complete papers only.
    pub(crate) strict: bool,
    /// Whether it accounts for tax in a currency that no exchange rate is known for.
    pub(crate) lacks_rate: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct CustomerSpec {
    pub(crate) entity: Option<usize>,
    pub(crate) taxes: TaxSpecs,
    /// Whether it and the entities have everything that the law asks for.
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
    pub(crate) price: PriceModel,
    pub(crate) included: Amount,
    pub(crate) prepaid: Option<Amount>,
    pub(crate) minimum: Option<Price>,
    pub(crate) maximum: Option<Price>,
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

/// What is agreed differently of a line item. Days count from the day of the step.
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
    /// A product that it renews: of its pricing, from the day after its last.
    pub(crate) renews: Option<usize>,
    pub(crate) start_in: i64,
    pub(crate) days: i64,
    pub(crate) items: Option<Vec<PickSpec>>,
    pub(crate) minimum_fee: Option<Price>,
    pub(crate) entity: Option<usize>,
    pub(crate) cycle: Option<(CycleUnit, u16)>,
    /// Days after the first.
    pub(crate) issue_in: Option<i64>,
    pub(crate) payment_time: Option<PaymentTime>,
    pub(crate) tax: Option<Rate>,
    pub(crate) category: Option<Category>,
    pub(crate) discount: Option<Rate>,
    pub(crate) net_terms: Option<NetTerms>,
    pub(crate) note: Option<&'static str>,
}

/// What an edit does to one of the contract's products.
#[derive(Clone, Debug)]
pub(crate) enum ChangeSpec {
    /// The edit's list leaves it out.
    Leave,
    /// The edit's list names it.
    Name(Box<PatchSpec>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PatchSpec {
    /// Whether the element carries its product's start even where that isn't needed.
    pub(crate) says_start: bool,
    /// Whether the element carries its product's number.
    pub(crate) says_no: bool,
    /// By how many days the first day moves.
    pub(crate) start_moves: Option<i64>,
    /// Days from today; of an ended product mostly used.
    pub(crate) end_in: Option<i64>,
    /// The newest agreed end again, some days later.
    pub(crate) end_later: Option<i64>,
    /// An end that was agreed before.
    pub(crate) end_again: Option<usize>,
    pub(crate) reprice: bool,
    pub(crate) items: ItemsSpec,
    pub(crate) minimum_fee: Patch<Price>,
    pub(crate) payment_time: Patch<PaymentTime>,
    pub(crate) cycle: Patch<(CycleUnit, u16)>,
    /// Days after the first.
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
    /// Those that are agreed now, with other values for one of them.
    Same {
        which: usize,
        pick: Box<PickSpec>,
    },
    /// These, of those that the pricing has.
    These(Vec<PickSpec>),
}

/// A day, told by what makes it interesting.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DaySpec {
    /// Days from today.
    In(i64),
    /// The start of a period, so many after the one of today.
    Period { product: usize, after: i64 },
    /// The day after a product's last.
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
    /// Seconds before now; negative ones are ahead.
    Ago(i64),
    /// Seconds from the first instant of a period of a product.
    Boundary { product: usize, period: usize, seconds: i64 },
    /// So many thousandths into a period of a product, but not after now.
    Inside { product: usize, period: usize, thousandths: i64 },
}

/// How much of what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PartSpec {
    All,
    /// In thousandths.
    Some(i64),
    /// All, and so much more.
    More(i64),
}

/// What money does. Days count from today.
#[derive(Clone, Debug)]
pub(crate) enum MoneySpec {
    Pay { document: usize, part: PartSpec, takes_more: bool, days: Option<i64> },
    Reverse { payment: usize, days: Option<i64> },
    Refund { source: usize, part: PartSpec },
    Apply { source: usize, document: usize, part: PartSpec },
    Unapply { application: usize },
    WriteOff { document: usize, undo: bool },
}

/// One thing that happens. Numbers that name products, events and documents are taken modulo how many there are, so that
/// any step can be left out.
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
    },
    Update {
        event: usize,
        when: Option<When>,
        quantity: Option<Amount>,
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
    /// A preview, then the clock goes to its instant, and the run has to issue the same.
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

/// An element of a request's list of products, with dates. The end is the day after the last.
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
    /// Whether it names the version it starts from.
    pub(crate) version: bool,
    pub(crate) elements: Vec<Element>,
}
