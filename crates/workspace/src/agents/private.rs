//! Files that only an agent's user may read: its settings, with keys in them.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use process::User;
use protocol::workspace::SessionId;
use session::agent::PrivateFile;

use crate::{refusal::Refusal, users};

/// The file with the name of another user's private directory. It is in the directory that the session has below the
/// daemon's own.
const ELSEWHERE: &str = "elsewhere";
/// The prefix of the names of other users' private directories.
const PREFIX: &str = "warren-agent-";

/// The private directory of one session's agent. It exists only while it has files.
#[derive(Debug, Clone)]
pub(crate) struct Private {
    dir: PathBuf,
    /// The owner of the directory; `None`: the daemon's own user.
    user: Option<User>,
}

impl Private {
    /// The directory of a session, which [`Private::write`] creates. Other users cannot enter the daemon's
    /// directory, so the directory of another user is among the temporary files, under a name that nobody can
    /// guess. Files of another user that a killed daemon left there are removed. It blocks.
    pub(crate) fn new(dir: &Path, session: SessionId, user: Option<User>) -> Self {
        let (private, is_known) = Self::find(dir, session, user);
        if is_known {
            private.remove();
        }
        private
    }

    /// The directory of a session whose agent runs already. It blocks.
    pub(crate) fn of_running(dir: &Path, session: SessionId, user: Option<User>) -> Self {
        Self::find(dir, session, user).0
    }

    /// The directory, and whether it is another user's and got its name at an earlier start.
    fn find(dir: &Path, session: SessionId, user: Option<User>) -> (Self, bool) {
        let own = dir.join("agents").join(session.to_string());
        if user.is_none() {
            return (Self { dir: own, user }, false);
        }
        let (name, is_known) = name_elsewhere(&own);
        (Self { dir: std::env::temp_dir().join(name), user }, is_known)
    }

    /// The directory as text. Agents get it in JSON, which cannot hold a path that is not UTF-8.
    pub(crate) fn path(&self) -> Result<String, Refusal> {
        let text = self.dir.to_str().map(str::to_owned);
        text.ok_or_else(|| Refusal::Failed(format!("{} is not UTF-8", self.dir.display())))
    }

    /// Writes these files, in place of existing ones of the same names. It blocks.
    pub(crate) fn write(&self, files: &[PrivateFile]) -> Result<(), Refusal> {
        if files.is_empty() {
            return Ok(());
        }
        let written = self.as_its_user(|| {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            files.iter().try_for_each(|file| self.write_one(file))
        })?;
        written.map_err(|error| {
            Refusal::Failed(format!(
                "cannot write the agent's files in {}: {error}",
                self.dir.display()
            ))
        })
    }

    /// Writes a file, which may be in a directory below.
    fn write_one(&self, file: &PrivateFile) -> io::Result<()> {
        let path = self.dir.join(&file.name);
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        write(&path, &file.contents)
    }

    /// Removes the directory and all files in it. It blocks.
    pub(crate) fn remove(&self) {
        match self.as_its_user(|| fs::remove_dir_all(&self.dir)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(Err(error)) => {
                tracing::warn!(dir = %self.dir.display(), %error, "private files remain");
            }
            Err(refusal) => {
                tracing::warn!(dir = %self.dir.display(), %refusal, "private files remain");
            }
        }
    }

    fn as_its_user<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, Refusal> {
        users::with_rights_of(self.user.as_ref(), f)
    }
}

/// The name of another user's directory, and whether it had this name before.
fn name_elsewhere(own: &Path) -> (String, bool) {
    let note = own.join(ELSEWHERE);
    if let Ok(name) = fs::read_to_string(&note)
        && name.strip_prefix(PREFIX).is_some_and(|rest| u128::from_str_radix(rest, 16).is_ok())
    {
        return (name, true);
    }
    let name = format!("{PREFIX}{:032x}", rand::random::<u128>());
    let noted = DirBuilder::new().recursive(true).mode(0o700).create(own);
    if let Err(error) = noted.and_then(|()| write(&note, &name)) {
        tracing::warn!(note = %note.display(), %error, "what an agent is told may outlive a killed server");
    }
    (name, false)
}

/// Writes a new file in place of an existing one, whose access rights might be others.
fn write(path: &Path, contents: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(contents.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn file(contents: &str) -> PrivateFile {
        PrivateFile { name: "a.json".to_owned(), contents: contents.to_owned() }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_are_their_users_alone_and_are_gone_after() {
        let dir = tempfile::tempdir().unwrap();
        let session = SessionId::from_random(7);
        let private = Private::new(dir.path(), session, None);
        private.write(&[]).unwrap();
        assert!(!Path::new(&private.path().unwrap()).exists(), "nothing to be kept");
        private.write(&[file("one")]).unwrap();
        let path = PathBuf::from(private.path().unwrap());
        assert_eq!((mode(&path), mode(&path.join("a.json"))), (0o700, 0o600));
        fs::set_permissions(path.join("a.json"), fs::Permissions::from_mode(0o666)).unwrap();
        private.write(&[file("two")]).unwrap();
        assert_eq!(fs::read_to_string(path.join("a.json")).unwrap(), "two");
        assert_eq!(mode(&path.join("a.json")), 0o600);
        let below = PrivateFile { name: "b/c.json".to_owned(), contents: "three".to_owned() };
        private.write(&[below]).unwrap();
        assert_eq!((mode(&path.join("b")), mode(&path.join("b/c.json"))), (0o700, 0o600));
        private.remove();
        private.remove();
        assert!(!path.exists());
    }

    #[test]
    fn those_of_another_user_belong_to_that_user() {
        if !User::current().unwrap().name.eq("root") {
            return;
        }
        let nobody = User::lookup("nobody").unwrap();
        let (uid, dir) = (nobody.uid, tempfile::tempdir().unwrap());
        let private = Private::new(dir.path(), SessionId::from_random(7), Some(nobody));
        private.write(&[file("secret")]).unwrap();
        let path = PathBuf::from(private.path().unwrap());
        let owners = [&path, &path.join("a.json")].map(|path| fs::metadata(path).unwrap().uid());
        assert_eq!(owners, [uid, uid]);
        assert_eq!((mode(&path), mode(&path.join("a.json"))), (0o700, 0o600));
        private.remove();
        assert!(!path.exists());
    }

    #[test]
    fn leftovers_of_another_users_killed_daemon_are_removed_and_the_name_is_reused() {
        if !User::current().unwrap().name.eq("root") {
            return;
        }
        let (dir, nobody) = (tempfile::tempdir().unwrap(), User::lookup("nobody").unwrap());
        let open = |session| Private::new(dir.path(), session, Some(nobody.clone()));
        let left = open(SessionId::from_random(7));
        left.write(&[file("secret")]).unwrap();
        let (other, same) = (open(SessionId::from_random(8)), open(SessionId::from_random(7)));
        assert!(!left.dir.exists() && other.dir != left.dir && same.dir == left.dir);
        same.write(&[file("new")]).unwrap();
        same.remove();
        assert!(!same.dir.exists());
    }
}
