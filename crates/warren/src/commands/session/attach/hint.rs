//! The hint about the key that detaches. Each user sees it once, in the first terminal that is used.

use std::{
    fs::{DirBuilder, OpenOptions},
    path::Path,
};

use base::system::Rights;
use daemon::options::home_directory;

use super::keys::DetachKey;

/// The file that notes that the hint was shown, in `$XDG_STATE_HOME/warren` or `~/.local/state/warren`.
const FILE: &str = "detach-key-said";

/// The hint to show now. `None`: it was shown before, there is no such key, or it cannot be noted that it
/// was shown.
pub(super) fn detach_hint(key: DetachKey) -> Option<String> {
    let words = format!("{} detaches, and what runs here goes on", key.name()?);
    let directory = home_directory("XDG_STATE_HOME", ".local/state")?;
    is_first(&directory).then_some(words)
}

fn is_first(directory: &Path) -> bool {
    let made = DirBuilder::new().recursive(true).private().create(directory);
    let file =
        || OpenOptions::new().write(true).create_new(true).private().open(directory.join(FILE));
    made.and_then(|()| file()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_first_time_once_and_never_where_that_cannot_be_noted() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("state/warren");
        assert_eq!([is_first(&directory), is_first(&directory)], [true, false]);
        assert!(!is_first(Path::new("/dev/null/warren")));
    }
}
