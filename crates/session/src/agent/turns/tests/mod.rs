//! Whole conversations, in simulated time.
//!
//! - `rig`: a session, its clock and what it wants done
//! - `claude`, `codex`, `gemini`, `opencode`, `acp`: what each really says, and its traps
//! - `unasked`: what they do that nobody asked for
//! - `rules`: what holds for all; `bounds`: each reached; `histories`: any order of things

mod acp;
mod bounds;
mod claude;
mod codex;
mod gemini;
mod histories;
mod opencode;
mod rig;
mod rules;
mod unasked;
