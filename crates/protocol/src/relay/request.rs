//! A request for a stock worker: one JSON text around a body that may be large, written once into
//! a buffer of exactly its size.

use super::heads::Headers;
use crate::json::{escaped_len, push_escaped};

/// The text of a `request` message (walkthroughs 2 and 3).
pub fn encode_request(
    request_id: &str,
    model: &str,
    path: &str,
    streaming: bool,
    body: &str,
    headers: &Headers,
) -> String {
    let length = encoded_request_len(request_id, model, path, streaming, body, headers);
    let mut out = String::with_capacity(length);
    write(&mut out, request_id, model, path, streaming, body, headers);
    out
}

/// The length in bytes of what [`encode_request`] would return.
pub fn encoded_request_len(
    request_id: &str,
    model: &str,
    path: &str,
    streaming: bool,
    body: &str,
    headers: &Headers,
) -> usize {
    let mut length = Length(0);
    write(&mut length, request_id, model, path, streaming, body, headers);
    length.0
}

trait Sink {
    fn plain(&mut self, text: &str);
    fn escaped(&mut self, text: &str);
}

impl Sink for String {
    fn plain(&mut self, text: &str) {
        self.push_str(text);
    }

    fn escaped(&mut self, text: &str) {
        push_escaped(self, text);
    }
}

struct Length(usize);

impl Sink for Length {
    fn plain(&mut self, text: &str) {
        self.0 += text.len();
    }

    fn escaped(&mut self, text: &str) {
        self.0 += escaped_len(text);
    }
}

fn write(
    out: &mut impl Sink,
    request_id: &str,
    model: &str,
    path: &str,
    streaming: bool,
    body: &str,
    headers: &Headers,
) {
    field(out, "{\"type\":\"request\",\"request_id\":\"", request_id);
    field(out, "\",\"model\":\"", model);
    field(out, "\",\"endpoint_path\":\"", path);
    out.plain(if streaming { "\",\"is_streaming\":true" } else { "\",\"is_streaming\":false" });
    field(out, ",\"body\":\"", body);
    out.plain("\"");
    write_headers(out, headers);
    out.plain("}");
}

fn write_headers(out: &mut impl Sink, headers: &Headers) {
    let mut opening = ",\"headers\":{\"";
    for (name, value) in headers {
        field(out, opening, name);
        field(out, "\":\"", value);
        opening = "\",\"";
    }
    if !headers.is_empty() {
        out.plain("\"}");
    }
}

fn field(out: &mut impl Sink, opening: &str, value: &str) {
    out.plain(opening);
    out.escaped(value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::relay::{Request, ServerMessage};

    proptest! {
        #[test]
        fn the_text_is_exactly_as_long_as_foretold_and_reads_back(
            request_id: String, model: String, path: String, streaming: bool, body: String,
            headers in proptest::collection::btree_map(any::<String>(), any::<String>(), 0..4),
        ) {
            let text = encode_request(&request_id, &model, &path, streaming, &body, &headers);
            prop_assert_eq!(text.len(), text.capacity());
            let request = Request {
                request_id, model, endpoint_path: path, is_streaming: streaming, body, headers,
            };
            let serde = serde_json::to_string(&request).unwrap();
            prop_assert_eq!(&text, &serde.replacen('{', "{\"type\":\"request\",", 1));
            prop_assert_eq!(ServerMessage::decode(&text), Ok(ServerMessage::Request(request)));
        }
    }
}
