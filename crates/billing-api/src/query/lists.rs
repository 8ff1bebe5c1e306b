//! Filters of contract, customer, payment and charge lists, and parameters of single operations.

use billing_application::charges::ChargeQuery;
use billing_application::contracts::ContractQuery;
use billing_application::credit::{DrawQuery, GrantQuery};
use billing_application::documents::PaymentQuery;
use billing_domain::calendar::{Date, Timestamp};
use billing_domain::contract::ContractState;
use billing_domain::einvoice::Syntax;
use billing_domain::money::Currency;
use billing_domain::page::{ListRequest, ListSortKey, MAX_PAGE_SIZE, Order, PageRequest};
use billing_domain::ports::{ChargeFilter, ContractFilter, CustomerFilter, DrawFilter, GrantFilter, PaymentFilter};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, CreditGrantRef, CustomerRef, DocumentRef, EntityRef, PricingRef};
use billing_domain::report::NumbersAs;
use billing_domain::text::OneLine;

use super::updates::UpdateParams;
use super::{AnyText, ContractNumber, DEFAULT_PAGE_SIZE, MetadataParams, Paged, SearchRef, Version, paged};
use crate::dto::declare::{params, wire};
use crate::dto::enums::{AdministratorOrderWord, ContractOrderWord, CustomerOrderWord, ListOrderWord, PaymentOrderWord};
use crate::dto::input::Node;
use crate::dto::pricings::MAX_QUANTITIES;
use crate::dto::schemas::text;

/// The order of lists of runs and imports, by start time.
pub(super) const NEWEST_FIRST: Order<ListSortKey> = Order { by: ListSortKey::Created, descending: true };

params! {
    /// Options of the OpenAPI document.
    OpenApiParams {
        /// Whether the document describes decimals as numbers or as strings, as in responses with `Prefer:
        /// numbers=string`. Default: `number`.
        numbers: NumbersAs = NumbersAs::Number,
    }
}

params! {
    /// The version of a usage format.
    FormatParams {
        /// Version number. Default: the newest version.
        version: Option<Version>,
    }
}

params! {
    /// Order, conditions and page of a list without other filters.
    ListParams {
        /// Sort order. Default: by creation.
        order: ListOrderWord = Order::default(),
        @flat updates: UpdateParams,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

params! {
    /// Order, conditions and page of the list of API keys.
    KeyListParams {
        /// Sort order. Default: by creation.
        order: ListOrderWord = Order::default(),
        @flat updates: UpdateParams,
        @flat page: Paged<MAX_PAGE_SIZE>,
    }
}

params! {
    /// Order, conditions and page of the list of administrators.
    AdministratorListParams {
        /// Sort order. Default: by e-mail address.
        order: AdministratorOrderWord = Order::default(),
        @flat updates: UpdateParams,
        @flat page: Paged<MAX_PAGE_SIZE>,
    }
}

impl ListParams {
    /// Returns the request.
    pub fn request(&self) -> ListRequest {
        list_request(self.order, &self.updates, self.page.0)
    }
}

impl KeyListParams {
    /// Returns the request.
    pub fn request(&self) -> ListRequest {
        list_request(self.order, &self.updates, self.page.0)
    }
}

fn list_request(order: Order<ListSortKey>, updates: &UpdateParams, page: PageRequest) -> ListRequest {
    ListRequest { updates: updates.filter(), by: order.by, page: page.in_direction(order.direction()) }
}

params! {
    /// Customer and page of a contract list.
    ContractParams {
        /// Customer reference.
        customer_ref: SearchRef<CustomerRef>,
        @flat page: Paged<0>,
    }
}

params! {
    /// Filters of contracts.
    ContractSearchParams {
        /// Customer reference.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// Contract number.
        contract_number: Option<SearchRef<ContractNumber>>,
        /// Purchase order number.
        po_number: Option<SearchRef<OneLine>>,
        /// State today.
        state: Option<ContractState>,
        /// Latest last day, exclusive.
        ends_before: Option<Date>,
        /// Pricing reference, in any version of the contract.
        product_pricing_ref: Option<SearchRef<PricingRef>>,
        /// Latest time of the next document's issue, exclusive; RFC 3339 with an offset.
        issues_before: Option<Timestamp>,
        /// Sort order. Default: by creation. Contracts without an end come last.
        order: ContractOrderWord = Order::default(),
        @flat metadata: MetadataParams,
        @flat updates: UpdateParams,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl ContractSearchParams {
    /// Returns the query; `None` if nothing can match.
    pub fn query(self) -> Option<ContractQuery> {
        let filter = ContractFilter {
            customer_id: None,
            number: possible(self.contract_number)?.map(|number| number.0),
            po_number: possible(self.po_number)?,
            state: None,
            ends_before: self.ends_before,
            pricing_ref: possible(self.product_pricing_ref)?,
            issues_before: self.issues_before,
            updates: self.updates.filter(),
            metadata: self.metadata.0,
        };
        Some(ContractQuery { customer_ref: possible(self.customer_ref)?, state: self.state, filter, by: self.order.by })
    }
}

params! {
    /// Filters of customers.
    CustomerParams {
        /// Start of the name; letters A to Z match in either case.
        name: Option<AnyText>,
        /// E-mail address; letters A to Z match in either case.
        email: Option<AnyText>,
        /// Tax number.
        tax_id: Option<AnyText>,
        /// Sort order. Default: by creation. The order of names ignores the case of letters A to Z.
        order: CustomerOrderWord = Order::default(),
        @flat metadata: MetadataParams,
        @flat updates: UpdateParams,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl CustomerParams {
    /// Returns the filter.
    pub fn filter(&self) -> CustomerFilter {
        CustomerFilter {
            name: self.name.clone(),
            email: self.email.clone(),
            tax_id: self.tax_id.clone(),
            metadata: self.metadata.0.clone(),
            updates: self.updates.filter(),
        }
    }
}

params! {
    /// Options of an e-invoice.
    EInvoiceParams {
        /// Syntax. Default: `cii` for documents with the profile FACTUR_X, otherwise `ubl`.
        syntax: Option<Syntax>,
    }
}

params! {
    /// Options of the check of e-invoices.
    EInvoiceCheckParams {
        /// Entity that bills. Default: the customer's default entity, else the organization's.
        entity_ref: Option<EntityRef>,
    }
}

params! {
    /// Quantities to rate.
    PricingRateParams {
        /// Up to 200 quantities, separated by commas.
        quantity: Quantities,
    }
}

params! {
    /// Customer and page of a list of limits.
    LimitParams {
        /// Customer reference.
        customer_ref: Option<SearchRef<CustomerRef>>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl LimitParams {
    /// Returns the customer, if one is given; `None` if nothing can match.
    pub fn query(self) -> Option<Option<CustomerRef>> {
        possible(self.customer_ref)
    }
}

params! {
    /// The customer of a hold.
    HoldParams {
        /// Customer reference.
        customer_ref: CustomerRef,
    }
}

params! {
    /// Customer, condition and page of a list of holds.
    HoldListParams {
        /// Customer reference.
        customer_ref: SearchRef<CustomerRef>,
        /// Whether only open holds are listed. Default: false.
        open: bool = false,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

params! {
    /// Customers whose amounts are listed.
    AmountsDueParams {
        /// Up to 100 customer references, separated by commas.
        customer_ref: CustomerRefs,
    }
}

/// The maximum number of customers in one request.
pub const MAX_CUSTOMERS: usize = 100;

/// Customer references separated by commas.
pub struct CustomerRefs;

wire! {
    CustomerRefs of Vec<CustomerRef>: customer_refs, |_| text().examples(Some("acme,globex"));
}

fn customer_refs(node: Node<'_>) -> Option<Vec<CustomerRef>> {
    let text = node.text()?;
    if text.split(',').count() > MAX_CUSTOMERS {
        return node.refuse("too_many", format!("must have at most {MAX_CUSTOMERS} references"));
    }
    let read = text.split(',').map(CustomerRef::parse).collect::<Result<Vec<_>, _>>();
    read.map_or_else(|reason| node.refuse("invalid_format", format!("each between commas {reason}")), Some)
}

/// Quantities separated by commas.
pub struct Quantities;

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
    /// Search parameters.
    SearchParams {
        /// Number, reference, key, purchase order number, name, e-mail address or tax number, or the start of words in them;
        /// letters match in either case.
        q: TrimmedLine,
    }
}

/// A line without surrounding white space.
pub struct TrimmedLine;

wire! {
    TrimmedLine of OneLine: |node| {
        let line = OneLine::parse(node.text()?.trim());
        line.map_or_else(|reason| node.refuse("invalid_format", reason.to_string()), Some)
    }, |_| text();
}

params! {
    /// Filters of payments.
    PaymentParams {
        /// Customer reference.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// Document that the payment is recorded on.
        document_ref: Option<SearchRef<DocumentRef>>,
        /// Whether to return only deposits and their refunds. Default: false.
        deposits: bool = false,
        /// Reference of the payer or the bank.
        reference: Option<SearchRef<OneLine>>,
        /// Earliest date of payment.
        from: Option<Date>,
        /// Latest date of payment.
        to: Option<Date>,
        /// Sort order. Default: by creation.
        order: PaymentOrderWord = Order::default(),
        @flat metadata: MetadataParams,
        @flat updates: UpdateParams,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl PaymentParams {
    /// Returns the query; `None` if nothing can match.
    pub fn query(self) -> Option<PaymentQuery> {
        let filter = PaymentFilter {
            customer_id: None,
            document_ref: possible(self.document_ref)?,
            deposits: self.deposits,
            reference: possible(self.reference)?,
            from: self.from,
            to: self.to,
            updates: self.updates.filter(),
            metadata: self.metadata.0,
        };
        Some(PaymentQuery { customer_ref: possible(self.customer_ref)?, filter, by: self.order.by })
    }
}

params! {
    /// Page of a customer's payments.
    CustomerPaymentParams {
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

params! {
    /// Filters of charges.
    ChargeParams {
        /// Customer reference.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// Contract reference.
        contract_ref: Option<SearchRef<ContractRef>>,
        /// Earliest service date.
        from: Option<Date>,
        /// Latest service date.
        to: Option<Date>,
        /// Sort order. Default: by creation.
        order: ListOrderWord = Order::default(),
        @flat updates: UpdateParams,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl ChargeParams {
    /// Returns the query; `None` if nothing can match.
    pub fn query(self) -> Option<ChargeQuery> {
        let contract_ref = possible(self.contract_ref)?;
        let updates = self.updates.filter();
        let filter = ChargeFilter { customer_id: None, contract_ref, from: self.from, to: self.to, updates };
        Some(ChargeQuery { customer_ref: possible(self.customer_ref)?, filter, by: self.order.by })
    }
}

params! {
    /// Filters of credit grants.
    GrantParams {
        /// Customer reference.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// Supplier entity reference.
        entity_ref: Option<SearchRef<EntityRef>>,
        /// Currency.
        currency: Option<Currency>,
        /// Invoice that sold the credit.
        source_document_ref: Option<SearchRef<DocumentRef>>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl GrantParams {
    /// Returns the query; `None` if nothing can match.
    pub fn query(self) -> Option<GrantQuery> {
        let (entity_ref, source) = (possible(self.entity_ref)?, possible(self.source_document_ref)?);
        let filter = GrantFilter { customer_id: None, entity_ref, currency: self.currency, source };
        Some(GrantQuery { customer_ref: possible(self.customer_ref)?, filter })
    }
}

params! {
    /// Filters of draws.
    DrawParams {
        /// Customer reference.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// Grant.
        grant_ref: Option<SearchRef<CreditGrantRef>>,
        /// Document.
        document_ref: Option<SearchRef<DocumentRef>>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl DrawParams {
    /// Returns the query; `None` if nothing can match.
    pub fn query(self) -> Option<DrawQuery> {
        let (grant_ref, document_ref) = (possible(self.grant_ref)?, possible(self.document_ref)?);
        let filter = DrawFilter { customer_id: None, grant_ref, document_ref };
        Some(DrawQuery { customer_ref: possible(self.customer_ref)?, filter })
    }
}

params! {
    /// Period and format of a statement.
    StatementParams {
        /// First day. Default: from the beginning.
        from: Option<Date>,
        /// Last day. Default: to the end.
        to: Option<Date>,
        /// Format. Default: JSON.
        format: StatementFormat = StatementForm::Json,
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

/// The format of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementForm {
    /// An array of objects.
    Json,
    /// A table.
    Csv,
    /// A file for reading and printing.
    Pdf,
}

/// The formats of a statement.
pub struct StatementFormat;

wire! {
    StatementFormat of StatementForm: |node| match node.text()? {
        "json" => Some(StatementForm::Json),
        "csv" => Some(StatementForm::Csv),
        "pdf" => Some(StatementForm::Pdf),
        _ => node.refuse("invalid_value", "must be json, csv or pdf"),
    }, |_| text().enum_values(Some(["json", "csv", "pdf"]));
}

/// Resolves an optional reference. The inner option is `None` if no reference was given, the outer if a malformed
/// reference cannot match.
pub(super) fn possible<T>(sought: Option<Option<T>>) -> Option<Option<T>> {
    match sought {
        None => Some(None),
        Some(known) => known.map(Some),
    }
}

paged! {
    ContractParams, HoldListParams, LimitParams, GrantParams, DrawParams, CustomerPaymentParams;
    ordered ListParams, KeyListParams, AdministratorListParams, CustomerParams, ContractSearchParams, PaymentParams, ChargeParams,
}
