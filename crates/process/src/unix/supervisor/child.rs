//! The steps of a forked child before it executes the program. Their order matters: first the steps
//! that need the supervisor's rights, then giving up these rights, then the steps that must run as
//! the user.

use std::{
    convert::Infallible,
    ffi::OsStr,
    fs::File,
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, process::CommandExt},
    },
    process,
};

use nix::sys::signal::SigSet;
use rustix::{
    fs::Mode,
    io::Errno,
    process::{Resource, Rlimit, getppid, ioctl_tiocsctty, setrlimit, setsid, umask},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};

use crate::{
    SESSION_MARKER,
    unix::{
        cgroup::Group,
        credentials,
        failure::{Failure, Step},
        kernel::{default_signals, die_with_parent},
        messages::Order,
        processes,
        unsafe_calls::exit_child,
    },
};

/// The exit code of a child that never became its program. The daemon does not get this code.
const FAILED: i32 = 127;

/// The child's side of its stdio.
pub(super) enum Stdio {
    Terminal(OwnedFd),
    Pipes([OwnedFd; 3]),
}

/// Becomes the program, or writes the failure to `report` and ends.
pub(super) fn become_program(
    order: &Order,
    stdio: &Stdio,
    group: Option<&Group>,
    report: OwnedFd,
    supervisor: u32,
) -> ! {
    let Err(failure) = steps(order, stdio, group, supervisor);
    let _ = File::from(report).write_all(&failure.encode());
    exit_child(FAILED)
}

fn steps(
    order: &Order,
    stdio: &Stdio,
    group: Option<&Group>,
    supervisor: u32,
) -> Result<Infallible, Failure> {
    // First, as only the supervisor may write to the group.
    group.map_or(Ok(()), Group::enter).map_err(Failure::at(Step::ControlGroup))?;
    own_session(stdio).map_err(Failure::at(Step::Session))?;
    // The kernel's limit is by user and not by session, so it is used only without a group that limits.
    if !group.is_some_and(Group::limits) {
        limit_processes(order).map_err(Failure::at(Step::ProcessLimit))?;
    }
    // After everything that needs the supervisor's rights; there is no way back.
    if let Some(identity) = &order.identity {
        credentials::become_for_good(identity).map_err(Failure::at(Step::Credentials))?;
    }
    umask(Mode::from_raw_mode(0o022));
    die_with(supervisor).map_err(Failure::at(Step::Backstop))?;
    // As the user, so that a directory that it may not enter is refused.
    std::env::set_current_dir(&order.working_dir).map_err(Failure::at(Step::WorkingDir))?;
    // Ignored signals and the mask are inherited over `exec`, and the supervisor blocks nearly all.
    default_signals();
    SigSet::empty().thread_set_mask().map_err(|error| Failure::at(Step::Signals)(error.into()))?;
    Err(Failure::at(Step::Execute)(execute(order)))
}

/// Makes a new session and process group, with the terminal as controlling terminal.
fn own_session(stdio: &Stdio) -> io::Result<()> {
    setsid()?;
    let [stdin, stdout, stderr] = match stdio {
        Stdio::Terminal(slave) => {
            ioctl_tiocsctty(slave)?;
            [slave; 3]
        }
        Stdio::Pipes(ends) => ends.each_ref(),
    };
    dup2_stdin(stdin)?;
    dup2_stdout(stdout)?;
    dup2_stderr(stderr)?;
    Ok(())
}

/// Limits the processes of the child's user. The kernel's limit counts all threads of the user, so
/// it is set to their present number plus the allowed ones.
fn limit_processes(order: &Order) -> io::Result<()> {
    let own = rustix::process::getuid().as_raw();
    let uid = order.identity.as_ref().map_or(own, |identity| identity.uid);
    let Some(more) = order.max_processes.filter(|_| uid != 0) else { return Ok(()) };
    let most = Some(processes::tasks_of(uid) + u64::from(more));
    setrlimit(Resource::Nproc, Rlimit { current: most, maximum: most })?;
    Ok(())
}

/// Makes the kernel kill this process if the supervisor is killed, as a backstop. A change of user
/// would clear this setting, so it comes after that change.
fn die_with(supervisor: u32) -> io::Result<()> {
    die_with_parent()?;
    // The supervisor may have died before the line above, and then no signal would ever come.
    if getppid() != processes::to_pid(supervisor) {
        exit_child(FAILED);
    }
    Ok(())
}

fn execute(order: &Order) -> io::Error {
    let mut command = process::Command::new(&order.program);
    command.args(&order.args).env_clear();
    command.envs(order.env.iter().map(|(name, value)| (name, value)));
    // Last, so that the order's own environment cannot replace it: leftovers are found by it.
    command.env(OsStr::new(SESSION_MARKER), order.id.to_string());
    let error = command.exec();
    if error.kind() == io::ErrorKind::PermissionDenied && !is_anywhere(order) {
        return Errno::NOENT.into();
    }
    error
}

/// Whether the program exists in any directory of `PATH`. `exec` reports a directory that may not
/// be entered with the same error as a program that may not be executed.
fn is_anywhere(order: &Order) -> bool {
    let path = order.env.iter().find(|(name, _)| name == "PATH");
    let Some((_, path)) = path.filter(|_| !order.program.as_bytes().contains(&b'/')) else {
        return true;
    };
    std::env::split_paths(path).any(|directory| directory.join(&order.program).exists())
}
