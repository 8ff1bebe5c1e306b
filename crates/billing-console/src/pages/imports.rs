//! Import pages. The forms carry the file from page to page, so that the server stores no pending file.

use crate::{
    COLUMN_OF, COLUMN_QUESTIONS, Crumb, Frame, LIVE, Notice, ON_EVERY_LINE, OpenQuestion, PendingFile, ReadField, href, listings,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing_api::console::{Gateway, PageAnswer, Upload, UsageUpload};
use billing_api::dto::imports::{ImportColumnJson, ImportResultJson, UndoResultJson};
use billing_api::json_view::{JsonAnswer, JsonView};
use billing_api::operation::Described as _;
use billing_api::operations::{GetImport, ImportUsage, UndoImport};
use billing_application::UseCase;
use billing_import::{ColumnMap, FileError, FileKind, ReadOptions, UsageFile};
use maud::Markup;
use serde_json::{Map, Value, json};

use super::lists::some_of;
use super::page_builder::PageBuilder;
use super::refused_to;
use super::reply::{caption, html, reasons, to};
use super::session_user::SessionUser;
use billing_api::problem::Problem;

/// Maximum size of a file that the forms carry. Base64 adds a third.
const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Number of lines whose values the questions about columns show.
const MAX_SAMPLES: usize = 3;
/// Maximum length of a sample.
const MAX_SAMPLE_CHARS: usize = 80;
/// Name prefix of pasted text.
const PASTED: &str = "pasted";

/// Renders the page of an import.
pub(super) async fn page(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let import = user.get::<GetImport>(reference).await?;
    let body = crate::import(import.view(), user.may(UseCase::UndoImport), &Markup::default());
    Ok(PageBuilder { title: "Import".to_owned(), part: listings::IMPORTS.part, crumbs: crumbs(None), body })
}

/// Renders the confirmation page for undoing an import.
pub(super) async fn undo_page(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    undo_page_with(user, reference, JsonAnswer::default().view()).await
}

async fn undo_page_with(
    user: &SessionUser,
    reference: &str,
    result: JsonView<'_, UndoResultJson>,
) -> Result<PageBuilder, Problem> {
    let import = user.quietly().get::<GetImport>(reference).await?;
    user.shows(&UndoImport::SPEC, reference, "");
    let body = crate::import_undo(import.view(), result);
    Ok(PageBuilder { title: "Undo import".to_owned(), part: listings::IMPORTS.part, crumbs: crumbs(Some(reference)), body })
}

fn crumbs(of: Option<&str>) -> Vec<Crumb> {
    let part = listings::IMPORTS.part;
    let import = of.map(|reference| Crumb { name: "Import".to_owned(), href: href(&[part, reference]) });
    let all = Crumb { name: listings::IMPORTS.title.to_owned(), href: href(&[part]) };
    std::iter::once(all).chain(import).collect()
}

/// Undoes an import and shows the remaining events.
pub(super) async fn undo(user: &SessionUser, reference: &str) -> Result<PageAnswer, Problem> {
    let result = user.carry_out::<UndoImport>(reference, None, None).await?;
    if result.view().refused().is_amount() {
        let made = undo_page_with(user, reference, result.view()).await?;
        return Ok(html(made.page(user, None)));
    }
    let import = user.quietly().get::<GetImport>(reference).await?;
    let changed = crate::undone_documents(result.view());
    let body = crate::import(import.view(), user.may(UseCase::UndoImport), &changed);
    let made = PageBuilder { title: "Import".to_owned(), part: listings::IMPORTS.part, crumbs: crumbs(None), body };
    let done = if result.view().left().is_amount() {
        "Import undone in part. Some events remain: continue the undo."
    } else {
        "Import undone. No events remain."
    };
    Ok(html(made.page(user, Some(Notice::Done(done.to_owned())))))
}

/// Renders the upload page.
pub(super) async fn form(user: &SessionUser) -> Result<PageBuilder, Problem> {
    Ok(form_page(user, crate::import_form(JsonView::of(&formats(user).await?), MAX_FILE_BYTES)))
}

fn form_page(user: &SessionUser, body: Markup) -> PageBuilder {
    user.shows(&ImportUsage::SPEC, "", "dry_run=true");
    PageBuilder { title: "Import file".to_owned(), part: listings::IMPORTS.part, crumbs: crumbs(None), body }
}

/// Loads the organization's usage formats.
async fn formats(user: &SessionUser) -> Result<Value, Problem> {
    some_of(user, &listings::FORMATS, "1000").await
}

/// Handles the submitted upload forms.
pub(super) async fn act(user: &SessionUser, gateway: &dyn Gateway) -> PageAnswer {
    if let Err(problem) = user.allow(UseCase::RecordUsage) {
        return refused_to(user, problem);
    }
    // The file is read only after authentication.
    let outcome = match gateway.upload().await {
        Ok(form) => carry_out(user, &form).await,
        Err(problem) => Err(problem),
    };
    match outcome {
        Ok(response) => response,
        // An unreadable file is reported on the upload page, where another file can be chosen.
        Err(problem) => match self::form(user).await {
            Ok(made) => {
                let notice = Notice::Refused(problem.code().to_owned(), reasons(&problem));
                caption(problem, made.page(user, Some(notice)))
            }
            Err(other) => refused_to(user, other),
        },
    }
}

async fn carry_out(user: &SessionUser, form: &Upload) -> Result<PageAnswer, Problem> {
    if form.text(LIVE).is_some() {
        return live(user, form).await;
    }
    let (name, bytes) = file(form)?;
    let submitted = columns(form);
    let chosen = form.texts("column").zip(form.texts("called"));
    let file = PendingFile {
        content: STANDARD.encode(&bytes),
        format_name: form.text("format_name").unwrap_or_default().to_owned(),
        columns: chosen.map(|(column, called)| (column.to_owned(), called.to_owned())).collect(),
        constants: constants(form),
        updates: form.text("on_conflict").is_some(),
        name,
    };
    if form.text("do") == Some("import") {
        return imported(user, &file, &bytes, submitted.as_ref()).await;
    }
    let mut guess = None;
    if file.format_name.is_empty() {
        if submitted.is_none() {
            guess = guessed(columns_of(&bytes, None)?.view());
        }
        let columns = match columns_of(&bytes, submitted.as_ref().or(guess.as_ref())) {
            Ok(columns) => columns,
            Err(problem) => return chosen_again(user, &file, &bytes, problem).await,
        };
        let questions = crate::open_questions(columns.view(), &file.constants);
        if !questions.is_empty() {
            return Ok(asked(user, &file, columns.view(), (&questions, &[]), submitted.is_some()));
        }
    }
    let called = submitted.as_ref().or(guess.as_ref());
    let tried = match import(user, (&file, &bytes), called, true).await {
        Err(problem) if problem.code() == "malformed_file" && submitted.is_some() => {
            return chosen_again(user, &file, &bytes, problem).await;
        }
        tried => tried?,
    };
    let (result, stop) = match &submitted {
        Some(submitted) if file.format_name.is_empty() => by_name(user, form, (&file, &bytes, submitted), tried).await?,
        Some(_) | None => tried,
    };
    let formats = formats(user).await?;
    let formats = JsonView::of(&formats);
    if let (Some(format), None) = (crate::format_of(formats, &file.format_name), &submitted) {
        // Expressions can do without a field, so only rejected lines lead to questions.
        let questions = crate::missing_fields(format, result.view().columns(), &file.constants);
        if !questions.is_empty() && result.view().refused().is_amount() {
            let read = crate::read_fields(format);
            return Ok(asked(user, &file, result.view().columns(), (&questions, &read), false));
        }
    }
    let body = crate::import_check(&file, formats, result.view());
    Ok(page_of(stop, form_page(user, body).page(user, None)))
}

/// Imports the file and shows the import, or its result if it was not complete.
async fn imported(
    user: &SessionUser,
    file: &PendingFile,
    bytes: &[u8],
    submitted: Option<&Map<String, Value>>,
) -> Result<PageAnswer, Problem> {
    let (result, stop) = import(user, (file, bytes), submitted, false).await?;
    let page = href(&[listings::IMPORTS.part, &result.view().import_ref().to_text()]);
    if !result.view().refused().is_amount() && stop.is_none() {
        return Ok(to(&format!("{page}?done=import")));
    }
    let body = crate::import_result(file, result.view());
    let framed = user.frame("Import result".to_owned());
    let frame = Frame { part: listings::IMPORTS.part, crumbs: crumbs(None), ..framed };
    Ok(page_of(stop, user.page(&frame, &body)))
}

/// Returns the page with questions about columns. Questions that an answer left open are errors.
fn asked(
    user: &SessionUser,
    file: &PendingFile,
    columns: JsonView<'_, Vec<ImportColumnJson>>,
    (questions, read): (&[OpenQuestion], &[ReadField]),
    is_repeated: bool,
) -> PageAnswer {
    let body = crate::import_questions(file, columns, questions, read, is_repeated);
    let page = form_page(user, body).page(user, None);
    if !is_repeated {
        return html(page);
    }
    let remedies: Vec<String> = questions.iter().map(OpenQuestion::remedy).collect();
    caption(Problem::malformed("malformed_file", remedies.join(" ")), page)
}

/// Returns the page on which columns are chosen again, after a choice that cannot be read.
async fn chosen_again(user: &SessionUser, file: &PendingFile, bytes: &[u8], problem: Problem) -> Result<PageAnswer, Problem> {
    let mut columns = columns_of(bytes, None)?.view().json().clone();
    for column in columns.as_array_mut().into_iter().flatten() {
        if let Some((name, called)) = file.columns.iter().find(|(name, _)| column["name"] == name.as_str()) {
            column["called"] = match called.as_str() {
                "" => name.as_str().into(),
                "-" => Value::Null,
                called => called.into(),
            };
        }
    }
    let body = crate::import_columns(file, JsonView::of(&formats(user).await?), JsonView::of(&columns), problem.detail());
    Ok(caption(problem, form_page(user, body).page(user, None)))
}

/// Answers the script of the upload page: the fields that the import reads, and the columns of the beginning of the file.
async fn live(user: &SessionUser, form: &Upload) -> Result<PageAnswer, Problem> {
    let formats = formats(user).await?;
    let format = crate::format_of(JsonView::of(&formats), form.text("format_name").unwrap_or_default());
    let columns = match file(form) {
        Ok((_, bytes)) => Some(fields_of(&bytes)?),
        Err(_) => None,
    };
    let view = columns.as_ref().map(JsonAnswer::view);
    let columns = match (format, view) {
        (None, Some(view)) => guessed(view).map(|guess| renamed(view, &guess)),
        _ => None,
    }
    .or(columns);
    let body = crate::import_fields(format, columns.as_ref().map(JsonAnswer::view));
    Ok(html(form_page(user, maud::html! { div data-result { (body) } }).page(user, None)))
}

/// Returns columns with the names of a guess.
fn renamed(columns: JsonView<'_, Vec<ImportColumnJson>>, guess: &Map<String, Value>) -> JsonAnswer<Vec<ImportColumnJson>> {
    let mut columns = columns.json().clone();
    for column in columns.as_array_mut().into_iter().flatten() {
        if let Some(called) = column["name"].as_str().and_then(|name| guess.get(name)) {
            column["called"] = called.clone();
        }
    }
    JsonAnswer::from(columns)
}

/// Returns the columns of a file, or the fields of its first event.
fn fields_of(bytes: &[u8]) -> Result<JsonAnswer<Vec<ImportColumnJson>>, Problem> {
    if kind_of(bytes).1 == FileKind::Csv {
        return columns_of(bytes, None);
    }
    // A usage format reads the event as it is.
    let reading = ReadOptions { format_name: Some(String::new()), ..ReadOptions::default() };
    let first = UsageFile::open(bytes, kind_of(bytes).1, reading).and_then(|mut file| file.next_line()).map_err(malformed)?;
    let event = first.and_then(|line| line.event.ok()).map(|event| event.event).unwrap_or_default();
    let Ok(Value::Object(members)) = billing_json::read(event.as_bytes()) else { return Ok(JsonAnswer::from(json!([]))) };
    let column = |(name, value): (String, Value)| {
        let sample: String = JsonView::<Value>::of(&value).to_text().chars().take(MAX_SAMPLE_CHARS).collect();
        json!({"name": name, "called": name, "report_data": false, "samples": [sample]})
    };
    Ok(JsonAnswer::from(Value::from_iter(members.into_iter().map(column))))
}

fn malformed(error: FileError) -> Problem {
    Problem::malformed("malformed_file", error.to_string())
}

/// Returns a page with a result. The page of an import that stopped has the status of its problem.
fn page_of(stop: Option<Problem>, page: String) -> PageAnswer {
    match stop {
        Some(problem) => caption(problem, page),
        None => html(page),
    }
}

/// Returns the uploaded, pasted or carried file.
fn file(form: &Upload) -> Result<(String, Vec<u8>), Problem> {
    let (name, bytes) =
        match (form.file("file"), form.text("pasted").filter(|text| !text.trim().is_empty()), form.text("content")) {
            (Some((name, bytes)), ..) => (name.to_owned(), bytes.to_vec()),
            (None, Some(text), _) => {
                // The name contains the content hash, so that pasting the same lines twice imports them once.
                let bytes = text.as_bytes().to_vec();
                let (_, sha256) = billing_import::fingerprint(&*bytes).map_err(|_| Problem::internal())?;
                let digits: String = sha256.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                (format!("{PASTED}-{digits}"), bytes)
            }
            (None, None, Some(content)) => {
                let bytes = STANDARD
                    .decode(content)
                    .map_err(|_| Problem::malformed("malformed_form", "the file content is invalid: choose the file again"))?;
                (form.text("name").unwrap_or(PASTED).to_owned(), bytes)
            }
            (None, None, None) => {
                return Err(Problem::malformed("malformed_file", "no file is selected: choose a file or paste its content"));
            }
        };
    if bytes.len() > MAX_FILE_BYTES {
        return Err(Problem::file_too_large(MAX_FILE_BYTES));
    }
    Ok((name, bytes))
}

/// Tries a column that answers a question as names instead of references. Returns the preview with fewer rejected lines.
async fn by_name(
    user: &SessionUser,
    form: &Upload,
    (file, bytes, submitted): (&PendingFile, &[u8], &Map<String, Value>),
    by_reference: ImportOutcome,
) -> Result<ImportOutcome, Problem> {
    let (mut best, mut columns) = (by_reference, submitted.clone());
    for (column, fields) in answers(form) {
        let Some(by_name) = fields.get(1) else { continue };
        let refused = |outcome: &ImportOutcome| outcome.0.view().refused().to_text().parse::<u64>().unwrap_or_default();
        if refused(&best) == 0 {
            break;
        }
        let other: Map<String, Value> = columns.clone().into_iter().chain([(column.to_owned(), (*by_name).into())]).collect();
        let tried = import(user, (file, bytes), Some(&other), true).await?;
        if refused(&tried) < refused(&best) {
            (best, columns) = (tried, other);
        }
    }
    Ok(best)
}

/// Returns the columns that answer questions, with the fields of each question. A value for every line replaces the column.
fn answers(form: &Upload) -> impl Iterator<Item = (&str, &'static [&'static str])> {
    COLUMN_QUESTIONS.iter().filter_map(|question| {
        let field = question.fields.first()?;
        let column = form.text(field).filter(|column| !column.is_empty())?;
        let is_constant = constants(form).iter().any(|(constant, _)| constant == field);
        (!is_constant).then_some((column, question.fields))
    })
}

/// Returns the fields with the same value on every line.
fn constants(form: &Upload) -> Vec<(String, String)> {
    of_prefix(form, ON_EVERY_LINE).map(|(field, value)| (field.to_owned(), value.to_owned())).collect()
}

/// Returns the filled form fields with a prefix, without the prefix.
fn of_prefix<'f>(form: &'f Upload, prefix: &'static str) -> impl Iterator<Item = (&'f str, &'f str)> {
    let text = |bytes: &'f [u8]| std::str::from_utf8(bytes).ok().map(str::trim).filter(|text| !text.is_empty());
    form.0.iter().filter_map(move |field| Some((field.name.strip_prefix(prefix)?, text(&field.bytes)?)))
}

/// Returns the chosen column names; `None` if the form has none.
fn columns(form: &Upload) -> Option<Map<String, Value>> {
    let submitted: Vec<(&str, &str)> = form.texts("column").zip(form.texts("called")).collect();
    if submitted.is_empty() {
        return None;
    }
    let called = |(column, called): (&str, &str)| match called {
        "" => None,
        "-" => Some((column.to_owned(), Value::Null)),
        called => Some((column.to_owned(), called.into())),
    };
    let answered = answers(form).filter_map(|(column, fields)| Some((column.to_owned(), (*fields.first()?).into())));
    let of_format = of_prefix(form, COLUMN_OF).map(|(field, column)| (column.to_owned(), field.into()));
    Some(submitted.into_iter().filter_map(called).chain(answered).chain(of_format).collect())
}

/// Returns the columns of a file in the default shape, with the values of the first lines.
fn columns_of(bytes: &[u8], called: Option<&Map<String, Value>>) -> Result<JsonAnswer<Vec<ImportColumnJson>>, Problem> {
    let called = called.map(|called| ColumnMap::parse(&Value::from(called.clone()).to_string()));
    let reading = ReadOptions {
        columns: called.transpose().map_err(|_| Problem::internal())?.unwrap_or_default(),
        ..ReadOptions::default()
    };
    let mut file = UsageFile::open_columns(bytes, kind_of(bytes).1, reading).map_err(malformed)?;
    for _ in 0..MAX_SAMPLES {
        file.next_line().map_err(malformed)?;
    }
    let columns: Vec<ImportColumnJson> = file.columns().iter().map(ImportColumnJson::from).collect();
    Ok(JsonAnswer::from(serde_json::to_value(columns).map_err(|_| Problem::internal())?))
}

/// Returns a guess for the column names if some columns are not event fields.
fn guessed(columns: JsonView<'_, Vec<ImportColumnJson>>) -> Option<Map<String, Value>> {
    let mut taken: Vec<String> = columns.items().map(|column| column.name().to_text()).collect();
    let mut guess = Map::new();
    for column in columns.items().filter(|column| column.report_data().is_true()) {
        let name = column.name().to_text();
        if let Some(field) = crate::usual_field(&name)
            && !taken.iter().any(|taken| taken == field)
        {
            taken.push(field.to_owned());
            guess.insert(name, field.into());
        }
    }
    (!guess.is_empty()).then_some(guess)
}

/// Returns the media type and the kind of a file by its first byte.
fn kind_of(bytes: &[u8]) -> (&'static str, FileKind) {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace() && !b"\xEF\xBB\xBF".contains(byte)) {
        Some(b'[') => (billing_api::media_type::JSON, FileKind::Json),
        Some(b'{') => (billing_api::media_type::NDJSON, FileKind::Ndjson),
        _ => (billing_api::media_type::CSV, FileKind::Csv),
    }
}

/// The result of an import, and the problem if it stopped before the end of the file.
type ImportOutcome = (JsonAnswer<ImportResultJson>, Option<Problem>);

/// Calls the API to import a file.
async fn import(
    user: &SessionUser,
    (file, bytes): (&PendingFile, &[u8]),
    columns: Option<&Map<String, Value>>,
    dry_run: bool,
) -> Result<ImportOutcome, Problem> {
    let (media_type, kind) = kind_of(bytes);
    let columns = columns.filter(|columns| !columns.is_empty()).map(|columns| Value::from(columns.clone()).to_string());
    let constants: Value = file.constants.iter().cloned().collect();
    let constants = (!file.constants.is_empty()).then(|| constants.to_string());
    let mut submitted = vec![("name", file.name.as_str()), ("dry_run", if dry_run { "true" } else { "false" })];
    submitted.extend(file.updates.then_some(("on_conflict", "UPDATE")));
    submitted.extend((!file.format_name.is_empty()).then_some(("format_name", file.format_name.as_str())));
    submitted.extend(columns.as_deref().map(|columns| ("columns", columns)));
    submitted.extend(constants.as_deref().map(|constants| ("constants", constants)));
    let file = UsageUpload { media_type, kind, bytes: bytes.to_vec() };
    match user.import(&crate::query(&submitted), file).await {
        Ok(answer) => Ok((ImportUsage::answer(answer.json()?), None)),
        Err(problem) => match problem.import().cloned() {
            Some(result) => Ok((result.into(), Some(problem))),
            None => Err(problem),
        },
    }
}
