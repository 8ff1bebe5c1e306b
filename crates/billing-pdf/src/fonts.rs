//! The fonts of documents.

use std::path::{Path, PathBuf};

use billing_domain::ports::PrintError;
use typst::foundations::Bytes;
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;

/// Noto Sans, under the SIL Open Font License: `fonts/OFL.txt`.
const BUILT_IN: [&[u8]; 2] = [include_bytes!("../fonts/NotoSans-Regular.ttf"), include_bytes!("../fonts/NotoSans-SemiBold.ttf")];

/// The fonts and their metadata.
#[derive(Debug)]
pub(crate) struct Fonts {
    pub(crate) book: LazyHash<FontBook>,
    pub(crate) fonts: Vec<Font>,
}

impl Fonts {
    /// Loads the built-in fonts and then those of a folder, in the order of their paths. The order decides between
    /// several fonts with a character.
    ///
    /// # Errors
    /// Returns [`PrintError::Failed`] if a file or folder cannot be read.
    pub(crate) fn load(dir: Option<&Path>) -> Result<Self, PrintError> {
        let mut fonts: Vec<Font> = BUILT_IN.iter().flat_map(|font| Font::iter(Bytes::new(*font))).collect();
        let mut paths = Vec::new();
        if let Some(dir) = dir {
            files_below(dir, &mut paths)?;
        }
        for path in paths {
            let bytes = std::fs::read(&path).map_err(|error| unreadable(&path, &error))?;
            fonts.extend(Font::iter(Bytes::new(bytes)));
        }
        Ok(Self { book: LazyHash::new(FontBook::from_fonts(&fonts)), fonts })
    }
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
