//! Elements of an XML document. Texts are escaped, and characters that XML doesn't allow are replaced.

use std::borrow::Cow;
use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

/// Attributes of an element.
pub(crate) type Attributes<'a> = &'a [(&'a str, &'a str)];

/// An XML document that is being written.
pub(crate) struct Xml(Writer<Vec<u8>>);

impl Xml {
    /// Returns a document with one root element.
    pub(crate) fn document(
        root: &str,
        attributes: Attributes<'_>,
        inner: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<Vec<u8>> {
        let mut xml = Self(Writer::new_with_indent(Vec::new(), b' ', 1));
        xml.0.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        xml.write_element(root, attributes, inner)?;
        let mut bytes = xml.0.into_inner();
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Writes an element with other elements.
    pub(crate) fn element(&mut self, name: &str, inner: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.write_element(name, &[], inner)
    }

    /// Writes an element with a text.
    pub(crate) fn text(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.text_with(name, &[], text)
    }

    /// Writes an element with a text, unless there is no text.
    pub(crate) fn optional(&mut self, name: &str, text: Option<&str>) -> io::Result<()> {
        match text {
            Some(text) => self.text(name, text),
            None => Ok(()),
        }
    }

    /// Writes an element with attributes and a text.
    pub(crate) fn text_with(&mut self, name: &str, attributes: Attributes<'_>, text: &str) -> io::Result<()> {
        let text = allowed(text);
        self.0.write_event(Event::Start(start(name, attributes)))?;
        self.0.write_event(Event::Text(BytesText::new(&text)))?;
        self.0.write_event(Event::End(BytesEnd::new(name)))
    }

    fn write_element(
        &mut self,
        name: &str,
        attributes: Attributes<'_>,
        inner: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.0.write_event(Event::Start(start(name, attributes)))?;
        inner(self)?;
        self.0.write_event(Event::End(BytesEnd::new(name)))
    }
}

fn start<'a>(name: &'a str, attributes: Attributes<'_>) -> BytesStart<'a> {
    let mut start = BytesStart::new(name);
    for (name, value) in attributes {
        start.push_attribute((*name, allowed(value).as_ref()));
    }
    start
}

/// Returns a text in which each character that XML 1.0 doesn't allow is replaced by U+FFFD, and each line ends with a line feed.
fn allowed(text: &str) -> Cow<'_, str> {
    let is_allowed =
        |c: char| matches!(c, '\t' | '\n' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}');
    if text.chars().all(is_allowed) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    Cow::Owned(text.chars().map(|c| if is_allowed(c) { c } else { '\u{fffd}' }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let bytes = Xml::document("a", &[("b", text)], |xml| xml.text("c", text)).expect("XML");
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn texts_are_escaped() {
        let document = written("<&>\"'");
        assert!(document.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a b=\""), "{document}");
        assert!(document.contains("<c>&lt;&amp;&gt;"), "{document}");
        assert!(!document.contains("<&>"), "{document}");
        assert!(document.ends_with("</c>\n</a>\n"), "{document}");
    }

    #[test]
    fn characters_that_xml_does_not_allow_are_replaced() {
        let document = written("a\u{fffe}b\u{ffff}c\u{1}d\u{10ffff}");
        assert!(document.contains("<c>a\u{fffd}b\u{fffd}c\u{fffd}d\u{10ffff}</c>"), "{document}");
        assert!(written("a\r\nb\rc\td").contains("<c>a\nb\nc\td</c>"));
    }
}
