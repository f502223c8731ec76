//! Requests about the files of projects.

use std::sync::Arc;

use files::{FileError, RelPath, Root, change, list, read, write};
use protocol::workspace::{
    ProjectId, ServerMessage, base64,
    client::{
        ClientNotice, CreateProjectEntry, DeleteProjectEntry, ListProjectFiles, Notice,
        NoticeLevel, OfProject, ProjectFileChunk, ProjectFileContent, ProjectFileList,
        ProjectFileSaved, ProjectFileWriteConflict, ProjectFsActionResult, ReadProjectFile,
        ReadProjectFileChunk, TransferProjectEntry, UploadProjectFile, UploadProjectFilePart,
        WriteProjectFile, connection::DIRECTORY_CUT,
    },
    limits::{UPLOAD_MAX, UPLOAD_PART_MAX},
};
use workspace::Refusal;

use super::asker::{Answer, Asker};
use crate::{
    project_files::ProjectFiles,
    uploads::{self, Part},
};

pub(crate) async fn watch(asker: &Asker, request: OfProject) -> Answer {
    let folder = asker.services.projects.folder_soon(request.project_id).await?;
    let (budget, outbox) = (&asker.services.watches, asker.outbox.clone());
    asker.watch.start(budget, request.project_id, &folder, outbox).await?;
    Ok(None)
}

pub(crate) async fn unwatch(asker: &Asker, request: OfProject) -> Answer {
    asker.watch.end(request.project_id);
    Ok(None)
}

pub(crate) async fn list(asker: &Asker, request: ListProjectFiles) -> Answer {
    let wants_parts = request.after.is_some();
    let listing = asker.services.files.run(move |files| {
        let ListProjectFiles { project_id, path, after } = request;
        let page = files.act(project_id, |root| {
            list::list(root, &RelPath::parse_optional(path.as_deref())?, after.as_deref())
        })?;
        let (path, list::Page { entries, next }) = (path.unwrap_or_default(), page);
        Ok(ProjectFileList { project_id, path, entries, next })
    });
    let listing = listing.await?;
    if listing.next.is_some() && !wants_parts {
        tell_cut(asker, &listing.path, listing.entries.len());
    }
    Ok(Some(ServerMessage::ProjectFileList(listing)))
}

/// Tells a client that knows of no parts that a directory has more entries than it gets.
pub(super) fn tell_cut(asker: &Asker, path: &str, entries: usize) {
    let notice = Notice {
        level: NoticeLevel::Warning,
        code: DIRECTORY_CUT.to_owned(),
        message: format!("only the first {entries} entries are listed; there are more"),
        detail: Some(path.to_owned()).filter(|path| !path.is_empty()),
        session_id: None,
    };
    // An error means that the client has gone.
    let _ = asker.outbox.push(ServerMessage::ClientNotice(ClientNotice { notice }).encode());
}

pub(crate) async fn content(asker: &Asker, request: ReadProjectFile) -> Answer {
    reading(asker, move |files| {
        let ReadProjectFile { project_id, path } = request;
        let text = files.act(project_id, |root| read::text(root, &RelPath::parse(&path)?))?;
        let read::Text { content, sha256 } = text;
        let content = ProjectFileContent { project_id, path, content, sha256 };
        Ok(ServerMessage::ProjectFileContent(content))
    })
    .await
}

pub(crate) async fn chunk(asker: &Asker, request: ReadProjectFileChunk) -> Answer {
    reading(asker, move |files| {
        let ReadProjectFileChunk { request_id, project_id, path, offset, len, check } = request;
        let chunk = files.act(project_id, |root| {
            read::chunk(root, &RelPath::parse(&path)?, offset, len, check)
        })?;
        let read::Chunk { data, offset, total_size, eof, version, sha256 } = chunk;
        let (data, version) = (base64::encode(&data), Some(version));
        let chunk = ProjectFileChunk { request_id, data, offset, total_size, eof, version, sha256 };
        Ok(ServerMessage::ProjectFileChunk(chunk))
    })
    .await
}

pub(crate) async fn write(asker: &Asker, request: WriteProjectFile) -> Answer {
    let target = target(request.project_id, &request.path);
    changing(asker, "file.write", target, move |files| {
        let WriteProjectFile { project_id, path, content, base_sha256 } = request;
        let written = files.try_act(project_id, |root| {
            write::text(root, &RelPath::parse(&path)?, &content, base_sha256.as_deref())
        })?;
        match written {
            Ok(sha256) => {
                let saved = ProjectFileSaved { project_id, path, sha256 };
                Ok(ServerMessage::ProjectFileSaved(saved))
            }
            Err(FileError::Conflict { current_sha256 }) => {
                let conflict = ProjectFileWriteConflict { project_id, path, current_sha256 };
                Ok(ServerMessage::ProjectFileWriteConflict(conflict))
            }
            Err(error) => Err(Refusal::failed(&error)),
        }
    })
    .await
}

pub(crate) async fn create_file(asker: &Asker, request: CreateProjectEntry) -> Answer {
    create(asker, "file.create", request, change::file).await
}

pub(crate) async fn create_directory(asker: &Asker, request: CreateProjectEntry) -> Answer {
    create(asker, "directory.create", request, change::directory).await
}

pub(crate) async fn move_entry(asker: &Asker, request: TransferProjectEntry) -> Answer {
    transfer(asker, "file.move", request, change::move_entry).await
}

pub(crate) async fn copy(asker: &Asker, request: TransferProjectEntry) -> Answer {
    transfer(asker, "file.copy", request, change::copy).await
}

pub(crate) async fn delete(asker: &Asker, request: DeleteProjectEntry) -> Answer {
    let target = target(request.project_id, &request.path);
    changing(asker, "file.delete", target, move |files| {
        files.act(request.project_id, |root| {
            change::delete(root, &RelPath::parse(&request.path)?)
        })?;
        Ok(done(request.project_id, request.request_id, request.path))
    })
    .await
}

pub(crate) async fn upload(asker: &Asker, request: UploadProjectFile) -> Answer {
    let target = target(request.project_id, &request.path);
    changing(asker, "file.upload", target, move |files| {
        let UploadProjectFile { project_id, path, data, request_id } = request;
        let bytes = base64::decode(&data, UPLOAD_MAX).map_err(|error| Refusal::failed(&error))?;
        // The text takes up to 34 MiB, and only its decoded copy is still needed.
        drop(data);
        files.act(project_id, |root| change::upload(root, &RelPath::parse(&path)?, &bytes))?;
        Ok(done(project_id, request_id, path))
    })
    .await
}

/// Takes a part of an upload. The audit log gets the last part only, and parts that are refused.
pub(crate) async fn upload_part(asker: &Asker, request: UploadProjectFilePart) -> Answer {
    let target = target(request.project_id, &request.path);
    let (audit, me) = (Arc::clone(&asker.services.audit), Arc::clone(&asker.me));
    let files = &asker.services.files;
    let taken = files.run(move |files| {
        let (project_id, request_id) = (request.project_id, request.request_id.clone());
        let taken = part(request).and_then(|part| files.uploads.take(files, &part).map(|()| part));
        if taken.as_ref().map_or(true, |part| part.is_last) {
            audit.note_outcome(&me.who, "file.upload", &target, &taken);
        }
        taken.map(|part| done(project_id, request_id, part.path))
    });
    let taken = taken.await;
    if files.uploads.needs_watch() {
        tokio::spawn(uploads::watch(Arc::downgrade(files)));
    }
    taken.map(Some)
}

fn part(request: UploadProjectFilePart) -> Result<Part, Refusal> {
    let UploadProjectFilePart { project_id, path, upload_id, offset, data, done, .. } = request;
    let bytes = base64::decode(&data, UPLOAD_PART_MAX).map_err(|error| Refusal::failed(&error))?;
    Ok(Part { project: project_id, path, upload_id, offset, bytes, is_last: done })
}

async fn create(
    asker: &Asker,
    what: &'static str,
    request: CreateProjectEntry,
    create: fn(&Root, &RelPath) -> Result<(), FileError>,
) -> Answer {
    let target = target(request.project_id, &request.path);
    changing(asker, what, target, move |files| {
        let CreateProjectEntry { project_id, path, request_id } = request;
        files.act(project_id, |root| create(root, &RelPath::parse(&path)?))?;
        Ok(done(project_id, request_id, path))
    })
    .await
}

async fn transfer(
    asker: &Asker,
    what: &'static str,
    request: TransferProjectEntry,
    transfer: fn(&Root, &RelPath, &RelPath) -> Result<(), FileError>,
) -> Answer {
    let target = format!("{}:{} to {}", request.project_id, request.from, request.to);
    changing(asker, what, target, move |files| {
        let TransferProjectEntry { project_id, from, to, request_id } = request;
        files.act(project_id, |root| {
            transfer(root, &RelPath::parse(&from)?, &RelPath::parse(&to)?)
        })?;
        Ok(done(project_id, request_id, to))
    })
    .await
}

async fn reading(
    asker: &Asker,
    read: impl FnOnce(&ProjectFiles) -> Result<ServerMessage, Refusal> + Send + 'static,
) -> Answer {
    asker.services.files.run(read).await.map(Some)
}

/// Changes files, and notes the change in the audit log. The thread writes the note, because it
/// runs to its end even if nobody waits for it any more.
async fn changing(
    asker: &Asker,
    what: &'static str,
    target: String,
    change: impl FnOnce(&ProjectFiles) -> Result<ServerMessage, Refusal> + Send + 'static,
) -> Answer {
    let (audit, me) = (Arc::clone(&asker.services.audit), Arc::clone(&asker.me));
    let changed = asker.services.files.run(move |files| {
        let changed = change(files);
        audit.note_outcome(&me.who, what, &target, &changed);
        changed
    });
    changed.await.map(Some)
}

fn target(project: ProjectId, path: &str) -> String {
    format!("{project}:{path}")
}

fn done(project_id: ProjectId, request_id: String, path: String) -> ServerMessage {
    let result = ProjectFsActionResult { project_id, request_id, path };
    ServerMessage::ProjectFsActionResult(result)
}
