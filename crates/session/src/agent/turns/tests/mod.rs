//! Whole conversations, in simulated time.
//!
//! - `rig`: a session, its clock and its outputs
//! - `claude`, `codex`, `gemini`, `opencode`, `acp`: the recorded output of each, and its traps
//! - `unasked`: turns that no prompt began; `rules`: the rules for all dialects; `bounds`: each bound; `histories`: inputs in any order

mod acp;
mod bounds;
mod claude;
mod codex;
mod gemini;
mod histories;
mod opencode;
mod rig;
mod rules;
mod saved_state;
mod unasked;
