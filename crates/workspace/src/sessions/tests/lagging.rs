//! Clients that are slow, or come back.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use proptest::{collection::vec, prelude::*};
use protocol::workspace::{ServerMessage, SessionMode, client::ClientNotice};
use session::terminal::{size::DEBOUNCE, viewer::PATIENCE};
use tokio::time;

use super::{bare::Bare, seen::Watcher};
use crate::{
    identity::ClientId,
    refusal::Refusal,
    sessions::clock::{AlarmTarget as _, now},
    testing::{self, Site},
};

fn is_notice(message: &ServerMessage, code: &str) -> bool {
    matches!(message, ServerMessage::ClientNotice(ClientNotice { notice }) if notice.code == code)
}

/// Lines in changing colours, of this length in bytes altogether.
fn flood(bytes: usize) -> Vec<u8> {
    let lines = (0..).flat_map(|line: usize| {
        format!("\x1b[3{}mline {line}\x1b[0m of many\r\n", line % 8).into_bytes()
    });
    lines.take(bytes).collect()
}

#[tokio::test]
async fn a_viewer_that_lags_in_a_flood_is_told_and_then_sees_the_screen() {
    let (site, workspace) = Site::started().await;
    std::fs::write(site.dir.path().join("flood"), flood(5_000_000)).unwrap();
    let script =
        "stty raw -echo; printf 'ready\\r\\n'; read go; cat flood; printf '\\r\\ndone'; cat";
    let info = workspace.sessions.create(site.shell(script)).await.unwrap();
    let mut slow = Watcher::attach(&workspace, info.id, 1);
    slow.step().await;
    let mut quick = Watcher::attach(&workspace, info.id, 2);
    quick.until("ready").await;
    super::seen::type_in(&workspace, info.id, 2, "\n");
    quick.until("done").await;
    slow.until("done").await;
    assert!(slow.messages.iter().any(|message| is_notice(message, "output_lagged")));
    assert!(slow.text.len() < 4_000_000, "it was sent {}", slow.text.len());
    assert_eq!(slow.screen.snapshot(), quick.screen.snapshot());
    assert!(workspace.counts().resyncs >= 1 && workspace.counts().output_bytes > 5_000_000);
    workspace.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn a_viewer_that_takes_nothing_for_too_long_is_dropped_with_a_notice() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Pty);
    let mut slow = Watcher::of(bare.attach(session.id, 1, None));
    slow.step().await;
    time::advance(Duration::from_secs(1)).await;
    (0..10).for_each(|_| feed.output(flood(50_000).into()));
    let moment = Duration::from_secs(1);
    time::advance(PATIENCE - moment).await;
    feed.output(Bytes::from_static(b"more"));
    let mut patient = Watcher::of(bare.attach(session.id, 2, None));
    patient.catch_up().await;
    time::advance(moment).await;
    feed.output(Bytes::from_static(b"more"));
    while slow.step().await {}
    assert!(is_notice(slow.messages.last().unwrap(), "output_backpressure"));
    assert!(slow.text.is_empty());
    patient.catch_up().await;
    assert_eq!(patient.text, "more");
}

#[tokio::test(start_paused = true)]
async fn a_viewer_that_is_busy_for_a_moment_gets_everything() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Pty);
    let mut seen = Watcher::of(bare.attach(session.id, 1, Some(0)));
    seen.catch_up().await;
    for _ in 0..20 {
        (0..4).for_each(|_| feed.output(flood(60_000).into()));
        time::advance(Duration::from_millis(40)).await;
        seen.catch_up().await;
    }
    assert_eq!((seen.text.len(), seen.snapshots), (20 * 4 * 60_000, 0));
}

#[tokio::test]
async fn reading_a_terminal_waits_until_most_of_it_is_painted() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Pty);
    let painter = session.screen.lock();
    (0..15).for_each(|_| feed.output(flood(60_000).into()));
    let mut room = std::pin::pin!(feed.room(64 * 1024));
    assert!(room.as_mut().now_or_never().is_none(), "nothing can be painted");
    drop(painter);
    room.await;
    assert!(session.lock().output.unpainted() < 900_000);
}

#[tokio::test]
async fn a_viewer_that_returns_a_thousand_times_sees_everything_once() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Pty);
    let (mut text, mut seq) = (String::new(), 0);
    for client in 0..1000 {
        for line in 0..3 {
            feed.output(format!("{client}.{line}\r\n").into());
        }
        let mut seen = Watcher::of(bare.attach(session.id, client, Some(seq)));
        for _ in 0..1 + client % 5 {
            if seen.seq.is_none_or(|seq| seq < 3 * client + 3) {
                assert!(seen.step().await);
            }
        }
        assert_eq!(seen.snapshots, 0);
        text.push_str(&seen.text);
        seq = seen.seq.unwrap_or(seq);
    }
    let mut last = Watcher::of(bare.attach(session.id, 1000, Some(seq)));
    last.catch_up().await;
    text.push_str(&last.text);
    let lines = (0..1000).flat_map(|client| (0..3).map(move |line| format!("{client}.{line}\r\n")));
    assert_eq!(text, lines.collect::<String>());
    assert!(session.lock().viewers.len() == 1);
}

#[tokio::test]
async fn a_character_cut_by_reads_comes_whole_and_one_without_an_end_is_replaced() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Pty);
    let mut seen = Watcher::of(bare.attach(session.id, 1, Some(0)));
    let crab = "🦀".as_bytes();
    feed.output(Bytes::copy_from_slice(&crab[..2]));
    feed.output(Bytes::copy_from_slice(&crab[2..]));
    seen.until("🦀").await;
    feed.output(Bytes::copy_from_slice(&crab[..3]));
    seen.until("🦀\u{fffd}").await;
    assert_eq!(seen.text, "🦀\u{fffd}");
}

#[derive(Debug, Clone)]
enum Event {
    Output(Vec<u8>),
    Resize(u16, u16),
    Take,
    Later(u64),
    Nap,
}

fn event() -> impl Strategy<Value = Event> {
    let piece = prop_oneof![
        "[a-z äß🦀\r\n]{0,30}".prop_map(String::into_bytes),
        (1_u8..40, 1_u8..90).prop_map(|(row, col)| format!("\x1b[{row};{col}H").into_bytes()),
        (0_u8..108).prop_map(|number| format!("\x1b[{number}m").into_bytes()),
        Just(b"\x1b[?1049h".to_vec()),
        Just(b"\x1b[?1049l".to_vec()),
        Just(b"\x1b[2J\x1b[5;10r".to_vec()),
        vec(any::<u8>(), 0..6),
    ];
    let small = vec(piece, 0..6).prop_map(|pieces| Event::Output(pieces.concat()));
    prop_oneof![
        6 => small,
        1 => (1_usize..60_000).prop_map(|length| Event::Output(flood(length))),
        1 => (20_u16..120, 5_u16..50).prop_map(|(cols, rows)| Event::Resize(cols, rows)),
        2 => Just(Event::Take),
        1 => (0_u64..100).prop_map(Event::Later),
        1 => Just(Event::Nap),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A client shows the same in the end, whatever the terminal shows and however the client takes
    /// it: the same as a client that comes then, and as a client that took everything at once.
    #[test]
    fn every_client_sees_what_the_terminal_shows(events in vec(event(), 0..40)) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().start_paused(true).build().unwrap().block_on(async {
            let bare = Bare::with(|settings| settings.log_bytes = 100_000);
            let (session, feed, _) = bare.session(SessionMode::Pty);
            let mut quick = Watcher::of(bare.attach(session.id, 1, Some(0)));
            let mut slow = Watcher::of(bare.attach(session.id, 2, None));
            for event in events {
                match event {
                    Event::Output(bytes) => feed.output(bytes.into()),
                    Event::Resize(cols, rows) => {
                        bare.sessions.resize(session.id, ClientId(9), cols, rows, true).unwrap();
                        time::advance(DEBOUNCE).await;
                        session.clone().alarm_rang(now());
                    }
                    Event::Take => slow.catch_up().await,
                    Event::Later(millis) => time::advance(Duration::from_millis(millis)).await,
                    Event::Nap => drop(session.screen_now()),
                }
                quick.catch_up().await;
            }
            time::advance(Duration::from_secs(1)).await;
            quick.catch_up().await;
            slow.catch_up().await;
            let mut last = Watcher::of(bare.attach(session.id, 3, None));
            last.catch_up().await;
            assert_eq!(slow.screen.text(), last.screen.text());
            assert_eq!(slow.screen.snapshot(), last.screen.snapshot());
            assert_eq!(quick.screen.snapshot(), last.screen.snapshot());
        });
    }
}

#[tokio::test]
async fn a_repeated_input_waits_for_the_first_attempt_and_is_applied_if_that_fails() {
    let bare = Bare::new();
    let (session, ..) = bare.session(SessionMode::Pty);
    let again = Arc::clone(&session);
    let ((begins, begun), (fails, failed)) = (mpsc::channel(), mpsc::channel::<()>());
    let first = thread::spawn(move || {
        session.once(Some("a"), || {
            begins.send(()).unwrap();
            failed.recv().unwrap();
            Err::<(), _>(Refusal::invalid("not now"))
        })
    });
    begun.recv_timeout(testing::PATIENCE).unwrap();
    let (applies, applied) = mpsc::channel();
    thread::spawn(move || applies.send(again.once(Some("a"), || Ok(()))).unwrap());
    // A repeat that does not wait is acknowledged in this time.
    let early = applied.recv_timeout(Duration::from_millis(300));
    fails.send(()).unwrap();
    assert!(early.is_err(), "{early:?}");
    first.join().unwrap().unwrap_err();
    assert!(matches!(applied.recv_timeout(testing::PATIENCE).unwrap(), Ok(Some(()))));
}
