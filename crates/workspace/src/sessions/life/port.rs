//! The port that a development server listens on: named in its output, and found among the ports on which its
//! processes listen.

use std::time::{Duration, Instant};

use protocol::workspace::session::DEV_SERVER_TAG;
use session::terminal::port::Detector;

use super::facts::Facts;

/// The time between two searches while no port is known.
const BETWEEN: Duration = Duration::from_secs(2);
/// The time between two checks that the known port is still listened on.
const BETWEEN_KNOWN: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct PortSearch {
    /// `None` if the session is no development server, or has ended.
    active: Option<ActiveSearch>,
    found: Option<u16>,
}

struct ActiveSearch {
    detector: Detector,
    due: Instant,
    /// Whether nothing listened on the known port at the last check.
    was_missed: bool,
}

impl PortSearch {
    /// Searches only in a session that has the tag of development servers and has not ended.
    pub(crate) fn new(facts: &Facts, now: Instant) -> Self {
        let is_server = facts.tags.iter().any(|tag| tag == DEV_SERVER_TAG);
        let searches = is_server && facts.ended.is_none();
        Self { active: searches.then(|| ActiveSearch::new(now)), found: None }
    }

    pub(crate) const fn found(&self) -> Option<u16> {
        self.found
    }

    /// Reads output. A new port in it makes a search due at once.
    pub(crate) fn read(&mut self, output: &[u8], now: Instant) {
        if let Some(active) = &mut self.active
            && let Ok(text) = std::str::from_utf8(output)
            && active.detector.push(text).is_some()
        {
            active.due = now;
        }
    }

    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.active.as_ref().map(|active| active.due)
    }

    /// Whether a search is due now. If so, the next one becomes due after a while.
    pub(crate) fn take_due(&mut self, now: Instant) -> bool {
        let between = if self.found.is_some() { BETWEEN_KNOWN } else { BETWEEN };
        let due = self.active.as_mut().filter(|active| active.due <= now);
        due.map(|active| active.due = now + between).is_some()
    }

    /// Ends the search, because the server has ended.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }

    /// Takes the ports that the session's processes listen on now. Returns whether the server's
    /// port has changed.
    ///
    /// A server that restarts listens on no port for a moment, or only on ports that are not for
    /// visitors. So the known port is lost only when it is missing at two checks in a row.
    pub(crate) fn take(&mut self, listening: &[u16], now: Instant) -> bool {
        let Some(active) = &mut self.active else { return false };
        let named = || active.detector.candidates().find(|port| listening.contains(port));
        let stays = self.found.filter(|port| listening.contains(port));
        let port = match (stays, named()) {
            (Some(port), _) if active.detector.candidates().any(|named| named == port) => {
                Some(port)
            }
            (_, Some(named)) => Some(named),
            (Some(port), None) => Some(port),
            (None, None) if self.found.is_some() && !active.was_missed => {
                (active.was_missed, active.due) = (true, now + BETWEEN);
                return false;
            }
            (None, None) => listening.first().copied(),
        };
        active.was_missed = false;
        std::mem::replace(&mut self.found, port) != port
    }
}

impl ActiveSearch {
    fn new(now: Instant) -> Self {
        Self { detector: Detector::new(), due: now + BETWEEN, was_missed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(now: Instant) -> PortSearch {
        PortSearch { active: Some(ActiveSearch::new(now)), found: None }
    }

    /// A search that has found a port that the server named.
    fn found(port: u16, now: Instant) -> PortSearch {
        let mut search = active(now);
        search.read(format!("Local: http://localhost:{port}/\r\n").as_bytes(), now);
        assert!(search.take(&[port], now));
        search
    }

    #[test]
    fn a_port_that_is_named_is_looked_for_at_once_and_others_from_time_to_time() {
        let now = Instant::now();
        let mut search = active(now);
        assert!(!search.take_due(now));
        search.read(b"Local: http://localhost:5173/\r\n", now);
        assert!(search.take_due(now));
        assert!(!search.take_due(now + BETWEEN / 2));
        assert!(search.take_due(now + BETWEEN));
    }

    #[test]
    fn a_named_port_that_is_listened_on_wins_and_stays() {
        let now = Instant::now();
        let mut search = active(now);
        search.read(b"API at http://localhost:9999/, UI at http://localhost:5173/\r\n", now);
        assert!(!search.take(&[], now));
        assert!(search.take(&[24678, 5173], now));
        assert_eq!(search.found(), Some(5173));
        assert!(!search.take(&[24678, 9999, 5173], now), "it is still listened on");
        assert!(search.take_due(now));
        assert!(!search.take_due(now + BETWEEN), "it is looked for less often now");
        assert!(search.take_due(now + BETWEEN_KNOWN));
        search.end();
        assert_eq!((search.found(), search.due_at()), (None, None));
        assert!(!search.take(&[5173], now));
    }

    #[test]
    fn a_port_that_nobody_named_is_found_by_listening_and_gives_way_to_one_that_is_named() {
        let now = Instant::now();
        let mut search = active(now);
        assert!(search.take(&[3000, 4000], now));
        assert_eq!(search.found(), Some(3000));
        search.read(b"ready on http://localhost:4000\r\n", now);
        assert!(search.take_due(now) && search.take(&[3000, 4000], now));
        assert_eq!(search.found(), Some(4000));
    }

    #[test]
    fn a_server_that_is_started_again_on_another_port_is_found_there() {
        let now = Instant::now();
        let mut search = found(5173, now);
        search.read(b"Port 5173 is in use, Local: http://localhost:5174/\r\n", now);
        search.read(b"Local: http://localhost:5174/\r\n", now);
        assert!(search.take_due(now) && search.take(&[5174], now));
        assert_eq!(search.found(), Some(5174));
        // The server names no new port, and is found all the same.
        assert!(search.take(&[5173], now));
        assert_eq!(search.found(), Some(5173));
    }

    #[test]
    fn a_server_that_is_gone_for_a_moment_keeps_its_port_and_for_longer_loses_it() {
        let now = Instant::now();
        for (later, expected) in [(&[][..], None), (&[24678], Some(24678))] {
            let mut search = found(5173, now);
            assert!(search.take_due(now) && !search.take(&[24678], now));
            assert_eq!((search.found(), search.due_at()), (Some(5173), Some(now + BETWEEN)));
            assert!(!search.take(&[5173, 24678], now), "it is back");
            assert!(!search.take(&[], now));
            assert!(search.take(later, now));
            assert_eq!(search.found(), expected);
        }
    }
}
