use super::*;
use crate::dto::input::WireEnum as _;

fn query(raw: &str) -> Query {
    Query::of("/api/documents/filter", raw).expect(raw)
}

fn codes<T>(outcome: Result<T, Problem>) -> Vec<(String, &'static str)> {
    outcome.err().map_or_else(Vec::new, |problem| problem.fields())
}

fn part_of(raw: &str) -> (DocumentPart, Option<PageRequest>) {
    match query(raw).documents().expect(raw).1 {
        DocumentListRequest::Part(part, page) => (part, page),
        DocumentListRequest::Table(..) => panic!("{raw}: a table"),
    }
}

#[test]
fn documents_are_narrowed_by_words_dates_and_references() {
    let wrong = "kind=BILL&state=open&from=2026-1-1&to=2026-02-30&purpose=NONE&currency=EURO&issued_from=x&issued_to=x&due_from=x\
                 &due_to=x&updated_since=2026-01-01&has_amount_due=yes&overdue=1&order=date&totals=no&pageSize=x";
    let wrong: Vec<(String, &str)> = codes(query(wrong).documents());
    let mut named: Vec<&str> = wrong.iter().map(|(pointer, _)| pointer.trim_start_matches('/')).collect();
    named.sort_unstable();
    let expected = [
        "currency",
        "due_from",
        "due_to",
        "from",
        "has_amount_due",
        "issued_from",
        "issued_to",
        "kind",
        "order",
        "overdue",
        "pageSize",
        "purpose",
        "state",
        "to",
        "totals",
        "updated_since",
    ];
    assert_eq!(named, expected);
    for nothing in ["contract_ref=nonsense", "document_number=12", "contract_number=C-x", "po_number=", "customer_ref=a%20b"] {
        assert!(query(nothing).documents().expect("no violation").0.is_none(), "{nothing}");
    }
    let right = "kind=CREDIT&state=PARTIALLY_PAID&from=2026-01-01&entity_ref=e&document_number=UB-INV-7&contract_number=C-2\
                 &po_number=PO%201&purpose=USAGE&currency=EUR&due_to=2026-01-01&overdue=true&has_amount_due=false\
                 &updated_since=2026-01-01T00:00:00Z";
    let documents = query(right).documents().expect("right").0.expect("a query");
    assert_eq!((documents.contract_number, documents.overdue), (Some(2), Some(true)));
    let filter = documents.filter;
    assert!(filter.kind.is_some() && filter.state.is_some() && filter.from.is_some() && filter.entity_ref.is_some());
    assert!(filter.number.is_some() && filter.po_number.is_some() && filter.purpose.is_some() && filter.currency.is_some());
    assert!(filter.due_to.is_some() && filter.has_amount_due == Some(false) && filter.updated_since.is_some());
}

#[test]
fn a_cursor_leads_back_to_its_place_in_its_order() {
    let document_ref = DocumentRef::parse("0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b").expect("a reference");
    let euro = Currency::from_code("EUR").expect("a currency");
    let day = parse_date("2026-01-02").expect("a date");
    for (word, key) in [
        ("created", OrderedBy::Created(Timestamp::from_micros(-7).expect("an instant"))),
        ("-issue_date", OrderedBy::Day(day)),
        ("due_date", OrderedBy::Nothing),
        ("-amount", OrderedBy::Amount(Money::from_minor(-5, euro))),
    ] {
        let order = DocumentOrderWord::meaning(word).expect(word);
        let position = DocumentPosition { key, document_ref };
        let text = cursor(order, &position);
        let (part, page) = part_of(&format!("order={word}&cursor={text}"));
        assert_eq!((part.part.after, page, part.with_sums), (Some(position), None, false), "{text}");
        assert!(part_of(&format!("order={word}&cursor={text}&totals=true")).0.with_sums);
        let elsewhere = codes(query(&format!("order=-created&cursor={text}")).documents());
        assert_eq!(elsewhere, [("/cursor".to_owned(), "invalid_value")], "{text}");
    }
    for raw in ["cursor=", "cursor=created~x~y", "cursor=created~1~1~1"] {
        assert_eq!(codes(query(raw).documents()), [("/cursor".to_owned(), "invalid_value")], "{raw}");
    }
}

#[test]
fn a_table_has_no_pages() {
    let asked = query("format=csv&order=-amount").documents().expect("right").1;
    assert!(matches!(
        asked,
        DocumentListRequest::Table(ReportFormat::Csv, DocumentOrder { by: DocumentSortKey::Amount, descending: true })
    ));
    assert_eq!(codes(query("format=pdf").documents()), [("/format".to_owned(), "invalid_value")]);
    let wrong = codes(query("format=csv&pageSize=5&pageNumber=1&cursor=x&totals=true").documents());
    assert_eq!(wrong.len(), 4, "{wrong:?}");
}

#[test]
fn the_next_link_goes_on_behind_the_last_document() {
    let document_ref = DocumentRef::parse("0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b").expect("a reference");
    let next = Some(DocumentPosition { key: OrderedBy::Nothing, document_ref });
    let sums = Some(DocumentSums { count: 7, amounts: Vec::new() });
    let (part, page) = part_of("order=amount&pageSize=2&pageNumber=1");
    let links = |list: &DocumentList, part, page| query("order=amount&pageSize=2&pageNumber=1").document_links(part, page, list);
    let whole = links(&DocumentList { items: Vec::new(), next, sums }, part, page);
    let path = "</api/documents/filter?order=amount&pageSize=2&";
    assert_eq!(
        whole,
        format!(
            "{path}pageNumber=0>; rel=\"first\", {path}pageNumber=0>; rel=\"prev\", {path}cursor=amount~none~{document_ref}>; \
             rel=\"next\", {path}pageNumber=3>; rel=\"last\""
        )
    );
    let last = links(&DocumentList::default(), part, None);
    assert_eq!(last, format!("{path}pageNumber=0>; rel=\"first\""));
}
