//! Access to files as another user, without another process; and commands of the daemon that run as
//! another user.

use std::{panic, thread};

use rustix::process::{Gid, Uid};

use crate::{
    error::ProcessError,
    unix::{credentials, messages::Identity, unsafe_calls::before_program, user::User},
};

/// Runs `f` on a thread of its own that has only the rights of `user` to files, which is verified.
/// Blocks until `f` returns. For the daemon's own user no rights are given up.
///
/// This is for operations on files, where the kernel checks the rights of the thread. It is not for
/// untrusted code, since memory, open files and umask belong to the whole process. For signals and
/// limits the thread stays the daemon's, so that the user cannot kill the daemon through it. The
/// thread must not start processes; see [`start_as`]. Threads that it starts access files with the
/// same rights.
///
/// # Errors
/// [`ProcessError::MayNotBecome`] for root and, unless the daemon runs as root, for any other user;
/// [`ProcessError::Credentials`] when rights could not be given up. In both cases `f` did not run.
pub fn as_user<T: Send>(user: &User, f: impl FnOnce() -> T + Send) -> Result<T, ProcessError> {
    user.check()?;
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("as-user".to_owned())
            .spawn_scoped(scope, || assume(user).map(|()| f()))
            .map_err(|source| ProcessError::Start { step: "making a thread", source })?;
        // A panic of `f` is the caller's, as if `f` had run on its thread.
        thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

fn assume(user: &User) -> Result<(), ProcessError> {
    if user.is_current() {
        return Ok(());
    }
    let identity = Identity { uid: user.uid, gid: user.gid, groups: user.groups.clone() };
    credentials::use_files_as(&identity).map_err(|source| ProcessError::Credentials { source })
}

/// Makes a command run as `user`. The child gives up all other rights for good before it executes
/// the program, and fails to start if it cannot. This is for short commands; the supervisor starts
/// sessions.
///
/// # Errors
/// [`ProcessError::MayNotBecome`], as for [`as_user`].
pub fn start_as(user: &User, command: &mut tokio::process::Command) -> Result<(), ProcessError> {
    user.check()?;
    if user.is_current() {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let groups: Vec<Gid> = user.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    before_program(command, move || credentials::become_in_child(uid, gid, &groups));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::{fs, io, sync::mpsc};

    use super::*;

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
    fn the_thread_keeps_no_right_of_root() {
        let Some(nobody) = nobody() else { return };
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let may = as_user(&nobody, || {
            let groups = rustix::thread::set_thread_groups(&[rustix::thread::Gid::ROOT]).is_ok();
            let owner = std::os::unix::fs::chown(&file, Some(nobody.uid), None).is_ok();
            (groups, owner, fs::File::open(&file).is_ok())
        });
        assert_eq!(may.unwrap(), (false, false, false));
    }

    /// A signal to one thread can end the whole process.
    #[tokio::test]
    async fn the_user_cannot_signal_the_daemon_by_the_thread_that_uses_its_files() {
        let Some(nobody) = nobody() else { return };
        let (tell, thread_id) = mpsc::channel();
        let (done, until_done) = mpsc::channel::<()>();
        let theirs = nobody.clone();
        let using = thread::spawn(move || {
            as_user(&theirs, move || {
                tell.send(rustix::thread::gettid()).unwrap();
                let _ended = until_done.recv();
            })
        });
        let thread = thread_id.recv().unwrap().as_raw_nonzero();
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", &format!("kill -0 {thread}")]);
        let by_root = command.status().await.unwrap();
        start_as(&nobody, &mut command).unwrap();
        let by_them = command.output().await.unwrap().status;
        drop(done);
        using.join().unwrap().unwrap();
        assert!(by_root.success() && !by_them.success(), "{by_root}, {by_them}");
    }

    #[tokio::test]
    async fn a_command_is_its_users_and_there_is_no_way_back() {
        let Some(nobody) = nobody() else { return };
        let mut command = tokio::process::Command::new("cat");
        command.arg("/proc/self/status");
        start_as(&nobody, &mut command).unwrap();
        let said = command.output().await.unwrap();
        let status = String::from_utf8(said.stdout).unwrap();
        let line = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(line("Uid:"), vec![nobody.uid.to_string(); 4]);
        assert_eq!(line("Gid:"), vec![nobody.gid.to_string(); 4]);
        let mut groups: Vec<u32> = line("Groups:").iter().map(|id| id.parse().unwrap()).collect();
        let mut expected = nobody.groups;
        groups.sort_unstable();
        expected.sort_unstable();
        assert_eq!(groups, expected);
        for capabilities in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(line(capabilities), ["0000000000000000"], "{capabilities}");
        }
    }

    #[test]
    fn the_current_user_needs_no_rights_given_up() {
        let current = User::current().unwrap();
        assert_eq!(as_user(&current, || 7).unwrap(), 7);
    }

    #[test]
    fn a_forbidden_user_is_refused_before_anything_runs() {
        let Some(nobody) = nobody() else {
            let root = User { uid: 0, ..User::current().unwrap() };
            assert!(as_user(&root, || panic!("ran")).is_err());
            return;
        };
        let inner = as_user(&nobody, || as_user(&nobody, || panic!("ran")));
        let inner = inner.unwrap().unwrap_err();
        assert!(matches!(inner, ProcessError::Credentials { .. }), "{inner}");
    }
}
