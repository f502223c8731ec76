//! Links to nodes.

mod answers;
mod bad_frames;
mod kit;
mod life;
mod refusals;
