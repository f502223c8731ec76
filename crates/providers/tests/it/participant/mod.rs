//! Participants of rooms: tunnels, and endpoints.

mod answers;
mod bad_frames;
mod endpoints;
mod hang_ups;
mod kit;
mod life;
mod refusals;
