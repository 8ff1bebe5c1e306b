//! Which answers each page is made of.

use actix_web::web::Path;
use billing_application::UseCase;
use billing_console::{
    At, ContractAnswers, Crumb, CustomerAnswers, DocumentAnswers, Frame, HomeAnswers, Listing, Notice, Part, href, listings,
};
use billing_domain::calendar::TimeZone;
use serde_json::Value;

use super::answers::{Listed, list, one, or_nothing};
use super::described;
use super::formats;
use super::forms::{self, Tried};
use super::imports as imports_of;
use super::made::Made;
use super::runs;
use super::said::{Said, field, query};
use super::things;
use super::visitor::{Visitor, service};
use crate::problem::Problem;
use crate::query::Query;
use crate::routes::{audit, auth, billing, catalog, charges, contracts, documents, imports, money, search, usage};

/// Elements of a list's page, where nobody says how many.
const PAGE_SIZE: &str = "50";
/// Elements of a list on the page of something else.
const FEW: &str = "10";

/// A page.
///
/// # Errors
/// What keeps it from being shown.
pub(super) async fn page(visitor: &Visitor, place: &[&str], notice: Option<Notice>) -> Result<String, Problem> {
    let asked = query(&visitor.request);
    let made = match place {
        [] => home(visitor).await?,
        ["search"] => search_page(visitor, &asked).await?,
        ["keys"] => keys(visitor).await?,
        ["new", "formats"] => formats::page(visitor, None).await?,
        ["edit", "formats", reference] => formats::page(visitor, Some(reference)).await?,
        ["new", "imports"] => imports_of::form(visitor).await?,
        ["imports", reference] => imports_of::page(visitor, reference).await?,
        ["imports", reference, "undo"] => imports_of::undo_page(visitor, reference).await?,
        ["new", "billing-runs"] => runs::preview(visitor).await?,
        ["billing-runs", reference] => runs::page(visitor, reference).await?,
        ["new", part] => return form_page(visitor, part, None, Tried::default()).await,
        ["edit", part, reference] => return form_page(visitor, part, Some(reference), Tried::default()).await,
        [part] => list_page(visitor, listing_of(part)?, &asked).await?,
        ["customers", reference] => customer(visitor, reference).await?,
        ["contracts", reference] => contract(visitor, reference).await?,
        ["documents", reference] => document(visitor, reference).await?,
        ["events", reference] => event(visitor, reference).await?,
        [part, reference] => thing(visitor, part, reference).await?,
        _ => return Err(Problem::unknown_route()),
    };
    Ok(made.page(visitor, notice.or_else(|| done(&asked))))
}

/// The page of a form.
///
/// # Errors
/// What keeps it from being shown.
pub(super) async fn form_page(visitor: &Visitor, part: &str, edited: Option<&str>, tried: Tried<'_>) -> Result<String, Problem> {
    let (title, form) = forms::page(visitor, part, edited, tried).await?;
    let listing = listing_of(part)?;
    let mut crumbs = crumbs(listing);
    crumbs.extend(edited.map(|reference| Crumb { name: reference.to_owned(), href: href(&[part, reference]) }));
    let frame = Frame { part: listing.part, crumbs, ..Frame::bare(title, service(&visitor.request)) };
    Ok(billing_console::page(&frame, &billing_console::form(&form)))
}

/// What was done before this page was asked for.
fn done(asked: &Said) -> Option<Notice> {
    let what = match field(asked, "done")? {
        "issue" => "It was issued.",
        "void" => "It was put out of force.",
        "payment" => "The payment was recorded.",
        "reverse-payment" => "The payment was reversed.",
        "delete-key" => "The key was deleted.",
        "run" => "Billing was run.",
        "import" => "The file was imported.",
        "undo" => "The import was undone, as far as the page says.",
        "make" => "It was made.",
        "edit" => "It was changed.",
        _ => return None,
    };
    Some(Notice::Done(what.to_owned()))
}

fn listing_of(part: &str) -> Result<&'static Listing, Problem> {
    Listing::of(part).ok_or_else(Problem::unknown_route)
}

fn crumbs(listing: &Listing) -> Vec<Crumb> {
    vec![Crumb { name: listing.title.to_owned(), href: href(&[listing.part]) }]
}

/// What a list is asked for: what is said and isn't empty, with how much of it is wanted.
fn wanted<'s>(listing: &Listing, said: impl Iterator<Item = (&'s str, &'s str)>, size: &'s str) -> String {
    let mut pairs: Vec<(&str, &str)> = said.filter(|(name, value)| !value.is_empty() && *name != "done").collect();
    let has = |pairs: &[(&str, &str)], name: &str| pairs.iter().any(|(said, _)| *said == name);
    if !has(&pairs, "pageSize") {
        pairs.push(("pageSize", size));
    }
    // Documents and the audit log go on by a cursor.
    let by_cursor = [listings::DOCUMENTS.part, listings::AUDIT.part].contains(&listing.part);
    if !has(&pairs, "pageNumber") && !by_cursor {
        pairs.push(("pageNumber", "0"));
    }
    billing_console::query(&pairs)
}

async fn listed(visitor: &Visitor, listing: &Listing, raw: &str) -> Result<Listed, Problem> {
    let query = || Query::of(listing.path, raw);
    match listing.part {
        "customers" => list(catalog::list_customers(visitor.caller(UseCase::ListCustomers), query()?)).await,
        "contracts" => list(contracts::search_contracts(visitor.caller(UseCase::ListContracts), query()?)).await,
        "documents" => {
            let caller = visitor.caller(UseCase::ListDocuments);
            list(documents::list_documents(caller, visitor.request.clone(), query()?)).await
        }
        "events" => list(usage::list_events(visitor.caller(UseCase::ListEvents), query()?)).await,
        "payments" => list(money::list_payments(visitor.caller(UseCase::ListPayments), query()?)).await,
        "charges" => list(charges::list_charges(visitor.caller(UseCase::ListCharges), query()?)).await,
        "pricings" => list(catalog::list_pricings(visitor.caller(UseCase::ListPricings), query()?)).await,
        "usage-products" => list(catalog::list_usage_products(visitor.caller(UseCase::ListUsageProducts), query()?)).await,
        "entities" => list(catalog::list_entities(visitor.caller(UseCase::ListEntities), query()?)).await,
        "bank-accounts" => list(catalog::list_bank_accounts(visitor.caller(UseCase::ListBankAccounts), query()?)).await,
        "formats" => list(catalog::list_usage_formats(visitor.caller(UseCase::ListFormats), query()?)).await,
        "billing-runs" => list(billing::list_billing_runs(visitor.caller(UseCase::ListBillingRuns), query()?)).await,
        "imports" => list(imports::list_imports(visitor.caller(UseCase::ListImports), query()?)).await,
        "refused" => list(usage::list_refused_usage(visitor.caller(UseCase::ListRefusedUsage), query()?)).await,
        "audit" => list(audit::list_audit_entries(visitor.caller(UseCase::ListAuditEntries), query()?)).await,
        _ => Err(Problem::unknown_route()),
    }
}

async fn list_page(visitor: &Visitor, listing: &Listing, said: &Said) -> Result<Made, Problem> {
    let raw = wanted(listing, said.iter().map(|(name, value)| (name.as_str(), value.as_str())), PAGE_SIZE);
    let filters = described::filters(listing.path, said);
    let Listed { elements, total, amount, amount_due, neighbours } = listed(visitor, listing, &raw).await?;
    let sums = [("Total", amount), ("Left to pay", amount_due)];
    let sums = sums.into_iter().filter_map(|(name, sum)| Some((name.to_owned(), sum.filter(|sum| !sum.is_empty())?))).collect();
    let narrowed: Vec<(&str, &str)> = filters
        .iter()
        .filter(|filter| !filter.value.is_empty())
        .map(|filter| (filter.name.as_str(), filter.value.as_str()))
        .collect();
    let narrowed = billing_console::query(&[narrowed.as_slice(), &[("format", "csv")]].concat());
    let table = match listing.part {
        "documents" => Some(format!("{}?{narrowed}", listing.path)),
        "events" => Some(format!("/api/usage/report?{narrowed}")),
        _ => None,
    };
    let part = Part { elements, total, sums, neighbours, table };
    let body = billing_console::list(listing, &part, &filters);
    let calls = vec![format!("{}?{raw}", listing.path)];
    Ok(Made { title: listing.title.to_owned(), part: listing.part, crumbs: Vec::new(), calls, body })
}

/// Some elements of a list, of what a page is about.
async fn few(visitor: &Visitor, listing: &Listing, narrowed: &[(&str, &str)]) -> Result<(Value, String), Problem> {
    let raw = wanted(listing, narrowed.iter().copied(), FEW);
    Ok((listed(visitor, listing, &raw).await?.elements, format!("{}?{raw}", listing.path)))
}

/// How many elements a list has, and what they amount to that is left to pay.
async fn counted(visitor: &Visitor, listing: &Listing, narrowed: &[(&str, &str)]) -> Result<(String, Option<String>), Problem> {
    let Listed { total, amount_due, .. } = listed(visitor, listing, &wanted(listing, narrowed.iter().copied(), "1")).await?;
    Ok((total.unwrap_or_default(), amount_due))
}

async fn home(visitor: &Visitor) -> Result<Made, Problem> {
    let documents = &listings::DOCUMENTS;
    let mut steps = [false; 5];
    let first = [&listings::ENTITIES, &listings::USAGE_PRODUCTS, &listings::PRICINGS, &listings::CUSTOMERS, &listings::CONTRACTS];
    let mut customers = String::new();
    for (taken, listing) in steps.iter_mut().zip(first) {
        let (count, _) = counted(visitor, listing, &[]).await?;
        *taken = count != "0";
        if listing.part == listings::CUSTOMERS.part {
            customers = count;
        }
    }
    let (drafts, _) = counted(visitor, documents, &[("state", "DRAFT")]).await?;
    let (owed, owed_amounts) = counted(visitor, documents, &[("has_amount_due", "true")]).await?;
    let (overdue, overdue_amounts) = counted(visitor, documents, &[("overdue", "true")]).await?;
    let (latest, call) = few(visitor, documents, &[("order", "-created"), ("totals", "false")]).await?;
    let refused = refused_since_yesterday(visitor).await?;
    let runs = listed(visitor, &listings::BILLING_RUNS, &wanted(&listings::BILLING_RUNS, std::iter::empty(), "1")).await?;
    let last_run = runs.elements.get(0).cloned().unwrap_or_default();
    let answers = HomeAnswers {
        refused,
        last_run,
        customers,
        drafts,
        owed,
        owed_amounts,
        overdue,
        overdue_amounts,
        documents: latest,
        steps,
    };
    let body = billing_console::home(&answers);
    Ok(Made { title: "Home".to_owned(), part: "", crumbs: Vec::new(), calls: vec![call], body })
}

/// How many events were refused since yesterday's beginning, in UTC.
async fn refused_since_yesterday(visitor: &Visitor) -> Result<String, Problem> {
    let today = TimeZone::UTC.service_date(visitor.state.services().now());
    let yesterday = today.pred_opt().unwrap_or(today).to_string();
    let raw = billing_console::query(&[("from", &yesterday), ("pageSize", "1000"), ("pageNumber", "0")]);
    let counts = listed(visitor, &listings::REFUSED, &raw).await?.elements;
    Ok(At(&counts).items().filter_map(|count| count.0["count"].as_u64()).sum::<u64>().to_string())
}

async fn search_page(visitor: &Visitor, said: &Said) -> Result<Made, Problem> {
    let sought = field(said, "q").unwrap_or_default();
    let raw = billing_console::query(&[("q", sought)]);
    let found = one(search::search(visitor.caller(UseCase::Search), Query::of("/api/search", &raw)?)).await?;
    let body = billing_console::found(sought, &found);
    Ok(Made { title: "Search".to_owned(), part: "search", crumbs: Vec::new(), calls: vec![format!("/api/search?{raw}")], body })
}

async fn customer(visitor: &Visitor, reference: &str) -> Result<Made, Problem> {
    let path = || Path::from(reference.to_owned());
    let customer = one(catalog::get_customer(visitor.caller(UseCase::GetCustomer), path())).await?;
    let balance = one(money::get_balance(visitor.caller(UseCase::GetBalance), path())).await?;
    let of_customer = [("customer_ref", reference)];
    let (contracts, contracts_call) = few(visitor, &listings::CONTRACTS, &of_customer).await?;
    let latest = [("customer_ref", reference), ("order", "-created"), ("totals", "false")];
    let (documents, documents_call) = few(visitor, &listings::DOCUMENTS, &latest).await?;
    let calls = vec![
        format!("/api/customers/{reference}"),
        format!("/api/customers/balance/{reference}"),
        contracts_call,
        documents_call,
    ];
    let title = At(&customer).at("name").text();
    let body = billing_console::customer(&CustomerAnswers { customer, balance, contracts, documents });
    Ok(Made { title, part: "customers", crumbs: crumbs(&listings::CUSTOMERS), calls, body })
}

async fn contract(visitor: &Visitor, reference: &str) -> Result<Made, Problem> {
    let path = || Path::from(reference.to_owned());
    let contract = one(contracts::get_contract(visitor.caller(UseCase::GetContract), path())).await?;
    let current = one(contracts::current_invoices(visitor.caller(UseCase::PreviewInvoices), path())).await?;
    let next = one(contracts::next_invoices(visitor.caller(UseCase::PreviewInvoices), path())).await?;
    let latest = [("contract_ref", reference), ("order", "-created"), ("totals", "false")];
    let (documents, documents_call) = few(visitor, &listings::DOCUMENTS, &latest).await?;
    let invoices = |when: &str| format!("/api/contracts/invoices/{when}/{reference}");
    let calls = vec![format!("/api/contracts/{reference}"), invoices("current"), invoices("next"), documents_call];
    let title = At(&contract).at("contract_number").text();
    let body = billing_console::contract(&ContractAnswers { contract, current, next, documents });
    Ok(Made { title, part: "contracts", crumbs: crumbs(&listings::CONTRACTS), calls, body })
}

async fn document(visitor: &Visitor, reference: &str) -> Result<Made, Problem> {
    let path = || Path::from(reference.to_owned());
    let document = one(documents::get_document(visitor.caller(UseCase::GetDocument), path())).await?;
    let payments = one(money::list_payments_of_document(visitor.caller(UseCase::ListPayments), path())).await?;
    let calls = vec![format!("/api/documents/{reference}"), format!("/api/documents/payments/{reference}")];
    let title = At(&document).at("document_number").text();
    let body = billing_console::document(&DocumentAnswers { document, payments, form_key: visitor.unique() });
    Ok(Made { title, part: "documents", crumbs: crumbs(&listings::DOCUMENTS), calls, body })
}

async fn event(visitor: &Visitor, reference: &str) -> Result<Made, Problem> {
    let path = || Path::from(reference.to_owned());
    let history = one(usage::get_event_history(visitor.caller(UseCase::GetEventHistory), path())).await?;
    // Of a deleted event there is the history alone.
    let event = or_nothing(one(usage::get_event(visitor.caller(UseCase::GetEvent), path())).await)?;
    let calls = vec![format!("/api/usage/event/{reference}"), format!("/api/usage/event/history/{reference}")];
    let body = billing_console::event(&event, &history);
    Ok(Made { title: "Usage event".to_owned(), part: "events", crumbs: crumbs(&listings::EVENTS), calls, body })
}

async fn thing(visitor: &Visitor, part: &str, reference: &str) -> Result<Made, Problem> {
    let listing = listing_of(part)?;
    let answer = things::read(visitor, part, reference).await?;
    let title = listing.name_of(At(&answer));
    let title = if title.is_empty() { reference.to_owned() } else { title };
    // The built-in format, which nobody made, is nobody's to edit.
    let is_edited_here = forms::has(part) || (part == listings::FORMATS.part && At(&answer).at("changed_at").is_there());
    let edit = is_edited_here.then(|| href(&["edit", part, reference]));
    let body = billing_console::thing(&title, &answer, edit.as_deref());
    let calls = listing.below().map(|below| format!("{below}{reference}")).into_iter().collect();
    Ok(Made { title, part: listing.part, crumbs: crumbs(listing), calls, body })
}

async fn keys(visitor: &Visitor) -> Result<Made, Problem> {
    let raw = "pageSize=1000&pageNumber=0";
    let caller = visitor.caller(UseCase::ListKeys);
    let keys = list(auth::list_keys(caller, Query::of("/auth/keys/list", raw)?)).await?.elements;
    let body = billing_console::keys(&keys);
    // An administrator's session is asked for, no token.
    Ok(Made { title: "API keys".to_owned(), part: "keys", crumbs: Vec::new(), calls: Vec::new(), body })
}
