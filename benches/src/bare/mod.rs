//! A pair of relays without features: what two hops cost at least. A front takes HTTP/1 and passes requests over
//! one link to a back, which asks the backend over connections that it keeps. One thread each.
//!
//! It is right for the suite's requests and for little more: bodies with a length, answers with a length or in
//! chunks, one request at a time on each connection. Heads pass as they are. A client that reads slowly
//! holds up all others, and a backend that closes a kept connection costs one request.
//!
//! - [`mod@front`], [`mod@back`]: the two programs
//! - [`link`]: frames between them
//! - [`message`]: where a request or an answer ends

mod back;
mod front;
mod link;
mod message;

pub(crate) use back::run as back;
pub(crate) use front::run as front;

/// The most bytes that are read from a socket at once.
const PIECE: usize = 64 << 10;

/// The longest head of a request or an answer.
const MAX_HEAD: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::{
        load::closed::{self, Closed},
        payload::Answer,
    };

    async fn pair(backend: SocketAddr) -> SocketAddr {
        let front = front::Front::bind().await.unwrap();
        let (clients, link) = (front.clients, front.link);
        tokio::spawn(front.serve());
        tokio::spawn(back::serve(link, backend));
        clients
    }

    #[tokio::test]
    async fn requests_and_answers_of_every_kind_pass_unchanged() {
        let addr = pair(crate::backend::start().await).await;
        for answer in [Answer::Plain { bytes: 1024 }, Answer::back_to_back(64)] {
            for (body, most) in [(1 << 10, 200), (100 << 10, 40), (10 << 20, 4)] {
                let plan = Closed { connections: 4, most, ..Closed::new(addr, body, answer, 60.0) };
                let outcome = closed::run(&plan).await.unwrap();
                assert_eq!((outcome.all, outcome.failures.total()), (most, 0), "{body} {answer:?}");
                assert_eq!(outcome.reconnects, 0);
            }
        }
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_is_an_abort_at_the_backend() {
        use crate::{http1::Link, payload::BenchRequest};
        let backend = crate::backend::start().await;
        let addr = pair(backend).await;
        let answer = Answer::Stream { chunks: 2, burst: 1, gap_ms: 60_000 };
        let mut link = Link::open(addr).await.unwrap();
        let body = BenchRequest { id: 9, answer }.body(1024);
        let response = link.chat(body).await.unwrap();
        drop((link, response));
        let wait = std::time::Duration::from_secs(20);
        let seen = crate::backend::fetch(backend, 9, 1, wait).await.unwrap();
        assert_eq!(seen.into_keys().collect::<Vec<_>>(), [9]);
    }

    #[tokio::test]
    async fn without_a_backend_the_connection_is_closed() {
        let nobody = crate::targets::free_address().unwrap();
        let addr = pair(nobody).await;
        let mut link = crate::http1::Link::open(addr).await.unwrap();
        assert!(link.chat(bytes::Bytes::from_static(b"{}")).await.is_err());
    }
}
