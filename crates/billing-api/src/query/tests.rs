use billing_application::charges::ChargeQuery;

use super::lists::{ChargeParams, ContractParams, FormatParams};
use super::*;

fn query(raw: &str) -> Query {
    Query::of("/api/contracts/filter", raw).expect(raw)
}

fn page(raw: &str) -> Result<PageRequest, Problem> {
    query(raw).read::<Paged<DEFAULT_PAGE_SIZE>>().map(|page| page.0)
}

fn version(raw: &str) -> Result<Option<u32>, Problem> {
    query(raw).read::<FormatParams>().map(|params| params.version)
}

fn contracts(raw: &str) -> Result<(Option<CustomerRef>, PageRequest), Problem> {
    query(raw).read::<ContractParams>().map(|params| (params.customer_ref, params.page.0))
}

fn charges(raw: &str) -> Result<(Option<ChargeQuery>, PageRequest), Problem> {
    query(raw).read::<ChargeParams>().map(|params| (params.clone().query(), params.page.0))
}

fn codes<T>(outcome: Result<T, Problem>) -> Vec<(String, &'static str)> {
    outcome.err().map_or_else(Vec::new, |problem| problem.fields())
}

#[test]
fn a_page_is_taken_as_it_was_asked_for_or_refused() {
    for (raw, size, number) in
        [("", 20, 0), ("pageSize=1&pageNumber=7", 1, 7), ("pageSize=1000", 1000, 0), ("pageNumber=3", 20, 3)]
    {
        let asked = page(raw).expect(raw);
        assert_eq!((asked.size(), asked.number()), (size, number), "{raw}");
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
        assert_eq!(codes(page(raw)), [(pointer.to_owned(), code)], "{raw}");
    }
}

#[test]
fn a_version_is_asked_for_or_left_out() {
    for (raw, expected) in [("", None), ("version=1", Some(1)), ("version=2147483647", Some(2_147_483_647))] {
        assert_eq!(version(raw).expect(raw), expected, "{raw}");
    }
    for (raw, code) in [
        ("version=0", "out_of_range"),
        ("version=2147483648", "out_of_range"),
        ("version=", "invalid_format"),
        ("version=newest", "invalid_format"),
        ("version=1&version=2", "duplicate"),
    ] {
        assert_eq!(codes(version(raw)), [("/version".to_owned(), code)], "{raw}");
    }
}

#[test]
fn a_list_of_contracts_says_all_that_is_missing_at_once() {
    let required = |pointer: &str| (pointer.to_owned(), "required");
    assert_eq!(codes(contracts("")), [required("/customer_ref"), required("/pageSize"), required("/pageNumber")]);
    let (customer, page) = contracts("customer_ref=a%3Ab&pageSize=20&pageNumber=0").expect("a complete query");
    assert_eq!((customer.expect("a reference").as_str(), page.size()), ("a:b", 20));
    assert_eq!(contracts("customer_ref=a%20b&pageSize=20&pageNumber=0").expect("a complete query").0, None);
}

#[test]
fn charges_are_narrowed_by_dates_and_references() {
    let wrong = codes(charges("from=2026-1-1&to=2026-02-30&pageSize=x"));
    let expected = ["/from", "/to", "/pageSize"].map(|pointer| (pointer.to_owned(), "invalid_format"));
    assert_eq!(wrong, expected);
    assert!(charges("contract_ref=nonsense").expect("no violation").0.is_none());
    let (charges, _) = charges("customer_ref=acme&from=2026-01-01&to=2026-01-31").expect("a valid query");
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

#[test]
fn a_parameter_that_is_not_known_is_refused_with_the_nearest_one() {
    let problem = page("pagesize=5&colour=red").expect_err("a refusal");
    let expected = [("/pagesize".to_owned(), "unknown_parameter"), ("/colour".to_owned(), "unknown_parameter")];
    assert_eq!(problem.fields(), expected);
    let alone = page("pagesize=5").expect_err("a refusal");
    assert_eq!((alone.code(), alone.detail()), ("unknown_parameter", "is an unknown parameter; the nearest is pageSize"));
    assert_eq!(query("x=1").only(&[]).expect_err("a refusal").detail(), "is an unknown parameter: this operation has none");
}
