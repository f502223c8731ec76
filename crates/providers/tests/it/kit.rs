//! Helpers that the tests of all three protocols share.

use std::{net::IpAddr, sync::Arc, time::Duration};

use access::Moment;
use dispatch::route::LeastLoaded;
use rooms::Rooms;
use scheduler::{Answer, Config, Event, Failure, Head, Scheduler};
use serde_json::Value;
use store::VolatileStore;
use tokio::{io::duplex, task::JoinHandle, time::timeout};
use wire::{Frame, Link, Outbox, Role};

/// Where everybody joins from.
pub(crate) const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

pub(crate) fn now() -> u64 {
    Moment::now().wall_ms
}

pub(crate) fn scheduler() -> Scheduler {
    let scheduler = Scheduler::new(Config::default(), Box::new(LeastLoaded), Vec::new());
    tokio::spawn(scheduler.clone().run());
    scheduler
}

pub(crate) fn rooms() -> Rooms {
    let settings = rooms::Settings { idle: Duration::from_secs(3600) };
    Rooms::open(Arc::<VolatileStore>::default(), settings, now()).unwrap()
}

/// The provider's end of a link.
pub(crate) struct FarEnd {
    link: Link,
    outbox: Outbox,
}

impl FarEnd {
    /// A link whose server's end is served so.
    pub(crate) fn connect<F>(serve: impl FnOnce(Link, Outbox) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (near, far) = duplex(1 << 16);
        let (server, server_outbox) = Link::new(Box::pin(near), Role::Server);
        tokio::spawn(serve(server, server_outbox));
        let (link, outbox) = Link::new(Box::pin(far), Role::Client);
        Self { link, outbox }
    }

    pub(crate) fn say(&self, message: &Value) {
        self.send(message.to_string());
    }

    pub(crate) fn send(&self, frame: impl Into<Frame>) {
        self.outbox.push(frame).unwrap();
    }

    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        self.link.next().await.unwrap()
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let Some(Frame::Text(text)) = self.frame().await else { panic!("no text") };
        serde_json::from_str(text.as_str()).unwrap()
    }

    /// Has all that was said taken in by the server.
    pub(crate) async fn settle(&mut self) {
        let heard = timeout(Duration::from_millis(50), self.link.next()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    /// How many messages come until there is a pause.
    pub(crate) async fn messages(&mut self) -> usize {
        let mut count = 0;
        while let Ok(Ok(Some(_))) = timeout(Duration::from_millis(50), self.link.next()).await {
            count += 1;
        }
        count
    }

    /// Drives the link until the server closes it; its code and reason.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        while self.frame().await.is_some() {}
        self.link.close_reason().expect("closed with a reason")
    }

    /// Drives the link in the background.
    pub(crate) fn drive(mut self) -> JoinHandle<()> {
        tokio::spawn(async move { while let Ok(Some(_)) = self.link.next().await {} })
    }
}

/// The whole answer, and how it failed if it did.
pub(crate) struct WholeAnswer {
    pub(crate) head: Option<Head>,
    pub(crate) body: String,
    pub(crate) failure: Option<Failure>,
}

impl WholeAnswer {
    pub(crate) fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |head| head.status.as_u16())
    }

    /// Status and body of an answer that is whole.
    pub(crate) fn whole(&self) -> (u16, &str) {
        assert_eq!(self.failure, None);
        (self.status(), &self.body)
    }

    /// The words about a failure.
    pub(crate) fn detail(&self) -> &str {
        self.failure.as_ref().expect("a failure").detail.as_deref().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let head = self.head.as_ref().expect("a head");
        head.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The text of a stream, or of a completion.
    pub(crate) fn text(&self) -> String {
        if self.header("content-type") == "application/json" {
            let whole: Value = serde_json::from_str(&self.body).unwrap();
            return whole["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        }
        let data = self.body.split("\n\n").filter_map(|event| event.strip_prefix("data: {"));
        let text = |data: &str| {
            let chunk: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
            chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()
        };
        data.map(text).collect()
    }
}

pub(crate) async fn read(answer: &mut Answer) -> WholeAnswer {
    let head = match answer.head().await {
        Ok(head) => head,
        Err(failure) => {
            return WholeAnswer { head: None, body: String::new(), failure: Some(failure) };
        }
    };
    let (head, mut body) = (Some(head), Vec::new());
    let failure = loop {
        match answer.next().await {
            Event::Chunk(chunk) => body.extend_from_slice(&chunk),
            Event::End => break None,
            Event::Failed(failure) => break Some(failure),
        }
    };
    WholeAnswer { head, body: String::from_utf8(body).unwrap(), failure }
}
