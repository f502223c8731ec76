//! Files of projects, as the projects' users.

use std::{sync::Arc, time::Duration};

use files::{FileError, RelPath, Root, change, list, read, write};
use protocol::workspace::{
    ClientMessage, ProjectId, ServerMessage, base64,
    client::{
        CreateProjectEntry, ListProjectFiles, ProjectFileChunk, ProjectFileContent,
        ProjectFileList, ProjectFileSaved, ProjectFileWriteConflict, ProjectFsActionResult,
        ReadProjectFile, ReadProjectFileChunk, TransferProjectEntry, UploadProjectFile,
        WriteProjectFile,
    },
    limits::UPLOAD_MAX,
};
use tokio::{task, time::timeout};

use super::{Answer, Asker};
use crate::{refusal::Refusal, work::Shared};

/// How long a request may take: some directories lie on machines that are gone.
const WITHIN: Duration = Duration::from_secs(15 * 60);

pub(super) async fn answer(asker: &Asker, message: ClientMessage) -> Answer {
    match message {
        ClientMessage::WatchProjectFiles(of) => {
            let place = super::place(&asker.shared, of.project_id).await?;
            let (watching, outbox) = (&asker.watching, asker.outbox.clone());
            watching.start(&asker.shared, of.project_id, &place, outbox).await?;
            Ok(None)
        }
        ClientMessage::UnwatchProjectFiles(of) => {
            asker.watching.end(of.project_id);
            Ok(None)
        }
        other => on_a_thread(asker, other).await.map(Some),
    }
}

async fn on_a_thread(asker: &Asker, message: ClientMessage) -> Result<ServerMessage, Refusal> {
    let turn = Arc::clone(&asker.shared.door.files).acquire_owned();
    let turn = timeout(WITHIN, turn).await.map_err(|_| not_answering())?;
    let turn = turn.map_err(|error| Refusal::failed(&error))?;
    let (shared, who) = (Arc::clone(&asker.shared), asker.me.who.clone());
    let serving = task::spawn_blocking(move || {
        // Kept until it is done, however long: else those that hang would take all threads.
        let _turn = turn;
        serve(&shared, &who, message)
    });
    let served = timeout(WITHIN, serving).await;
    served.map_err(|_| not_answering())?.map_err(|error| Refusal::failed(&error))?
}

fn not_answering() -> Refusal {
    Refusal::invalid("the files do not answer")
}

fn serve(shared: &Shared, who: &str, message: ClientMessage) -> Result<ServerMessage, Refusal> {
    match message {
        ClientMessage::ListProjectFiles(asked) => listed(shared, asked),
        ClientMessage::ReadProjectFile(asked) => content(shared, asked),
        ClientMessage::ReadProjectFileChunk(asked) => chunk(shared, asked),
        changing => {
            let (what, target) = changes(&changing);
            let changed = changed(shared, changing);
            let outcome = changed.as_ref().map_or_else(ToString::to_string, |_| "done".to_owned());
            shared.audit.note(who, what, &target, &outcome);
            changed
        }
    }
}

/// What a message changes, for the audit log.
fn changes(message: &ClientMessage) -> (&'static str, String) {
    match message {
        ClientMessage::WriteProjectFile(of) => ("file.write", target(of.project_id, &of.path)),
        ClientMessage::CreateProjectFile(of) => ("file.create", target(of.project_id, &of.path)),
        ClientMessage::CreateProjectDirectory(of) => {
            ("directory.create", target(of.project_id, &of.path))
        }
        ClientMessage::MoveProjectEntry(of) => ("file.move", moved(of)),
        ClientMessage::CopyProjectEntry(of) => ("file.copy", moved(of)),
        ClientMessage::DeleteProjectEntry(of) => ("file.delete", target(of.project_id, &of.path)),
        ClientMessage::UploadProjectFile(of) => ("file.upload", target(of.project_id, &of.path)),
        _ => ("file.other", String::new()),
    }
}

fn target(project: ProjectId, path: &str) -> String {
    format!("{project}:{path}")
}

fn moved(of: &TransferProjectEntry) -> String {
    format!("{}:{} to {}", of.project_id, of.from, of.to)
}

fn changed(shared: &Shared, message: ClientMessage) -> Result<ServerMessage, Refusal> {
    match message {
        ClientMessage::WriteProjectFile(asked) => written(shared, asked),
        ClientMessage::CreateProjectFile(asked) => created(shared, asked, change::file),
        ClientMessage::CreateProjectDirectory(asked) => created(shared, asked, change::directory),
        ClientMessage::MoveProjectEntry(asked) => transferred(shared, asked, change::move_entry),
        ClientMessage::CopyProjectEntry(asked) => transferred(shared, asked, change::copy),
        ClientMessage::DeleteProjectEntry(asked) => {
            at(shared, asked.project_id, |root| {
                change::delete(root, &RelPath::parse(&asked.path)?)
            })?;
            Ok(done(asked.project_id, asked.request_id, asked.path))
        }
        ClientMessage::UploadProjectFile(asked) => uploaded(shared, asked),
        other => Err(Refusal::Invalid(format!("{} is not about files", other.name()))),
    }
}

fn listed(shared: &Shared, asked: ListProjectFiles) -> Result<ServerMessage, Refusal> {
    let ListProjectFiles { project_id, path } = asked;
    let entries = at(shared, project_id, |root| {
        list::list(root, &RelPath::parse_optional(path.as_deref())?)
    })?;
    let path = path.unwrap_or_default();
    Ok(ServerMessage::ProjectFileList(ProjectFileList { project_id, path, entries }))
}

fn content(shared: &Shared, asked: ReadProjectFile) -> Result<ServerMessage, Refusal> {
    let ReadProjectFile { project_id, path } = asked;
    let text = at(shared, project_id, |root| read::text(root, &RelPath::parse(&path)?))?;
    let read::Text { content, sha256 } = text;
    let content = ProjectFileContent { project_id, path, content, sha256 };
    Ok(ServerMessage::ProjectFileContent(content))
}

fn chunk(shared: &Shared, asked: ReadProjectFileChunk) -> Result<ServerMessage, Refusal> {
    let ReadProjectFileChunk { request_id, project_id, path, offset, len } = asked;
    let chunk =
        at(shared, project_id, |root| read::chunk(root, &RelPath::parse(&path)?, offset, len))?;
    let read::Chunk { data, offset, total_size, eof } = chunk;
    let data = base64::encode(&data);
    let chunk = ProjectFileChunk { request_id, data, offset, total_size, eof };
    Ok(ServerMessage::ProjectFileChunk(chunk))
}

fn written(shared: &Shared, asked: WriteProjectFile) -> Result<ServerMessage, Refusal> {
    let WriteProjectFile { project_id, path, content, base_sha256 } = asked;
    let written = tried(shared, project_id, |root| {
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
}

fn created(
    shared: &Shared,
    asked: CreateProjectEntry,
    create: impl FnOnce(&Root, &RelPath) -> Result<(), FileError> + Send,
) -> Result<ServerMessage, Refusal> {
    let CreateProjectEntry { project_id, path, request_id } = asked;
    at(shared, project_id, |root| create(root, &RelPath::parse(&path)?))?;
    Ok(done(project_id, request_id, path))
}

fn transferred(
    shared: &Shared,
    asked: TransferProjectEntry,
    transfer: impl FnOnce(&Root, &RelPath, &RelPath) -> Result<(), FileError> + Send,
) -> Result<ServerMessage, Refusal> {
    let TransferProjectEntry { project_id, from, to, request_id } = asked;
    at(shared, project_id, |root| transfer(root, &RelPath::parse(&from)?, &RelPath::parse(&to)?))?;
    Ok(done(project_id, request_id, to))
}

fn uploaded(shared: &Shared, asked: UploadProjectFile) -> Result<ServerMessage, Refusal> {
    let UploadProjectFile { project_id, path, data, request_id } = asked;
    let bytes = base64::decode(&data, UPLOAD_MAX).map_err(|error| Refusal::failed(&error))?;
    drop(data);
    at(shared, project_id, |root| change::upload(root, &RelPath::parse(&path)?, &bytes))?;
    Ok(done(project_id, request_id, path))
}

fn done(project_id: ProjectId, request_id: String, path: String) -> ServerMessage {
    let result = ProjectFsActionResult { project_id, request_id, path };
    ServerMessage::ProjectFsActionResult(result)
}

fn at<T: Send>(
    shared: &Shared,
    project: ProjectId,
    act: impl FnOnce(&Root) -> Result<T, FileError> + Send,
) -> Result<T, Refusal> {
    tried(shared, project, act)?.map_err(|error| Refusal::failed(&error))
}

/// Does something in a project's directory, as its user.
fn tried<T: Send>(
    shared: &Shared,
    project: ProjectId,
    act: impl FnOnce(&Root) -> Result<T, FileError> + Send,
) -> Result<Result<T, FileError>, Refusal> {
    let place = shared.projects.place(project)?;
    let act = || {
        let root = Root::open(&place.dir)?;
        act(&match &shared.unfinished {
            Some(unfinished) => root.noting(unfinished),
            None => root,
        })
    };
    match &place.user {
        None => Ok(act()),
        Some(user) => process::as_user(user, act).map_err(|error| Refusal::failed(&error)),
    }
}
