//! Windows.

use std::{
    fs::{self, File},
    io,
    os::windows::fs::FileExt as _,
    path::Path,
};

/// Reads and writes at a place of a file. Others that use the same open file must not rely on its position.
pub(crate) trait FileExt {
    /// Reads some bytes; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills the buffer.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all bytes.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

impl FileExt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.seek_read(buffer, offset)
    }

    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.seek_read(buffer, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
            }
        }
        Ok(())
    }

    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.seek_write(bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
            }
        }
        Ok(())
    }
}

/// Opens a file to be read that is no symbolic link. A link that is made in between is followed.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path)?.is_symlink() {
        true => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link")),
        false => File::open(path),
    }
}

/// Lets two paths change places at once: Windows cannot do that.
pub(crate) fn swap(_one: &Path, _other: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Makes what was renamed or created in a directory outlive a loss of power: the file system does that by itself.
pub(crate) fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}
