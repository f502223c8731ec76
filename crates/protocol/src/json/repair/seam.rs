//! Characters that begin in one text and end in the next, because a backend cut them between two
//! chunks.

use super::{Place, Repair, text::Text};

/// How many unfinished characters are kept at most.
pub const MAX_SEAMS: usize = 8;

/// The beginning of a character at the end of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seam {
    /// The names of the fields around the string.
    path: Vec<u8>,
    half: Half,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Half {
    /// The first of two surrogates.
    Surrogate(u16),
    /// The first bytes of a character in UTF-8.
    Bytes(Vec<u8>),
}

impl Repair {
    /// Begins a string with the character that the text before began in this field.
    pub(super) fn join(&mut self, text: &mut Text) {
        if self.seams.is_none() || self.place != Place::Value {
            return;
        }
        let path = self.path();
        let Some((before, _)) = &mut self.seams else { return };
        let Some(at) = before.iter().position(|seam| seam.path == path) else { return };
        match before.remove(at).half {
            Half::Surrogate(first) => text.begin_pair(first),
            Half::Bytes(bytes) => self.out.extend(bytes),
        }
    }

    /// Keeps a character that the end of a string cuts, for the next text.
    pub(super) fn part(&mut self, text: &mut Text) {
        if self.seams.is_none() {
            return;
        }
        let half = match text.begun_pair() {
            Some(first) => Some(Half::Surrogate(first)),
            None => self.begun_bytes().map(Half::Bytes),
        };
        let path = self.path();
        if let (Some(half), Some((_, next))) = (half, &mut self.seams)
            && next.len() < MAX_SEAMS
        {
            next.push(Seam { path, half });
        }
    }

    /// Takes the first bytes of a character from the end of the string.
    fn begun_bytes(&mut self) -> Option<Vec<u8>> {
        let text = &self.out[self.text_start..];
        let first = text.iter().rposition(|byte| !matches!(byte, 0x80..0xc0))?;
        let is_begun = |error: std::str::Utf8Error| error.error_len().is_none();
        let begun = str::from_utf8(&text[first..]).is_err_and(is_begun);
        begun.then(|| self.out.split_off(self.text_start + first))
    }

    fn path(&self) -> Vec<u8> {
        let keys = self.frames.iter().map(|frame| &self.out[frame.key.clone()]);
        keys.collect::<Vec<_>>().join(&b'"')
    }
}
