//! Messages and framings of every protocol, pure: bytes in, values out, and back.
//!
//! - [`relay`]: the relay worker protocol, its JSON messages and, between two Warrens, its frames
//! - [`node`]: the node protocol, its tasks and results
//! - [`room`]: rooms: the spec's messages, and what stock clients speak today
//! - [`mesh`]: peers and relays of the mesh
//! - [`workspace`]: sessions, files, git and teams of a machine
//! - [`openai`], [`anthropic`]: what the consumer APIs need of request bodies, errors and lists
//! - [`admin`]: keys, usage and the audit log, as they are administered over HTTP
//! - [`translate`]: one API's requests for another API's servers, and their answers back
//! - [`sse`]: where events begin and end in a stream that is forwarded unchanged
//! - [`usage`]: token counts, read from a side copy of an answer
//! - [`endpoint`]: whether a backend serves an endpoint at all, told from how it answers there
//! - [`failure`]: a provider's failure, in the form of the requested path's API
//! - [`json`]: text as JSON, without building values
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
pub mod translate;
pub mod usage;
pub mod via;
pub mod workspace;
