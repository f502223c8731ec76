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

pub(crate) async fn watch(asker: &Asker, asked: OfProject) -> Answer {
    let folder = asker.services.projects.folder_soon(asked.project_id).await?;
    let (budget, outbox) = (&asker.services.watches, asker.outbox.clone());
    asker.watch.start(budget, asked.project_id, &folder, outbox).await?;
    Ok(None)
}

pub(crate) async fn unwatch(asker: &Asker, asked: OfProject) -> Answer {
    asker.watch.end(asked.project_id);
    Ok(None)
}

pub(crate) async fn list(asker: &Asker, asked: ListProjectFiles) -> Answer {
    let wants_parts = asked.after.is_some();
    let listing = asker.services.files.run(move |files| {
        let ListProjectFiles { project_id, path, after } = asked;
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

pub(crate) async fn content(asker: &Asker, asked: ReadProjectFile) -> Answer {
    reading(asker, move |files| {
        let ReadProjectFile { project_id, path } = asked;
        let text = files.act(project_id, |root| read::text(root, &RelPath::parse(&path)?))?;
        let read::Text { content, sha256 } = text;
        let content = ProjectFileContent { project_id, path, content, sha256 };
        Ok(ServerMessage::ProjectFileContent(content))
    })
    .await
}

pub(crate) async fn chunk(asker: &Asker, asked: ReadProjectFileChunk) -> Answer {
    reading(asker, move |files| {
        let ReadProjectFileChunk { request_id, project_id, path, offset, len, check } = asked;
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

pub(crate) async fn write(asker: &Asker, asked: WriteProjectFile) -> Answer {
    let target = target(asked.project_id, &asked.path);
    changing(asker, "file.write", target, move |files| {
        let WriteProjectFile { project_id, path, content, base_sha256 } = asked;
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

pub(crate) async fn create_file(asker: &Asker, asked: CreateProjectEntry) -> Answer {
    create(asker, "file.create", asked, change::file).await
}

pub(crate) async fn create_directory(asker: &Asker, asked: CreateProjectEntry) -> Answer {
    create(asker, "directory.create", asked, change::directory).await
}

pub(crate) async fn move_entry(asker: &Asker, asked: TransferProjectEntry) -> Answer {
    transfer(asker, "file.move", asked, change::move_entry).await
}

pub(crate) async fn copy(asker: &Asker, asked: TransferProjectEntry) -> Answer {
    transfer(asker, "file.copy", asked, change::copy).await
}

pub(crate) async fn delete(asker: &Asker, asked: DeleteProjectEntry) -> Answer {
    let target = target(asked.project_id, &asked.path);
    changing(asker, "file.delete", target, move |files| {
        files.act(asked.project_id, |root| change::delete(root, &RelPath::parse(&asked.path)?))?;
        Ok(done(asked.project_id, asked.request_id, asked.path))
    })
    .await
}

pub(crate) async fn upload(asker: &Asker, asked: UploadProjectFile) -> Answer {
    let target = target(asked.project_id, &asked.path);
    changing(asker, "file.upload", target, move |files| {
        let UploadProjectFile { project_id, path, data, request_id } = asked;
        let bytes = base64::decode(&data, UPLOAD_MAX).map_err(|error| Refusal::failed(&error))?;
        // The text takes up to 34 MiB, and only its decoded copy is still needed.
        drop(data);
        files.act(project_id, |root| change::upload(root, &RelPath::parse(&path)?, &bytes))?;
        Ok(done(project_id, request_id, path))
    })
    .await
}

/// Takes a part of an upload. The log has its end, and parts that are refused.
pub(crate) async fn upload_part(asker: &Asker, asked: UploadProjectFilePart) -> Answer {
    let target = target(asked.project_id, &asked.path);
    let (audit, me) = (Arc::clone(&asker.services.audit), Arc::clone(&asker.me));
    let files = &asker.services.files;
    let taken = files.run(move |files| {
        let (project_id, request_id) = (asked.project_id, asked.request_id.clone());
        let taken = part(asked).and_then(|part| files.uploads.take(files, &part).map(|()| part));
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

fn part(asked: UploadProjectFilePart) -> Result<Part, Refusal> {
    let UploadProjectFilePart { project_id, path, upload_id, offset, data, done, .. } = asked;
    let bytes = base64::decode(&data, UPLOAD_PART_MAX).map_err(|error| Refusal::failed(&error))?;
    Ok(Part { project: project_id, path, upload_id, offset, bytes, is_last: done })
}

async fn create(
    asker: &Asker,
    what: &'static str,
    asked: CreateProjectEntry,
    create: fn(&Root, &RelPath) -> Result<(), FileError>,
) -> Answer {
    let target = target(asked.project_id, &asked.path);
    changing(asker, what, target, move |files| {
        let CreateProjectEntry { project_id, path, request_id } = asked;
        files.act(project_id, |root| create(root, &RelPath::parse(&path)?))?;
        Ok(done(project_id, request_id, path))
    })
    .await
}

async fn transfer(
    asker: &Asker,
    what: &'static str,
    asked: TransferProjectEntry,
    transfer: fn(&Root, &RelPath, &RelPath) -> Result<(), FileError>,
) -> Answer {
    let target = format!("{}:{} to {}", asked.project_id, asked.from, asked.to);
    changing(asker, what, target, move |files| {
        let TransferProjectEntry { project_id, from, to, request_id } = asked;
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
