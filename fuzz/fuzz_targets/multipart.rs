//! Forms: a form that comes in pieces is read as the whole one, its span holds the model, and another model changes
//! nothing else.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::multipart::{Boundary, Form, FormReader, renamed};

/// The boundary of the seeds.
const KIND: &[u8] = b"multipart/form-data; boundary=b";

fuzz_target!(|data: &[u8]| {
    // As a content type it is read without a panic.
    let _ = Boundary::of(data);
    let boundary = Boundary::of(KIND).unwrap();
    let Some((cut, body)) = data.split_first() else { return };
    let body = Bytes::copy_from_slice(body);
    let whole = Form::read(&boundary, &body);
    let size = usize::from(*cut).max(1);
    let mut reader = FormReader::new(&boundary);
    let fed = body.chunks(size).try_for_each(|piece| reader.feed(piece));
    assert_eq!(fed.and_then(|()| reader.end()), whole);
    let Ok(form) = whole else { return };
    assert_eq!(&body[form.model_span.clone()], form.model.as_bytes());
    let at = body.len().min(size);
    let pieces = [body.slice(..at), body.slice(at..)];
    let other = Bytes::from(renamed(&pieces, &boundary, "other").unwrap().concat());
    let again = Form::read(&boundary, &other).unwrap();
    assert_eq!((again.model.as_str(), again.stream), ("other", form.stream));
    assert_eq!(other[..again.model_span.start], body[..form.model_span.start]);
    assert_eq!(other[again.model_span.end..], body[form.model_span.end..]);
});
