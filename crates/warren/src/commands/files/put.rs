//! `warren files put`.

use std::{
    fs::{File, Metadata},
    io::{self, Read, Seek, stdin},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::Args;
use client::{ClientError, Workspace};
use daemon::ConfigFile;
use protocol::workspace::{
    FileKind, ProjectId,
    limits::{TEXT_FILE_MAX, UPLOAD_MAX},
};
use serde_json::json;

use super::{ProjectPath, find, progress::bar};
use crate::{
    commands::{say, say_json_line, table::plain, words::bytes, workspace::Output},
    exit::usage,
};

/// Send a file, of 25 MiB at most
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
        let (mut workspace, project) = find(&self.output.place, file, &self.to).await?;
        let path = self.destination(&mut workspace, project).await?;
        let bar = bar(&path, content.len() as u64);
        let size = content.len() as u64;
        if self.force {
            let text = text(content)?;
            workspace.write_text(project, &path, text).await?;
        } else {
            workspace.upload(project, &path, &content).await?;
        }
        bar.finish_and_clear();
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
                // Then writing says what is wrong.
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

/// The whole file as it was at one moment, and no more than may be sent.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let content = if path == Path::new("-") {
        read_all(&mut stdin().lock())?
    } else {
        let whole = (0..TRIES).find_map(|_| read_once(path).transpose());
        let unreadable = || format!("{shown} cannot be read");
        whole
            .ok_or_else(|| anyhow!("{shown} changes all the time: try again when it rests"))?
            .with_context(unreadable)?
    };
    if content.len() > UPLOAD_MAX {
        let most = bytes(UPLOAD_MAX as u64);
        return Err(anyhow!(
            "{shown} is larger than {most}, which is the most that can be sent; in a terminal there, \
             fetch it with scp or curl instead"
        ));
    }
    Ok(content)
}

/// Reads a file; `None` if it was changed meanwhile. Of a file that grows, what was there.
fn read_once(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let mut file = File::open(path)?;
    let before = file.metadata()?;
    if before.is_dir() {
        return Err(usage(anyhow!("it is a directory: files are sent one by one")));
    }
    let mut content = read_all(&mut file)?;
    let after = file.metadata()?;
    if !before.is_file() || same(&before, &after) {
        return Ok(Some(content));
    }
    content.truncate(usize::try_from(before.len()).unwrap_or(usize::MAX));
    file.rewind()?;
    let again = read_all(&mut file)?;
    Ok(again.starts_with(&content).then_some(content))
}

fn read_all(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    from.take(UPLOAD_MAX as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

/// Whether a file has not been written to.
fn same(before: &Metadata, after: &Metadata) -> bool {
    let of = |it: &Metadata| (it.len(), it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec());
    of(before) == of(after)
}

/// The most times that a file is read because it was changed meanwhile.
const TRIES: usize = 5;

/// What may be written over: the protocol replaces a file in one step only where it is text.
fn text(content: Vec<u8>) -> anyhow::Result<String> {
    let most = bytes(TEXT_FILE_MAX as u64);
    let advice = format!("only text of {most} at most is written over: delete what is there first");
    if content.len() > TEXT_FILE_MAX || content.contains(&0) {
        return Err(anyhow!(advice));
    }
    String::from_utf8(content).map_err(|_| anyhow!(advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_bound_is_read_and_a_larger_one_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let file = File::create(&path).unwrap();
        file.set_len(UPLOAD_MAX as u64).unwrap();
        assert_eq!(read(&path).unwrap().len(), UPLOAD_MAX);
        file.set_len(UPLOAD_MAX as u64 + 1).unwrap();
        let words = read(&path).unwrap_err().to_string();
        assert!(words.contains("25.0 MiB"), "{words}");
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
