//! The watermark of drafts as outlines. As text, it would be part of the text that readers copy or extract from the file.

use serde::Serialize;
use ttf_parser::{Face, OutlineBuilder};

use crate::fonts::Fonts;

/// A word as outlines, in the units of its font.
#[derive(Debug, Serialize)]
pub(crate) struct Stamp {
    /// The width of the word.
    width: u32,
    /// The height of capital letters above the baseline.
    height: i16,
    glyphs: Vec<Glyph>,
}

/// A glyph with the distance of its origin from the word's.
#[derive(Debug, Serialize)]
struct Glyph {
    x: u32,
    outline: Vec<Segment>,
}

/// A segment of an outline, with coordinates upwards from the baseline.
///
/// The coordinates are texts. With the feature `arbitrary_precision` of `serde_json`, which other crates of the workspace enable,
/// typst reads numbers with a fraction as dictionaries.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", content = "points", rename_all = "lowercase")]
enum Segment {
    Move([String; 2]),
    Line([String; 2]),
    Quad([String; 4]),
    Cubic([String; 6]),
    Close,
}

/// Returns coordinates as texts.
fn texts<const N: usize>(coordinates: [f32; N]) -> [String; N] {
    coordinates.map(|coordinate| coordinate.to_string())
}

impl OutlineBuilder for Glyph {
    fn move_to(&mut self, x: f32, y: f32) {
        self.outline.push(Segment::Move(texts([x, y])));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.outline.push(Segment::Line(texts([x, y])));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.outline.push(Segment::Quad(texts([x1, y1, x, y])));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.outline.push(Segment::Cubic(texts([x1, y1, x2, y2, x, y])));
    }

    fn close(&mut self) {
        self.outline.push(Segment::Close);
    }
}

impl Stamp {
    /// Returns the outlines of a word; `None` if no font has all of its characters.
    pub(crate) fn of(word: &str, fonts: &Fonts) -> Option<Self> {
        let font = fonts.heaviest_for(word)?;
        let face = Face::parse(font.data(), font.index()).ok()?;
        let mut stamp = Self { width: 0, height: face.capital_height().unwrap_or_else(|| face.ascender()), glyphs: Vec::new() };
        for c in word.chars() {
            let id = face.glyph_index(c)?;
            let mut glyph = Glyph { x: stamp.width, outline: Vec::new() };
            // A space has no outline.
            let _ = face.outline_glyph(id, &mut glyph);
            stamp.width += u32::from(face.glyph_hor_advance(id)?);
            stamp.glyphs.push(glyph);
        }
        Some(stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fonts::FontCollection;

    #[test]
    fn a_word_has_the_outlines_of_its_letters() {
        let collection = FontCollection::load(None, Vec::new()).expect("fonts");
        let fonts = collection.for_text("");
        let stamp = Stamp::of("É I", fonts).expect("a stamp");
        assert_eq!(stamp.glyphs.len(), 3);
        assert!(stamp.glyphs[1].outline.is_empty() && stamp.glyphs[2].x > stamp.glyphs[1].x && stamp.width > stamp.glyphs[2].x);
        let written = serde_json::to_value(&stamp.glyphs[2].outline[0]).expect("JSON");
        assert!(written["kind"] == "move" && written["points"][0].is_string(), "{written}");
        let outline = &stamp.glyphs[0].outline;
        assert!(
            matches!(outline.first(), Some(Segment::Move(_))) && matches!(outline.last(), Some(Segment::Close)),
            "{outline:?}"
        );
        assert!(Stamp::of("下書き", fonts).is_none());
    }
}
