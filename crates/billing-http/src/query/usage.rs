//! What lists, sums and reports of usage are narrowed to.

use billing_application::usage::{EventQuery, ReportOf};
use billing_domain::calendar::Timestamp;
use billing_domain::page::PageRequest;
use billing_domain::ports::EventFilter;
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, UsageProductRef};
use billing_domain::summary::{Grouping, Interval};
use billing_domain::violation::Violations;
use billing_report::ReportFormat;

use super::{DEFAULT_PAGE_SIZE, Query, complete};
use crate::dto::words::{IntervalWord, ReportFormatWord, Words as _};
use crate::problem::Problem;

const BY_USAGE_PRODUCT: &str = "usage_product_ref";
const BY_CUSTOMER: &str = "customer_ref";

impl Query {
    /// A page of events. No query for a reference that can't exist.
    pub(crate) fn events(&self) -> Result<(Option<EventQuery>, PageRequest), Problem> {
        let mut found = Violations::none();
        let query = self.event_query(&mut found);
        let page = self.read_page(Some(DEFAULT_PAGE_SIZE), &mut found);
        complete(found, page.map(|page| (query, page)))
    }

    /// A summary. No query for a reference that can't exist.
    pub(crate) fn summary(&self) -> Result<(Option<EventQuery>, Interval, Grouping), Problem> {
        let mut found = Violations::none();
        let interval = self.word::<IntervalWord>("interval", &mut found);
        if !self.has("interval") {
            found.add(&["interval"], "required", format!("must be one of {}", IntervalWord::all().join(", ")));
        }
        let grouping = self.grouping(&mut found);
        let query = self.event_query(&mut found);
        complete(found, interval.zip(grouping).map(|(interval, grouping)| (query, interval, grouping)))
    }

    /// A report and how it is written.
    pub(crate) fn report(&self) -> Result<(ReportOf, ReportFormat), Problem> {
        let mut found = Violations::none();
        let format = self.word::<ReportFormatWord>("format", &mut found).unwrap_or_default();
        let of = self.event_query(&mut found).map_or(ReportOf::Nothing, ReportOf::Events);
        complete(found, Some((of, format)))
    }

    fn event_query(&self, found: &mut Violations) -> Option<EventQuery> {
        let customer_ref = self.text("customer_ref", found).map(|text| CustomerRef::parse(text).ok());
        let usage_product_ref = self.text("usage_product_ref", found).map(|text| UsageProductRef::parse(text).ok());
        let document_ref = self.text("document_ref", found).map(|text| DocumentRef::parse(text).ok());
        let contract_ref = self.text("contract_ref", found).map(|text| ContractRef::parse(text).ok());
        let (from, to) = (self.instant("from", found), self.instant("to", found));
        let can_exist = customer_ref != Some(None)
            && usage_product_ref != Some(None)
            && document_ref != Some(None)
            && contract_ref != Some(None);
        let filter = EventFilter {
            customer_id: None,
            usage_product_ref: usage_product_ref.flatten(),
            document_ref: document_ref.flatten(),
            contract_ref: contract_ref.flatten(),
            from,
            to,
        };
        can_exist.then(|| EventQuery { customer_ref: customer_ref.flatten(), filter })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(key, _)| key == name)
    }

    pub(super) fn instant(&self, name: &str, found: &mut Violations) -> Option<Timestamp> {
        let parsed = Timestamp::parse(self.text(name, found)?);
        parsed.map_err(|reason| found.add(&[name], "invalid_format", format!("{reason}; a + is sent as %2B"))).ok()
    }

    fn grouping(&self, found: &mut Violations) -> Option<Grouping> {
        let mut grouping = Grouping::default();
        let Some(words) = self.text("group_by", found) else { return Some(grouping) };
        for word in words.split(',') {
            let part = match word {
                BY_USAGE_PRODUCT => &mut grouping.by_usage_product,
                BY_CUSTOMER => &mut grouping.by_customer,
                _ => {
                    let detail = format!("must be {BY_USAGE_PRODUCT}, {BY_CUSTOMER}, or both with a comma between");
                    found.add(&["group_by"], "invalid_value", detail);
                    return None;
                }
            };
            if std::mem::replace(part, true) {
                found.add(&["group_by"], "duplicate", "must name each once");
                return None;
            }
        }
        Some(grouping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> Query {
        Query::parse("/api/usage/report", raw).expect(raw)
    }

    fn codes<T>(outcome: Result<T, Problem>) -> Vec<(String, &'static str)> {
        outcome.err().map_or_else(Vec::new, |problem| problem.fields())
    }

    #[test]
    fn events_are_narrowed_by_references_and_instants() {
        let wrong =
            codes(query("from=2026-01-01&to=2026-01-01T00:00:00+01:00&customer_ref=a&customer_ref=b&pageSize=0").events());
        let expected = [
            ("/customer_ref", "duplicate"),
            ("/from", "invalid_format"),
            ("/to", "invalid_format"),
            ("/pageSize", "out_of_range"),
        ];
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
    fn a_summary_says_its_interval_and_what_it_tells_apart() {
        let both = |raw: &str| query(raw).summary().expect(raw);
        assert_eq!(both("interval=day").1, Interval::Day);
        let grouping = |by_usage_product, by_customer| Grouping { by_usage_product, by_customer };
        assert_eq!(both("interval=hour").2, grouping(false, false));
        assert_eq!(both("interval=hour&group_by=customer_ref").2, grouping(false, true));
        assert_eq!(both("interval=month&group_by=customer_ref,usage_product_ref").2, grouping(true, true));
        for (raw, pointer, code) in [
            ("", "/interval", "required"),
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
}
