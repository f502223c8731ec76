//! Lends a backend to a stock server of rooms, as a stock participant.
//!
//! Unlike a stock participant it stays: a heartbeat that fails is followed by the next one, and a
//! tunnel that broke is opened again, with a new token.
//!
//! - `open`: joining, and the tunnel
//! - `serving`: one tunnel while it stands
//! - `session`: what a server's frames and answers mean (pure)

mod open;
mod serving;
mod session;

use crate::{link::LinkLoop, room::InRoom, serving::Ending};

/// One stay in a room, from joining to its end.
pub(crate) async fn once(link: &LinkLoop, room: &InRoom) -> Ending {
    match link.or_shutdown(open::open(link, room)).await {
        None => Ending::Left(0),
        Some(Err(outcome)) => Ending::Again(outcome),
        Some(Ok(open)) => serving::Serving::new(link, room, open).run().await,
    }
}
