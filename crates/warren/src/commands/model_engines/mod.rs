//! Model engines of this machine: the model servers that a worker runs itself, with the settings and the files of
//! the person at the terminal.
//!
//! - `wanted`: the engines that flags and file name; `wishes`: the settings for one model
//! - `find`: finds a program; `advice`: how to get one; `program`: programs whose flags are known
//! - `part`: one program with its models; `offer`: a file as a model to serve; `folders`: models that are no GGUF
//!   files
//! - `worker_engines`: all of them, lent, and their folders followed
//! - `survey`: the same for `warren doctor`, without starting anything

mod advice;
mod find;
mod folders;
mod memory;
mod offer;
mod part;
mod program;
mod survey;
mod wanted;
mod wishes;
mod worker_engines;

pub(crate) use self::{
    survey::{SurveyedEngine, survey},
    worker_engines::{LOADS_AT_ONCE, MAX_CONCURRENT, OfferedModel, WorkerEngines},
};
