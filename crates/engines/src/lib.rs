//! Model engines: servers for this machine's model files, started when they are asked for.
//!
//! - [`model`]: a model that this machine can serve, and the program that serves it
//! - [`memory`]: how much memory models may take together
//! - [`planner`]: which models are loaded, and when (pure)

pub mod memory;
pub mod model;
pub mod planner;

pub use memory::Memory;
pub use model::{EngineModel, Group, GroupRule, Program};
