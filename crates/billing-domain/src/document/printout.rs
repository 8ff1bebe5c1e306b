//! A document as it goes on paper: what was frozen of it, or a draft as it is at a moment.

use chrono::NaiveDate;

use super::{Document, DocumentHead, DocumentKind, DraftContent, IssuedDocument};

/// What a printed document is made of, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printout {
    /// Known since it was opened.
    pub head: DocumentHead,
    /// When it was issued and has to be paid; `None` of one that wasn't issued, which is printed as a draft.
    pub issued: Option<PrintedDates>,
    /// What it says.
    pub said: DraftContent,
}

/// The dates of an issued document, as it was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintedDates {
    /// When it was issued, in the entity's zone.
    pub issue_date: NaiveDate,
    /// When it has to be paid; `None` of a credit.
    pub due_date: Option<NaiveDate>,
}

impl Printout {
    /// Of a document that was issued, as it was issued: whatever has been paid of it since, and also once it is out of force.
    /// `None` of one that wasn't.
    pub fn of_issued(document: &Document) -> Option<Self> {
        let IssuedDocument { issue_date, due_date, parties, po_number, note, content, paper, .. } =
            document.lifecycle.issued()?;
        let due_date = (document.head.kind != DocumentKind::Credit).then_some(*due_date);
        let said = DraftContent {
            parties: parties.clone(),
            po_number: po_number.clone(),
            note: note.clone(),
            content: content.clone(),
            paper: paper.clone(),
        };
        Some(Self { head: document.head.clone(), issued: Some(PrintedDates { issue_date: *issue_date, due_date }), said })
    }

    /// Of a draft, or of one that was put out of force as a draft.
    pub const fn of_draft(head: DocumentHead, said: DraftContent) -> Self {
        Self { head, issued: None, said }
    }
}
