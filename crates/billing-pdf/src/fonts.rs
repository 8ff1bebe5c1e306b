//! The fonts of documents.
//!
//! The built-in fonts and those of the operator's folder are always used. The Noto fonts of the distribution are read only for a
//! document with characters that the others lack, so that they don't influence other documents. A character that no font has is
//! drawn as a box.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use billing_domain::ports::PrintError;
use ttf_parser::{Face, fonts_in_collection, name_id};

/// Noto Sans, under the SIL Open Font License: `fonts/OFL.txt`.
const BUILT_IN: [&[u8]; 2] = [include_bytes!("../fonts/NotoSans-Regular.ttf"), include_bytes!("../fonts/NotoSans-SemiBold.ttf")];
/// The folders in which distributions install fonts.
pub const SYSTEM_FOLDERS: [&str; 2] = ["/usr/share/fonts", "/usr/local/share/fonts"];
/// The maximum number of missing characters that a message names.
const MAX_NAMED: usize = 50;
/// The weights that documents use.
const WEIGHTS: [&str; 4] = ["Regular", "Medium", "SemiBold", "Bold"];

/// Which characters the fonts have, without the fonts: the server tells what is missing, and other processes print.
#[derive(Debug)]
pub(crate) struct GlyphCoverage {
    own: Vec<Coverage>,
    /// The fonts of the system, once a text has a character that the others lack.
    system: OnceLock<Vec<Coverage>>,
    system_folders: Vec<PathBuf>,
}

/// The characters of a font, as ranges in ascending order.
#[derive(Debug)]
struct Coverage(Vec<RangeInclusive<u32>>);

impl Coverage {
    /// Reads the characters of all fonts of a file whose family has an accepted name.
    fn of_file(file: &[u8], is_accepted: impl Fn(&str) -> bool) -> Vec<Self> {
        let faces = (0..fonts_in_collection(file).unwrap_or(1)).filter_map(|index| Face::parse(file, index).ok());
        faces.filter(|face| is_accepted(&family(face))).map(|face| Self::of(&face)).collect()
    }

    fn of(face: &Face<'_>) -> Self {
        let mut characters = Vec::new();
        let tables = face.tables().cmap.into_iter().flat_map(|cmap| cmap.subtables);
        for table in tables.filter(|table| table.is_unicode()) {
            table.codepoints(|character| characters.push(character));
        }
        characters.sort_unstable();
        let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
        for character in characters {
            match ranges.last_mut() {
                Some(last) if character <= last.end().saturating_add(1) => *last = *last.start()..=character,
                _ => ranges.push(character..=character),
            }
        }
        Self(ranges)
    }

    fn contains(&self, c: char) -> bool {
        let c = u32::from(c);
        let after = self.0.partition_point(|range| *range.start() <= c);
        after.checked_sub(1).and_then(|index| self.0.get(index)).is_some_and(|range| range.contains(&c))
    }
}

fn family(face: &Face<'_>) -> String {
    let names = face.names().into_iter().filter(|name| name.name_id == name_id::FAMILY);
    names.filter_map(|name| name.to_string()).next().unwrap_or_default()
}

impl GlyphCoverage {
    /// Reads which characters the fonts have.
    ///
    /// # Errors
    /// Returns [`PrintError::Failed`] if a file or folder of the operator cannot be read.
    pub(crate) fn load(dir: Option<&Path>, system_folders: Vec<PathBuf>) -> Result<Self, PrintError> {
        let own = own_files(dir)?.iter().flat_map(|file| Coverage::of_file(file, |_| true)).collect();
        Ok(Self { own, system: OnceLock::new(), system_folders })
    }

    /// Returns the characters of a text that no font has, each once.
    pub(crate) fn missing(&self, text: &str) -> impl Iterator<Item = char> {
        let has = |fonts: &[Coverage], c: char| fonts.iter().any(|font| font.contains(c));
        let of_file = |(_, file): (PathBuf, Vec<u8>)| Coverage::of_file(&file, is_of_documents);
        let of_system = move || system_files(&self.system_folders).flat_map(of_file).collect();
        missing(text, move |c| has(&self.own, c) || has(self.system.get_or_init(of_system), c))
    }
}

/// Returns the characters of a text that need a glyph and have none, each once. A font is asked once for each character, because
/// its answer takes long, and a text may have as many different characters as its author wants.
pub fn missing(text: &str, covers: impl Fn(char) -> bool) -> impl Iterator<Item = char> {
    let mut seen = HashSet::new();
    text.chars().filter(move |c| !c.is_ascii() && needs_glyph(*c) && seen.insert(*c) && !covers(*c))
}

/// Returns the first of the missing characters as a text.
pub fn named(missing: impl Iterator<Item = char>) -> String {
    missing.take(MAX_NAMED).collect()
}

/// Returns whether a character must have a glyph to be seen.
pub fn needs_glyph(c: char) -> bool {
    !c.is_whitespace() && !is_invisible(c)
}

/// Returns whether a character has no glyph of its own: marks of direction, joiners, breaks and selectors of variants.
const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Returns whether a file is a font of the Noto Sans family for a script, in an upright weight that documents use. The family Noto
/// Sans itself is built in.
fn is_noto_sans(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str());
    let Some((script, style)) = name.and_then(|name| name.strip_prefix("NotoSans")?.rsplit_once('-')) else { return false };
    let is_script = script.starts_with(|c: char| c.is_ascii_uppercase()) && !script.ends_with("UI");
    is_script && !script.starts_with("Mono") && !script.starts_with("Display") && WEIGHTS.contains(&style)
}

/// Reads the built-in fonts and then those of the operator's folder, in the order of their paths. The order decides between several
/// fonts with a character.
///
/// # Errors
/// Returns [`PrintError::Failed`] if a file or folder cannot be read.
pub fn own_files(dir: Option<&Path>) -> Result<Vec<Cow<'static, [u8]>>, PrintError> {
    let mut files = BUILT_IN.map(Cow::Borrowed).to_vec();
    let mut paths = Vec::new();
    if let Some(dir) = dir {
        files_below(dir, &mut paths)?;
    }
    for path in paths {
        files.push(Cow::Owned(std::fs::read(&path).map_err(|error| unreadable(&path, &error))?));
    }
    Ok(files)
}

/// Reads the files with Noto fonts below folders. Folders and files that can't be read have no fonts: they belong to the system.
pub fn system_files(folders: &[PathBuf]) -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
    let in_folder = |folder: &PathBuf| {
        let mut paths = Vec::new();
        if files_below(folder, &mut paths).is_ok() { paths } else { Vec::new() }
    };
    let paths = folders.iter().flat_map(in_folder).filter(|path| is_noto_sans(path));
    paths.filter_map(|path| std::fs::read(&path).ok().map(|file| (path, file)))
}

/// Returns whether documents use the fonts of a family. A file of the system can have proportional and other fonts.
pub fn is_of_documents(family: &str) -> bool {
    !family.contains("Mono")
}

/// Finds the font files in a folder and its subfolders.
fn files_below(dir: &Path, paths: &mut Vec<PathBuf>) -> Result<(), PrintError> {
    let entries = std::fs::read_dir(dir).map_err(|error| unreadable(dir, &error))?;
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in entries {
        found.push(entry.map_err(|error| unreadable(dir, &error))?.path());
    }
    found.sort();
    for path in found {
        if path.is_dir() {
            files_below(&path, paths)?;
        } else if is_font(&path) {
            paths.push(path);
        }
    }
    Ok(())
}

fn is_font(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    matches!(extension.as_deref(), Some("ttf" | "otf" | "ttc" | "otc"))
}

fn unreadable(path: &Path, error: &std::io::Error) -> PrintError {
    PrintError::Failed(format!("{} can't be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_upright_noto_fonts_for_a_script_are_used() {
        for name in ["NotoSansArabic-Regular.ttf", "NotoSansThai-Bold.ttf", "NotoSansCJK-Regular.ttc", "NotoSansLao-SemiBold.ttf"]
        {
            assert!(is_noto_sans(Path::new(name)), "{name}");
        }
        for name in [
            "NotoSans-Regular.ttf",
            "NotoSansMono-Regular.ttf",
            "NotoSansDisplay-Bold.ttf",
            "NotoSansArabicUI-Regular.ttf",
            "NotoSansCJK-Black.ttc",
            "NotoSansThai-Light.ttf",
            "NotoSerifThai-Regular.ttf",
            "DejaVuSans.ttf",
        ] {
            assert!(!is_noto_sans(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn the_characters_of_a_font_are_known_without_the_font() {
        let coverage = GlyphCoverage::load(None, Vec::new()).expect("fonts");
        assert_eq!(coverage.missing("Acme Łódź Ελλάδα Ж € ¼\u{200b}\u{fe0f}").next(), None);
        assert_eq!(named(coverage.missing("שלום ☐ 下書き 下")), "שלום☐下書き");
    }

    #[test]
    fn fonts_of_the_system_are_read_only_for_characters_that_the_others_lack() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../billing-typesetter/tests/printing/fonts");
        let coverage = GlyphCoverage::load(None, vec![folder, PathBuf::from("/nonexistent")]).expect("fonts");
        assert_eq!((coverage.missing("Ελλάδα").next(), coverage.system.get().is_none()), (None, true));
        assert_eq!(
            (coverage.missing("שלום").next(), coverage.system.get().is_some()),
            (Some('ש'), true),
            "its font has another name"
        );
    }
}
