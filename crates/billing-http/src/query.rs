//! Query strings: which page of a list, and what it is narrowed to. All that is wrong with one is said at once.
//!
//! Parameters nobody asked for are ignored. A reference that can't exist is one that doesn't: it finds nothing.

mod documents;
mod imports;
mod usage;

pub(crate) use documents::Asked;
pub(crate) use imports::ImportAsked;

use std::future::{Ready, ready};
use std::ops::RangeInclusive;

use actix_web::dev::Payload;
use actix_web::http::header::LINK;
use actix_web::{FromRequest, HttpRequest, HttpResponse, web};
use billing_application::charges::ChargeQuery;
use billing_application::contracts::ContractQuery;
use billing_application::documents::PaymentQuery;
use billing_domain::calendar::{Date, parse_date};
use billing_domain::contract::Contract;
use billing_domain::page::{MAX_PAGE_SIZE, Page, PageRequest};
use billing_domain::ports::{ChargeFilter, ContractFilter, CustomerFilter, PaymentFilter};
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;
use billing_report::ReportFormat;
use serde::Serialize;

use crate::dto::words::{ContractStateWord, Words};
use crate::problem::Problem;

/// Elements of a page when nobody says how many.
pub(crate) const DEFAULT_PAGE_SIZE: u32 = 20;
/// The last page that can be asked for: what a signed 32-bit number of a caller holds.
const MAX_PAGE_NUMBER: u32 = i32::MAX.unsigned_abs();
/// The last version that can be asked for; likewise.
const MAX_VERSION: u32 = i32::MAX.unsigned_abs();
const VERSION: &str = "version";
const SIZE: &str = "pageSize";
const NUMBER: &str = "pageNumber";
const TOTAL: &str = "x-total-count";

/// A request's query string, and the path in front of it.
#[derive(Debug)]
pub(crate) struct Query {
    path: String,
    raw: String,
    pairs: Vec<(String, String)>,
}

impl FromRequest for Query {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::parse(request.path(), request.query_string()))
    }
}

impl Query {
    fn parse(path: &str, raw: &str) -> Result<Self, Problem> {
        let pairs = web::Query::<Vec<(String, String)>>::from_query(raw);
        let pairs = pairs.map_err(|_| Problem::malformed("malformed_query", "the query string could not be read"))?;
        Ok(Self { path: path.to_owned(), raw: raw.to_owned(), pairs: pairs.into_inner() })
    }

    /// A page of a list whose pages have a usual size.
    pub(crate) fn page(&self, usual_size: u32) -> Result<PageRequest, Problem> {
        let mut found = Violations::none();
        let page = self.read_page(Some(usual_size), &mut found);
        complete(found, page)
    }

    /// One version of what the path names; none where the newest is wanted.
    pub(crate) fn version(&self) -> Result<Option<u32>, Problem> {
        let mut found = Violations::none();
        let asked = self.pairs.iter().any(|(name, _)| name == VERSION);
        let version = if asked { self.whole(VERSION, 1..=MAX_VERSION, None, &mut found) } else { None };
        found.or(())?;
        Ok(version)
    }

    /// A page of a customer's contracts: everything has to be said. No customer for a reference that can't exist.
    pub(crate) fn contracts(&self) -> Result<(Option<CustomerRef>, PageRequest), Problem> {
        let mut found = Violations::none();
        let customer = self.text("customer_ref", &mut found).map(|text| CustomerRef::parse(text).ok());
        if customer.is_none() {
            found.add(&["customer_ref"], "required", "must be given, once");
        }
        let page = self.read_page(None, &mut found);
        complete(found, customer.zip(page))
    }

    /// Whether all lines of a batch are to be taken, or none.
    pub(crate) fn atomic(&self) -> Result<bool, Problem> {
        let mut found = Violations::none();
        let atomic = self.flag("atomic", &mut found);
        complete(found, Some(atomic.unwrap_or(false)))
    }

    /// A page of the contracts that a search finds. No query for a reference or number that can't exist.
    pub(crate) fn contract_search(&self) -> Result<(Option<ContractQuery>, PageRequest), Problem> {
        let mut found = Violations::none();
        let customer_ref = self.text("customer_ref", &mut found).map(|text| CustomerRef::parse(text).ok());
        let number = self.text("contract_number", &mut found).map(Contract::read_number);
        let po_number = self.text("po_number", &mut found).map(|text| OneLine::parse(text).ok());
        let can_exist = customer_ref != Some(None) && number != Some(None) && po_number != Some(None);
        let state = self.word::<ContractStateWord>("state", &mut found);
        let filter = ContractFilter {
            customer_id: None,
            number: number.flatten(),
            po_number: po_number.flatten(),
            state: None,
            ends_before: self.date("ends_before", &mut found),
        };
        let query = can_exist.then(|| ContractQuery { customer_ref: customer_ref.flatten(), state, filter });
        let page = self.read_page(Some(DEFAULT_PAGE_SIZE), &mut found);
        complete(found, page.map(|page| (query, page)))
    }

    /// A page of customers.
    pub(crate) fn customers(&self) -> Result<(CustomerFilter, PageRequest), Problem> {
        let mut found = Violations::none();
        let mut text = |name: &str| self.text(name, &mut found).map(str::to_owned);
        let filter = CustomerFilter { name: text("name"), email: text("email"), tax_id: text("tax_id") };
        let page = self.read_page(Some(DEFAULT_PAGE_SIZE), &mut found);
        complete(found, page.map(|page| (filter, page)))
    }

    /// What is searched for.
    pub(crate) fn sought(&self) -> Result<OneLine, Problem> {
        let mut found = Violations::none();
        let text = self.text("q", &mut found);
        if text.is_none() {
            found.add(&["q"], "required", "must be given, once");
        }
        let sought = text.and_then(|text| {
            OneLine::parse(text.trim()).map_err(|reason| found.add(&["q"], "invalid_format", reason.to_string())).ok()
        });
        complete(found, sought)
    }

    /// Which payments, and which page of them. No query for a reference that can't exist.
    pub(crate) fn payments(&self) -> Result<(Option<PaymentQuery>, PageRequest), Problem> {
        let mut found = Violations::none();
        let customer_ref = self.text("customer_ref", &mut found).map(|text| CustomerRef::parse(text).ok());
        let document_ref = self.text("document_ref", &mut found).map(|text| DocumentRef::parse(text).ok());
        let reference = self.text("reference", &mut found).map(|text| OneLine::parse(text).ok());
        let can_exist = customer_ref != Some(None) && document_ref != Some(None) && reference != Some(None);
        let filter = PaymentFilter {
            customer_id: None,
            document_ref: document_ref.flatten(),
            reference: reference.flatten(),
            from: self.date("from", &mut found),
            to: self.date("to", &mut found),
        };
        let page = self.read_page(Some(DEFAULT_PAGE_SIZE), &mut found);
        let wanted = can_exist.then(|| PaymentQuery { customer_ref: customer_ref.flatten(), filter });
        Ok((wanted, complete(found, page)?))
    }

    /// From which day to which a statement tells, and how.
    pub(crate) fn statement(&self) -> Result<(Option<Date>, Option<Date>, ReportFormat), Problem> {
        let mut found = Violations::none();
        let (from, to) = (self.date("from", &mut found), self.date("to", &mut found));
        if from.zip(to).is_some_and(|(from, to)| from > to) {
            found.add(&["to"], "out_of_range", "must not be before `from`");
        }
        let format = match self.text("format", &mut found) {
            None | Some("json") => ReportFormat::Json,
            Some("csv") => ReportFormat::Csv,
            Some(_) => {
                found.add(&["format"], "invalid_value", "must be json or csv");
                ReportFormat::Json
            }
        };
        complete(found, Some((from, to, format)))
    }

    /// A page of charges. No query for a reference that can't exist.
    pub(crate) fn charges(&self) -> Result<(Option<ChargeQuery>, PageRequest), Problem> {
        let mut found = Violations::none();
        let customer_ref = self.text("customer_ref", &mut found).map(|text| CustomerRef::parse(text).ok());
        let contract_ref = self.text("contract_ref", &mut found).map(|text| ContractRef::parse(text).ok());
        let can_exist = customer_ref != Some(None) && contract_ref != Some(None);
        let filter = ChargeFilter {
            customer_id: None,
            contract_ref: contract_ref.flatten(),
            from: self.date("from", &mut found),
            to: self.date("to", &mut found),
        };
        let query = can_exist.then(|| ChargeQuery { customer_ref: customer_ref.flatten(), filter });
        let page = self.read_page(Some(DEFAULT_PAGE_SIZE), &mut found);
        complete(found, page.map(|page| (query, page)))
    }

    /// The answer with a page of the list that was asked for: a bare array, its totals and neighbours in headers.
    pub(crate) fn answer<'t, T, J: From<&'t T> + Serialize>(&self, asked: PageRequest, page: &'t Page<T>) -> HttpResponse {
        let elements: Vec<J> = page.items.iter().map(J::from).collect();
        let mut response = HttpResponse::Ok();
        response.insert_header((TOTAL, page.total.to_string()));
        response.insert_header((LINK, self.links(asked, page.total)));
        response.json(elements)
    }

    /// RFC 8288: the first and last page, and the one before and after where there is one.
    fn links(&self, asked: PageRequest, total: u64) -> String {
        let (size, number) = (u64::from(asked.size()), u64::from(asked.number()));
        let last = total.saturating_sub(1) / size;
        let previous = number.checked_sub(1).map(|previous| previous.min(last));
        let next = Some(number + 1).filter(|next| *next <= last);
        let others: String = self.raw.split('&').filter(|pair| is_other(pair)).flat_map(|pair| [pair, "&"]).collect();
        let link =
            |relation: &str, number: u64| format!(r#"<{}?{others}{SIZE}={size}&{NUMBER}={number}>; rel="{relation}""#, self.path);
        let links = [Some(("first", 0)), previous.map(|n| ("prev", n)), next.map(|n| ("next", n)), Some(("last", last))];
        links.into_iter().flatten().map(|(relation, number)| link(relation, number)).collect::<Vec<_>>().join(", ")
    }

    fn read_page(&self, usual_size: Option<u32>, found: &mut Violations) -> Option<PageRequest> {
        let size = self.whole(SIZE, 1..=MAX_PAGE_SIZE, usual_size, found);
        let number = self.whole(NUMBER, 0..=MAX_PAGE_NUMBER, usual_size.map(|_| 0), found);
        size.zip(number).and_then(|(size, number)| PageRequest::new(size, number).ok())
    }

    fn whole(&self, name: &str, range: RangeInclusive<u32>, usual: Option<u32>, found: &mut Violations) -> Option<u32> {
        let (low, high) = (range.start(), range.end());
        let Some(text) = self.text(name, found) else {
            if usual.is_none() {
                found.add(&[name], "required", format!("must be a whole number from {low} to {high}"));
            }
            return usual;
        };
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && range.contains(number));
        if number.is_none() {
            let code = if digits || text.starts_with('-') { "out_of_range" } else { "invalid_format" };
            found.add(&[name], code, format!("must be a whole number from {low} to {high}"));
        }
        number
    }

    fn word<W: Words>(&self, name: &str, found: &mut Violations) -> Option<W::Meaning> {
        let text = self.text(name, found)?;
        let meaning = W::meaning(text);
        if meaning.is_none() {
            found.add(&[name], "invalid_value", format!("must be one of {}", W::all().join(", ")));
        }
        meaning
    }

    fn flag(&self, name: &str, found: &mut Violations) -> Option<bool> {
        match self.text(name, found)? {
            "false" => Some(false),
            "true" => Some(true),
            _ => {
                found.add(&[name], "invalid_value", "must be true or false");
                None
            }
        }
    }

    fn date(&self, name: &str, found: &mut Violations) -> Option<Date> {
        parse_date(self.text(name, found)?).map_err(|reason| found.add(&[name], "invalid_format", reason.to_string())).ok()
    }

    fn text(&self, name: &str, found: &mut Violations) -> Option<&str> {
        let mut values = self.pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let first = values.next();
        if values.next().is_some() {
            found.add(&[name], "duplicate", "must be given once");
        }
        first
    }
}

fn is_other(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    !matches!(name, "" | SIZE | NUMBER)
}

fn complete<T>(found: Violations, value: Option<T>) -> Result<T, Problem> {
    // Without a violation there is a value.
    found.or(())?;
    value.ok_or_else(Problem::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> Query {
        Query::parse("/api/contracts/filter", raw).expect(raw)
    }

    fn codes<T>(outcome: Result<T, Problem>) -> Vec<(String, &'static str)> {
        outcome.err().map_or_else(Vec::new, |problem| problem.fields())
    }

    #[test]
    fn a_page_is_taken_as_it_was_asked_for_or_refused() {
        for (raw, size, number) in
            [("", 20, 0), ("pageSize=1&pageNumber=7", 1, 7), ("pageSize=1000&x=y", 1000, 0), ("pageNumber=3", 20, 3)]
        {
            let page = query(raw).page(DEFAULT_PAGE_SIZE).expect(raw);
            assert_eq!((page.size(), page.number()), (size, number), "{raw}");
        }
        for (raw, pointer, code) in [
            ("pageSize=0", "/pageSize", "out_of_range"),
            ("pageSize=1001", "/pageSize", "out_of_range"),
            ("pageSize=99999999999999999999", "/pageSize", "out_of_range"),
            ("pageSize=-1", "/pageSize", "out_of_range"),
            ("pageSize=%2B5", "/pageSize", "invalid_format"),
            ("pageSize=", "/pageSize", "invalid_format"),
            ("pageSize=2.0", "/pageSize", "invalid_format"),
            ("pageSize=2&pageSize=2", "/pageSize", "duplicate"),
            ("pageNumber=-1", "/pageNumber", "out_of_range"),
            ("pageNumber=2147483648", "/pageNumber", "out_of_range"),
            ("pageNumber=x", "/pageNumber", "invalid_format"),
        ] {
            assert_eq!(codes(query(raw).page(DEFAULT_PAGE_SIZE)), [(pointer.to_owned(), code)], "{raw}");
        }
    }

    #[test]
    fn a_version_is_asked_for_or_left_out() {
        for (raw, version) in [("", None), ("version=1", Some(1)), ("x=y&version=2147483647", Some(2_147_483_647))] {
            assert_eq!(query(raw).version().expect(raw), version, "{raw}");
        }
        for (raw, code) in [
            ("version=0", "out_of_range"),
            ("version=2147483648", "out_of_range"),
            ("version=", "invalid_format"),
            ("version=newest", "invalid_format"),
            ("version=1&version=2", "duplicate"),
        ] {
            assert_eq!(codes(query(raw).version()), [("/version".to_owned(), code)], "{raw}");
        }
    }

    #[test]
    fn a_list_of_contracts_says_all_that_is_missing_at_once() {
        let required = |pointer: &str| (pointer.to_owned(), "required");
        assert_eq!(codes(query("").contracts()), [required("/customer_ref"), required("/pageSize"), required("/pageNumber")]);
        let (customer, page) = query("customer_ref=a%3Ab&pageSize=20&pageNumber=0").contracts().expect("complete");
        assert_eq!((customer.expect("a reference").as_str(), page.size()), ("a:b", 20));
        assert_eq!(query("customer_ref=a%20b&pageSize=20&pageNumber=0").contracts().expect("complete").0, None);
    }

    #[test]
    fn charges_are_narrowed_by_dates_and_references() {
        let wrong = codes(query("from=2026-1-1&to=2026-02-30&pageSize=x").charges());
        let expected = ["/from", "/to", "/pageSize"].map(|pointer| (pointer.to_owned(), "invalid_format"));
        assert_eq!(wrong, expected);
        assert!(query("contract_ref=nonsense").charges().expect("no violation").0.is_none());
        let (charges, _) = query("customer_ref=acme&from=2026-01-01&to=2026-01-31").charges().expect("right");
        let charges = charges.expect("a query");
        assert!(charges.customer_ref.is_some() && charges.filter.from.is_some() && charges.filter.to.is_some());
    }

    #[test]
    fn links_name_the_neighbours_and_keep_the_other_parameters() {
        let asked = PageRequest::new(2, 1).expect("a page");
        assert_eq!(
            query("customer_ref=a%26b&pageSize=2&pageNumber=1").links(asked, 5),
            "</api/contracts/filter?customer_ref=a%26b&pageSize=2&pageNumber=0>; rel=\"first\", \
             </api/contracts/filter?customer_ref=a%26b&pageSize=2&pageNumber=0>; rel=\"prev\", \
             </api/contracts/filter?customer_ref=a%26b&pageSize=2&pageNumber=2>; rel=\"next\", \
             </api/contracts/filter?customer_ref=a%26b&pageSize=2&pageNumber=2>; rel=\"last\""
        );
        let relations = |number: u32, total: u64| {
            let links = query("").links(PageRequest::new(2, number).expect("a page"), total);
            ["first", "prev", "next", "last"].map(|relation| links.contains(&format!("rel=\"{relation}\"")))
        };
        assert_eq!(relations(0, 0), [true, false, false, true]);
        assert_eq!(relations(0, 2), [true, false, false, true]);
        assert_eq!(relations(0, 3), [true, false, true, true]);
        assert_eq!(relations(9, 3), [true, true, false, true]);
    }
}
