//! Typesetting: compiles a template, data and a logo into a PDF file. It has no other input: no other files and no clock.

use std::sync::LazyLock;

use billing_domain::calendar::Date;
use billing_domain::party::appearance::LogoFormat;
use billing_domain::ports::PrintError;
use chrono::Datelike as _;
use serde::Serialize;
use typst::diag::{FileError, FileResult, SourceDiagnostic, SourceResult};
use typst::foundations::{Bytes, Datetime, Duration, Smart};
use typst::layout::{Frame, FrameItem};
use typst::syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot};
use typst::text::{Font, FontBook, TextItem};
use typst::utils::LazyHash;
use typst::{Library, LibraryExt as _, World};
use typst_layout::PagedDocument;
use typst_pdf::{PdfOptions, PdfStandard, PdfStandards, Timestamp};

use crate::factur_x;
use billing_pdf::fonts::{named, needs_glyph};
use billing_pdf::sheet::{Sheet, Template};

use crate::fonts::Fonts;
use crate::stamp::Stamp;

/// The word across a draft if no font has the word of its language.
const DRAFT: &str = "DRAFT";

/// The data that all documents share. typst never frees a file id, so the ids are created once.
struct Constants {
    library: LazyHash<Library>,
    invoice: Source,
    /// The template of invoices with an attached e-invoice.
    invoice_with_attachment: Source,
    statement: Source,
    logo: Source,
    data: FileId,
    e_invoice: FileId,
    png: FileId,
    svg: FileId,
}

/// The template of invoices.
const INVOICE: &str = include_str!("../templates/invoice-2.typ");

/// Returns a template with the definition of watermarks.
fn marked(template: &str) -> String {
    format!("{}\n{template}", include_str!("../templates/watermark.typ"))
}

static CONSTANTS: LazyLock<Constants> = LazyLock::new(|| {
    let file = |name: &str| {
        let path = VirtualPath::new(name).expect("a file's name is a path");
        RootedPath::new(VirtualRoot::Project, path).intern()
    };
    Constants {
        library: LazyHash::new(Library::default()),
        invoice: Source::new(file("invoice-2.typ"), marked(INVOICE)),
        invoice_with_attachment: Source::new(
            file("invoice-2-factur-x.typ"),
            format!("{}\n{}", marked(INVOICE), factur_x::ATTACH),
        ),
        statement: Source::new(file("statement-1.typ"), marked(include_str!("../templates/statement-1.typ"))),
        logo: Source::new(file("logo-1.typ"), include_str!("../templates/logo-1.typ").to_owned()),
        data: file("data.json"),
        e_invoice: file(factur_x::FILE_NAME),
        png: file(LogoFormat::Png.file_name()),
        svg: file(LogoFormat::Svg.file_name()),
    }
});

/// The inputs of a compilation.
struct Input<'f> {
    constants: &'static Constants,
    template: &'static Source,
    fonts: &'f Fonts,
    data: Bytes,
    /// The logo's file and content.
    logo: Option<(FileId, Bytes)>,
    e_invoice: Option<Bytes>,
}

impl World for Input<'_> {
    fn library(&self) -> &LazyHash<Library> {
        &self.constants.library
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &self.fonts.book
    }

    fn main(&self) -> FileId {
        self.template.id()
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        if id == self.main() { Ok(self.template.clone()) } else { Err(FileError::AccessDenied) }
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        if id == self.constants.data {
            return Ok(self.data.clone());
        }
        if id == self.constants.e_invoice {
            return self.e_invoice.clone().ok_or(FileError::AccessDenied);
        }
        let logo = self.logo.as_ref().filter(|(logo, _)| *logo == id);
        logo.map(|(_, image)| image.clone()).ok_or(FileError::AccessDenied)
    }

    fn font(&self, index: usize) -> Option<Font> {
        self.fonts.font(index)
    }

    fn today(&self, _: Option<Duration>) -> Option<Datetime> {
        None
    }
}

/// Typesets a sheet with the fonts for its data.
///
/// # Errors
/// Returns [`PrintError`] if typesetting fails.
pub(crate) fn typeset(fonts: &Fonts, sheet: &Sheet) -> Result<Vec<u8>, PrintError> {
    let constants = &*CONSTANTS;
    let template = match sheet.template {
        Template::Invoice if sheet.e_invoice.is_some() => &constants.invoice_with_attachment,
        Template::Invoice => &constants.invoice,
        Template::Statement => &constants.statement,
        Template::Logo => &constants.logo,
    };
    let missing: Vec<char> = fonts.missing(&sheet.data).collect();
    let mut data = sheet.data.clone();
    if !missing.is_empty() {
        data = with_field(&data, "missing", &pattern(&missing))?;
    }
    if let Some(word) = &sheet.watermark {
        let stamp = Stamp::of(word, fonts).or_else(|| Stamp::of(DRAFT, fonts));
        data = with_field(&data, "stamp", &stamp.ok_or_else(|| PrintError::Failed("no font has capital letters".to_owned()))?)?;
    }
    let logo = sheet.logo.as_ref().map(|logo| {
        let file = match logo.format {
            LogoFormat::Png => constants.png,
            LogoFormat::Svg => constants.svg,
        };
        (file, Bytes::new(logo.image.clone()))
    });
    let e_invoice = sheet.e_invoice.clone().map(Bytes::new);
    let input = Input { constants, template, fonts, data: Bytes::new(data.into_bytes()), logo, e_invoice };
    let made = make(&input, &sheet.identifier, sheet.day);
    // typst caches results, but they are never used again.
    comemo::evict(0);
    if sheet.e_invoice.is_some() { factur_x::with_description(made?) } else { made }
}

/// Returns data with a field that only the typesetter knows, because only the typesetter has the fonts.
fn with_field(data: &str, name: &str, value: &impl Serialize) -> Result<String, PrintError> {
    let failed = |error: serde_json::Error| PrintError::Failed(error.to_string());
    let mut data: serde_json::Map<String, serde_json::Value> = serde_json::from_str(data).map_err(failed)?;
    data.insert(name.to_owned(), serde_json::to_value(value).map_err(failed)?);
    serde_json::to_string(&data).map_err(failed)
}

/// Returns a regular expression for one of several characters.
fn pattern(characters: &[char]) -> String {
    let codes: String = characters.iter().map(|c| format!("\\x{{{:x}}}", u32::from(*c))).collect();
    format!("[{codes}]")
}

fn make(input: &Input<'_>, identifier: &str, day: Date) -> Result<Vec<u8>, PrintError> {
    let document: PagedDocument = reported(typst::compile(input).output)?;
    let mut missing = Vec::new();
    for page in document.pages() {
        add_missing_glyphs(&page.frame, &mut missing);
    }
    // The standard permits no character without a glyph.
    if !missing.is_empty() {
        return Err(PrintError::Failed(format!("no font can draw “{}”", named(missing.into_iter()))));
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
    reported(typst_pdf::pdf(&document, &options))
}

fn reported<T>(result: SourceResult<T>) -> Result<T, PrintError> {
    result.map_err(|errors| {
        let messages: Vec<&str> = errors.iter().map(|SourceDiagnostic { message, .. }| message.as_str()).collect();
        PrintError::Failed(messages.join("; "))
    })
}

/// Adds the characters of a frame without a glyph, each once.
fn add_missing_glyphs(frame: &Frame, missing: &mut Vec<char>) {
    for (_, item) in frame.items() {
        match item {
            FrameItem::Group(group) => add_missing_glyphs(&group.frame, missing),
            FrameItem::Text(TextItem { text, glyphs, .. }) => {
                let mut ranges: Vec<_> = glyphs.iter().filter(|glyph| glyph.id == 0).map(|glyph| glyph.range()).collect();
                // In right-to-left text the glyphs are in reverse order.
                ranges.sort_by_key(|range| range.start);
                for c in ranges.into_iter().flat_map(|range| text[range].chars()).filter(|c| needs_glyph(*c)) {
                    if !missing.contains(&c) {
                        missing.push(c);
                    }
                }
            }
            FrameItem::Shape(..) | FrameItem::Image(..) | FrameItem::Link(..) | FrameItem::Tag(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_logo_alone_is_drawn_as_on_an_invoice() {
        let (invoice, logo) = (include_str!("../templates/invoice-2.typ"), include_str!("../templates/logo-1.typ"));
        let (_, picture) = logo.split_once("#let picture").expect("the definition");
        let (picture, _) = picture.split_once("\n}\n").expect("its end");
        assert!(picture.contains("image(") && invoice.contains(picture), "{picture}");
    }
}
