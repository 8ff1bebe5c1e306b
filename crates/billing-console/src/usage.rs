//! The usage explorer: charts of usage whose bars link to shorter periods, with the events and rejections of the same
//! period.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Bar, bars};
use crate::figure::{billionths, digits};
use crate::filters::field;
use crate::list::{Filter, table};
use crate::listings::{REFUSED, WHY};
use crate::parts::{day_of, grouped, href, isolated, query, section};
use crate::unit_of;
use billing_api::dto::summary::SummaryLineJson;
use billing_api::dto::usage_products::UsageProductJson;
use billing_api::json_view::{JsonAnswer, JsonView};

/// Maximum number of bars on a page, which keeps the page below 100 KB.
const MAX_DRAWN: usize = 186;
/// Number of filters that select the period. They come first.
const TIME: usize = 3;
/// Maximum number of charts on a page.
const MAX_CHARTS: usize = 4;
/// Maximum number of charts of a customer's recent usage.
const MOST_LATELY: usize = 2;

/// The interval of a bar.
#[derive(Clone, Debug)]
pub struct ChartBucket {
    /// Start of the interval as in the usage summary.
    pub starts: String,
    /// Start of the counted events, inclusive.
    pub from: String,
    /// End of the counted events, exclusive.
    pub to: String,
    /// Label below the bar.
    pub name: String,
    /// Name of the day, hour or month.
    pub caption: String,
    /// Explorer query for this interval alone; `None` for the shortest interval.
    pub closer: Option<Vec<(&'static str, String)>>,
}

/// API responses about usage in a period.
#[derive(Clone, Debug)]
pub struct UsageAnswers {
    /// Quantities by interval and usage product.
    pub summary: JsonAnswer<Vec<SummaryLineJson>>,
    /// Usage products with their units and aggregations.
    pub usage_products: JsonAnswer<Vec<UsageProductJson>>,
}

impl UsageAnswers {
    /// Returns whether the quantity of a usage product in several intervals is not the sum of its quantities in each.
    pub fn needs_totals(&self) -> bool {
        let product = |row: JsonView<'_, SummaryLineJson>| product(self, &row.usage_product_ref().to_text()).map(aggregation);
        self.summary.view().items().filter_map(product).any(|aggregation| !aggregation.adds_up())
    }
}

/// The aggregation of a usage product's quantities, for each customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregation {
    Sum,
    Count,
    Max,
    Latest,
    Unique,
}

impl Aggregation {
    /// Returns whether the quantity in several intervals is the sum of the quantities in each.
    pub(crate) const fn adds_up(self) -> bool {
        matches!(self, Self::Sum | Self::Count)
    }

    /// Returns the description of a quantity; empty for a sum.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Sum => "",
            Self::Count => "number of events",
            Self::Max => "largest quantity of each customer",
            Self::Latest => "latest quantity of each customer",
            Self::Unique => "number of distinct values of each customer",
        }
    }
}

fn aggregation(product: JsonView<'_, UsageProductJson>) -> Aggregation {
    match product.profile().aggregation().json().as_str() {
        Some("COUNT") => Aggregation::Count,
        Some("MAX") => Aggregation::Max,
        Some("LATEST") => Aggregation::Latest,
        Some("UNIQUE") => Aggregation::Unique,
        _ => Aggregation::Sum,
    }
}

fn product<'a>(answers: &'a UsageAnswers, reference: &str) -> Option<JsonView<'a, UsageProductJson>> {
    answers.usage_products.view().items().find(|product| product.usage_product_ref().is(reference))
}

/// Returns the quantity of a usage product in a summary without intervals.
pub(crate) fn total_of(totals: JsonView<'_, Vec<SummaryLineJson>>, reference: &str) -> i128 {
    let row = totals.items().find(|row| row.usage_product_ref().is(reference));
    row.and_then(|row| billionths(&row.quantity().to_text())).unwrap_or_default()
}

/// The period and filters of usage charts.
#[derive(Clone, Debug)]
pub struct Span {
    /// Filters other than the time, as API parameters.
    pub narrowed: Vec<(String, String)>,
    /// Intervals in order.
    pub slots: Vec<ChartBucket>,
}

/// Content of the explorer beside its charts.
#[derive(Clone, Debug)]
pub struct Explored {
    /// Available filters.
    pub filters: Vec<Filter>,
    /// Names of the objects that filters select, by query parameter.
    pub names: Vec<(String, String)>,
    /// First and last day.
    pub days: (String, String),
    /// Time zone of the days.
    pub zone: String,
    /// Length of the intervals.
    pub interval: String,
    /// Whether the intervals are longer than requested.
    pub is_coarser: bool,
    /// Labels and explorer queries of other periods.
    pub elsewhere: Vec<(&'static str, Vec<(&'static str, String)>)>,
    /// Usage rejected in the period.
    pub refused: Value,
}

/// The usage of one usage product.
pub(crate) struct Series {
    pub(crate) reference: String,
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) aggregation: Aggregation,
    /// Quantity in the API's digits and number of events, per interval.
    pub(crate) used: Vec<(String, u64)>,
    sum: i128,
    events: u64,
}

impl Series {
    /// Returns the quantity over all intervals. `totals` is the summary without intervals.
    fn total(&self, totals: JsonView<'_, Vec<SummaryLineJson>>) -> i128 {
        if self.aggregation.adds_up() { self.sum } else { total_of(totals, &self.reference) }
    }

    /// Renders the heading of a chart: name, unit and aggregation.
    pub(crate) fn caption(&self) -> Markup {
        html! {
            strong { (isolated(&self.name)) }
            @for more in [unit_of("", &self.unit).as_str(), self.aggregation.description()] {
                @if !more.is_empty() { span.muted { ", " (more) } }
            }
        }
    }
}

/// Returns usage by usage product, in descending order of events.
pub(crate) fn series(answers: &UsageAnswers, slots: &[ChartBucket]) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in answers.summary.view().items() {
        let reference = row.usage_product_ref().to_text();
        let Some(slot) = slots.iter().position(|slot| row.from().is(&slot.starts)) else { continue };
        let index = all.iter().position(|series| series.reference == reference).unwrap_or_else(|| {
            all.push(named(answers, reference, slots.len()));
            all.len() - 1
        });
        let (quantity, events) = (row.quantity().to_text(), row.events().json().as_u64().unwrap_or_default());
        let series = &mut all[index];
        series.sum += billionths(&quantity).unwrap_or_default();
        series.events += events;
        series.used[slot] = (quantity, events);
    }
    all.sort_by(|a, b| (b.events, &a.reference).cmp(&(a.events, &b.reference)));
    all
}

fn named(answers: &UsageAnswers, reference: String, slots: usize) -> Series {
    let product = product(answers, &reference);
    let name = product
        .filter(|product| product.profile().name().is_there())
        .map_or_else(|| reference.clone(), |product| product.profile().name().to_text());
    let unit = product.map(|product| product.profile().unit().to_text()).unwrap_or_default();
    let aggregation = product.map_or(Aggregation::Sum, aggregation);
    Series { reference, name, unit, aggregation, used: vec![("0".to_owned(), 0); slots], sum: 0, events: 0 }
}

/// Returns the explorer query with additional parameters.
fn explorer(narrowed: &[(String, String)], more: &[(&str, &str)]) -> String {
    let is_said = |name: &str| more.iter().any(|(submitted, _)| *submitted == name);
    let kept = narrowed.iter().map(|(name, value)| (name.as_str(), value.as_str())).filter(|(name, _)| !is_said(name));
    query(&kept.chain(more.iter().copied()).collect::<Vec<_>>())
}

/// Returns the link to the events of an interval.
fn events(narrowed: &[(String, String)], more: &[(&str, &str)]) -> String {
    let of_events: Vec<(String, String)> = narrowed.iter().filter(|(name, _)| name != "timezone").cloned().collect();
    format!("{}?{}", href(&["events"]), explorer(&of_events, more))
}

fn pairs<'s>(submitted: &'s [(&'static str, String)]) -> Vec<(&'s str, &'s str)> {
    submitted.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// Renders charts for the usage products with the most events, and the same data as a table. Bars link to the explorer.
pub(crate) fn charts(answers: &UsageAnswers, span: &Span, most: usize) -> Markup {
    let Span { narrowed, slots } = span;
    let all = series(answers, slots);
    let drawn = &all[..all.len().min(most).min((MAX_DRAWN / slots.len().max(1)).max(1))];
    html! {
        @for series in drawn {
            figure {
                figcaption { (series.caption()) }
                (bars(&format!("Chart of {}", series.name), &bars_of(series, narrowed, slots)))
            }
        }
        @if !drawn.is_empty() { (as_table(drawn, narrowed, slots)) }
    }
}

fn bars_of(series: &Series, narrowed: &[(String, String)], slots: &[ChartBucket]) -> Vec<Bar> {
    let bar = |(slot, (quantity, count)): (&ChartBucket, &(String, u64))| {
        let of_series = ("usage_product_ref", series.reference.as_str());
        let closer = match &slot.closer {
            Some(closer) => {
                format!("{}?{}", href(&["usage"]), explorer(narrowed, &[&[of_series], pairs(closer).as_slice()].concat()))
            }
            None => events(narrowed, &[of_series, ("from", &slot.from), ("to", &slot.to)]),
        };
        let caption = format!("{}: {} {}, events: {count}", slot.caption, grouped(quantity), unit_of(quantity, &series.unit));
        Bar { name: slot.name.clone(), caption, value: quantity.clone(), href: closer }
    };
    slots.iter().zip(&series.used).map(bar).collect()
}

/// Renders the charts' data as a table with links to the events.
fn as_table(drawn: &[Series], narrowed: &[(String, String)], slots: &[ChartBucket]) -> Markup {
    let is_used = |slot: usize| drawn.iter().any(|series| series.used[slot].1 > 0);
    html! {
        details {
            summary { "Show as table" }
            div.scrolls tabindex="0" role="region" aria-label="Usage as a table" {
                table {
                    thead { tr {
                        th scope="col" { "Time" }
                        @for series in drawn { th.amount scope="col" { (isolated(&series.name)) @if !series.unit.is_empty() { ", " (unit_of("", &series.unit)) } } }
                    } }
                    tbody { @for (index, slot) in slots.iter().enumerate().filter(|(index, _)| is_used(*index)) { tr {
                        td { a href=(events(narrowed, &[("from", &slot.from), ("to", &slot.to)])) { (slot.caption) } }
                        @for series in drawn { td.amount { (grouped(&series.used[index].0)) } }
                    } } }
                }
            }
        }
    }
}

/// Renders the explorer's page around its sums.
pub fn usage(sums: &Markup, span: &Span, explored: &Explored) -> Markup {
    html! {
        h1 { "Usage" }
        (narrowing(explored))
        p {
            (day_of(&explored.days.0)) " – " (day_of(&explored.days.1))
            ", by " (explored.interval) ", " (explored.zone)
            @if explored.is_coarser { span.muted { ". Shorter intervals would have too many bars." } }
        }
        (sums)
        (section("Rejected usage", &refused(span, explored)))
    }
}

/// Renders the explorer's charts and totals. `totals` is the summary without intervals, or null if the sums over the intervals are
/// the totals.
pub fn usage_sums(answers: &UsageAnswers, whole: JsonView<'_, Vec<SummaryLineJson>>, span: &Span) -> Markup {
    let all = series(answers, &span.slots);
    html! {
        @if all.is_empty() {
            p { "No usage in this period." }
        } @else {
            (charts(answers, span, MAX_CHARTS))
            (section("Totals", &totals(&all, whole, span)))
        }
    }
}

/// Renders a customer's charts.
pub fn usage_lately(answers: &UsageAnswers, span: &Span) -> Markup {
    html! {
        @if answers.summary.view().items().next().is_none() { p.muted { "No usage." } } @else { (charts(answers, span, MOST_LATELY)) }
    }
}

fn narrowing(explored: &Explored) -> Markup {
    html! {
        form method="get" action=(href(&["usage"])) {
            @let (time, others) = explored.filters.split_at(explored.filters.len().min(TIME));
            div.filters { @for filter in time { (field("usage", filter, &explored.names)) } button { "Apply" } }
            details open[others.iter().any(|filter| !filter.value.is_empty())] {
                summary { "Filters" }
                div.filters { @for filter in others { (field("usage", filter, &explored.names)) } }
            }
        }
        nav.pages aria-label="Other periods" {
            @for (name, submitted) in &explored.elsewhere { a href=(format!("?{}", query(&pairs(submitted)))) { (name) } }
        }
    }
}

fn totals(all: &[Series], totals: JsonView<'_, Vec<SummaryLineJson>>, span: &Span) -> Markup {
    let (Some(first), Some(last)) = (span.slots.first(), span.slots.last()) else { return html! {} };
    let whole = [("from", first.from.as_str()), ("to", last.to.as_str())];
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Totals" {
            table {
                thead { tr { th scope="col" { "Usage product" } th.amount scope="col" { "Quantity" } th scope="col" { "Unit" } th.amount scope="col" { "Events" } } }
                tbody { @for series in all { @let total = digits(series.total(totals)); tr {
                    td {
                        a href=(href(&["usage-products", &series.reference])) { (isolated(&series.name)) }
                        @if !series.aggregation.description().is_empty() { span.muted { ", " (series.aggregation.description()) } }
                    }
                    td.amount { data value=(total) { (grouped(&total)) } }
                    td { (unit_of(&total, &series.unit)) }
                    td.amount { a href=(events(&span.narrowed, &[&[("usage_product_ref", series.reference.as_str())], whole.as_slice()].concat())) {
                        (grouped(&series.events.to_string()))
                    } }
                } } }
            }
        }
    }
}

fn refused(span: &Span, explored: &Explored) -> Markup {
    let caption = |name: &str| ["customer_ref", "usage_product_ref"].contains(&name);
    let kept: Vec<(String, String)> = span.narrowed.iter().filter(|(name, _)| caption(name)).cloned().collect();
    let days = [("from", explored.days.0.as_str()), ("to", explored.days.1.as_str())];
    html! {
        @if JsonView::<Value>::of(&explored.refused).elements().next().is_some() {
            (table("Rejected usage", &REFUSED.some(WHY), JsonView::of(&explored.refused)))
            p { a href=(format!("{}?{}", href(&["refused"]), explorer(&kept, &days))) { "All rejected usage on these days" } }
        } @else { p.muted { "No usage was rejected on these days (UTC)." } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slot(day: &str, next: &str) -> ChartBucket {
        let at = |day: &str| format!("2026-11-{day}T00:00:00Z");
        let date = format!("2026-11-{day}");
        let closer = Some(vec![("from", date.clone()), ("to", date.clone())]);
        ChartBucket { starts: at(day), from: at(day), to: at(next), name: format!("{day} Nov"), caption: date, closer }
    }

    fn answers() -> UsageAnswers {
        let row = |day: &str, product: &str, quantity: Value, events: u64| json!({"from": format!("2026-11-{day}T00:00:00Z"), "usage_product_ref": product, "quantity": quantity, "events": events});
        let exact: Value = serde_json::from_str("0.000000001").expect("a number");
        UsageAnswers {
            summary: json!([row("20", "calls", json!(1200), 2), row("21", "<b>", json!(7), 1), row("22", "calls", exact, 3)])
                .into(),
            usage_products: json!([{"usage_product_ref": "calls", "name": "API calls", "unit": "call"}]).into(),
        }
    }

    fn span() -> Span {
        let slots = ["20", "21", "22"].into_iter().zip(["21", "22", "23"]).map(|(day, next)| slot(day, next)).collect();
        Span { narrowed: vec![("customer_ref".to_owned(), "acme".to_owned())], slots }
    }

    #[test]
    fn what_is_drawn_and_summed_up_is_what_was_answered() {
        let explored = Explored {
            filters: Vec::new(),
            names: Vec::new(),
            days: ("2026-11-20".to_owned(), "2026-11-22".to_owned()),
            zone: "UTC".to_owned(),
            interval: "day".to_owned(),
            is_coarser: false,
            elsewhere: Vec::new(),
            refused: json!([]),
        };
        let page = usage(&usage_sums(&answers(), JsonView::of(&Value::Null), &span()), &span(), &explored).into_string();
        assert!(page.contains("value=\"1200.000000001\""), "the sum is exact: {page}");
        assert!(page.contains("2026-11-20: 1,200 calls, events: 2") && page.contains("0.000000001"), "{page}");
        // The usage product with more events comes first. Each bar links to its day, each number to its events.
        assert!(page.find("API calls").expect("calls") < page.find("&lt;b&gt;").expect("the other"), "{page}");
        assert!(
            page.contains("/console/usage?customer_ref=acme&amp;usage_product_ref=calls&amp;from=2026-11-20&amp;to=2026-11-20"),
            "{page}"
        );
        let of_day = "/console/events?customer_ref=acme&amp;from=2026-11-21T00%3A00%3A00Z&amp;to=2026-11-22T00%3A00%3A00Z";
        assert!(page.contains(of_day), "{page}");
        assert!(!page.contains("<b>"), "{page}");
    }

    #[test]
    fn a_total_is_a_sum_over_intervals_only_where_quantities_add_up() {
        for (aggregation, shown, is_needed) in
            [("SUM", "1200.000000001", false), ("COUNT", "1200.000000001", false), ("MAX", "700", true), ("LATEST", "700", true)]
        {
            let product = json!({"usage_product_ref": "calls", "name": "API calls", "unit": "call", "aggregation": aggregation});
            let answers = UsageAnswers { usage_products: json!([product]).into(), ..answers() };
            assert_eq!(answers.needs_totals(), is_needed, "{aggregation}");
            let totals = json!([{"usage_product_ref": "<b>", "quantity": 7}, {"usage_product_ref": "calls", "quantity": 700}]);
            let page = usage_sums(&answers, JsonView::of(&totals), &span()).into_string();
            assert!(page.contains(&format!("<data value=\"{shown}\">")), "{aggregation}: {page}");
            let caption = ["largest quantity of each customer", "latest quantity of each customer"];
            assert_eq!(caption.iter().any(|caption| page.contains(caption)), is_needed, "{aggregation}: {page}");
        }
    }

    #[test]
    fn where_nothing_was_used_the_page_says_so() {
        let nothing = UsageAnswers { summary: json!([]).into(), usage_products: json!([]).into() };
        assert!(charts(&nothing, &span(), MAX_CHARTS).into_string().is_empty());
        assert!(usage_sums(&nothing, JsonView::of(&Value::Null), &span()).into_string().contains("No usage"));
        assert!(usage_lately(&nothing, &span()).into_string().contains("No usage"));
    }
}
