//! How much of this machine all links together may take.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Links at once.
pub(super) const MAX_LINKS: usize = 256;

/// Connections at once that have not been greeted yet.
const MAX_HANDSHAKES: usize = 64;

/// The same of one address.
const MAX_OF_ADDRESS: usize = 16;

/// The taken places.
#[derive(Debug)]
pub(super) struct Limits {
    links: Arc<Semaphore>,
    knocking: Mutex<HashMap<IpAddr, usize>>,
}

/// Why a connection is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    /// There are as many links as there may be.
    #[error("this node has {MAX_LINKS} links, and takes no more")]
    Links,
    /// Too many connect at once.
    #[error("{MAX_HANDSHAKES} connections have not said hello yet: no more are taken")]
    Handshakes,
    /// Too many connect at once from one address.
    #[error(
        "{MAX_OF_ADDRESS} connections of this address have not said hello yet: no more are taken"
    )]
    Address,
}

impl Default for Limits {
    fn default() -> Self {
        let links = Arc::new(Semaphore::new(MAX_LINKS));
        Self { links, knocking: Mutex::default() }
    }
}

impl Limits {
    /// Takes a connection in, until it is greeted or the guard dropped.
    pub(super) fn knock(self: &Arc<Self>, from: IpAddr) -> Result<Knock, Full> {
        let from = from.to_canonical();
        if self.links.available_permits() == 0 {
            return Err(Full::Links);
        }
        let mut knocking = self.lock();
        if knocking.values().sum::<usize>() >= MAX_HANDSHAKES {
            return Err(Full::Handshakes);
        }
        let of_address = knocking.entry(from).or_default();
        if *of_address >= MAX_OF_ADDRESS {
            return Err(Full::Address);
        }
        *of_address += 1;
        drop(knocking);
        Ok(Knock { limits: Arc::clone(self), from })
    }

    /// A link's place, until it is dropped.
    pub(super) fn link(&self) -> Result<OwnedSemaphorePermit, Full> {
        Arc::clone(&self.links).try_acquire_owned().map_err(|_| Full::Links)
    }

    /// How many links there are.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        MAX_LINKS - self.links.available_permits()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.knocking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that was not greeted yet.
#[derive(Debug)]
pub(super) struct Knock {
    limits: Arc<Limits>,
    from: IpAddr,
}

impl Drop for Knock {
    fn drop(&mut self) {
        let mut knocking = self.limits.lock();
        if let Some(count) = knocking.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                knocking.remove(&self.from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn one_address_cannot_take_all_places_and_gives_them_back() {
        let limits = Arc::new(Limits::default());
        let knocks: Vec<_> = (0..MAX_OF_ADDRESS).map(|_| limits.knock(address(1))).collect();
        assert!(knocks.iter().all(Result::is_ok));
        assert_eq!(limits.knock(address(1)).unwrap_err(), Full::Address);
        let mapped = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(limits.knock(mapped).unwrap_err(), Full::Address);
        assert!(limits.knock(address(2)).is_ok());
        drop(knocks);
        assert!(limits.knock(address(1)).is_ok());
        assert!(limits.lock().is_empty());
    }

    #[test]
    fn only_so_many_connect_at_once() {
        let limits = Arc::new(Limits::default());
        let knocks: Vec<_> =
            (0..MAX_HANDSHAKES).map(|number| limits.knock(address(number as u8 / 8))).collect();
        assert!(knocks.iter().all(Result::is_ok));
        assert_eq!(limits.knock(address(99)).unwrap_err(), Full::Handshakes);
    }

    #[test]
    fn only_so_many_links_are_kept() {
        let limits = Arc::new(Limits::default());
        let links: Vec<_> = (0..MAX_LINKS).map(|_| limits.link()).collect();
        assert!(links.iter().all(Result::is_ok));
        assert_eq!(limits.link().unwrap_err(), Full::Links);
        assert_eq!(limits.knock(address(1)).unwrap_err(), Full::Links);
        drop(links);
        assert!(limits.link().is_ok() && limits.knock(address(1)).is_ok());
    }
}
