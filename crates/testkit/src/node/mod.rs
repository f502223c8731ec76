//! A bare model node in the hands of a test, as stock nodes are.
//!
//! It dials with everything in the query, sends an empty text frame every 10 s, gathers text until
//! it has more than 15 characters, and says with its bare id that a task is finished. Its frames
//! and its JSON are written out literally; it shares no code with the house.

mod dial;
mod speak;

use serde_json::Value;

pub use self::dial::Knock;
use self::speak::Socket;
use crate::sockets::Task;

#[derive(Debug, Clone)]
pub struct NodeTask {
    pub id: i64,
    pub json: Value,
}

/// A node's link to a server. Dropping it ends the connection without a word.
#[derive(Debug)]
pub struct FakeNode {
    socket: Socket,
    keep_alive: Task,
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt, StreamExt};
    use serde_json::json;
    use tokio::net::TcpListener;
    use tokio_tungstenite::{
        accept_hdr_async,
        tungstenite::{
            Message,
            handshake::server::{Request, Response},
        },
    };

    use super::*;

    #[tokio::test]
    async fn a_node_speaks_as_a_stock_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut asked = String::new();
            #[expect(clippy::result_large_err, reason = "the library's callback")]
            let look = |request: &Request, response: Response| {
                asked = request.uri().to_string();
                Ok(response)
            };
            let mut socket = accept_hdr_async(stream, look).await.unwrap();
            let task = json!({"state": 0, "id": 258, "messages": []});
            socket.send(Message::text(task.to_string())).await.unwrap();
            let mut frames = Vec::new();
            while frames.len() < 4 {
                frames.push(socket.next().await.unwrap().unwrap());
            }
            socket.send(Message::text(json!({"id": 258, "stop": true}).to_string())).await.unwrap();
            (asked, frames)
        });
        let mut node = Knock::new(address).token("t").name("n").open().await;
        let task = node.expect_task().await;
        assert_eq!((task.id, &task.json["state"]), (258, &json!(0)));
        node.answer(&task, "one two three four five").await;
        node.expect_stop(258).await;
        let (asked, frames) = server.await.unwrap();
        assert_eq!(asked, "/ws?name=n&model=m&token=t&max_concurrency=1");
        let binary = |text: &str| Message::binary([&[0, 0, 1, 2], text.as_bytes()].concat());
        // The sign of life is a frame of its own, before the answer or in the middle of it.
        let (alive, answer): (Vec<_>, Vec<_>) = frames.into_iter().partition(Message::is_text);
        assert_eq!(alive, [Message::text("")]);
        assert_eq!(answer, [binary("one two three fo"), binary("ur five"), binary("")]);
    }
}
