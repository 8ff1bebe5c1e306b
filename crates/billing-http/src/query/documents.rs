//! What lists of documents are narrowed to, in which order they come, and where a list goes on.

use actix_web::HttpResponse;
use actix_web::http::header::LINK;
use billing_application::documents::{DocumentList, DocumentPart, DocumentQuery};
use billing_domain::calendar::{Timestamp, parse_date};
use billing_domain::contract::Contract;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::money::{Currency, Money};
use billing_domain::page::PageRequest;
use billing_domain::ports::{
    DocumentAmounts, DocumentFilter, DocumentOrder, DocumentPosition, DocumentSortKey, DocumentSums, ListPart, OrderedBy,
};
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, EntityRef};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;
use billing_report::ReportFormat;

use super::{DEFAULT_PAGE_SIZE, NUMBER, Query, SIZE, TOTAL, complete};
use crate::dto::documents::DocumentJson;
use crate::dto::words::{DocumentKindWord, DocumentOrderWord, DocumentStateWord, PurposeKindWord, ReportFormatWord};
use crate::problem::Problem;

const CURSOR: &str = "cursor";
const TOTALS: &str = "totals";
const FORMAT: &str = "format";
const ORDER: &str = "order";
const TOTAL_AMOUNT: &str = "x-total-amount";
const TOTAL_AMOUNT_DUE: &str = "x-total-amount-due";

/// What is asked of the documents that pass a query.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    /// A part of them, and the page it is, where it is one with a number.
    Part(DocumentPart, Option<PageRequest>),
    /// All of them, as a table in an order.
    Table(ReportFormat, DocumentOrder),
}

impl Query {
    /// Documents, and what is asked of them. No query for a reference or number that can't exist.
    pub(crate) fn documents(&self) -> Result<(Option<DocumentQuery>, Asked), Problem> {
        let mut found = Violations::none();
        let query = self.document_query(&mut found);
        let order = self.word::<DocumentOrderWord>(ORDER, &mut found).unwrap_or_default();
        let asked = if self.has(FORMAT) { self.table(order, &mut found) } else { self.part(order, &mut found) };
        complete(found, asked.map(|asked| (query, asked)))
    }

    fn table(&self, order: DocumentOrder, found: &mut Violations) -> Option<Asked> {
        for name in [SIZE, NUMBER, CURSOR, TOTALS] {
            if self.has(name) {
                found.add(&[name], "invalid_value", "can't be given with format: a table has every document");
            }
        }
        self.word::<ReportFormatWord>(FORMAT, found).map(|format| Asked::Table(format, order))
    }

    fn part(&self, order: DocumentOrder, found: &mut Violations) -> Option<Asked> {
        let page = self.read_page(Some(DEFAULT_PAGE_SIZE), found);
        let cursor = self.text(CURSOR, found).map(|text| (text, read_cursor(order, text)));
        if cursor.is_some() && self.has(NUMBER) {
            found.add(&[NUMBER], "invalid_value", "can't be given with cursor, which says where to go on");
        }
        let after = match cursor {
            None => None,
            Some((_, Some(after))) => Some(after),
            Some((_, None)) => {
                let reason = "must be taken from the next link of the same list in the same order";
                found.add(&[CURSOR], "invalid_value", reason);
                None
            }
        };
        let with_sums = self.flag(TOTALS, found).unwrap_or(after.is_none());
        let page = page?;
        let part = if after.is_some() { ListPart { after, skip: 0, limit: page.size() } } else { page.into() };
        Some(Asked::Part(DocumentPart { order, part, with_sums }, after.is_none().then_some(page)))
    }

    fn document_query(&self, found: &mut Violations) -> Option<DocumentQuery> {
        let customer_ref = self.text("customer_ref", found).map(|text| CustomerRef::parse(text).ok());
        let contract_ref = self.text("contract_ref", found).map(|text| ContractRef::parse(text).ok());
        let contract_number = self.text("contract_number", found).map(Contract::read_number);
        let entity_ref = self.text("entity_ref", found).map(|text| EntityRef::parse(text).ok());
        let number = self.text("document_number", found).map(DocumentNumber::parse);
        let po_number = self.text("po_number", found).map(|text| OneLine::parse(text).ok());
        let can_exist = customer_ref != Some(None)
            && contract_ref != Some(None)
            && contract_number != Some(None)
            && entity_ref != Some(None)
            && number != Some(None)
            && po_number != Some(None);
        let filter = DocumentFilter {
            customer_id: None,
            contract_ref: contract_ref.flatten(),
            entity_ref: entity_ref.flatten(),
            kind: self.word::<DocumentKindWord>("kind", found),
            state: self.word::<DocumentStateWord>("state", found),
            from: self.date("from", found),
            to: self.date("to", found),
            number: number.flatten(),
            po_number: po_number.flatten(),
            purpose: self.word::<PurposeKindWord>("purpose", found),
            currency: self.currency(found),
            issued_from: self.date("issued_from", found),
            issued_to: self.date("issued_to", found),
            due_from: self.date("due_from", found),
            due_to: self.date("due_to", found),
            updated_since: self.instant("updated_since", found),
            has_amount_due: self.flag("has_amount_due", found),
            overdue: None,
        };
        let overdue = self.flag("overdue", found);
        let (customer_ref, contract_number) = (customer_ref.flatten(), contract_number.flatten());
        can_exist.then_some(DocumentQuery { customer_ref, contract_number, overdue, filter })
    }

    fn currency(&self, found: &mut Violations) -> Option<Currency> {
        let code = self.text("currency", found)?;
        let currency = Currency::from_code(code);
        currency.map_err(|reason| found.add(&["currency"], "invalid_value", reason.to_string())).ok()
    }

    /// The answer with a part of the documents that were asked for: as of other lists, and with what all amount to by currency.
    pub(crate) fn answer_documents(&self, part: DocumentPart, page: Option<PageRequest>, list: &DocumentList) -> HttpResponse {
        let elements: Vec<DocumentJson> = list.items.iter().map(DocumentJson::from).collect();
        let mut response = HttpResponse::Ok();
        if let Some(sums) = &list.sums {
            response.insert_header((TOTAL, sums.count.to_string()));
            if !sums.amounts.is_empty() {
                response.insert_header((TOTAL_AMOUNT, shown(sums, |amounts| amounts.total)));
                response.insert_header((TOTAL_AMOUNT_DUE, shown(sums, |amounts| amounts.due)));
            }
        }
        response.insert_header((LINK, self.document_links(part, page, list)));
        response.json(elements)
    }

    fn document_links(&self, part: DocumentPart, page: Option<PageRequest>, list: &DocumentList) -> String {
        let size = u64::from(part.part.limit);
        let kept = |pair: &&str| !matches!(pair.split('=').next().unwrap_or_default(), "" | SIZE | NUMBER | CURSOR);
        let others: String = self.raw.split('&').filter(kept).flat_map(|pair| [pair, "&"]).collect();
        let link = |relation: &str, place: String| format!(r#"<{}?{others}{SIZE}={size}&{place}>; rel="{relation}""#, self.path);
        let numbered = |relation: &str, number: u64| link(relation, format!("{NUMBER}={number}"));
        let last = list.sums.as_ref().map(|sums| sums.count.saturating_sub(1) / size);
        let previous = page.and_then(|page| u64::from(page.number()).checked_sub(1));
        let previous = previous.map(|previous| last.map_or(previous, |last| previous.min(last)));
        let next = list.next.map(|next| format!("{CURSOR}={}", cursor(part.order, &next)));
        let links = [
            Some(numbered("first", 0)),
            previous.map(|previous| numbered("prev", previous)),
            next.map(|next| link("next", next)),
            last.map(|last| numbered("last", last)),
        ];
        links.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// `EUR 12.50, USD 0.00`.
fn shown(sums: &DocumentSums, amount: impl Fn(&DocumentAmounts) -> Money) -> String {
    let shown = |amounts: &DocumentAmounts| format!("{} {}", amounts.currency().code(), amount(amounts).to_decimal());
    sums.amounts.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// A place in a list, as a caller gives it back: the order, what the document there is ordered by, and its reference.
fn cursor(order: DocumentOrder, position: &DocumentPosition) -> String {
    let key = match position.key {
        OrderedBy::Created(at) => at.as_micros().to_string(),
        OrderedBy::Day(day) => day.to_string(),
        OrderedBy::Amount(amount) => format!("{}:{}", amount.currency().code(), amount.minor()),
        OrderedBy::Nothing => NOT_ISSUED.to_owned(),
    };
    format!("{}~{key}~{}", DocumentOrderWord::word(order), position.document_ref)
}

/// What stands in a cursor behind everything that was issued.
const NOT_ISSUED: &str = "none";

/// Reads what [`cursor`] wrote for the same order.
fn read_cursor(order: DocumentOrder, text: &str) -> Option<DocumentPosition> {
    let mut parts = text.split('~');
    let (word, key, document_ref) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || word != DocumentOrderWord::word(order) {
        return None;
    }
    let key = match order.by {
        DocumentSortKey::Created => OrderedBy::Created(Timestamp::from_micros(key.parse().ok()?).ok()?),
        _ if key == NOT_ISSUED => OrderedBy::Nothing,
        DocumentSortKey::IssueDate | DocumentSortKey::DueDate => OrderedBy::Day(parse_date(key).ok()?),
        DocumentSortKey::Amount => {
            let (currency, minor) = key.split_once(':')?;
            OrderedBy::Amount(Money::from_minor(minor.parse().ok()?, Currency::from_code(currency).ok()?))
        }
    };
    Some(DocumentPosition { key, document_ref: DocumentRef::parse(document_ref).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dto::words::Words as _;

    fn query(raw: &str) -> Query {
        Query::parse("/api/documents/filter", raw).expect(raw)
    }

    fn codes<T>(outcome: Result<T, Problem>) -> Vec<(String, &'static str)> {
        outcome.err().map_or_else(Vec::new, |problem| problem.fields())
    }

    fn part_of(raw: &str) -> (DocumentPart, Option<PageRequest>) {
        match query(raw).documents().expect(raw).1 {
            Asked::Part(part, page) => (part, page),
            Asked::Table(..) => panic!("{raw}: a table"),
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
        for nothing in ["contract_ref=nonsense", "document_number=12", "contract_number=C-x", "po_number=", "customer_ref=a%20b"]
        {
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
            Asked::Table(ReportFormat::Csv, DocumentOrder { by: DocumentSortKey::Amount, descending: true })
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
        let links =
            |list: &DocumentList, part, page| query("order=amount&pageSize=2&pageNumber=1").document_links(part, page, list);
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
}
