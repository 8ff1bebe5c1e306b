//! Reads the logo of an entity and writes it anew, so that only known content is stored and printed.
//!
//! A PNG file is decoded and encoded again: only its pixels remain. An SVG file is read as XML and written again with only the
//! shapes, gradients and styles of a fixed list. Scripts, texts, pictures, filters, animations and references to other files
//! are refused.

use std::fmt::Write as _;
use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing_domain::party::appearance::{Logo, LogoFormat, MAX_LOGO_BYTES};
use png::{Compression, Decoder, Encoder, Limits, Transformations};
use roxmltree::{Attribute, Document, Node, ParsingOptions};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// The maximum length of a logo in a request: the file in base64, after the prefix of a data URL.
pub const MAX_LOGO_CHARS: usize = MAX_LOGO_BYTES.div_ceil(3) * 4 + 64;
/// The maximum width and height of a PNG file.
const MAX_PIXELS: u32 = 2000;
/// The maximum size of a PNG file that was encoded again.
const MAX_ENCODED_BYTES: usize = 4 * MAX_LOGO_BYTES;
/// The maximum memory for reading a PNG file besides its pixels.
const PNG_LIMITS: Limits = Limits { bytes: 1024 * 1024 };
/// The maximum number of elements, texts and comments of an SVG file.
const MAX_NODES: u32 = 10_000;
/// The maximum depth of an SVG file.
const MAX_DEPTH: usize = 64;
/// The maximum width and height of an SVG file, in its own units.
const MAX_UNITS: f32 = 100_000.0;
/// The first bytes of a PNG file.
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const SVG: &str = "http://www.w3.org/2000/svg";
const XLINK: &str = "http://www.w3.org/1999/xlink";
/// The elements that are written again.
const ELEMENTS: [&str; 15] = [
    "circle",
    "clipPath",
    "defs",
    "ellipse",
    "g",
    "line",
    "linearGradient",
    "mask",
    "path",
    "polygon",
    "polyline",
    "radialGradient",
    "rect",
    "stop",
    "style",
];
/// The elements that are omitted, because they draw nothing.
const OMITTED: [&str; 3] = ["desc", "metadata", "title"];
/// The attributes of the root that are omitted: the view box is written anew, and the paper determines the size.
const OMITTED_OF_ROOT: [&str; 6] = ["height", "preserveAspectRatio", "viewBox", "width", "x", "y"];

/// The reason why a logo is refused. It displays the remedy.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum LogoError {
    #[error("must be the content of a PNG or SVG file in base64")]
    Form,
    #[error("must be a file of at most 256 KiB")]
    TooLarge,
    #[error("must be a PNG file that can be read completely: save the picture again")]
    Png,
    #[error("must have at most 2000 pixels in each direction")]
    TooManyPixels,
    #[error(
        "must be well-formed XML in UTF-8 without a document type, of at most 10000 nodes in 64 levels: save it as plain SVG"
    )]
    Xml,
    #[error("must have a `viewBox`, or a `width` and a `height` in pixels, above 0 and at most 100000")]
    Size,
    #[error(
        "must not have the element `{0}`: a logo has only shapes, gradients and styles. Convert texts to paths and repeated symbols \
         to shapes"
    )]
    Element(String),
    #[error("must not have scripts, as in the attribute `{0}`")]
    Script(String),
    #[error("must not refer to anything outside of the file, as in `{0}`: use only references such as #name, without @ and \\")]
    Reference(String),
}

impl LogoError {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Form | Self::Png | Self::Xml | Self::Size => "invalid_format",
            Self::TooLarge | Self::TooManyPixels => "too_long",
            Self::Element(_) | Self::Script(_) | Self::Reference(_) => "invalid_value",
        }
    }
}

/// Reads a logo: the text form of a stored logo, or the content of a file in base64, which may be a data URL.
///
/// # Errors
/// Returns [`LogoError`] for a text or a file in another form.
pub fn parse(text: &str) -> Result<Logo, LogoError> {
    if let Some(known) = Logo::parse(text) {
        return Ok(known);
    }
    let file = decoded(text)?;
    let (format, image) = if file.starts_with(PNG_SIGNATURE) {
        (LogoFormat::Png, encoded_again(&file)?)
    } else {
        (LogoFormat::Svg, written_again(&file)?.into_bytes())
    };
    Ok(Logo { format, sha256: Sha256::digest(&image).into(), image: Some(image.into()) })
}

fn decoded(text: &str) -> Result<Vec<u8>, LogoError> {
    let content = match text.split_once(";base64,") {
        Some((head, content)) if head.starts_with("data:image/") => content,
        Some(_) | None => text,
    };
    // Tools break base64 into lines.
    let digits: String = content.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    if digits.len() > MAX_LOGO_CHARS {
        return Err(LogoError::TooLarge);
    }
    let file = STANDARD.decode(digits).map_err(|_| LogoError::Form)?;
    if file.len() > MAX_LOGO_BYTES {
        return Err(LogoError::TooLarge);
    }
    Ok(file)
}

/// Decodes a PNG file and encodes its pixels. Everything else, such as texts and color profiles, is lost.
fn encoded_again(file: &[u8]) -> Result<Vec<u8>, LogoError> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(file), PNG_LIMITS);
    decoder.set_transformations(Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(|_| LogoError::Png)?;
    let (width, height) = reader.info().size();
    if width > MAX_PIXELS || height > MAX_PIXELS {
        return Err(LogoError::TooManyPixels);
    }
    let mut pixels = vec![0; reader.output_buffer_size().ok_or(LogoError::TooManyPixels)?];
    let frame = reader.next_frame(&mut pixels).map_err(|_| LogoError::Png)?;
    pixels.truncate(frame.buffer_size());
    let mut image = Vec::new();
    let mut encoder = Encoder::new(&mut image, frame.width, frame.height);
    encoder.set_color(frame.color_type);
    encoder.set_depth(frame.bit_depth);
    encoder.set_compression(Compression::High);
    let mut writer = encoder.write_header().map_err(|_| LogoError::Png)?;
    writer.write_image_data(&pixels).and_then(|()| writer.finish()).map_err(|_| LogoError::Png)?;
    if image.len() > MAX_ENCODED_BYTES {
        return Err(LogoError::TooLarge);
    }
    Ok(image)
}

/// Reads an SVG file and writes its permitted content.
fn written_again(file: &[u8]) -> Result<String, LogoError> {
    let text = std::str::from_utf8(file).map_err(|_| LogoError::Form)?.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('<') {
        return Err(LogoError::Form);
    }
    let options = ParsingOptions { nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|_| LogoError::Xml)?;
    let root = document.root_element();
    if !root.has_tag_name((SVG, "svg")) {
        return Err(LogoError::Form);
    }
    let [x, y, width, height] = view_box(root).ok_or(LogoError::Size)?;
    let mut written = format!("<svg xmlns=\"{SVG}\" viewBox=\"{x} {y} {width} {height}\"");
    for attribute in root.attributes().filter(|attribute| !OMITTED_OF_ROOT.contains(&attribute.name())) {
        write_attribute(&mut written, root, &attribute)?;
    }
    written.push('>');
    write_children(&mut written, root, 1)?;
    written.push_str("</svg>\n");
    Ok(written)
}

/// Returns the visible part of a drawing: its first corner, width and height.
fn view_box(root: Node<'_, '_>) -> Option<[f32; 4]> {
    let number = |text: &str| text.trim().trim_end_matches("px").parse::<f32>().ok().filter(|number| number.abs() <= MAX_UNITS);
    let shown: [f32; 4] = match root.attribute("viewBox") {
        Some(text) => {
            let numbers: Option<Vec<f32>> =
                text.split([' ', ',', '\t', '\r', '\n']).filter(|part| !part.is_empty()).map(number).collect();
            numbers?.try_into().ok()?
        }
        None => [0.0, 0.0, number(root.attribute("width")?)?, number(root.attribute("height")?)?],
    };
    let [_, _, width, height] = shown;
    (width > 0.0 && height > 0.0).then_some(shown)
}

fn write_children(written: &mut String, parent: Node<'_, '_>, depth: usize) -> Result<(), LogoError> {
    if depth > MAX_DEPTH {
        return Err(LogoError::Xml);
    }
    for child in parent.children() {
        if child.is_text() && parent.has_tag_name((SVG, "style")) {
            let styles = child.text().unwrap_or_default();
            check_references("style", styles)?;
            write_escaped(written, styles);
        }
        // Elements of other namespaces belong to drawing programs.
        if !child.is_element() || child.tag_name().namespace() != Some(SVG) {
            continue;
        }
        let name = child.tag_name().name();
        if OMITTED.contains(&name) {
            continue;
        }
        if !ELEMENTS.contains(&name) {
            return Err(LogoError::Element(shortened(name)));
        }
        written.push('<');
        written.push_str(name);
        for attribute in child.attributes() {
            write_attribute(written, child, &attribute)?;
        }
        written.push('>');
        write_children(written, child, depth + 1)?;
        written.push_str("</");
        written.push_str(name);
        written.push('>');
    }
    Ok(())
}

/// Writes an attribute of SVG. Attributes of drawing programs are omitted.
fn write_attribute(written: &mut String, element: Node<'_, '_>, attribute: &Attribute<'_, '_>) -> Result<(), LogoError> {
    let (name, value) = (attribute.name(), attribute.value());
    let is_reference = name == "href";
    if attribute.namespace().is_some_and(|namespace| namespace != XLINK || !is_reference) {
        return Ok(());
    }
    if name.get(..2).is_some_and(|begin| begin.eq_ignore_ascii_case("on")) {
        return Err(LogoError::Script(shortened(name)));
    }
    let is_gradient = matches!(element.tag_name().name(), "linearGradient" | "radialGradient");
    if is_reference && !(is_gradient && value.starts_with('#')) {
        return Err(LogoError::Reference(shortened(name)));
    }
    check_references(name, value)?;
    written.push(' ');
    written.push_str(name);
    written.push_str("=\"");
    write_escaped(written, value);
    written.push('"');
    Ok(())
}

/// Checks that the value of an attribute or a style refers to nothing outside of the file. Escapes and rules with `@` could hide a
/// reference.
fn check_references(name: &str, value: &str) -> Result<(), LogoError> {
    let lower = value.to_ascii_lowercase();
    let is_own = |rest: &str| rest.trim_start().trim_start_matches(['"', '\'']).starts_with('#');
    if lower.contains(['@', '\\']) || !lower.split("url(").skip(1).all(is_own) {
        return Err(LogoError::Reference(shortened(name)));
    }
    Ok(())
}

fn write_escaped(written: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\t' | '\n' | '\r' => {
                // Writing to a text does not fail.
                let _ = write!(written, "&#{};", u32::from(c));
            }
            c => written.push(c),
        }
    }
}

/// Shortens what an error message names.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    text.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_file(file: &[u8]) -> Result<Logo, LogoError> {
        parse(&STANDARD.encode(file))
    }

    fn image(logo: &Logo) -> &[u8] {
        logo.image.as_deref().expect("an image")
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.add_text_chunk("Comment".to_owned(), "a secret".to_owned()).expect("a text");
        let mut writer = encoder.write_header().expect("a header");
        let bytes = usize::try_from(width * height * 3).expect("few pixels");
        writer.write_image_data(&vec![7; bytes]).expect("pixels");
        writer.finish().expect("a file");
        file
    }

    #[test]
    fn a_png_file_is_encoded_again_without_its_texts() {
        let file = png(20, 10);
        let holds_secret = |bytes: &[u8]| bytes.windows(8).any(|part| part == b"a secret");
        assert!(holds_secret(&file));
        let logo = of_file(&file).expect("a logo");
        assert_eq!((logo.format, logo.sha256), (LogoFormat::Png, Sha256::digest(image(&logo)).into()));
        assert!(image(&logo).starts_with(PNG_SIGNATURE) && !holds_secret(image(&logo)));
        let url = format!("data:image/png;base64,{}", STANDARD.encode(&file));
        assert_eq!(parse(&url), Ok(logo.clone()), "a data URL");
        assert_eq!(of_file(image(&logo)).expect("a logo").sha256, logo.sha256, "encoding again changes nothing");
        assert_eq!(parse(&logo.to_string()), Ok(Logo { image: None, ..logo }), "its own text form");
    }

    #[test]
    fn a_broken_or_large_file_is_refused() {
        let file = png(20, 10);
        assert_eq!(of_file(&file[..file.len() / 2]), Err(LogoError::Png));
        assert_eq!(of_file(&png(2001, 1)), Err(LogoError::TooManyPixels));
        assert_eq!(of_file(&vec![b' '; MAX_LOGO_BYTES + 1]), Err(LogoError::TooLarge));
        assert_eq!(parse(&"A".repeat(MAX_LOGO_CHARS + 1)), Err(LogoError::TooLarge));
        for text in ["", "png", "not base64!", "iVBORw0KGgo"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(of_file(b"GIF89a"), Err(LogoError::Form));
        assert_eq!(of_file(b"<html xmlns=\"http://www.w3.org/1999/xhtml\"/>"), Err(LogoError::Form));
    }

    #[test]
    fn an_svg_file_is_written_again_with_only_its_shapes() {
        let file = r##"<?xml version="1.0"?><!-- made by hand -->
            <svg xmlns="http://www.w3.org/2000/svg" xmlns:i="http://inkscape" xmlns:xlink="http://www.w3.org/1999/xlink"
                 width="20px" height="10px" fill="none" i:zoom="2">
              <title>Northwind</title><metadata><x/></metadata><i:view/>
              <style>.a{fill:url(#b)} .c>path{stroke:"x"}</style>
              <defs><linearGradient id="b"/><linearGradient id="d" xlink:href="#b"/></defs>
              <g class="a"><path d="M0 0h1" i:nodes="c"/></g>
            </svg>"##;
        let logo = of_file(file.as_bytes()).expect("a logo");
        let wanted = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 20 10\" fill=\"none\">\
            <style>.a{fill:url(#b)} .c&gt;path{stroke:&quot;x&quot;}</style>\
            <defs><linearGradient id=\"b\"></linearGradient><linearGradient id=\"d\" href=\"#b\"></linearGradient></defs>\
            <g class=\"a\"><path d=\"M0 0h1\"></path></g></svg>\n";
        assert_eq!(std::str::from_utf8(image(&logo)), Ok(wanted));
        assert_eq!(of_file(image(&logo)).expect("a logo").sha256, logo.sha256, "writing again changes nothing");
    }

    #[test]
    fn an_svg_file_with_more_than_shapes_is_refused() {
        let drawing = |content: &str| {
            let svg = format!(r#"<svg xmlns="{SVG}" xmlns:l="{XLINK}" viewBox="0 0 1 1">{content}</svg>"#);
            of_file(svg.as_bytes()).expect_err(content)
        };
        for element in ["script", "text", "image", "use", "foreignObject", "filter", "animate", "a", "svg", "pattern"] {
            assert_eq!(drawing(&format!("<g><{element}/></g>")), LogoError::Element(element.to_owned()));
        }
        assert_eq!(drawing("<path onclick=\"f()\"/>"), LogoError::Script("onclick".to_owned()));
        let references = [
            ("fill", "<path fill=\"url(http://a)\"/>"),
            ("style", "<path style=\"fill:URL( 'file:///a')\"/>"),
            ("fill", "<path fill=\"\\75rl(a)\"/>"),
            ("style", "<style>@import 'a';</style>"),
            ("href", "<linearGradient href=\"other.svg#a\"/>"),
            ("href", "<linearGradient l:href=\"http://a\"/>"),
            ("href", "<path href=\"#a\"/>"),
        ];
        for (place, content) in references {
            assert_eq!(drawing(content), LogoError::Reference(place.to_owned()), "{content}");
        }
        assert_eq!(drawing(&"<g>".repeat(2)), LogoError::Xml, "elements without an end");
        assert_eq!(drawing(&format!("{}{}", "<g>".repeat(64), "</g>".repeat(64))), LogoError::Xml, "too many levels");
        assert_eq!(drawing(&"<g/>".repeat(10_000)), LogoError::Xml, "too many elements");
        for size in ["", "viewBox=\"0 0 0 1\"", "viewBox=\"0 0 1\"", "viewBox=\"0 0 1 nan\"", "width=\"100%\" height=\"1\""] {
            assert_eq!(of_file(format!("<svg xmlns=\"{SVG}\" {size}/>").as_bytes()), Err(LogoError::Size), "{size}");
        }
        let entity = "<!DOCTYPE svg [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><svg xmlns=\"http://www.w3.org/2000/svg\"/>";
        assert_eq!(of_file(entity.as_bytes()), Err(LogoError::Xml));
    }
}
