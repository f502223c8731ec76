//! A session that is followed while connections are lost.

use std::time::Duration;

use protocol::workspace::{
    ClientMessage, Notice, NoticeLevel, ServerMessage, SessionId, SessionInfo, SessionStatus,
    client::{ClientNotice, InputAck, SessionList, connection::OUTPUT_BACKPRESSURE},
};
use tokio::join;

use super::double::{Double, Peer, info, session};
use crate::{
    ClientError,
    workspace::{Addresses, Ending, Follower, FollowerSettings, SessionView, Workspace},
};

async fn follow(double: &Double) -> (Follower, Peer) {
    let settings = FollowerSettings {
        backoff: (Duration::from_millis(1), Duration::from_millis(10)),
        ..FollowerSettings::default()
    };
    follow_by(double, settings).await
}

async fn follow_by(double: &Double, settings: FollowerSettings) -> (Follower, Peer) {
    let (workspace, peer) = join!(Workspace::connect(&double.address), double.admit());
    let workspace = workspace.unwrap();
    (Follower::begin(workspace, &double.address, session(), settings).unwrap(), peer)
}

async fn next(follower: &mut Follower) -> SessionView {
    follower.next().await.unwrap().unwrap()
}

fn output(text: &str) -> SessionView {
    SessionView::Output(text.to_owned().into())
}

#[tokio::test]
async fn a_lost_connection_costs_nothing_and_repeats_nothing() {
    let double = Double::start().await;
    let (mut follower, mut peer) = follow(&double).await;
    let (screen, ()) = join!(next(&mut follower), async {
        assert_eq!(peer.attached().await, None);
        peer.history(3, Some("screen")).await;
        peer.output(4, "a").await;
    });
    assert!(matches!(screen, SessionView::Screen(it) if it.data == "screen"));
    assert_eq!(next(&mut follower).await, output("a"));
    drop(peer);
    assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
    let (back, mut peer) = join!(next(&mut follower), double.admit());
    assert_eq!(back, SessionView::Back);
    let (more, ()) = join!(next(&mut follower), async {
        assert_eq!(peer.attached().await, Some(4));
        peer.history(4, None).await;
        // One more than was asked for.
        peer.output(4, "a").await;
        peer.output(5, "b").await;
    });
    assert_eq!(more, output("b"));
    peer.output(6, "c").await;
    assert_eq!(next(&mut follower).await, output("c"));
}

#[tokio::test]
async fn keys_that_were_not_acknowledged_are_sent_again_with_their_ids() {
    let double = Double::start().await;
    let (mut follower, mut peer) = follow(&double).await;
    follower.type_in(b"a");
    follower.type_in(b"b");
    let typed = async |peer: &mut Peer| {
        let Some(ClientMessage::TerminalInput(input)) = peer.next().await else { panic!() };
        (input.input_id.clone().unwrap(), input.bytes().unwrap())
    };
    let (_, first) = join!(next(&mut follower), async {
        peer.attached().await;
        let (first, second) = (typed(&mut peer).await, typed(&mut peer).await);
        assert_eq!((first.1, &second.1[..]), (b"a".to_vec(), &b"b"[..]));
        peer.tell(ServerMessage::InputAck(InputAck { input_id: first.0, turn: None })).await;
        peer.history(1, Some("")).await;
        second.0
    });
    drop(peer);
    assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
    follower.type_in(b"c");
    let (_, mut peer) = join!(next(&mut follower), double.admit());
    let (_, ()) = join!(next(&mut follower), async {
        peer.attached().await;
        assert_eq!(typed(&mut peer).await, (first, b"b".to_vec()));
        assert_eq!(typed(&mut peer).await.1, b"c");
        peer.history(2, Some("")).await;
    });
}

#[tokio::test]
async fn a_prompt_that_was_not_acknowledged_is_sent_again_with_its_id_and_its_turn_is_reported() {
    let double = Double::start().await;
    let (mut follower, mut peer) = follow(&double).await;
    follower.prompt("look".to_owned());
    let prompted = async |peer: &mut Peer| {
        let Some(ClientMessage::SendInput(prompt)) = peer.next().await else { panic!() };
        (prompt.input, prompt.input_id.unwrap())
    };
    let (_, first) = join!(next(&mut follower), async {
        peer.attached().await;
        let first = prompted(&mut peer).await;
        peer.history(1, Some("")).await;
        first
    });
    assert_eq!(first.0, "look");
    drop(peer);
    assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
    let (_, mut peer) = join!(next(&mut follower), double.admit());
    let (taken, ()) = join!(next(&mut follower), async {
        peer.attached().await;
        assert_eq!(prompted(&mut peer).await, first);
        let ack = InputAck { input_id: first.1.clone(), turn: Some(7) };
        peer.tell(ServerMessage::InputAck(ack)).await;
    });
    assert_eq!(taken, SessionView::Taken { turn: Some(7) });
}

#[tokio::test]
async fn the_last_output_of_a_process_is_shown_before_its_end() {
    let double = Double::start().await;
    let (mut follower, mut peer) = follow(&double).await;
    let tell = async {
        peer.attached().await;
        peer.list(SessionStatus::Exited).await;
        peer.history(1, Some("")).await;
        peer.output(2, "last words").await;
    };
    let (seen, ()) = join!(async { [next(&mut follower).await, next(&mut follower).await] }, tell);
    assert_eq!(seen[1], output("last words"));
    assert_eq!(next(&mut follower).await, SessionView::Ended(Ending::Exited { code: None }));
    assert_eq!(follower.next().await, Ok(None));
}

#[tokio::test]
async fn the_maker_of_a_session_sees_all_output_and_then_its_exit_code_however_late() {
    let double = Double::start().await;
    let settings = FollowerSettings { from_start: true, ..FollowerSettings::default() };
    let (mut follower, mut peer) = follow_by(&double, settings).await;
    let exited =
        SessionInfo { exit_code: Some(7), last_seq: Some(2), ..info(SessionStatus::Exited) };
    let tell = async {
        assert_eq!(peer.attached().await, Some(0));
        let sessions = vec![exited];
        peer.tell(ServerMessage::SessionList(SessionList { sessions })).await;
        peer.history(0, None).await;
        peer.output(1, "first").await;
    };
    let (first, ()) = join!(next(&mut follower), tell);
    assert_eq!(first, output("first"));
    // Far longer than merely late output takes.
    tokio::time::pause();
    let nothing = tokio::time::timeout(Duration::from_secs(10), follower.next()).await;
    tokio::time::resume();
    assert!(nothing.is_err(), "{nothing:?}");
    peer.output(2, "last").await;
    assert_eq!(next(&mut follower).await, output("last"));
    assert_eq!(next(&mut follower).await, SessionView::Ended(Ending::Exited { code: Some(7) }));
}

#[tokio::test]
async fn a_server_that_hangs_is_noticed_in_fifteen_to_twenty_seconds_and_later_behind_much_of_ones_own()
 {
    for (typed, expected) in [(10, 15..=20), (100 * 1024, 45..=50)] {
        let double = Double::start().await;
        let (mut follower, mut peer) = follow(&double).await;
        // Before its last sign of life, however busy the machine is.
        let since = tokio::time::Instant::now();
        let (_, ()) = join!(next(&mut follower), async {
            assert_eq!(peer.attached().await, None);
            peer.history(0, Some("screen")).await;
        });
        follower.type_in(&vec![b'x'; typed]);
        tokio::time::pause();
        assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
        let seconds = since.elapsed().as_secs();
        assert!(expected.contains(&seconds), "after {seconds} s of {typed} bytes");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn keys_that_come_after_the_end_cost_nothing_of_the_output() {
    let double = Double::start().await;
    let settings = FollowerSettings { from_start: true, ..FollowerSettings::default() };
    let (mut follower, mut peer) = follow_by(&double, settings).await;
    let exited =
        SessionInfo { exit_code: Some(0), last_seq: Some(1), ..info(SessionStatus::Exited) };
    follower.type_in(b"x");
    peer.tell(ServerMessage::error("the session has ended: exited with 0")).await;
    peer.tell(ServerMessage::SessionList(SessionList { sessions: vec![exited] })).await;
    peer.history(0, None).await;
    peer.output(1, "all").await;
    assert_eq!(next(&mut follower).await, output("all"));
    assert_eq!(next(&mut follower).await, SessionView::Ended(Ending::Exited { code: Some(0) }));
}

#[tokio::test]
async fn a_session_that_is_gone_after_a_loss_has_ended() {
    let double = Double::start().await;
    let (mut follower, peer) = follow(&double).await;
    drop(peer);
    assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
    let (_, mut peer) = join!(next(&mut follower), double.admit());
    peer.tell(ServerMessage::SessionList(SessionList::default())).await;
    assert_eq!(next(&mut follower).await, SessionView::Ended(Ending::Killed));
}

#[tokio::test]
async fn a_session_that_may_not_be_followed_is_an_error() {
    let double = Double::start().await;
    let (mut follower, mut peer) = follow(&double).await;
    peer.tell(ServerMessage::error(format!("there is no session {}", session()))).await;
    assert!(follower.next().await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_stream_that_the_server_dropped_is_asked_for_again() {
    let double = Double::start().await;
    let (mut follower, mut peer) = follow(&double).await;
    let (_, ()) = join!(next(&mut follower), async {
        peer.attached().await;
        peer.history(9, Some("")).await;
    });
    let notice = |session_id: SessionId| {
        let notice = Notice {
            level: NoticeLevel::Warning,
            code: OUTPUT_BACKPRESSURE.to_owned(),
            message: String::new(),
            detail: None,
            session_id: Some(session_id),
        };
        ServerMessage::ClientNotice(ClientNotice { notice })
    };
    let (seen, ()) = join!(next(&mut follower), async {
        peer.tell(notice(SessionId::from_random(1))).await;
        peer.tell(notice(session())).await;
        let Some(ClientMessage::Attach(attach)) = peer.next().await else { panic!() };
        assert_eq!(attach.after_seq, Some(9));
        peer.history(12, Some("later")).await;
    });
    assert!(matches!(seen, SessionView::Screen(it) if it.data == "later"));
}

#[tokio::test]
async fn a_server_that_stays_lost_is_an_error_when_patience_ends() {
    let double = Double::start().await;
    let settings = FollowerSettings { patience: Duration::ZERO, ..FollowerSettings::default() };
    let (mut follower, peer) = follow_by(&double, settings).await;
    drop((peer, double));
    assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
    assert!(follower.next().await.unwrap_err().is_unreachable());
}

#[tokio::test]
async fn a_token_that_was_revoked_meanwhile_is_an_error_at_once() {
    let double = Double::start().await;
    let (mut follower, peer) = follow(&double).await;
    drop(peer);
    assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
    let (error, _) = join!(follower.next(), async {
        let mut peer = double.accept().await;
        peer.next().await;
        peer.tell(ServerMessage::error("the key is revoked")).await;
    });
    assert!(matches!(error, Err(ClientError::NotAdmitted { .. })), "{error:?}");
}

#[tokio::test]
async fn a_size_is_sent_on_each_connection_unless_it_is_too_small() {
    let double = Double::start().await;
    let settings = FollowerSettings { size: Some((100, 30)), ..FollowerSettings::default() };
    let (mut follower, mut peer) = follow_by(&double, settings).await;
    follower.resize(10, 2);
    follower.resize(120, 40);
    let (_, ()) = join!(next(&mut follower), async {
        assert!(matches!(peer.next().await, Some(ClientMessage::Attach(_))));
        for expected in [(100, 30), (120, 40)] {
            let size = loop {
                if let Some(ClientMessage::Resize(it)) = peer.next().await {
                    break (it.cols, it.rows);
                }
            };
            assert_eq!(size, expected);
        }
        peer.history(1, Some("")).await;
    });
}

/// Answers in place of a server that is away for a moment.
const AWAY: [Option<&str>; 8] = [
    None,
    Some(""),
    Some("HTTP/1.1 101 Switching"),
    Some("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"),
    Some("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\nhalf"),
    Some("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n"),
    Some("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"),
    Some("HTTP/1.1 425 Too Early\r\ncontent-length: 0\r\n\r\n"),
];

#[tokio::test]
async fn a_server_that_is_away_in_any_way_is_tried_until_it_is_back() {
    let double = Double::start().await;
    let (mut follower, peer) = follow(&double).await;
    drop(peer);
    assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
    let (back, _peer) = join!(next(&mut follower), async {
        for answer in AWAY {
            double.answer_wrongly(answer).await;
        }
        // It goes again before it has looked at the token.
        drop(double.accept().await);
        double.accept().await.next().await;
        double.admit().await
    });
    assert_eq!(back, SessionView::Back);
}

#[tokio::test]
async fn the_first_connection_is_tried_once() {
    for answer in AWAY {
        let double = Double::start().await;
        let (refused, ()) =
            join!(Workspace::connect(&double.address), double.answer_wrongly(answer));
        let error = refused.err().unwrap();
        let is_refused = matches!(error, ClientError::Refused { .. });
        assert!(error.is_unreachable() || is_refused, "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn a_lasting_error_ends_the_tries_at_once() {
    for status in
        ["401 Unauthorized", "403 Forbidden", "400 Bad Request", "404 Not Found", "200 OK"]
    {
        let double = Double::start().await;
        let (mut follower, peer) = follow(&double).await;
        drop(peer);
        assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 3\r\n\r\nno.");
        let (error, ()) = join!(follower.next(), double.answer_wrongly(Some(&answer)));
        assert!(!error.unwrap_err().is_unreachable(), "{status}");
    }
}

#[tokio::test]
async fn a_paste_goes_out_while_the_session_says_nothing() {
    let double = Double::start().await;
    let (mut follower, mut peer) = follow(&double).await;
    let paste: Vec<u8> = (0..=255).cycle().take(3 * 1024 * 1024).collect();
    assert!(paste.chunks(1000).all(|keys| follower.type_in(keys)));
    assert!(follower.waiting() > 2 * 1024 * 1024);
    let mut typed = Vec::new();
    let (seen, ()) = join!(next(&mut follower), async {
        peer.attached().await;
        while typed.len() < paste.len() {
            let Some(ClientMessage::TerminalInput(input)) = peer.next().await else { panic!() };
            let input_id = input.input_id.clone().unwrap();
            typed.extend(input.bytes().unwrap());
            peer.tell(ServerMessage::InputAck(InputAck { input_id, turn: None })).await;
        }
        peer.history(1, Some("")).await;
    });
    assert!(matches!(seen, SessionView::Screen(_)));
    assert!(typed == paste && follower.waiting() == 0);
}

#[tokio::test]
async fn typed_keys_leave_even_while_nothing_can_be_shown() {
    let double = Double::start().await;
    let (mut follower, mut peer) = follow(&double).await;
    follower.type_in(b"\x03");
    tokio::select! {
        () = follower.write() => panic!("it has ended"),
        () = async {
            peer.attached().await;
            assert!(matches!(peer.next().await, Some(ClientMessage::TerminalInput(_))));
        } => {}
    }
}

#[tokio::test]
async fn the_whole_screen_is_asked_for_once_all_that_was_missed_is_here() {
    let double = Double::start().await;
    let (mut follower, mut peer) = follow(&double).await;
    let (_, ()) = join!(next(&mut follower), async {
        peer.attached().await;
        peer.history(1, Some("")).await;
    });
    drop(peer);
    assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
    let (_, mut peer) = join!(next(&mut follower), double.admit());
    follower.repaint();
    let missed = SessionInfo { last_seq: Some(3), ..info(SessionStatus::Running) };
    let tell = async {
        assert_eq!(peer.attached().await, Some(1));
        peer.history(1, None).await;
        peer.output(2, "mis").await;
        peer.tell(ServerMessage::SessionList(SessionList { sessions: vec![missed] })).await;
        peer.output(3, "sed").await;
        let Some(ClientMessage::Attach(attach)) = peer.next().await else { panic!() };
        assert_eq!(attach.after_seq, None);
        // On its way before the server has read that.
        peer.output(4, "!").await;
        peer.history(4, Some("missed!")).await;
    };
    let see = async {
        assert_eq!(next(&mut follower).await, output("mis"));
        assert!(matches!(next(&mut follower).await, SessionView::Status(_)));
        assert_eq!(next(&mut follower).await, output("sed"));
        assert_eq!(next(&mut follower).await, output("!"));
        next(&mut follower).await
    };
    let (screen, ()) = join!(see, tell);
    assert!(matches!(screen, SessionView::Screen(it) if it.data == "missed!"));
    // Once, and not again.
    peer.output(5, "?").await;
    assert_eq!(next(&mut follower).await, output("?"));
}

/// Follows by two servers, and is attached to the first one, with output 4 as the last.
async fn follow_by_two() -> (Follower, Double, Double) {
    let (one, two) = (Double::start().await, Double::start().await);
    let both = Addresses::new(one.address.clone(), [two.address.clone()]);
    let (workspace, mut peer) = join!(Workspace::connect_to_any(&both), one.admit());
    let settings = FollowerSettings {
        backoff: (Duration::from_millis(1), Duration::from_millis(10)),
        ..FollowerSettings::default()
    };
    let mut follower = Follower::begin(workspace.unwrap(), &both, session(), settings).unwrap();
    follower.type_in(b"a");
    join!(next(&mut follower), async {
        peer.attached().await;
        peer.history(3, Some("screen")).await;
        peer.output(4, "a").await;
    });
    assert_eq!(next(&mut follower).await, output("a"));
    drop(peer);
    assert!(matches!(next(&mut follower).await, SessionView::Lost(_)));
    (follower, one, two)
}

#[tokio::test]
async fn a_lost_server_is_replaced_by_the_next_one_at_the_same_position() {
    let (mut follower, one, two) = follow_by_two().await;
    drop(one);
    let (back, mut peer) = join!(next(&mut follower), two.admit());
    assert_eq!(back, SessionView::Back);
    let (more, ()) = join!(next(&mut follower), async {
        assert_eq!(peer.attached().await, Some(4));
        let Some(ClientMessage::TerminalInput(_)) = peer.next().await else { panic!() };
        peer.history(4, None).await;
        peer.output(4, "a").await;
        peer.output(5, "b").await;
    });
    assert_eq!(more, output("b"));
}

#[tokio::test]
async fn a_server_that_does_not_reach_the_session_yet_is_waited_for() {
    let (mut follower, one, two) = follow_by_two().await;
    drop(one);
    let (_, mut peer) = join!(next(&mut follower), two.admit());
    let words = "lab, which runs it, cannot be reached".to_owned();
    let typed = async |peer: &mut Peer| {
        let Some(ClientMessage::TerminalInput(input)) = peer.next().await else { panic!() };
        input.bytes().unwrap()
    };
    let (refused, ()) = join!(next(&mut follower), async {
        assert_eq!(peer.attached().await, Some(4));
        assert_eq!(typed(&mut peer).await, b"a");
        peer.tell(ServerMessage::error(words.clone())).await;
    });
    assert_eq!(refused, SessionView::Refused(words.clone()));
    // The server has attached by itself: what was typed is sent again.
    let (more, ()) = join!(next(&mut follower), async {
        peer.history(4, None).await;
        peer.output(5, "b").await;
    });
    assert_eq!(more, output("b"));
    tokio::select! {
        keys = typed(&mut peer) => assert_eq!(keys, b"a"),
        seen = follower.next() => panic!("{seen:?}"),
    }
}

#[tokio::test]
async fn servers_that_cannot_be_reached_are_passed_over_and_all_named_if_none_can() {
    let (gone, there) = (Double::start().await, Double::start().await);
    let gone_address = gone.address.clone();
    drop(gone);
    let both = Addresses::new(gone_address.clone(), [there.address.clone()]);
    let (workspace, _peer) = join!(Workspace::connect_to_any(&both), there.admit());
    assert_eq!(workspace.unwrap().server(), there.address.shown());
    drop(there);
    let Err(error) = Workspace::connect_to_any(&both).await else { panic!() };
    assert!(error.is_unreachable(), "{error}");
    assert!(both.iter().all(|address| error.to_string().contains(address.shown())), "{error}");
}
