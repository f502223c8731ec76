//! The headers of one field of a form.

use super::{BadForm, parameters::Parameters};

/// A field, as far as routing looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Model,
    Stream,
    Other,
}

impl Part {
    /// The field with these headers, which end with an empty line.
    ///
    /// # Errors
    /// [`BadForm`] when they do not name one field, or one that routing needs is a file or encoded.
    pub(super) fn of(headers: &[u8]) -> Result<Self, BadForm> {
        if has_bare_end(headers) {
            return Err(BadForm::Ambiguous("the headers of a field have a line end of one byte"));
        }
        let (mut disposition, mut is_encoded) = (None, false);
        for line in lines(headers) {
            if line[0].is_ascii_whitespace() {
                return Err(BadForm::Ambiguous("a field has a header of several lines"));
            }
            let colon = memchr::memchr(b':', line).ok_or(BadForm::NoName)?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            // Some readers accept a header whose name has a space, and others ignore it.
            if name.iter().any(u8::is_ascii_whitespace) {
                return Err(BadForm::Ambiguous("the name of a header has a space in it"));
            }
            if name.eq_ignore_ascii_case(b"content-disposition") {
                if disposition.replace(value).is_some() {
                    return Err(BadForm::NoName);
                }
            } else if name.eq_ignore_ascii_case(b"content-transfer-encoding") {
                is_encoded |= !is_plain(value);
            }
        }
        let Disposition { part, is_file } = Disposition::read(disposition.ok_or(BadForm::NoName)?)?;
        match part.name() {
            Some(name) if is_file || is_encoded => Err(BadForm::NotPlain(name)),
            _ => Ok(part),
        }
    }

    /// Its name, if routing needs it.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Model => Some("model"),
            Self::Stream => Some("stream"),
            Self::Other => None,
        }
    }
}

struct Disposition {
    part: Part,
    is_file: bool,
}

impl Disposition {
    fn read(value: &[u8]) -> Result<Self, BadForm> {
        let end = memchr::memchr(b';', value).unwrap_or(value.len());
        if !value[..end].trim_ascii().eq_ignore_ascii_case(b"form-data") {
            return Err(BadForm::NoName);
        }
        let (mut name, mut is_file) = (None, false);
        for parameter in Parameters::after(&value[end..]) {
            let (key, value) = parameter.ok_or(BadForm::NoName)?;
            let key = key.to_ascii_lowercase();
            is_file |= key.starts_with(b"filename");
            // Some readers decode `name*`, and others do not know it (RFC 7578 section 4.2 excludes
            // it).
            if key.starts_with(b"name*") || (key == b"name" && name.replace(value).is_some()) {
                return Err(BadForm::Ambiguous("a field has two names"));
            }
        }
        let part = match &*name.ok_or(BadForm::NoName)? {
            b"model" => Part::Model,
            b"stream" => Part::Stream,
            _ => Part::Other,
        };
        Ok(Self { part, is_file })
    }
}

/// Whether a carriage return or a line feed stands alone.
fn has_bare_end(headers: &[u8]) -> bool {
    let is_bare = |(at, byte): (usize, &u8)| match byte {
        b'\n' => at == 0 || headers[at - 1] != b'\r',
        b'\r' => headers.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    headers.iter().enumerate().any(is_bare)
}

fn lines(headers: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = headers.split(|&byte| byte == b'\n');
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).filter(|line| !line.is_empty())
}

fn is_plain(encoding: &[u8]) -> bool {
    [&b"7bit"[..], b"8bit", b"binary"].iter().any(|plain| encoding.eq_ignore_ascii_case(plain))
}
