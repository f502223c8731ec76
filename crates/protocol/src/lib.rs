//! Messages and framings of every protocol, pure: bytes in, values out, and back.
//!
//! - [`relay`]: the relay worker protocol, its JSON messages and, between two Warrens, its frames
//! - [`openai`], [`anthropic`]: what the consumer APIs need of request bodies, errors and lists
//! - [`sse`]: where events begin and end in a stream that is forwarded unchanged
//! - [`usage`]: token counts, read from a side copy of an answer
//! - [`headers`]: which HTTP headers cross a connection, and which do not
//! - [`json`]: text as JSON, without building values
//! - [`headers`]: which HTTP headers go no further than one connection, or to no provider

pub mod anthropic;
pub mod headers;
pub mod json;
pub mod openai;
pub mod relay;
pub mod sse;
pub mod translate;
pub mod usage;
