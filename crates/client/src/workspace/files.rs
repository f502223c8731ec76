//! Files of projects. Paths begin at the project's directory.

use std::time::Duration;

use protocol::workspace::{
    ClientMessage, FileEntry, ProjectId, ServerMessage, base64,
    client::{
        CreateProjectEntry, DeleteProjectEntry, FileVersion, ListProjectFiles, ProjectFileChunk,
        ReadProjectFileChunk, TransferProjectEntry, UploadProjectFile, UploadProjectFilePart,
        WriteProjectFile,
    },
    limits::{CHUNK_MAX, UPLOAD_MAX},
};

use super::{answer::Answer, connection::Workspace, sessions::SOON};
use crate::error::ClientError;

/// The deadline of a change of files: directories are copied and deleted with all that is in them,
/// and 25 MiB may be sent over a slow network.
const CHANGE: Duration = Duration::from_secs(600);
/// The deadline for a window of a file.
const WINDOW: Duration = Duration::from_secs(120);

/// One window of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The bytes.
    pub data: Vec<u8>,
    /// The length of the file, in bytes.
    pub total_size: u64,
    /// The file and its version; `None` from older servers.
    pub version: Option<FileVersion>,
    /// The digest of everything before the window, if it was requested.
    pub sha256: Option<String>,
}

/// The request for a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRequest {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Its length at most, in bytes.
    pub len: u64,
    /// Whether the digest of everything before it is wanted.
    pub check: bool,
}

/// A part of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadPart<'a> {
    /// Names the upload in its project: a random text.
    pub upload_id: &'a str,
    /// Where the part begins in the file, in bytes.
    pub offset: u64,
    /// Its bytes, [`UPLOAD_PART_MAX`](protocol::workspace::limits::UPLOAD_PART_MAX) at most.
    pub bytes: &'a [u8],
    /// Whether the file ends with it.
    pub is_last: bool,
}

impl Workspace {
    /// A part of the entries of a directory of a project, and the mark at which the next part begins. An
    /// empty path is the project's own directory, an empty mark the first part.
    ///
    /// # Errors
    /// As [`Workspace::request`], and this holds for all methods below, too;
    /// [`ClientError::NotFound`] when there is no such directory.
    pub async fn list_files(
        &mut self,
        project_id: ProjectId,
        path: &str,
        after: &str,
    ) -> Result<(Vec<FileEntry>, Option<String>), ClientError> {
        let (path, after) = (Some(path.to_owned()), Some(after.to_owned()));
        let request = ListProjectFiles { project_id, path, after };
        let request = ClientMessage::ListProjectFiles(request);
        self.request(&request, SOON, |reply| match reply {
            ServerMessage::ProjectFileList(list) if list.project_id == project_id => {
                Answer::Is((list.entries, list.next))
            }
            ServerMessage::ProjectFileError(error) if error.project_id == project_id => {
                Answer::No(error.message)
            }
            other => other.into(),
        })
        .await
    }

    /// The entry of a directory with this name; `None` if the directory has no such entry.
    ///
    /// # Errors
    /// As [`Workspace::list_files`].
    pub async fn find_file(
        &mut self,
        project_id: ProjectId,
        directory: &str,
        name: &str,
    ) -> Result<Option<FileEntry>, ClientError> {
        let mut after = Some(String::new());
        while let Some(mark) = after {
            let (entries, next) = self.list_files(project_id, directory, &mark).await?;
            if let Some(found) = entries.into_iter().find(|entry| entry.name == name) {
                return Ok(Some(found));
            }
            after = next;
        }
        Ok(None)
    }

    /// One window of a file.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such file.
    pub async fn read_window(
        &mut self,
        project_id: ProjectId,
        path: &str,
        window: WindowRequest,
    ) -> Result<Window, ClientError> {
        let id = self.request_id();
        let (request_id, path) = (id.clone(), path.to_owned());
        let WindowRequest { offset, len, check } = window;
        let request = ReadProjectFileChunk { request_id, project_id, path, offset, len, check };
        let request = ClientMessage::ReadProjectFileChunk(request);
        let within = if check { CHANGE } else { WINDOW };
        let chunk = self.request(&request, within, |reply| match reply {
            ServerMessage::ProjectFileChunk(chunk) if chunk.request_id == id => Answer::Is(chunk),
            ServerMessage::ProjectFileChunkError(error) if error.request_id == id => {
                Answer::No(error.message)
            }
            other => other.into(),
        });
        let chunk = chunk.await?;
        self.window(chunk, window)
    }

    fn window(
        &self,
        chunk: ProjectFileChunk,
        request: WindowRequest,
    ) -> Result<Window, ClientError> {
        if chunk.offset != request.offset {
            return Err(self.strange(format!("it sent the file from {} on", chunk.offset)));
        }
        let data = base64::decode(&chunk.data, CHUNK_MAX);
        let data = data.map_err(|error| self.strange(error.to_string()))?;
        if data.is_empty() && request.len > 0 && !chunk.eof {
            return Err(self.strange("it sent nothing of a file that goes on"));
        }
        let ProjectFileChunk { total_size, version, sha256, .. } = chunk;
        Ok(Window { data, total_size, version, sha256 })
    }

    /// Creates a file of any bytes, 25 MiB at most. The file must not exist.
    ///
    /// # Errors
    /// [`ClientError::Declined`] when it is too large, or exists.
    pub async fn upload(
        &mut self,
        project_id: ProjectId,
        path: &str,
        bytes: &[u8],
    ) -> Result<(), ClientError> {
        if bytes.len() > UPLOAD_MAX {
            let words = format!(
                "{path} has {} bytes, and at most {} MiB can be sent at once",
                bytes.len(),
                UPLOAD_MAX >> 20
            );
            return Err(ClientError::Declined { words });
        }
        let (path, data) = (path.to_owned(), base64::encode(bytes));
        let upload = |request_id| UploadProjectFile { project_id, path, data, request_id };
        self.change(|id| ClientMessage::UploadProjectFile(upload(id))).await
    }

    /// Sends a part of a new file of any size. After a lost connection the same part can be sent again over another one.
    ///
    /// # Errors
    /// [`ClientError::Declined`] when parts before it are missing, or the file exists.
    pub async fn upload_part(
        &mut self,
        project_id: ProjectId,
        path: &str,
        part: UploadPart<'_>,
    ) -> Result<(), ClientError> {
        let UploadPart { offset, is_last: done, .. } = part;
        let (path, upload_id) = (path.to_owned(), part.upload_id.to_owned());
        let data = base64::encode(part.bytes);
        let upload = |request_id| {
            let part = UploadProjectFilePart {
                project_id,
                path,
                request_id,
                upload_id,
                offset,
                data,
                done,
            };
            ClientMessage::UploadProjectFilePart(part)
        };
        self.change(upload).await
    }

    /// Writes a text file, 1 MiB at most, over any earlier content. The file is written completely
    /// or not at all.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn write_text(
        &mut self,
        project_id: ProjectId,
        path: &str,
        content: String,
    ) -> Result<(), ClientError> {
        let (path, base_sha256) = (path.to_owned(), None);
        let request = WriteProjectFile { project_id, path, content, base_sha256 };
        self.request(&ClientMessage::WriteProjectFile(request), SOON, |reply| match reply {
            ServerMessage::ProjectFileSaved(saved) if saved.project_id == project_id => {
                Answer::Is(())
            }
            ServerMessage::ProjectFileError(error) if error.project_id == project_id => {
                Answer::No(error.message)
            }
            ServerMessage::ProjectFileWriteConflict(it) if it.project_id == project_id => {
                Answer::No(format!("{} was changed meanwhile", it.path))
            }
            other => other.into(),
        })
        .await
    }

    /// Creates a directory. It must not exist, and its parent must.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn make_directory(
        &mut self,
        project_id: ProjectId,
        path: &str,
    ) -> Result<(), ClientError> {
        let path = path.to_owned();
        let create = |request_id| CreateProjectEntry { project_id, path, request_id };
        self.change(|id| ClientMessage::CreateProjectDirectory(create(id))).await
    }

    /// Moves a file or directory. The destination must not exist.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is nothing to move.
    pub async fn move_entry(
        &mut self,
        project_id: ProjectId,
        from: &str,
        to: &str,
    ) -> Result<(), ClientError> {
        let transfer = transfer(project_id, from, to);
        self.change(|id| ClientMessage::MoveProjectEntry(transfer(id))).await
    }

    /// Copies a file or directory. The destination must not exist.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is nothing to copy.
    pub async fn copy_entry(
        &mut self,
        project_id: ProjectId,
        from: &str,
        to: &str,
    ) -> Result<(), ClientError> {
        let transfer = transfer(project_id, from, to);
        self.change(|id| ClientMessage::CopyProjectEntry(transfer(id))).await
    }

    /// Deletes a file, or a directory with all that is in it.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is nothing to delete.
    pub async fn delete_entry(
        &mut self,
        project_id: ProjectId,
        path: &str,
    ) -> Result<(), ClientError> {
        let path = path.to_owned();
        let delete = |request_id| DeleteProjectEntry { project_id, path, request_id };
        self.change(|id| ClientMessage::DeleteProjectEntry(delete(id))).await
    }

    /// Sends the change that `request` makes with a new request id, and waits for the answer with
    /// that id.
    async fn change(
        &mut self,
        request: impl FnOnce(String) -> ClientMessage,
    ) -> Result<(), ClientError> {
        let id = self.request_id();
        let request = request(id.clone());
        self.request(&request, CHANGE, |reply| match reply {
            ServerMessage::ProjectFsActionResult(done) if done.request_id == id => Answer::Is(()),
            ServerMessage::ProjectFsActionError(error) if error.request_id == id => {
                Answer::No(error.message)
            }
            other => other.into(),
        })
        .await
    }
}

fn transfer(
    project_id: ProjectId,
    from: &str,
    to: &str,
) -> impl FnOnce(String) -> TransferProjectEntry {
    let (from, to) = (from.to_owned(), to.to_owned());
    move |request_id| TransferProjectEntry { project_id, from, to, request_id }
}
