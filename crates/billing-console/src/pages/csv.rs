//! CSV export of a list: the columns of its page, for all pages.

use std::borrow::Cow;
use std::io::{self, Write};

use billing_api::console::{PageAnswer, PageFile};
use billing_api::media_type;
use billing_api::problem::Problem;
use billing_domain::report::ReportFormat;
use billing_report::{Cell, TableWriter};

use super::form_data::{pairs, query};
use super::list_page::with_amounts_due;
use super::lists::{goes_on_by_cursor, listed, listing_of, wanted};
use super::ranges::list_query;
use super::session_user::SessionUser;
use crate::{Listing, View, headings, row};

/// Page size of the internal requests.
const AT_ONCE: &str = "1000";

/// Returns a list as CSV, with the filters, order and columns of its page. The list is read page by page while it is
/// sent, so the export may or may not include concurrent changes.
///
/// # Errors
/// Returns the problem that occurred before the first bytes.
pub(super) async fn table(user: &SessionUser, part: &str) -> Result<PageAnswer, Problem> {
    let listing = listing_of(part)?;
    let view = View::of(listing, &query(&user.request));
    let filters = list_query(user, listing.part, &view.submitted).await?.filters;
    let submitted = pairs(&filters).into_iter().filter(|(name, _)| *name != "pageSize");
    let mut first = wanted(listing, submitted, AT_ONCE);
    if goes_on_by_cursor(listing) {
        // The export does not show the total.
        first.push_str("&totals=false");
    }
    let visitor_of_rows = user.clone();
    let file = PageFile {
        media_type: media_type::of_report(ReportFormat::Csv),
        name: format!("{}.{}", listing.part, ReportFormat::Csv.as_str()),
        write: Box::new(move |writer, is_wanted| {
            Box::pin(async move { rows(&visitor_of_rows, listing, &view, first, (writer, is_wanted)).await })
        }),
    };
    Ok(PageAnswer::File(user.stream(file).await?))
}

async fn rows(
    user: &SessionUser,
    listing: &Listing,
    view: &View,
    first: String,
    (writer, is_wanted): (&mut (dyn Write + Send), &dyn Fn() -> bool),
) -> Result<(), Problem> {
    let broken = |error: io::Error| {
        tracing::warn!(%error, "a table ended before its end");
        Problem::internal()
    };
    let mut table = TableWriter::new(ReportFormat::Csv, listing.title, writer);
    table.start(headings(&view.columns)).map_err(broken)?;
    let mut next = Some(first);
    while let Some(raw) = next {
        if !is_wanted() {
            // Fails, because a truncated table could be taken for the whole list.
            return Err(Problem::timed_out());
        }
        let page = listed(&user.quietly(), listing, &raw).await?;
        let elements = with_amounts_due(&user.quietly(), listing, view, page.elements).await?;
        for element in elements.as_array().into_iter().flatten() {
            let submitted = row(&view.columns, element);
            let cells: Vec<Cell<'_>> = submitted.iter().map(|(text, is_number)| cell(text, *is_number)).collect();
            table.row(&cells).map_err(broken)?;
        }
        next = page.neighbours.next;
    }
    table.finish().map_err(broken)?;
    Ok(())
}

fn cell(text: &str, is_number: bool) -> Cell<'_> {
    match text {
        "" => Cell::Missing,
        text if is_number => Cell::Number(Cow::Borrowed(text)),
        text => Cell::Text(Cow::Borrowed(text)),
    }
}
