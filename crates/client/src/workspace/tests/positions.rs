//! Output is shown exactly once, over any history of connections.

use proptest::prelude::*;
use protocol::workspace::{
    AgentEvent, ClientMessage, OutputFrame, ServerMessage,
    client::{AgentEventMessage, Attach},
};

use super::double::{history, session};
use crate::workspace::{ServerFrame, SessionPosition, SessionView, position::Step};

/// A server's log: for each chunk, the number of events that follow it.
struct Log(Vec<usize>);

impl Log {
    /// All frames that the server sends to a new viewer, in order, if it keeps the newest `kept`
    /// chunks.
    fn stream(&self, attach: &ClientMessage, kept: usize) -> Vec<ServerFrame> {
        let ClientMessage::Attach(Attach { after_seq, .. }) = attach else { panic!() };
        let newest = self.0.len() as u64;
        let first_kept = newest.saturating_sub(kept as u64) + 1;
        let resumed = after_seq.filter(|after| (first_kept..=newest + 1).contains(&(after + 1)));
        let (after, screen) = match resumed {
            Some(after) => (after, None),
            None => (newest, Some(format!("screen {newest}"))),
        };
        let mut frames = vec![message(history(after, screen.as_deref()))];
        for seq in after + 1..=newest {
            frames.push(self.chunk(seq));
            frames.extend(self.events(seq));
        }
        frames
    }

    fn chunk(&self, seq: u64) -> ServerFrame {
        let data = format!("{seq};").into();
        ServerFrame::Output(OutputFrame { session_id: session(), seq, data })
    }

    fn events(&self, seq: u64) -> impl Iterator<Item = ServerFrame> {
        (0..self.0[seq as usize - 1]).map(move |at| {
            let event = AgentEvent::Notice { message: format!("{seq}.{at}") };
            let session_id = session();
            message(ServerMessage::AgentEvent(AgentEventMessage {
                session_id,
                seq,
                number: None,
                event,
            }))
        })
    }
}

fn message(message: ServerMessage) -> ServerFrame {
    ServerFrame::Message(Box::new(message))
}

fn shown(step: Step) -> Option<String> {
    match step {
        Step::Show(SessionView::Output(data)) => Some(String::from_utf8(data.to_vec()).unwrap()),
        Step::Show(SessionView::Event(AgentEvent::Notice { message })) => Some(message),
        Step::Show(SessionView::Screen(screen)) => Some(screen.data),
        _ => None,
    }
}

proptest! {
    /// The connection is cut anywhere, any number of times. With a log that keeps everything,
    /// exactly what was written after the first screen is shown.
    #[test]
    fn everything_is_shown_once(
        before in prop::collection::vec(0..3_usize, 0..5),
        cuts in prop::collection::vec((prop::collection::vec(0..4_usize, 0..6), 0..20_usize), 1..12),
        is_agent: bool,
    ) {
        let mut log = Log(before);
        let first = log.0.len() as u64;
        let mut position = SessionPosition::new(session(), is_agent, None);
        let mut seen = Vec::new();
        let mut has_begun = false;
        for (new, cut) in cuts {
            let whole = log.stream(&position.attach(), usize::MAX >> 1);
            // The first connection gets at least its snapshot.
            let heard = if has_begun { cut } else { cut.max(1) };
            has_begun = true;
            seen.extend(whole.into_iter().take(heard).filter_map(|it| shown(position.take(it))));
            log.0.extend(new);
        }
        let rest = log.stream(&position.attach(), usize::MAX >> 1);
        seen.extend(rest.into_iter().filter_map(|frame| shown(position.take(frame))));
        let mut expected = vec![format!("screen {first}")];
        for seq in first + 1..=log.0.len() as u64 {
            expected.push(format!("{seq};"));
            expected.extend((0..log.0[seq as usize - 1]).map(|at| format!("{seq}.{at}")));
        }
        if !is_agent {
            // A terminal has no events, so its position does not count them.
            seen.retain(|it| !it.contains('.'));
            expected.retain(|it| !it.contains('.'));
        }
        prop_assert_eq!(seen, expected);
    }

    /// With a log that keeps little, what is shown goes on chunk by chunk or with a newer screen,
    /// and the position is that of what was shown last.
    #[test]
    fn overrun_output_comes_as_a_screen(
        cuts in prop::collection::vec((1..6_usize, 1..10_usize), 1..12),
        kept in 1..4_usize,
    ) {
        let mut log = Log(Vec::new());
        let mut position = SessionPosition::new(session(), false, None);
        let mut at = 0;
        for (new, cut) in cuts {
            log.0.extend(vec![0; new]);
            for frame in log.stream(&position.attach(), kept).into_iter().take(cut) {
                let Some(seen) = shown(position.take(frame)) else { continue };
                match seen.strip_prefix("screen ") {
                    Some(seq) => at = seq.parse::<u64>().unwrap(),
                    None => {
                        prop_assert_eq!(&seen, &format!("{};", at + 1));
                        at += 1;
                    }
                }
                prop_assert_eq!(position.last_seq(), Some(at));
            }
        }
    }
}
