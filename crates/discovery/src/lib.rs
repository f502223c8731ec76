//! Finds servers on the local network, and lets them be found: DNS service discovery over
//! multicast DNS (RFC 6763, RFC 6762).
//!
//! Off unless asked. Everything that is found was said by strangers: text is cleaned and bounded
//! here, and nothing of it is a proof of who is there.
//!
//! - [`service`]: what can be announced and looked for
//! - [`advertisement`]: one announcement, as data; those of a server with rooms
//! - [`advertiser`]: announces until it is stopped
//! - [`browser`]: what others announce, as it comes or all at once
//! - [`found`]: what was found, cleaned; the URLs that it may be reached by
//! - `interfaces`: where: not on the networks of containers and tunnels

pub mod advertisement;
pub mod advertiser;
pub mod browser;
mod error;
pub mod found;
mod interfaces;
mod running;
pub mod service;

pub use advertisement::{Advertisement, rooms};
pub use advertiser::Advertiser;
pub use browser::{BROWSE_FOR, Browser, Sighting, browse, browse_on};
pub use error::DiscoveryError;
pub use found::Discovered;
pub use interfaces::Reach;
pub use service::Service;
