//! Actions on several selected documents: issuing drafts, applying credits, and an archive of PDF files.

use billing_api::dto::documents::DocumentJson;
use billing_api::dto::effects::EffectsJson;
use billing_api::dto::wire::ExactNumber;
use billing_api::field as field_name;
use billing_api::json_view::{JsonAnswer, JsonView};
use billing_api::operation::OperationSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::{BulkPage, BulkRow, CONFIRMED, Listing, Selection, View, href, listings};
use billing_application::error::UseCaseError;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::violation::Violations;
use billing_report::ArchiveWriter;
use http::StatusCode;
use http::header::CONTENT_DISPOSITION;
use maud::Markup;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::form_data::field;
use super::lists::{listed, wanted};
use super::page_builder::render_page;
use super::reply::{html, reasons};
use super::session_user::SessionUser;
use billing_api::console::{ApiAnswer, FormData, PageAnswer, PageFile};
use billing_api::operations::{Apply, GetDocument, GetDocumentPdf, IssueDocument};
use billing_api::problem::Problem;

/// Maximum number of selected documents.
const MAX_SELECTED: usize = 100;
/// Number of documents of a customer that credits can settle, and number of its credits that are considered.
const PER_CUSTOMER: &str = "50";
/// The warning before the issue of a document that bills usage of a period that is not over.
pub(super) const OPEN_PERIOD: &str = "Warning: the period of the document is not over. The document becomes final, and later usage of the period is billed by debits.";
/// Form field with an amount to apply: the references of its source and its target, and the amount.
const APPLIED: &str = "applied";

/// An action on several documents.
struct BulkAction {
    word: &'static str,
    label: &'static str,
    operation: &'static OperationSpec,
}

const ISSUE: BulkAction = BulkAction { word: "issue", label: "Issue drafts", operation: &IssueDocument::SPEC };
const APPLY: BulkAction = BulkAction { word: "apply", label: "Apply credits", operation: &Apply::SPEC };
const PDF: BulkAction = BulkAction { word: "pdf", label: "Download PDFs", operation: &GetDocumentPdf::SPEC };

/// Returns the selection on the page of a list, with the actions that the visitor may carry out.
pub(super) fn selection(user: &SessionUser, listing: &Listing, submitted: &FormData) -> Option<Selection> {
    if listing.part != listings::DOCUMENTS.part {
        return None;
    }
    let may = |action: &&BulkAction| allow(user, action).is_ok();
    let actions: Vec<_> = [&ISSUE, &APPLY, &PDF].into_iter().filter(may).map(|action| (action.word, action.label)).collect();
    let is_all = field(submitted, View::SELECTED).is_some();
    let others = submitted.iter().filter(|(name, _)| ![View::SELECTED, "done"].contains(&name.as_str()));
    let mut toggled: Vec<(&str, &str)> = others.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    toggled.extend((!is_all).then_some((View::SELECTED, "all")));
    let toggled = crate::query(&toggled);
    (!actions.is_empty()).then_some(Selection {
        reference: field_name!(DocumentJson, document_ref),
        name: field_name!(DocumentJson, document_number),
        actions,
        is_all,
        toggled,
    })
}

/// Handles the form with the selected documents.
///
/// # Errors
/// Returns a problem for an empty or too large selection, an unknown action, or an action that the visitor may not carry out.
pub(super) async fn act(user: &SessionUser, part: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let word = field(submitted, Selection::ACTION).unwrap_or_default();
    let action = [&ISSUE, &APPLY, &PDF].into_iter().find(|action| action.word == word);
    let action = action.filter(|_| part == listings::DOCUMENTS.part).ok_or_else(Problem::unknown_route)?;
    allow(user, action)?;
    let is_confirmed = field(submitted, CONFIRMED).is_some();
    if action.word == APPLY.word && is_confirmed {
        return apply(user, submitted).await;
    }
    let references = selected(submitted)?;
    match action.word {
        "pdf" => archive(user, references).await,
        "apply" => preview_applications(user, &references).await,
        _ if is_confirmed => issue(user, &references, submitted).await,
        _ => preview_issue(user, &references).await,
    }
}

fn allow(user: &SessionUser, action: &BulkAction) -> Result<(), Problem> {
    user.allow(action.operation.use_case()?)
}

/// Returns the references of the selected documents, each once.
fn selected(submitted: &FormData) -> Result<Vec<String>, Problem> {
    let mut references: Vec<String> = Vec::new();
    for (_, reference) in submitted.iter().filter(|(name, value)| name == Selection::FIELD && !value.is_empty()) {
        if !references.contains(reference) {
            references.push(reference.clone());
        }
    }
    match references.len() {
        0 => Err(wrong("must name at least one document: select documents in the list".to_owned())),
        1..=MAX_SELECTED => Ok(references),
        count => Err(wrong(format!("must name at most {MAX_SELECTED} documents, not {count}: select fewer documents"))),
    }
}

fn wrong(detail: String) -> Problem {
    Problem::from(UseCaseError::Invalid(Violations::one(&[Selection::FIELD], "invalid_value", detail)))
}

/// Shows the effect of issuing each document alone.
async fn preview_issue(user: &SessionUser, references: &[String]) -> Result<PageAnswer, Problem> {
    let quiet = user.quietly();
    let mut rows = Vec::new();
    let mut possible = Vec::new();
    let mut unfinished = 0;
    let today = user.zone.service_date(user.now()).to_string();
    // The list shows the newest documents first. The oldest one is issued first.
    for reference in references.iter().rev() {
        match quiet.rehearse(ISSUE.operation, reference, None).await {
            Ok(effects) => {
                unfinished += usize::from(is_period_open(effects.view(), reference, &today));
                rows.push(issued_row(effects.view(), reference));
                possible.push((Selection::FIELD.to_owned(), reference.clone()));
            }
            Err(problem) => rows.push(refused_row(&quiet, reference, &problem).await),
        }
    }
    let count = possible.len();
    let description = if count == 0 {
        "None of the selected documents can be issued.".to_owned()
    } else {
        format!(
            "Issues {}. Issued documents are final. Each preview ignores the others. A credit is applied to the first document \
             issued.",
            counted(count)
        ) + &open_periods(unfinished)
    };
    let hidden = hidden(user, &ISSUE, possible.into_iter().rev());
    let page =
        BulkPage { button: (count > 0).then_some("Issue documents"), hidden, ..bulk_page("Issue documents", description, rows) };
    Ok(html(shown(user, &page, crate::bulk_preview(&page))))
}

/// Returns whether a document bills usage of a period that is not over.
pub(super) fn is_period_open(effects: JsonView<'_, EffectsJson>, reference: &str, today: &str) -> bool {
    let document = effects.issued().items().find(|document| document.document_ref().is(reference));
    let lines =
        document.into_iter().flat_map(|document| document.products().items()).flat_map(|product| product.line_items().items());
    lines.into_iter().any(|line| line.usage_product_ref().is_there() && line.service_period_end().to_text().as_str() >= today)
}

/// Returns the warning about documents that bill usage of a period that is not over.
fn open_periods(count: usize) -> String {
    let periods = match count {
        0 => return String::new(),
        1 => "The period of 1 document is not over.".to_owned(),
        _ => format!("The periods of {} are not over.", counted(count)),
    };
    format!(" Warning: {periods} Later usage of these periods is billed by debits.")
}

/// Returns the row of a document that a dry run issued.
fn issued_row(effects: JsonView<'_, EffectsJson>, reference: &str) -> BulkRow {
    let changes = effects.changes();
    let others = changes.items().filter(|change| !change.document_ref().is(reference)).count();
    let Some(change) = changes.items().find(|change| change.document_ref().is(reference)) else {
        return BulkRow { documents: vec![[String::new(), String::new(), reference.to_owned()]], ..BulkRow::default() };
    };
    let currency = change.currency().to_text();
    let due = change.outstanding().after();
    let due = if due.is_there() { amount_due(&due.to_text(), &currency) } else { "Issued".to_owned() };
    let effect = if others == 0 { due } else { format!("{due}. Changes {} more", counted(others)) };
    BulkRow {
        documents: vec![[change.kind().to_text(), change.document_number().to_text(), reference.to_owned()]],
        customer: change.customer_name().to_text(),
        amount: change.billed().after().to_text(),
        currency,
        effect,
        problem: None,
    }
}

/// Issues the documents one by one. A refused document does not stop the others.
async fn issue(user: &SessionUser, references: &[String], submitted: &FormData) -> Result<PageAnswer, Problem> {
    let quiet = user.quietly();
    let mut rows = Vec::new();
    for reference in references.iter().rev() {
        // The key is bound to the path of the document, so each document can have the same one.
        let answer = quiet.change(ISSUE.operation, reference, key(submitted, 0), None).await.and_then(|answer| answer.json());
        rows.push(match answer {
            Ok(document) => BulkRow { effect: "Issued".to_owned(), ..row_of(JsonView::of(&document)) },
            Err(problem) => refused_row(&quiet, reference, &problem).await,
        });
    }
    Ok(html(result(user, "Issue documents", "issued", rows)))
}

type Document = JsonAnswer<DocumentJson>;
type DocumentView<'v> = JsonView<'v, DocumentJson>;
/// An amount of a document.
type AmountOf = fn(DocumentView<'_>) -> JsonView<'_, ExactNumber>;

const UNAPPLIED: AmountOf = |document| document.unapplied_amount();
const DUE: AmountOf = |document| document.amount_due();

/// An amount that a credit applies to a document.
#[derive(Clone, Debug)]
struct Allocation {
    credit: Document,
    target: Document,
    amount: Decimal,
    /// Amount due of the target afterwards.
    left: Decimal,
}

/// Shows the amounts that the selected credits, or the credits of the customers of the selected documents, can settle.
async fn preview_applications(user: &SessionUser, references: &[String]) -> Result<PageAnswer, Problem> {
    let quiet = user.quietly();
    let mut documents = Vec::new();
    for reference in references {
        documents.push(quiet.get::<GetDocument>(reference).await?);
    }
    let open = |documents: &[Document], amount: AmountOf| -> Vec<Document> {
        documents.iter().filter(|document| amount_of(document.view(), amount).is_some()).cloned().collect()
    };
    let (mut credits, mut targets) = (open(&documents, UNAPPLIED), open(&documents, DUE));
    let customers: BTreeSet<String> =
        documents.iter().map(|document| document.view().customer().customer_ref().to_text()).collect();
    for customer in &customers {
        let of_customer = ("customer_ref", customer.as_str());
        let small = [("pageSize", PER_CUSTOMER), ("totals", "false")];
        if open(&documents, UNAPPLIED).is_empty() {
            let narrowed = [of_customer, ("kind", "CREDIT"), ("state", "ISSUED"), ("order", "issue_date"), small[0], small[1]];
            credits.extend(open(&listed_documents(&quiet, &narrowed).await?, UNAPPLIED));
        }
        if open(&documents, DUE).is_empty() {
            let narrowed = [of_customer, ("has_amount_due", "true"), ("order", "due_date"), small[0], small[1]];
            targets.extend(open(&listed_documents(&quiet, &narrowed).await?, DUE));
        }
    }
    let mut rows = Vec::new();
    let mut possible = Vec::new();
    for allocation in allocations(&credits, &targets) {
        let (credit, document) = (allocation.credit.view(), allocation.target.view());
        let (source, target) = (credit.document_ref().to_text(), document.document_ref().to_text());
        let tried = quiet.rehearse(APPLY.operation, &source, Some(application(&target, &allocation.amount.to_string())?)).await;
        let problem = tried.err().map(|problem| reasons(&problem));
        if problem.is_none() {
            possible.push((APPLIED.to_owned(), format!("{source} {target} {}", allocation.amount)));
        }
        rows.push(BulkRow {
            documents: vec![name_of(credit), name_of(document)],
            amount: allocation.amount.to_string(),
            effect: amount_due(&allocation.left.to_string(), &document.currency().to_text()),
            problem,
            ..row_of(document)
        });
    }
    let (count, is_empty) = (possible.len(), possible.is_empty());
    let description = if is_empty {
        "The selected documents and their customers have no credit that can settle an amount due.".to_owned()
    } else {
        let amounts = crate::count_text(&count.to_string(), "amount");
        format!(
            "Applies {amounts} of credits to amounts due of the same customer, entity and currency. The oldest due date comes \
             first."
        )
    };
    let hidden = hidden(user, &APPLY, possible.into_iter());
    let page =
        BulkPage { button: (!is_empty).then_some("Apply credits"), hidden, ..bulk_page("Apply credits", description, rows) };
    Ok(html(shown(user, &page, crate::bulk_preview(&page))))
}

async fn listed_documents(user: &SessionUser, narrowed: &[(&str, &str)]) -> Result<Vec<Document>, Problem> {
    let raw = wanted(&listings::DOCUMENTS, narrowed.iter().copied(), PER_CUSTOMER);
    let found = listed(user, &listings::DOCUMENTS, &raw).await?;
    Ok(found.elements.as_array().into_iter().flatten().cloned().map(JsonAnswer::from).collect())
}

/// Allocates credits to amounts due of the same customer, entity and currency, in the given order of the credits and by due date.
fn allocations(credits: &[Document], targets: &[Document]) -> Vec<Allocation> {
    let account = |document: &Document| {
        let document = document.view();
        let (customer, entity) = (document.customer().customer_ref(), document.entity().entity_ref());
        (customer.to_text(), entity.to_text(), document.currency().to_text())
    };
    let mut due: Vec<(&Document, Decimal)> =
        targets.iter().filter_map(|target| Some((target, amount_of(target.view(), DUE)?))).collect();
    due.sort_by_key(|(target, _)| target.view().due_date().to_text());
    let mut found = Vec::new();
    for credit in credits {
        let mut unapplied = amount_of(credit.view(), UNAPPLIED).unwrap_or_default();
        for (target, left) in due.iter_mut().filter(|(target, _)| account(target) == account(credit)) {
            let amount = unapplied.min(*left);
            if amount.is_zero() {
                continue;
            }
            unapplied -= amount;
            *left -= amount;
            found.push(Allocation { credit: credit.clone(), target: (*target).clone(), amount, left: *left });
        }
    }
    found
}

/// Applies the previewed amounts one by one. A refused one does not stop the others.
async fn apply(user: &SessionUser, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let quiet = user.quietly();
    let mut rows = Vec::new();
    let applied = submitted.iter().filter(|(name, _)| name == APPLIED).take(MAX_SELECTED);
    for (place, (_, applied)) in applied.enumerate() {
        let mut parts = applied.split(' ');
        let (Some(source), Some(target), Some(amount), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(wrong("must come from the preview of the action: select the documents again".to_owned()));
        };
        let body = application(target, amount)?;
        let answer =
            quiet.change(APPLY.operation, source, key(submitted, place), Some(body)).await.and_then(|answer| answer.json());
        rows.push(match answer {
            Ok(document) => {
                let document = DocumentView::of(&document);
                let effect = amount_due(&document.amount_due().to_text(), &document.currency().to_text());
                BulkRow { amount: amount.to_owned(), effect, ..row_of(document) }
            }
            Err(problem) => refused_row(&quiet, target, &problem).await,
        });
    }
    Ok(html(result(user, "Apply credits", "settled", rows)))
}

/// Returns the body that applies an amount to a document.
fn application(target: &str, amount: &str) -> Result<Value, Problem> {
    let amount: Value = serde_json::from_str(amount).map_err(|_| wrong(format!("must have an amount, not {amount}")))?;
    Ok(json!({"document_ref": target, "amount": amount}))
}

/// Returns the PDF files of documents as one archive, which is written while it is sent.
async fn archive(user: &SessionUser, references: Vec<String>) -> Result<PageAnswer, Problem> {
    let reader = user.quietly();
    let file = PageFile {
        media_type: "application/zip",
        name: "documents.zip".to_owned(),
        write: Box::new(move |writer, is_wanted| Box::pin(async move { files(&reader, &references, (writer, is_wanted)).await })),
    };
    Ok(PageAnswer::File(user.stream(file).await?))
}

/// Writes the PDF file of each document. An archive with refused documents has a list of them, so that nobody misses them.
async fn files(
    user: &SessionUser,
    references: &[String],
    (writer, is_wanted): (&mut (dyn std::io::Write + Send), &dyn Fn() -> bool),
) -> Result<(), Problem> {
    let broken = |error: std::io::Error| {
        tracing::warn!(%error, "an archive ended before its end");
        Problem::internal()
    };
    let mut archive = ArchiveWriter::new(writer);
    let mut missing = String::new();
    for reference in references {
        if !is_wanted() {
            return Err(Problem::timed_out());
        }
        match user.answer(PDF.operation, reference, "").await {
            Ok(answer) => {
                let (name, content) = file(answer, reference)?;
                archive.add(&name, &content).map_err(broken)?;
            }
            Err(problem) if problem.status().is_client_error() => {
                let _ = writeln!(missing, "{reference}: {}", reasons(&problem));
            }
            Err(problem) => return Err(problem),
        }
    }
    if !missing.is_empty() {
        archive.add("not-included.txt", missing.as_bytes()).map_err(broken)?;
    }
    archive.finish().map_err(broken)
}

/// Returns the name and the content of a file.
fn file(answer: ApiAnswer, reference: &str) -> Result<(String, Vec<u8>), Problem> {
    if answer.status != StatusCode::OK {
        return Err(Problem::internal());
    }
    let name = answer.header(CONTENT_DISPOSITION).and_then(|text| text.split('"').nth(1));
    let name = name.map_or_else(|| format!("{reference}.pdf"), str::to_owned);
    Ok((name, answer.body))
}

/// Returns the row of a document that an operation refused.
async fn refused_row(user: &SessionUser, reference: &str, problem: &Problem) -> BulkRow {
    let known = user.get::<GetDocument>(reference).await;
    let row = known.map_or_else(
        |_| BulkRow { documents: vec![[String::new(), reference.to_owned(), reference.to_owned()]], ..BulkRow::default() },
        |document| row_of(document.view()),
    );
    BulkRow { problem: Some(reasons(problem)), ..row }
}

/// Returns the row of a document with its total.
fn row_of(document: DocumentView<'_>) -> BulkRow {
    BulkRow {
        documents: vec![name_of(document)],
        customer: document.customer().customer_name().to_text(),
        amount: document.total().to_text(),
        currency: document.currency().to_text(),
        effect: String::new(),
        problem: None,
    }
}

fn name_of(document: DocumentView<'_>) -> [String; 3] {
    [document.kind().to_text(), document.document_number().to_text(), document.document_ref().to_text()]
}

/// Returns an amount above 0 of a document that is not a draft.
fn amount_of(document: DocumentView<'_>, amount: AmountOf) -> Option<Decimal> {
    let amount = Decimal::from_str_exact(&amount(document).to_text()).ok()?;
    (amount > Decimal::ZERO && !document.state().is("DRAFT")).then_some(amount)
}

/// Returns the key of a step. The form's key prevents a second execution when the form is sent twice.
fn key(submitted: &FormData, place: usize) -> Option<IdempotencyKey> {
    IdempotencyKey::parse(&format!("{}:{place}", field(submitted, "form_key")?)).ok()
}

fn hidden(user: &SessionUser, action: &BulkAction, steps: impl Iterator<Item = (String, String)>) -> FormData {
    let own = [(Selection::ACTION, action.word.to_owned()), ("form_key", user.unique())];
    own.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(steps).collect()
}

fn counted(count: usize) -> String {
    crate::count_text(&count.to_string(), "document")
}

/// Writes the amount due of a document.
fn amount_due(amount: &str, currency: &str) -> String {
    format!("Amount due {}", crate::amount_text(amount, currency))
}

fn bulk_page(title: &'static str, description: String, rows: Vec<BulkRow>) -> BulkPage {
    let totals = totals(&rows);
    let part = listings::DOCUMENTS.part;
    BulkPage {
        title,
        description,
        rows,
        totals,
        action: href(&["bulk", part]),
        button: None,
        hidden: FormData::new(),
        back: href(&[part]),
    }
}

/// Returns the sums of the amounts of the steps that are possible, by currency.
fn totals(rows: &[BulkRow]) -> Vec<(String, String)> {
    let mut sums: BTreeMap<&str, Option<Decimal>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.problem.is_none() && !row.amount.is_empty()) {
        let sum = sums.entry(row.currency.as_str()).or_insert(Some(Decimal::ZERO));
        *sum = sum.zip(Decimal::from_str_exact(&row.amount).ok()).and_then(|(sum, amount)| sum.checked_add(amount));
    }
    sums.into_iter().filter_map(|(currency, sum)| Some((sum?.to_string(), currency.to_owned()))).collect()
}

fn result(user: &SessionUser, title: &'static str, done: &str, rows: Vec<BulkRow>) -> String {
    let refused = rows.iter().filter(|row| row.problem.is_some()).count();
    let mut description = format!("{} {done}.", counted(rows.len() - refused));
    if refused > 0 {
        let _ = write!(description, " {} unchanged.", counted(refused));
    }
    let page = bulk_page(title, description, rows);
    let body = crate::bulk_result(&page);
    shown(user, &page, body)
}

fn shown(user: &SessionUser, page: &BulkPage, body: Markup) -> String {
    render_page(user, page.title.to_owned(), listings::DOCUMENTS.part, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(reference: &str, kind: &str, customer: &str, amount: Value, due_date: &str) -> Document {
        let (due, unapplied) = if kind == "CREDIT" { (Value::Null, amount) } else { (amount, Value::Null) };
        json!({
            "document_ref": reference, "document_number": reference, "kind": kind, "state": "ISSUED", "currency": "EUR",
            "customer": {"customer_ref": customer, "customer_name": customer}, "entity": {"entity_ref": "seller"},
            "total": 1, "amount_due": due, "unapplied_amount": unapplied, "due_date": due_date,
        })
        .into()
    }

    #[test]
    fn credits_settle_the_oldest_amounts_due_of_their_own_account() {
        let credits = [document("c1", "CREDIT", "acme", json!(30), ""), document("c2", "CREDIT", "globex", json!(5.5), "")];
        let targets = [
            document("late", "INVOICE", "acme", json!(100), "2026-12-01"),
            document("early", "INVOICE", "acme", json!(20.25), "2026-10-01"),
            document("other", "INVOICE", "globex", json!(5), "2026-10-01"),
            document("foreign", "INVOICE", "initech", json!(5), "2026-09-01"),
        ];
        let found: Vec<String> = allocations(&credits, &targets)
            .iter()
            .map(|one| {
                let [credit, target] = [&one.credit, &one.target].map(|document| document.view().document_ref().to_text());
                format!("{credit} {target} {} {}", one.amount, one.left)
            })
            .collect();
        assert_eq!(found, ["c1 early 20.25 0.00", "c1 late 9.75 90.25", "c2 other 5 0"]);
    }

    #[test]
    fn a_selection_names_each_document_once_and_not_too_many() {
        let submitted =
            |count: usize| -> FormData { (0..count).flat_map(|n| vec![("ref".to_owned(), format!("d{n}")); 2]).collect() };
        assert_eq!(selected(&submitted(2)).map(|found| found.len()).ok(), Some(2));
        assert!(selected(&submitted(MAX_SELECTED)).is_ok());
        for count in [0, MAX_SELECTED + 1] {
            let problem = selected(&submitted(count)).expect_err("a wrong number");
            assert!(problem.errors()[0].detail.contains("select"), "{}", problem.errors()[0].detail);
        }
    }

    #[test]
    fn a_period_is_open_up_to_its_last_day() {
        let line = json!({"usage_product_ref": "calls", "service_period_end": "2026-01-31"});
        let effects = json!({"issued": [{"document_ref": "d", "products": [{"line_items": [line]}]}]});
        let is_open = |reference: &str, today: &str| is_period_open(JsonView::of(&effects), reference, today);
        assert!(is_open("d", "2026-01-31") && !is_open("d", "2026-02-01") && !is_open("other", "2026-01-31"));
        assert_eq!(open_periods(0), "");
        assert!(open_periods(1).contains("The period of 1 document is not over.") && open_periods(2).contains("2 documents"));
    }

    #[test]
    fn totals_leave_out_what_is_not_possible() {
        let row = |amount: &str, currency: &str, problem: Option<&str>| BulkRow {
            amount: amount.to_owned(),
            currency: currency.to_owned(),
            problem: problem.map(str::to_owned),
            ..BulkRow::default()
        };
        let rows = [row("1.50", "EUR", None), row("2", "EUR", None), row("7", "EUR", Some("no")), row("4", "USD", None)];
        assert_eq!(totals(&rows), [("3.50".to_owned(), "EUR".to_owned()), ("4".to_owned(), "USD".to_owned())]);
    }
}
