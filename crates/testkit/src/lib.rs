//! For tests only: fake workers and backends, a whole daemon on port 0, a lossy pipe.
//!
//! Everything here fails by panicking, and every wait has a deadline after which it does. A test
//! does not sleep: it opens a [`Gate`], or waits for an event. The HTTP and WebSocket sides are
//! written without the house's own shells, so that a fault in those cannot hide in its tests.
//!
//! - [`agents`]: fake command lines of agents, one program under all their names
//! - [`backend`]: a scriptable model server that counts what becomes of its requests, one that is an Ollama, and one of
//!   sound and pictures
//! - [`worker`]: a relay worker in the hands of a test, in the stock form and in the binary form
//! - [`node`]: a bare model node in the hands of a test
//! - [`node_server`]: a stock-shaped API server in the hands of a test
//! - [`relay_server`]: a stock-shaped relay server in the hands of a test
//! - [`participant`]: a stock participant of a room in the hands of a test
//! - [`room`]: a room of a server, and the stream of its events
//! - [`hub`]: a stock-shaped server of rooms in the hands of a test
//! - [`model_hub`]: a hub that models are fetched from, in the hands of a test
//! - [`mesh`]: stock-shaped peers of the mesh, and a relay as stock ones are
//! - [`gguf`]: tiny files of models
//! - [`git`]: git without this machine's configuration
//! - [`nats`]: a NATS server of a test's own
//! - [`postgres`]: a PostgreSQL server of a test's own
//! - [`process`]: a child process with its log, its signals and its exit code
//! - [`processes`]: what runs on this machine, and programs that are built for tests
//! - [`daemon`]: `warren serve` and `warren worker`, the real binary
//! - [`collector`]: a collector of OpenTelemetry in the hands of a test
//! - [`clock`]: servers whose clock is wrong
//! - [`chat`]: chats as OpenAI's API has them: what is asked, and what a model says
//! - [`client`]: an HTTP client that sees bytes as they arrive and hangs up where a test wants
//! - [`http1`]: just enough HTTP/1.1 to read either side of a connection
//! - [`lab`]: the harness of the soak programs
//! - [`lossy`]: a pipe in memory that delays, loses and reorders, mended by a small resend layer
//! - [`random`]: numbers from a seed
//! - [`raw`]: a server of raw bytes: a test writes exactly what the network brings
//! - [`workspace`]: a client of the workspace, and output that is cut and found whole
//! - `sockets`: what all these servers and WebSockets have in common
//! - [`wait`]: deadlines, and conditions that come true
//! - [`way`]: a proxy that cuts and holds connections

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "only tests use this crate: a doc comment stands where a name does not say enough"
)]
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and this crate is used by tests only"
)]

pub mod agents;
pub mod backend;
pub mod chat;
pub mod client;
pub mod clock;
pub mod collector;
pub mod connect_proxy;
pub mod daemon;
pub mod gguf;
pub mod git;
pub mod http1;
pub mod hub;
pub mod lab;
pub mod lossy;
pub mod mesh;
pub mod model_hub;
pub mod nats;
pub mod node;
pub mod node_server;
pub mod participant;
pub mod postgres;
pub mod process;
pub mod processes;
pub mod random;
pub mod raw;
pub mod relay_server;
pub mod room;
mod sockets;
pub mod wait;
pub mod way;
pub mod worker;
pub mod workspace;

pub use backend::{
    CHAT_MODELS, ChatScript, Counts, Gate, MockBackend, MockOllama, OLLAMA_CONTEXT, OllamaModel,
    Received, RefusingPort, Reply, STORY_MODELS, Story, form, form_fields, media_backend, sound,
};
pub use client::{Client, Connection, Request, Response, Streaming};
pub use collector::{Collector, TakenSpan};
pub use connect_proxy::ConnectProxy;
pub use daemon::{Daemon, Serve, WorkerProcess};
pub use gguf::GgufFile;
pub use hub::{FakeHub, HubRequest, HubTunnel};
pub use lossy::{LossyEnd, LossyReceiver, LossySender, lossy_pair, lossy_pipe};
pub use model_hub::{FakeModelHub, HubFault, ModelHubRequest};
pub use node::{FakeNode, Knock, NodeTask};
pub use node_server::{NodeLink, NodeMessage, NodeServer};
pub use participant::{FakeParticipant, Put, TunnelAsk};
pub use process::ChildProcess;
pub use random::Random;
pub use raw::{RawConnection, RawRequest, RawServer};
pub use relay_server::{RelayAnswer, RelayLink, RelayServer};
pub use room::{Room, RoomEvent, RoomEvents};
pub use wait::{DEADLINE, eventually, within};
pub use way::{Fault, Way};
pub use worker::{Connect, FakeWorker, Form, Job, Refused};
