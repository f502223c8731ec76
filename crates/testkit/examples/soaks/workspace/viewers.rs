//! Clients that look at sessions.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use testkit::{
    Random,
    workspace::{Follow, Knock, ServerMessage, Step, WorkspaceClient},
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::workspace::{account::Report, numbers::Lines, server::Server};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Habits {
    is_cut: bool,
    /// It stops reading now and then, and holds little that it has not read.
    naps: bool,
    /// It types, and makes its window larger and smaller.
    is_busy: bool,
}

impl Habits {
    /// A third of the clients is cut, a third naps, a third does neither.
    pub(crate) fn of(number: usize) -> Self {
        Self {
            is_cut: number.is_multiple_of(3),
            naps: number % 3 == 1,
            is_busy: number.is_multiple_of(2),
        }
    }

    fn knock(self, server: &Server) -> Knock {
        let knock = Knock::at(if self.is_cut { server.way.address() } else { server.address });
        if self.naps { knock.receive_buffer(4096) } else { knock }
    }
}

/// Looks at one session after the other, over several connections each.
pub(crate) async fn view(
    server: Arc<Server>,
    habits: Habits,
    mut random: Random,
    report: Report,
    until: Instant,
) {
    while Instant::now() < until {
        let any = server.sessions.lock().expect("nobody panics with it").any(&mut random);
        let Some(id) = any else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let mut look = Look { follow: Follow::new(&id), lines: Lines::default(), id };
        for number in 0..1 + random.below(6) {
            let Some(mut client) = server.client(habits.knock(&server)).await else { continue };
            report.tally(|counts| {
                counts.connections += 1;
                counts.resumed += u64::from(number > 0 && look.follow.snapshots() > 0);
            });
            let time = Duration::from_millis(20 + random.below(2_500));
            let end = until.min(Instant::now() + time);
            match look.on(&server, &mut client, habits, &mut random, end).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(wrong) => {
                    report.wrong(format!("{habits:?} of {}: {wrong}", look.id));
                    break;
                }
            }
        }
        report.tally(|counts| {
            counts.lines += look.lines.count;
            counts.snapshots += look.follow.snapshots() as u64;
        });
    }
}

struct Look {
    id: String,
    follow: Follow,
    lines: Lines,
}

impl Look {
    /// Looks over this connection; whether the session is still there.
    async fn on(
        &mut self,
        server: &Server,
        client: &mut WorkspaceClient,
        habits: Habits,
        random: &mut Random,
        end: Instant,
    ) -> Result<bool, String> {
        client.say(self.follow.attach()).await;
        while Instant::now() < end {
            if habits.is_busy && random.chance(0.02) {
                self.act(client, random).await;
            }
            if habits.naps && random.chance(0.02) {
                sleep(Duration::from_millis(random.below(1_500))).await;
            }
            let Ok(heard) = timeout_at(end, client.next_ever()).await else { break };
            let Some(heard) = heard else { break };
            if self.is_gone(&heard) {
                return Ok(false);
            }
            self.take(server, &heard)?;
        }
        Ok(true)
    }

    fn take(&mut self, server: &Server, heard: &ServerMessage) -> Result<(), String> {
        match self.follow.take(heard)? {
            Step::Nothing => return Ok(()),
            Step::Paint(..) => self.lines.begin(),
            Step::Write(text) => self.lines.take(&text)?,
        }
        let seq = self.follow.seq();
        server.sessions.lock().expect("nobody panics with it").saw(&self.id, seq);
        Ok(())
    }

    fn is_gone(&self, heard: &ServerMessage) -> bool {
        let ends = ["session_killed", "session_unknown"];
        let about = |kind| heard.as_message(kind).is_some_and(|it| it["session_id"] == *self.id);
        ends.into_iter().any(about)
    }

    /// Types something that no program reads, or resizes.
    async fn act(&self, client: &mut WorkspaceClient, random: &mut Random) {
        let id = &self.id;
        let message = match random.below(3) {
            0 => json!({
                "type": "resize", "session_id": id, "visible": true,
                "cols": 60 + random.below(60), "rows": 10 + random.below(40),
            }),
            1 => json!({"type": "take_control", "session_id": id}),
            // No key that is echoed.
            _ => json!({"type": "terminal_input", "session_id": id, "data": ""}),
        };
        client.say(message).await;
    }
}
