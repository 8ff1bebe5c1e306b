//! What histories are made of, as plain values: drawn by the generator, read by the model, and turned into
//! requests by the driver. Prices and quantities are whole numbers, so that the model needs no decimals.

use billing_domain::catalog::Aggregation;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;

/// Ten-thousandths of a currency's unit.
pub(crate) type Price = u32;
/// Thousandths.
pub(crate) type Amount = u32;
/// Hundredths of a percent.
pub(crate) type Rate = u32;

#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    pub(crate) entities: Vec<EntitySpec>,
    pub(crate) customers: Vec<CustomerSpec>,
    pub(crate) usage: Vec<Aggregation>,
    pub(crate) pricings: Vec<PricingSpec>,
}

#[derive(Clone, Debug)]
pub(crate) struct EntitySpec {
    pub(crate) zone: &'static str,
    pub(crate) grace_hours: u16,
    pub(crate) net_terms: Option<NetTerms>,
}

#[derive(Clone, Debug)]
pub(crate) struct CustomerSpec {
    pub(crate) entity: Option<usize>,
    pub(crate) tax: Option<Rate>,
    pub(crate) net_terms: Option<NetTerms>,
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
    Flat { amount: Price, once: bool },
    Usage(UsageSpec),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UsageSpec {
    pub(crate) usage: usize,
    pub(crate) model: PriceModel,
    pub(crate) included: Amount,
    pub(crate) prepaid: Option<Amount>,
    pub(crate) minimum: Option<Price>,
    pub(crate) maximum: Option<Price>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PriceModel {
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

/// A contract product. Days count from the day of the step.
#[derive(Clone, Debug)]
pub(crate) struct ProductSpec {
    pub(crate) pricing: usize,
    pub(crate) start_in: i64,
    pub(crate) days: i64,
    pub(crate) items: Option<Vec<&'static str>>,
    pub(crate) entity: Option<usize>,
    pub(crate) cycle: Option<(CycleUnit, u16)>,
    /// Days after the first.
    pub(crate) issue_in: Option<i64>,
    pub(crate) payment_time: Option<PaymentTime>,
    pub(crate) tax: Option<Rate>,
    pub(crate) discount: Option<Rate>,
    pub(crate) net_terms: Option<NetTerms>,
    pub(crate) note: Option<&'static str>,
}

/// What an edit does to one of the contract's products.
#[derive(Clone, Debug)]
pub(crate) enum ProductChange {
    /// The edit's list leaves it out.
    Remove,
    /// The edit's list names it.
    Change(Box<ProductPatchSpec>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ProductPatchSpec {
    /// Days from today.
    pub(crate) end_in: Option<i64>,
    pub(crate) items: Patch<Vec<&'static str>>,
    /// Whether items that the pricing doesn't have are left out of the request.
    pub(crate) known_items: bool,
    pub(crate) payment_time: Patch<PaymentTime>,
    pub(crate) cycle: Patch<(CycleUnit, u16)>,
    pub(crate) entity: Patch<usize>,
    pub(crate) tax: Patch<Rate>,
    pub(crate) discount: Patch<Rate>,
    pub(crate) net_terms: Patch<NetTerms>,
    pub(crate) note: Patch<&'static str>,
}

/// The products of an edit: what becomes of the present ones, in turn, and what is added.
#[derive(Clone, Debug)]
pub(crate) struct ProductsChange {
    pub(crate) present: Vec<ProductChange>,
    pub(crate) added: Vec<ProductSpec>,
}

/// An instant of usage, told by what makes it interesting.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// Seconds before now; negative ones are ahead.
    Ago(i64),
    /// Seconds from the first instant of a period of a contract's product.
    Boundary { contract: usize, product: usize, period: usize, seconds: i64 },
    /// So many thousandths into a period of a contract's product, but not after now.
    Inside { contract: usize, product: usize, period: usize, thousandths: i64 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ChecksSpec {
    pub(crate) currency: Option<&'static str>,
    pub(crate) entity: Option<usize>,
}

/// One thing that happens. Numbers that name contracts, events and documents are taken modulo how many there
/// are, so that any step can be left out.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create {
        customer: usize,
        products: Vec<ProductSpec>,
    },
    EditPricing {
        pricing: usize,
        content: PricingSpec,
    },
    Edit {
        contract: usize,
        current: bool,
        po_number: Patch<&'static str>,
        products: Option<ProductsChange>,
    },
    Cancel {
        contract: usize,
        current: bool,
    },
    /// `of` a contract's product: its customer and something it meters.
    Event {
        customer: usize,
        usage: usize,
        of: Option<(usize, usize)>,
        when: When,
        quantity: Amount,
        checks: Option<ChecksSpec>,
    },
    Update {
        event: usize,
        when: Option<When>,
        quantity: Option<Amount>,
        data: Option<u8>,
    },
    Delete {
        event: usize,
    },
    Issue {
        document: usize,
    },
    Void {
        document: usize,
    },
    Pay {
        document: usize,
        percent: u64,
    },
    Run,
    Clock {
        seconds: i64,
    },
    Preview,
}

/// A whole history.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) catalog: Catalog,
    pub(crate) steps: Vec<Step>,
}
