//! JSON, read and written.
//!
//! - [`fields`]: the fields of a request, with the path of an invalid one
//! - [`lenient`]: texts, counts and lists, read leniently
//! - [`repair`]: JSON that is nearly right, or too long
//! - `ordered`: JSON whose members stay in their order
//! - `escape`: text as the content of a JSON string, without building values
//! - [`JsonReader`]: JSON from other servers, read as leniently as their own clients read it

mod escape;
pub mod fields;
pub mod lenient;
mod ordered;
mod reader;
pub mod repair;

use serde::Serialize;

pub use escape::{escaped_len, push_escaped};
pub use fields::BadRequest;
pub use reader::{JsonReader, MAX_MENDED, mended};

/// `text`, or its first `max` bytes at most. Errors repeat a stranger's input; this keeps them
/// short.
pub fn clip(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Appends a value of plain data to `out`, as JSON text.
#[expect(clippy::expect_used, reason = "strings, numbers and maps of strings always serialise")]
pub fn write_into(out: String, value: &impl Serialize) -> String {
    let mut out = out.into_bytes();
    serde_json::to_writer(&mut out, value).expect("plain data");
    String::from_utf8(out).expect("JSON is text")
}

/// A value of plain data as JSON text.
#[expect(clippy::expect_used, reason = "strings, numbers and maps of strings always serialise")]
pub fn write(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clip_never_cuts_a_character() {
        assert_eq!(clip("aé", 2), "a");
        assert_eq!(clip("aé", 3), "aé");
        assert_eq!(clip("aé", 99), "aé");
    }
}
