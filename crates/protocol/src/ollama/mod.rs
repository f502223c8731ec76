//! Ollama's API: what a server reads of a body before it becomes a job, and what it answers itself.
//!
//! - [`peek`]: the side parse of a body, which also tells Ollama's chat from the node protocol's
//! - `keep_alive`: how long a model is to stay in memory
//! - [`reply`]: errors, times, and the answer that a model is loaded

mod keep_alive;
pub mod peek;
pub mod reply;

pub use keep_alive::KeepAlive;
pub use peek::Peek;
