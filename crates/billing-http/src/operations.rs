//! Which operations there are, and what each takes: the one table that the router, the OpenAPI document and the tests
//! share. A new operation is a line here, a handler, and its description.

use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::{Route, web};
use billing_application::UseCase;
use billing_domain::access::{Need, Scope};

use crate::auth::admit;
use crate::problem::Problem;
use crate::routes::{
    auth, bank_accounts, batches, billing, charges, contracts, customers, documents, entities, exchange_rates, imports, money,
    pricings, reports, search, service, usage, usage_formats, usage_products,
};

/// The one version of the interface.
pub const VERSION: &str = "V0";
/// Operations below this path have versions.
pub const VERSIONED_BELOW: &str = "/api/";

/// The header that names a request, so that its repeats are known.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What a caller must show to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// Nothing; a credential that is shown is what the operation is about.
    Anything,
    /// The credential of somebody who may ask for this.
    Permission(UseCase),
}

/// Operations that are posted because what they ask doesn't fit a URL. They change nothing, as a GET does.
const QUESTIONS: [&str; 1] = ["test_usage_format"];

/// One method on one path.
pub struct Operation {
    /// Its name in the OpenAPI document.
    pub id: &'static str,
    /// The method.
    pub method: Method,
    /// The path, with parameters in braces. With or without a slash at its end makes no difference.
    pub path: &'static str,
    /// Who may.
    pub needs: Needs,
    handler: fn() -> Route,
}

impl Operation {
    /// Whether it takes the header `Version`.
    pub fn is_versioned(&self) -> bool {
        self.path.starts_with(VERSIONED_BELOW)
    }

    /// What a caller must have, where it takes a credential.
    pub fn need(&self) -> Option<Need> {
        match self.needs {
            Needs::Nothing | Needs::Anything => None,
            Needs::Permission(use_case) => Some(use_case.need()),
        }
    }

    /// Whether it changes something.
    pub fn changes_state(&self) -> bool {
        self.method != Method::GET && !QUESTIONS.contains(&self.id)
    }

    /// Whether it takes the header `Idempotency-Key`.
    pub fn takes_idempotency_key(&self) -> bool {
        self.method == Method::POST
    }

    /// Whether it is carried out once per `Idempotency-Key`, and repeats are given the first answer. Logging in and out
    /// and questions aren't: a repeat doubles nothing, and the answers aren't kept.
    pub fn is_carried_out_once(&self) -> bool {
        self.takes_idempotency_key() && self.need().is_some_and(|need| need != Need::Scope(Scope::Read))
    }
}

macro_rules! operations {
    ($($method:ident $path:literal $needs:ident $(($use_case:ident))? => $module:ident::$handler:ident;)+) => {
        /// Every operation. Where two paths match, the first counts: fixed names stand before parameters.
        pub static OPERATIONS: &[Operation] = &[$(Operation {
            id: stringify!($handler),
            method: Method::$method,
            path: $path,
            needs: Needs::$needs $((UseCase::$use_case))?,
            handler: || Route::new().to($module::$handler),
        },)+];
    };
}

operations! {
    POST "/auth/login" Nothing => auth::log_in;
    POST "/auth/logout" Anything => auth::log_out;
    POST "/auth/keys/generate" Permission(GenerateKey) => auth::generate_key;
    GET "/auth/keys/list" Permission(ListKeys) => auth::list_keys;
    DELETE "/auth/user/{api_key_ref}" Permission(DeleteKey) => auth::delete_key;

    POST "/api/usage/event" Permission(RecordUsage) => usage::record_event;
    POST "/api/usage/event/batch" Permission(RecordUsage) => batches::record_batch;
    POST "/api/usage/event/formatted" Permission(RecordUsage) => usage::record_formatted_event;
    POST "/api/usage/event/formatted/update" Permission(UpdateEvent) => usage::update_formatted_event;
    POST "/api/usage/event/update" Permission(UpdateEvent) => usage::update_event;
    GET "/api/usage/event/history/{event_ref}" Permission(GetEventHistory) => usage::get_event_history;
    GET "/api/usage/event/filter" Permission(ListEvents) => usage::list_events;
    GET "/api/usage/event/{event_ref}" Permission(GetEvent) => usage::get_event;
    DELETE "/api/usage/event/{event_ref}" Permission(DeleteEvent) => usage::delete_event;

    POST "/api/usage/import" Permission(RecordUsage) => imports::import_usage;

    GET "/api/usage/summary" Permission(SummarizeUsage) => reports::summarize_usage;
    GET "/api/usage/report" Permission(ReportUsage) => reports::report_usage;

    POST "/api/usage/products/" Permission(CreateUsageProduct) => usage_products::create_usage_product;
    POST "/api/usage/products/edit/{usage_product_ref}" Permission(EditUsageProduct) => usage_products::edit_usage_product;
    GET "/api/usage/products/filter" Permission(ListUsageProducts) => usage_products::list_usage_products;
    GET "/api/usage/products/{usage_product_ref}" Permission(GetUsageProduct) => usage_products::get_usage_product;

    POST "/api/usage/formats/" Permission(CreateFormat) => usage_formats::create_usage_format;
    POST "/api/usage/formats/edit/{format_ref}" Permission(EditFormat) => usage_formats::edit_usage_format;
    POST "/api/usage/formats/test" Permission(TestFormat) => usage_formats::test_usage_format;
    GET "/api/usage/formats/filter" Permission(ListFormats) => usage_formats::list_usage_formats;
    GET "/api/usage/formats/{format_ref}" Permission(GetFormat) => usage_formats::get_usage_format;

    POST "/api/contracts/" Permission(CreateContract) => contracts::create_contract;
    POST "/api/contracts/edit/{contract_ref}" Permission(EditContract) => contracts::edit_contract;
    POST "/api/contracts/cancel/{contract_ref}" Permission(CancelContract) => contracts::cancel_contract;
    POST "/api/contracts/resume/{contract_ref}" Permission(ResumeContract) => contracts::resume_contract;
    POST "/api/contracts/quantities/{contract_ref}" Permission(ChangeQuantity) => contracts::change_quantity;
    GET "/api/contracts/filter" Permission(ListContracts) => contracts::list_contracts;
    GET "/api/contracts/search" Permission(ListContracts) => contracts::search_contracts;
    GET "/api/contracts/invoices/current/{contract_ref}" Permission(PreviewInvoices) => contracts::current_invoices;
    GET "/api/contracts/invoices/next/{contract_ref}" Permission(PreviewInvoices) => contracts::next_invoices;
    GET "/api/contracts/{contract_ref}" Permission(GetContract) => contracts::get_contract;

    POST "/api/customers/" Permission(CreateCustomer) => customers::create_customer;
    POST "/api/customers/edit/{customer_ref}" Permission(EditCustomer) => customers::edit_customer;
    GET "/api/customers/balance/{customer_ref}" Permission(GetBalance) => money::get_balance;
    GET "/api/customers/statement/{customer_ref}" Permission(GetStatement) => money::get_statement;
    GET "/api/customers/filter" Permission(ListCustomers) => customers::list_customers;
    GET "/api/customers/names" Permission(ListCustomers) => customers::list_customer_names;
    GET "/api/customers/{customer_ref}" Permission(GetCustomer) => customers::get_customer;

    POST "/api/entities/" Permission(CreateEntity) => entities::create_entity;
    POST "/api/entities/edit/{entity_ref}" Permission(EditEntity) => entities::edit_entity;
    GET "/api/entities/filter" Permission(ListEntities) => entities::list_entities;
    GET "/api/entities/names" Permission(ListEntities) => entities::list_entity_names;
    GET "/api/entities/{entity_ref}" Permission(GetEntity) => entities::get_entity;

    POST "/api/pricings/" Permission(CreatePricing) => pricings::create_pricing;
    POST "/api/pricings/edit/{product_pricing_ref}" Permission(EditPricing) => pricings::edit_pricing;
    GET "/api/pricings/filter" Permission(ListPricings) => pricings::list_pricings;
    GET "/api/pricings/{product_pricing_ref}" Permission(GetPricing) => pricings::get_pricing;

    POST "/api/bank_accounts/" Permission(CreateBankAccount) => bank_accounts::create_bank_account;
    POST "/api/bank_accounts/edit/{billing_account_id}" Permission(EditBankAccount) => bank_accounts::edit_bank_account;
    GET "/api/bank_accounts/filter" Permission(ListBankAccounts) => bank_accounts::list_bank_accounts;
    GET "/api/bank_accounts/{billing_account_id}" Permission(GetBankAccount) => bank_accounts::get_bank_account;

    POST "/api/exchange_rates/" Permission(PutExchangeRate) => exchange_rates::put_exchange_rate;
    GET "/api/exchange_rates/filter" Permission(ListExchangeRates) => exchange_rates::list_exchange_rates;

    GET "/api/documents/filter" Permission(ListDocuments) => documents::list_documents;
    GET "/api/documents/{document_ref}" Permission(GetDocument) => documents::get_document;
    GET "/api/documents/{document_ref}/usage.csv" Permission(ReportUsage) => reports::report_document_usage;
    POST "/api/documents/issue/{document_ref}" Permission(IssueDocument) => documents::issue_document;
    POST "/api/documents/void/{document_ref}" Permission(VoidDocument) => documents::void_document;
    POST "/api/documents/payments/reverse/{payment_ref}" Permission(ReversePayment) => money::reverse_payment;
    GET "/api/documents/payments/filter" Permission(ListPayments) => money::list_payments;
    POST "/api/documents/payments/{document_ref}" Permission(RecordPayment) => money::record_payment;
    GET "/api/documents/payments/{document_ref}" Permission(ListPayments) => money::list_payments_of_document;
    POST "/api/documents/refund/{source_ref}" Permission(Refund) => money::refund;
    POST "/api/documents/apply/{source_ref}" Permission(Apply) => money::apply;
    POST "/api/documents/unapply/{application_ref}" Permission(Unapply) => money::unapply;
    POST "/api/documents/write-off/{document_ref}" Permission(WriteOff) => money::write_off;

    GET "/api/search" Permission(Search) => search::search;

    POST "/api/charges/" Permission(RecordCharge) => charges::record_charge;
    POST "/api/charges/edit/{charge_ref}" Permission(EditCharge) => charges::edit_charge;
    GET "/api/charges/filter" Permission(ListCharges) => charges::list_charges;
    GET "/api/charges/{charge_ref}" Permission(GetCharge) => charges::get_charge;
    DELETE "/api/charges/{charge_ref}" Permission(DeleteCharge) => charges::delete_charge;

    POST "/api/billing/run" Permission(RunBilling) => billing::run_billing;

    GET "/health/live" Nothing => service::live;
    GET "/health/ready" Nothing => service::ready;
    GET "/openapi.json" Nothing => service::openapi;
}

/// Builds the router.
pub(crate) fn register(config: &mut web::ServiceConfig) {
    let mut done: Vec<&str> = Vec::new();
    for Operation { path, .. } in OPERATIONS {
        if done.contains(path) {
            continue;
        }
        done.push(path);
        let trimmed = path.trim_end_matches('/');
        let of_path: Vec<&'static Operation> = OPERATIONS.iter().filter(|operation| operation.path == *path).collect();
        let methods: Vec<&str> = of_path.iter().map(|operation| operation.method.as_str()).collect();
        let allowed = methods.join(", ");
        let mut resource = web::resource([trimmed.to_owned(), format!("{trimmed}/")]);
        for operation in of_path {
            let guarded = from_fn(move |request, next| admit(operation, request, next));
            resource = resource.route((operation.handler)().method(operation.method.clone()).wrap(guarded));
        }
        let wrong_method = move || std::future::ready(Err::<String, _>(Problem::method_not_allowed(&allowed)));
        config.service(resource.default_service(web::to(wrong_method)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn operations_differ_in_name_and_in_method_and_path() {
        let ids: HashSet<_> = OPERATIONS.iter().map(|operation| operation.id).collect();
        let places: HashSet<_> =
            OPERATIONS.iter().map(|operation| (&operation.method, operation.path.trim_end_matches('/'))).collect();
        assert_eq!((ids.len(), places.len()), (OPERATIONS.len(), OPERATIONS.len()));
    }

    #[test]
    fn questions_are_posted_operations_that_take_the_scope_to_read() {
        for id in QUESTIONS {
            let question = OPERATIONS.iter().find(|operation| operation.id == id).expect(id);
            assert_eq!((&question.method, question.need()), (&Method::POST, Some(Need::Scope(Scope::Read))), "{id}");
        }
    }

    #[test]
    fn a_fixed_name_stands_before_the_parameter_that_would_take_it() {
        for (i, operation) in OPERATIONS.iter().enumerate() {
            let (parent, last) = operation.path.trim_end_matches('/').rsplit_once('/').expect("a path");
            let shadowed = OPERATIONS[..i].iter().any(|earlier| {
                let (earlier_parent, earlier_last) = earlier.path.trim_end_matches('/').rsplit_once('/').expect("a path");
                earlier_parent == parent && earlier_last.starts_with('{') && !last.starts_with('{')
            });
            assert!(!shadowed, "{}", operation.path);
        }
    }

    #[test]
    fn everything_below_api_takes_a_credential_and_reads_take_the_scope_to_read() {
        for operation in OPERATIONS.iter().filter(|operation| operation.is_versioned()) {
            match operation.need() {
                Some(Need::Scope(scope)) => assert_eq!(scope == Scope::Read, !operation.changes_state(), "{}", operation.id),
                Some(Need::Administrator) | None => panic!("{} is open", operation.id),
            }
        }
    }
}
