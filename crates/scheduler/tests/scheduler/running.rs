//! Jobs that have not ended, as they are listed, and the time of the first text.

use std::time::Duration;

use bytes::Bytes;
use scheduler::{Config, Job, Meter, Usage};
use tokio::time::sleep;

use crate::kit::{Kit, ok};

/// Takes a chunk with a `t` for text.
struct Text(bool);

impl Meter for Text {
    fn feed(&mut self, chunk: &[u8]) {
        self.0 |= chunk.contains(&b't');
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }

    fn has_text(&self) -> bool {
        self.0
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn running_and_waiting_jobs_are_told_the_oldest_first() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let _first = kit.submit();
    let mut writer = provider.assigned().await.answer;
    sleep(SECOND).await;
    let _second = kit.submit();
    sleep(SECOND).await;
    writer.head(ok()).unwrap();
    writer.chunk(Bytes::from_static(b"12345")).unwrap();
    let running = kit.scheduler.running(9);
    let [first, second] = running.as_slice() else { panic!("{running:?}") };
    assert_eq!(
        (first.waited, first.ran, first.tokens),
        (Duration::ZERO, Some(2 * SECOND), Some(5))
    );
    assert_eq!((second.waited, second.ran), (SECOND, None));
    assert_eq!((first.provider.as_deref(), second.provider.as_deref()), (Some("test"), None));
    assert_eq!(kit.scheduler.counts(), (1, 1));
    let oldest = kit.scheduler.running(1);
    assert_eq!((oldest.len(), oldest[0].job.id), (1, first.job.id));
    assert!(kit.scheduler.running(0).is_empty());
    writer.end();
    let left = kit.scheduler.running(9);
    assert_eq!((left.len(), left[0].job.id), (1, second.job.id), "what has ended is not told");
}

#[tokio::test(start_paused = true)]
async fn the_first_text_is_timed_and_not_the_head() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let job = Job { meter: Box::new(Text(false)), ..kit.job() };
    let _answer = kit.scheduler.submit(job);
    let mut writer = provider.assigned().await.answer;
    writer.head(ok()).unwrap();
    for chunk in ["role", "text", "more text"] {
        sleep(SECOND).await;
        writer.chunk(Bytes::from_static(chunk.as_bytes())).unwrap();
    }
    writer.end();
    let ended = kit.last_ended();
    assert_eq!((ended.first_byte, ended.first_token), (Some(Duration::ZERO), Some(2 * SECOND)));
}
