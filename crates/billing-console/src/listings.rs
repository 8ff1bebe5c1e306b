//! The API lists that the console shows.

pub use crate::credit::{CREDIT, DRAWS};
use crate::list::{CellFormat, Column, Listing};
use crate::parts::words;
use billing_api::dto::audit::AuditEntryJson;
use billing_api::dto::bank_accounts::BankAccountJson;
use billing_api::dto::billing::BillingRunJson;
use billing_api::dto::charges::ChargeJson;
use billing_api::dto::contract_view::ContractJson;
use billing_api::dto::customers::CustomerJson;
use billing_api::dto::documents::DocumentJson;
use billing_api::dto::entities::EntityJson;
use billing_api::dto::events::EventJson;
use billing_api::dto::formats::FormatJson;
use billing_api::dto::imports::ImportJson;
use billing_api::dto::limits::LimitJson;
use billing_api::dto::money::PaymentJson;
use billing_api::dto::pricings::PricingJson;
use billing_api::dto::refused::RefusedUsageJson;
use billing_api::dto::usage_products::UsageProductJson;
use billing_api::dto::webhooks::{WebhookDeliveryJson, WebhookEndpointJson};
use billing_api::field;
use billing_api::json_view::JsonView;
use billing_api::operations::{
    GetBankAccount, GetBillingRun, GetCharge, GetContract, GetCustomer, GetDocument, GetEntity, GetEvent, GetImport, GetLimit,
    GetPricing, GetUsageFormat, GetUsageProduct, GetWebhookEndpoint, ListAuditEntries, ListBankAccounts, ListBillingRuns,
    ListCharges, ListCustomers, ListDocuments, ListEntities, ListEvents, ListImports, ListLimits, ListPayments, ListPricings,
    ListRefusedUsage, ListUsageFormats, ListUsageProducts, ListWebhookDeliveries, ListWebhookEndpoints, SearchContracts,
};
use billing_domain::catalog::UsageProductProfile;
use billing_domain::party::bank::BankAccountProfile;
use billing_domain::party::{CustomerProfile, EntityProfile};
use billing_domain::tax::StatedTax;

/// Fields that the console adds to customers: the state of what they owe, and the amounts due. The API has them in a list of
/// their own.
pub(crate) const ADDED_STATE: &str = "state";
pub(crate) const ADDED_AMOUNTS_DUE: &str = "amounts_due";

pub(crate) const fn column(label: &'static str, field: &'static str, shown: CellFormat) -> Column {
    Column { label, field, shown, leads: None, order: None, is_extra: false }
}

impl Listing {
    /// Returns the sort order of the list with filters, if it differs from the API's default. Overdue documents begin with the
    /// oldest due date, because they are the most urgent ones.
    pub fn order_of(&self, filters: &[(&str, &str)]) -> Option<&'static str> {
        let is_overdue = self.part == DOCUMENTS.part && filters.contains(&("overdue", "true"));
        if is_overdue { Some("due_date") } else { self.order }
    }
}

impl Column {
    /// Returns the name of an object in its column. A word of the API is a name in readable text.
    pub(crate) fn name_of(&self, thing: JsonView<'_>) -> String {
        let name = thing.at_path(self.field).to_text();
        if matches!(self.shown, CellFormat::Word) { words(&name) } else { name }
    }
}

/// All lists with a page of their own.
pub const ALL: &[&Listing] = &[
    &CUSTOMERS,
    &CONTRACTS,
    &DOCUMENTS,
    &EVENTS,
    &PAYMENTS,
    &CHARGES,
    &LIMITS,
    &CREDIT,
    &DRAWS,
    &PRICINGS,
    &USAGE_PRODUCTS,
    &ENTITIES,
    &BANK_ACCOUNTS,
    &FORMATS,
    &IMPORTS,
    &BILLING_RUNS,
    &REFUSED,
    &WEBHOOKS,
    &DELIVERIES,
    &AUDIT,
];

/// Customers.
pub const CUSTOMERS: Listing = Listing {
    part: "customers",
    title: "Customers",
    operation: &ListCustomers::SPEC,
    read: Some(&GetCustomer::SPEC),
    columns: &[
        column("Name", field!(CustomerProfile, name), CellFormat::Name)
            .leading("customers", field!(CustomerJson, customer_ref))
            .by("name"),
        column("State", ADDED_STATE, CellFormat::State),
        column("Amount due", ADDED_AMOUNTS_DUE, CellFormat::AmountsDue),
        column("E-mail", field!(CustomerProfile, email), CellFormat::Name),
        column("Reference", field!(CustomerJson, customer_ref), CellFormat::Text).extra(),
        column("Tax, %", field!(StatedTax, rate), CellFormat::Number).extra(),
        column("Entity", field!(CustomerProfile, entity_ref), CellFormat::Text)
            .leading("entities", field!(CustomerProfile, entity_ref))
            .extra(),
    ],
    order: Some("-created"),
    empty: "No customers yet.",
    is_made_here: true,
};

/// Contracts.
pub const CONTRACTS: Listing = Listing {
    part: "contracts",
    title: "Contracts",
    operation: &SearchContracts::SPEC,
    read: Some(&GetContract::SPEC),
    columns: &[
        column("Number", field!(ContractJson, contract_number), CellFormat::Text)
            .leading("contracts", field!(ContractJson, contract_ref))
            .by("created"),
        column("State", field!(ContractJson, state), CellFormat::State),
        column("Customer", field!(ContractJson, customer_name), CellFormat::Name)
            .leading("customers", field!(ContractJson, customer_ref)),
        column("Last day", field!(ContractJson, effective_end_date), CellFormat::Day).by("effective_end_date"),
        column("Purchase order", field!(ContractJson, po_number), CellFormat::Text),
        column("Version", field!(ContractJson, version), CellFormat::Number),
    ],
    order: Some("-created"),
    empty: "No contracts yet.",
    is_made_here: true,
};

/// Documents.
pub const DOCUMENTS: Listing = Listing {
    part: "documents",
    title: "Documents",
    operation: &ListDocuments::SPEC,
    read: Some(&GetDocument::SPEC),
    columns: &[
        column("Number", field!(DocumentJson, document_number), CellFormat::Text)
            .leading("documents", field!(DocumentJson, document_ref))
            .by("created"),
        column("Customer", field!(DocumentJson, customer.customer_name), CellFormat::Name)
            .leading("customers", field!(DocumentJson, customer.customer_ref)),
        column("Total", field!(DocumentJson, total), CellFormat::Money(field!(DocumentJson, currency))).by("amount"),
        column("Amount due", field!(DocumentJson, amount_due), CellFormat::Due(field!(DocumentJson, currency))),
        column("State", field!(DocumentJson, state), CellFormat::State),
        column("Issued", field!(DocumentJson, issue_date), CellFormat::Day).by("issue_date"),
        column("Due", field!(DocumentJson, due_date), CellFormat::Day).by("due_date"),
        column("Kind", field!(DocumentJson, kind), CellFormat::Word).extra(),
        column("Contract", field!(DocumentJson, contract_number), CellFormat::Text)
            .leading("contracts", field!(DocumentJson, contract_ref))
            .extra(),
        column("From", field!(DocumentJson, period_start), CellFormat::Day).extra(),
        column("To", field!(DocumentJson, period_end), CellFormat::Day).extra(),
    ],
    order: Some("-created"),
    empty: "No documents yet. The first usage event of a contract creates its invoice.",
    is_made_here: false,
};

/// Document columns on the page of a customer or contract.
pub(crate) const DOCUMENTS_OF: &[&str] =
    &["document_number", "total", "amount_due", "state", "issue_date", "due_date", "kind", "period_start", "period_end"];

/// Contract columns on the page of a customer.
pub(crate) const CONTRACTS_OF: &[&str] = &[
    field!(ContractJson, contract_number),
    field!(ContractJson, state),
    field!(ContractJson, effective_end_date),
    field!(ContractJson, po_number),
];

/// Payment columns on the page of a customer.
pub(crate) const PAYMENTS_OF: &[&str] =
    &["paid_date", "amount", "document_number", "kind", "reference", "unapplied_amount", "reversed_at"];

/// Columns of the latest documents.
pub(crate) const LATEST_DOCUMENTS: &[&str] =
    &["document_number", "customer.customer_name", "total", "amount_due", "state", "due_date", "contract_number", "period_start"];

/// Columns of rejected usage on other pages.
pub(crate) const WHY: &[&str] = &[
    field!(RefusedUsageJson, day),
    field!(RefusedUsageJson, count),
    field!(RefusedUsageJson, detail),
    field!(RefusedUsageJson, customer_ref),
    field!(RefusedUsageJson, usage_product_ref),
];

/// Usage events.
pub const EVENTS: Listing = Listing {
    part: "events",
    title: "Usage events",
    operation: &ListEvents::SPEC,
    read: Some(&GetEvent::SPEC),
    columns: &[
        column("Time", field!(EventJson, timestamp), CellFormat::Instant)
            .leading("events", field!(EventJson, event_ref))
            .by("timestamp"),
        column("Customer", field!(EventJson, customer_name), CellFormat::Name)
            .leading("customers", field!(EventJson, customer_ref)),
        column("Usage product", field!(EventJson, usage_product_name), CellFormat::Name)
            .leading("usage-products", field!(EventJson, usage_product_ref)),
        column("Quantity", field!(EventJson, quantity), CellFormat::Number),
        column("Document", field!(EventJson, related_document_numbers), CellFormat::Text)
            .leading("documents", field!(EventJson, related_document_ref)),
        column("Document state", field!(EventJson, document_state), CellFormat::State),
        column("Revision", field!(EventJson, revision), CellFormat::Number),
    ],
    order: Some("-created"),
    empty: "No usage events yet. Report usage with POST /api/usage/event.",
    is_made_here: false,
};

/// Payments.
pub const PAYMENTS: Listing = Listing {
    part: "payments",
    title: "Payments",
    operation: &ListPayments::SPEC,
    read: None,
    columns: &[
        column("Payment date", field!(PaymentJson, paid_date), CellFormat::Day).by("paid_date"),
        column("Amount", field!(PaymentJson, amount), CellFormat::Money(field!(PaymentJson, currency))),
        column("Customer", field!(PaymentJson, customer_name), CellFormat::Name)
            .leading("customers", field!(PaymentJson, customer_ref)),
        column("Document", field!(PaymentJson, document_number), CellFormat::Text)
            .leading("documents", field!(PaymentJson, document_ref)),
        column("Kind", field!(PaymentJson, kind), CellFormat::Word),
        column("Reference", field!(PaymentJson, reference), CellFormat::Name),
        column("Unapplied amount", field!(PaymentJson, unapplied_amount), CellFormat::Money(field!(PaymentJson, currency))),
        column("Reversed", field!(PaymentJson, reversed_at), CellFormat::Instant),
        column("Method", field!(PaymentJson, method), CellFormat::Text).extra(),
        column("Payment ID", field!(PaymentJson, payment_ref), CellFormat::Id).extra(),
    ],
    order: Some("-created"),
    empty: "No payments yet. Record a payment on the page of its document, or a deposit on the page of the customer.",
    is_made_here: false,
};

/// Charges.
pub const CHARGES: Listing = Listing {
    part: "charges",
    title: "Charges",
    operation: &ListCharges::SPEC,
    read: Some(&GetCharge::SPEC),
    columns: &[
        column("Date", field!(ChargeJson, date), CellFormat::Day),
        column("Name", field!(ChargeJson, name), CellFormat::Name).leading("charges", field!(ChargeJson, charge_ref)),
        column("Recorded", field!(ChargeJson, created_at), CellFormat::Instant).by("created"),
        column("Customer", field!(ChargeJson, customer_name), CellFormat::Name)
            .leading("customers", field!(ChargeJson, customer_ref)),
        column("Contract", field!(ChargeJson, contract_number), CellFormat::Text)
            .leading("contracts", field!(ChargeJson, contract_ref)),
        column("Pricing", field!(ChargeJson, product_pricing_ref), CellFormat::Text)
            .leading("pricings", field!(ChargeJson, product_pricing_ref))
            .extra(),
        column("Product number", field!(ChargeJson, product_no), CellFormat::Number).extra(),
        column("Quantity", field!(ChargeJson, quantity), CellFormat::Number),
        column("Amount", field!(ChargeJson, amount), CellFormat::Money(field!(ChargeJson, currency))),
        column("Document", field!(ChargeJson, related_document_numbers), CellFormat::Text)
            .leading("documents", field!(ChargeJson, related_document_ref)),
    ],
    order: Some("-created"),
    empty: "No charges yet. Add a charge on the page of its contract.",
    is_made_here: false,
};

/// Limits with their numbers. A limit has no name; its metric leads to its page.
pub const LIMITS: Listing = Listing {
    part: "limits",
    title: "Limits",
    operation: &ListLimits::SPEC,
    read: Some(&GetLimit::SPEC),
    columns: &[
        column("Customer", field!(LimitJson, customer_ref), CellFormat::Text)
            .leading("customers", field!(LimitJson, customer_ref)),
        column("Metric", field!(LimitJson, metric), CellFormat::Word).leading("limits", field!(LimitJson, limit_ref)),
        column("Value", field!(LimitJson, value), CellFormat::Money(field!(LimitJson, currency))),
        column("Held", field!(LimitJson, held), CellFormat::Money(field!(LimitJson, currency))),
        column("Max", field!(LimitJson, max), CellFormat::Money(field!(LimitJson, currency))),
        column("Left", field!(LimitJson, left), CellFormat::Money(field!(LimitJson, currency))),
        column("First day", field!(LimitJson, window_start), CellFormat::Day),
        column("Last day", field!(LimitJson, window_end), CellFormat::Day),
        column("Contract", field!(LimitJson, contract_ref), CellFormat::Text)
            .leading("contracts", field!(LimitJson, contract_ref)),
        column("Usage product", field!(LimitJson, usage_product_ref), CellFormat::Text)
            .leading("usage-products", field!(LimitJson, usage_product_ref))
            .extra(),
        column("Entity", field!(LimitJson, entity_ref), CellFormat::Text)
            .leading("entities", field!(LimitJson, entity_ref))
            .extra(),
        column("Created", field!(LimitJson, created_at), CellFormat::Instant),
    ],
    order: None,
    empty: "No limits yet. Create a limit on the page of its customer.",
    is_made_here: false,
};

/// Pricings.
pub const PRICINGS: Listing = Listing {
    part: "pricings",
    title: "Pricings",
    operation: &ListPricings::SPEC,
    read: Some(&GetPricing::SPEC),
    columns: &[
        column("Name", field!(PricingJson, name), CellFormat::Name).leading("pricings", field!(PricingJson, product_pricing_ref)),
        column("Reference", field!(PricingJson, product_pricing_ref), CellFormat::Text),
        column("Currency", field!(PricingJson, currency), CellFormat::Text),
        column("Minimum fee", field!(PricingJson, minimum_fee), CellFormat::Money(field!(PricingJson, currency))),
    ],
    order: None,
    empty: "No pricings yet. A pricing defines what is billed and at what price.",
    is_made_here: true,
};

/// Usage products.
pub const USAGE_PRODUCTS: Listing = Listing {
    part: "usage-products",
    title: "Usage products",
    operation: &ListUsageProducts::SPEC,
    read: Some(&GetUsageProduct::SPEC),
    columns: &[
        column("Name", field!(UsageProductProfile, name), CellFormat::Name)
            .leading("usage-products", field!(UsageProductJson, usage_product_ref)),
        column("Reference", field!(UsageProductJson, usage_product_ref), CellFormat::Text),
        column("Unit", field!(UsageProductProfile, unit), CellFormat::Text),
        column("Aggregation", field!(UsageProductProfile, aggregation), CellFormat::Word),
    ],
    order: None,
    empty: "No usage products yet.",
    is_made_here: true,
};

/// Supplier entities.
pub const ENTITIES: Listing = Listing {
    part: "entities",
    title: "Entities",
    operation: &ListEntities::SPEC,
    read: Some(&GetEntity::SPEC),
    columns: &[
        column("Name", field!(EntityProfile, name), CellFormat::Name).leading("entities", field!(EntityJson, entity_ref)),
        column("Reference", field!(EntityJson, entity_ref), CellFormat::Text),
        column("Number prefix", field!(EntityProfile, number_prefix), CellFormat::Text),
        column("Time zone", field!(EntityProfile, time_zone), CellFormat::Text),
    ],
    order: None,
    empty: "No entities yet.",
    is_made_here: true,
};

/// Bank accounts.
pub const BANK_ACCOUNTS: Listing = Listing {
    part: "bank-accounts",
    title: "Bank accounts",
    operation: &ListBankAccounts::SPEC,
    read: Some(&GetBankAccount::SPEC),
    columns: &[
        column("Name", field!(BankAccountProfile, account_name), CellFormat::Name)
            .leading("bank-accounts", field!(BankAccountJson, account_ref)),
        column("Reference", field!(BankAccountJson, account_ref), CellFormat::Text),
        column("IBAN", field!(BankAccountProfile, iban), CellFormat::Text),
        column("Bank", field!(BankAccountProfile, bank_name), CellFormat::Text),
    ],
    order: None,
    empty: "No bank accounts yet.",
    is_made_here: true,
};

/// Usage formats.
pub const FORMATS: Listing = Listing {
    part: "formats",
    title: "Usage formats",
    operation: &ListUsageFormats::SPEC,
    read: Some(&GetUsageFormat::SPEC),
    columns: &[
        column("Name", field!(FormatJson, format_name), CellFormat::Name).leading("formats", field!(FormatJson, format_ref)),
        column("Reference", field!(FormatJson, format_ref), CellFormat::Text),
        column("Version", field!(FormatJson, version), CellFormat::Number),
    ],
    order: None,
    empty: "No usage formats yet. A usage format converts data of any structure to usage events.",
    is_made_here: true,
};

/// Imports of files.
pub const IMPORTS: Listing = Listing {
    part: "imports",
    title: "Imports",
    operation: &ListImports::SPEC,
    read: Some(&GetImport::SPEC),
    columns: &[
        column("Started", field!(ImportJson, begun_at), CellFormat::Instant).leading("imports", field!(ImportJson, import_ref)),
        column("File", field!(ImportJson, name), CellFormat::Name),
        column("State", field!(ImportJson, state), CellFormat::State),
        column("Recorded", field!(ImportJson, recorded), CellFormat::Number),
        column("Updated", field!(ImportJson, updated), CellFormat::Number),
        column("Duplicates", field!(ImportJson, already_there), CellFormat::Number),
        column("Rejected", field!(ImportJson, refused), CellFormat::Number),
        column("Actor", field!(ImportJson, actor), CellFormat::Actor),
    ],
    order: None,
    empty: "No imports yet. Import a file here, or send it with POST /api/usage/import.",
    is_made_here: true,
};

/// Billing runs.
pub const BILLING_RUNS: Listing = Listing {
    part: "billing-runs",
    title: "Billing runs",
    operation: &ListBillingRuns::SPEC,
    read: Some(&GetBillingRun::SPEC),
    columns: &[
        column("Started", field!(BillingRunJson, begun_at), CellFormat::Instant)
            .leading("billing-runs", field!(BillingRunJson, run_ref)),
        column("State", field!(BillingRunJson, state), CellFormat::State),
        column("Contracts due", field!(BillingRunJson, contracts), CellFormat::Number),
        column("Issued", field!(BillingRunJson, issued), CellFormat::Number),
        column("Voided", field!(BillingRunJson, voided), CellFormat::Number),
        column("Failed", field!(BillingRunJson, failed), CellFormat::Number),
        column("Actor", field!(BillingRunJson, actor), CellFormat::Actor),
    ],
    order: None,
    empty: "No billing runs yet. The server issues due documents automatically. You can also run billing here.",
    is_made_here: true,
};

/// Counts of rejected usage.
pub const REFUSED: Listing = Listing {
    part: "refused",
    title: "Rejected usage",
    operation: &ListRefusedUsage::SPEC,
    read: None,
    columns: &[
        column("Date", field!(RefusedUsageJson, day), CellFormat::Day),
        column("Events", field!(RefusedUsageJson, count), CellFormat::Number),
        column("Reason", field!(RefusedUsageJson, detail), CellFormat::Rejection),
        column("Customer", field!(RefusedUsageJson, customer_ref), CellFormat::Labelled(field!(RefusedUsageJson, customer_name)))
            .leading("customers", field!(RefusedUsageJson, customer_ref)),
        column(
            "Usage product",
            field!(RefusedUsageJson, usage_product_ref),
            CellFormat::Labelled(field!(RefusedUsageJson, usage_product_name)),
        )
        .leading("usage-products", field!(RefusedUsageJson, usage_product_ref)),
        column("Last event", field!(RefusedUsageJson, last_at), CellFormat::Instant),
        column("Last example", field!(RefusedUsageJson, example), CellFormat::Told),
        column("Field", field!(RefusedUsageJson, pointer), CellFormat::Text).extra(),
        column("Error code", field!(RefusedUsageJson, code), CellFormat::Text).extra(),
    ],
    order: None,
    empty: "No usage was rejected in the last 90 days.",
    is_made_here: false,
};

/// Webhook endpoints.
pub const WEBHOOKS: Listing = Listing {
    part: "webhooks",
    title: "Webhooks",
    operation: &ListWebhookEndpoints::SPEC,
    read: Some(&GetWebhookEndpoint::SPEC),
    columns: &[
        column("URL", field!(WebhookEndpointJson, url), CellFormat::Text)
            .leading("webhooks", field!(WebhookEndpointJson, endpoint_ref)),
        column("State", field!(WebhookEndpointJson, state), CellFormat::State),
        column("Pending", field!(WebhookEndpointJson, pending), CellFormat::Number),
        column("Failed", field!(WebhookEndpointJson, failed), CellFormat::Number),
        column("Last delivered", field!(WebhookEndpointJson, last_delivered_at), CellFormat::Instant),
        column("Description", field!(WebhookEndpointJson, description), CellFormat::Text),
    ],
    order: None,
    empty: "No webhook endpoints yet. An endpoint receives notifications about documents and contracts.",
    is_made_here: true,
};

/// Deliveries of notifications to webhook endpoints.
pub const DELIVERIES: Listing = Listing {
    part: "deliveries",
    title: "Deliveries",
    operation: &ListWebhookDeliveries::SPEC,
    read: None,
    columns: &[
        column("Type", field!(WebhookDeliveryJson, kind), CellFormat::Event)
            .leading("deliveries", field!(WebhookDeliveryJson, notification_ref)),
        column("State", field!(WebhookDeliveryJson, state), CellFormat::State),
        column("Subject", field!(WebhookDeliveryJson, subject), CellFormat::Subject),
        column("Attempts", field!(WebhookDeliveryJson, attempt), CellFormat::Number),
        column("Next attempt", field!(WebhookDeliveryJson, due_at), CellFormat::Instant),
        column("Created", field!(WebhookDeliveryJson, created_at), CellFormat::Instant),
        column("Endpoint", field!(WebhookDeliveryJson, endpoint_url), CellFormat::Name)
            .leading("webhooks", field!(WebhookDeliveryJson, endpoint_ref)),
        column("Notification ID", field!(WebhookDeliveryJson, notification_ref), CellFormat::Id).extra(),
    ],
    order: None,
    empty: "No deliveries yet.",
    is_made_here: false,
};

/// Delivery columns on the page of an endpoint.
pub(crate) const DELIVERIES_OF: &[&str] = &[
    field!(WebhookDeliveryJson, kind),
    field!(WebhookDeliveryJson, state),
    field!(WebhookDeliveryJson, subject),
    field!(WebhookDeliveryJson, attempt),
    field!(WebhookDeliveryJson, due_at),
    field!(WebhookDeliveryJson, created_at),
];

/// The audit log.
pub const AUDIT: Listing = Listing {
    part: "audit",
    title: "Audit log",
    operation: &ListAuditEntries::SPEC,
    read: None,
    columns: &[
        column("Time", field!(AuditEntryJson, at), CellFormat::Instant),
        column("Change", field!(AuditEntryJson, action), CellFormat::Sentence),
        column("Customer", field!(AuditEntryJson, customer_name), CellFormat::Name)
            .leading("customers", field!(AuditEntryJson, customer_ref)),
        column("Details", field!(AuditEntryJson, after), CellFormat::Changes),
        column("Actor", field!(AuditEntryJson, actor), CellFormat::Actor).extra(),
        column("Object type", field!(AuditEntryJson, object_kind), CellFormat::Word).extra(),
        column("Reference", field!(AuditEntryJson, object_ref), CellFormat::Id).extra(),
        column("Before", field!(AuditEntryJson, before), CellFormat::Told).extra(),
        column("Request ID", field!(AuditEntryJson, request_id), CellFormat::Id).extra(),
    ],
    order: None,
    empty: "No audit events yet.",
    is_made_here: false,
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::list::{View, table};

    #[test]
    fn overdue_documents_begin_with_the_oldest_due_date() {
        let order = |listing: &Listing, filters: &[(&str, &str)]| {
            let filters: Vec<_> = filters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            View::of(listing, &filters).order
        };
        assert_eq!(order(&DOCUMENTS, &[("overdue", "true")]), "due_date");
        assert_eq!(order(&DOCUMENTS, &[("overdue", "true"), ("order", "amount")]), "amount");
        assert_eq!(order(&DOCUMENTS, &[("overdue", "false")]), "-created");
        assert_eq!(order(&CUSTOMERS, &[("overdue", "true")]), "-created");
    }

    #[test]
    fn a_limit_is_named_by_its_metric_and_a_quantity_has_no_currency() {
        let id = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";
        let limits = json!([
            {"limit_ref": "l1", "customer_ref": "acme", "metric": "OWED", "currency": "EUR", "value": 450.5, "held": 20, "max": 1200},
            {"limit_ref": "l2", "customer_ref": "acme", "metric": "QUANTITY", "currency": null, "value": 1234, "max": 2000,
                "contract_ref": id},
        ]);
        assert_eq!(LIMITS.name_of(JsonView::of(&limits[0])), "Amount owed");
        let page = table(LIMITS.title, LIMITS.columns, JsonView::of(&limits)).into_string();
        for part in [
            "<a href=\"/console/limits/l1\">Amount owed</a>",
            "<a href=\"/console/limits/l2\">Quantity</a>",
            ">450.50 <span class=\"currency\">EUR</span>",
            "title=\"1234\">1,234</data>",
            &format!("<a href=\"/console/contracts/{id}\">Open</a>"),
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn the_button_of_a_list_says_what_it_creates() {
        let buttons = [&CUSTOMERS, &ENTITIES, &USAGE_PRODUCTS, &BILLING_RUNS].map(Listing::making);
        assert_eq!(buttons, ["New customer", "New entity", "New usage product", "Run billing"]);
    }
}
