//! Messages and framings of every protocol, pure: bytes in, values out, and back.
//!
//! - [`relay`]: the relay worker protocol, its JSON messages and, between two Warrens, its frames
//! - [`node`]: the node protocol, its tasks and results
//! - [`room`]: rooms: the spec's messages, and what stock clients speak today
//! - [`mesh`]: peers and relays of the mesh
//! - [`workspace`]: sessions, files, git and teams of a machine
//! - [`openai`], [`anthropic`]: what the consumer APIs need of request bodies, errors and lists
//! - [`admin`]: keys, usage and the audit log, as they are administered over HTTP
//! - [`sse`]: streams of events, forwarded unchanged or read
//! - [`usage`]: token counts, read from a side copy of an answer
//! - [`endpoint`]: whether a backend serves an endpoint at all, told from how it answers there
//! - [`failure`]: failures of providers and backends, in the words of the APIs
//! - [`json`]: the fields of a request, and text as JSON, without building values
//! - [`headers`]: which HTTP headers go no further than one connection, or to no provider
//! - [`via`]: which servers and rooms a request has passed

pub mod admin;
pub mod anthropic;
pub mod endpoint;
pub mod failure;
pub mod headers;
pub mod json;
pub mod mesh;
pub mod node;
pub mod openai;
pub mod relay;
pub mod room;
pub mod sse;
pub mod usage;
pub mod via;
pub mod workspace;
