//! Reads a backup, and checks all of it.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufReader, Read},
    path::{Component, Path},
};

use anyhow::{Context, bail};
use flate2::bufread::GzDecoder;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::{
    Contents, FORMAT, FileEntry, HEAD, Head, MANIFEST, Manifest, hex,
    tar::{BLOCK, Entry, padding},
    write::SumReader,
};

/// The longest first entry, in bytes.
const LONGEST_HEAD: u64 = 64 * 1024;
/// The longest list of files, in bytes: enough for some 500,000 files.
const LONGEST_MANIFEST: u64 = 128 * 1024 * 1024;
/// The most files.
const MOST_FILES: usize = 500_000;
/// The most bytes after the end of an archive: `tar` pads archives with zeros.
const MOST_BEHIND: u64 = 1024 * 1024;

/// Reads a backup to its end, and checks its form and every sum. Blocks.
///
/// # Errors
/// When it cannot be read, is no backup, is damaged, or of a newer form.
pub fn check(path: &Path) -> anyhow::Result<Contents> {
    read(path, |_, content| {
        io::copy(content, &mut io::sink())?;
        Ok(())
    })
}

/// Reads a backup. `take` gets each file with its path, and must read all of it. Only once this returns without an
/// error is it known that the backup is whole.
pub(super) fn read(
    path: &Path,
    mut take: impl FnMut(&str, &mut dyn Read) -> anyhow::Result<()>,
) -> anyhow::Result<Contents> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("{shown} cannot be read"))?;
    let mut archive = Archive(GzDecoder::new(BufReader::new(file)));
    let read = archive.contents(&mut take);
    read.with_context(|| format!("{shown} cannot be restored"))
}

struct Archive<R>(GzDecoder<R>);

impl<R: io::BufRead> Archive<R> {
    fn contents(
        &mut self,
        take: &mut impl FnMut(&str, &mut dyn Read) -> anyhow::Result<()>,
    ) -> anyhow::Result<Contents> {
        let head = self.head()?;
        let mut files = Vec::new();
        let mut paths = HashSet::new();
        let listed: Manifest = loop {
            let Some(entry) = self.entry()? else { bail!("it is not whole: its list is missing") };
            if entry.path == MANIFEST {
                break self.json(&entry, LONGEST_MANIFEST)?;
            }
            refuse_path(&entry.path)?;
            if files.len() == MOST_FILES || !paths.insert(entry.path.clone()) {
                bail!("it is damaged: it has too many files, or one twice");
            }
            files.push(self.file(entry, take)?);
        };
        if listed.files != files {
            bail!("it is damaged: its files are not those of its list");
        }
        self.end()?;
        Ok(Contents { head, files })
    }

    /// The first entry.
    fn head(&mut self) -> anyhow::Result<Head> {
        let entry = self.entry().context("it is no backup of a Warren")?;
        let Some(entry) = entry.filter(|entry| entry.path == HEAD) else {
            bail!("it is no backup of a Warren");
        };
        let head: Head = self.json(&entry, LONGEST_HEAD)?;
        if head.format > FORMAT {
            bail!(
                "it was made by a newer version of Warren ({}): restore it with that",
                head.version
            );
        }
        Ok(head)
    }

    fn entry(&mut self) -> anyhow::Result<Option<Entry>> {
        let mut block = [0; BLOCK];
        self.0.read_exact(&mut block).context("it is damaged, or was cut")?;
        Ok(Entry::decode(&block)?)
    }

    fn json<T: DeserializeOwned>(&mut self, entry: &Entry, longest: u64) -> anyhow::Result<T> {
        if entry.bytes > longest {
            bail!("it is damaged: its {} is too long", entry.path);
        }
        let mut text = Vec::new();
        self.0.by_ref().take(entry.bytes).read_to_end(&mut text).context("it is damaged")?;
        self.skip(padding(entry.bytes))?;
        serde_json::from_slice(&text).with_context(|| format!("its {} is not right", entry.path))
    }

    fn file(
        &mut self,
        entry: Entry,
        take: &mut impl FnMut(&str, &mut dyn Read) -> anyhow::Result<()>,
    ) -> anyhow::Result<FileEntry> {
        let Entry { path, bytes } = entry;
        let mut content = SumReader { from: self.0.by_ref().take(bytes), sum: Sha256::new() };
        take(&path, &mut content).with_context(|| format!("{path} cannot be taken out of it"))?;
        if content.from.limit() > 0 {
            bail!("it is damaged, or was cut, in {path}");
        }
        let sha256 = hex(content.sum.finalize());
        self.skip(padding(bytes))?;
        Ok(FileEntry { path, bytes, sha256 })
    }

    fn skip(&mut self, bytes: usize) -> anyhow::Result<()> {
        let mut rest = [0; BLOCK];
        self.0.read_exact(&mut rest[..bytes]).context("it is damaged, or was cut")
    }

    /// Reads to the end of the compressed file, where gzip's own sum is checked.
    fn end(&mut self) -> anyhow::Result<()> {
        let mut rest = Vec::new();
        self.0.by_ref().take(MOST_BEHIND).read_to_end(&mut rest).context("it is damaged")?;
        if rest.iter().any(|byte| *byte != 0) || self.0.read(&mut [0]).context("it is damaged")? > 0
        {
            bail!("it is damaged: there is something behind its end");
        }
        Ok(())
    }
}

/// Whether a part of a path is more than the name of a file or directory, such as the name of a disk on Windows.
fn leads_away(part: &str) -> bool {
    !matches!(Path::new(part).components().next(), Some(Component::Normal(_)))
}

/// Refuses a path that leads out of the directory into which files are restored, or that is below neither `data/` nor
/// `outside/`.
fn refuse_path(path: &str) -> anyhow::Result<()> {
    let parts: Vec<Component<'_>> = Path::new(path).components().collect();
    let is_plain = parts.iter().all(|part| matches!(part, Component::Normal(_)))
        && !path.contains("//")
        && !path.split('/').any(|part| part == "." || part.is_empty() || leads_away(part));
    let is_known = path.starts_with("data/") || path.starts_with("outside/");
    match is_plain && is_known && parts.len() > 1 && !path.contains('\0') {
        true => Ok(()),
        false => bail!("it has a file whose path leads elsewhere: {path:?}"),
    }
}
