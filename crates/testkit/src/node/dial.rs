//! How a node comes in.

use std::net::SocketAddr;

use super::FakeNode;
use crate::{sockets::upgrade, worker::Refused};

/// The parameters with which a node dials.
#[derive(Debug, Clone)]
#[must_use]
pub struct Knock {
    address: SocketAddr,
    path: String,
    query: Option<String>,
    token: String,
    model: String,
    name: String,
    max_concurrency: u32,
}

impl Knock {
    /// A node `node` of the model `m` that takes one task at once, with an empty token, at `/ws`.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            path: "/ws".to_owned(),
            query: None,
            token: String::new(),
            model: "m".to_owned(),
            name: "node".to_owned(),
            max_concurrency: 1,
        }
    }

    pub fn token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self
    }

    pub fn model(mut self, model: &str) -> Self {
        model.clone_into(&mut self.model);
        self
    }

    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    pub fn slots(mut self, slots: u32) -> Self {
        self.max_concurrency = slots;
        self
    }

    pub fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Says this of itself instead, without the question mark.
    pub fn query(mut self, query: &str) -> Self {
        self.query = Some(query.to_owned());
        self
    }

    /// Connects and upgrades, which every server lets it.
    pub async fn open(self) -> FakeNode {
        self.try_open().await.expect("the upgrade is answered")
    }

    pub async fn try_open(self) -> Result<FakeNode, Refused> {
        let (socket, _) = upgrade(self.address, self.url(), true).await?;
        Ok(FakeNode::on(socket))
    }

    /// As stock nodes write it: nothing is escaped.
    fn url(&self) -> String {
        let Self { address, path, token, model, name, max_concurrency, .. } = self;
        let query = self.query.clone().unwrap_or_else(|| {
            format!("name={name}&model={model}&token={token}&max_concurrency={max_concurrency}")
        });
        format!("ws://{address}{path}?{query}")
    }
}
