//! The home page: what needs attention, billed amounts by month, receivables by age and usage against the month before.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::Bar;
use crate::charts_time::{day_lines, month_bars};
use crate::figure::{billionths, digits};
use crate::list::table;
use crate::listings::{DOCUMENTS, LATEST_DOCUMENTS, REFUSED, WHY};
use crate::parts::{amount_alone, amount_text, count_text, grouped, href, instant, name, query, section};
use crate::unit_of;
use crate::usage::{ChartBucket, Series, UsageAnswers, series, total_of};
use billing_api::dto::billing::BillingRunJson;
use billing_api::dto::document_summary::DocumentSummaryJson;
use billing_api::dto::summary::SummaryLineJson;
use billing_api::dto::verification::VerificationJson;
use billing_api::dto::webhooks::WebhookEndpointJson;
use billing_api::json_view::{JsonAnswer, JsonView};

/// Maximum number of charts of currencies or usage products. The table beside them has more.
const MAX_CHARTS: usize = 4;
/// Maximum number of usage products in the table of usage.
const MAX_PRODUCTS: usize = 25;
/// Hundredths per unit, for percentages.
const HUNDRED: i128 = 100;

/// The size of a filtered list, with a link to it.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Label.
    pub name: &'static str,
    /// Number of elements.
    pub count: String,
    /// Amounts due by currency; empty if nothing is due.
    pub amounts: String,
    /// The part of the console that contains the list.
    pub part: &'static str,
    /// Filters of the list.
    pub narrowed: Vec<(&'static str, String)>,
}

/// A month of the chart of billed amounts.
#[derive(Clone, Debug)]
pub struct ChartMonth {
    /// First day.
    pub first_day: String,
    /// Last day.
    pub last_day: String,
    /// Label below the bar.
    pub name: String,
    /// Name with the year.
    pub caption: String,
}

/// Usage by day of two months.
#[derive(Clone, Debug)]
pub struct UsageMonths {
    /// Sums by day and usage product.
    pub answers: UsageAnswers,
    /// The days of the previous month and of this month.
    pub slots: Vec<ChartBucket>,
    /// Position of the first day of this month.
    pub this_month: usize,
    /// Position of today.
    pub today: usize,
    /// The summary of this month without intervals. Null if the sums over the days are the same.
    pub so_far: JsonAnswer<Vec<SummaryLineJson>>,
    /// The same for the days of the month before up to the same day.
    pub until_then: JsonAnswer<Vec<SummaryLineJson>>,
}

/// API responses for the home page.
#[derive(Clone, Debug)]
pub struct HomeAnswers {
    /// Whether the setup up to the first invoice is incomplete.
    pub is_begun: bool,
    /// Whether the visitor may run billing.
    pub may_bill: bool,
    /// The months of the chart of billed amounts, oldest first.
    pub months: Vec<ChartMonth>,
    /// Issued documents by month and currency.
    pub billed: JsonAnswer<Vec<DocumentSummaryJson>>,
    /// Amounts due by days overdue.
    pub ages: Vec<Counted>,
    /// The whole amount due.
    pub owed: Counted,
    /// Contracts with documents to issue today.
    pub due: Counted,
    /// Rendered usage of this month.
    pub usage: Markup,
    /// Number of rejected events since yesterday, and the most frequent rejections.
    pub refused: (String, Value),
    /// First day of that count.
    pub refused_since: String,
    /// The last billing run; null if none exists.
    pub last_run: JsonAnswer<BillingRunJson>,
    /// Webhook endpoints.
    pub endpoints: JsonAnswer<Vec<WebhookEndpointJson>>,
    /// Result of the last ledger verification.
    pub verification: JsonAnswer<VerificationJson>,
    /// Whether the last ledger verification is long ago.
    pub is_verification_old: bool,
    /// The latest documents.
    pub documents: Value,
}

/// Renders the home page.
pub fn home(answers: &HomeAnswers) -> Markup {
    html! {
        h1 { "Home" }
        @if answers.is_begun {
            p.notice { "The setup is not complete. " a href=(href(&["start"])) { "Continue setup" } }
        }
        (section("Needs attention", &attention(answers)))
        (section("Billed per month", &billed(answers)))
        (section("Receivables by age", &receivables(answers)))
        (section("Usage this month", &answers.usage))
        @let documents = JsonView::of(&answers.documents);
        @if documents.elements().next().is_some() {
            (section("Latest documents", &table("Latest documents", &DOCUMENTS.some(LATEST_DOCUMENTS), documents)))
        }
    }
}

/// Returns the link to the filtered list.
fn listed(counted: &Counted) -> String {
    let narrowed: Vec<(&str, &str)> = counted.narrowed.iter().map(|(name, value)| (*name, value.as_str())).collect();
    address(counted.part, &narrowed)
}

/// Returns the URL of a part of the console with filters.
fn address(part: &str, narrowed: &[(&str, &str)]) -> String {
    let address = href(&[part]);
    if narrowed.is_empty() { address } else { format!("{address}?{}", query(narrowed)) }
}

/// Renders everything that an administrator should act on, each with its action, and below it the last automatic checks.
fn attention(answers: &HomeAnswers) -> Markup {
    let run = answers.last_run.view();
    let items = [failures(answers, run), due(answers), refused(answers)].into_iter().flatten();
    let items: Vec<Markup> = items.chain(failing_endpoints(answers)).chain(verification(answers)).collect();
    html! {
        @if items.is_empty() { p { "Nothing needs attention." } } @else {
            ul.attention { @for item in &items { li { (item) } } }
        }
        @if run.is_there() {
            p.muted {
                a href=(href(&["billing-runs", &run.run_ref().to_text()])) { "Last billing run" } ": "
                (instant(run.begun_at())) ", documents issued: " (grouped(&run.issued().to_text()))
                ", failures: " (grouped(&run.failed().to_text()))
            }
        }
        (verified(answers.verification.view()))
    }
}

/// Renders an item with its actions, the most important first.
fn item(what: &Markup, actions: &[(String, &str)]) -> Markup {
    html! {
        div { (what) }
        @if !actions.is_empty() {
            div.buttons {
                @for (index, (address, name)) in actions.iter().enumerate() {
                    a.button.plain[index > 0] href=(address) { (name) }
                }
            }
        }
    }
}

/// Renders the failures of the last billing run, if it has any.
fn failures(answers: &HomeAnswers, run: JsonView<'_, BillingRunJson>) -> Option<Markup> {
    let failed = run.failed();
    if !failed.is_amount() {
        return None;
    }
    let show = (href(&["billing-runs", &run.run_ref().to_text()]), "Show failures");
    let again = answers.may_bill.then(|| (href(&["new", "billing-runs"]), "Run billing again"));
    let what = html! { p { "Failures of the last billing run: " strong { (grouped(&failed.to_text())) } } };
    Some(item(&what, &[show].into_iter().chain(again).collect::<Vec<_>>()))
}

/// Renders the contracts with documents that are due, if any exist.
fn due(answers: &HomeAnswers) -> Option<Markup> {
    let due = &answers.due;
    if due.count.is_empty() || due.count == "0" {
        return None;
    }
    let bill = answers.may_bill.then(|| (href(&["new", "billing-runs"]), "Run billing"));
    let drafts = (address("documents", &[("state", "DRAFT")]), "Show drafts");
    let show = (listed(due), "Show contracts");
    let what = html! { p { "Contracts with documents to issue today: " strong { (due.count) } } };
    Some(item(&what, &bill.into_iter().chain([show, drafts]).collect::<Vec<_>>()))
}

/// Renders the usage rejected lately, if any was.
fn refused(answers: &HomeAnswers) -> Option<Markup> {
    let (count, most) = &answers.refused;
    if count == "0" {
        return None;
    }
    let what = html! {
        p { "Usage events rejected since yesterday, which are not billed: " strong { (grouped(count)) } }
        details {
            summary { "Most frequent reasons" }
            (table("Rejected usage since yesterday", &REFUSED.some(WHY), JsonView::of(most)))
        }
    };
    Some(item(&what, &[(address("refused", &[("from", &answers.refused_since)]), "Show rejected usage")]))
}

/// Renders the webhook endpoints that receive nothing: their attempts fail, or the service disabled them.
fn failing_endpoints(answers: &HomeAnswers) -> impl Iterator<Item = Markup> {
    let is_failing = |endpoint: &JsonView<'_, WebhookEndpointJson>| {
        endpoint.disabled_reason().is_there() || (endpoint.enabled().is_true() && endpoint.failing_since().is_there())
    };
    let shown = |endpoint: JsonView<'_, WebhookEndpointJson>| {
        let what = html! {
            p {
                "Webhook endpoint " strong { (endpoint.url().to_text()) }
                @if endpoint.disabled_reason().is_there() { " was disabled, because its deliveries failed" } @else {
                    ": deliveries fail since " (instant(endpoint.failing_since()))
                }
            }
        };
        item(&what, &[(href(&["webhooks", &endpoint.endpoint_ref().to_text()]), "Show endpoint")])
    };
    answers.endpoints.view().items().filter(is_failing).map(shown)
}

/// Renders what is wrong with the last ledger verification, if anything is.
fn verification(answers: &HomeAnswers) -> Option<Markup> {
    let verification = answers.verification.view();
    let errors = verification.wrong();
    let is_never = !verification.ended_at().is_there();
    if !is_never && !errors.is_amount() && !answers.is_verification_old {
        return None;
    }
    let command = html! { p.muted { "Run " code { "usage-billing verify --record" } " on the server to verify the ledger." } };
    let what = html! {
        @if is_never {
            p { "The ledger was never verified." }
        } @else if errors.is_amount() {
            p { "Errors found by the last ledger verification: " strong { (grouped(&errors.to_text())) } }
            details {
                summary { "Details" }
                ul { @for finding in verification.findings().items() {
                    li { (finding.subject().to_text()) ": " (name(finding.detail())) }
                } }
            }
        } @else {
            p { "The last ledger verification is more than 30 days old." }
        }
        (command)
    };
    Some(item(&what, &[]))
}

/// Renders time and extent of the last ledger verification.
fn verified(verification: JsonView<'_, VerificationJson>) -> Markup {
    html! {
        @if verification.ended_at().is_there() {
            p.muted {
                "Last ledger verification: " (instant(verification.ended_at()))
                ", documents: " (grouped(&verification.documents().to_text()))
                ", errors: " (grouped(&verification.wrong().to_text()))
            }
        }
    }
}

/// Renders a chart per currency, and the same data as a table. Bars link to the documents of their month.
fn billed(answers: &HomeAnswers) -> Markup {
    let rows = answers.billed.view();
    let currencies = currencies(rows);
    let of = |month: &ChartMonth, currency: &str| {
        rows.items().find(|row| row.issued_from().is(&month.first_day) && row.currency().is(currency))
    };
    let documents = |month: &ChartMonth, currency: Option<&str>| {
        let days = [("issued_from", month.first_day.as_str()), ("issued_to", month.last_day.as_str())];
        address("documents", &days.into_iter().chain(currency.map(|currency| ("currency", currency))).collect::<Vec<_>>())
    };
    let bar = |month: &ChartMonth, currency: &str| {
        let row = of(month, currency);
        let value = row.map_or_else(|| "0".to_owned(), |row| row.billed().to_text());
        let count = row.map_or_else(|| "0".to_owned(), |row| row.documents().to_text());
        let caption = format!("{}: {}, {}", month.caption, amount_text(&value, currency), count_text(&count, "document"));
        Bar { name: month.name.clone(), caption, value, href: documents(month, Some(currency)) }
    };
    html! {
        @if currencies.is_empty() { p.muted { "No documents were issued in the last 13 months." } } @else {
            div.figures { @for currency in currencies.iter().take(MAX_CHARTS) {
                figure {
                    figcaption { strong { (currency) } span.muted { ", invoices and debits less credits, by month of issue" } }
                    (month_bars(&answers.months.iter().map(|month| bar(month, currency)).collect::<Vec<_>>(), currencies.len() == 1))
                }
            } }
            details {
                summary { "Show as table" }
                div.scrolls tabindex="0" role="region" aria-label="Billed per month" {
                    table {
                        thead { tr {
                            th scope="col" { "Month" }
                            @for currency in &currencies { th.amount scope="col" { (currency) } }
                        } }
                        tbody { @for month in &answers.months { tr {
                            td { a href=(documents(month, None)) { (month.caption) } }
                            @for currency in &currencies {
                                @let billed = of(month, currency).map(|row| row.billed().to_text());
                                td.amount { (billed.map_or_else(none, |amount| amount_alone(&amount, currency))) }
                            }
                        } } }
                    }
                }
            }
        }
    }
}

/// Returns the currencies of a document summary, those with the most documents first.
fn currencies(rows: JsonView<'_, Vec<DocumentSummaryJson>>) -> Vec<String> {
    let mut currencies: Vec<(String, u64)> = Vec::new();
    for row in rows.items() {
        let (currency, documents) = (row.currency().to_text(), row.documents().json().as_u64().unwrap_or_default());
        match currencies.iter_mut().find(|(known, _)| *known == currency) {
            Some((_, count)) => *count += documents,
            None => currencies.push((currency, documents)),
        }
    }
    currencies.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    currencies.into_iter().map(|(currency, _)| currency).collect()
}

fn none() -> Markup {
    html! { "–" }
}

/// Renders the amounts due by age, with a column per currency.
fn receivables(answers: &HomeAnswers) -> Markup {
    let amounts = |counted: &Counted| -> Vec<(String, String)> {
        let pairs = counted.amounts.split(", ").filter_map(|one| one.split_once(' '));
        pairs.map(|(currency, amount)| (currency.to_owned(), amount.to_owned())).collect()
    };
    let all = answers.ages.iter().chain([&answers.owed]);
    let currencies: BTreeSet<String> = all.flat_map(amounts).map(|(currency, _)| currency).collect();
    let cells = |counted: &Counted| {
        let amounts = amounts(counted);
        html! {
            td.amount { (counted.count) }
            @for currency in &currencies {
                @let amount = amounts.iter().find(|(of, _)| of == currency);
                td.amount { (amount.map_or_else(none, |(_, amount)| amount_alone(amount, currency))) }
            }
        }
    };
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Receivables by age" {
            table {
                thead { tr {
                    th scope="col" { "Age" }
                    th.amount scope="col" { "Documents" }
                    @for currency in &currencies { th.amount scope="col" { (currency) } }
                } }
                tbody { @for age in &answers.ages { tr { td { a href=(listed(age)) { (age.name) } } (cells(age)) } } }
                tfoot { tr { th scope="row" { a href=(listed(&answers.owed)) { (answers.owed.name) } } (cells(&answers.owed)) } }
            }
        }
    }
}

/// Renders a chart per usage product with the running totals of this month and the month before, and the sums as a table.
pub fn usage_months(months: &UsageMonths) -> Markup {
    let UsageMonths { answers, slots, today, .. } = months;
    let all = series(answers, slots);
    let (Some(first), Some(last)) = (slots.first(), slots.get(*today)) else { return html! {} };
    let explore = |narrowed: &[(&str, &str)]| {
        let days = [("from", first.caption.as_str()), ("to", last.caption.as_str())];
        address("usage", &[narrowed, days.as_slice()].concat())
    };
    html! {
        @if all.is_empty() {
            p.muted { "No usage in this month and the month before. " a href=(href(&["refused"])) { "Show rejected usage" } }
        } @else {
            div.figures { @for series in all.iter().take(MAX_CHARTS) {
                @let compared = Compared::of(series, months);
                figure {
                    figcaption {
                        (series.caption())
                        @if !series.aggregation.adds_up() { span.muted { ", by day" } }
                        " " span.legend { span.now { "this month" } " " span.then { "month before" } }
                    }
                    (day_lines(&compared.now, &compared.before, all.len() == 1))
                }
            } }
            div.scrolls tabindex="0" role="region" aria-label="Usage this month" {
                table {
                    thead { tr {
                        th scope="col" { "Usage product" }
                        th.amount scope="col" { "This month" }
                        th.amount scope="col" { "Month before" }
                        th.amount scope="col" { "Change" }
                    } }
                    tbody { @for series in all.iter().take(MAX_PRODUCTS) {
                        @let compared = Compared::of(series, months);
                        tr {
                            td {
                                a href=(explore(&[("usage_product_ref", series.reference.as_str())])) { (series.name) }
                                @if !series.unit.is_empty() { span.muted { ", " (unit_of("", &series.unit)) } }
                            }
                            td.amount { (grouped(&digits(compared.so_far))) }
                            td.amount { (grouped(&digits(compared.until_then))) }
                            td.amount { (compared.change()) }
                        }
                    } }
                }
            }
            p.muted { "Compared with the same days of last month. " a href=(explore(&[])) { "Explore usage" } }
        }
    }
}

/// The usage of a product in two months, in billionths.
struct Compared {
    /// Running totals of this month by day, up to today. Quantities by day if they don't add up.
    now: Vec<i128>,
    /// The same for the whole month before.
    before: Vec<i128>,
    /// The usage of this month.
    so_far: i128,
    /// The usage of the month before up to the same day, or to its end if it is shorter.
    until_then: i128,
}

impl Compared {
    fn of(series: &Series, months: &UsageMonths) -> Self {
        let adds_up = series.aggregation.adds_up();
        let line = |days: &[(String, u64)]| {
            let mut total = 0;
            let day = |(quantity, _): &(String, u64)| {
                let quantity = billionths(quantity).unwrap_or_default();
                total = if adds_up { total + quantity } else { quantity };
                total
            };
            days.iter().map(day).collect::<Vec<i128>>()
        };
        let (before, now) = series.used.split_at(months.this_month.min(series.used.len()));
        let days = months.today.saturating_sub(months.this_month).saturating_add(1);
        let (now, before) = (line(&now[..days.min(now.len())]), line(before));
        let (so_far, until_then) = if adds_up {
            let same_day = now.len().min(before.len());
            (now.last().copied(), same_day.checked_sub(1).and_then(|day| before.get(day)).copied())
        } else {
            (Some(total_of(months.so_far.view(), &series.reference)), Some(total_of(months.until_then.view(), &series.reference)))
        };
        Self { now, before, so_far: so_far.unwrap_or_default(), until_then: until_then.unwrap_or_default() }
    }

    /// Returns the change in whole percent.
    fn change(&self) -> String {
        let (now, then) = (self.so_far, self.until_then);
        if then <= 0 {
            return "–".to_owned();
        }
        let Some(percent) = now.checked_sub(then).and_then(|more| more.checked_mul(HUNDRED)).map(|more| more / then) else {
            return "–".to_owned();
        };
        let sign = if percent > 0 { "+" } else { "" };
        format!("{sign}{} %", grouped(&percent.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counted(name: &'static str, count: &str, amounts: &str) -> Counted {
        let narrowed = vec![("due_to", "2026-08-22".to_owned()), ("has_amount_due", "true".to_owned())];
        Counted { name, count: count.to_owned(), amounts: amounts.to_owned(), part: "documents", narrowed }
    }

    fn month(day: &str, last_day: &str, name: &str) -> ChartMonth {
        ChartMonth {
            first_day: day.to_owned(),
            last_day: last_day.to_owned(),
            name: name.to_owned(),
            caption: format!("{name} 2026"),
        }
    }

    fn quiet() -> HomeAnswers {
        HomeAnswers {
            is_begun: false,
            may_bill: true,
            months: vec![month("2026-10-01", "2026-10-31", "Oct"), month("2026-11-01", "2026-11-30", "Nov")],
            billed: json!([]).into(),
            ages: Vec::new(),
            owed: counted("All amounts due", "0", ""),
            due: counted("Due", "0", ""),
            usage: html! { p { "1,500 this month" } },
            refused: ("0".to_owned(), json!([])),
            refused_since: "2026-11-19".to_owned(),
            last_run: Value::Null.into(),
            endpoints: json!([]).into(),
            verification: json!({"ended_at": "2026-11-20T01:00:09Z", "documents": 1234, "wrong": 0, "findings": []}).into(),
            is_verification_old: false,
            documents: json!([]),
        }
    }

    #[test]
    fn what_needs_attention_stands_beside_its_action() {
        let page = home(&HomeAnswers {
            due: counted("Due", "12", ""),
            refused: ("1700".to_owned(), json!([{"day": "2026-11-20", "detail": "unknown customer", "count": 1700}])),
            last_run: json!({"run_ref": "r1", "begun_at": "2026-11-20T00:10:00Z", "issued": 40, "failed": 2}).into(),
            verification: json!({
                "ended_at": "2026-11-20T01:00:09Z", "documents": 3, "wrong": 1200,
                "findings": [{"subject": "UB-INV-<1>", "detail": "the total is off"}],
            })
            .into(),
            ..quiet()
        })
        .into_string();
        let (attention, _) = page.split_once("Billed per month").expect("the next section");
        assert_eq!(attention.matches("<li><div>").count(), 4, "{attention}");
        assert!(attention.contains("Failures of the last billing run: <strong>2</strong>"), "{attention}");
        assert!(attention.contains("href=\"/console/billing-runs/r1\">Show failures") && attention.contains("unknown customer"));
        assert!(attention.contains("<strong>12</strong>") && attention.contains("href=\"/console/new/billing-runs\""));
        assert!(attention.contains("<strong>1,700</strong>"), "{attention}");
        assert!(attention.contains("href=\"/console/refused?from=2026-11-19\">Show rejected usage"), "{attention}");
        assert!(attention.contains("<strong>1,200</strong>"), "{attention}");
        assert!(attention.contains("UB-INV-&lt;1&gt;: the total is off") && attention.contains("verify --record"), "{attention}");
    }

    #[test]
    fn endpoints_that_fail_need_attention() {
        let endpoint = |url: &str, enabled: bool, failing_since: Value, disabled_reason: Value| json!({"endpoint_ref": "e<", "url": url, "enabled": enabled, "failing_since": failing_since, "disabled_reason": disabled_reason});
        let since = || json!("2026-11-20T01:00:00Z");
        let endpoints = json!([
            endpoint("https://a.test", true, since(), Value::Null),
            endpoint("https://b.test", false, since(), json!("FAILING")),
            endpoint("https://c.test", false, since(), Value::Null),
            endpoint("https://d.test", true, Value::Null, Value::Null),
        ]);
        let page = home(&HomeAnswers { endpoints: endpoints.into(), ..quiet() }).into_string();
        let (attention, _) = page.split_once("Billed per month").expect("the next section");
        assert_eq!(attention.matches("<li><div>").count(), 2, "{attention}");
        assert!(
            attention.contains("https://a.test</strong>: deliveries fail since")
                && attention.contains("https://b.test</strong> was disabled"),
            "{attention}"
        );
        assert!(attention.contains("/console/webhooks/e%3C\">Show endpoint"), "{attention}");
    }

    #[test]
    fn a_reader_has_no_action_and_quiet_books_need_none() {
        let calm = home(&quiet()).into_string();
        assert!(calm.contains("Nothing needs attention.") && calm.contains("documents: 1,234, errors: 0"), "{calm}");
        let reader = home(&HomeAnswers { due: counted("Due", "1", ""), may_bill: false, ..quiet() }).into_string();
        assert!(!reader.contains("/new/billing-runs") && reader.contains("Show contracts"), "{reader}");
        let old = home(&HomeAnswers { is_verification_old: true, ..quiet() }).into_string();
        assert!(old.contains("more than 30 days old") && old.contains("verify --record"), "{old}");
        let never = json!({"ended_at": null, "documents": 0, "wrong": 0, "findings": []});
        let never = home(&HomeAnswers { verification: never.into(), ..quiet() }).into_string();
        assert!(never.contains("never verified") && !never.contains("Last ledger verification"), "{never}");
    }

    #[test]
    fn each_amount_leads_to_its_documents() {
        let amount = |text: &str| -> Value { serde_json::from_str(text).expect("a number") };
        let row = |month: &str, currency: &str, documents: u64, billed: &str| json!({"issued_from": month, "currency": currency, "documents": documents, "billed": amount(billed)});
        let page = home(&HomeAnswers {
            billed: json!([
                row("2026-10-01", "JPY", 1, "500"),
                row("2026-11-01", "EUR", 3, "1234.50"),
                row("2026-11-01", "JPY", 1, "-70"),
            ])
            .into(),
            ages: vec![counted("More than 90 days overdue", "3", "EUR 5060.00, JPY 5"), counted("Not due yet", "0", "")],
            owed: counted("All amounts due", "3", "EUR 5060.00, JPY 5"),
            ..quiet()
        })
        .into_string();
        // The currency with more documents comes first.
        let (euro, yen) = (page.find("<strong>EUR").expect("EUR"), page.find("<strong>JPY").expect("JPY"));
        assert!(euro < yen, "{page}");
        let november = "/console/documents?issued_from=2026-11-01&amp;issued_to=2026-11-30";
        assert!(
            page.contains(&format!("{november}&amp;currency=EUR")) && page.contains(&format!("{november}\">Nov 2026")),
            "{page}"
        );
        assert!(page.contains("Nov 2026: 1,234.50 EUR, 3 documents") && page.contains("title=\"-70 JPY\""), "{page}");
        assert_eq!(page.matches("/console/documents?due_to=2026-08-22&amp;has_amount_due=true").count(), 3, "{page}");
        assert!(page.contains("title=\"5060.00 EUR\">5,060.00<") && page.contains("title=\"5 JPY\""), "{page}");
        assert!(home(&quiet()).into_string().contains("No documents were issued"));
    }

    /// Returns buckets of the last two days of a month and the first three of the next.
    fn days() -> Vec<ChartBucket> {
        let day = |day: &str| {
            let at = format!("{day}T00:00:00Z");
            ChartBucket {
                starts: at.clone(),
                from: at.clone(),
                to: at,
                name: day.to_owned(),
                caption: day.to_owned(),
                closer: None,
            }
        };
        ["2026-10-30", "2026-10-31", "2026-11-01", "2026-11-02", "2026-11-03"].map(day).to_vec()
    }

    #[test]
    fn this_month_is_compared_with_the_same_days_of_the_month_before() {
        let row = |day: &str, product: &str, quantity: u64| json!({"from": format!("{day}T00:00:00Z"), "usage_product_ref": product, "quantity": quantity, "events": 1});
        let answers = UsageAnswers {
            summary: json!([
                row("2026-10-30", "calls", 1000),
                row("2026-10-31", "calls", 9000),
                row("2026-11-01", "calls", 1500),
                row("2026-11-03", "calls", 77),
                row("2026-11-01", "<b>", 5),
            ])
            .into(),
            usage_products: json!([{"usage_product_ref": "calls", "name": "API calls", "unit": "call"}]).into(),
        };
        let months = |answers: &UsageAnswers, today| {
            let total = |quantity: u64| json!([{"usage_product_ref": "calls", "quantity": quantity}]);
            let (answers, slots) = (answers.clone(), days());
            UsageMonths { answers, slots, this_month: 2, today, so_far: total(1500).into(), until_then: total(9000).into() }
        };
        let of = |today| usage_months(&months(&answers, today)).into_string();
        let cells = |page: &str| -> Vec<String> {
            page.split("<td class=\"amount\">").skip(1).filter_map(|rest| rest.split('<').next()).map(str::to_owned).collect()
        };
        let first = of(2);
        assert_eq!(cells(&first), ["1,500", "1,000", "+50 %", "5", "0", "–"], "{first}");
        assert!(
            first.contains("usage_product_ref=calls&amp;from=2026-10-30&amp;to=2026-11-01") && !first.contains("<b>"),
            "{first}"
        );
        assert_eq!(first.matches("<polyline").count(), 4, "two lines for each usage product: {first}");
        // The largest quantity is not the sum of the days.
        let product = json!({"usage_product_ref": "calls", "name": "Seats", "unit": "seat", "aggregation": "MAX"});
        let largest =
            usage_months(&months(&UsageAnswers { usage_products: json!([product]).into(), ..answers.clone() }, 4)).into_string();
        assert_eq!(cells(&largest)[..3], ["1,500", "9,000", "\u{2212}83 %"]);
        assert!(largest.contains("largest quantity of each customer") && largest.contains(", by day"), "{largest}");
        // The month before has only two days.
        assert_eq!(cells(&of(4))[..3], ["1,577", "10,000", "\u{2212}84 %"]);
        let nothing = UsageAnswers { summary: json!([]).into(), usage_products: json!([]).into() };
        assert!(usage_months(&months(&nothing, 3)).into_string().contains("No usage"));
    }
}
