//! A client of model hubs: sites that models are fetched from, as Hugging Face is one.
//!
//! - [`repo`]: the name of a repository, as people write it
//! - [`hub`]: where the hub is, and what is asked of it
//! - [`listing`]: the files of a repository
//! - [`offer`]: the models in them, by quantization, and which one to take
//! - [`fetch`](mod@fetch): fetches the files, whatever the network does
//! - `request`: one request, with its redirects
//! - [`patience`]: how long is waited, and how often something is tried
//! - [`error`]: what goes wrong

pub mod error;
pub mod fetch;
pub mod hub;
pub mod listing;
pub mod offer;
pub mod patience;
pub mod repo;
mod request;

pub use error::HubError;
pub use fetch::{Progress, fetch};
pub use hub::{Hub, HubConfig};
pub use listing::{HubFile, Listing};
pub use offer::{Offer, Variant};
pub use patience::Patience;
pub use repo::{Wanted, WantedError};
