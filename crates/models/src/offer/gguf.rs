//! How long a GGUF file must be, by its head.
//!
//! The form is described in `docs/gguf.md` of the project ggml: a head with values, the list of tensors, and
//! their data from the next multiple of an alignment on. Numbers are little-endian here; files of other
//! machines are not judged.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

/// Files of these versions are judged.
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=3;

/// The most strings and numbers of a head that are looked at. A longer head is not judged.
const MAX_STEPS: u32 = 8_000_000;

/// The alignment of the tensors' data, unless the head tells another.
const ALIGNMENT: u64 = 32;

/// The type of a value.
mod value {
    pub(super) const U32: u32 = 4;
    pub(super) const STRING: u32 = 8;
    pub(super) const ARRAY: u32 = 9;
}

/// Why a file is not judged, or what is wrong with it.
enum Stop {
    /// It ends within its head.
    Ended,
    /// It is none, or one that is not understood.
    Unknown,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Ended,
            _ => Self::Unknown,
        }
    }
}

/// How long a file must be, in bytes; `None` when it is no GGUF file, or one that is not understood. Of one
/// that ends within its head more than there is.
pub(super) fn least_length(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut head = Head { input: BufReader::new(file), length, at: 0, steps: 0 };
    match head.least_length() {
        Ok(least) => Some(least),
        Err(Stop::Ended) => Some(length + 1),
        Err(Stop::Unknown) => None,
    }
}

struct Head {
    input: BufReader<File>,
    /// Of the file.
    length: u64,
    at: u64,
    steps: u32,
}

impl Head {
    fn least_length(&mut self) -> Result<u64, Stop> {
        let mut magic = [0; 4];
        let is_one = self.input.read_exact(&mut magic).is_ok() && magic == *b"GGUF";
        self.at = 4;
        if !is_one || !VERSIONS.contains(&self.u32()?) {
            return Err(Stop::Unknown);
        }
        let (tensors, values) = (self.u64()?, self.u64()?);
        let mut alignment = ALIGNMENT;
        for _ in 0..values {
            let key = self.string()?;
            let kind = self.u32()?;
            match (key.as_slice(), kind) {
                (b"general.alignment", value::U32) => alignment = u64::from(self.u32()?),
                _ => self.skip_value(kind)?,
            }
        }
        let mut end = 0;
        for _ in 0..tensors {
            end = self.tensor_end()?.max(end);
        }
        let aligned = self.at.checked_next_multiple_of(alignment.max(1));
        aligned.and_then(|data| data.checked_add(end)).ok_or(Stop::Unknown)
    }

    /// Where a tensor ends, from the beginning of the data.
    fn tensor_end(&mut self) -> Result<u64, Stop> {
        let _name = self.string()?;
        let mut elements = 1u64;
        for _ in 0..self.u32()? {
            elements = elements.checked_mul(self.u64()?).ok_or(Stop::Unknown)?;
        }
        let (kind, offset) = (self.u32()?, self.u64()?);
        // Of a type that is not known, it is known at least where it begins.
        let size =
            block(kind).map_or(Some(0), |(many, bytes)| (elements / many).checked_mul(bytes));
        size.and_then(|size| offset.checked_add(size)).ok_or(Stop::Unknown)
    }

    fn skip_value(&mut self, kind: u32) -> Result<(), Stop> {
        match kind {
            value::STRING => self.string().map(drop),
            value::ARRAY => {
                let (kind, count) = (self.u32()?, self.u64()?);
                match size(kind) {
                    Some(size) => self.skip(size.checked_mul(count).ok_or(Stop::Unknown)?),
                    None if kind == value::STRING => {
                        (0..count).try_for_each(|_| self.string().map(drop))
                    }
                    None => Err(Stop::Unknown),
                }
            }
            _ => self.skip(size(kind).ok_or(Stop::Unknown)?),
        }
    }

    /// The first bytes of a string; the rest is passed over.
    fn string(&mut self) -> Result<Vec<u8>, Stop> {
        const SHOWN: u64 = 32;
        let length = self.u64()?;
        let mut shown = vec![0; length.min(SHOWN) as usize];
        self.read(&mut shown)?;
        self.skip(length - shown.len() as u64)?;
        Ok(shown)
    }

    fn u32(&mut self) -> Result<u32, Stop> {
        let mut bytes = [0; 4];
        self.read(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64, Stop> {
        let mut bytes = [0; 8];
        self.read(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(Stop::Unknown);
        }
        self.input.read_exact(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Stop> {
        let at = self.at.checked_add(bytes).ok_or(Stop::Unknown)?;
        if at > self.length {
            return Err(Stop::Ended);
        }
        // No file is longer.
        self.input.seek_relative(i64::try_from(bytes).map_err(|_| Stop::Unknown)?)?;
        self.at = at;
        Ok(())
    }
}

/// The bytes of a value of a type of one size.
fn size(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// How many elements of a tensor's type are stored together, and in how many bytes.
fn block(kind: u32) -> Option<(u64, u64)> {
    Some(match kind {
        0 | 26 => (1, 4),
        1 | 25 | 30 => (1, 2),
        24 => (1, 1),
        27 | 28 => (1, 8),
        2 | 20 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        9 => (32, 36),
        10 => (256, 84),
        11 | 21 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        15 => (256, 292),
        16 | 35 => (256, 66),
        17 => (256, 74),
        18 => (256, 98),
        19 => (256, 50),
        22 => (256, 82),
        23 => (256, 136),
        29 => (256, 56),
        34 => (256, 54),
        39 => (32, 17),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
    }

    /// A file with values of all sorts and two tensors: 64 elements of Q4_0, and 4 of F32 from 64 on.
    fn file(alignment: u32) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend(2u64.to_le_bytes());
        file.extend(4u64.to_le_bytes());
        let mut value = |key: &str, kind: u32, bytes: &[u8]| {
            file.extend(string(key));
            file.extend(kind.to_le_bytes());
            file.extend(bytes);
        };
        value(
            "general.name",
            value::STRING,
            &string("a name that is longer than 32 bytes is passed over"),
        );
        value("general.alignment", value::U32, &alignment.to_le_bytes());
        let tokens = [&8u32.to_le_bytes()[..], &2u64.to_le_bytes(), &string("a"), &string("b")];
        value("tokens", value::ARRAY, &tokens.concat());
        value(
            "scores",
            value::ARRAY,
            &[&6u32.to_le_bytes()[..], &2u64.to_le_bytes(), &[0; 8]].concat(),
        );
        for (name, elements, kind, offset) in [("q", 64u64, 2u32, 0u64), ("f", 4, 0, 64)] {
            file.extend(string(name));
            file.extend(1u32.to_le_bytes());
            file.extend(elements.to_le_bytes());
            file.extend(kind.to_le_bytes());
            file.extend(offset.to_le_bytes());
        }
        let data = file.len().next_multiple_of(alignment as usize);
        file.resize(data + 64 + 16, 0);
        file
    }

    fn least(bytes: &[u8]) -> Option<u64> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        least_length(file.path())
    }

    #[test]
    fn a_whole_file_is_as_long_as_its_head_says_and_one_that_broke_off_is_not() {
        for alignment in [1, 32, 4096] {
            let whole = file(alignment);
            assert_eq!(least(&whole), Some(whole.len() as u64), "{alignment}");
            let longer = [&whole[..], b"more"].concat();
            assert_eq!(least(&longer), Some(whole.len() as u64));
            for length in (8..whole.len()).step_by(3) {
                let least = least(&whole[..length]).unwrap();
                assert!(least > length as u64, "{length} of {}: {least}", whole.len());
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_not_judged() {
        let mut other = file(32);
        assert_eq!(least(b"something else"), None);
        assert_eq!(least(b""), None);
        other[4] = 9;
        assert_eq!(least(&other), None, "of another version");
        let mut endless = file(32);
        endless[24..32].fill(0xff);
        assert_eq!(least(&endless), None, "with a key of a length that no file has");
    }
}
