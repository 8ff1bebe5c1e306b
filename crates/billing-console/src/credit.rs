//! Prepaid credit: the lists of grants and of what documents took from them, the page of a grant, and the credit on the page of a
//! customer.

use maud::{Markup, html};
use serde_json::Value;

use crate::list::{CellFormat, Listing, table};
use crate::listings::column;
use crate::parts::{changes, day, facts, href, identifier, in_units, instant, link, money, name, query, section};
use crate::webhooks::notifications;
use billing_api::dto::contract_view::ContractJson;
use billing_api::dto::credit::{DrawJson, GrantJson};
use billing_api::dto::notifications::NotificationJson;
use billing_api::field;
use billing_api::json_view::{JsonAnswer, JsonView};
use billing_api::operations::{GetGrant, ListDraws, ListGrants};

/// Grants of prepaid credit with their amounts.
pub const CREDIT: Listing = Listing {
    part: "credit",
    title: "Prepaid credit",
    operation: &ListGrants::SPEC,
    read: Some(&GetGrant::SPEC),
    columns: &[
        column("Name", field!(GrantJson, name), CellFormat::Name).leading("credit", field!(GrantJson, grant_ref)),
        column("Customer", field!(GrantJson, customer_ref), CellFormat::Text)
            .leading("customers", field!(GrantJson, customer_ref)),
        column("Amount", field!(GrantJson, amount), CellFormat::Money(field!(GrantJson, currency))),
        column("Usable", field!(GrantJson, usable), CellFormat::Money(field!(GrantJson, currency))),
        column("Drawn", field!(GrantJson, drawn), CellFormat::Money(field!(GrantJson, currency))),
        column("Covered", field!(GrantJson, covered), CellFormat::Money(field!(GrantJson, currency))),
        column("Free", field!(GrantJson, free), CellFormat::Money(field!(GrantJson, currency))),
        column("First day", field!(GrantJson, from), CellFormat::Day),
        column("Last day", field!(GrantJson, to), CellFormat::Day),
        column("Sold by", field!(GrantJson, source_document_number), CellFormat::Text)
            .leading("documents", field!(GrantJson, source_document_ref)),
        column("Contract", field!(GrantJson, contract_ref), CellFormat::Text)
            .leading("contracts", field!(GrantJson, contract_ref))
            .extra(),
        column("Entity", field!(GrantJson, entity_ref), CellFormat::Text)
            .leading("entities", field!(GrantJson, entity_ref))
            .extra(),
        column("Created", field!(GrantJson, created_at), CellFormat::Instant).extra(),
    ],
    order: None,
    empty: "No prepaid credit yet. Grant or sell credit on the page of a customer.",
    is_made_here: false,
};

/// What documents took from grants and returned to them.
pub const DRAWS: Listing = Listing {
    part: "draws",
    title: "Credit statement",
    operation: &ListDraws::SPEC,
    read: None,
    columns: &[
        column("Recorded", field!(DrawJson, recorded_at), CellFormat::Instant),
        column("Document", field!(DrawJson, document_number), CellFormat::Text)
            .leading("documents", field!(DrawJson, document_ref)),
        column("Tax, %", field!(DrawJson, tax_rate), CellFormat::Number),
        column("Amount", field!(DrawJson, amount), CellFormat::Money(field!(DrawJson, currency))),
        column("Customer", field!(DrawJson, customer_ref), CellFormat::Text).leading("customers", field!(DrawJson, customer_ref)),
        column("Credit grant", field!(DrawJson, grant_ref), CellFormat::Text).leading("credit", field!(DrawJson, grant_ref)),
        column("Tax category", field!(DrawJson, tax_category), CellFormat::Text).extra(),
    ],
    order: None,
    empty: "No document has taken credit yet. A document takes credit when it is issued.",
    is_made_here: false,
};

/// Grant columns on the page of a customer.
const CREDIT_OF: &[&str] = &[
    field!(GrantJson, name),
    field!(GrantJson, usable),
    field!(GrantJson, drawn),
    field!(GrantJson, covered),
    field!(GrantJson, free),
    field!(GrantJson, from),
    field!(GrantJson, to),
    field!(GrantJson, source_document_number),
];

/// Draw columns on the page of a grant.
const DRAWS_OF: &[&str] =
    &[field!(DrawJson, recorded_at), field!(DrawJson, document_number), field!(DrawJson, tax_rate), field!(DrawJson, amount)];

/// API responses for the page of a grant.
#[derive(Clone, Debug, Default)]
pub struct GrantAnswers {
    /// The grant.
    pub grant: JsonAnswer<GrantJson>,
    /// The contract whose documents take the credit; null for all contracts of the customer.
    pub contract: JsonAnswer<ContractJson>,
    /// The first draws.
    pub draws: Value,
    /// The notifications about the grant.
    pub notifications: JsonAnswer<Vec<NotificationJson>>,
    /// Whether the visitor may edit the grant.
    pub may_edit: bool,
}

/// Renders the page of a grant.
pub fn grant(answers: &GrantAnswers) -> Markup {
    let GrantAnswers { grant, draws, may_edit, .. } = answers;
    let at = grant.view();
    let (reference, currency) = (at.grant_ref().to_text(), at.currency().to_text());
    let of_grant = query(&[("grant_ref", &reference)]);
    let units = |amount| in_units(at.units().name(), amount);
    html! {
        h1 { (name(at.name())) }
        @if *may_edit { div.actions { a.button href=(href(&["edit", CREDIT.part, &reference])) { "Edit" } } }
        div.cards {
            div.card {
                h3 { "Usable" } p { (money(at.usable(), &currency)) (units(at.units().usable())) }
                p.muted { "of " (money(at.amount(), &currency)) }
            }
            div.card {
                h3 { "Drawn" } p { (money(at.drawn(), &currency)) (units(at.units().drawn())) } p.muted { "by issued documents" }
            }
            div.card { h3 { "Covered" } p { (money(at.covered(), &currency)) (units(at.units().covered())) } p.muted { "of drafts" } }
            div.card {
                h3 { "Free" } p { (money(at.free(), &currency)) (units(at.units().free())) } p.muted { "for further documents" }
            }
        }
        @if is_not_usable(at) { p.notice { (WITHOUT_SALE) } }
        (grant_facts(answers, &reference))
        (section(DRAWS.title, &html! {
            @if JsonView::<Value>::of(draws).elements().next().is_none() { p.muted { (DRAWS.empty) } } @else {
                (table(DRAWS.title, &DRAWS.some(DRAWS_OF), JsonView::of(draws)))
                p { a href={ (href(&[DRAWS.part])) "?" (of_grant) } { "Whole statement" } }
            }
            p { (changes("CREDIT_GRANT", &reference)) }
        }))
        (notifications(answers.notifications.view()))
    }
}

/// The reason why nothing of sold credit is usable.
const WITHOUT_SALE: &str = "Nothing of this credit is usable while the invoice that sold it is not paid, or bills nothing.";

/// Returns whether nothing of sold credit is usable.
fn is_not_usable(grant: JsonView<'_, GrantJson>) -> bool {
    grant.source_document_ref().is_there() && !grant.usable().is_amount()
}

/// Renders to what the credit of a grant belongs and what it covers.
fn grant_facts(answers: &GrantAnswers, reference: &str) -> Markup {
    let at = answers.grant.view();
    let page = |part: &str, reference: String| Some(href(&[part, &reference]));
    let own = |part: &str, reference: String| link(page(part, reference.clone()), &reference);
    let contract_number = answers.contract.view().contract_number().to_text();
    let contract = if contract_number.is_empty() { "Open" } else { &contract_number };
    let of_sale = |reference: String| link(page("documents", reference), &at.source_document_number().to_text());
    let any = |shown: Markup| {
        if shown.0.is_empty() {
            html! { span.muted { "any" } }
        } else {
            shown
        }
    };
    html! {
        (facts(&[
            ("Customer", own("customers", at.customer_ref().to_text())),
            ("Entity", own("entities", at.entity_ref().to_text())),
            ("Contract", html! {
                @if at.contract_ref().is_there() { (link(page("contracts", at.contract_ref().to_text()), contract)) }
                @else { span.muted { "all contracts of the customer" } }
            }),
            ("First day of service", any(day(at.from()))),
            ("Last day of service", any(day(at.to()))),
            ("Sold by", html! {
                @if at.source_document_ref().is_there() { (of_sale(at.source_document_ref().to_text())) }
                @else { span.muted { "given" } }
            }),
            ("Created", instant(at.created_at())),
            ("Changed", instant(at.updated_at())),
            ("Grant ID", identifier("Show", reference)),
        ]))
    }
}

/// API responses for the credit of a customer.
#[derive(Clone, Debug, Default)]
pub struct CreditAnswers {
    /// The grants.
    pub grants: JsonAnswer<Vec<GrantJson>>,
    /// Whether the visitor may grant and sell credit.
    pub may_grant: bool,
}

/// Renders the grants of a customer of which something is left; nothing if the customer has none and none can be created.
pub(crate) fn credit_of(reference: &str, answers: &CreditAnswers) -> Markup {
    let CreditAnswers { grants, may_grant } = answers;
    let left: Value = grants.view().items().filter(|grant| is_left(*grant)).map(|grant| grant.json().clone()).collect();
    let has_some = JsonView::<Value>::of(&left).elements().next().is_some();
    let of_customer = query(&[("customer_ref", reference)]);
    html! {
        @if *may_grant || !grants.view().is_empty() {
            (section(CREDIT.title, &html! {
                @if has_some { (table(CREDIT.title, &CREDIT.some(CREDIT_OF), JsonView::of(&left))) }
                @else { p.muted { "No prepaid credit." } }
                @if !grants.view().is_empty() {
                    p {
                        a href={ (href(&[CREDIT.part])) "?" (of_customer) } { "All prepaid credit" } " · "
                        a href={ (href(&[DRAWS.part])) "?" (of_customer) } { (DRAWS.title) }
                    }
                }
                @if *may_grant {
                    p.links {
                        a.button.plain href=(href(&["do", "sell-credit", reference])) { "Sell credit" }
                        a.button.plain href=(href(&["do", "grant-credit", reference])) { "Grant credit" }
                    }
                }
            }))
        }
    }
}

/// Returns whether something of a grant is left. Of sold credit that is not paid, nothing is used.
fn is_left(grant: JsonView<'_, GrantJson>) -> bool {
    grant.free().is_amount() || grant.covered().is_amount() || is_not_usable(grant)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sold(more: &[(&str, Value)]) -> Value {
        let mut grant = json!({
            "grant_ref": "g1", "customer_ref": "a/b", "entity_ref": "seller", "currency": "EUR", "amount": 100,
            "name": "Credit <b>", "from": null, "to": "2026-12-31", "contract_ref": "c1", "source_document_ref": "d1",
            "source_document_number": "UB-INV-1", "usable": 90, "drawn": 40, "covered": 30, "free": 20,
        });
        for (field, value) in more {
            grant[*field] = value.clone();
        }
        grant
    }

    fn shown(grant_json: Value, draws: Value, may_edit: bool) -> String {
        let contract = json!({"contract_number": "C-7"}).into();
        grant(&GrantAnswers { grant: grant_json.into(), contract, draws, may_edit, ..GrantAnswers::default() }).into_string()
    }

    #[test]
    fn a_grant_shows_its_amounts_in_units_of_its_entity() {
        let units = json!({"name": "<b>credits", "amount": 10000, "usable": 9000, "drawn": 4000, "covered": 3000, "free": 2000});
        let page = shown(sold(&[("units", units)]), json!([]), false);
        for units in ["9,000", "4,000", "3,000", "2,000"] {
            assert!(page.contains(&format!(">{units}</data> &lt;b&gt;credits)")), "{units}: {page}");
        }
        assert!(!shown(sold(&[]), json!([]), false).contains("credits)"));
    }

    #[test]
    fn a_grant_shows_its_amounts_its_sale_and_its_statement() {
        let draws = json!([
            {"grant_ref": "g1", "customer_ref": "a/b", "document_ref": "d2", "document_number": "UB-INV-2", "tax_rate": 20,
                "currency": "EUR", "amount": 50, "recorded_at": "2026-12-01T02:00:00Z"},
            {"grant_ref": "g1", "customer_ref": "a/b", "document_ref": "d3", "document_number": "UB-CRD-1", "tax_rate": 20,
                "currency": "EUR", "amount": -10, "recorded_at": "2026-12-03T02:00:00Z"},
        ]);
        let page = shown(sold(&[]), draws, true);
        for part in [
            "Credit &lt;b&gt;",
            ">90.00 <span class=\"currency\">EUR",
            "of <data class=\"number\" value=\"100\"",
            ">40.00 <span",
            ">30.00 <span",
            ">20.00 <span",
            "<a href=\"/console/customers/a%2Fb\">a/b</a>",
            "<a href=\"/console/contracts/c1\">C-7</a>",
            "<a href=\"/console/documents/d1\">UB-INV-1</a>",
            "<time datetime=\"2026-12-31\">",
            "<a href=\"/console/documents/d2\">UB-INV-2</a>",
            ">\u{2212}10.00 <span",
            "href=\"/console/draws?grant_ref=g1\"",
            "href=\"/console/edit/credit/g1\"",
            "/console/audit?object_kind=CREDIT_GRANT&amp;object_ref=g1",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<b>") && !page.contains(WITHOUT_SALE), "{page}");
    }

    #[test]
    fn a_grant_says_why_nothing_is_usable_and_a_reader_cannot_edit_it() {
        let unpaid = shown(sold(&[("usable", json!(0)), ("free", json!(0)), ("covered", json!(0))]), json!([]), false);
        assert!(unpaid.contains(WITHOUT_SALE) && unpaid.contains(DRAWS.empty) && !unpaid.contains("/edit/"), "{unpaid}");
        let none = Value::Null;
        let given = [("source_document_ref", none.clone()), ("contract_ref", none.clone()), ("to", none), ("usable", json!(0))];
        let given = shown(sold(&given), json!([]), false);
        assert!(given.contains(">given<") && given.contains(">all contracts of the customer<"), "{given}");
        assert!(given.matches(">any<").count() == 2 && !given.contains(WITHOUT_SALE), "{given}");
    }

    #[test]
    fn a_customer_has_the_grants_of_which_something_is_left() {
        let grant_of = |name: &str, usable: u8, covered: u8, free: u8| {
            sold(&[("name", json!(name)), ("usable", json!(usable)), ("covered", json!(covered)), ("free", json!(free))])
        };
        let grants = json!([
            grant_of("used up", 40, 0, 0),
            grant_of("in drafts", 70, 30, 0),
            grant_of("free", 60, 0, 20),
            grant_of("unpaid", 0, 0, 0)
        ]);
        let page = credit_of("a/b", &CreditAnswers { grants: grants.into(), may_grant: true }).into_string();
        for part in [
            ">in drafts</a>",
            ">free</a>",
            ">unpaid</a>",
            "href=\"/console/credit?customer_ref=a%2Fb\"",
            "href=\"/console/draws?customer_ref=a%2Fb\"",
            "href=\"/console/do/sell-credit/a%2Fb\"",
            "href=\"/console/do/grant-credit/a%2Fb\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("used up"), "{page}");
        let used = || json!([grant_of("used up", 40, 0, 0)]).into();
        let reader = credit_of("a/b", &CreditAnswers { grants: used(), may_grant: false }).into_string();
        assert!(reader.contains("No prepaid credit.") && reader.contains("All prepaid credit"), "{reader}");
        assert!(!reader.contains("/do/"), "{reader}");
        assert_eq!(credit_of("a/b", &CreditAnswers::default()).into_string(), "");
    }

    #[test]
    fn what_is_shown_of_credit_is_among_the_columns_of_its_lists() {
        for (listing, fields) in [(&CREDIT, CREDIT_OF), (&DRAWS, DRAWS_OF)] {
            let found: Vec<&str> = listing.some(fields).iter().map(|column| column.field).collect();
            assert_eq!(found, fields, "{}", listing.part);
        }
    }
}
