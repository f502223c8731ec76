//! Links to workers.

mod answers;
mod bad_frames;
mod endpoints;
mod kit;
mod life;
mod rooms;
mod unread;
