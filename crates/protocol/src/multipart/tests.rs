//! Forms that are read, and forms that are refused.

use proptest::{collection::vec, prelude::*};

use super::*;

const BOUNDARY: &str = "x-42";

fn boundary() -> Boundary {
    Boundary::of(b"multipart/form-data; boundary=x-42").unwrap()
}

fn field(name: &str, value: &str) -> String {
    format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

fn form(parts: &[String]) -> String {
    format!("{}--{BOUNDARY}--\r\n", parts.concat())
}

fn read(body: &str) -> Result<Form, BadForm> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let whole = Form::read(&boundary(), &body);
    let mut bytewise = FormReader::new(&boundary());
    let fed = body.iter().try_for_each(|byte| bytewise.feed(&[*byte]));
    assert_eq!(fed.and_then(|()| bytewise.end()), whole, "{body:?}");
    whole
}

fn file(name: &str, bytes: &str) -> String {
    let head = format!(
        "content-disposition: form-data; filename=\"a;b.wav\"; name={name}\r\nContent-Type: audio/wav"
    );
    format!("--{BOUNDARY}\r\n{head}\r\n\r\n{bytes}\r\n")
}

#[test]
fn the_model_is_found_wherever_it_stands() {
    let sound = file("file", "RIFF\r\n--x-4\r\n--\n-- x-42--\r\r\n");
    for parts in [
        [sound.clone(), field("model", "whisper-1"), field("stream", "True")],
        [field("model", "whisper-1"), field("stream", "true"), sound.clone()],
        [field("stream", "1"), sound, field("model", "whisper-1")],
    ] {
        let body = form(&parts);
        let found = read(&body).unwrap();
        assert_eq!((found.model.as_str(), found.stream), ("whisper-1", true));
        assert_eq!(&body[found.model_span], "whisper-1");
        // The last line end may be missing, and one more in front.
        assert!(read(body.trim_end()).is_ok() && read(&format!("\r\n{body}")).is_ok());
    }
    assert!(!read(&form(&[field("model", "m")])).unwrap().stream);
    assert!(!read(&form(&[field("model", "m"), field("stream", "")])).unwrap().stream);
}

#[test]
fn each_bad_form_gets_its_own_words() {
    let model = || field("model", "m");
    let with_head = |head: &str| format!("--x-42\r\n{head}\r\n\r\nm\r\n--x-42--");
    let named = |rest: &str| with_head(&format!("Content-Disposition: form-data{rest}"));
    let cases = [
        (String::new(), "has no end"),
        ("--x-42".to_owned(), "has no end"),
        (model(), "has no end"),
        (form(&[model()]).replace("42--", "42-"), "other bytes follow"),
        ("{\"model\":\"m\"}".to_owned(), "does not begin with"),
        (format!("preamble\r\n{}", form(&[model()])), "does not begin with"),
        (form(&[model()]) + "more", "bytes behind its last boundary"),
        (form(&[]), "has no `model`"),
        (form(&[field("prompt", "m")]), "has no `model`"),
        (form(&[model(), model()]), "`model` must not appear twice"),
        (form(&[model(), field("stream", "true"), field("stream", "true")]), "`stream` must not"),
        (form(&[model(), field("stream", "maybe")]), "`stream` must be true or false"),
        (form(&[field("model", " ")]), "`model` must not be empty"),
        (form(&[file("model", "m")]), "`model` must be a plain field"),
        (form(&[model()]).replace("\r\n\r\nm", "\r\n\r\nm\n--x-42"), "no line end of two bytes"),
        (form(&[model()]).replace("\r\n\r\nm", "\r\n\r\n--x-42"), "no line end of two bytes"),
        (form(&[model()]).replace("\r\n\r\nm\r\n", "\r\n\r\n\n"), "no line end of two bytes"),
        (form(&[model()]).replacen("42\r\n", "42 \r\n", 1), "other bytes follow"),
        (with_head("X: y"), "no usable Content-Disposition"),
        (with_head("no header"), "no usable Content-Disposition"),
        (with_head("Content-Disposition: file; name=model"), "no usable Content-Disposition"),
        (with_head("Content-Disposition : form-data; name=model"), "a space in it"),
        (named("; name=a\nX: y"), "line end of one byte"),
        (named("; name=a\rX: y"), "line end of one byte"),
        (named(""), "no usable Content-Disposition"),
        (named("; name=\"model"), "no usable Content-Disposition"),
        (named("; name=a\r\nContent-Disposition: form-data; name=model"), "no usable"),
        (named(";\r\n name=model"), "several lines"),
        (named("; name=a; name=model"), "two names"),
        (named("; name=a; name*=utf-8''model"), "two names"),
        (named("; name=model\r\nContent-Transfer-Encoding: base64"), "neither a file nor encoded"),
    ];
    for (body, words) in cases {
        let told = read(&body).unwrap_err().to_string();
        assert!(told.contains(words), "{body:?}: {told}");
    }
    let seven = named("; name=model\r\nContent-Transfer-Encoding: 7bit");
    assert_eq!(read(&seven).unwrap().model, "m");
    let bad = Bytes::from_static(
        b"--x-42\r\nContent-Disposition: form-data; name=model\r\n\r\n\xff\r\n--x-42--",
    );
    assert_eq!(Form::read(&boundary(), &bad), Err(BadForm::ModelNotUtf8));
    assert_eq!(read(&form(&[file("stream", "x")])).unwrap_err().param(), Some("stream"));
    assert_eq!(read("").unwrap_err().param(), None);
    assert_eq!(read(&form(&[])).unwrap_err().param(), Some("model"));
}

#[test]
fn every_bound_may_be_reached_and_not_passed() {
    let long = |length: usize| read(&form(&[field("model", &"m".repeat(length))]));
    assert_eq!(long(MAX_MODEL_NAME).unwrap().model.len(), MAX_MODEL_NAME);
    for over in [1, 2, 3, 70_000] {
        assert_eq!(long(MAX_MODEL_NAME + over), Err(BadBody::ModelTooLong.into()));
    }
    let many = |number: usize| {
        let fields = std::iter::repeat_n(field("a", "b"), number - 1);
        read(&form(&fields.chain([field("model", "m")]).collect::<Vec<_>>()))
    };
    assert!(many(MAX_PARTS).is_ok());
    assert_eq!(many(MAX_PARTS + 1), Err(BadForm::TooManyParts));
    let headed = |length: usize| {
        let head = "Content-Disposition: form-data; name=model\r\nX: ";
        let filled = "x".repeat(length - head.len() - 4);
        read(&format!("--x-42\r\n{head}{filled}\r\n\r\nm\r\n--x-42--"))
    };
    assert!(headed(MAX_HEADERS).is_ok());
    assert_eq!(headed(MAX_HEADERS + 1), Err(BadForm::HeadersTooLong));
    let of = |length: usize| {
        Boundary::of(format!("multipart/form-data; boundary=\"{}\"", "b".repeat(length)).as_bytes())
    };
    assert!(of(MAX_BOUNDARY).is_ok());
    assert_eq!(of(MAX_BOUNDARY + 1), Err(BadForm::BoundaryTooLong));
}

#[test]
fn of_a_long_file_nothing_is_kept() {
    let mut reader = FormReader::new(&boundary());
    reader.feed(file("file", "").trim_end().as_bytes()).unwrap();
    reader.feed(b"\r\n\r\n").unwrap();
    for _ in 0..1_000 {
        reader.feed(&[b'\n'; 1_000]).unwrap();
    }
    let shown = format!("{reader:?}");
    assert!(shown.len() < 4_000, "{} bytes", shown.len());
}

#[test]
fn a_content_type_names_one_boundary() {
    for good in [
        "multipart/form-data; boundary=x-42",
        "Multipart/Form-Data;charset=utf-8 ; Boundary=\"x-42\"",
        "multipart/form-data; boundary=\"x\\-42\";",
    ] {
        assert!(is_form(good.as_bytes()), "{good}");
        assert_eq!(Boundary::of(good.as_bytes()), Ok(boundary()), "{good}");
    }
    for bad in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=a; boundary=b",
        "multipart/form-data; boundary=\"a",
        "multipart/form-data; boundary=\"a\tb\"",
    ] {
        assert_eq!(Boundary::of(bad.as_bytes()), Err(BadForm::NoBoundary), "{bad}");
    }
    assert!(!is_form(b"multipart/mixed; boundary=a") && !is_form(b"application/json"));
}

/// A value, in which beginnings of the boundary are likely.
fn value() -> impl Strategy<Value = String> {
    let bit = prop_oneof!["\r", "\n", "-", "x-4", "\r\n--x-4", "--x-43", "[a-z]{1,3}"];
    vec(bit, 0..12).prop_map(|bits| bits.concat()).prop_filter("holds no boundary", |value| {
        let line = format!("\n{value}");
        !line.contains("\n--x-42") && !line.ends_with("\n--x-4")
    })
}

proptest! {
    #[test]
    fn any_form_reads_back_however_it_is_cut(
        before in vec(value(), 0..4), after in vec(value(), 0..4), model in "[a-z/:. ]{0,20}m",
        stream: Option<bool>, cuts in vec(0usize..400, 0..6),
    ) {
        let others = |values: Vec<String>| values.into_iter().map(|value| file("file", &value));
        let model_field = field("model", &model);
        let stream_field = stream.map(|wish| field("stream", &wish.to_string()));
        let parts: Vec<String> =
            others(before).chain([model_field]).chain(stream_field).chain(others(after)).collect();
        let body = Bytes::from(form(&parts));
        let found = Form::read(&boundary(), &body).unwrap();
        prop_assert_eq!(&found.model, &model);
        prop_assert_eq!(&body[found.model_span.clone()], model.as_bytes());
        prop_assert_eq!(found.stream, stream.unwrap_or(false));

        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces: Vec<Bytes> = cuts.windows(2).map(|cut| body.slice(cut[0]..cut[1])).collect();
        let mut reader = FormReader::new(&boundary());
        for piece in &pieces {
            reader.feed(piece).unwrap();
        }
        prop_assert_eq!(&reader.end().unwrap(), &found);

        let other = renamed(&pieces, &boundary(), "another").unwrap().concat();
        let span = found.model_span;
        let expected = [&body[..span.start], b"another", &body[span.end..]].concat();
        prop_assert_eq!(other, expected);
    }

    #[test]
    fn any_bytes_are_no_panic_and_are_read_alike_in_pieces(
        bits in vec(prop_oneof![
            Just(b"--x-42".to_vec()), Just(b"\r\n".to_vec()), Just(b"--".to_vec()),
            Just(b"Content-Disposition: form-data; name=model".to_vec()), vec(any::<u8>(), 0..6),
        ], 0..16),
    ) {
        let body = Bytes::from(bits.concat());
        let whole = Form::read(&boundary(), &body);
        let mut bytewise = FormReader::new(&boundary());
        let fed = body.iter().try_for_each(|byte| bytewise.feed(&[*byte]));
        prop_assert_eq!(fed.and_then(|()| bytewise.end()), whole);
    }
}
