//! Tests of the client, and of what finds faults in output.

use protocol::workspace::decode_request;
use serde_json::json;

use super::*;

const SESSION: &str = "01020304-0506-0708-090a-0b0c0d0e0f10";

fn output(seq: u64, text: &str) -> ServerMessage {
    let session = SESSION.to_owned();
    ServerMessage::Output(Output { session, seq, text: text.to_owned() })
}

fn begins(last_seq: u64) -> ServerMessage {
    ServerMessage::Message(json!({
        "type": "session_history", "session_id": SESSION, "last_seq": last_seq, "snapshot": null,
    }))
}

fn snapshot(seq: u64) -> ServerMessage {
    ServerMessage::Message(json!({
        "type": "session_snapshot", "session_id": SESSION, "seq": seq, "cols": 80, "rows": 24,
        "data": "screen",
    }))
}

fn first(last_seq: u64) -> ServerMessage {
    let ServerMessage::Message(snapshot) = snapshot(last_seq) else {
        unreachable!("it is a message")
    };
    ServerMessage::Message(json!({
        "type": "session_history", "session_id": SESSION, "last_seq": last_seq,
        "snapshot": snapshot,
    }))
}

#[test]
fn every_message_has_a_sample_that_can_be_read() {
    for name in client_messages() {
        let message = decode_request(&sample(name).to_string()).unwrap();
        assert_eq!(message.name(), *name);
    }
}

#[test]
fn a_frame_is_read() {
    let frame = b"\x01\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\
        \0\0\0\0\0\0\x01\x02hi";
    assert_eq!(ServerMessage::binary(frame), output(0x102, "hi"));
}

#[test]
fn following_numbers_are_taken_and_lost_or_repeated_ones_are_found() {
    let mut follow = Follow::new(SESSION);
    assert_eq!(follow.attach()["after_seq"], serde_json::Value::Null);
    assert!(follow.take(&output(1, "a")).is_err(), "nothing comes before session_history");
    follow.take(&first(4)).unwrap();
    assert_eq!(follow.take(&output(5, "b")), Ok(Step::Write("b".to_owned())));
    assert!(follow.take(&output(5, "b")).is_err(), "twice");
    assert!(follow.take(&output(7, "b")).is_err(), "lost");
    assert_eq!((follow.text(), follow.seq(), follow.snapshots()), ("screenb", 5, 1));
    assert_eq!(follow.attach()["after_seq"], 5);
    assert!(follow.clone().take(&begins(4)).is_err() && follow.clone().take(&begins(6)).is_err());
    assert_eq!(follow.take(&begins(5)), Ok(Step::Nothing));
    assert_eq!(follow.take(&snapshot(9)), Ok(Step::Paint(80, 24, "screen".to_owned())));
    assert_eq!(follow.take(&output(10, "c")), Ok(Step::Write("c".to_owned())));
}

#[tokio::test]
async fn a_way_is_cut_at_the_byte_that_the_seed_says() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _cut = stream.write_all(&[7; 5_000]).await;
                let _end = stream.read(&mut [0]).await;
            });
        }
    });
    let mut lengths = Vec::new();
    for _ in 0..2 {
        let cutter = Cutter::to(target, 3, 4_000).await;
        for _ in 0..20 {
            let mut stream = tokio::net::TcpStream::connect(cutter.address()).await.unwrap();
            let mut read = Vec::new();
            let _reset = crate::within("a cut", stream.read_to_end(&mut read)).await;
            lengths.push(read.len());
        }
        assert_eq!(cutter.cuts(), 20);
        cutter.calm_down();
        let mut stream = tokio::net::TcpStream::connect(cutter.address()).await.unwrap();
        crate::within("all of it", stream.read_exact(&mut [0; 5_000])).await.unwrap();
    }
    assert!(lengths.iter().all(|length| *length <= 4_000), "{lengths:?}");
    assert!(lengths.iter().any(|length| *length > 1_000), "{lengths:?}");
}

#[tokio::test]
async fn marked_processes_are_found_until_they_have_ended() {
    let mark = Mark::new();
    mark.is_gone().await;
    let mut sleeps = tokio::process::Command::new("sleep").arg(mark.word()).spawn().unwrap();
    mark.has_processes(1).await;
    sleeps.start_kill().unwrap();
    mark.is_gone().await;
    sleeps.wait().await.unwrap();
}
