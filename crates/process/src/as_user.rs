//! Something done as another user, without another process.

use std::{panic, thread};

use crate::{credentials, error::ProcessError, messages::Identity, user::User};

/// Runs `f` as `user`, on a thread of its own that gave up all other rights, for good and proved, and
/// that ends with it. Blocks until then. For the daemon's own user nothing is given up.
///
/// Memory and open files are the whole process's, as is its umask: this is for operations on files,
/// whose rights the kernel checks for the thread, and not for code that is not trusted.
///
/// # Errors
/// [`ProcessError::MayNotBecome`] for root and, unless the daemon is root's, for any other user;
/// [`ProcessError::Credentials`] when rights could not be given up. In both cases `f` did not run.
pub fn as_user<T: Send>(user: &User, f: impl FnOnce() -> T + Send) -> Result<T, ProcessError> {
    user.check()?;
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("as-user".to_owned())
            .spawn_scoped(scope, || assume(user).map(|()| f()))
            .map_err(|source| ProcessError::Start { step: "making a thread", source })?;
        thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

fn assume(user: &User) -> Result<(), ProcessError> {
    if user.is_current() {
        return Ok(());
    }
    let identity = Identity { uid: user.uid, gid: user.gid, groups: user.groups.clone() };
    credentials::become_for_good(&identity).map_err(|source| ProcessError::Credentials { source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::{fs, io};

    use super::*;

    /// `nobody`, where the tests run as root.
    fn nobody() -> Option<User> {
        if !User::current().unwrap().name.eq("root") {
            eprintln!("skipped: only root can become another user");
            return None;
        }
        Some(User::lookup("nobody").unwrap())
    }

    #[test]
    fn files_of_root_are_closed_to_it_and_its_own_belong_to_it() {
        let Some(nobody) = nobody() else { return };
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let secret = directory.path().join("secret");
        fs::write(&secret, "for root").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let own = directory.path().join("own");
        let refused = as_user(&nobody, || {
            fs::write(&own, "mine").unwrap();
            [fs::read(&secret).err(), fs::read("/etc/shadow").err(), fs::read_dir("/root").err()]
        });
        let kinds = refused.unwrap().map(|error| error.map(|error| error.kind()));
        assert_eq!(kinds, [Some(io::ErrorKind::PermissionDenied); 3]);
        assert_eq!(fs::metadata(&own).unwrap().uid(), nobody.uid);
        assert_eq!(fs::read(&secret).unwrap(), b"for root", "this thread is who it was");
    }

    #[test]
    fn there_is_no_way_back_to_root() {
        let Some(nobody) = nobody() else { return };
        let ways = as_user(&nobody, || {
            let root = rustix::thread::Uid::ROOT;
            let uid = rustix::thread::set_thread_res_uid(root, root, root).is_ok();
            let groups = rustix::thread::set_thread_groups(&[rustix::thread::Gid::ROOT]).is_ok();
            (uid, groups)
        });
        assert_eq!(ways.unwrap(), (false, false));
    }

    #[test]
    fn the_current_user_needs_no_rights_given_up() {
        let current = User::current().unwrap();
        assert_eq!(as_user(&current, || 7).unwrap(), 7);
    }

    #[test]
    fn who_must_not_be_become_is_refused_before_anything_runs() {
        let mut root = User::current().unwrap();
        if root.uid == 0 {
            let Some(nobody) = nobody() else { return };
            let inner = as_user(&nobody, || as_user(&root, || panic!("ran")));
            let inner = inner.unwrap().unwrap_err();
            assert!(matches!(inner, ProcessError::MayNotBecome { .. }), "{inner}");
        } else {
            root.uid = 0;
            assert!(as_user(&root, || panic!("ran")).is_err());
        }
    }
}
