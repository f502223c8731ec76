//! The status of a work tree, parsed from `git status --porcelain=v2 --branch -z`.

use protocol::workspace::{
    ProjectId,
    client::{ChangeStatus, GitChange, GitStatus},
};

use crate::write::is_temporary;

/// A record of a known kind that lacks a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a record of its status is cut short: {0:?}")]
pub struct Unreadable(String);

/// Parses git's output about the work tree that a project is in. `prefix`, the project's path in the work
/// tree, is cut off paths; bytes that are not UTF-8 are replaced. Records of unknown kinds are skipped.
///
/// # Errors
///
/// [`Unreadable`] when a record of a known kind lacks a field.
pub fn parse(project_id: ProjectId, output: &[u8], prefix: &[u8]) -> Result<GitStatus, Unreadable> {
    let status = GitStatus { is_repo: true, ..GitStatus::no_repository(project_id) };
    let mut reader = Reader { prefix, status };
    let mut records = output.split(|byte| *byte == 0);
    while let Some(record) = records.next() {
        let read = match record {
            [b'#', b' ', header @ ..] => reader.header(header),
            [b'1', b' ', rest @ ..] => reader.changed(rest, 6, None),
            [b'2', b' ', rest @ ..] => reader.changed(rest, 7, records.next()),
            [b'u', b' ', rest @ ..] => reader.unmerged(rest),
            [b'?', b' ', path @ ..] => reader.unknown(path),
            _ => Some(()),
        };
        read.ok_or_else(|| Unreadable(text(&record[..record.len().min(200)])))?;
    }
    Ok(reader.status)
}

/// The status as read so far.
struct Reader<'a> {
    prefix: &'a [u8],
    status: GitStatus,
}

impl Reader<'_> {
    fn header(&mut self, header: &[u8]) -> Option<()> {
        let header = text(header);
        match header.split_once(' ') {
            Some(("branch.head", "(detached)")) => {}
            Some(("branch.head", branch)) => self.status.branch = Some(branch.to_owned()),
            Some(("branch.upstream", upstream)) => self.status.upstream = Some(upstream.to_owned()),
            Some(("branch.ab", counts)) => {
                (self.status.ahead, self.status.behind) = ahead_and_behind(counts)?;
            }
            _ => {}
        }
        Some(())
    }

    /// A change: two letters, `fields` fields, the path. `from` is its former name.
    fn changed(&mut self, rest: &[u8], fields: usize, from: Option<&[u8]>) -> Option<()> {
        let prefix = self.prefix;
        let (&[staged, unstaged], path) = rest.split_first_chunk::<2>()?;
        let path = skip(path.strip_prefix(b" ")?, fields)?;
        let change = |letter| {
            let status = letter_of(letter)?;
            let renamed = matches!(status, ChangeStatus::Renamed | ChangeStatus::Copied);
            let from = from.filter(|_| renamed).map(|from| text(without(from, prefix)));
            Some(GitChange { path: text(without(path, prefix)), status, from })
        };
        self.status.staged.extend(change(staged));
        self.status.unstaged.extend(change(unstaged));
        Some(())
    }

    fn unmerged(&mut self, rest: &[u8]) -> Option<()> {
        let path = skip(rest, 9)?;
        let path = text(without(path, self.prefix));
        self.status.unstaged.push(GitChange { path, status: ChangeStatus::Unmerged, from: None });
        Some(())
    }

    /// An untracked path. Temporary files of Warren's are left out.
    fn unknown(&mut self, path: &[u8]) -> Option<()> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        if !is_temporary(name) {
            self.status.untracked.push(text(without(path, self.prefix)));
        }
        Some(())
    }
}

/// The rest after some fields, each followed by a space.
fn skip(mut rest: &[u8], fields: usize) -> Option<&[u8]> {
    for _ in 0..fields {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        rest = &rest[space + 1..];
    }
    (!rest.is_empty()).then_some(rest)
}

/// Parses `+3 -1`.
fn ahead_and_behind(counts: &str) -> Option<(u64, u64)> {
    let (ahead, behind) = counts.split_once(' ')?;
    Some((ahead.strip_prefix('+')?.parse().ok()?, behind.strip_prefix('-')?.parse().ok()?))
}

fn letter_of(letter: u8) -> Option<ChangeStatus> {
    Some(match letter {
        b'M' => ChangeStatus::Modified,
        b'A' => ChangeStatus::Added,
        b'D' => ChangeStatus::Deleted,
        b'R' => ChangeStatus::Renamed,
        b'C' => ChangeStatus::Copied,
        b'T' => ChangeStatus::TypeChanged,
        b'U' => ChangeStatus::Unmerged,
        _ => return None,
    })
}

fn without<'a>(path: &'a [u8], prefix: &[u8]) -> &'a [u8] {
    path.strip_prefix(prefix).unwrap_or(path)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
