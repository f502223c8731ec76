//! The port that a development server listens on: named in its output, and found in `/proc`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use protocol::workspace::session::DEV_SERVER_TAG;
use session::port::Detector;
use tokio::task;

use super::{alarms::now, facts::Facts, session::Session};

/// How often it is looked for as long as none is known.
const BETWEEN: Duration = Duration::from_secs(2);

/// The search for the port of one session.
#[derive(Default)]
pub(super) struct PortSearch {
    /// As long as it is searched for.
    searching: Option<Searching>,
    found: Option<u16>,
}

struct Searching {
    detector: Detector,
    due: Instant,
}

impl PortSearch {
    /// Nothing to be searched for, but in a session with the tag of development servers that has not
    /// ended.
    pub(super) fn new(facts: &Facts, now: Instant) -> Self {
        let is_server = facts.tags.iter().any(|tag| tag == DEV_SERVER_TAG);
        let searches = is_server && facts.ended.is_none();
        let searching =
            searches.then(|| Searching { detector: Detector::new(), due: now + BETWEEN });
        Self { searching, found: None }
    }

    pub(super) const fn found(&self) -> Option<u16> {
        self.found
    }

    /// Reads output: a port named there is looked for at once.
    pub(super) fn read(&mut self, output: &[u8], now: Instant) {
        if let Some(searching) = &mut self.searching
            && let Ok(text) = std::str::from_utf8(output)
            && searching.detector.push(text).is_some()
        {
            searching.due = now;
        }
    }

    pub(super) fn due_at(&self) -> Option<Instant> {
        self.searching.as_ref().map(|searching| searching.due)
    }

    /// Whether it is to be looked for now; then not again for a while.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let due = self.searching.as_mut().filter(|searching| searching.due <= now);
        due.map(|searching| searching.due = now + BETWEEN).is_some()
    }

    /// It is not searched for any more.
    pub(super) fn stop(&mut self) {
        self.searching = None;
    }

    /// Of the ports that its processes listen on, the one that it named first, or else the lowest;
    /// whether that is news.
    fn take(&mut self, listening: &[u16]) -> bool {
        let Some(searching) = &self.searching else { return false };
        let named = searching.detector.candidates().find(|port| listening.contains(port));
        self.found = named.or_else(|| listening.first().copied());
        if self.found.is_some() {
            self.stop();
        }
        self.found.is_some()
    }
}

impl Session {
    /// Looks for its port, beside all else.
    pub(super) fn search_port(self: &Arc<Self>) {
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let Ok(engine) = session.live() else { return };
            let pids = engine.processes().await;
            let listening = task::spawn_blocking(move || process::listening_ports(&pids)).await;
            let listening = listening.unwrap_or_default();
            if session.lock().port.take(&listening) {
                session.tell(now());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searching(now: Instant) -> PortSearch {
        let searching = Some(Searching { detector: Detector::new(), due: now + BETWEEN });
        PortSearch { searching, found: None }
    }

    #[test]
    fn a_port_that_is_named_is_looked_for_at_once_and_others_from_time_to_time() {
        let now = Instant::now();
        let mut search = searching(now);
        assert!(!search.take_due(now));
        search.read(b"Local: http://localhost:5173/\r\n", now);
        assert!(search.take_due(now));
        assert!(!search.take_due(now + BETWEEN / 2));
        assert!(search.take_due(now + BETWEEN));
    }

    #[test]
    fn what_is_named_and_listened_on_wins_and_then_the_search_is_over() {
        let now = Instant::now();
        let mut search = searching(now);
        search.read(b"API at http://localhost:9999/, UI at http://localhost:5173/\r\n", now);
        assert!(!search.take(&[]));
        assert!(search.take(&[24678, 5173]));
        assert_eq!((search.found(), search.due_at()), (Some(5173), None));
        assert!(!search.take(&[24678]));
    }

    #[test]
    fn a_port_that_nobody_named_is_found_by_listening() {
        let mut search = searching(Instant::now());
        assert!(search.take(&[3000, 4000]));
        assert_eq!(search.found(), Some(3000));
    }
}
