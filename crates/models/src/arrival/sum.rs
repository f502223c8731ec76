//! Hashes of files, as a hub tells them.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use serde::{Deserialize, Serialize};

use crate::tree::PIECE;

/// The hash of a file, as a hub tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Sum {
    /// SHA-256 of its bytes.
    Sha256([u8; 32]),
    /// The hash that git gives a small file: SHA-1 of `blob LENGTH`, a zero byte, and its bytes.
    Git([u8; 20]),
}

impl Sum {
    /// A SHA-256 in 64 hex digits.
    pub fn sha256(hex: &str) -> Option<Self> {
        decode(hex).map(Self::Sha256)
    }

    /// A git blob's SHA-1 in 40 hex digits.
    pub fn git(hex: &str) -> Option<Self> {
        decode(hex).map(Self::Git)
    }

    /// Whether a file on the disk has it.
    pub(super) fn is_of(&self, path: &Path, size: u64) -> bool {
        let hashed = || -> io::Result<bool> {
            let mut hash = self.context(size);
            let (mut read, mut piece) = (File::open(path)?, vec![0; PIECE as usize]);
            loop {
                match read.read(&mut piece)? {
                    0 => return Ok(hash.finish().as_ref() == self.bytes()),
                    length => hash.update(&piece[..length]),
                }
            }
        };
        hashed().unwrap_or(false)
    }

    pub(super) fn context(&self, size: u64) -> Context {
        match self {
            Self::Sha256(_) => Context::new(&SHA256),
            Self::Git(_) => {
                let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
                hash.update(format!("blob {size}\0").as_bytes());
                hash
            }
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Sha256(bytes) => bytes,
            Self::Git(bytes) => bytes,
        }
    }
}

impl From<Sum> for String {
    fn from(sum: Sum) -> Self {
        sum.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TryFrom<String> for Sum {
    type Error = &'static str;

    fn try_from(hex: String) -> Result<Self, Self::Error> {
        Self::sha256(&hex).or_else(|| Self::git(&hex)).ok_or("it has 64 hex digits, or 40")
    }
}

fn decode<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if hex.len() != 2 * N || !hex.is_ascii() {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
