//! Streams between servers.

use std::sync::Arc;

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
};

use crate::{
    FellowStream, Reason, Service,
    testing::{Net, Server},
};

/// The requests to a server over streams for rooms.
fn taken(server: &Server) -> mpsc::Receiver<FellowStream> {
    let (taken, streams) = mpsc::channel(16);
    let handler = move |stream| _ = taken.try_send(stream);
    server.fellows.serve(Service::ROOMS, Arc::new(handler));
    streams
}

fn open(from: &Server, to: &Server) -> FellowStream {
    from.fellows.open(to.fellows.id(), Service::ROOMS).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_tokios_reader_and_writer_also_over_a_bad_network() {
    let net = Net::default();
    let (one, other) = Server::two(&net).await;
    let mut streams = taken(&one);
    net.is_bad(8, 20);
    let mut stream = open(&other, &one);
    let echo = tokio::spawn(async move {
        let (mut read, mut write) = tokio::io::split(streams.recv().await.unwrap());
        let copied = tokio::io::copy(&mut read, &mut write).await.unwrap();
        write.shutdown().await.unwrap();
        copied
    });
    let sent: Vec<u8> = (0..1_000_000_u32).map(|at| at as u8).collect();
    let (mut read, mut write) = tokio::io::split(&mut stream);
    let writing = async {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut back = Vec::new();
    let reading = read.read_to_end(&mut back);
    let ((), read) = tokio::join!(writing, reading);
    assert_eq!(read.unwrap(), sent.len());
    assert!(back == sent);
    assert_eq!(echo.await.unwrap(), sent.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn what_was_written_to_its_end_arrives_though_its_writer_has_left() {
    let net = Net::default();
    let (one, other) = Server::two(&net).await;
    let mut streams = taken(&one);
    net.is_bad(10, 0);
    let stream = open(&other, &one);
    stream.write(Bytes::from_static(b"the last word"), true).await.unwrap();
    drop(stream);
    let mut text = String::new();
    streams.recv().await.unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "the last word");
}

#[tokio::test(start_paused = true)]
async fn who_drops_a_stream_before_its_end_resets_it() {
    let (one, other) = Server::two(&Net::default()).await;
    let mut streams = taken(&one);
    let stream = open(&other, &one);
    let theirs = streams.recv().await.unwrap();
    drop(stream);
    assert_eq!(theirs.piece().await.unwrap_err().reason, Reason::Cancelled);
    let stream = open(&other, &one);
    streams.recv().await.unwrap().reset(Reason::Failed, "no such room");
    let over = stream.piece().await.unwrap_err();
    assert_eq!((over.reason, over.detail.as_str()), (Reason::Failed, "no such room"));
    assert_eq!(over.to_string(), "the other server failed: no such room");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_nobody_serves_is_refused() {
    let (one, other) = Server::two(&Net::default()).await;
    let over = open(&other, &one).piece().await.unwrap_err();
    assert_eq!(over.reason, Reason::Refused);
    assert!(other.fellows.open(other.fellows.id(), Service::ROOMS).is_none(), "no fellow");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_streams_are_open_with_a_fellow() {
    let (one, other) = Server::two(&Net::default()).await;
    let (kept, mut all) = mpsc::channel(9_000);
    let handler = move |stream| _ = kept.try_send(stream);
    one.fellows.serve(Service::ROOMS, Arc::new(handler));
    let mut open_here = Vec::new();
    while let Some(stream) = other.fellows.open(one.fellows.id(), Service::ROOMS) {
        open_here.push(stream);
    }
    assert_eq!(open_here.len(), crate::streams::MOST_STREAMS);
    // Those that the other end opens count, too.
    all.recv().await.unwrap();
    while one.fellows.status().streams < open_here.len() - 1 {
        tokio::task::yield_now().await;
    }
    drop(open_here.pop());
    assert!(other.fellows.open(one.fellows.id(), Service::ROOMS).is_some());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_streams_that_have_ended() {
    let (one, other) = Server::two(&Net::default()).await;
    let mut streams = taken(&one);
    for _ in 0..50 {
        let stream = open(&other, &one);
        stream.write(Bytes::from_static(b"x"), true).await.unwrap();
        let theirs = streams.recv().await.unwrap();
        while theirs.piece().await.unwrap().is_some() {}
        theirs.write(Bytes::from_static(b"y"), true).await.unwrap();
        while stream.piece().await.unwrap().is_some() {}
    }
    while one.fellows.status().streams + other.fellows.status().streams > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
