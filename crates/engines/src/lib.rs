//! Model engines: servers for this machine's model files, started when they are asked for.
//!
//! [`Engines`] has the models of all programs. The models of one program are lent to servers
//! together, as [`backend::ModelEngines`].
//!
//! - [`engines`]: all of them; [`config`]: their bounds
//! - [`model`]: a model that this machine can serve, and the program that serves it
//! - [`memory`]: how much memory models may take together
//! - [`planner`]: which models are loaded, and when (pure)
//! - `shared`: the planner with what it decides on
//! - `part`, `hold`: the models of one program as a backend, and their use by one request
//! - `server`: one model's server: a process from its start to its end
//! - `learnt`: how long models take to load

pub mod config;
pub mod engines;
mod hold;
mod learnt;
pub mod memory;
pub mod model;
mod part;
pub mod planner;
mod server;
mod shared;
#[cfg(test)]
mod testing;

pub use config::EnginesConfig;
pub use engines::Engines;
pub use memory::Memory;
pub use model::{EngineModel, Group, GroupRule, Program};
