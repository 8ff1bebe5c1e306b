//! What lists of contracts, customers, payments and charges are narrowed to, and what single things are asked.

use billing_application::charges::ChargeQuery;
use billing_application::contracts::ContractQuery;
use billing_application::documents::PaymentQuery;
use billing_domain::calendar::{Date, Timestamp};
use billing_domain::contract::ContractState;
use billing_domain::page::{Direction, Order};
use billing_domain::ports::{ChargeFilter, ContractFilter, CustomerFilter, PaymentFilter};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, PricingRef};
use billing_domain::text::OneLine;
use billing_report::{NumbersAs, ReportFormat};

use super::{AnyText, ByCreation, ContractNumber, DEFAULT_PAGE_SIZE, Paged, SearchRef, Version};
use crate::dto::declare::{params, wire};
use crate::dto::enums::{ContractOrderWord, CustomerOrderWord, PaymentOrderWord};
use crate::dto::input::Node;
use crate::dto::schemas::text;

params! {
    /// How this description has numbers.
    OpenApiParams {
        /// Whether answers have decimals as numbers, or as strings, as they do with `Prefer: numbers=string`.
        numbers: NumbersAs = NumbersAs::Number,
    }
}

params! {
    /// Which version of a usage format.
    FormatParams {
        /// A version; the newest when left out.
        version: Option<Version>,
    }
}

params! {
    /// Whose contracts, and which page.
    ContractParams {
        /// The customer.
        customer_ref: SearchRef<CustomerRef>,
        @flat page: Paged<0>,
    }
}

params! {
    /// Which contracts.
    ContractSearchParams {
        /// This customer's.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// With this number.
        contract_number: Option<SearchRef<ContractNumber>>,
        /// With this purchase order number.
        po_number: Option<SearchRef<OneLine>>,
        /// In this state today.
        state: Option<ContractState>,
        /// Whose last day is before this one.
        ends_before: Option<Date>,
        /// That agree on this pricing, in any of their versions.
        product_pricing_ref: Option<SearchRef<PricingRef>>,
        /// That next have a document to issue before this instant: RFC 3339 with an offset.
        issues_before: Option<Timestamp>,
        /// By when they were made, when left out. What never ends comes after all that does.
        order: ContractOrderWord = Order::default(),
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl ContractSearchParams {
    /// What is searched for; `None` where nothing can be found.
    pub(crate) fn query(self) -> Option<ContractQuery> {
        let filter = ContractFilter {
            customer_id: None,
            number: possible(self.contract_number)?.map(|number| number.0),
            po_number: possible(self.po_number)?,
            state: None,
            ends_before: self.ends_before,
            pricing_ref: possible(self.product_pricing_ref)?,
            issues_before: self.issues_before,
        };
        Some(ContractQuery { customer_ref: possible(self.customer_ref)?, state: self.state, filter, by: self.order.by })
    }
}

params! {
    /// Which customers.
    CustomerParams {
        /// Whose name begins so; letters A to Z in either case.
        name: Option<AnyText>,
        /// With this e-mail address; letters A to Z in either case.
        email: Option<AnyText>,
        /// With this tax number.
        tax_id: Option<AnyText>,
        /// By when they were made, when left out. Names are in the order of their letters, A to Z in either case.
        order: CustomerOrderWord = Order::default(),
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl CustomerParams {
    /// What they are narrowed to.
    pub(crate) fn filter(&self) -> CustomerFilter {
        CustomerFilter { name: self.name.clone(), email: self.email.clone(), tax_id: self.tax_id.clone() }
    }
}

/// How many quantities are rated at a time.
const MAX_QUANTITIES: usize = 200;

params! {
    /// Which quantities.
    PricingRateParams {
        /// Up to 200 quantities, with a comma between.
        quantity: Quantities,
    }
}

/// Quantities with commas between.
pub(crate) struct Quantities;

wire! {
    Quantities of Vec<Quantity>: quantities, |_| text().examples(Some("100,1500"));
}

fn quantities(node: Node<'_>) -> Option<Vec<Quantity>> {
    let text = node.text()?;
    if text.split(',').count() > MAX_QUANTITIES {
        return node.refuse("too_many", format!("must have at most {MAX_QUANTITIES} quantities"));
    }
    let read = text.split(',').map(Quantity::parse).collect::<Result<Vec<_>, _>>();
    read.map_or_else(|reason| node.refuse("invalid_format", format!("each between commas {reason}")), Some)
}

params! {
    /// What is searched for.
    SearchParams {
        /// A number, reference, key, purchase order number or name, or how a name begins; letters A to Z of names in either case.
        q: TrimmedLine,
    }
}

/// A line, without the white space around it.
pub(crate) struct TrimmedLine;

wire! {
    TrimmedLine of OneLine: |node| {
        let line = OneLine::parse(node.text()?.trim());
        line.map_or_else(|reason| node.refuse("invalid_format", reason.to_string()), Some)
    }, |_| text();
}

params! {
    /// Which payments.
    PaymentParams {
        /// This customer's.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// Recorded on this document.
        document_ref: Option<SearchRef<DocumentRef>>,
        /// With this reference of the payer's or the bank's.
        reference: Option<SearchRef<OneLine>>,
        /// Paid on this day or later.
        from: Option<Date>,
        /// Paid on this day or earlier.
        to: Option<Date>,
        /// By when they were made, when left out.
        order: PaymentOrderWord = Order::default(),
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl PaymentParams {
    /// What is looked for; `None` where nothing can be found.
    pub(crate) fn query(self) -> Option<PaymentQuery> {
        let filter = PaymentFilter {
            customer_id: None,
            document_ref: possible(self.document_ref)?,
            reference: possible(self.reference)?,
            from: self.from,
            to: self.to,
        };
        Some(PaymentQuery { customer_ref: possible(self.customer_ref)?, filter, by: self.order.by })
    }
}

params! {
    /// Which charges.
    ChargeParams {
        /// This customer's.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// This contract's.
        contract_ref: Option<SearchRef<ContractRef>>,
        /// Of this day or later.
        from: Option<Date>,
        /// Of this day or earlier.
        to: Option<Date>,
        /// By when they were made; `-created` has the newest first.
        order: ByCreation = Direction::Forward,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl ChargeParams {
    /// What is looked for; `None` where nothing can be found.
    pub(crate) fn query(self) -> Option<ChargeQuery> {
        let contract_ref = possible(self.contract_ref)?;
        let filter = ChargeFilter { customer_id: None, contract_ref, from: self.from, to: self.to };
        Some(ChargeQuery { customer_ref: possible(self.customer_ref)?, filter })
    }
}

params! {
    /// Which days a statement tells of, and how.
    StatementParams {
        /// The first day; from the beginning when left out.
        from: Option<Date>,
        /// The last day; to the end when left out.
        to: Option<Date>,
        /// How it is written; JSON when left out.
        format: StatementFormat = ReportFormat::Json,
    }
    with {
        fn check(fields: Fields<'_>) {
            let day = |name| fields.peek(name).and_then(|text| billing_domain::calendar::parse_date(text).ok());
            if day("from").zip(day("to")).is_some_and(|(from, to)| from > to) {
                fields.refuse::<()>("to", "out_of_range", "must not be before `from`");
            }
        }
    }
}

/// How a statement can be written.
pub(crate) struct StatementFormat;

wire! {
    StatementFormat of ReportFormat: |node| match node.text()? {
        "json" => Some(ReportFormat::Json),
        "csv" => Some(ReportFormat::Csv),
        _ => node.refuse("invalid_value", "must be json or csv"),
    }, |_| text().enum_values(Some(["json", "csv"]));
}

/// What is looked for where it can exist: the inner value is absent where nobody asked for one, the outer where it can't.
pub(super) fn possible<T>(sought: Option<Option<T>>) -> Option<Option<T>> {
    match sought {
        None => Some(None),
        Some(known) => known.map(Some),
    }
}
