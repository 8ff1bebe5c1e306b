//! The first page: is billing healthy? What is owed and since when, what is due, what is refused, what is used.

use maud::{Markup, html};
use serde_json::Value;

use crate::json_view::JsonView;
use crate::list::table;
use crate::listings::{DOCUMENTS, LATEST_DOCUMENTS, REFUSED, WHY};
use crate::parts::{amounts, grouped, href, instant, link, query, section};
use crate::usage::{TimeComparison, UsageAnswers, comparison};

/// How many there are of something, and where they are listed.
#[derive(Clone, Debug)]
pub struct Counted {
    /// What.
    pub name: &'static str,
    /// How many.
    pub count: String,
    /// What is left to pay of them, by currency; empty where nothing is.
    pub amounts: String,
    /// The part of the console that lists them.
    pub part: &'static str,
    /// What that is narrowed to.
    pub narrowed: Vec<(&'static str, String)>,
}

/// Usage of today, and of a day before until the same time.
#[derive(Clone, Debug)]
pub struct UsageToday {
    /// Today's.
    pub now: UsageAnswers,
    /// That day's.
    pub before: Value,
    /// The days.
    pub days: (String, String),
}

/// What the interface answers for the first page.
#[derive(Clone, Debug)]
pub struct HomeAnswers {
    /// Whether a step to the first invoice is still to be taken.
    pub is_begun: bool,
    /// What stands first.
    pub cards: Vec<Counted>,
    /// What is left to pay, by how long it is overdue.
    pub ages: Vec<Counted>,
    /// Usage of today, as it is shown.
    pub usage: Markup,
    /// How many events were refused since yesterday, and what the most of them were.
    pub refused: (String, Value),
    /// The first day of that.
    pub refused_since: String,
    /// The last billing run; nothing where there was none.
    pub last_run: Value,
    /// What the last verification of the books found.
    pub verification: Value,
    /// The latest documents.
    pub documents: Value,
}

/// The body of the first page.
pub fn home(answers: &HomeAnswers) -> Markup {
    html! {
        h1 { "Home" }
        @if answers.is_begun {
            p.notice { "The way to the first invoice isn't complete yet. " a href=(href(&["start"])) { "Go on with the first steps" } }
        }
        div.cards {
            @for counted in &answers.cards { (card(counted)) }
            (last_run(JsonView(&answers.last_run)))
            (verified(JsonView(&answers.verification)))
        }
        (section("Left to pay, by age", &ages(&answers.ages)))
        (section("Usage today", &answers.usage))
        (section("Refused usage since yesterday", &refused(answers)))
        @if JsonView(&answers.documents).items().next().is_some() {
            (section("Latest documents", &table("Latest documents", &DOCUMENTS.some(LATEST_DOCUMENTS), JsonView(&answers.documents))))
        }
    }
}

/// Where counted things are listed.
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

/// What failed in the last billing run, where one was.
fn last_run(run: JsonView<'_>) -> Markup {
    html! {
        @if run.is_there() { div.card {
            h2 { a href=(href(&["billing-runs", &run.at("run_ref").text()])) { "Failures of the last billing run" } }
            p { (run.at("failed").text()) }
        } }
    }
}

/// When the books were verified, and what was found.
fn verified(verification: JsonView<'_>) -> Markup {
    let findings = verification.at("findings");
    html! {
        div.card {
            h2 { "Books last verified" }
            @if verification.at("ended_at").is_there() {
                p { (instant(verification.at("ended_at"))) }
                @match verification.at("wrong").text().as_str() {
                    "0" => p.muted { "Every invariant holds: " (grouped(&verification.at("documents").text())) " documents" },
                    wrong => {
                        p { strong { (grouped(wrong)) } " wrong" }
                        details {
                            summary { "What" }
                            ul { @for finding in findings.items() { li { (finding.at("subject").text()) ": " (finding.at("detail").text()) } } }
                        }
                    },
                }
            } @else {
                p.muted { "Never: " code { "usage-billing verify --record" } }
            }
        }
    }
}

fn ages(ages: &[Counted]) -> Markup {
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Left to pay, by age" {
            table {
                thead { tr { th scope="col" { "Age" } th.amount scope="col" { "Documents" } th.amount scope="col" { "Left to pay" } } }
                tbody { @for age in ages { tr {
                    td { a href=(listed(age)) { (age.name) } }
                    td.amount { (age.count) }
                    td.amount { @if age.amounts.is_empty() { "–" } @else { (amounts(&age.amounts)) } }
                } } }
            }
        }
    }
}

/// Usage of today beside that of a day before.
pub fn usage_today(today: &UsageToday) -> Markup {
    let UsageToday { now, before, days } = today;
    let day = |day: &str| format!("{}?{}", href(&["usage"]), query(&[("from", day), ("to", day)]));
    let before_until = ("A month before, until this time", day(&days.1));
    comparison(now, before, &TimeComparison { now: ("Today so far", day(&days.0)), before: before_until })
}

fn refused(answers: &HomeAnswers) -> Markup {
    let (count, most) = &answers.refused;
    html! {
        @if count == "0" { p { "None." } } @else {
            p { strong { (count) } " events were refused, and aren't billed." }
            (table("Refused usage since yesterday", &REFUSED.some(WHY), JsonView(most)))
            p { a href=(format!("{}?{}", href(&["refused"]), query(&[("from", &answers.refused_since)]))) { "All of it" } }
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
        assert!(page.contains("1,200</strong> wrong") && page.contains("UB-INV-&lt;1&gt;: the total is off"), "{page}");
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
        assert!(clean.contains("Every invariant holds: 1,234 documents") && clean.contains("2026-11-20"), "{clean}");
    }
}
