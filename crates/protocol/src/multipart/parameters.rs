//! The parameters of a header: `; name=value; name="value"`.

use std::borrow::Cow;

/// The parameters after a header's first word. A parameter that cannot be read gives `None`, and ends the
/// iteration.
pub(super) struct Parameters<'a>(&'a [u8]);

impl<'a> Parameters<'a> {
    /// The parameters in this rest of a header, which is empty or begins with a semicolon.
    pub(super) fn after(rest: &'a [u8]) -> Self {
        Self(rest)
    }
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Option<(&'a [u8], Cow<'a, [u8]>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.0.trim_ascii_start();
        // An empty parameter does not count: `a;; b` and `a;`.
        while let Some(after) = rest.strip_prefix(b";") {
            rest = after.trim_ascii_start();
            if !rest.starts_with(b";") && !rest.is_empty() {
                let read = parameter(rest);
                self.0 = read.as_ref().map_or(b"", |(_, rest)| rest);
                return Some(read.map(|(parameter, _)| parameter));
            }
        }
        self.0 = b"";
        (!rest.is_empty()).then_some(None)
    }
}

/// One parameter, and what follows it.
#[expect(clippy::type_complexity, reason = "a name, a value and the rest")]
fn parameter(text: &[u8]) -> Option<((&[u8], Cow<'_, [u8]>), &[u8])> {
    let equals = memchr::memchr(b'=', text)?;
    let (name, value) = (text[..equals].trim_ascii(), text[equals + 1..].trim_ascii_start());
    if name.is_empty() || name.iter().any(|byte| b";\" \t".contains(byte)) {
        return None;
    }
    let (value, rest) = match value.strip_prefix(b"\"") {
        Some(quoted) => unquoted(quoted)?,
        None => {
            let end = memchr::memchr(b';', value).unwrap_or(value.len());
            (value[..end].trim_ascii().into(), &value[end..])
        }
    };
    Some(((name, value), rest))
}

/// The text up to the closing quote, and what follows that.
fn unquoted(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let end = memchr::memchr2(b'"', b'\\', text)?;
    if text[end] == b'"' {
        return Some((text[..end].into(), &text[end + 1..]));
    }
    let (mut value, mut at) = (text[..end].to_vec(), end);
    loop {
        match *text.get(at)? {
            b'"' => return Some((value.into(), &text[at + 1..])),
            b'\\' => {
                value.push(*text.get(at + 1)?);
                at += 2;
            }
            byte => {
                value.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<(String, String)>> {
        let owned = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let each = |(name, value): (&[u8], Cow<'_, [u8]>)| (owned(name), owned(&value));
        Parameters::after(text.as_bytes()).map(|parameter| parameter.map(each)).collect()
    }

    #[test]
    fn values_are_read_with_quotes_and_without() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read(""), Some(vec![]));
        assert_eq!(read(" ; ;"), Some(vec![]));
        assert_eq!(read("; a=b"), Some(vec![pair("a", "b")]));
        let both = Some(vec![pair("name", "x;y"), pair("filename", "a\"b\\c")]);
        assert_eq!(read(r#"; name="x;y" ; filename="a\"b\\c""#), both);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        for bad in ["x", "; a", "; =b", "; a=\"b", "; a=\"b\\", "; a=\"b\" c", "; a b=c"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
