//! The media type of a picture.

use std::borrow::Cow;

/// The beginnings of pictures in base64, and their types.
const BEGINNINGS: [(&str, &str); 4] = [
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
];

/// The media type of a picture in base64. Providers check the type against the content, and know
/// only one name for each type, but clients guess it by a file's name. Parameters of the type are
/// dropped.
pub(crate) fn of_picture<'a>(given: &'a str, data: &str) -> Cow<'a, str> {
    if let Some((_, kind)) = BEGINNINGS.iter().find(|(start, _)| data.starts_with(start)) {
        return Cow::Borrowed(kind);
    }
    let given = given.split(';').next().unwrap_or_default().trim();
    match given.to_ascii_lowercase().as_str() {
        "image/jpg" | "image/pjpeg" => Cow::Borrowed("image/jpeg"),
        "image/x-png" => Cow::Borrowed("image/png"),
        lower if lower == given => Cow::Borrowed(given),
        lower => Cow::Owned(lower.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_decides_and_else_the_usual_name() {
        for (given, data, kind) in [
            ("image/jpg", "AAAA", "image/jpeg"),
            ("Image/PNG;charset=x", "AAAA", "image/png"),
            ("image/png", "/9j/4AAQ", "image/jpeg"),
            ("", "iVBORw0KGgoAAAA", "image/png"),
            ("application/octet-stream", "R0lGODlh", "image/gif"),
            ("image/png", "UklGRhIAAABXRUJQ", "image/webp"),
            ("image/webp", "AAAA", "image/webp"),
        ] {
            assert_eq!(of_picture(given, data), kind, "{given} {data}");
        }
    }
}
