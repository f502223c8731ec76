//! The journal of an arrival: which pieces are there. Only ever added to, each record with a checksum over
//! its place, so that a journal that was cut off anywhere is read up to there.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    path::Path,
};

use super::{error::ArrivalError, pieces::Pieces};
use crate::{durable, manifest::Manifest, plan::PieceId, system::FileExt};

/// The start of a journal: this, the digest of the manifest, and the boot that it was written in.
const MAGIC: &[u8; 16] = b"warren.arrival.1";
const HEAD: usize = 16 + 32 + 16;
/// File, piece and checksum.
const RECORD: usize = 16;

/// Names the time since the machine was started, where the system tells it. Within it, what a process has
/// written is there even if the process was killed; after it, maybe not.
pub(super) fn boot_id() -> Option<[u8; 16]> {
    let text = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    blake3::hash(&text).as_bytes().first_chunk().copied()
}

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    key: [u8; 32],
    records: u64,
    same_boot: bool,
}

impl Journal {
    /// Reads the journal into `pieces`, or begins one.
    pub(super) fn open(
        path: &Path,
        manifest: &Manifest,
        boot: Option<[u8; 16]>,
        pieces: &mut Pieces,
    ) -> Result<Self, ArrivalError> {
        let key = manifest.digest();
        // Each piece is noted once; what is longer was not written here.
        let most = HEAD as u64 + manifest.pieces() * RECORD as u64;
        let bytes = read(path, most).map_err(ArrivalError::disk(path))?;
        let Some((boot_of, records)) = split(&bytes, &key) else {
            return Self::write_anew(path, manifest, boot, pieces);
        };
        let good = good(&key, records);
        good.iter().for_each(|piece| pieces.set(*piece));
        let open = || {
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(at(good.len() as u64))?;
            Ok(file)
        };
        let file = open().map_err(ArrivalError::disk(path))?;
        let same_boot = boot.is_some() && boot == Some(boot_of);
        Ok(Self { file, key, records: good.len() as u64, same_boot })
    }

    /// Writes a journal that notes these pieces.
    pub(super) fn write_anew(
        path: &Path,
        manifest: &Manifest,
        boot: Option<[u8; 16]>,
        pieces: &Pieces,
    ) -> Result<Self, ArrivalError> {
        let key = manifest.digest();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(key);
        bytes.extend(boot.unwrap_or_default());
        let mut records = 0;
        for piece in pieces.there() {
            bytes.extend(record(&key, records, piece));
            records += 1;
        }
        let write = || {
            durable::write(path, &bytes, true)?;
            OpenOptions::new().write(true).open(path)
        };
        let file = write().map_err(ArrivalError::disk(path))?;
        Ok(Self { file, key, records, same_boot: true })
    }

    /// Whether all of it was written since the machine was started.
    pub(super) fn same_boot(&self) -> bool {
        self.same_boot
    }

    /// Notes a piece. What could only be written in part is overwritten by the next record.
    pub(super) fn append(&mut self, piece: PieceId) -> io::Result<()> {
        self.file.write_all_at(&record(&self.key, self.records, piece), at(self.records))?;
        self.records += 1;
        Ok(())
    }
}

fn at(records: u64) -> u64 {
    HEAD as u64 + records * RECORD as u64
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(bytes),
        file => file?.take(most).read_to_end(&mut bytes).map(|_| bytes),
    }
}

/// The boot it was written in, and its records; `None` when it is no journal of this arrival.
fn split<'a>(bytes: &'a [u8], key: &[u8; 32]) -> Option<([u8; 16], &'a [u8])> {
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(key)?;
    rest.split_first_chunk().map(|(boot, records)| (*boot, records))
}

/// The records up to the first that is cut off or damaged.
fn good(key: &[u8; 32], records: &[u8]) -> Vec<PieceId> {
    let (records, _) = records.as_chunks::<RECORD>();
    let read = |(place, bytes): (u64, &[u8; RECORD])| {
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let piece = PieceId { file: number(0), piece: number(4) };
        (record(key, place, piece) == *bytes).then_some(piece)
    };
    (0..).zip(records).map_while(read).collect()
}

fn record(key: &[u8; 32], place: u64, piece: PieceId) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..4].copy_from_slice(&piece.file.to_le_bytes());
    record[4..8].copy_from_slice(&piece.piece.to_le_bytes());
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&place.to_le_bytes()).update(&record[..8]);
    record[8..].copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    record
}
