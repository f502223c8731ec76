//! Sessions, most of them with real processes: what a client sees of them.
//!
//! - `bare`: sessions without processes; `seen`: a client, which checks what it is sent
//! - `terminals`: opening, typing, sizes, ends
//! - `lagging`: clients that are slow, or come back
//! - `lives`: restarts
//! - `agents`: lines, and what is said beside them

mod agents;
mod bare;
mod lagging;
mod lives;
mod seen;
mod sizes;
mod terminals;
