//! Relays and nodes together: over pipes in paused time, and over TCP.

mod dialled;
mod kit;
mod nodes;
mod served;
mod sorts;
mod stock;
mod warrens;
