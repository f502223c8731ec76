//! `warren files put`.

use std::{
    fs::{File, Metadata},
    io::{self, Read, Seek, stdin},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use base::system::times;
use clap::Args;
use client::{ClientError, Workspace};
use daemon::ConfigFile;
use protocol::workspace::{
    FileKind, ProjectId,
    limits::{TEXT_FILE_MAX, UPLOAD_MAX},
};
use serde_json::json;

use super::{ProjectPath, find, parts::LargeFile};
use crate::{
    commands::{
        progress::file_bar, say, say_json_line, table::plain, words::bytes, workspace::Output,
    },
    exit::usage,
};

/// Send a file, of any size
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren files put logo.png site:assets/logo.png")]
pub(super) struct Put {
    /// The file; - is standard input
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// Where to: a file, which must not be there, or a directory
    #[arg(value_name = "PROJECT[:PATH]")]
    to: ProjectPath,
    /// Write over a text file of 1 MiB at most that is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    output: Output,
}

impl Put {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let content = read(&self.from)?;
        let (mut workspace, project) = find(&self.output.server, file, &self.to).await?;
        let path = self.destination(&mut workspace, project).await?;
        let size = match content {
            Content::Whole(content) => {
                let size = content.len() as u64;
                let bar = file_bar(&path, size);
                if self.force {
                    workspace.write_text(project, &path, text(content)?).await?;
                } else {
                    workspace.upload(project, &path, &content).await?;
                }
                bar.finish_and_clear();
                size
            }
            Content::Large(_) if self.force => return Err(anyhow!(only_text())),
            Content::Large(large) => {
                let connect = async || find(&self.output.server, file, &self.to).await;
                large.send((workspace, project), &path, connect).await?
            }
        };
        match self.output.json {
            true => Ok(say_json_line(&json!({"path": path, "size": size}))?),
            false => Ok(say(&format!("{} has {}", plain(&path), bytes(size)))?),
        }
    }

    /// The path to write: into a directory under the file's own name.
    async fn destination(
        &self,
        workspace: &mut Workspace,
        project: ProjectId,
    ) -> anyhow::Result<String> {
        if !self.to.path.is_empty() {
            let (directory, name) = self.to.split();
            let entry = match workspace.find_file(project, directory, name).await {
                // The path is then written to, and the server's refusal says what is wrong.
                Err(ClientError::NotFound { .. } | ClientError::Declined { .. }) => None,
                found => found?,
            };
            if entry.is_none_or(|entry| entry.kind != FileKind::Dir) {
                return Ok(self.to.path.clone());
            }
        }
        let name = self.from.file_name().and_then(|name| name.to_str());
        let name = name.filter(|_| self.from != Path::new("-"));
        let unnamed = || usage(anyhow!("{} is a directory: say what to call the file", self.to));
        Ok(self.to.join(name.ok_or_else(unnamed)?))
    }
}

/// The content to send: in one message, or in parts.
enum Content {
    Whole(Vec<u8>),
    Large(LargeFile),
}

/// The file as it was at one moment.
fn read(path: &Path) -> anyhow::Result<Content> {
    let shown = path.display();
    if path == Path::new("-") {
        return Ok(stream(stdin())?);
    }
    let unreadable = || format!("{shown} cannot be read");
    let file = File::open(path).with_context(unreadable)?;
    let is = file.metadata().with_context(unreadable)?;
    if is.is_file() && is.len() > UPLOAD_MAX as u64 {
        return Ok(Content::Large(LargeFile::of(file, is)?));
    }
    if !is.is_file() && !is.is_dir() {
        return stream(file).with_context(unreadable);
    }
    let whole = (0..TRIES).find_map(|_| read_once(path).transpose());
    let changes = || anyhow!("{shown} changes all the time: try again when it rests");
    Ok(Content::Whole(whole.ok_or_else(changes)?.with_context(unreadable)?))
}

/// The content that comes from a pipe.
fn stream(mut from: impl Read + 'static) -> io::Result<Content> {
    let begin = read_all(&mut from)?;
    Ok(match begin.len() > UPLOAD_MAX {
        true => Content::Large(LargeFile::of_stream(io::Cursor::new(begin).chain(from))),
        false => Content::Whole(begin),
    })
}

/// Reads a file; `None` if it was changed meanwhile. Of a growing file, reads the length at the beginning.
fn read_once(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let mut file = File::open(path)?;
    let before = file.metadata()?;
    if before.is_dir() {
        return Err(usage(anyhow!("it is a directory: files are sent one by one")));
    }
    let mut content = read_all(&mut file)?;
    let after = file.metadata()?;
    if same(&before, &after) {
        return Ok(Some(content));
    }
    content.truncate(usize::try_from(before.len()).unwrap_or(usize::MAX));
    file.rewind()?;
    let current = read_all(&mut file)?;
    Ok(current.starts_with(&content).then_some(content))
}

fn read_all(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    from.take(UPLOAD_MAX as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

/// Whether a file was not written to between two reads of its metadata.
pub(super) fn same(before: &Metadata, after: &Metadata) -> bool {
    let of = |it: &Metadata| (it.len(), times(it));
    of(before) == of(after)
}

/// The most attempts to read a file that is changed meanwhile.
const TRIES: usize = 5;

/// The content as text, which may be written over: the protocol replaces a file in one step only where it is text.
fn text(content: Vec<u8>) -> anyhow::Result<String> {
    if content.len() > TEXT_FILE_MAX || content.contains(&0) {
        return Err(anyhow!(only_text()));
    }
    String::from_utf8(content).map_err(|_| anyhow!(only_text()))
}

fn only_text() -> String {
    let most = bytes(TEXT_FILE_MAX as u64);
    format!("only text of {most} at most is written over: delete what is there first")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_bound_is_sent_at_once_and_a_larger_one_in_parts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let file = File::create(&path).unwrap();
        file.set_len(UPLOAD_MAX as u64).unwrap();
        let whole = read(&path).unwrap();
        assert!(matches!(whole, Content::Whole(content) if content.len() == UPLOAD_MAX));
        file.set_len(UPLOAD_MAX as u64 + 1).unwrap();
        assert!(matches!(read(&path).unwrap(), Content::Large(_)));
        for (more, is_large) in [(0, false), (1, true)] {
            let piped = stream(io::repeat(7).take(UPLOAD_MAX as u64 + more)).unwrap();
            assert_eq!(matches!(piped, Content::Large(_)), is_large);
        }
        assert!(read(directory.path()).is_err());
    }

    #[test]
    fn only_text_is_written_over() {
        assert_eq!(text(b"a\n".to_vec()).unwrap(), "a\n");
        assert!(text(vec![b'a'; TEXT_FILE_MAX]).is_ok());
        for bad in [vec![b'a'; TEXT_FILE_MAX + 1], vec![0xff], b"a\0".to_vec()] {
            assert!(text(bad).is_err());
        }
    }
}
