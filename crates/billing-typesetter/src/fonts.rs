//! The fonts of the files that typst typesets.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use billing_domain::ports::PrintError;
use billing_pdf::fonts::{is_of_documents, missing, own_files, system_files};
use typst::foundations::Bytes;
use typst::text::{Font, FontBook, FontInfo};
use typst::utils::LazyHash;

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
        let fonts: Vec<Font> = own_files(dir)?.into_iter().map(Bytes::new).flat_map(Font::iter).collect();
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

/// Returns the Noto fonts below folders, each with its index in its file.
fn system_fonts(folders: &[PathBuf]) -> Vec<(PathBuf, u32, FontInfo)> {
    let of_file = |(path, file): (PathBuf, Vec<u8>)| {
        let infos = (0..).map_while(|index| Some((path.clone(), index, FontInfo::new(&file, index)?)));
        infos.filter(|(.., info)| is_of_documents(&info.family)).collect::<Vec<_>>()
    };
    system_files(folders).flat_map(of_file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
