//! The style sheet and the script of the console.

use billing_api::console::SentAsset;

/// A file that pages load. Its address contains a fingerprint of the content, so that browsers can store it without asking again.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Path.
    pub path: &'static str,
    /// Media type.
    pub media_type: &'static str,
    /// Content.
    pub content: &'static str,
    fingerprint: u64,
}

/// The style sheet.
pub const STYLE: Asset = Asset::new("/console/style.css", "text/css; charset=utf-8", include_str!("style.css"));

/// The script. Pages work without it.
pub const SCRIPT: Asset = Asset::new("/console/console.js", "text/javascript; charset=utf-8", include_str!("console.js"));

impl Asset {
    /// Returns the file at a path.
    pub const fn new(path: &'static str, media_type: &'static str, content: &'static str) -> Self {
        Self { path, media_type, content, fingerprint: fingerprint(content.as_bytes()) }
    }

    /// Returns the file for a request with this query.
    pub(crate) fn sent(&self, query: &str) -> SentAsset {
        SentAsset { media_type: self.media_type, content: self.content, is_of_content: query == self.query() }
    }

    /// Returns the query of the address of this content.
    pub fn query(&self) -> String {
        format!("v={:016x}", self.fingerprint)
    }

    /// Returns the address with the fingerprint.
    pub fn address(&self) -> String {
        format!("{}?{}", self.path, self.query())
    }
}

/// Returns the FNV-1a hash of a content.
const fn fingerprint(content: &[u8]) -> u64 {
    let (mut hash, mut place) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while place < content.len() {
        hash = (hash ^ content[place] as u64).wrapping_mul(0x0100_0000_01b3);
        place += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_content_has_another_address() {
        // A published test value of the hash.
        assert_eq!(fingerprint(b"foobar"), 0x8594_4171_f739_67e8);
        assert_ne!(fingerprint(STYLE.content.as_bytes()), fingerprint(SCRIPT.content.as_bytes()));
        assert!(SCRIPT.address().starts_with("/console/console.js?v="), "{}", SCRIPT.address());
    }

    #[test]
    fn the_script_is_small_and_loads_nothing_from_elsewhere() {
        assert!(SCRIPT.content.len() <= 10 * 1024, "{}", SCRIPT.content.len());
        for foreign in ["http:", "https:", "import ", "eval(", "innerHTML", "localStorage", "document.cookie"] {
            assert!(!SCRIPT.content.contains(foreign), "{foreign}");
        }
    }
}
