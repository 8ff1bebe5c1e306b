use billing_domain::page::PageRequest;

use super::*;
use crate::problem::Problem;
use crate::query::Query;

fn query(raw: &str) -> Query {
    Query::of("/api/usage/report", raw).expect(raw)
}

trait Read {
    fn events(&self) -> Result<(Option<EventQuery>, PageRequest), Problem>;
    fn summary(&self) -> Result<(Option<EventQuery>, SummaryIntervals, Grouping), Problem>;
    fn report(&self) -> Result<(ReportOf, ReportFormat), Problem>;
}

impl Read for Query {
    fn events(&self) -> Result<(Option<EventQuery>, PageRequest), Problem> {
        self.read::<EventListParams>().map(|params| (params.events.query(), params.page.0))
    }

    fn summary(&self) -> Result<(Option<EventQuery>, SummaryIntervals, Grouping), Problem> {
        self.read::<SummaryParams>().map(|params| (params.clone().events.query(), params.intervals(), params.group_by))
    }

    fn report(&self) -> Result<(ReportOf, ReportFormat), Problem> {
        self.read::<ReportParams>().map(|params| (params.clone().of(), params.format))
    }
}

fn codes<T>(outcome: Result<T, Problem>) -> Vec<(String, &'static str)> {
    outcome.err().map_or_else(Vec::new, |problem| problem.fields())
}

#[test]
fn events_are_narrowed_by_references_and_instants() {
    let wrong = codes(query("from=2026-01-01&to=2026-01-01T00:00:00+01:00&customer_ref=a&customer_ref=b&pageSize=0").events());
    let expected =
        [("/from", "invalid_format"), ("/to", "invalid_format"), ("/customer_ref", "duplicate"), ("/pageSize", "out_of_range")];
    assert_eq!(wrong, expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    for nothing in ["customer_ref=a%20b", "usage_product_ref=", "document_ref=1", "contract_ref=%F0%9F%98%80"] {
        assert!(query(nothing).events().expect("no violation").0.is_none(), "{nothing}");
    }
    let raw = "customer_ref=a&usage_product_ref=b&from=2026-01-01T00:00:00%2B01:00&to=2026-01-01T00:00:00Z";
    let events = query(raw).events().expect("right").0.expect("a query");
    assert_eq!(events.filter.from.expect("an instant").to_string(), "2025-12-31T23:00:00Z");
    assert!(events.customer_ref.is_some() && events.filter.usage_product_ref.is_some() && events.filter.to.is_some());
}

#[test]
fn events_are_narrowed_by_labels_of_one_customer() {
    let raw = "customer_ref=a&report_data[model]=x&report_data[kind]=input&report_data[model]=y";
    let labels = query(raw).events().expect("right").0.expect("a query").filter.labels;
    let shown: Vec<String> = labels.iter().map(|(key, values)| format!("{key} {}", values.join(" "))).collect();
    assert_eq!(shown, ["kind input", "model x y"]);
    let wrong = |raw: &str| codes(query(raw).events());
    assert_eq!(wrong("report_data[model]=x"), [("/customer_ref".to_owned(), "required")]);
    assert_eq!(wrong("contract_ref=x&report_data[model]=x"), []);
    let many: String = (0..6).map(|n| format!("&report_data[k{n}]=x")).collect();
    assert_eq!(wrong(&format!("customer_ref=a{many}")), [("/report_data".to_owned(), "too_many")]);
    assert_eq!(wrong("customer_ref=a&reportdata[k]=x").len(), 1);
}

#[test]
fn a_summary_says_its_interval_and_what_it_tells_apart() {
    let both = |raw: &str| query(raw).summary().expect(raw);
    assert_eq!(both("interval=day").1, SummaryIntervals::Calendar(Interval::Day, TimeZone::UTC));
    let kolkata = TimeZone::parse("Asia/Kolkata").expect("a zone");
    assert_eq!(both("interval=day&timezone=Asia/Kolkata").1, SummaryIntervals::Calendar(Interval::Day, kolkata));
    let at = |text| Timestamp::parse(text).expect(text);
    let whole = SummaryIntervals::Whole(at("2026-01-01T00:00:00Z"), at("2026-02-01T00:00:00Z"));
    assert_eq!(both("from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z").1, whole);
    let grouping = |by_usage_product, by_customer| Grouping { by_usage_product, by_customer };
    assert_eq!(both("interval=hour").2, grouping(false, false));
    assert_eq!(both("interval=hour&group_by=customer_ref").2, grouping(false, true));
    assert_eq!(both("interval=month&group_by=customer_ref,usage_product_ref").2, grouping(true, true));
    for (raw, pointer, code) in [
        ("interval=day&timezone=Mars", "/timezone", "invalid_format"),
        ("", "/interval", "required"),
        ("from=2026-01-01T00:00:00Z", "/interval", "required"),
        ("interval=week", "/interval", "invalid_value"),
        ("interval=day&group_by=", "/group_by", "invalid_value"),
        ("interval=day&group_by=customer_ref,", "/group_by", "invalid_value"),
        ("interval=day&group_by=customer_ref,customer_ref", "/group_by", "duplicate"),
        ("interval=day&from=now", "/from", "invalid_format"),
    ] {
        assert_eq!(codes(query(raw).summary()), [(pointer.to_owned(), code)], "{raw}");
    }
}

#[test]
fn a_report_is_csv_unless_asked_for_otherwise() {
    assert_eq!(query("").report().expect("right").1, ReportFormat::Csv);
    assert_eq!(query("format=xlsx").report().expect("right").1, ReportFormat::Xlsx);
    assert!(matches!(query("contract_ref=x").report().expect("right").0, ReportOf::Nothing));
    assert_eq!(codes(query("format=CSV").report()), [("/format".to_owned(), "invalid_value")]);
}
