//! Edits of a body at positions that a side parse found. All other bytes stay unchanged.

use std::ops::Range;

use bytes::Bytes;

use crate::json;

/// One edit: other text in the place of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that are replaced, as offsets into the body.
    pub span: Range<usize>,
    /// The replacement.
    pub text: String,
}

/// Applies these edits to a body, which is copied once. Their order does not matter.
///
/// Spans outside the body, or overlapping ones, leave the body unchanged.
pub fn splice(body: &Bytes, mut edits: Vec<Edit>) -> Bytes {
    edits.sort_by_key(|edit| edit.span.start);
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut out = Vec::with_capacity(body.len() + added);
    let mut at = 0;
    for Edit { span, text } in &edits {
        let Some(kept) = body.get(at..span.start) else { return body.clone() };
        out.extend_from_slice(kept);
        out.extend_from_slice(text.as_bytes());
        at = span.end.max(span.start);
    }
    let Some(rest) = body.get(at..) else { return body.clone() };
    out.extend_from_slice(rest);
    out.into()
}

/// The edit that names another model in the place where [`peek`](super::peek) found one.
pub fn model_edit(span: Range<usize>, new: &str) -> Edit {
    let mut text = String::with_capacity(new.len() + 2);
    text.push('"');
    json::push_escaped(&mut text, new);
    text.push('"');
    Edit { span, text }
}

/// The body with another model at the position that [`peek`](super::peek) found; nothing else
/// changes. A span outside the body leaves the body unchanged.
pub fn replace_model(body: &Bytes, span: Range<usize>, new: &str) -> Bytes {
    splice(body, vec![model_edit(span, new)])
}

/// Where members can be added to a body that is an object with at least one: before its last brace.
pub fn object_end(body: &[u8]) -> Option<usize> {
    let end = body.trim_ascii_end().len().checked_sub(1)?;
    (body[end] == b'}').then_some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::openai::peek;

    fn edit(span: Range<usize>, text: &str) -> Edit {
        Edit { span, text: text.to_owned() }
    }

    #[test]
    fn only_the_name_changes() {
        let body = Bytes::from_static(br#"{"a":1.50, "model" : "x\u0041", "model_x":"x"}"#);
        let span = peek(&body).unwrap().model_span;
        let new = replace_model(&body, span, "y\"\\é");
        assert_eq!(new, r#"{"a":1.50, "model" : "y\"\\é", "model_x":"x"}"#.as_bytes());
        assert_eq!(replace_model(&body, 5..999, "y"), body);
    }

    #[test]
    fn edits_are_made_in_any_order_or_not_at_all() {
        let body = Bytes::from_static(b"0123456789");
        assert_eq!(
            splice(&body, vec![edit(7..8, "b"), edit(1..3, "aaa"), edit(10..10, "c")]),
            "0aaa3456b89c"
        );
        for bad in
            [vec![edit(1..5, ""), edit(4..6, "")], vec![edit(11..11, "")], vec![edit(9..11, "")]]
        {
            assert_eq!(splice(&body, bad), body);
        }
    }

    #[test]
    fn the_end_of_an_object_is_its_last_brace() {
        assert_eq!(object_end(b"{\"a\":{}} \r\n"), Some(7));
        assert_eq!(object_end(b"[]"), None);
        assert_eq!(object_end(b" "), None);
    }

    proptest! {
        #[test]
        fn any_name_is_found_and_replaced(name in "\\PC{1,40}", new in "\\PC{1,40}", stream: bool) {
            prop_assume!(!name.trim().is_empty() && !new.trim().is_empty());
            let quoted = serde_json::to_string(&name).unwrap();
            let body = format!(r#"{{"stream":{stream},"model":{quoted},"prompt":"p"}}"#);
            let body = Bytes::from(body);
            let found = peek(&body).unwrap();
            prop_assert_eq!((&found.model, found.stream), (&name, stream));
            let again = peek(&replace_model(&body, found.model_span, &new));
            prop_assert_eq!(again.map(|found| found.model), Ok(new));
        }
    }
}
