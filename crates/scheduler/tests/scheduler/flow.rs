//! How much is held back for a reader that does not read.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use bytes::Bytes;
use dispatch::Ending;
use scheduler::{
    Answer, AnswerWriter, Config, Event, Outcome, WriteError,
    exchange::{CreditSink, HELD_BACK},
};

use crate::kit::{JoinedProvider, Kit, ok};

#[derive(Default)]
struct GivenCredit(AtomicU32);

impl CreditSink for GivenCredit {
    fn credit(&self, number: u32, bytes: u32) {
        assert_eq!(number, 7);
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A stream whose head was written.
struct Stream {
    kit: Kit,
    provider: JoinedProvider,
    answer: Answer,
    writer: AnswerWriter,
    given: Arc<GivenCredit>,
}

/// A stream whose provider gets credit in these portions of bytes, if at all.
async fn stream(portion: Option<u32>) -> Stream {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let answer = kit.submit();
    let mut writer = provider.assigned().await.answer;
    let given = Arc::new(GivenCredit::default());
    if let Some(portion) = portion {
        let sink: Arc<dyn CreditSink> = Arc::<GivenCredit>::clone(&given);
        writer.give_credit(sink, 7, portion);
    }
    writer.head(ok()).unwrap();
    Stream { kit, provider, answer, writer, given }
}

#[tokio::test(start_paused = true)]
async fn credit_comes_back_as_the_reader_takes() {
    let Stream { kit: _kit, provider: _provider, mut answer, mut writer, given } =
        stream(Some(10_000)).await;
    for held_back in [6_000, 12_000, 18_000] {
        assert_eq!(writer.chunk(Bytes::from(vec![0; 6_000])), Ok(held_back));
    }
    assert_eq!(given.0.load(Ordering::Relaxed), 0, "nothing was read");
    answer.head().await.unwrap();
    answer.next().await;
    assert_eq!(given.0.load(Ordering::Relaxed), 0, "less than a portion");
    answer.next().await;
    assert_eq!(given.0.load(Ordering::Relaxed), 12_000);
}

/// Kept separately, small chunks take several times the memory of their bytes.
#[tokio::test(start_paused = true)]
async fn small_chunks_are_gathered_for_a_reader_that_is_behind() {
    let Stream { kit: _kit, provider: _provider, mut answer, mut writer, given } =
        stream(Some(1)).await;
    answer.head().await.unwrap();
    let mut written = Vec::new();
    for number in 0..10_000 {
        // Now and then a large one, which keeps its place.
        let length = if number % 1_000 == 999 { 5_000 } else { 100 };
        let chunk = vec![u8::try_from(number % 251).unwrap(); length];
        written.extend_from_slice(&chunk);
        assert_eq!(writer.chunk(chunk.into()), Ok(written.len()));
    }
    writer.end();
    let (mut read, mut pieces) = (Vec::new(), 0);
    while let Event::Chunk(bytes) = answer.next().await {
        read.extend_from_slice(&bytes);
        pieces += 1;
    }
    assert!(read == written, "bytes were lost or changed");
    assert!(pieces < 100, "{pieces} pieces");
    assert_eq!(given.0.load(Ordering::Relaxed), 0, "there is no credit after the end");
}

#[tokio::test(start_paused = true)]
async fn credit_comes_back_for_what_was_gathered() {
    let Stream { kit: _kit, provider: _provider, mut answer, mut writer, given } =
        stream(Some(1)).await;
    answer.head().await.unwrap();
    for _ in 0..100 {
        writer.chunk(Bytes::from(vec![0; 60])).unwrap();
    }
    let mut read = 0;
    while read < 6_000 {
        let Event::Chunk(bytes) = answer.next().await else { panic!("more was written") };
        read += bytes.len();
        assert_eq!(given.0.load(Ordering::Relaxed) as usize, read);
    }
}

#[tokio::test(start_paused = true)]
async fn without_credit_a_stream_ends_at_the_bound() {
    let Stream { kit, provider: _provider, mut answer, mut writer, .. } = stream(None).await;
    let chunk = Bytes::from(vec![0; 1 << 20]);
    let mut held_back = 0;
    let stalled = loop {
        match writer.chunk(chunk.clone()) {
            Ok(now) => held_back = now,
            Err(gone) => break gone,
        }
    };
    assert_eq!(stalled, WriteError::Stalled);
    assert!(held_back > HELD_BACK && held_back <= HELD_BACK + chunk.len());
    writer.stalled();
    answer.head().await.unwrap();
    let failure = loop {
        match answer.next().await {
            Event::Chunk(_) => {}
            Event::Failed(failure) => break failure,
            Event::End => panic!("ended"),
        }
    };
    assert_eq!(failure.ending, Ending::ClientStalled);
    assert_eq!(kit.slots(), (0, 0));
    assert!(matches!(kit.last_ended().outcome, Outcome::Failed(_)));
}

/// A reader knows from the announced length that it has all, before the end comes.
#[tokio::test(start_paused = true)]
async fn a_reader_that_has_enough_is_not_one_that_left() {
    let Stream { kit, mut provider, mut answer, mut writer, .. } = stream(None).await;
    writer.chunk(Bytes::from_static(b"all")).unwrap();
    answer.head().await.unwrap();
    answer.next().await;
    answer.suffices();
    drop(answer);
    assert_eq!(kit.slots(), (1, 0), "the job goes on to its end");
    assert_eq!(writer.chunk(Bytes::from_static(b"more")), Ok(0), "and nothing more is kept");
    writer.end();
    assert!(matches!(kit.last_ended().outcome, Outcome::Answered(_)));
    assert_eq!(kit.slots(), (0, 0));
    assert!(provider.calls.try_recv().is_err(), "nothing was cancelled");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_for_a_reader_that_was_given_up() {
    let Stream { kit: _kit, provider: _provider, mut answer, mut writer, .. } = stream(None).await;
    writer.chunk(Bytes::from_static(b"unread")).unwrap();
    writer.stalled();
    answer.head().await.unwrap();
    assert!(matches!(answer.next().await, Event::Failed(_)));
}
