//! Files that are too large for one message, and are sent in parts.

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    time::Duration,
};

use anyhow::{Context, anyhow};
use client::{ClientError, Workspace, workspace::files::UploadPart};
use protocol::workspace::{ProjectId, limits::UPLOAD_PART_MAX};
use tokio::time::sleep;

use super::put::same;
use crate::commands::progress::file_bar;

/// How often a part is sent again after a lost connection, and the wait before that.
const TRIES: u32 = 10;
const MOMENT: Duration = Duration::from_secs(2);

/// A file, or the data of a pipe, of any size.
pub(super) struct LargeFile {
    from: Box<dyn Read>,
    /// Its size in bytes; 0 if it is not known.
    size: u64,
    /// The file, and its metadata when it was opened.
    before: Option<(File, Metadata)>,
}

impl LargeFile {
    /// A file, up to its present length.
    pub(super) fn of(file: File, before: Metadata) -> io::Result<Self> {
        let (size, from) = (before.len(), Box::new(file.try_clone()?.take(before.len())));
        Ok(Self { from, size, before: Some((file, before)) })
    }

    pub(super) fn of_stream(from: impl Read + 'static) -> Self {
        Self { from: Box::new(from), size: 0, before: None }
    }

    /// Sends it to a path of a project. Returns its length. After a lost connection it goes on over the next one.
    pub(super) async fn send(
        mut self,
        to: (Workspace, ProjectId),
        path: &str,
        connect: impl AsyncFn() -> anyhow::Result<(Workspace, ProjectId)>,
    ) -> anyhow::Result<u64> {
        let (mut to, bar) = (Receiver { to: Some(to), path, connect }, file_bar(path, self.size));
        let upload_id = format!("{:032x}", rand::random::<u128>());
        let (mut offset, mut bytes) = (0, self.part()?);
        loop {
            let next = self.part()?;
            let is_last = next.is_empty();
            if is_last {
                self.check_unchanged(path)?;
            }
            to.take(UploadPart { upload_id: &upload_id, offset, bytes: &bytes, is_last }).await?;
            offset += bytes.len() as u64;
            bar.set_position(offset);
            if is_last {
                bar.finish_and_clear();
                return Ok(offset);
            }
            bytes = next;
        }
    }

    /// The next part; empty at the end.
    fn part(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut part = Vec::new();
        let read = (&mut self.from).take(UPLOAD_PART_MAX as u64).read_to_end(&mut part);
        read.context("it cannot be read")?;
        Ok(part)
    }

    fn check_unchanged(&self, path: &str) -> anyhow::Result<()> {
        let Some((file, before)) = &self.before else { return Ok(()) };
        match same(before, &file.metadata()?) {
            true => Ok(()),
            false => Err(anyhow!(
                "{path} was not sent: the file was changed meanwhile, try again when it rests"
            )),
        }
    }
}

/// The server that takes the parts.
struct Receiver<'a, C> {
    /// `None` while there is no connection.
    to: Option<(Workspace, ProjectId)>,
    path: &'a str,
    connect: C,
}

impl<C: AsyncFn() -> anyhow::Result<(Workspace, ProjectId)>> Receiver<'_, C> {
    async fn take(&mut self, part: UploadPart<'_>) -> anyhow::Result<()> {
        for _ in 0..TRIES {
            match self.try_take(part).await {
                Err(error) if is_lost(&error) => self.to = None,
                taken => return taken,
            }
            sleep(MOMENT).await;
        }
        self.try_take(part).await
    }

    async fn try_take(&mut self, part: UploadPart<'_>) -> anyhow::Result<()> {
        let mut to = match self.to.take() {
            Some(to) => to,
            None => (self.connect)().await?,
        };
        to.0.upload_part(to.1, self.path, part).await?;
        self.to = Some(to);
        Ok(())
    }
}

/// Whether the connection was lost, or there is none for now.
fn is_lost(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(ClientError::is_unreachable)
}
