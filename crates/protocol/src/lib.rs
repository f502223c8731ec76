//! Messages and framings of every protocol, pure: bytes in, values out, and back.
//!
//! - [`relay`]: the relay worker protocol, its JSON messages and, between two Warrens, its frames
//! - [`node`]: the node protocol, its tasks and results
//! - [`room`]: rooms: the spec's messages, and the API of current stock clients
//! - [`mesh`]: peers and relays of the mesh
//! - [`workspace`]: sessions, files, git and teams of a machine
//! - [`openai`], [`anthropic`]: the parts of the consumer APIs that a server reads or writes:
//!   bodies, errors and lists
//! - [`ollama`]: Ollama's API, as far as a server reads or answers it itself
//! - [`admin`]: administration of keys, usage and the audit log over HTTP
//! - [`invitation`]: the code by which a machine joins a server, and how a server proves which one it is
//! - [`sse`]: streams of events, forwarded unchanged or read
//! - [`gemini`]: Gemini's paths, and its errors
//! - [`otlp`]: spans for a collector of OpenTelemetry
//! - [`usage`]: token counts, read from a side copy of an answer
//! - [`endpoint`]: detects whether a backend serves an endpoint at all
//! - [`failure`]: failures of providers and backends, in the form of each API
//! - [`json`]: the fields of a request, and text as JSON, without building values
//! - `lenient_base64`: base64 with or without padding
//! - [`model_use`]: what a model is for, by its name
//! - [`multipart`]: forms with files, read for their model
//! - [`headers`]: which HTTP headers go no further than one connection, or to no provider
//! - [`via`]: the servers and rooms that a request has passed
//!
//! A message that is read leniently, or whose faults are all reported at once, is first read as a private type
//! with optional fields.

pub mod admin;
pub mod anthropic;
pub mod endpoint;
pub mod failure;
pub mod gemini;
pub mod headers;
pub mod invitation;
pub mod json;
mod lenient_base64;
pub mod mesh;
pub mod model_use;
pub mod multipart;
pub mod node;
pub mod ollama;
pub mod openai;
pub mod otlp;
pub mod relay;
pub mod room;
pub mod sse;
pub mod usage;
pub mod via;
pub mod workspace;
