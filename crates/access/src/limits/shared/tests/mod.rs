//! Servers with slices of one limit, and a model of the database between them.
//!
//! - `world`: the servers, the database, and what happens to them
//! - `histories`: what holds in generated histories
//! - `cases`: single cases
//! - `waiting`: requests that wait, under paused time

mod cases;
mod histories;
mod waiting;
mod world;
