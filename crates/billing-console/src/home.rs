//! The home page: amounts due and their age, due documents, rejected usage and current usage.

use maud::{Markup, html};
use serde_json::Value;

use crate::json_view::JsonView;
use crate::list::table;
use crate::listings::{DOCUMENTS, LATEST_DOCUMENTS, REFUSED, WHY};
use crate::parts::{amounts, grouped, href, instant, link, query, section};
use crate::usage::{TimeComparison, UsageAnswers, comparison};

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

/// Today's usage and that of an earlier day up to the same time.
#[derive(Clone, Debug)]
pub struct UsageToday {
    /// Today's usage.
    pub now: UsageAnswers,
    /// Usage summary of the earlier day.
    pub before: Value,
    /// The two days.
    pub days: (String, String),
}

/// API responses for the home page.
#[derive(Clone, Debug)]
pub struct HomeAnswers {
    /// Whether the setup up to the first invoice is incomplete.
    pub is_begun: bool,
    /// Cards at the top of the page.
    pub cards: Vec<Counted>,
    /// Amounts due by days overdue.
    pub ages: Vec<Counted>,
    /// Rendered usage of today.
    pub usage: Markup,
    /// Number of rejected events since yesterday, and the most frequent rejections.
    pub refused: (String, Value),
    /// First day of that count.
    pub refused_since: String,
    /// The last billing run; null if none exists.
    pub last_run: Value,
    /// Result of the last ledger verification.
    pub verification: Value,
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
        div.cards {
            @for counted in &answers.cards { (card(counted)) }
            (last_run(JsonView(&answers.last_run)))
            (verified(JsonView(&answers.verification)))
        }
        (section("Amount due by age", &ages(&answers.ages)))
        (section("Usage today", &answers.usage))
        (section("Rejected usage since yesterday", &refused(answers)))
        @if JsonView(&answers.documents).items().next().is_some() {
            (section("Latest documents", &table("Latest documents", &DOCUMENTS.some(LATEST_DOCUMENTS), JsonView(&answers.documents))))
        }
    }
}

/// Returns the link to the filtered list.
fn listed(counted: &Counted) -> String {
    let narrowed: Vec<(&str, &str)> = counted.narrowed.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let address = href(&[counted.part]);
    if narrowed.is_empty() { address } else { format!("{address}?{}", query(&narrowed)) }
}

fn card(counted: &Counted) -> Markup {
    html! {
        div.card {
            h2 { (link(Some(listed(counted)), counted.name)) }
            @if counted.amounts.is_empty() { p { (counted.count) } } @else {
                p { (amounts(&counted.amounts)) }
                p.muted { (counted.count) " documents" }
            }
        }
    }
}

/// Renders the failures of the last billing run, if one exists.
fn last_run(run: JsonView<'_>) -> Markup {
    html! {
        @if run.is_there() { div.card {
            h2 { a href=(href(&["billing-runs", &run.at("run_ref").text()])) { "Failures of the last billing run" } }
            p { (run.at("failed").text()) }
        } }
    }
}

/// Renders time and result of the last ledger verification.
fn verified(verification: JsonView<'_>) -> Markup {
    let findings = verification.at("findings");
    html! {
        div.card {
            h2 { "Last ledger verification" }
            @if verification.at("ended_at").is_there() {
                p { (instant(verification.at("ended_at"))) }
                @match verification.at("wrong").text().as_str() {
                    "0" => p.muted { "No errors found in " (grouped(&verification.at("documents").text())) " documents" },
                    wrong => {
                        p { strong { (grouped(wrong)) } " errors found" }
                        details {
                            summary { "Details" }
                            ul { @for finding in findings.items() { li { (finding.at("subject").text()) ": " (finding.at("detail").text()) } } }
                        }
                    },
                }
            } @else {
                p.muted { "Never. Run " code { "usage-billing verify --record" } " to verify the ledger." }
            }
        }
    }
}

fn ages(ages: &[Counted]) -> Markup {
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Amount due by age" {
            table {
                thead { tr { th scope="col" { "Age" } th.amount scope="col" { "Documents" } th.amount scope="col" { "Amount due" } } }
                tbody { @for age in ages { tr {
                    td { a href=(listed(age)) { (age.name) } }
                    td.amount { (age.count) }
                    td.amount { @if age.amounts.is_empty() { "–" } @else { (amounts(&age.amounts)) } }
                } } }
            }
        }
    }
}

/// Renders today's usage beside that of the earlier day.
pub fn usage_today(today: &UsageToday) -> Markup {
    let UsageToday { now, before, days } = today;
    let day = |day: &str| format!("{}?{}", href(&["usage"]), query(&[("from", day), ("to", day)]));
    let before_until = ("One month ago, until this time", day(&days.1));
    comparison(now, before, &TimeComparison { now: ("Today", day(&days.0)), before: before_until })
}

fn refused(answers: &HomeAnswers) -> Markup {
    let (count, most) = &answers.refused;
    html! {
        @if count == "0" { p { "No rejected usage." } } @else {
            p { strong { (count) } " events were rejected and are not billed." }
            (table("Rejected usage since yesterday", &REFUSED.some(WHY), JsonView(most)))
            p { a href=(format!("{}?{}", href(&["refused"]), query(&[("from", &answers.refused_since)]))) { "All rejected usage" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counted(name: &'static str, amounts: &str) -> Counted {
        let narrowed = vec![("due_to", "2026-08-22".to_owned()), ("has_amount_due", "true".to_owned())];
        Counted { name, count: "3".to_owned(), amounts: amounts.to_owned(), part: "documents", narrowed }
    }

    #[test]
    fn each_number_leads_to_what_it_counts() {
        let page = home(&HomeAnswers {
            is_begun: false,
            cards: vec![counted("Drafts", "")],
            ages: vec![counted("Over 90 days", "EUR 5060.00, JPY 5"), counted("Not due yet", "")],
            usage: html! { p { "1,500 today" } },
            refused: ("7".to_owned(), json!([{"day": "2026-11-20", "code": "unknown_reference", "count": 7}])),
            refused_since: "2026-11-19".to_owned(),
            last_run: json!({"run_ref": "r1", "failed": 2}),
            verification: json!({
                "begun_at": "2026-11-20T01:00:00Z", "ended_at": "2026-11-20T01:00:09Z", "documents": 3, "wrong": 1200,
                "findings": [{"subject": "UB-INV-<1>", "detail": "the total is off"}],
            }),
            documents: json!([]),
        })
        .into_string();
        assert!(page.contains("1,200</strong> errors found") && page.contains("UB-INV-&lt;1&gt;: the total is off"), "{page}");
        assert_eq!(page.matches("/console/documents?due_to=2026-08-22&amp;has_amount_due=true").count(), 3, "{page}");
        assert!(page.contains("/console/billing-runs/r1"), "{page}");
        assert!(page.contains("5,060.00 <") && page.contains("JPY") && page.contains("unknown_reference"), "{page}");
        assert!(page.contains("/console/refused?from=2026-11-19") && page.contains("1,500 today"), "{page}");
    }

    #[test]
    fn the_books_were_verified_or_never() {
        let shown = |verification| verified(JsonView(&verification)).into_string();
        let never = shown(json!({"begun_at": null, "ended_at": null, "documents": 0, "wrong": 0, "findings": []}));
        assert!(never.contains("Never") && never.contains("verify --record"), "{never}");
        let clean = shown(json!({"ended_at": "2026-11-20T01:00:09Z", "documents": 1234, "wrong": 0, "findings": []}));
        assert!(clean.contains("No errors found in 1,234 documents") && clean.contains("2026-11-20"), "{clean}");
    }
}
