//! Connecting, and requests with their answers.

use std::time::Duration;

use protocol::workspace::{
    ClientMessage, ProjectId, ServerMessage, SessionStatus, base64,
    client::{
        Attach, OfSession, ProjectFileChunk, ProjectFileChunkError, SessionList, TerminalSize,
    },
    limits::UPLOAD_MAX,
};
use tokio::{io::AsyncWriteExt, join, net::TcpListener};

use super::double::{Double, Peer, info, session};
use crate::{
    ClientError,
    workspace::{Address, ServerFrame, Workspace, files::WindowRequest},
};

async fn pair(double: &Double) -> (Workspace, Peer) {
    let (workspace, peer) = join!(Workspace::connect(&double.address), double.admit());
    (workspace.unwrap(), peer)
}

#[tokio::test]
async fn a_wrong_token_is_reported_with_the_way_to_a_right_one() {
    let double = Double::start().await;
    for token in [Some("wk_wrong"), None] {
        let address = double.with_token(token);
        let (refused, _) = join!(Workspace::connect(&address), async {
            match token {
                Some(_) => drop(double.admit().await),
                None => assert_eq!(double.accept().await.next().await, None),
            }
        });
        let error = refused.err().unwrap();
        assert!(matches!(error, ClientError::NotAdmitted { .. }), "{error}");
        let words = error.to_string();
        assert!(words.contains("warren key create") && !words.contains("wk_wrong"), "{words}");
    }
}

#[tokio::test]
async fn an_absent_server_or_workspace_is_an_error() {
    let refusing = testkit::RefusingPort::take();
    let address = Address::new(&refusing.url(), None).unwrap();
    assert!(Workspace::connect(&address).await.err().unwrap().is_unreachable());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let address = Address::new(&url, None).unwrap();
    let (refused, ()) = join!(Workspace::connect(&address), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        // Held until the answer is read.
        stream.shutdown().await.unwrap();
    });
    let words = refused.err().unwrap().to_string();
    assert!(words.contains("no workspace"), "{words}");
}

#[tokio::test]
async fn an_answer_is_found_among_other_messages() {
    let double = Double::start().await;
    let (mut workspace, mut peer) = pair(&double).await;
    let (sessions, ()) = join!(workspace.sessions(false), async {
        assert!(matches!(peer.next().await, Some(ClientMessage::ListSessions(_))));
        peer.tell_text(r#"{"type":"from_the_future","a":1}"#).await;
        peer.tell(ServerMessage::KeepaliveAck).await;
        peer.list(SessionStatus::Running).await;
    });
    assert_eq!(sessions.unwrap(), [info(SessionStatus::Running)]);
    let (unknown, ()) = join!(workspace.kill_session(session()), async {
        peer.next().await;
        let of = OfSession { session_id: session() };
        peer.tell(ServerMessage::SessionUnknown(of)).await;
    });
    assert!(unknown.unwrap_err().is_not_found());
    let (declined, ()) = join!(workspace.sessions(false), async {
        peer.next().await;
        peer.tell(ServerMessage::error("list_sessions needs the scope workspace:read")).await;
    });
    assert!(matches!(declined, Err(ClientError::Declined { .. })));
    let (strange, ()) = join!(workspace.sessions(false), async {
        peer.next().await;
        peer.tell_text(r#"{"type":"session_list","sessions":7}"#).await;
    });
    assert!(matches!(strange, Err(ClientError::Strange { .. })));
}

#[tokio::test]
async fn messages_that_come_before_an_answer_are_kept_for_a_listener() {
    let double = Double::start().await;
    let (mut workspace, mut peer) = pair(&double).await;
    let attach = Attach { session_id: session(), after_seq: None };
    workspace.send(&ClientMessage::Attach(attach)).unwrap();
    let (sessions, ()) = join!(workspace.sessions(false), async {
        peer.next().await;
        peer.history(1, None).await;
        peer.output(2, "a").await;
        peer.list(SessionStatus::Running).await;
    });
    assert_eq!(sessions.unwrap().len(), 1);
    assert!(matches!(workspace.ready(), Ok(Some(ServerFrame::Message(_)))));
    let Ok(Some(ServerFrame::Output(output))) = workspace.next().await else { panic!() };
    assert_eq!((output.seq, &output.data[..]), (2, &b"a"[..]));
}

#[tokio::test]
async fn more_than_can_be_kept_is_an_error_and_not_a_loss() {
    let double = Double::start().await;
    let (mut workspace, mut peer) = pair(&double).await;
    let attach = Attach { session_id: session(), after_seq: None };
    workspace.send(&ClientMessage::Attach(attach)).unwrap();
    let flood = tokio::spawn(async move {
        let size = TerminalSize { session_id: session(), cols: 80, rows: 24 };
        for _ in 0..5000 {
            peer.tell(ServerMessage::TerminalSize(size)).await;
        }
        peer
    });
    let error = workspace.sessions(false).await.unwrap_err();
    assert!(matches!(error, ClientError::Strange { .. }), "{error}");
    flood.abort();
}

#[tokio::test]
async fn without_a_listener_other_messages_do_not_end_the_wait() {
    let double = Double::start().await;
    let (mut workspace, mut peer) = pair(&double).await;
    let (sessions, ()) = join!(workspace.sessions(false), async {
        for _ in 0..5000 {
            peer.tell(ServerMessage::KeepaliveAck).await;
        }
        peer.tell(ServerMessage::SessionList(SessionList::default())).await;
    });
    assert_eq!(sessions.unwrap(), []);
}

#[tokio::test]
async fn windows_of_files_are_checked() {
    let double = Double::start().await;
    let (mut workspace, mut peer) = pair(&double).await;
    let project = ProjectId::from_random(1);
    let serve = async |peer: &mut Peer, data: &str, offset, eof| {
        let Some(ClientMessage::ReadProjectFileChunk(request)) = peer.next().await else {
            panic!()
        };
        let chunk = |request_id: String| ProjectFileChunk {
            request_id,
            data: data.to_owned(),
            offset,
            total_size: 3,
            eof,
            version: None,
            sha256: None,
        };
        peer.tell(ServerMessage::ProjectFileChunk(chunk("of another".to_owned()))).await;
        peer.tell(ServerMessage::ProjectFileChunk(chunk(request.request_id))).await;
    };
    let good = base64::encode(b"abc");
    let cases = [(&good[..], 0, true), (&good, 1, true), ("", 0, false), ("@", 0, true)];
    for (case, (data, offset, eof)) in cases.into_iter().enumerate() {
        let read =
            workspace.read_window(project, "a", WindowRequest { offset: 0, len: 8, check: false });
        let (window, ()) = join!(read, serve(&mut peer, data, offset, eof));
        match case {
            0 => assert_eq!(window.unwrap().data, b"abc"),
            _ => assert!(matches!(window, Err(ClientError::Strange { .. })), "{case}"),
        }
    }
    let (missing, ()) = join!(
        workspace.read_window(project, "a", WindowRequest { offset: 0, len: 8, check: false }),
        async {
            let Some(ClientMessage::ReadProjectFileChunk(request)) = peer.next().await else {
                panic!()
            };
            let message = "no such file or directory".to_owned();
            let error = ProjectFileChunkError { request_id: request.request_id, message };
            peer.tell(ServerMessage::ProjectFileChunkError(error)).await;
        }
    );
    assert!(missing.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_file_that_is_too_large_is_not_even_sent() {
    let double = Double::start().await;
    let (mut workspace, mut peer) = pair(&double).await;
    let bytes = vec![0; UPLOAD_MAX + 1];
    let error = workspace.upload(ProjectId::from_random(1), "big", &bytes).await.unwrap_err();
    assert!(error.to_string().contains("25 MiB"), "{error}");
    workspace.close().await;
    assert_eq!(peer.next().await, None);
}

#[tokio::test]
async fn a_server_that_says_nothing_any_more_is_late_and_then_lost() {
    let double = Double::start().await;
    let (mut workspace, _peer) = pair(&double).await;
    tokio::time::pause();
    let error = workspace.sessions(false).await.unwrap_err();
    let ClientError::Late { after, .. } = error else { panic!("{error}") };
    assert_eq!(after, Duration::from_secs(30));
    let silent = workspace.next().await.unwrap_err();
    assert!(matches!(silent, ClientError::Late { .. }), "{silent}");
}
