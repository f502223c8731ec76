//! The parts that the translations for Ollama's clients share.
//!
//! - [`options`]: the table of options
//! - [`pictures`]: pictures in base64
//! - [`settings`]: `format` and `think`
//! - [`clock`]: the times of an answer
//! - [`line`]: one line of an answer
//! - [`writer`]: an answer as lines or as one object

pub(crate) mod clock;
mod line;
pub(crate) mod options;
pub(crate) mod pictures;
pub(crate) mod settings;
mod writer;

pub(crate) use line::Form;
pub(crate) use writer::OllamaWriter;
