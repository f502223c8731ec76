//! Heads of tar entries (POSIX ustar), for regular files.

/// The unit of an archive, in bytes.
pub(super) const BLOCK: usize = 512;

/// The head of a file's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its path, with `/` between its parts.
    pub(super) path: String,
    /// Its length.
    pub(super) bytes: u64,
}

/// Why a head cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadEntry {
    /// The path is too long for the fields.
    #[error("the path {0:?} is too long for an archive")]
    Path(String),
    /// The block is no head of an entry.
    #[error("it is no tar archive, or damaged")]
    Damaged,
    /// The entry is a link, a device or a directory.
    #[error("{0:?} is no file")]
    NoFile(String),
}

/// The places of the fields in the block.
const NAME: std::ops::Range<usize> = 0..100;
const MODE: std::ops::Range<usize> = 100..108;
const OWNER: std::ops::Range<usize> = 108..116;
const GROUP: std::ops::Range<usize> = 116..124;
const SIZE: std::ops::Range<usize> = 124..136;
const TIME: std::ops::Range<usize> = 136..148;
const SUM: std::ops::Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: std::ops::Range<usize> = 257..265;
const PREFIX: std::ops::Range<usize> = 345..500;

impl Entry {
    /// The block before the file's bytes.
    pub(super) fn encode(&self) -> Result<[u8; BLOCK], BadEntry> {
        let mut block = [0; BLOCK];
        let (prefix, name) = self.split().ok_or_else(|| BadEntry::Path(self.path.clone()))?;
        block[NAME][..name.len()].copy_from_slice(name.as_bytes());
        block[PREFIX][..prefix.len()].copy_from_slice(prefix.as_bytes());
        octal(&mut block[MODE], 0o600);
        octal(&mut block[OWNER], 0);
        octal(&mut block[GROUP], 0);
        size(&mut block[SIZE], self.bytes);
        octal(&mut block[TIME], 0);
        block[KIND] = b'0';
        block[MAGIC].copy_from_slice(b"ustar\x0000");
        let sum = sum(&block);
        octal(&mut block[SUM][..7], sum);
        block[SUM.end - 1] = b' ';
        Ok(block)
    }

    /// The entry of a block; `None` at the end of the archive.
    pub(super) fn decode(block: &[u8; BLOCK]) -> Result<Option<Self>, BadEntry> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if number(&block[SUM])? != sum(block) || !block[MAGIC].starts_with(b"ustar") {
            return Err(BadEntry::Damaged);
        }
        let (prefix, name) = (text(&block[PREFIX])?, text(&block[NAME])?);
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        match block[KIND] {
            b'0' | 0 => Ok(Some(Self { path, bytes: number(&block[SIZE])? })),
            _ => Err(BadEntry::NoFile(path)),
        }
    }

    /// The path as its prefix and its name, divided at a slash; `None` if it is too long.
    fn split(&self) -> Option<(&str, &str)> {
        if self.path.len() <= NAME.len() {
            return Some(("", &self.path));
        }
        let slashes = self.path.match_indices('/').map(|(at, _)| at);
        let fits = |at: &usize| *at <= PREFIX.len() && self.path.len() - at - 1 <= NAME.len();
        let at = slashes.rev().find(fits)?;
        Some((&self.path[..at], &self.path[at + 1..]))
    }
}

/// How many bytes of padding follow a file of this length, up to the next block.
pub(super) fn padding(bytes: u64) -> usize {
    let over = bytes % BLOCK as u64;
    // Less than a block, so it fits.
    if over == 0 { 0 } else { BLOCK - over as usize }
}

/// Writes a number in octal digits, with a NUL after them.
fn octal(field: &mut [u8], number: u64) {
    let digits = field.len() - 1;
    let text = format!("{number:0digits$o}");
    field[..digits].copy_from_slice(&text.as_bytes()[text.len() - digits..]);
}

/// Writes a length: below 8 GiB in octal digits, otherwise in binary after a mark, as GNU and BSD write it.
fn size(field: &mut [u8], bytes: u64) {
    if bytes < 1 << 33 {
        return octal(field, bytes);
    }
    field[0] = 0x80;
    field[4..].copy_from_slice(&bytes.to_be_bytes());
}

fn number(field: &[u8]) -> Result<u64, BadEntry> {
    if field[0] == 0x80 {
        let (high, low) = field.split_at(field.len() - 8);
        let is_small = high[1..].iter().all(|byte| *byte == 0);
        let low = low.try_into().map(u64::from_be_bytes);
        return low.ok().filter(|_| is_small).ok_or(BadEntry::Damaged);
    }
    let text = text(field)?;
    u64::from_str_radix(text.trim(), 8).map_err(|_| BadEntry::Damaged)
}

fn text(field: &[u8]) -> Result<String, BadEntry> {
    let field = field.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8(field.to_vec()).map_err(|_| BadEntry::Damaged)
}

/// The sum of a block's bytes, with spaces in the sum's own field.
fn sum(block: &[u8; BLOCK]) -> u64 {
    let byte = |(at, byte): (usize, &u8)| u64::from(if SUM.contains(&at) { b' ' } else { *byte });
    block.iter().enumerate().map(byte).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, bytes: u64) -> Entry {
        Entry { path: path.to_owned(), bytes }
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let deep = format!("data/workspace/{}/{}", "a".repeat(120), "b".repeat(99));
        for written in [
            entry("manifest.json", 0),
            entry("data/warren.db", (1 << 33) - 1),
            entry("data/warren.db", 1 << 40),
            entry(&deep, 7),
        ] {
            assert_eq!(Entry::decode(&written.encode().unwrap()), Ok(Some(written)));
        }
        let long = entry(&"x".repeat(101), 1);
        assert_eq!(long.encode(), Err(BadEntry::Path(long.path)));
        assert_eq!(Entry::decode(&[0; BLOCK]), Ok(None));
    }

    #[test]
    fn what_is_damaged_or_no_file_is_refused() {
        let good = entry("data/a", 3).encode().unwrap();
        for at in [0, 124, 148, 156, 257] {
            let mut bad = good;
            bad[at] ^= 1;
            assert_eq!(Entry::decode(&bad), Err(BadEntry::Damaged), "{at}");
        }
        let mut link = good;
        link[KIND] = b'2';
        let changed = sum(&link);
        octal(&mut link[SUM][..7], changed);
        assert_eq!(Entry::decode(&link), Err(BadEntry::NoFile("data/a".to_owned())));
    }

    #[test]
    fn the_tar_of_this_machine_reads_it() {
        let mut archive = Vec::new();
        for (path, bytes) in [("data/a", &b"hello"[..]), ("b", b"")] {
            archive.extend(entry(path, bytes.len() as u64).encode().unwrap());
            archive.extend(bytes);
            archive.extend(vec![0; padding(bytes.len() as u64)]);
        }
        archive.extend([0; 2 * BLOCK]);
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.tar"), archive).unwrap();
        let mut tar = std::process::Command::new("tar");
        let output = tar.args(["-xvf", "a.tar"]).current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let read = |path| std::fs::read(directory.path().join(path)).unwrap();
        assert_eq!((read("data/a"), read("b")), (b"hello".to_vec(), Vec::new()));
    }
}
