//! Reads the head of a file within bounds.

use std::{
    collections::BTreeMap,
    io::{self, BufReader, Read, Seek},
};

use super::{
    GgufError,
    kinds::tensor_kind,
    values::{Value, Values},
};

/// Files of these versions are read.
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=3;

/// The most strings and numbers of a head that are looked at. A longer head is not read.
const MAX_STEPS: u32 = 8_000_000;

/// The first bytes of a key, by which keys are told apart.
const MAX_KEY: u64 = 96;

/// The most numbers of a list that are kept: one for each layer.
const MAX_LAYERS: u64 = 4_096;

/// The alignment of the tensors' data, unless the head tells another.
const ALIGNMENT: u64 = 32;

/// The type of a value.
mod value {
    pub(super) const U32: u32 = 4;
    pub(super) const STRING: u32 = 8;
    pub(super) const ARRAY: u32 = 9;
}

/// Why reading ends.
enum Stop {
    /// The file ends within its head.
    Ended,
    /// It begins as no GGUF file does.
    Foreign,
    /// It is not understood.
    Unknown,
    Unreadable(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Ended,
            _ => Self::Unreadable(error),
        }
    }
}

/// The head of a file.
pub(super) struct Head {
    pub(super) values: Values,
    pub(super) tensors: Tensors,
    /// How long the file must be, in bytes.
    pub(super) least_length: u64,
}

/// The sums over all tensors.
#[derive(Debug, Default)]
pub(super) struct Tensors {
    pub(super) count: u64,
    pub(super) elements: u64,
    pub(super) bytes_by_kind: BTreeMap<u32, u64>,
    /// Where the last one ends, from the beginning of the data.
    end: u64,
}

impl Head {
    /// Reads the head of an input that is `length` bytes long.
    pub(super) fn read(input: impl Read + Seek, length: u64) -> Result<Self, GgufError> {
        let mut reader = HeadReader { input: BufReader::new(input), length, at: 0, steps: 0 };
        reader.head().map_err(|stop| match stop {
            Stop::Ended => GgufError::Ended { length },
            Stop::Foreign => GgufError::Foreign,
            Stop::Unknown => GgufError::Unknown,
            Stop::Unreadable(error) => error.into(),
        })
    }
}

struct HeadReader<R> {
    input: BufReader<R>,
    /// Of the file.
    length: u64,
    at: u64,
    steps: u32,
}

impl<R: Read + Seek> HeadReader<R> {
    fn head(&mut self) -> Result<Head, Stop> {
        self.begin()?;
        let (tensors, count) = (self.u64()?, self.u64()?);
        let mut values = Values::default();
        let mut alignment = ALIGNMENT;
        for _ in 0..count {
            let key = self.text(MAX_KEY)?;
            let kind = self.u32()?;
            if key == "general.alignment" && kind == value::U32 {
                alignment = u64::from(self.u32()?);
            } else if !values.want(&key) {
                self.skip_value(kind)?;
            } else if let Some(value) = self.value(kind, Values::longest(&key))? {
                values.put(key, value);
            }
        }
        let tensors = self.tensors(tensors)?;
        let aligned = self.at.checked_next_multiple_of(alignment.max(1));
        let end = aligned.and_then(|data| data.checked_add(tensors.end));
        Ok(Head { values, tensors, least_length: end.ok_or(Stop::Unknown)? })
    }

    fn begin(&mut self) -> Result<(), Stop> {
        let mut magic = [0; 4];
        match self.read(&mut magic) {
            Ok(()) if magic == *b"GGUF" => {}
            Ok(()) | Err(Stop::Ended) => return Err(Stop::Foreign),
            Err(other) => return Err(other),
        }
        if VERSIONS.contains(&self.u32()?) { Ok(()) } else { Err(Stop::Unknown) }
    }

    fn tensors(&mut self, count: u64) -> Result<Tensors, Stop> {
        let mut tensors = Tensors { count, ..Tensors::default() };
        for _ in 0..count {
            self.tensor(&mut tensors)?;
        }
        Ok(tensors)
    }

    fn tensor(&mut self, tensors: &mut Tensors) -> Result<(), Stop> {
        let _name = self.text(0)?;
        let mut elements = 1u64;
        for _ in 0..self.u32()? {
            elements = elements.checked_mul(self.u64()?).ok_or(Stop::Unknown)?;
        }
        let (kind, offset) = (self.u32()?, self.u64()?);
        // Of a type that is not known, it is known at least where it begins.
        let size = tensor_kind(kind).map_or(Some(0), |kind| kind.size(elements));
        let size = size.ok_or(Stop::Unknown)?;
        tensors.end = offset.checked_add(size).ok_or(Stop::Unknown)?.max(tensors.end);
        tensors.elements = tensors.elements.saturating_add(elements);
        let bytes = tensors.bytes_by_kind.entry(kind).or_default();
        *bytes = bytes.saturating_add(size);
        Ok(())
    }

    /// A value to keep; `None` when it is of a type that says nothing here.
    fn value(&mut self, kind: u32, longest: u64) -> Result<Option<Value>, Stop> {
        Ok(match kind {
            value::STRING => Some(Value::Text(self.text(longest)?)),
            value::ARRAY => Some(self.array()?),
            _ => self.number(kind)?.map(Value::Number),
        })
    }

    /// Numbers that stand for layers, or only the length of another list.
    fn array(&mut self) -> Result<Value, Stop> {
        let (kind, count) = (self.u32()?, self.u64()?);
        if !is_number(kind) || count > MAX_LAYERS {
            self.skip_array(kind, count)?;
            return Ok(Value::Length(count));
        }
        let mut numbers = Vec::new();
        for _ in 0..count {
            numbers.push(self.number(kind)?.unwrap_or_default());
        }
        Ok(Value::Numbers(numbers))
    }

    /// A number that is not negative; a flag is 0 or 1. Other values of one size are passed over.
    fn number(&mut self, kind: u32) -> Result<Option<u64>, Stop> {
        let size = size(kind).ok_or(Stop::Unknown)?;
        let mut bytes = [0; 8];
        self.read(bytes.get_mut(..size as usize).ok_or(Stop::Unknown)?)?;
        let number = u64::from_le_bytes(bytes);
        let is_negative = is_signed(kind) && number >> (8 * size - 1) == 1;
        Ok((is_number(kind) && !is_negative).then_some(number))
    }

    fn skip_value(&mut self, kind: u32) -> Result<(), Stop> {
        match kind {
            value::STRING => self.text(0).map(drop),
            value::ARRAY => {
                let (kind, count) = (self.u32()?, self.u64()?);
                self.skip_array(kind, count)
            }
            _ => self.skip(size(kind).ok_or(Stop::Unknown)?),
        }
    }

    fn skip_array(&mut self, kind: u32, count: u64) -> Result<(), Stop> {
        match size(kind) {
            Some(size) => self.skip(size.checked_mul(count).ok_or(Stop::Unknown)?),
            None if kind == value::STRING => (0..count).try_for_each(|_| self.text(0).map(drop)),
            None => Err(Stop::Unknown),
        }
    }

    /// The first bytes of a string; the rest is passed over.
    fn text(&mut self, longest: u64) -> Result<String, Stop> {
        let length = self.u64()?;
        let mut shown = vec![0; length.min(longest) as usize];
        self.read(&mut shown)?;
        self.skip(length - shown.len() as u64)?;
        Ok(String::from_utf8_lossy(&shown).into_owned())
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

/// Whether it is a type of whole numbers, or of flags.
fn is_number(kind: u32) -> bool {
    matches!(kind, 0..=5 | 7 | 10 | 11)
}

fn is_signed(kind: u32) -> bool {
    matches!(kind, 1 | 3 | 5 | 11)
}
