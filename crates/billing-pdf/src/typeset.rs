//! Typesetting: compiles a template and data into a PDF file. It has no other input: no other files and no clock.

use std::sync::LazyLock;

use billing_domain::calendar::{Date, TimeZone};
use billing_domain::document::printout::Printout;
use billing_domain::ports::PrintError;
use chrono::Datelike as _;
use typst::diag::{FileError, FileResult, SourceDiagnostic, SourceResult};
use typst::foundations::{Bytes, Datetime, Duration, Smart};
use typst::layout::{Frame, FrameItem};
use typst::syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot};
use typst::text::{Font, FontBook, TextItem};
use typst::utils::LazyHash;
use typst::{Library, LibraryExt as _, World};
use typst_layout::PagedDocument;
use typst_pdf::{PdfOptions, PdfStandard, PdfStandards, Timestamp};

use crate::fonts::Fonts;

/// The template's name. A changed template gets a new name.
pub(crate) const TEMPLATE: &str = "invoice-1";

/// The data that all documents share. typst never frees a file id, so the two ids are created once.
struct Constants {
    library: LazyHash<Library>,
    template: Source,
    data: FileId,
}

static CONSTANTS: LazyLock<Constants> = LazyLock::new(|| {
    let file = |name: &str| {
        let path = VirtualPath::new(name).expect("a file's name is a path");
        RootedPath::new(VirtualRoot::Project, path).intern()
    };
    Constants {
        library: LazyHash::new(Library::default()),
        template: Source::new(file("invoice-1.typ"), include_str!("../templates/invoice-1.typ").to_owned()),
        data: file("data.json"),
    }
});

/// The inputs of a compilation.
struct Input<'f> {
    constants: &'static Constants,
    fonts: &'f Fonts,
    data: Bytes,
}

impl World for Input<'_> {
    fn library(&self) -> &LazyHash<Library> {
        &self.constants.library
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &self.fonts.book
    }

    fn main(&self) -> FileId {
        self.constants.template.id()
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        if id == self.main() { Ok(self.constants.template.clone()) } else { Err(FileError::AccessDenied) }
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        if id == self.constants.data { Ok(self.data.clone()) } else { Err(FileError::AccessDenied) }
    }

    fn font(&self, index: usize) -> Option<Font> {
        self.fonts.fonts.get(index).cloned()
    }

    fn today(&self, _: Option<Duration>) -> Option<Datetime> {
        None
    }
}

/// Returns the date of a file: the document's issue date, or the day on which a draft was opened.
pub(crate) fn day_of(printout: &Printout) -> Date {
    printout.issued.map_or_else(|| TimeZone::UTC.service_date(printout.head.created_at), |issued| issued.issue_date)
}

/// Typesets a document with an identifier and a date.
///
/// # Errors
/// Returns [`PrintError`] if typesetting fails.
pub(crate) fn typeset(fonts: &Fonts, data: Vec<u8>, identifier: &str, day: Date) -> Result<Vec<u8>, PrintError> {
    let input = Input { constants: &CONSTANTS, fonts, data: Bytes::new(data) };
    let made = make(&input, identifier, day);
    // typst caches results, but they are never used again.
    comemo::evict(0);
    made
}

fn make(input: &Input<'_>, identifier: &str, day: Date) -> Result<Vec<u8>, PrintError> {
    let document: PagedDocument = told(typst::compile(input).output)?;
    let missing = document.pages().iter().find_map(|page| missing_glyph(&page.frame));
    if let Some(missing) = missing {
        return Err(PrintError::MissingGlyph(missing));
    }
    let standards = PdfStandards::new(&[PdfStandard::A_3b, PdfStandard::Ua_1]);
    let date = u8::try_from(day.month()).ok().zip(u8::try_from(day.day()).ok());
    let date = date.and_then(|(month, day_of_month)| Datetime::from_ymd_hms(day.year(), month, day_of_month, 0, 0, 0));
    let options = PdfOptions {
        ident: Smart::Custom(identifier.to_owned()),
        creator: Smart::Custom(None),
        timestamp: date.map(Timestamp::new_utc),
        standards: standards.map_err(|error| PrintError::Failed(error.message().to_string()))?,
        ..PdfOptions::default()
    };
    told(typst_pdf::pdf(&document, &options))
}

fn told<T>(result: SourceResult<T>) -> Result<T, PrintError> {
    result.map_err(|errors| {
        let said: Vec<&str> = errors.iter().map(|SourceDiagnostic { message, .. }| message.as_str()).collect();
        PrintError::Failed(said.join("; "))
    })
}

/// Returns the first characters of a frame that no font contains.
fn missing_glyph(frame: &Frame) -> Option<String> {
    frame.items().find_map(|(_, item)| match item {
        FrameItem::Group(group) => missing_glyph(&group.frame),
        FrameItem::Text(TextItem { text, glyphs, .. }) => {
            // The minimum is in source order: in right-to-left text the glyphs are in reverse order.
            let missing = glyphs.iter().filter(|glyph| glyph.id == 0).min_by_key(|glyph| glyph.range().start);
            missing.map(|glyph| text[glyph.range()].to_owned())
        }
        FrameItem::Shape(..) | FrameItem::Image(..) | FrameItem::Link(..) | FrameItem::Tag(_) => None,
    })
}
