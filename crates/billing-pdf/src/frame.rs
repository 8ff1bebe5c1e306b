//! Frames in a pipe: a length in four bytes, little-endian, and as many bytes.

use std::io::{self, Read, Write};

/// Writes a frame.
pub(crate) fn write_frame(pipe: &mut impl Write, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).map_err(io::Error::other)?;
    pipe.write_all(&length.to_le_bytes())?;
    pipe.write_all(content)
}

/// Reads a frame. Memory is allocated as the content arrives, not as its length is announced.
///
/// # Errors
/// Returns an error if the pipe ends before the frame, or if the frame is longer than `most`.
pub(crate) fn read_frame(pipe: &mut impl Read, most: u32) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    pipe.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > most {
        return Err(io::Error::other(format!("a frame of {length} bytes, more than {most}")));
    }
    let mut content = Vec::new();
    pipe.take(u64::from(length)).read_to_end(&mut content)?;
    if content.len() as u64 != u64::from(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(content)
}
