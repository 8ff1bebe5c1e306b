//! Logos in SVG whose permitted elements are expensive to draw, in base64 as in a request.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Returns a logo of masks, each of which draws the next one twice.
pub fn masks(count: u32) -> String {
    let mut parts = String::new();
    for number in 0..count {
        let square = format!(r#"<rect width="9" height="9" fill="white" mask="url(#m{})"/>"#, number + 1);
        let _ = write!(parts, r#"<mask id="m{number}">{square}{square}</mask>"#);
    }
    let last = format!(r#"<mask id="m{count}"><rect width="5" height="5" fill="white"/></mask>"#);
    encoded(&format!(r#"<defs>{parts}{last}</defs><rect width="10" height="10" mask="url(#m0)"/>"#))
}

/// Returns a logo of a path with arcs.
pub fn arcs(count: u32) -> String {
    let mut path = String::from("M0 0");
    for number in 0..count {
        let _ = write!(path, "A5 3 {} 1 0 {} {}", number % 90, number % 10, number % 7);
    }
    encoded(&format!(r#"<path stroke="black" d="{path}"/>"#))
}

fn encoded(content: &str) -> String {
    STANDARD.encode(format!(r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">{content}</svg>"#))
}
