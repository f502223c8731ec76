//! Processes as the daemon sees them: terminals, pipes, ends, and failed starts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may stop, too")]

mod support;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::BytesMut;
use process::{
    Child, ChildIo, Command, Exit, Limits, MAX_COMMAND, ProcessError, Signal, Stdio, Supervisor,
    listening_ports,
};
use support::{
    in_pipes, in_terminal, output, read_to_end, read_until, supervisor, supervisor_with, terminal,
    within,
};
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn a_terminal_echoes_what_is_typed_and_runs_it() {
    let supervisor = supervisor().await;
    let mut child = supervisor.spawn(in_terminal("read line; echo got:$line")).await.unwrap();
    let mut terminal = terminal(&mut child);
    terminal.write_all("grüße\n".as_bytes()).await.unwrap();
    let read = read_until(&mut terminal, "got:grüße").await;
    assert!(read.starts_with("grüße\r\n"), "{read}");
    assert_eq!(within(child.wait()).await, Exit::Code(0));
}

#[tokio::test]
async fn a_terminal_is_the_one_that_controls_its_process_and_has_its_size() {
    let supervisor = supervisor().await;
    let script = "stty size; tty; ps -o pid=,sid=,pgid=,tpgid= -p $$; trap 'stty size; exit' WINCH; \
                  echo ready; while true; do read -t 0.1; done";
    let mut child = supervisor.spawn(in_terminal(script)).await.unwrap();
    let mut terminal = terminal(&mut child);
    let read = read_until(&mut terminal, "ready").await;
    assert!(read.starts_with("24 80\r\n/dev/pts/"), "{read}");
    let pid = child.pid.to_string();
    let ids = read.lines().nth(2).unwrap().split_whitespace().filter(|it| *it == pid).count();
    assert_eq!(ids, 4, "session, group and foreground are its own: {read}");
    assert_eq!(terminal.foreground(), Some(child.pid));
    terminal.resize(132, 50).unwrap();
    read_until(&mut terminal, "50 132").await;
    assert_eq!(within(child.wait()).await, Exit::Code(0));
}

#[tokio::test]
async fn interrupts_are_typed_or_sent_to_the_group() {
    let supervisor = supervisor().await;
    let mut child = supervisor.spawn(in_terminal("echo up; exec sleep 1000")).await.unwrap();
    let mut typed = terminal(&mut child);
    read_until(&mut typed, "up").await;
    typed.write_all(b"\x03").await.unwrap();
    assert_eq!(within(child.wait()).await, Exit::Signal(Signal::Interrupt.number()));
    let mut child = supervisor.spawn(in_pipes("sleep 1000 & sleep 1000")).await.unwrap();
    assert!(child.handle().signal_group(Signal::Terminate).await.unwrap());
    assert_eq!(within(child.wait()).await, Exit::Signal(Signal::Terminate.number()));
    assert!(!child.handle().signal_group(Signal::Terminate).await.unwrap(), "nobody is there");
}

#[tokio::test]
async fn pipes_carry_all_three_streams_and_their_ends() {
    let supervisor = supervisor().await;
    let mut child = supervisor.spawn(in_pipes("cat; echo oops >&2; exit 7")).await.unwrap();
    let ChildIo::Pipes { mut stdin, mut stdout, mut stderr } = child.take_io() else { panic!() };
    let sent = vec![b'x'; 300_000];
    let to_send = sent.clone();
    let sending = tokio::spawn(async move { stdin.write_all(&to_send).await });
    let (mut out, mut err) = (BytesMut::new(), String::new());
    within(async { while stdout.read(&mut out).await.unwrap() > 0 {} }).await;
    within(stderr.read_to_string(&mut err)).await.unwrap();
    sending.await.unwrap().unwrap();
    assert_eq!((&out[..], err.as_str()), (&sent[..], "oops\n"));
    assert_eq!(within(child.wait()).await, Exit::Code(7));
    assert_eq!(within(child.wait()).await, Exit::Code(7), "however often it is asked");
}

#[tokio::test]
async fn output_after_the_exit_is_complete() {
    let supervisor = supervisor().await;
    let mut child = supervisor.spawn(in_terminal("seq 1 200000")).await.unwrap();
    let mut terminal = terminal(&mut child);
    let read = read_to_end(&mut terminal).await;
    let expected: String = (1..=200_000).map(|number| format!("{number}\r\n")).collect();
    assert!(read == expected.as_bytes(), "{} of {} bytes", read.len(), expected.len());
    assert_eq!(within(child.wait()).await, Exit::Code(0));
}

#[tokio::test]
async fn input_waits_for_room_in_the_terminal_and_is_typed_whole() {
    let supervisor = supervisor().await;
    let mut child =
        supervisor.spawn(in_terminal("stty raw -echo; echo ready; wc -c")).await.unwrap();
    let mut terminal = terminal(&mut child);
    read_until(&mut terminal, "ready").await;
    let (mut reader, writer) = terminal.split();
    let typing = tokio::spawn(async move {
        for _ in 0..100 {
            writer.write_all(&[b'y'; 10_000]).await.unwrap();
        }
        writer
    });
    let _writer = within(typing).await.unwrap();
    assert!(child.handle().signal_group(Signal::Hangup).await.unwrap());
    let mut rest = bytes::BytesMut::new();
    while within(reader.read(&mut rest)).await.unwrap() > 0 {}
    assert!(matches!(within(child.wait()).await, Exit::Signal(_)));
}

#[tokio::test]
async fn a_flooding_terminal_yields_its_thread_after_every_few_pieces() {
    let supervisor = supervisor().await;
    let mut child = supervisor.spawn(in_terminal("exec yes")).await.unwrap();
    let (mut reader, _writer) = terminal(&mut child).split();
    let read = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&read);
    let reading = tokio::spawn(async move {
        let mut buffer = bytes::BytesMut::new();
        loop {
            let got = reader.read(&mut buffer).await.unwrap();
            count.fetch_add(got, Ordering::Relaxed);
            buffer.clear();
        }
    });
    let mut turns = 0;
    let flood = async {
        while read.load(Ordering::Relaxed) < 16 << 20 {
            tokio::task::yield_now().await;
            turns += 1;
        }
    };
    within(flood).await;
    reading.abort();
    let each = read.load(Ordering::Relaxed) / turns;
    assert!(each <= 16 * 1024, "{each} bytes are read before it is somebody else's turn");
}

#[tokio::test]
async fn keys_that_wait_when_the_terminal_hangs_up_are_an_error_not_a_wait() {
    let supervisor = supervisor().await;
    let mut child =
        supervisor.spawn(in_terminal("stty raw; echo up; exec sleep 1000")).await.unwrap();
    let (_reader, writer) = {
        let mut terminal = terminal(&mut child);
        read_until(&mut terminal, "up").await;
        terminal.split()
    };
    let typing = tokio::spawn(async move { writer.write_all(&vec![b'x'; 1 << 20]).await });
    child.handle().stop(Duration::from_secs(5)).await.unwrap();
    assert!(within(typing).await.unwrap().is_err());
}

#[tokio::test]
async fn the_environment_is_what_it_was_given_and_the_marker() {
    let supervisor = supervisor().await;
    let mut command = Command {
        program: "env".into(),
        args: Vec::new(),
        env: vec![("A".into(), "1".into()), ("PATH".into(), "/usr/bin:/bin".into())],
        ..in_pipes("")
    };
    command.env.push(("WARREN_SESSION".into(), "false".into()));
    let id = command.id;
    let mut child = supervisor.spawn(command).await.unwrap();
    let text = output(&mut child).await;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["A=1", "PATH=/usr/bin:/bin", &format!("WARREN_SESSION={id}")]);
}

#[tokio::test]
async fn a_child_has_no_open_file_of_the_supervisor() {
    let supervisor = supervisor().await;
    let listing =
        Command { program: "ls".into(), args: vec!["/proc/self/fd".into()], ..in_pipes("") };
    let mut child = supervisor.spawn(listing).await.unwrap();
    // The fourth is the directory that `ls` reads.
    assert_eq!(output(&mut child).await, "0\n1\n2\n3\n");
}

#[tokio::test]
async fn signals_and_umask_are_in_order_in_a_child() {
    let supervisor = supervisor().await;
    let args = ["-E", "^(Sig(Blk|Ign)|Umask)", "/proc/self/status"].map(Into::into).to_vec();
    let mut child =
        supervisor.spawn(Command { program: "grep".into(), args, ..in_pipes("") }).await.unwrap();
    let text = output(&mut child).await;
    let fields: Vec<&str> = text.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    let [umask, blocked, ignored] = fields[..] else { panic!("{text}") };
    assert_eq!((umask, blocked), ("0022", "0000000000000000"));
    // Two belong to the C library, which does not let others set them.
    let ignored = u64::from_str_radix(ignored, 16).unwrap() & !(0b11 << 31);
    assert_eq!(ignored, 0, "{text}");
}

#[tokio::test]
async fn a_failed_start_is_an_error_with_the_reason() {
    let supervisor = supervisor().await;
    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("plain");
    std::fs::write(&plain, "data").unwrap();
    let circle = directory.path().join("circle");
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    let spawn = async |program: &Path, working_dir: &Path| {
        let (program, working_dir) = (program.into(), working_dir.to_owned());
        supervisor.spawn(Command { program, working_dir, ..in_pipes("") }).await.unwrap_err()
    };
    let root = Path::new("/");
    let error = spawn(Path::new("no-such-program"), root).await;
    assert!(matches!(error, ProcessError::NotFound { .. }), "{error}");
    let error = spawn(&plain, root).await;
    assert!(matches!(error, ProcessError::Permission { .. }), "{error}");
    let error = spawn(&circle, root).await;
    assert!(matches!(error, ProcessError::Execute { .. }), "{error}");
    for nowhere in [plain.as_path(), Path::new("/no/such/directory")] {
        let error = spawn(Path::new("true"), nowhere).await;
        assert!(
            matches!(&error, ProcessError::WorkingDir { path, .. } if path == nowhere),
            "{error}"
        );
    }
    let mut large = in_pipes("");
    large.args.push("x".repeat(MAX_COMMAND).into());
    let error = supervisor.spawn(large).await.unwrap_err();
    assert!(matches!(error, ProcessError::TooLarge { .. }), "{error}");
    let mut child = supervisor.spawn(in_pipes("echo fine")).await.unwrap();
    assert_eq!(output(&mut child).await, "fine\n", "and all goes on");
}

#[tokio::test]
async fn the_id_of_a_failed_start_is_free_again_and_that_of_a_running_one_is_not() {
    let supervisor = supervisor().await;
    let good = in_pipes("sleep 1000");
    let bad = Command { program: "no-such-program".into(), ..good.clone() };
    for _ in 0..5 {
        assert!(matches!(supervisor.spawn(bad.clone()).await, Err(ProcessError::NotFound { .. })));
    }
    let child = supervisor.spawn(good.clone()).await.unwrap();
    let again = supervisor.spawn(good.clone()).await;
    assert!(matches!(again, Err(ProcessError::Duplicate { id }) if id == good.id));
    assert_eq!(child.handle().stop(Duration::ZERO).await.unwrap(), 0);
}

#[tokio::test]
async fn there_may_be_as_many_children_as_the_limit_says_and_no_more() {
    let limits = Limits { max_children: 3, ..Limits::default() };
    let supervisor = supervisor_with(limits).await;
    let mut children = Vec::new();
    for _ in 0..3 {
        children.push(supervisor.spawn(in_pipes("exec sleep 1000")).await.unwrap());
    }
    let fourth = supervisor.spawn(in_pipes("true")).await;
    assert!(matches!(fourth, Err(ProcessError::TooMany { limit: 3 })));
    children.pop().unwrap().handle().stop(Duration::ZERO).await.unwrap();
    assert!(supervisor.spawn(in_pipes("true")).await.is_ok());
}

#[tokio::test]
async fn two_hundred_children_at_once_all_answer_and_all_end() {
    let supervisor = supervisor().await;
    let started = (0..200).map(|number| {
        let supervisor = supervisor.clone();
        tokio::spawn(async move {
            let mut child =
                supervisor.spawn(in_terminal(&format!("exit {}", number % 100))).await?;
            let mut terminal = terminal(&mut child);
            read_to_end(&mut terminal).await;
            Ok::<_, ProcessError>((number, child.wait().await))
        })
    });
    for task in started.collect::<Vec<_>>() {
        let (number, exit) = within(task).await.unwrap().unwrap();
        assert_eq!(exit, Exit::Code(number % 100));
    }
}

#[tokio::test]
async fn ports_of_a_session_are_found_through_its_members() {
    let supervisor = supervisor().await;
    let script = "perl -MIO::Socket::INET -e '$|=1; $s=IO::Socket::INET->new(Listen=>1,\
                  LocalAddr=>\"127.0.0.1\"); print $s->sockport,\"\\n\"; <STDIN>'; true";
    let mut child = supervisor.spawn(in_pipes(script)).await.unwrap();
    let ChildIo::Pipes { stdin: _stdin, mut stdout, .. } = child.take_io() else { panic!() };
    let mut said = String::new();
    while !said.ends_with('\n') {
        let mut piece = BytesMut::new();
        let length = within(stdout.read(&mut piece)).await.unwrap();
        if length == 0 {
            return support::skipped("there is no perl with sockets");
        }
        said.push_str(std::str::from_utf8(&piece).unwrap());
    }
    let members = child.handle().members().await.unwrap();
    assert!(members.contains(&child.pid));
    assert_eq!(listening_ports(&members), [said.trim().parse::<u16>().unwrap()]);
    child.handle().stop(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_no_supervisor_is_an_error() {
    for (program, args) in [("/no/such/program", vec![]), ("true", vec![]), ("cat", vec!["-"])] {
        let started = Supervisor::start(Path::new(program), &args).await;
        assert!(matches!(started, Err(ProcessError::Supervisor { .. })), "{program}");
    }
    let by_hand = std::process::Command::new(support::HOST).arg("supervisor").output().unwrap();
    assert!(!by_hand.status.success());
    assert!(String::from_utf8_lossy(&by_hand.stderr).contains("started by the daemon"));
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_leaves_no_process() {
    let supervisor = supervisor().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let script = format!("echo $$ > {}; exec sleep 1000", file.display());
    let command = Command { stdio: Stdio::Pipes, ..in_pipes(&script) };
    let start = supervisor.spawn(command.clone());
    // Until the request is sent, and no further.
    tokio::select! {
        biased;
        _ = start => panic!("the supervisor has answered at once"),
        () = std::future::ready(()) => {}
    }
    let again = async {
        loop {
            match supervisor.spawn(command.clone()).await {
                Err(ProcessError::Duplicate { .. }) => tokio::task::yield_now().await,
                other => break other,
            }
        }
    };
    let child = within(again).await.unwrap();
    assert_eq!(child.handle().members().await.unwrap(), [child.pid], "only the second is there");
}

#[tokio::test]
async fn more_questions_than_may_wait_at_once_are_all_answered() {
    let supervisor = supervisor().await;
    let handle = supervisor.spawn(in_pipes("true")).await.unwrap().handle();
    handle.stop(Duration::ZERO).await.unwrap();
    let asked = (0..5000).map(|_| {
        let handle = handle.clone();
        tokio::spawn(async move { handle.signal_group(Signal::Continue).await })
    });
    for answer in asked.collect::<Vec<_>>() {
        assert!(!within(answer).await.unwrap().unwrap(), "nobody is there");
    }
}

/// More exit events than the socket has room for, while the daemon's only thread is busy.
#[tokio::test]
async fn a_daemon_that_does_not_read_holds_up_nobody_and_misses_nothing() {
    const MANY: usize = 700;
    let supervisor = supervisor().await;
    let mut children = Vec::new();
    for _ in 0..MANY {
        let command =
            Command { program: "sleep".into(), args: vec!["1000".into()], ..in_terminal("") };
        children.push(within(supervisor.spawn(command)).await.unwrap());
    }
    for child in &children {
        let pid = nix::unistd::Pid::from_raw(child.pid.try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    let began = std::time::Instant::now();
    let is_reaped = |child: &Child| !Path::new(&format!("/proc/{}", child.pid)).exists();
    while !children.iter().all(is_reaped) {
        assert!(began.elapsed() < support::DEADLINE, "the supervisor is held up");
        std::thread::yield_now();
    }
    for child in &mut children {
        assert_eq!(within(child.wait()).await, Exit::Signal(Signal::Kill.number()));
    }
}
