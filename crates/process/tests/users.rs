//! Processes of other users: no way back to root, and the owners of files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may stop, too")]

mod support;

use std::os::unix::fs::PermissionsExt;

use process::{Command, Exit, ProcessError, User, clean_environment};
use support::{
    in_pipes, in_terminal, is_root, output, read_to_end, skipped, supervisor, terminal, within,
};

/// A command of `nobody`, if the tests run as root.
fn of_nobody(command: Command) -> Option<Command> {
    if !is_root() {
        skipped("only root can run something as another user");
        return None;
    }
    let user = User::lookup("nobody").unwrap();
    let env = clean_environment(&[], &user);
    Some(Command { run_as: Some(user), env, ..command })
}

#[tokio::test]
async fn a_process_of_nobody_is_wholly_nobodys() {
    let script = "grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapAmb)' /proc/self/status; whoami; \
                  export LC_ALL=C; cat /etc/shadow 2>&1; ls /root 2>&1; echo $HOME $USER";
    let Some(command) = of_nobody(in_pipes(script)) else { return };
    let supervisor = supervisor().await;
    let user = command.run_as.clone().unwrap();
    let mut child = supervisor.spawn(command).await.unwrap();
    let text = output(&mut child).await;
    let (uid, gid) = (user.uid, user.gid);
    assert!(text.contains(&format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n")), "{text}");
    assert!(text.contains(&format!("Gid:\t{gid}\t{gid}\t{gid}\t{gid}\n")), "{text}");
    assert!(text.contains(&format!("Groups:\t{gid} \n")), "{text}");
    assert_eq!(text.matches("\t0000000000000000\n").count(), 4, "{text}");
    assert_eq!(text.matches("Permission denied").count(), 2, "{text}");
    assert!(text.contains("\nnobody\n") && text.ends_with("/nonexistent nobody\n"), "{text}");
}

#[tokio::test]
async fn nobody_cannot_become_root_again() {
    let script = "perl -e '$< = 0; $> = 0; $( = 0; $) = \"0 0\"; print \"$< $> \", $(+0, \" \", $)+0; \
                  require \"syscall.ph\" if 0; print \" \", syscall(117, 0, 0, 0), \"\\n\"'";
    let Some(command) = of_nobody(in_pipes(script)) else { return };
    let supervisor = supervisor().await;
    let user = command.run_as.clone().unwrap();
    let mut child = supervisor.spawn(command).await.unwrap();
    let (uid, gid) = (user.uid, user.gid);
    assert_eq!(output(&mut child).await, format!("{uid} {uid} {gid} {gid} -1\n"));
}

#[tokio::test]
async fn its_terminal_is_its_own() {
    let script = "stat -c '%U %a' $(tty); echo fine > /dev/tty";
    let Some(command) = of_nobody(in_terminal(script)) else { return };
    let supervisor = supervisor().await;
    let mut child = supervisor.spawn(command).await.unwrap();
    let mut terminal = terminal(&mut child);
    let text = String::from_utf8(read_to_end(&mut terminal).await).unwrap();
    assert_eq!(text, "nobody 620\r\nfine\r\n");
    assert_eq!(within(child.wait()).await, Exit::Code(0));
}

#[tokio::test]
async fn a_directory_or_program_that_is_closed_to_the_user_is_an_error() {
    let Some(command) = of_nobody(in_pipes("true")) else { return };
    let supervisor = supervisor().await;
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).unwrap();
    let closed = Command { working_dir: directory.path().into(), ..command.clone() };
    let error = supervisor.spawn(closed).await.unwrap_err();
    assert!(matches!(error, ProcessError::WorkingDir { .. }), "{error}");
    let program = directory.path().join("program");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = supervisor.spawn(Command { program: program.into(), ..command }).await.unwrap_err();
    assert!(matches!(error, ProcessError::Permission { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_program_is_missing_though_the_path_has_places_closed_to_the_user() {
    let Some(command) = of_nobody(in_pipes("")) else { return };
    let supervisor = supervisor().await;
    let env = vec![("PATH".into(), "/root/bin:/usr/bin".into())];
    let missing = Command { program: "no-such-program".into(), env, ..command };
    let error = supervisor.spawn(missing).await.unwrap_err();
    assert!(matches!(error, ProcessError::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn a_user_that_may_not_be_become_is_refused_before_anything_starts() {
    let mut user = User::current().unwrap();
    if user.uid == 0 {
        return skipped("root may become anybody, itself included");
    }
    user.uid = 0;
    let supervisor = supervisor().await;
    let refused = supervisor.spawn(Command { run_as: Some(user), ..in_pipes("true") }).await;
    assert!(matches!(refused, Err(ProcessError::MayNotBecome { .. })));
}
