//! Factur-X and ZUGFeRD: the XMP metadata of a PDF file that contains an e-invoice.
//!
//! typst attaches the file, but it can't write the metadata that readers of Factur-X look for. So an incremental update is appended
//! to the file: the metadata stream once more with the additional metadata, and a cross-reference table with this one object.

use billing_domain::ports::PrintError;

/// The name of the attached file, which the specification fixes.
pub(crate) const FILE_NAME: &str = "factur-x.xml";
/// The end of a template that attaches the file.
pub(crate) const ATTACH: &str =
    r#"#pdf.attach("factur-x.xml", relationship: "alternative", mime-type: "text/xml", description: "Factur-X invoice")"#;

const PACKET_BEGIN: &[u8] = b"<?xpacket begin=";
const PACKET_END: &[u8] = b"<?xpacket end=\"r\"?>";
const OBJECT: &[u8] = b" 0 obj\n";
const TRAILER: &[u8] = b"trailer\n<<";
const START_XREF: &[u8] = b"startxref\n";
/// The end of the list of extension schemas, which PDF/A requires for metadata that it doesn't define.
const SCHEMAS_END: &str = "</rdf:Bag></pdfaExtension:schemas>";
const RDF_END: &str = "</rdf:RDF>";

/// The schema of the metadata.
const SCHEMA: &str = concat!(
    r#"<rdf:li rdf:parseType="Resource" xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#""#,
    r#" xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#">"#,
    "<pdfaSchema:schema>Factur-X PDFA Extension Schema</pdfaSchema:schema>",
    "<pdfaSchema:namespaceURI>urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#</pdfaSchema:namespaceURI>",
    "<pdfaSchema:prefix>fx</pdfaSchema:prefix><pdfaSchema:property><rdf:Seq>",
    r#"<rdf:li rdf:parseType="Resource"><pdfaProperty:name>DocumentFileName</pdfaProperty:name>"#,
    "<pdfaProperty:valueType>Text</pdfaProperty:valueType><pdfaProperty:category>external</pdfaProperty:category>",
    "<pdfaProperty:description>name of the embedded XML invoice file</pdfaProperty:description></rdf:li>",
    r#"<rdf:li rdf:parseType="Resource"><pdfaProperty:name>DocumentType</pdfaProperty:name>"#,
    "<pdfaProperty:valueType>Text</pdfaProperty:valueType><pdfaProperty:category>external</pdfaProperty:category>",
    "<pdfaProperty:description>INVOICE</pdfaProperty:description></rdf:li>",
    r#"<rdf:li rdf:parseType="Resource"><pdfaProperty:name>Version</pdfaProperty:name>"#,
    "<pdfaProperty:valueType>Text</pdfaProperty:valueType><pdfaProperty:category>external</pdfaProperty:category>",
    "<pdfaProperty:description>The actual version of the Factur-X XML schema</pdfaProperty:description></rdf:li>",
    r#"<rdf:li rdf:parseType="Resource"><pdfaProperty:name>ConformanceLevel</pdfaProperty:name>"#,
    "<pdfaProperty:valueType>Text</pdfaProperty:valueType><pdfaProperty:category>external</pdfaProperty:category>",
    "<pdfaProperty:description>The conformance level of the embedded Factur-X data</pdfaProperty:description></rdf:li>",
    "</rdf:Seq></pdfaSchema:property></rdf:li>",
);

/// The metadata.
const DESCRIPTION: &str = concat!(
    r#"<rdf:Description rdf:about="" xmlns:fx="urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#">"#,
    "<fx:DocumentType>INVOICE</fx:DocumentType><fx:DocumentFileName>factur-x.xml</fx:DocumentFileName>",
    "<fx:Version>1.0</fx:Version><fx:ConformanceLevel>EN 16931</fx:ConformanceLevel></rdf:Description>",
);

/// Appends the metadata of the attached e-invoice to a PDF file.
///
/// # Errors
/// Returns [`PrintError::Failed`] if the file doesn't have the structure that typst writes.
pub(crate) fn with_description(mut pdf: Vec<u8>) -> Result<Vec<u8>, PrintError> {
    let update = update(&pdf).ok_or_else(|| PrintError::Failed("the metadata of a Factur-X file has no place".to_owned()))?;
    pdf.extend_from_slice(&update);
    Ok(pdf)
}

/// Returns the bytes to append; `None` if a part of the file's structure isn't found.
fn update(pdf: &[u8]) -> Option<Vec<u8>> {
    let begin = last(pdf, PACKET_BEGIN)?;
    let end = begin + first(pdf.get(begin..)?, PACKET_END)? + PACKET_END.len();
    let packet = described(std::str::from_utf8(pdf.get(begin..end)?).ok()?)?;
    let number = last_number(pdf.get(..last(pdf.get(..begin)?, OBJECT)?)?)?;
    let start_xref = last(pdf, START_XREF)?;
    let previous = first_number(pdf.get(start_xref + START_XREF.len()..)?)?;
    // The trailer is repeated with the place of the previous cross-reference table.
    let trailer = pdf.get(last(pdf, TRAILER)? + TRAILER.len()..start_xref)?;

    let mut update = b"\n".to_vec();
    let object = pdf.len() + update.len();
    let length = packet.len();
    update.extend_from_slice(format!("{number} 0 obj\n<</Length {length}/Type/Metadata/Subtype/XML>>\nstream\n").as_bytes());
    update.extend_from_slice(packet.as_bytes());
    update.extend_from_slice(b"\nendstream\nendobj\n");
    let table = pdf.len() + update.len();
    update.extend_from_slice(format!("xref\n{number} 1\n{object:010} 00000 n\r\ntrailer\n<</Prev {previous}").as_bytes());
    update.extend_from_slice(trailer);
    update.extend_from_slice(format!("startxref\n{table}\n%%EOF").as_bytes());
    Some(update)
}

/// Returns a metadata packet with the additional schema and description.
fn described(packet: &str) -> Option<String> {
    let (schemas, rest) = packet.split_once(SCHEMAS_END)?;
    let (descriptions, end) = rest.rsplit_once(RDF_END)?;
    Some([schemas, SCHEMA, SCHEMAS_END, descriptions, DESCRIPTION, RDF_END, end].concat())
}

fn first(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn last(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).rposition(|window| window == wanted)
}

/// Returns the number at the end of bytes.
fn last_number(bytes: &[u8]) -> Option<usize> {
    let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(bytes.get(bytes.len() - digits..)?).ok()?.parse().ok()
}

/// Returns the number at the beginning of bytes.
fn first_number(bytes: &[u8]) -> Option<usize> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(bytes.get(..digits)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PDF: &str = concat!(
        "%PDF-1.7\n7 0 obj\n<</Length 9>>\nstream\n",
        "<?xpacket begin=\"\"?><x:xmpmeta><rdf:RDF><rdf:Description><pdfaExtension:schemas><rdf:Bag><rdf:li>1</rdf:li></rdf:Bag>",
        "</pdfaExtension:schemas></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end=\"r\"?>\nendstream\nendobj\n",
        "xref\n0 8\ntrailer\n<</Size 8/Root 3 0 R>>\nstartxref\n321\n%%EOF",
    );

    #[test]
    fn the_metadata_is_appended_as_an_incremental_update() {
        let described = with_description(PDF.as_bytes().to_vec()).expect("an update");
        let text = std::str::from_utf8(&described).expect("UTF-8");
        let appended = text.strip_prefix(PDF).expect("the file as it was");
        assert_eq!(appended.matches("<fx:ConformanceLevel>EN 16931</fx:ConformanceLevel>").count(), 1);
        assert_eq!(appended.matches("<pdfaSchema:prefix>fx</pdfaSchema:prefix>").count(), 1);
        assert_eq!(appended.matches("<pdfaExtension:schemas>").count(), 1, "one list of schemas");
        assert!(appended.contains("trailer\n<</Prev 321/Size 8/Root 3 0 R>>\nstartxref\n"), "{appended}");

        let table = text.rfind("xref\n7 1\n").expect("a table");
        assert!(text.ends_with(&format!("startxref\n{table}\n%%EOF")), "{appended}");
        let object = &text[table + "xref\n7 1\n".len()..][..10];
        let object: usize = object.parse().expect("an offset");
        assert!(text[object..].starts_with("7 0 obj\n<</Length "), "{appended}");
        let (_, stream) = text[object..].split_once("stream\n").expect("a stream");
        let (stream, _) = stream.split_once("\nendstream").expect("its end");
        assert!(text[object..].starts_with(&format!("7 0 obj\n<</Length {}/", stream.len())), "{appended}");
    }

    #[test]
    fn a_file_of_another_structure_is_refused() {
        for missing in ["<?xpacket end", "</pdfaExtension:schemas>", "trailer", "startxref", " 0 obj"] {
            let found = with_description(PDF.replace(missing, "").into_bytes());
            assert!(matches!(found, Err(PrintError::Failed(_))), "{missing}");
        }
    }

    #[test]
    fn the_template_attaches_the_file_by_its_name() {
        assert!(ATTACH.contains(FILE_NAME) && DESCRIPTION.contains(FILE_NAME));
    }
}
