//! A worker that reads nothing: what its cancelled jobs leave behind.

use std::sync::Arc;

use bytes::Bytes;
use scheduler::{Meter, Usage};

use super::kit::Kit;

/// Lives as long as what it stands in.
struct Body(Vec<u8>, #[expect(dead_code, reason = "counted")] Arc<()>);

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

struct Alive(#[expect(dead_code, reason = "counted")] Arc<()>);

impl Meter for Alive {
    fn feed(&mut self, _: &[u8]) {}
    fn usage(&self) -> Usage {
        Usage::default()
    }
}

async fn nothing_is_kept_of_canceled_jobs(binary: bool) {
    let mut kit = Kit::new();
    // From here on nobody reads: the link is not driven, and the pipe is full after 64 KiB.
    let _worker = kit.worker(binary).await;
    let (bodies, exchanges) = (Arc::new(()), Arc::new(()));
    for _ in 0..50 {
        let body = Bytes::from_owner(Body(vec![b'x'; 1 << 20], Arc::clone(&bodies)));
        let answer = kit.submit_with(true, body, Box::new(Alive(Arc::clone(&exchanges))));
        tokio::task::yield_now().await;
        drop(answer);
        tokio::task::yield_now().await;
    }
    assert_eq!(kit.scheduler.status().workers.len(), 1);
    assert_eq!((Arc::strong_count(&bodies), Arc::strong_count(&exchanges)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_canceled_jobs_in_messages() {
    nothing_is_kept_of_canceled_jobs(false).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_canceled_jobs_in_frames() {
    nothing_is_kept_of_canceled_jobs(true).await;
}
