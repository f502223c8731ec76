//! Files, of projects and of the host. Paths of projects are relative to the project's directory.

use serde::{Deserialize, Serialize};

use crate::workspace::{
    bounded::{maybe_text, or_default, text},
    ids::ProjectId,
    limits::{PATH_MAX, REQUEST_ID_MAX},
};

/// `list_directory`: a directory of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListDirectory {
    /// Its path.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub path: String,
    /// Which part of a directory with many entries: what follows this mark, which is `next` of the part
    /// before; empty for the first one. A client that leaves it out gets a notice that there is
    /// more.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "maybe_text::<_, PATH_MAX>"
    )]
    pub after: Option<String>,
}

/// `directory_listing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryListing {
    /// Which directory.
    pub path: String,
    /// The directory that it is in; none for the root.
    pub parent: Option<String>,
    /// The names in it, or a part of them; those of directories end with `/`.
    pub entries: Vec<String>,
    /// Where the next part begins; none after the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// `list_project_files`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListProjectFiles {
    /// The project.
    pub project_id: ProjectId,
    /// Which directory; none or empty: the project's own.
    #[serde(default, deserialize_with = "maybe_text::<_, PATH_MAX>")]
    pub path: Option<String>,
    /// Which part of a directory with many entries: what follows this mark, which is `next` of the part
    /// before; empty for the first one. A client that leaves it out gets a notice that there is
    /// more.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "maybe_text::<_, PATH_MAX>"
    )]
    pub after: Option<String>,
}

/// `project_file_list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileList {
    /// The project.
    pub project_id: ProjectId,
    /// Which directory.
    pub path: String,
    /// Its entries, or a part of them: directories first, each kind in alphabetical order.
    pub entries: Vec<FileEntry>,
    /// Where the next part begins; none after the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its path in the project.
    pub path: String,
    /// Its kind.
    pub kind: FileKind,
    /// Its length in bytes; 0 for a directory.
    pub size: u64,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A directory.
    Dir,
    /// A file.
    File,
    /// A symbolic link.
    Symlink,
}

/// `read_project_file`: a file as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadProjectFile {
    /// The project.
    pub project_id: ProjectId,
    /// Its path.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub path: String,
}

/// `project_file_content`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileContent {
    /// The project.
    pub project_id: ProjectId,
    /// Which file.
    pub path: String,
    /// Its content.
    pub content: String,
    /// The SHA-256 of its bytes, in lower-case hex.
    pub sha256: String,
}

/// `project_file_error`: a file was not listed, read or written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileError {
    /// The project.
    pub project_id: ProjectId,
    /// The requested path.
    pub path: String,
    /// Why, for people.
    pub message: String,
}

/// `read_project_file_chunk`: one window of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadProjectFileChunk {
    /// The id that its answer will have.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub request_id: String,
    /// The project.
    pub project_id: ProjectId,
    /// Which file.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub path: String,
    /// Where the window begins, in bytes.
    pub offset: u64,
    /// How long it is at most, in bytes; the daemon may send less.
    pub len: u64,
    /// Whether the answer is to have the digest of all that is before the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub check: bool,
}

/// `project_file_chunk`: a window of a file, its bytes as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileChunk {
    /// The request's.
    pub request_id: String,
    /// The bytes, as base64.
    pub data: String,
    /// Where they begin in the file.
    pub offset: u64,
    /// How long the file is.
    pub total_size: u64,
    /// Whether they end where the file ends.
    pub eof: bool,
    /// The version of the file that they are from. Windows belong together if they have the same version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<FileVersion>,
    /// The SHA-256 of everything before them, in lower-case hex, if it was asked for; none if the file
    /// is shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A file as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// Identifies the file itself. Later another file may have the same path.
    pub file: String,
    /// When it was last changed, as a text that can only be compared for equality.
    pub changed: String,
    /// Whether the version is certain: the file did not change during the read, nor so shortly before
    /// it that another change could get the same time.
    pub settled: bool,
}

/// `project_file_chunk_error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileChunkError {
    /// The request's.
    pub request_id: String,
    /// Why, for people.
    pub message: String,
}

/// `write_project_file`: a file as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteProjectFile {
    /// The project.
    pub project_id: ProjectId,
    /// Its path.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub path: String,
    /// The new content.
    pub content: String,
    /// The SHA-256 of the content that the client saw; none for any content.
    #[serde(default, deserialize_with = "maybe_text::<_, 128>")]
    pub base_sha256: Option<String>,
}

/// `project_file_saved`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileSaved {
    /// The project.
    pub project_id: ProjectId,
    /// Which file.
    pub path: String,
    /// The SHA-256 of the new content.
    pub sha256: String,
}

/// `project_file_write_conflict`: the content is not the one that the client saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileWriteConflict {
    /// The project.
    pub project_id: ProjectId,
    /// Which file.
    pub path: String,
    /// The SHA-256 of its content; none when the file is gone.
    pub current_sha256: Option<String>,
}

/// `create_project_file` and `create_project_directory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateProjectEntry {
    /// The project.
    pub project_id: ProjectId,
    /// The path, which must not exist yet.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub path: String,
    /// The id that its answer will have.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub request_id: String,
}

/// `move_project_entry` and `copy_project_entry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferProjectEntry {
    /// The project.
    pub project_id: ProjectId,
    /// The source.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub from: String,
    /// The destination, which must not exist yet.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub to: String,
    /// The id that its answer will have.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub request_id: String,
}

/// `delete_project_entry`: a file, or a directory with all that is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteProjectEntry {
    /// The project.
    pub project_id: ProjectId,
    /// The path.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub path: String,
    /// The id that its answer will have.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub request_id: String,
}

/// `upload_project_file`: a new file of any bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadProjectFile {
    /// The project.
    pub project_id: ProjectId,
    /// The path, which must not exist yet.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub path: String,
    /// The new content, as base64; [`crate::workspace::base64::decode`] reads it.
    pub data: String,
    /// The id that its answer will have.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub request_id: String,
}

/// `upload_project_file_part`: a part of a new file of any size. Parts are sent in order; the file appears under its
/// name once the last part has arrived. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadProjectFilePart {
    /// The project.
    pub project_id: ProjectId,
    /// The path, which must not exist yet. It is the same in all parts.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub path: String,
    /// The id that its answer will have.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub request_id: String,
    /// The id of the upload within the project, on any connection: a random text that the client
    /// chooses.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub upload_id: String,
    /// Where the part begins in the file, in bytes. The first part begins at 0.
    pub offset: u64,
    /// The part's bytes, [`UPLOAD_PART_MAX`](crate::workspace::limits::UPLOAD_PART_MAX) at most, as base64;
    /// [`crate::workspace::base64::decode`] reads it.
    pub data: String,
    /// Whether the file ends with this part.
    #[serde(default, deserialize_with = "or_default")]
    pub done: bool,
}

/// `project_fs_action_result`: it was made, moved, copied or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFsActionResult {
    /// The project.
    pub project_id: ProjectId,
    /// The request's.
    pub request_id: String,
    /// The path that was made or deleted, or the destination of a move or copy.
    pub path: String,
}

/// `project_fs_action_error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFsActionError {
    /// The project.
    pub project_id: ProjectId,
    /// The request's.
    pub request_id: String,
    /// Why, for people.
    pub message: String,
}
