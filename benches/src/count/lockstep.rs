//! Both ends of requests that follow each other in step: the backend lets a chunk go when the client has the one before.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Response, body::Incoming};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};

use crate::{
    backend,
    http1::Link,
    payload::{Answer, Api, BenchRequest, Events},
    targets::Target,
};

/// How long one answer may take under callgrind.
const LIMIT: Duration = Duration::from_secs(60);

const BODY: usize = 1024;

const BYTES: usize = 1024;

pub(super) struct Ends {
    backend: SocketAddr,
    steps: Arc<Semaphore>,
    link: Option<Link>,
}

impl Ends {
    /// Starts the backend inside this process.
    pub(super) async fn start() -> Result<Self> {
        let steps = Arc::new(Semaphore::new(0));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let backend = listener.local_addr()?;
        tokio::spawn(backend::serve(listener, Some(steps.clone())));
        Ok(Self { backend, steps, link: None })
    }

    pub(super) fn backend(&self) -> SocketAddr {
        self.backend
    }

    /// Sends all `requests`, one after another over one connection: for streams of `chunks` chunks, or plain ones.
    /// Every byte of the answers is compared.
    pub(super) async fn ask(
        &mut self,
        target: &Target,
        requests: u32,
        chunks: Option<u32>,
    ) -> Result<()> {
        let answer = match chunks {
            None => Answer::Plain { bytes: BYTES },
            Some(chunks) => Answer::Stream { chunks, burst: 1, gap_ms: 0 },
        };
        let (body, expected) = (BenchRequest { id: 0, answer }.body(BODY), answer.expected());
        for _ in 0..requests {
            let asked = self.ask_once(target, body.clone(), &expected, chunks.unwrap_or(0));
            timeout(LIMIT, asked).await??;
        }
        Ok(())
    }

    async fn ask_once(
        &mut self,
        target: &Target,
        body: Bytes,
        expected: &[u8],
        chunks: u32,
    ) -> Result<()> {
        let link = match &mut self.link {
            Some(link) => link,
            None => self.link.insert(Link::open(target.addr).await?),
        };
        ensure!(link.ready().await, "the connection was closed");
        let answer = link.post(Api::Chat.path(), target.key.as_deref(), body).await?;
        ensure!(answer.status() == 200, "status {}", answer.status());
        let read = self.read(answer, chunks).await?;
        ensure!(read == expected, "wrong bytes");
        Ok(())
    }

    /// Reads an answer and lets the backend go on with each event of it, but for those of its end.
    async fn read(&self, answer: Response<Incoming>, chunks: u32) -> Result<Vec<u8>> {
        let (mut body, mut read) = (answer.into_body(), Vec::new());
        let (mut events, mut given) = (Events::default(), 0);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            events.feed(&data);
            let due = usize::try_from(events.count.min(chunks.into()))?;
            self.steps.add_permits(due - given);
            given = due;
            read.extend_from_slice(&data);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::direct;

    #[tokio::test]
    async fn streams_go_on_step_by_step_one_after_another() {
        let mut ends = Ends::start().await.unwrap();
        let target = direct::launch(ends.backend());
        for chunks in [None, Some(1), Some(64), Some(8)] {
            ends.ask(&target, 2, chunks).await.unwrap();
            assert_eq!(ends.steps.available_permits(), 0);
        }
    }
}
