//! The status of a work tree, parsed from `git status --porcelain=v2 --branch -z`.

use protocol::workspace::{
    ProjectId,
    client::{ChangeStatus, GitChange, GitStatus},
};

use crate::write::is_temporary;

/// The status of a work tree, or of the part of it that is the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The branch, even before its first commit; `None` when the head is detached.
    pub branch: Option<String>,
    /// The branch that it tracks.
    pub upstream: Option<String>,
    /// Commits that only the branch has.
    pub ahead: u64,
    /// Commits that only the upstream has.
    pub behind: u64,
    /// Changes in the next commit.
    pub staged: Vec<GitChange>,
    /// Changes that are not staged, conflicts included.
    pub unstaged: Vec<GitChange>,
    /// Untracked paths; a directory with only untracked entries ends in a slash.
    pub untracked: Vec<String>,
}

impl Status {
    /// The protocol's answer for a project.
    #[must_use]
    pub fn of(self, project_id: ProjectId) -> GitStatus {
        let Self { branch, upstream, ahead, behind, staged, unstaged, untracked } = self;
        let is_repo = true;
        GitStatus {
            project_id,
            is_repo,
            branch,
            upstream,
            ahead,
            behind,
            staged,
            unstaged,
            untracked,
        }
    }
}

/// A record of a known kind that lacks a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a record of its status is cut short: {0:?}")]
pub struct Unreadable(String);

/// Parses git's output. `prefix`, the project's path in the work tree, is cut off paths;
/// bytes that are not UTF-8 are replaced. Records of unknown kinds are skipped.
///
/// # Errors
///
/// [`Unreadable`] when a record of a known kind lacks a field.
pub fn parse(output: &[u8], prefix: &[u8]) -> Result<Status, Unreadable> {
    let mut status = Status::default();
    let mut records = output.split(|byte| *byte == 0);
    while let Some(record) = records.next() {
        let read = match record {
            [b'#', b' ', header @ ..] => status.header(header),
            [b'1', b' ', rest @ ..] => status.changed(rest, 6, prefix, None),
            [b'2', b' ', rest @ ..] => status.changed(rest, 7, prefix, records.next()),
            [b'u', b' ', rest @ ..] => status.unmerged(rest, prefix),
            [b'?', b' ', path @ ..] => status.unknown(path, prefix),
            _ => Some(()),
        };
        read.ok_or_else(|| Unreadable(text(&record[..record.len().min(200)])))?;
    }
    Ok(status)
}

impl Status {
    fn header(&mut self, header: &[u8]) -> Option<()> {
        let header = text(header);
        match header.split_once(' ') {
            Some(("branch.head", "(detached)")) => {}
            Some(("branch.head", branch)) => self.branch = Some(branch.to_owned()),
            Some(("branch.upstream", upstream)) => self.upstream = Some(upstream.to_owned()),
            Some(("branch.ab", counts)) => (self.ahead, self.behind) = both(counts)?,
            _ => {}
        }
        Some(())
    }

    /// A change: two letters, `fields` fields, the path. `from` is its former name.
    fn changed(
        &mut self,
        rest: &[u8],
        fields: usize,
        prefix: &[u8],
        from: Option<&[u8]>,
    ) -> Option<()> {
        let (&[staged, unstaged], path) = rest.split_first_chunk::<2>()?;
        let path = skip(path.strip_prefix(b" ")?, fields)?;
        let change = |letter| {
            let status = letter_of(letter)?;
            let renamed = matches!(status, ChangeStatus::Renamed | ChangeStatus::Copied);
            let from = from.filter(|_| renamed).map(|from| text(without(from, prefix)));
            Some(GitChange { path: text(without(path, prefix)), status, from })
        };
        self.staged.extend(change(staged));
        self.unstaged.extend(change(unstaged));
        Some(())
    }

    fn unmerged(&mut self, rest: &[u8], prefix: &[u8]) -> Option<()> {
        let path = skip(rest, 9)?;
        let path = text(without(path, prefix));
        self.unstaged.push(GitChange { path, status: ChangeStatus::Unmerged, from: None });
        Some(())
    }

    /// An untracked path. Unfinished files of ours are no user's.
    fn unknown(&mut self, path: &[u8], prefix: &[u8]) -> Option<()> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        if !is_temporary(name) {
            self.untracked.push(text(without(path, prefix)));
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
fn both(counts: &str) -> Option<(u64, u64)> {
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
