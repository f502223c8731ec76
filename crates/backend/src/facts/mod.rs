//! The facts that model servers report about their models, each in its own way.
//!
//! The list of models is read first and tells the names. Other facts are asked for afterwards, by
//! [`look_closer`](crate::Backend::look_closer), so that a slow answer never delays the list.
//!
//! - `look`: asks, within bounds
//! - `kind`: which program a model server is, and what follows from its version (pure)
//! - `context`: the length of a model's context: what is asked for, and advice about it
//! - `known`: the known facts about the models of one server
//! - `ollama`, `llama_cpp`, `lm_studio`: reads the answers of each program (pure)

mod context;
mod kind;
mod known;
mod llama_cpp;
mod lm_studio;
mod look;
pub(crate) mod ollama;

pub use kind::ServerKind;
pub(crate) use known::Known;
