//! Makes a backup.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use flate2::{Compression, write::GzEncoder};
use jiff::{Timestamp, Unit};
use sha2::{Digest, Sha256};

use super::{
    Contents, FORMAT, FileEntry, HEAD, Head, MANIFEST, Manifest, PartialDir,
    contents::{DATABASES, Source},
    hex,
    tar::{BLOCK, Entry, padding},
};
use crate::{
    VERSION,
    data::{has_database, is_in_use, private},
    stores::has_shared,
};

/// A file up to this size, in bytes, is read before its head is written, so that it may grow or be replaced meanwhile.
const AT_ONCE: u64 = 64 * 1024 * 1024;

/// The compression: a stronger one takes several times as long for a tenth of the size.
const LEVEL: u32 = 3;

/// A backup that was made.
#[derive(Debug)]
pub struct Backup {
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Its content.
    pub contents: Contents,
    /// Whether a server used the data when the backup began.
    pub running: bool,
    /// Whether the server shares its keys and its usage with other servers: then the backup does not have these.
    pub shares: bool,
}

/// Writes a backup to the file `to`; if `to` is a directory, to a file in it, with the time in its name. The file
/// appears whole, or not at all. Blocks.
///
/// # Errors
/// When there is no data, the data cannot be read, a database is damaged, the file exists and `replace` is not set, or
/// the file cannot be written.
pub fn backup(source: &Source, to: &Path, replace: bool) -> anyhow::Result<Backup> {
    let data_dir = source.data_dir.display();
    if !has_database(&source.data_dir) {
        bail!("there is no database in {data_dir}: is this the server's data directory?");
    }
    let made_at = Timestamp::now().round(Unit::Second)?;
    let path = if to.is_dir() { to.join(name(made_at)) } else { to.to_owned() };
    let shown = path.display();
    if path.exists() && !replace {
        bail!("{shown} is there: give another name, or replace it with --force");
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let staging = PartialDir::new(parent.unwrap_or(Path::new(".")), "warren-backup")
        .with_context(|| format!("{shown} cannot be written"))?;
    let running = is_in_use(&source.data_dir);
    let head = Head { format: FORMAT, version: VERSION.to_owned(), made_at: made_at.to_string() };
    let new = staging.path().join("archive");
    let files = archive(source, &head, &new, staging.path())?;
    let bytes = fs::metadata(&new)?.len();
    fs::rename(&new, &path).with_context(|| format!("{shown} cannot be written"))?;
    let (shares, contents) = (has_shared(&source.data_dir), Contents { head, files });
    Ok(Backup { path, bytes, contents, running, shares })
}

/// The name of a backup of this time.
fn name(at: Timestamp) -> String {
    format!("warren-{}.tar.gz", at.strftime("%Y%m%dT%H%M%SZ"))
}

fn archive(
    source: &Source,
    head: &Head,
    to: &Path,
    staging: &Path,
) -> anyhow::Result<Vec<FileEntry>> {
    let mut archive = Archive::create(to)?;
    archive.add_text(HEAD, &serde_json::to_vec_pretty(head)?)?;
    for name in DATABASES {
        let (path, copy) = (source.data_dir.join(name), staging.join(name));
        if path.exists() {
            // SQLite copies it as it is at one moment: a server may write to it meanwhile.
            store::sqlite::copy::copy(&path, &copy)?;
            archive.add_file(&format!("data/{name}"), &copy)?;
            fs::remove_file(copy)?;
        }
    }
    let unread = || format!("{} cannot be read", source.data_dir.display());
    for wanted in source.files().with_context(unread)? {
        let added = archive.add_file(&wanted.name, &wanted.path);
        added.with_context(|| format!("{} cannot be saved", wanted.path.display()))?;
    }
    archive.finish()
}

/// An archive that is being written.
pub(super) struct Archive {
    out: GzEncoder<BufWriter<File>>,
    files: Vec<FileEntry>,
}

impl Archive {
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = private().create_new(true).open(path);
        let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
        let out = GzEncoder::new(BufWriter::new(file), Compression::new(LEVEL));
        Ok(Self { out, files: Vec::new() })
    }

    /// Adds a file, if it is still there.
    fn add_file(&mut self, name: &str, path: &Path) -> anyhow::Result<()> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let length = file.metadata()?.len();
        if length > AT_ONCE {
            // A file of this size only grows. The backup gets what it has now.
            return self.add(name, length, file.take(length));
        }
        let mut bytes = Vec::new();
        file.take(AT_ONCE).read_to_end(&mut bytes)?;
        self.add(name, bytes.len() as u64, bytes.as_slice())
    }

    pub(super) fn add(&mut self, name: &str, bytes: u64, content: impl Read) -> anyhow::Result<()> {
        self.out.write_all(&Entry { path: name.to_owned(), bytes }.encode()?)?;
        let mut summing = SumReader { from: content, sum: Sha256::new() };
        let copied = io::copy(&mut summing, &mut self.out)?;
        if copied != bytes {
            bail!("it became shorter while it was read: try again");
        }
        self.out.write_all(&[0; BLOCK][..padding(bytes)])?;
        let sha256 = hex(summing.sum.finalize());
        self.files.push(FileEntry { path: name.to_owned(), bytes, sha256 });
        Ok(())
    }

    /// Adds an entry that is not in the list of files.
    pub(super) fn add_text(&mut self, name: &str, text: &[u8]) -> anyhow::Result<()> {
        let entry = Entry { path: name.to_owned(), bytes: text.len() as u64 };
        self.out.write_all(&entry.encode()?)?;
        self.out.write_all(text)?;
        self.out.write_all(&[0; BLOCK][..padding(entry.bytes)])?;
        Ok(())
    }

    /// Ends the archive, and has it written to the disk.
    pub(super) fn finish(mut self) -> anyhow::Result<Vec<FileEntry>> {
        let manifest = Manifest { files: std::mem::take(&mut self.files) };
        self.add_text(MANIFEST, &serde_json::to_vec_pretty(&manifest)?)?;
        self.out.write_all(&[0; 2 * BLOCK])?;
        let out = self.out.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        out.sync_all()?;
        Ok(manifest.files)
    }
}

/// A reader that computes the SHA-256 of all that is read.
pub(super) struct SumReader<R> {
    pub(super) from: R,
    pub(super) sum: Sha256,
}

impl<R: Read> Read for SumReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.sum.update(&into[..read]);
        Ok(read)
    }
}
