//! Printable documents: the frozen content of an issued document, or the current content of a draft.

use chrono::NaiveDate;

use super::files::RenderedFile;
use super::{AtIssue, Document, DocumentHead, DocumentKind, DraftContent, IssuedDocument};

/// All data needed to print a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printout {
    /// The data known since opening.
    pub head: DocumentHead,
    /// The dates of an issued document; `None` prints the document as a draft.
    pub issued: Option<PrintedDates>,
    /// The content.
    pub draft_content: DraftContent,
    /// The amounts applied at the issue; `None` for a draft and for documents of formats 1 and 2.
    pub at_issue: Option<AtIssue>,
    /// The e-invoice in CII to attach to the file, for the profile FACTUR_X.
    pub e_invoice: Option<RenderedFile>,
}

/// The dates of an issued document, as issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintedDates {
    /// The date of issue in the entity's time zone.
    pub issue_date: NaiveDate,
    /// The due date; `None` for a credit.
    pub due_date: Option<NaiveDate>,
}

impl Printout {
    /// Creates the printout of an issued document as it was issued. Later payments and a later void don't change it. Returns
    /// `None` if the document was never issued.
    pub fn of_issued(document: &Document) -> Option<Self> {
        let IssuedDocument { issue_date, due_date, parties, po_number, note, content, paper, at_issue, .. } =
            document.lifecycle.issued()?;
        let due_date = (document.head.kind != DocumentKind::Credit).then_some(*due_date);
        let draft_content = DraftContent {
            parties: parties.clone(),
            po_number: po_number.clone(),
            note: note.clone(),
            content: content.clone(),
            paper: paper.clone(),
        };
        let issued = Some(PrintedDates { issue_date: *issue_date, due_date });
        Some(Self { head: document.head.clone(), issued, draft_content, at_issue: at_issue.clone(), e_invoice: None })
    }

    /// Creates the printout of a draft or a discarded draft.
    pub const fn of_draft(head: DocumentHead, draft_content: DraftContent) -> Self {
        Self { head, issued: None, draft_content, at_issue: None, e_invoice: None }
    }
}
