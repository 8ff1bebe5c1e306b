//! The inputs of a file, and the form in which they go to a typesetting process.

use std::fmt::{self, Write as _};
use std::io::{self, Read, Write};

use billing_domain::calendar::{Date, TimeZone};
use billing_domain::document::files::RenderedFile;
use billing_domain::document::printout::Printout;
use billing_domain::party::appearance::{Logo, LogoFormat};
use billing_domain::party::legal::Language;
use billing_domain::ports::PrintError;
use billing_domain::receivables::StatementPrintout;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::frame::{read_frame, write_frame};
use crate::statement_data::StatementData;
use crate::template_data::TemplateData;

/// The maximum size of one part of a sheet or of a file. The other process of a pipe could announce any size.
const MAX_PART_BYTES: u32 = 64 * 1024 * 1024;

/// A template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Template {
    /// Invoices, credits and debits.
    Invoice,
    /// Statements of customers.
    Statement,
    /// A logo alone.
    Logo,
}

impl Template {
    /// Returns the template's name. A changed template gets a new name, because the name is stored with each file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invoice => "invoice-2",
            Self::Statement => "statement-1",
            Self::Logo => "logo-1",
        }
    }
}

/// The inputs of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// The template.
    pub template: Template,
    /// The template's data as JSON.
    pub data: String,
    /// The word across each page of a draft or of a sandbox. The typesetter adds its outlines to the data, because only the typesetter has the fonts.
    pub watermark: Option<String>,
    /// The logo.
    pub logo: Option<SheetLogo>,
    /// The e-invoice to attach, in CII. Only the template of invoices has one.
    pub e_invoice: Option<Vec<u8>>,
    /// The identifier of the file.
    pub identifier: String,
    /// The date of the file.
    pub day: Date,
}

/// The image of a logo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetLogo {
    /// The format of the image.
    pub format: LogoFormat,
    /// The content of the image.
    pub image: Vec<u8>,
}

impl SheetLogo {
    fn of(logo: &Logo) -> Option<Self> {
        Some(Self { format: logo.format, image: logo.image.as_deref()?.to_vec() })
    }
}

/// The first part of a sheet in a pipe. The data, the logo and the e-invoice follow.
#[derive(Serialize, Deserialize)]
struct Head {
    template: Template,
    identifier: String,
    day: String,
    watermark: Option<String>,
    logo: Option<String>,
    has_e_invoice: bool,
}

fn written(data: &impl Serialize) -> Result<String, PrintError> {
    serde_json::to_string(data).map_err(|error| PrintError::Failed(error.to_string()))
}

impl Sheet {
    /// Creates the sheet of a document.
    ///
    /// # Errors
    /// Returns [`PrintError::Failed`] if a library fails.
    pub fn of_document(printout: &Printout) -> Result<Self, PrintError> {
        let data = TemplateData::of(printout)?;
        let logo = printout.draft_content.paper.as_ref().and_then(|paper| paper.logo.as_ref());
        Ok(Self {
            template: Template::Invoice,
            data: written(&data)?,
            watermark: data.draft.map(str::to_owned),
            logo: logo.and_then(SheetLogo::of),
            e_invoice: printout.e_invoice.as_ref().map(|file| file.bytes.clone()),
            identifier: printout.head.document_ref.to_string(),
            day: day_of(printout),
        })
    }

    /// Creates the sheet of a customer's statements.
    ///
    /// # Errors
    /// Returns [`PrintError::Failed`] if a library fails.
    pub fn of_statement(statement: &StatementPrintout) -> Result<Self, PrintError> {
        Ok(Self {
            template: Template::Statement,
            data: written(&StatementData::of(statement)?)?,
            watermark: None,
            logo: None,
            e_invoice: None,
            identifier: format!("statement-{}", statement.customer.customer_ref),
            day: statement.day,
        })
    }

    /// Creates a sheet with nothing but a logo, in the size that it has on documents. Without a logo, the sheet is empty.
    pub fn of_logo(logo: Option<&Logo>) -> Self {
        let logo = logo.and_then(SheetLogo::of);
        let file = logo.as_ref().map(|logo| logo.format.file_name());
        Self {
            template: Template::Logo,
            data: json!({"logo": file, "letterhead": "Logo"}).to_string(),
            watermark: None,
            logo,
            e_invoice: None,
            identifier: "logo".to_owned(),
            day: Date::default(),
        }
    }

    /// Returns the file with its hash and the names of its makers.
    pub fn rendered(&self, bytes: Vec<u8>) -> RenderedFile {
        let attached = if self.e_invoice.is_some() { " factur-x-1" } else { "" };
        let maker = format!("billing-pdf {} {}{attached}", env!("CARGO_PKG_VERSION"), self.template.name());
        RenderedFile { sha256: Sha256::digest(&bytes).into(), bytes, maker }
    }

    /// Writes the sheet into a pipe.
    ///
    /// # Errors
    /// Returns the error of the pipe.
    pub fn write_to(&self, pipe: &mut impl Write) -> io::Result<()> {
        let head = Head {
            template: self.template,
            identifier: self.identifier.clone(),
            day: self.day.to_string(),
            watermark: self.watermark.clone(),
            logo: self.logo.as_ref().map(|logo| logo.format.as_str().to_owned()),
            has_e_invoice: self.e_invoice.is_some(),
        };
        write_frame(pipe, &serde_json::to_vec(&head)?)?;
        write_frame(pipe, self.data.as_bytes())?;
        write_frame(pipe, self.logo.as_ref().map_or(&[], |logo| logo.image.as_slice()))?;
        write_frame(pipe, self.e_invoice.as_deref().unwrap_or_default())?;
        pipe.flush()
    }

    /// Reads a sheet from a pipe.
    ///
    /// # Errors
    /// Returns the error of the pipe, or an error if it has no sheet.
    pub fn read_from(pipe: &mut impl Read) -> io::Result<Self> {
        let mut part = || read_frame(pipe, MAX_PART_BYTES);
        let Head { template, identifier, day, watermark, logo, has_e_invoice } = serde_json::from_slice(&part()?)?;
        let day = day.parse().map_err(io::Error::other)?;
        let data = String::from_utf8(part()?).map_err(io::Error::other)?;
        let (image, e_invoice) = (part()?, part()?);
        let format = |name: String| [LogoFormat::Png, LogoFormat::Svg].into_iter().find(|format| format.as_str() == name);
        let logo = logo.and_then(format).map(|format| SheetLogo { format, image });
        Ok(Self { template, data, watermark, logo, e_invoice: has_e_invoice.then_some(e_invoice), identifier, day })
    }
}

/// Returns whether a document can have characters that the built-in fonts lack. Most documents can't, and the template's data takes
/// much longer than this answer.
pub(crate) fn may_lack_glyphs(printout: &Printout) -> bool {
    /// Notices characters outside of ASCII. The debug format has each character of a text, or its escape.
    struct Probe(bool);

    impl fmt::Write for Probe {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 |= !text.is_ascii() || text.contains("\\u{");
            Ok(())
        }
    }

    let mut probe = Probe(printout.draft_content.paper.as_ref().is_some_and(|paper| paper.language == Language::Ja));
    // A probe never fails.
    let _ = write!(probe, "{:?}", printout.draft_content);
    probe.0
}

/// Returns the date of a file: the document's issue date, or the day on which a draft was opened.
fn day_of(printout: &Printout) -> Date {
    printout.issued.map_or_else(|| TimeZone::UTC.service_date(printout.head.created_at), |issued| issued.issue_date)
}

/// What a typesetting process answers for a sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The file.
    Printed(Vec<u8>),
    /// The reason why there is no file.
    Failed(String),
}

impl Reply {
    /// Returns the reply for the outcome of typesetting.
    pub fn of(outcome: Result<Vec<u8>, PrintError>) -> Self {
        match outcome {
            Ok(file) => Self::Printed(file),
            Err(error) => Self::Failed(error.to_string()),
        }
    }

    /// Returns the outcome of typesetting.
    ///
    /// # Errors
    /// Returns [`PrintError::Failed`] if there is no file.
    pub fn into_outcome(self) -> Result<Vec<u8>, PrintError> {
        match self {
            Self::Printed(file) => Ok(file),
            Self::Failed(reason) => Err(PrintError::Failed(reason)),
        }
    }

    /// Writes the reply into a pipe.
    ///
    /// # Errors
    /// Returns the error of the pipe.
    pub fn write_to(&self, pipe: &mut impl Write) -> io::Result<()> {
        let (kind, content) = match self {
            Self::Printed(file) => (0, file.as_slice()),
            Self::Failed(reason) => (2, reason.as_bytes()),
        };
        pipe.write_all(&[kind])?;
        write_frame(pipe, content)?;
        pipe.flush()
    }

    /// Reads a reply from a pipe.
    ///
    /// # Errors
    /// Returns the error of the pipe, or an error if it has no reply.
    pub fn read_from(pipe: &mut impl Read) -> io::Result<Self> {
        let mut kind = [0];
        pipe.read_exact(&mut kind)?;
        let content = read_frame(pipe, MAX_PART_BYTES)?;
        match kind {
            [0] => Ok(Self::Printed(content)),
            [2] => Ok(Self::Failed(String::from_utf8(content).map_err(io::Error::other)?)),
            [other] => Err(io::Error::other(format!("a reply of the unknown kind {other}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use billing_testkit::fixtures::date;

    use super::*;

    fn sheet() -> Sheet {
        Sheet {
            template: Template::Invoice,
            data: "{\"a\":1.50}".to_owned(),
            watermark: Some("ENTWURF".to_owned()),
            logo: Some(SheetLogo { format: LogoFormat::Svg, image: b"<svg/>".to_vec() }),
            e_invoice: Some(vec![0, 255]),
            identifier: "0198".to_owned(),
            day: date("2026-01-31"),
        }
    }

    fn through_a_pipe(sheet: &Sheet) -> Sheet {
        let mut pipe = Vec::new();
        sheet.write_to(&mut pipe).expect("a pipe");
        let mut rest = pipe.as_slice();
        let read = Sheet::read_from(&mut rest).expect("a sheet");
        assert!(rest.is_empty());
        read
    }

    #[test]
    fn a_sheet_is_the_same_on_both_ends_of_a_pipe() {
        assert_eq!(through_a_pipe(&sheet()), sheet());
        let plain = Sheet { watermark: None, logo: None, e_invoice: None, template: Template::Statement, ..sheet() };
        assert_eq!(through_a_pipe(&plain), plain);
        // An empty e-invoice is not the same as none.
        let empty = Sheet { e_invoice: Some(Vec::new()), ..plain };
        assert_eq!(through_a_pipe(&empty), empty);
    }

    #[test]
    fn a_reply_is_the_same_on_both_ends_of_a_pipe() {
        for reply in [Reply::Printed(b"%PDF".to_vec()), Reply::Failed("no font for ☐".to_owned())] {
            let mut pipe = Vec::new();
            reply.write_to(&mut pipe).expect("a pipe");
            assert_eq!(Reply::read_from(&mut pipe.as_slice()).expect("a reply"), reply);
            assert!(Reply::read_from(&mut &pipe[..pipe.len() - 1]).is_err(), "a reply that is cut off");
        }
    }

    #[test]
    fn a_pipe_with_anything_else_is_an_error() {
        for bytes in [&b""[..], b"\x09\0\0\0\0", b"\0\xff\xff\xff\xff", b"\x01\x01\0\0\0\xff"] {
            assert!(Reply::read_from(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
        for bytes in [&b""[..], b"\x01\0\0\0x", b"\xff\xff\xff\xff"] {
            assert!(Sheet::read_from(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
    }
}
