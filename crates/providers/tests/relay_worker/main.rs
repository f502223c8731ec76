//! Links to workers, over a pipe in memory and under paused time.

mod answers;
mod bad_frames;
mod kit;
mod life;
