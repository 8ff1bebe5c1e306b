//! The API lists that the console shows.

use crate::list::{CellFormat, Column, Listing};
use billing_api::operations::{
    GetBankAccount, GetBillingRun, GetCharge, GetContract, GetCustomer, GetDocument, GetEntity, GetEvent, GetImport, GetPricing,
    GetUsageFormat, GetUsageProduct, GetWebhookEndpoint, ListAuditEntries, ListBankAccounts, ListBillingRuns, ListCharges,
    ListCustomers, ListDocuments, ListEntities, ListEvents, ListImports, ListPayments, ListPricings, ListRefusedUsage,
    ListUsageFormats, ListUsageProducts, ListWebhookDeliveries, ListWebhookEndpoints, SearchContracts,
};

pub(crate) const fn column(label: &'static str, field: &'static str, shown: CellFormat) -> Column {
    Column { label, field, shown, leads: None, order: None, is_extra: false }
}

/// All lists with a page of their own.
pub const ALL: &[&Listing] = &[
    &CUSTOMERS,
    &CONTRACTS,
    &DOCUMENTS,
    &EVENTS,
    &PAYMENTS,
    &CHARGES,
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
        column("Name", "name", CellFormat::Name).leading("customers", "customer_ref").by("name"),
        column("State", "state", CellFormat::State),
        column("Balance", "balances", CellFormat::Balances),
        column("E-mail", "email", CellFormat::Name),
        column("Reference", "customer_ref", CellFormat::Text).extra(),
        column("Tax, %", "tax", CellFormat::Number).extra(),
        column("Entity", "entity_ref", CellFormat::Text).leading("entities", "entity_ref").extra(),
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
        column("Number", "contract_number", CellFormat::Text).leading("contracts", "contract_ref").by("created"),
        column("State", "state", CellFormat::State),
        column("Customer", "customer_name", CellFormat::Name).leading("customers", "customer_ref"),
        column("Last day", "effective_end_date", CellFormat::Day).by("effective_end_date"),
        column("Purchase order", "po_number", CellFormat::Text),
        column("Version", "version", CellFormat::Number),
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
        column("Number", "document_number", CellFormat::Text).leading("documents", "document_ref").by("created"),
        column("Customer", "customer.customer_name", CellFormat::Name).leading("customers", "customer.customer_ref"),
        column("Total", "total", CellFormat::Money("currency")).by("amount"),
        column("Amount due", "amount_due", CellFormat::Due("currency")),
        column("State", "state", CellFormat::State),
        column("Issued", "issue_date", CellFormat::Day).by("issue_date"),
        column("Due", "due_date", CellFormat::Day).by("due_date"),
        column("Kind", "kind", CellFormat::Word).extra(),
        column("Contract", "contract_number", CellFormat::Text).leading("contracts", "contract_ref").extra(),
        column("From", "period_start", CellFormat::Day).extra(),
        column("To", "period_end", CellFormat::Day).extra(),
    ],
    order: Some("-created"),
    empty: "No documents yet. The first usage event of a contract creates its invoice.",
    is_made_here: false,
};

/// Document columns on the page of a customer or contract.
pub(crate) const DOCUMENTS_OF: &[&str] =
    &["document_number", "total", "amount_due", "state", "issue_date", "due_date", "kind", "period_start", "period_end"];

/// Contract columns on the page of a customer.
pub(crate) const CONTRACTS_OF: &[&str] = &["contract_number", "state", "effective_end_date", "po_number"];

/// Payment columns on the page of a customer.
pub(crate) const PAYMENTS_OF: &[&str] =
    &["paid_date", "amount", "document_number", "kind", "reference", "unapplied_amount", "reversed_at"];

/// Columns of the latest documents.
pub(crate) const LATEST_DOCUMENTS: &[&str] =
    &["document_number", "customer.customer_name", "total", "amount_due", "state", "due_date", "contract_number", "period_start"];

/// Columns of rejected usage on other pages.
pub(crate) const WHY: &[&str] = &["day", "count", "detail", "customer_ref", "usage_product_ref"];

/// Usage events.
pub const EVENTS: Listing = Listing {
    part: "events",
    title: "Usage events",
    operation: &ListEvents::SPEC,
    read: Some(&GetEvent::SPEC),
    columns: &[
        column("Time", "timestamp", CellFormat::Instant).leading("events", "event_ref").by("timestamp"),
        column("Customer", "customer_name", CellFormat::Name).leading("customers", "customer_ref"),
        column("Usage product", "usage_product_name", CellFormat::Name).leading("usage-products", "usage_product_ref"),
        column("Quantity", "quantity", CellFormat::Number),
        column("Document", "related_document_numbers", CellFormat::Text).leading("documents", "related_document_ref"),
        column("Document state", "document_state", CellFormat::State),
        column("Revision", "revision", CellFormat::Number),
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
        column("Payment date", "paid_date", CellFormat::Day).by("paid_date"),
        column("Amount", "amount", CellFormat::Money("currency")),
        column("Customer", "customer_name", CellFormat::Name).leading("customers", "customer_ref"),
        column("Document", "document_number", CellFormat::Text).leading("documents", "document_ref"),
        column("Kind", "kind", CellFormat::Word),
        column("Reference", "reference", CellFormat::Name),
        column("Unapplied amount", "unapplied_amount", CellFormat::Money("currency")),
        column("Reversed", "reversed_at", CellFormat::Instant),
        column("Method", "method", CellFormat::Text).extra(),
        column("Payment ID", "payment_ref", CellFormat::Id).extra(),
    ],
    order: Some("-created"),
    empty: "No payments yet. Record a payment on the page of its document.",
    is_made_here: false,
};

/// Charges.
pub const CHARGES: Listing = Listing {
    part: "charges",
    title: "Charges",
    operation: &ListCharges::SPEC,
    read: Some(&GetCharge::SPEC),
    columns: &[
        column("Date", "date", CellFormat::Day),
        column("Name", "name", CellFormat::Name).leading("charges", "charge_ref"),
        column("Recorded", "created_at", CellFormat::Instant).by("created"),
        column("Customer", "customer_name", CellFormat::Name).leading("customers", "customer_ref"),
        column("Contract", "contract_number", CellFormat::Text).leading("contracts", "contract_ref"),
        column("Quantity", "quantity", CellFormat::Number),
        column("Amount", "amount", CellFormat::Money("currency")),
        column("Document", "related_document_numbers", CellFormat::Text).leading("documents", "related_document_ref"),
    ],
    order: Some("-created"),
    empty: "No charges yet. Add a charge on the page of its contract.",
    is_made_here: false,
};

/// Pricings.
pub const PRICINGS: Listing = Listing {
    part: "pricings",
    title: "Pricings",
    operation: &ListPricings::SPEC,
    read: Some(&GetPricing::SPEC),
    columns: &[
        column("Name", "name", CellFormat::Name).leading("pricings", "product_pricing_ref"),
        column("Reference", "product_pricing_ref", CellFormat::Text),
        column("Currency", "currency", CellFormat::Text),
        column("Minimum fee", "minimum_fee", CellFormat::Money("currency")),
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
        column("Name", "name", CellFormat::Name).leading("usage-products", "usage_product_ref"),
        column("Reference", "usage_product_ref", CellFormat::Text),
        column("Unit", "unit", CellFormat::Text),
        column("Aggregation", "aggregation", CellFormat::Word),
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
        column("Name", "name", CellFormat::Name).leading("entities", "entity_ref"),
        column("Reference", "entity_ref", CellFormat::Text),
        column("Number prefix", "number_prefix", CellFormat::Text),
        column("Time zone", "timezone", CellFormat::Text),
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
        column("Name", "account_name", CellFormat::Name).leading("bank-accounts", "billing_account_id"),
        column("Reference", "billing_account_id", CellFormat::Text),
        column("IBAN", "iban", CellFormat::Text),
        column("Bank", "bank_name", CellFormat::Text),
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
        column("Name", "format_name", CellFormat::Name).leading("formats", "format_ref"),
        column("Reference", "format_ref", CellFormat::Text),
        column("Version", "version", CellFormat::Number),
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
        column("Started", "begun_at", CellFormat::Instant).leading("imports", "import_ref"),
        column("File", "name", CellFormat::Name),
        column("State", "state", CellFormat::State),
        column("Recorded", "recorded", CellFormat::Number),
        column("Duplicates", "already_there", CellFormat::Number),
        column("Rejected", "refused", CellFormat::Number),
        column("Actor", "actor", CellFormat::Actor),
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
        column("Started", "begun_at", CellFormat::Instant).leading("billing-runs", "run_ref"),
        column("State", "state", CellFormat::State),
        column("Contracts due", "contracts", CellFormat::Number),
        column("Issued", "issued", CellFormat::Number),
        column("Voided", "voided", CellFormat::Number),
        column("Failed", "failed", CellFormat::Number),
        column("Actor", "actor", CellFormat::Actor),
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
        column("Date", "day", CellFormat::Day),
        column("Events", "count", CellFormat::Number),
        column("Reason", "detail", CellFormat::Prose),
        column("Customer", "customer_ref", CellFormat::Labelled("customer_name")).leading("customers", "customer_ref"),
        column("Usage product", "usage_product_ref", CellFormat::Labelled("usage_product_name"))
            .leading("usage-products", "usage_product_ref"),
        column("Last event", "last_at", CellFormat::Instant),
        column("Last example", "example", CellFormat::Told),
        column("Field", "pointer", CellFormat::Text).extra(),
        column("Error code", "code", CellFormat::Text).extra(),
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
        column("URL", "url", CellFormat::Text).leading("webhooks", "endpoint_ref"),
        column("State", "state", CellFormat::State),
        column("Pending", "pending", CellFormat::Number),
        column("Failed", "failed", CellFormat::Number),
        column("Last delivered", "last_delivered_at", CellFormat::Instant),
        column("Description", "description", CellFormat::Text),
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
        column("Type", "type", CellFormat::Event).leading("deliveries", "notification_ref"),
        column("State", "state", CellFormat::State),
        column("Subject", "subject", CellFormat::Subject),
        column("Attempts", "attempt", CellFormat::Number),
        column("Next attempt", "due_at", CellFormat::Instant),
        column("Created", "created_at", CellFormat::Instant),
        column("Endpoint", "endpoint_url", CellFormat::Name).leading("webhooks", "endpoint_ref"),
        column("Notification ID", "notification_ref", CellFormat::Id).extra(),
    ],
    order: None,
    empty: "No deliveries yet.",
    is_made_here: false,
};

/// Delivery columns on the page of an endpoint.
pub(crate) const DELIVERIES_OF: &[&str] = &["type", "state", "subject", "attempt", "due_at", "created_at"];

/// The audit log.
pub const AUDIT: Listing = Listing {
    part: "audit",
    title: "Audit log",
    operation: &ListAuditEntries::SPEC,
    read: None,
    columns: &[
        column("Time", "at", CellFormat::Instant),
        column("Change", "action", CellFormat::Sentence),
        column("Customer", "customer_name", CellFormat::Name).leading("customers", "customer_ref"),
        column("Details", "after", CellFormat::Changes),
        column("Actor", "actor", CellFormat::Actor).extra(),
        column("Object type", "object_kind", CellFormat::Word).extra(),
        column("Reference", "object_ref", CellFormat::Id).extra(),
        column("Before", "before", CellFormat::Told).extra(),
        column("Request ID", "request_id", CellFormat::Id).extra(),
    ],
    order: None,
    empty: "No audit events yet.",
    is_made_here: false,
};
