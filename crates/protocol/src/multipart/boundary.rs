//! The boundary between the fields of a form.

use super::{BadForm, MAX_BOUNDARY, parameters::Parameters};

/// The boundary between the fields of a form, without the dashes in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary(Box<[u8]>);

/// Whether a content type is that of a form.
pub fn is_form(content_type: &[u8]) -> bool {
    essence(content_type).eq_ignore_ascii_case(b"multipart/form-data")
}

impl Boundary {
    /// The boundary that the content type of a form names.
    ///
    /// # Errors
    /// [`BadForm`] when there is none, or it is empty or too long.
    pub fn of(content_type: &[u8]) -> Result<Self, BadForm> {
        let mut found = None;
        for parameter in Parameters::after(&content_type[essence_end(content_type)..]) {
            let (name, value) = parameter.ok_or(BadForm::NoBoundary)?;
            if name.eq_ignore_ascii_case(b"boundary") && found.replace(value).is_some() {
                return Err(BadForm::NoBoundary);
            }
        }
        let boundary = found.filter(|value| !value.is_empty()).ok_or(BadForm::NoBoundary)?;
        if boundary.len() > MAX_BOUNDARY {
            return Err(BadForm::BoundaryTooLong);
        }
        // A line end in the boundary could begin another boundary within it.
        if boundary.iter().any(u8::is_ascii_control) {
            return Err(BadForm::NoBoundary);
        }
        Ok(Self(boundary.into()))
    }

    /// The bytes before each field, from the line end on, without the carriage return.
    pub(super) fn delimiter(&self) -> Vec<u8> {
        [b"\n--", &*self.0].concat()
    }
}

fn essence(content_type: &[u8]) -> &[u8] {
    content_type[..essence_end(content_type)].trim_ascii()
}

fn essence_end(content_type: &[u8]) -> usize {
    memchr::memchr(b';', content_type).unwrap_or(content_type.len())
}
