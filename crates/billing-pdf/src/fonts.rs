//! The fonts of documents.
//!
//! The built-in fonts and those of the operator's folder are always used. The Noto fonts of the distribution are read only for a
//! document with characters that the others lack, so that they don't influence other documents. A character that no font has is
//! drawn as a box.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use billing_domain::ports::PrintError;
use typst::foundations::Bytes;
use typst::text::{Coverage, Font, FontBook, FontInfo};
use typst::utils::LazyHash;

/// Noto Sans, under the SIL Open Font License: `fonts/OFL.txt`.
const BUILT_IN: [&[u8]; 2] = [include_bytes!("../fonts/NotoSans-Regular.ttf"), include_bytes!("../fonts/NotoSans-SemiBold.ttf")];
/// The folders in which distributions install fonts.
pub(crate) const SYSTEM_FOLDERS: [&str; 2] = ["/usr/share/fonts", "/usr/local/share/fonts"];
/// The maximum number of missing characters that a message names.
const MAX_NAMED: usize = 50;
/// The weights that documents use.
const WEIGHTS: [&str; 4] = ["Regular", "Medium", "SemiBold", "Bold"];

/// All fonts of a printer.
#[derive(Debug)]
pub(crate) struct FontCollection {
    own: Fonts,
    /// The own fonts and those of the system.
    all: OnceLock<Fonts>,
    system_folders: Vec<PathBuf>,
}

/// Fonts with their metadata.
#[derive(Debug)]
pub(crate) struct Fonts {
    pub(crate) book: LazyHash<FontBook>,
    fonts: Vec<StoredFont>,
}

/// A font that is loaded, or that is loaded when a document first uses it.
#[derive(Debug)]
enum StoredFont {
    Loaded(Font),
    File { path: PathBuf, index: u32, font: OnceLock<Option<Font>> },
}

impl FontCollection {
    /// Loads the built-in fonts and then those of a folder, in the order of their paths. The order decides between
    /// several fonts with a character. The system's fonts follow, when a document needs them.
    ///
    /// # Errors
    /// Returns [`PrintError::Failed`] if a file or folder of the operator cannot be read.
    pub(crate) fn load(dir: Option<&Path>, system_folders: Vec<PathBuf>) -> Result<Self, PrintError> {
        let fonts: Vec<Font> = own_files(dir)?.into_iter().flat_map(Font::iter).collect();
        let book = LazyHash::new(FontBook::from_fonts(&fonts));
        let own = Fonts { book, fonts: fonts.into_iter().map(StoredFont::Loaded).collect() };
        Ok(Self { own, all: OnceLock::new(), system_folders })
    }

    /// Returns the fonts for a text: with those of the system if the others lack one of its characters.
    pub(crate) fn for_text(&self, text: &str) -> &Fonts {
        if missing(text, |c| self.own.covers(c)).next().is_none() {
            return &self.own;
        }
        self.all.get_or_init(|| self.own.with_system_fonts(&self.system_folders))
    }
}

impl Fonts {
    /// Returns the font at an index of the book.
    pub(crate) fn font(&self, index: usize) -> Option<Font> {
        match self.fonts.get(index)? {
            StoredFont::Loaded(font) => Some(font.clone()),
            StoredFont::File { path, index, font } => {
                font.get_or_init(|| std::fs::read(path).ok().and_then(|bytes| Font::new(Bytes::new(bytes), *index))).clone()
            }
        }
    }

    /// Returns the heaviest font that has all characters of a word.
    pub(crate) fn heaviest_for(&self, word: &str) -> Option<Font> {
        let has_word = |index: &usize| {
            let info = self.book.info(*index);
            info.is_some_and(|info| word.chars().all(|c| info.coverage.contains(u32::from(c))))
        };
        let weight = |index: &usize| self.book.info(*index).map(|info| info.variant.weight);
        let found = (0..self.fonts.len()).filter(has_word).max_by_key(weight)?;
        self.font(found)
    }

    /// Returns the characters of a text that no font has, each once.
    pub(crate) fn missing(&self, text: &str) -> impl Iterator<Item = char> {
        missing(text, |c| self.covers(c))
    }

    fn covers(&self, c: char) -> bool {
        (0..self.fonts.len()).any(|index| self.book.info(index).is_some_and(|info| info.coverage.contains(u32::from(c))))
    }

    /// Adds the Noto fonts below folders.
    fn with_system_fonts(&self, folders: &[PathBuf]) -> Self {
        let mut infos: Vec<FontInfo> = (0..self.fonts.len()).filter_map(|index| self.book.info(index).cloned()).collect();
        let mut fonts: Vec<StoredFont> = self.fonts.iter().map(StoredFont::again).collect();
        // Only the metadata of a font is kept, because a document uses few of many large files.
        for (path, index, info) in system_fonts(folders) {
            infos.push(info);
            fonts.push(StoredFont::File { path, index, font: OnceLock::new() });
        }
        Self { book: LazyHash::new(FontBook::from_infos(infos)), fonts }
    }
}

impl StoredFont {
    /// Returns a handle of the same font.
    fn again(&self) -> Self {
        match self {
            Self::Loaded(font) => Self::Loaded(font.clone()),
            Self::File { path, index, font } => Self::File { path: path.clone(), index: *index, font: font.clone() },
        }
    }
}

/// Which characters the fonts have, without the fonts: the server tells what is missing, and other processes print.
#[derive(Debug)]
pub(crate) struct GlyphCoverage {
    own: Vec<Coverage>,
    /// The fonts of the system, once a text has a character that the others lack.
    system: OnceLock<Vec<Coverage>>,
    system_folders: Vec<PathBuf>,
}

impl GlyphCoverage {
    /// Reads which characters the fonts have that [`FontCollection::load`] loads.
    ///
    /// # Errors
    /// Returns [`PrintError::Failed`] if a file or folder of the operator cannot be read.
    pub(crate) fn load(dir: Option<&Path>, system_folders: Vec<PathBuf>) -> Result<Self, PrintError> {
        let own = own_files(dir)?.iter().flat_map(|file| FontInfo::iter(file)).map(|info| info.coverage).collect();
        Ok(Self { own, system: OnceLock::new(), system_folders })
    }

    /// Returns the characters of a text that no font has, each once.
    pub(crate) fn missing(&self, text: &str) -> impl Iterator<Item = char> {
        let has = |fonts: &[Coverage], c: char| fonts.iter().any(|font| font.contains(u32::from(c)));
        let of_system = || system_fonts(&self.system_folders).into_iter().map(|(.., info)| info.coverage).collect();
        missing(text, move |c| has(&self.own, c) || has(self.system.get_or_init(of_system), c))
    }
}

/// Returns the characters of a text that need a glyph and have none, each once. A font is asked once for each character, because
/// its answer takes long, and a text may have as many different characters as its author wants.
fn missing(text: &str, covers: impl Fn(char) -> bool) -> impl Iterator<Item = char> {
    let mut seen = HashSet::new();
    text.chars().filter(move |c| !c.is_ascii() && needs_glyph(*c) && seen.insert(*c) && !covers(*c))
}

/// Returns the first of the missing characters as a text.
pub(crate) fn named(missing: impl Iterator<Item = char>) -> String {
    missing.take(MAX_NAMED).collect()
}

/// Returns whether a character must have a glyph to be seen.
pub(crate) fn needs_glyph(c: char) -> bool {
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

/// Reads the built-in fonts and those of the operator's folder.
fn own_files(dir: Option<&Path>) -> Result<Vec<Bytes>, PrintError> {
    let mut files = BUILT_IN.map(Bytes::new).to_vec();
    let mut paths = Vec::new();
    if let Some(dir) = dir {
        files_below(dir, &mut paths)?;
    }
    for path in paths {
        files.push(Bytes::new(std::fs::read(&path).map_err(|error| unreadable(&path, &error))?));
    }
    Ok(files)
}

/// Returns the Noto fonts below folders, each with its index in its file. Folders and files that can't be read have no fonts: they
/// belong to the system.
fn system_fonts(folders: &[PathBuf]) -> Vec<(PathBuf, u32, FontInfo)> {
    let mut fonts = Vec::new();
    for folder in folders {
        let mut paths = Vec::new();
        if files_below(folder, &mut paths).is_err() {
            continue;
        }
        for path in paths.into_iter().filter(|path| is_noto_sans(path)) {
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let infos = (0..).map_while(|index| Some((index, FontInfo::new(&bytes, index)?)));
            fonts
                .extend(infos.filter(|(_, info)| !info.family.contains("Mono")).map(|(index, info)| (path.clone(), index, info)));
        }
    }
    fonts
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
    fn the_systems_fonts_are_read_only_for_characters_that_the_others_lack() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/printing/fonts");
        let collection = FontCollection::load(None, vec![folder, PathBuf::from("/nonexistent")]).expect("fonts");
        assert!(std::ptr::eq(collection.for_text("Acme Łódź Ελλάδα\u{200b}"), &collection.own));
        assert!(collection.all.get().is_none(), "nothing was read");
        let all = collection.for_text("שלום");
        assert!(!std::ptr::eq(all, &collection.own));
        assert_eq!((all.fonts.len(), collection.own.fonts.len()), (2, 2), "a font with another name is not used");
    }

    #[test]
    fn the_heaviest_font_with_all_letters_is_found() {
        let collection = FontCollection::load(None, Vec::new()).expect("fonts");
        let found = collection.for_text("ENTWURF").heaviest_for("ENTWURF").expect("a font");
        assert_eq!(found.info().variant.weight.to_number(), 600);
        assert!(collection.own.heaviest_for("下書き").is_none());
    }
}
