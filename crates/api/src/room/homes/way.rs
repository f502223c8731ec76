//! The way to the other servers, which the daemon knows.

use std::{future::Future, pin::Pin};

use axum::{extract::Request, response::Response};
use store::RoomHome;

use super::passed_on::PassedOn;

/// The way to the fellows of this server.
pub trait RoomHomes: Send + Sync {
    /// Carries a request to the home of its room. An error of the answer's body says in words why it broke off.
    ///
    /// # Errors
    /// In words, why the home cannot be reached.
    fn carry(
        &self,
        home: &RoomHome,
        passed_on: PassedOn,
        request: Request,
    ) -> Pin<Box<dyn Future<Output = Result<Response, String>> + Send>>;
}
