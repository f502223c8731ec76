//! What changed in one file.

/// A patch as text. Bytes of another encoding are replaced: it is for people to read.
pub(super) fn text(patch: Vec<u8>) -> String {
    String::from_utf8(patch).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
