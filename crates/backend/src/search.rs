//! Looks for the model servers of this machine again and again, so that those that start or stop
//! later are noticed.

use std::{
    env,
    net::{IpAddr, UdpSocket},
};

use futures_util::future::join_all;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

use crate::{
    address::BaseUrl,
    discovery::{DEADLINE, LocalBackend, USUAL_PORTS, places, probe},
};

/// After this many looks in a row at which its port was closed, a model server counts as gone. More
/// than one, since it may be restarting.
const MISSES: u32 = 2;

/// A model server with models, or one on another machine, is asked for its models only at each fifth look,
/// because model servers log each request. At the looks in between, an open port is enough on this machine.
const SELDOM: u32 = 5;

/// The places where model servers usually are, as they were found at the last look.
#[derive(Debug)]
pub struct Search {
    places: Vec<Place>,
}

/// A place where a model server may be.
#[derive(Debug)]
struct Place {
    name: String,
    url: String,
    /// Host and port; `None` if the URL is not one of a model server.
    address: Option<String>,
    found: Option<LocalBackend>,
    /// Whether the address belongs to this machine; known once a model server was found at it.
    is_here: bool,
    /// How many looks in a row found the port closed.
    misses: u32,
    looks: u32,
}

impl Search {
    /// Looks at the address in `OLLAMA_HOST`, and at the usual ports of this machine.
    #[expect(clippy::disallowed_methods, reason = "the variable is Ollama's own")]
    #[must_use]
    pub fn usual() -> Self {
        Self::at(env::var("OLLAMA_HOST").ok().as_deref(), &USUAL_PORTS)
    }

    /// The same, with another value of `OLLAMA_HOST`, and at other ports of this machine.
    #[must_use]
    pub fn at(ollama_host: Option<&str>, ports: &[(&str, u16)]) -> Self {
        let places = places(ollama_host, ports).map(|(name, url)| Place::new(name, url));
        Self { places: places.collect() }
    }

    /// Looks once, at all places at the same time. Returns the model servers that are there, each one once.
    /// Takes three times `DEADLINE` at most.
    pub async fn look(&mut self) -> Vec<LocalBackend> {
        join_all(self.places.iter_mut().map(Place::look)).await;
        let found: Vec<&Place> = self.places.iter().filter(|place| place.found.is_some()).collect();
        let once = found
            .iter()
            .enumerate()
            .filter(|(at, place)| !found[at + 1..].iter().any(|later| place.is_same_server(later)));
        once.filter_map(|(_, place)| place.found.clone()).collect()
    }
}

impl Place {
    fn new(name: &str, url: String) -> Self {
        let address = BaseUrl::parse(&url).ok().map(|base| base.host().to_owned());
        let name = name.to_owned();
        Self { name, url, address, found: None, is_here: false, misses: 0, looks: 0 }
    }

    async fn look(&mut self) {
        let is_seldom = self.looks.is_multiple_of(SELDOM);
        self.looks = self.looks.wrapping_add(1);
        if self.is_far() && !is_seldom {
            return;
        }
        if !self.listens().await {
            self.misses = self.misses.saturating_add(1);
            if self.misses >= MISSES {
                self.found = None;
            }
            return;
        }
        self.misses = 0;
        let has_models = self.found.as_ref().is_some_and(|found| !found.models.is_empty());
        if has_models && !is_seldom {
            return;
        }
        // A server that listens but is too busy to answer still counts as found.
        if let Some(found) = probe(&self.name, self.url.clone()).await {
            self.found = Some(found);
            self.is_here = self.leads_here().await;
        }
    }

    /// Whether it is on another machine, as far as its address says.
    fn is_far(&self) -> bool {
        let host = BaseUrl::parse(&self.url).ok().and_then(|base| base.ip());
        host.map_or(!self.url.contains("//localhost"), |ip| !is_own(ip))
    }

    async fn listens(&self) -> bool {
        let Some(address) = &self.address else { return false };
        matches!(timeout(DEADLINE, TcpStream::connect(address)).await, Ok(Ok(_)))
    }

    async fn leads_here(&self) -> bool {
        let Some(address) = &self.address else { return false };
        let Ok(Ok(mut found)) = timeout(DEADLINE, lookup_host(address)).await else { return false };
        found.any(|at| is_own(at.ip()))
    }

    /// Whether both places are the same model server, reached at two addresses of this machine.
    fn is_same_server(&self, other: &Self) -> bool {
        let port = |place: &Self| {
            place.address.as_deref()?.rsplit_once(':').map(|(_, port)| port.to_owned())
        };
        let models = |place: &Self| place.found.as_ref().map(|found| found.models.clone());
        self.is_here && other.is_here && port(self) == port(other) && models(self) == models(other)
    }
}

/// Whether an address belongs to this machine: the system lets a socket bind only to its own
/// addresses.
fn is_own(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use testkit::{MockBackend, RefusingPort};

    use super::*;

    async fn urls(search: &mut Search) -> Vec<String> {
        search.look().await.into_iter().map(|found| found.url).collect()
    }

    #[tokio::test]
    async fn a_model_server_is_found_when_it_starts_and_missed_when_it_is_gone_for_good() {
        let port = RefusingPort::take();
        let address = port.address();
        let mut search = Search::at(None, &[("Ollama", address.port())]);
        assert!(urls(&mut search).await.is_empty());
        drop(port);
        let backend = MockBackend::start_at(address, &["m"]).await;
        assert_eq!(search.look().await[0].models, ["m"]);
        drop(backend);
        assert_eq!(urls(&mut search).await.len(), 1, "it may restart");
        assert!(urls(&mut search).await.is_empty());
        let _again = MockBackend::start_at(address, &["m"]).await;
        assert_eq!(urls(&mut search).await.len(), 1);
    }

    #[tokio::test]
    async fn models_that_come_later_are_seen() {
        let backend = MockBackend::start(&[]).await;
        let mut search = Search::at(None, &[("Ollama", backend.address().port())]);
        assert!(search.look().await[0].models.is_empty(), "it runs without any");
        backend.set_models(&["m"]);
        assert_eq!(search.look().await[0].models, ["m"]);
        backend.set_models(&["m", "n"]);
        for _ in 0..SELDOM {
            search.look().await;
        }
        assert_eq!(search.look().await[0].models, ["m", "n"]);
    }

    #[tokio::test]
    async fn one_server_at_two_addresses_of_this_machine_is_found_once() {
        let backend = MockBackend::start(&["m"]).await;
        let (port, other) = (backend.address().port(), MockBackend::start(&["m"]).await);
        let host = format!("localhost:{port}");
        let ports = [("Ollama", port), ("vLLM", other.address().port())];
        let mut search = Search::at(Some(&host), &ports);
        let expected = [backend.url(), other.url()];
        assert_eq!(urls(&mut search).await, expected, "another port is another server");
    }

    #[tokio::test]
    async fn a_program_that_is_no_model_server_is_passed_over() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let mut search = Search::at(None, &[("llama.cpp", port)]);
        assert!(urls(&mut search).await.is_empty());
    }
}
