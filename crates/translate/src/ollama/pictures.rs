//! Pictures in bare base64.

use protocol::json::{BadRequest, fields};
use serde_json::value::RawValue;

use crate::{
    chat_request::{Content, ImageUrl, Part},
    media,
};

/// The content of a message with this text and these pictures.
///
/// # Errors
/// [`BadRequest`] for a picture that is not base64.
pub(crate) fn content<'a>(
    text: std::borrow::Cow<'a, str>,
    pictures: &[&'a RawValue],
    path: &str,
) -> Result<Content<'a>, BadRequest> {
    if pictures.is_empty() {
        return Ok(Content::Text(text));
    }
    let pictures = pictures.iter().enumerate();
    let pictures = pictures.map(|(at, raw)| picture(raw, &format!("{path}[{at}]")));
    let text = Some(text).filter(|text| !text.is_empty()).map(|text| Ok(Part::Text { text }));
    text.into_iter().chain(pictures).collect::<Result<_, _>>().map(Content::Parts)
}

fn picture<'a>(raw: &'a RawValue, path: &str) -> Result<Part<'a>, BadRequest> {
    let data = fields::text(Some(raw), path)?;
    if !is_base64(data.as_bytes()) {
        let words =
            format!("`{path}` is no base64: send a picture's bytes in base64, without `data:`");
        return Err(BadRequest::new(path, words));
    }
    let kind = media::of_picture("image/png", &data);
    let url = format!("data:{kind};base64,{data}");
    Ok(Part::ImageUrl { image_url: ImageUrl { url: url.into(), detail: None } })
}

/// Whether the data is padded base64 in the standard alphabet.
fn is_base64(data: &[u8]) -> bool {
    let digits = data.strip_suffix(b"==").or(data.strip_suffix(b"=")).unwrap_or(data);
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !data.is_empty() && data.len().is_multiple_of(4) && digits.iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_base64_is_told_from_other_text() {
        for (data, good) in [
            ("aGk=", true),
            ("aGkh", true),
            ("YQ==", true),
            ("", false),
            ("aGk", false),
            ("aG=k", false),
            ("data:image/png;base64,aGk=", false),
            ("/9j/-_==", false),
            ("a b=", false),
        ] {
            assert_eq!(is_base64(data.as_bytes()), good, "{data}");
        }
    }
}
