//! The pages of a customer: an overview with balance, credit, limits, contracts, documents, payments and usage, and the account
//! statement.

use maud::{Markup, html};
use serde_json::Value;

use crate::credit::{CreditAnswers, credit_of};
use crate::document::payment_table;
use crate::limits::{LimitAnswers, limits_and_holds};
use crate::list::{Listing, table};
use crate::listings::{CONTRACTS, CONTRACTS_OF, DOCUMENTS, DOCUMENTS_OF, PAYMENTS, PAYMENTS_OF};
use crate::parts::{changes, day, grouped, href, in_units, link, money, name, query, section, words};
use crate::thing::fields;
use billing_api::dto::customers::CustomerJson;
use billing_api::dto::e_invoices::MissingTermJson;
use billing_api::dto::money::{BalanceJson, PaymentJson, StatementEntryJson, StatementJson};
use billing_api::dto::wire::ExactNumber;
use billing_api::json_view::{JsonAnswer, JsonView};

/// Maximum number of entries on the page of a statement, which keeps the page below 100 KB. The files have all entries.
const MAX_ENTRIES: usize = 120;

/// API responses for the page of a customer.
#[derive(Clone, Debug)]
pub struct CustomerAnswers {
    /// The customer.
    pub customer: JsonAnswer<CustomerJson>,
    /// Balances by entity and currency.
    pub balance: JsonAnswer<Vec<BalanceJson>>,
    /// Some of the customer's contracts.
    pub contracts: Value,
    /// The latest documents.
    pub documents: Value,
    /// The latest payments.
    pub payments: Value,
    /// The latest deposits and their refunds.
    pub deposits: JsonAnswer<Vec<PaymentJson>>,
    /// The prepaid credit.
    pub credit: CreditAnswers,
    /// The limits and the open holds.
    pub limits: LimitAnswers,
    /// Rendered recent usage.
    pub usage: Markup,
    /// The terms that e-invoices would lack; null if the check is not possible.
    pub e_invoice: JsonAnswer<Vec<MissingTermJson>>,
    /// Whether the visitor may edit the customer.
    pub may_edit: bool,
    /// Whether the visitor may create contracts.
    pub may_contract: bool,
    /// Whether the visitor may record and change payments.
    pub may_pay: bool,
}

/// Renders the page of a customer.
pub fn customer(answers: &CustomerAnswers) -> Markup {
    let CustomerAnswers { customer, balance, contracts, documents, payments, deposits, usage, e_invoice, .. } = answers;
    let CustomerAnswers { credit, limits, may_edit, may_contract, may_pay, .. } = answers;
    let at = customer.view();
    let reference = at.customer_ref().to_text();
    let of_customer = query(&[("customer_ref", &reference)]);
    html! {
        h1 { (name(at.profile().name())) }
        div.actions {
            @if *may_contract { a.button href={ (href(&["new", "contracts"])) "?" (of_customer) } { "New contract" } }
            a.button.plain href=(statement_page(&reference)) { "Statement" }
            @if *may_pay { a.button.plain href=(href(&["do", "deposit", &reference])) { "Record deposit" } }
            @if *may_edit { a.button.plain href=(href(&["edit", "customers", &reference])) { "Edit" } }
        }
        (section("Amounts due", &amounts_due(balance.view())))
        (credit_of(&reference, credit))
        (limits_and_holds(&reference, limits, JsonView::of(contracts)))
        (some_of(&CONTRACTS, CONTRACTS_OF, JsonView::of(contracts), &of_customer))
        (some_of(&DOCUMENTS, DOCUMENTS_OF, JsonView::of(documents), &of_customer))
        (some_of(&PAYMENTS, PAYMENTS_OF, JsonView::of(payments), &of_customer))
        (payment_table("Deposits", deposits.view(), *may_pay))
        (section("Usage in the last 30 days", &html! {
            (usage)
            p {
                a href={ (href(&["usage"])) "?" (of_customer) } { "Explore usage" } " · "
                a href={ (href(&["events"])) "?" (of_customer) } { "Usage events" }
            }
        }))
        @if e_invoice.view().is_there() { (section("E-invoices", &missing_terms(e_invoice.view()))) }
        (section("Details", &html! { (fields(at.any())) p { (changes("CUSTOMER", &reference)) } }))
    }
}

/// Renders the first elements of one of the customer's lists, with a link to the whole list.
fn some_of(listing: &Listing, columns: &[&str], elements: JsonView<'_>, of_customer: &str) -> Markup {
    let name = listing.title.to_lowercase();
    section(
        listing.title,
        &html! {
            @if elements.elements().next().is_none() { p.muted { "No " (name) "." } } @else {
                (table(listing.title, &listing.some(columns), elements))
                p { a href={ (href(&[listing.part])) "?" (of_customer) } { "All " (name) } }
            }
        },
    )
}

/// Renders the terms that e-invoices for the customer would lack.
fn missing_terms(missing: JsonView<'_, Vec<MissingTermJson>>) -> Markup {
    html! {
        @if missing.items().next().is_none() {
            p { "Ready: the data of the customer and the entity suffices for e-invoices." }
        } @else {
            p { "For e-invoices, add:" }
            ul { @for term in missing.items() {
                li { (missing_term(&term.pointer().to_text())) " " span.muted { "(" (name(term.detail())) ")" } }
            } }
        }
    }
}

/// The names of terms of parties, by the last part of the field.
const TERMS: &[(&str, &str)] = &[
    ("country_code", "country"),
    ("electronic_address", "electronic address"),
    ("email", "e-mail address of the contact"),
    ("name", "name of the contact"),
    ("phone", "telephone number of the contact"),
    ("registration", "registration number"),
    ("vat_id", "VAT ID"),
    ("zip_code", "postal code"),
];

/// Returns the name of a term that a document would lack.
fn missing_term(pointer: &str) -> String {
    let own = pointer.rsplit('/').next().unwrap_or_default();
    let term =
        TERMS.iter().find(|(field, _)| *field == own).map_or_else(|| words(own).to_lowercase(), |(_, term)| (*term).to_owned());
    match pointer {
        "/buyer_reference" => "the buyer reference of the customer or the contract".to_owned(),
        "/bank_account" => "a bank account of the entity, or other means of payment".to_owned(),
        "/e_invoice_profile" => "an e-invoice profile of the customer or the entity".to_owned(),
        _ if pointer.starts_with("/entity/") => format!("the {term} of the entity"),
        _ if pointer.starts_with("/customer/") => format!("the {term} of the customer"),
        _ => pointer.to_owned(),
    }
}

fn amounts_due(balance: JsonView<'_, Vec<BalanceJson>>) -> Markup {
    let entities = || balance.items().map(|account| account.entity_ref().to_text());
    let has_entities = entities().any(|entity| entities().any(|other| other != entity));
    html! {
        @if balance.items().next().is_none() { p.muted { "No issued documents yet." } }
        div.cards {
            @for account in balance.items() {
                @let currency = account.currency().to_text();
                div.card {
                    h3 { "Amount due" }
                    p { (money(account.due(), &currency)) }
                    p.muted { "Overdue: " (money(account.overdue(), &currency)) }
                    p.muted { "Unapplied: " (money(account.unapplied(), &currency)) }
                    @if account.credit_free().is_amount() || account.credit_covered().is_amount() {
                        p.muted {
                            "Prepaid credit: " (money(account.credit_free(), &currency))
                            (in_units(account.credit_units().name(), account.credit_units().credit_free())) " free, "
                            (money(account.credit_covered(), &currency))
                            (in_units(account.credit_units().name(), account.credit_units().credit_covered())) " covers drafts"
                        }
                    }
                    @if has_entities {
                        @let entity = account.entity_ref().to_text();
                        p.muted { "to " (link(Some(href(&["entities", &entity])), &entity)) }
                    }
                }
            }
        }
    }
}

/// Returns the URL of a customer's statement.
fn statement_page(reference: &str) -> String {
    href(&["customers", reference, "statement"])
}

/// API responses for the page of an account statement.
#[derive(Clone, Debug)]
pub struct StatementAnswers {
    /// The customer.
    pub customer: JsonAnswer<CustomerJson>,
    /// Statements by entity and currency.
    pub accounts: JsonAnswer<Vec<StatementJson>>,
    /// First and last day.
    pub days: (String, String),
    /// URLs of the statement as files, each with its label.
    pub files: Vec<(&'static str, String)>,
}

/// Renders the account statement of a customer.
pub fn statement(answers: &StatementAnswers) -> Markup {
    let (customer, accounts) = (answers.customer.view(), answers.accounts.view());
    let day_field = |label: &str, name: &str, value: &str| {
        html! { label { (label) input type="date" name=(name) value=(value) required; } }
    };
    html! {
        h1 { "Statement for " (name(customer.profile().name())) }
        form.filters method="get" action=(statement_page(&customer.customer_ref().to_text())) {
            (day_field("First day", "from", &answers.days.0))
            (day_field("Last day", "to", &answers.days.1))
            button { "Show" }
        }
        p.links { @for (label, address) in &answers.files { a href=(address) { (label) } } }
        @if accounts.items().next().is_none() { p.muted { "No issued documents or payments." } }
        @let most = (MAX_ENTRIES / accounts.items().count().max(1)).max(1);
        @for account in accounts.items() { (entries(account, most)) }
    }
}

/// Renders the last entries of an account's statement, with the balance before the first entry and after the last.
fn entries(account: JsonView<'_, StatementJson>, most: usize) -> Markup {
    let (currency, entity) = (account.currency().to_text(), account.entity_ref().to_text());
    let all: Vec<JsonView<'_, StatementEntryJson>> = account.entries().items().collect();
    let omitted = all.len().saturating_sub(most);
    let name = format!("{currency}, entity {entity}");
    let balance = |label: &str, amount: JsonView<'_, ExactNumber>| {
        html! { tr { th scope="row" colspan="4" { (label) } td.amount { (money(amount, &currency)) } } }
    };
    section(
        &name,
        &html! {
            @if omitted > 0 {
                p.notice { "Only the last " (most) " entries are shown. The files have all " (grouped(&all.len().to_string())) "." }
            }
            div.scrolls tabindex="0" role="region" aria-label=(name) {
                table {
                    thead { tr {
                        th scope="col" { "Date" }
                        th scope="col" { "Entry" }
                        th scope="col" { "Document" }
                        th.amount scope="col" { "Amount" }
                        th.amount scope="col" { "Balance" }
                    } }
                    tbody {
                        (balance("Opening balance", account.opening_balance()))
                        @for entry in all.iter().skip(omitted) { tr {
                            td { (day(entry.date())) }
                            td { (words(&entry.kind().to_text())) }
                            @let document = entry.document_ref().is_there().then(|| href(&["documents", &entry.document_ref().to_text()]));
                            @let (number, reference) = (entry.document_number().to_text(), entry.reference().to_text());
                            td { (link(document, if number.is_empty() { &reference } else { &number })) }
                            td.amount { (money(entry.amount(), &currency)) }
                            td.amount { (money(entry.balance(), &currency)) }
                        } }
                        (balance("Closing balance", account.closing_balance()))
                    }
                }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answers() -> CustomerAnswers {
        CustomerAnswers {
            customer: json!({"customer_ref": "a/b", "name": "Acme <b>"}).into(),
            balance: json!([]).into(),
            contracts: json!([]),
            documents: json!([]),
            payments: json!([]),
            deposits: json!([]).into(),
            credit: CreditAnswers { may_grant: true, ..CreditAnswers::default() },
            limits: LimitAnswers { may_limit: true, ..LimitAnswers::default() },
            usage: html! {},
            e_invoice: Value::Null.into(),
            may_edit: true,
            may_contract: true,
            may_pay: true,
        }
    }

    #[test]
    fn a_customer_has_all_its_parts_and_the_actions_that_are_allowed() {
        let page = customer(&answers()).into_string();
        for address in [
            "/console/new/contracts?customer_ref=a%2Fb",
            "/console/customers/a%2Fb/statement",
            "/console/do/deposit/a%2Fb",
            "/console/do/grant-credit/a%2Fb",
            "/console/do/sell-credit/a%2Fb",
            "/console/do/limit/a%2Fb",
            "/console/edit/customers/a%2Fb",
        ] {
            assert!(page.contains(&format!("href=\"{address}\"")), "{address}: {page}");
        }
        for none in ["No contracts.", "No documents.", "No payments.", "No issued documents yet."] {
            assert!(page.contains(none), "{none}: {page}");
        }
        assert!(!page.contains("<b>"), "{page}");
        let payment = json!([{"paid_date": "2026-11-10", "amount": 60, "currency": "EUR", "document_ref": "d1", "document_number": "UB-INV-1"}]);
        let deposit = json!([{
            "payment_ref": "p1", "kind": "PAYMENT", "paid_date": "2026-11-11", "amount": 70, "currency": "EUR", "unapplied_amount": 30,
            "document_ref": null, "reference": "TX-1", "reversed_at": null,
        }]);
        let payer = customer(&CustomerAnswers { deposits: deposit.clone().into(), ..answers() }).into_string();
        for what in ["apply-payment", "refund-payment", "reverse"] {
            assert!(payer.contains(&format!("href=\"/console/do/{what}/p1\"")), "{what}: {payer}");
        }
        let may = CustomerAnswers {
            credit: CreditAnswers::default(),
            limits: LimitAnswers::default(),
            may_edit: false,
            may_contract: false,
            may_pay: false,
            ..answers()
        };
        let reader = customer(&CustomerAnswers { payments: payment, deposits: deposit.into(), ..may }).into_string();
        assert!(reader.contains("TX-1") && !reader.contains("/console/do/"), "{reader}");
        assert!(
            reader.contains("href=\"/console/documents/d1\">UB-INV-1") && reader.contains("/console/payments?customer_ref=a%2Fb")
        );
        assert!(!reader.contains("/new/contracts") && !reader.contains("/edit/") && !reader.contains("Limits"), "{reader}");
    }

    #[test]
    fn an_amount_due_has_the_credit_of_its_account() {
        let account = |entity: &str, free: u8, covered: u8| json!({"entity_ref": entity, "currency": "EUR", "due": 5, "credit_free": free, "credit_covered": covered});
        let shown = |accounts: Value| amounts_due(JsonView::of(&accounts)).into_string();
        let page = shown(json!([account("seller", 20, 30), account("branch", 0, 0)]));
        for part in [
            "Prepaid credit: ",
            ">20.00 <span",
            " free, ",
            ">30.00 <span",
            " covers drafts",
            "to <a href=\"/console/entities/branch\">",
        ] {
            assert_eq!(page.matches(part).count(), 1, "{part}: {page}");
        }
        assert!(!shown(json!([account("seller", 0, 0)])).contains("to <a"), "the only entity needs no name");
    }

    #[test]
    fn terms_that_e_invoices_lack_have_names() {
        for (pointer, name) in [
            ("/entity/vat_id", "the VAT ID of the entity"),
            ("/customer/address/city", "the city of the customer"),
            ("/entity/contact/email", "the e-mail address of the contact of the entity"),
            ("/taxes/0", "/taxes/0"),
        ] {
            assert_eq!(missing_term(pointer), name);
        }
    }

    #[test]
    fn a_statement_shows_the_balance_around_its_last_entries() {
        let entry = |number: usize| {
            json!({
                "date": "2026-11-10", "kind": "WRITE_OFF", "document_ref": format!("d{number}"), "document_number": format!("UB-INV-{number}"),
                "amount": number, "balance": number,
            })
        };
        let of = |count: usize| {
            let mut entries: Vec<Value> = (1..=count).map(entry).collect();
            entries.push(json!({
                "date": "2026-11-10", "kind": "PAYMENT", "document_ref": null, "document_number": null, "reference": "TX-1",
                "amount": -5, "balance": -5,
            }));
            statement(&StatementAnswers {
                customer: json!({"customer_ref": "acme", "name": "Acme"}).into(),
                accounts: json!([{
                    "entity_ref": "seller", "currency": "EUR", "opening_balance": 7000, "entries": entries, "closing_balance": -5,
                }])
                .into(),
                days: ("2026-11-01".to_owned(), "2026-11-30".to_owned()),
                files: vec![("PDF", "/api/x?format=pdf".to_owned()), ("CSV", "/api/x?format=csv".to_owned())],
            })
            .into_string()
        };
        let short = of(2);
        let places = ["7,000", "UB-INV-1<", "UB-INV-2<", "<td>TX-1</td>", "\u{2212}5"].map(|text| short.find(text).expect(text));
        assert!(places.is_sorted() && short.contains("Write off") && short.contains("format=pdf"), "{short}");
        assert!(short.contains("value=\"2026-11-01\"") && !short.contains("Only the last"), "{short}");
        let long = of(1_200);
        assert!(
            long.contains("The files have all 1,201.") && !long.contains("UB-INV-1081<") && long.contains("UB-INV-1082<"),
            "{long}"
        );
        assert!(long.len() < 100 * 1024, "{}", long.len());
    }
}
