//! `warren files get` and `cat`.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, Write, stdout},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use client::{
    Workspace,
    workspace::{ChangedFile, Download},
};
use daemon::ConfigFile;
use protocol::workspace::ProjectId;
use serde_json::json;
use tokio::time::sleep;

use super::{ProjectPath, find};
use crate::{
    commands::{
        progress::file_bar,
        say, say_json_line,
        table::plain,
        words::bytes,
        workspace::{Output, WorkspaceServer},
    },
    exit::usage,
};

/// Fetch a file, of any size
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren files get site:build/app.tar.gz")]
pub(super) struct Get {
    /// The file
    #[arg(value_name = "PROJECT:PATH")]
    path: ProjectPath,
    /// Where to write it, a file or a directory; - is standard output [default: its name, here]
    #[arg(value_name = "FILE")]
    to: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    output: Output,
}

/// Print a file
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren files cat site:README.md")]
pub(super) struct Cat {
    /// The file
    #[arg(value_name = "PROJECT:PATH")]
    path: ProjectPath,
    #[command(flatten)]
    server: WorkspaceServer,
}

impl Cat {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let (mut workspace, project) = find(&self.server, file, &self.path).await?;
        let fetched = fetch(&mut workspace, project, &self.path.path, &mut stdout()).await?;
        stdout().flush()?;
        match fetched {
            Ok(_) => Ok(()),
            Err(changed) => bail!("{}: {changed}, and what was printed is not whole", self.path),
        }
    }
}

impl Get {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        if self.to.as_deref() == Some(Path::new("-")) {
            let (path, server) = (self.path, self.output.server);
            return Cat { path, server }.run(file).await;
        }
        let to = self.destination()?;
        if !self.force && to.symlink_metadata().is_ok() {
            bail!("{} is there already: --force writes over it", to.display());
        }
        let (mut workspace, project) = find(&self.output.server, file, &self.path).await?;
        let mut part = Part::beside(&to)?;
        let size = fetch_whole(&mut workspace, project, &self.path.path, &mut part.file).await?;
        part.becomes(&to)?;
        let shown = to.display().to_string();
        match self.output.json {
            true => Ok(say_json_line(&json!({"path": shown, "size": size}))?),
            false => Ok(say(&format!("{} has {}", plain(&shown), bytes(size)))?),
        }
    }

    fn destination(&self) -> anyhow::Result<PathBuf> {
        let name = self.path.file_name().filter(|name| !matches!(*name, "." | ".."));
        let Some(name) = name else {
            return Err(usage(anyhow!("{} names no file", self.path)));
        };
        Ok(match &self.to {
            Some(to) if to.is_dir() => to.join(name),
            Some(to) => to.clone(),
            None => PathBuf::from(name),
        })
    }
}

/// Writes a file as it was at one moment. Returns its length. Begins again if the file is changed meanwhile.
async fn fetch_whole(
    workspace: &mut Workspace,
    project: ProjectId,
    path: &str,
    out: &mut File,
) -> anyhow::Result<u64> {
    for _ in 0..TRIES {
        match fetch(workspace, project, path, out).await? {
            Ok(size) => return Ok(size),
            Err(ChangedFile) => {
                sleep(MOMENT).await;
                out.set_len(0).and_then(|()| out.rewind()).context("it cannot be written here")?;
            }
        }
    }
    bail!("{} changes all the time while it is fetched: try again when it rests", plain(path))
}

/// Writes a file window by window, so that only one is in memory. Returns its length.
async fn fetch(
    workspace: &mut Workspace,
    project: ProjectId,
    path: &str,
    out: &mut impl Write,
) -> anyhow::Result<Result<u64, ChangedFile>> {
    let (mut download, mut progress) = (Download::default(), None);
    while let Some(range) = download.next() {
        if range.check && download.size() == 0 {
            // A program that writes a file again empties it first.
            sleep(MOMENT).await;
        }
        let window = workspace.read_window(project, path, range).await?;
        if let Err(changed) = download.take(&window) {
            return Ok(Err(changed));
        }
        out.write_all(&window.data).context("it cannot be written here")?;
        let bar = progress.get_or_insert_with(|| file_bar(path, download.size()));
        bar.set_position(download.fetched());
    }
    if let Some(bar) = progress {
        bar.finish_and_clear();
    }
    Ok(Ok(download.fetched()))
}

/// How long a file that is being changed is left alone.
const MOMENT: Duration = Duration::from_millis(200);
/// The most attempts to fetch a file that is changed meanwhile.
const TRIES: usize = 5;

/// A file beside the final one. It is removed unless it is complete.
struct Part {
    file: File,
    path: PathBuf,
    is_whole: bool,
}

impl Part {
    fn beside(to: &Path) -> anyhow::Result<Self> {
        let mut name = to.as_os_str().to_owned();
        name.push(format!(".{:08x}.part", rand::random::<u32>()));
        let path = PathBuf::from(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Self { file, path, is_whole: false })
    }

    fn becomes(mut self, to: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, to)?;
        self.is_whole = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_whole {
            // If that fails, the part stays: there is nothing else to do.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("a");
        let mut part = Part::beside(&to).unwrap();
        part.file.write_all(b"half").unwrap();
        drop(part);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut part = Part::beside(&to).unwrap();
        part.file.write_all(b"whole").unwrap();
        part.becomes(&to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"whole");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
