//! The coding agents once more, now as sessions of a workspace: the daemon starts them, drives them
//! turn by turn, and they think with what a worker lends to the same daemon.
//!
//! - `desk`: a server whose workspace runs one of them; `talk`: a session of it, as a client sees it
//! - `google`: a Google's API for Gemini CLI that is not Warren's
//! - the others: one agent each

mod claude_code;
mod codex;
mod desk;
mod gemini;
mod google;
mod opencode;
mod talk;
