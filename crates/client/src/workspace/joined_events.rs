//! The events of an agent, stored ones and live ones joined by their numbers: each is shown once, and
//! none is missed. Without a socket.

use protocol::workspace::{
    AgentEvent, ClientMessage, SessionId,
    client::{GetTurns, TurnEvents},
};

use super::position::SessionView;

/// The most live events that are held back until the stored ones are here. If there are more, these are asked
/// for as stored ones.
const MOST_WAITING: usize = 4096;
/// How many bytes of stored events are asked for.
const BYTES: u64 = 1024 * 1024;
/// How often stored events are asked for again after a refusal.
const ATTEMPTS: u32 = 3;

/// The events of one session, as far as they are shown.
#[derive(Debug)]
pub(super) struct JoinedEvents {
    session: SessionId,
    /// The number of the newest event that was shown.
    last_shown: u64,
    /// Whether stored events are to be asked for.
    is_due: bool,
    /// How many such requests have no answer yet.
    unanswered: usize,
    attempts: u32,
    waiting: Vec<(u64, AgentEvent)>,
    /// Whether there were more live events than are held.
    has_lost: bool,
    /// The views that can be shown now.
    ready: Vec<SessionView>,
}

impl JoinedEvents {
    /// Joins the events after the one of this number.
    pub(super) const fn after(session: SessionId, last_shown: u64) -> Self {
        Self {
            session,
            last_shown,
            is_due: false,
            unanswered: 0,
            attempts: 0,
            waiting: Vec::new(),
            has_lost: false,
            ready: Vec::new(),
        }
    }

    /// Notes that a screen came. The server does not send the events before it, so they are asked for.
    pub(super) const fn skipped(&mut self) {
        (self.is_due, self.attempts) = (true, ATTEMPTS);
    }

    /// Notes a new connection. Requests of the last connection are not answered on this one.
    pub(super) const fn connected(&mut self) {
        self.is_due |= self.unanswered > 0;
        (self.unanswered, self.attempts) = (0, ATTEMPTS);
    }

    /// The request for stored events, if it is due.
    pub(super) fn due(&mut self) -> Option<ClientMessage> {
        if !std::mem::take(&mut self.is_due) {
            return None;
        }
        self.unanswered += 1;
        Some(ClientMessage::GetTurns(GetTurns {
            session_id: self.session,
            before: None,
            after: Some(self.last_shown),
            max_bytes: Some(BYTES),
        }))
    }

    /// Takes a live event.
    pub(super) fn live(&mut self, number: u64, event: AgentEvent) {
        if self.is_joined() {
            self.show(number, event);
        } else if self.waiting.len() < MOST_WAITING {
            self.waiting.push((number, event));
        } else {
            // The server has stored this event. It is asked for once the others are joined.
            self.has_lost = true;
        }
    }

    /// Takes the answer to a request.
    pub(super) fn stored(&mut self, mut stored: TurnEvents) {
        self.unanswered = self.unanswered.saturating_sub(1);
        // Two answers may overlap.
        stored.events.retain(|event| event.number > self.last_shown);
        if let Some(last) = stored.events.last() {
            self.last_shown = last.number;
            self.ready.push(SessionView::Turns(stored));
        }
        self.join();
    }

    /// Notes that a request was refused. It may have been one for stored events.
    pub(super) fn refused(&mut self) {
        if self.unanswered == 0 {
            return;
        }
        // An error names no request, so the one for stored events may still get an answer. A few more
        // attempts cost little, since events that come twice are shown once.
        self.unanswered -= 1;
        self.is_due = self.attempts > 0;
        self.attempts = self.attempts.saturating_sub(1);
        self.join();
    }

    /// The views that can be shown now, in order.
    pub(super) fn ready(&mut self) -> Vec<SessionView> {
        std::mem::take(&mut self.ready)
    }

    /// Shows the events that are held back, since no answer will come.
    pub(super) fn end(&mut self) {
        (self.is_due, self.unanswered, self.has_lost) = (false, 0, false);
        self.join();
    }

    const fn is_joined(&self) -> bool {
        !self.is_due && self.unanswered == 0
    }

    fn join(&mut self) {
        if !self.is_joined() {
            return;
        }
        for (number, event) in std::mem::take(&mut self.waiting) {
            self.show(number, event);
        }
        if std::mem::take(&mut self.has_lost) {
            self.skipped();
        }
    }

    fn show(&mut self, number: u64, event: AgentEvent) {
        if number > self.last_shown {
            self.last_shown = number;
            self.ready.push(SessionView::Event(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;
    use protocol::workspace::client::StoredEvent;

    use super::*;

    const SESSION: SessionId = SessionId::from_random(7);

    fn event(number: u64) -> AgentEvent {
        AgentEvent::Notice { message: number.to_string() }
    }

    /// A server, and the answers that are on their way.
    struct Server {
        newest: u64,
        answers: Vec<TurnEvents>,
    }

    impl Server {
        fn ask(&mut self, joined: &mut JoinedEvents) {
            let Some(ClientMessage::GetTurns(request)) = joined.due() else { return };
            let numbers = request.after.unwrap() + 1..=self.newest;
            let stored =
                |number| StoredEvent { number, at: Timestamp::UNIX_EPOCH, event: event(number) };
            self.answers.push(TurnEvents {
                session_id: SESSION,
                events: numbers.map(stored).collect(),
                more: false,
            });
        }

        fn answer(&mut self, joined: &mut JoinedEvents) {
            if !self.answers.is_empty() {
                joined.stored(self.answers.remove(0));
            }
        }
    }

    fn numbers(views: Vec<SessionView>) -> Vec<u64> {
        let number = |event: AgentEvent| match event {
            AgentEvent::Notice { message } => message.parse().unwrap(),
            other => panic!("{other:?}"),
        };
        let numbers = views.into_iter().flat_map(|view| match view {
            SessionView::Event(event) => vec![number(event)],
            SessionView::Turns(turns) => {
                turns.events.into_iter().map(|it| number(it.event)).collect()
            }
            other => panic!("{other:?}"),
        });
        numbers.collect()
    }

    #[derive(Debug, Clone)]
    enum Step {
        Live,
        /// A number of events that the client does not get, and a screen.
        Skipped(u64),
        Ask,
        Answer,
        Reconnected,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Live),
            1 => (0..4_u64).prop_map(Step::Skipped),
            2 => Just(Step::Ask),
            2 => Just(Step::Answer),
            1 => Just(Step::Reconnected),
        ]
    }

    proptest! {
        #[test]
        fn every_event_is_shown_once_and_in_order(steps in prop::collection::vec(step(), 0..60)) {
            let mut joined = JoinedEvents::after(SESSION, 0);
            let mut server = Server { newest: 0, answers: Vec::new() };
            let mut seen = Vec::new();
            for step in steps {
                match step {
                    Step::Live => {
                        server.newest += 1;
                        joined.live(server.newest, event(server.newest));
                    }
                    Step::Skipped(count) => {
                        server.newest += count;
                        joined.skipped();
                    }
                    Step::Ask => server.ask(&mut joined),
                    Step::Answer => server.answer(&mut joined),
                    Step::Reconnected => {
                        server.answers.clear();
                        joined.connected();
                    }
                }
                seen.extend(numbers(joined.ready()));
            }
            joined.skipped();
            server.ask(&mut joined);
            while !server.answers.is_empty() {
                server.answer(&mut joined);
            }
            joined.end();
            seen.extend(numbers(joined.ready()));
            prop_assert_eq!(seen, (1..=server.newest).collect::<Vec<_>>());
        }
    }

    #[test]
    fn more_live_events_than_are_held_are_asked_for() {
        let mut joined = JoinedEvents::after(SESSION, 0);
        joined.skipped();
        let mut server = Server { newest: 0, answers: Vec::new() };
        server.ask(&mut joined);
        for number in 1..=MOST_WAITING as u64 + 5 {
            joined.live(number, event(number));
        }
        assert_eq!(joined.waiting.len(), MOST_WAITING);
        server.newest = MOST_WAITING as u64 + 5;
        server.answer(&mut joined);
        server.ask(&mut joined);
        server.answer(&mut joined);
        assert_eq!(numbers(joined.ready()), (1..=server.newest).collect::<Vec<_>>());
    }

    #[test]
    fn a_server_that_refuses_keeps_nothing_back_for_ever() {
        let mut joined = JoinedEvents::after(SESSION, 0);
        joined.skipped();
        joined.live(5, event(5));
        let requests = std::iter::from_fn(|| joined.due().inspect(|_| joined.refused()));
        assert_eq!(requests.count(), ATTEMPTS as usize + 1);
        assert_eq!(numbers(joined.ready()), [5]);
    }
}
