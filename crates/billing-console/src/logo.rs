//! The page of an entity's logo: the upload, and the picture of the logo on paper.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing_domain::party::appearance::{Logo, LogoFormat, MAX_LOGO_BYTES};
use maud::{Markup, html};

use crate::parts::{href, isolated};

/// The page of an entity's logo.
#[derive(Clone, Debug)]
pub struct LogoPage {
    /// Reference of the entity.
    pub entity_ref: String,
    /// Name of the entity.
    pub entity_name: String,
    /// Whether the entity has a logo.
    pub has_logo: bool,
    /// The uploaded logo with its image, which is not saved yet, and its file in base64.
    pub uploaded: Option<(Logo, String)>,
    /// The reason why the file is rejected.
    pub wrong: Option<String>,
    /// Idempotency key of the form.
    pub key: String,
}

/// Renders the page of an entity's logo.
pub fn logo(page: &LogoPage) -> Markup {
    let action = href(&["entities", &page.entity_ref, "logo"]);
    let back = href(&["entities", &page.entity_ref]);
    html! {
        h1 { "Logo of " (isolated(&page.entity_name)) }
        p { "The logo stands at the top left of documents, at most 60 mm wide and 16 mm high. Issued documents keep their logo." }
        @if let Some((logo, content)) = &page.uploaded {
            p.muted { "Preview. Nothing is saved yet." }
            (on_paper(logo))
            form.stack method="post" enctype="multipart/form-data" action=(action) {
                input type="hidden" name="content" value=(content);
                input type="hidden" name="form_key" value=(page.key);
                div.buttons { button name="do" value="save" { "Save logo" } a href=(back) { "Cancel" } }
            }
            h2 { "Another file" }
        }
        form.stack.wide method="post" enctype="multipart/form-data" action=(action) {
            div.field {
                label for="file" { "File" }
                input #file type="file" name="file" accept=".png,.svg,image/png,image/svg+xml" aria-describedby="file-caption"
                    aria-invalid=[page.wrong.as_ref().map(|_| "true")];
                p.hint #file-caption { "PNG or SVG, at most " (MAX_LOGO_BYTES / 1024) " KiB. An SVG file has only shapes: convert texts to paths." }
                @if let Some(wrong) = &page.wrong { p.wrong { "The file " (wrong) "." } }
            }
            div.buttons {
                button.plain[page.uploaded.is_some()] name="do" value="look" { "Preview" }
                @if page.has_logo { button.plain.grave name="do" value="remove" { "Remove logo" } }
                a href=(back) { "Cancel" }
            }
        }
    }
}

/// Renders the top of a document with the logo in its size on paper.
fn on_paper(logo: &Logo) -> Markup {
    let media_type = match logo.format {
        LogoFormat::Png => "image/png",
        LogoFormat::Svg => "image/svg+xml",
    };
    let image = logo.image.as_deref().map(|image| format!("data:{media_type};base64,{}", STANDARD.encode(image)));
    html! {
        figure.paper {
            div.letterhead { @if let Some(image) = image { img src=(image) alt="Logo"; } strong { "Invoice" } }
            figcaption { "Top of a document" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(uploaded: Option<(Logo, String)>, wrong: Option<&str>) -> String {
        let wrong = wrong.map(str::to_owned);
        let page = LogoPage {
            entity_ref: "we".to_owned(),
            entity_name: "We <b>".to_owned(),
            has_logo: true,
            uploaded,
            wrong,
            key: "k".to_owned(),
        };
        logo(&page).into_string()
    }

    #[test]
    fn an_uploaded_logo_is_shown_on_paper_before_it_is_saved() {
        let image = b"<svg/>".as_slice();
        let uploaded = Logo { format: LogoFormat::Svg, sha256: [0; 32], image: Some(image.into()) };
        let shown = page(Some((uploaded, "eA==".to_owned())), None);
        assert!(shown.contains("src=\"data:image/svg+xml;base64,PHN2Zy8+\"") && shown.contains("Save logo"), "{shown}");
        assert!(shown.contains("name=\"content\" value=\"eA==\"") && !shown.contains("<b>"), "{shown}");
        let wrong = page(None, Some("must be a file of at most 256 KiB"));
        assert!(wrong.contains("The file must be a file of at most 256 KiB.") && !wrong.contains("Save logo"), "{wrong}");
        assert!(wrong.contains("Remove logo"), "{wrong}");
    }
}
