//! An outpost: the sessions of this machine that work for teams of other members. A team's owner
//! keeps its inboxes and results. The outpost keeps a *seat* for each of these sessions: the messages
//! that it was sent and whose turns have not begun, and the *reports* about it that the owner has not
//! acknowledged.
//!
//! A pure state machine, driven as [`Teams`](super::Teams) are. A message that is taken is stored
//! before it is acknowledged, and takes effect once, however often it is sent. A report is stored
//! before it is sent, and is sent until it is acknowledged.
//!
//! - `record`: the stored records

mod record;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use uuid::Uuid;

use super::effect::{Change, Delivery, Effect};
pub use record::{Report, SeatFacts, SeatKey, SeatMessage, SeatPart, SeatRecord};

/// The most seats, including those of ended sessions whose owner has not heard of the end.
pub const SEATS: usize = 4096;
/// The most messages that wait for one session. An owner sends one at a time.
const MESSAGES: usize = 16;
/// The most reports about one session that wait for the owner. Beyond that, the oldest report about a turn is
/// dropped.
pub const REPORTS: usize = 1024;
/// The most of these that are not about a turn, so that they are never dropped. Beyond that, no message is
/// taken, since each causes one. The rest is for the newest turn and the end of the session.
const LASTING: usize = REPORTS - 2;
/// The most bytes of text in one report.
const TEXT: usize = 1 << 20;
/// The most bytes of text in all reports.
const ALL_TEXT: usize = 64 << 20;
/// The text in place of a text that does not fit.
const LEFT_OUT: &str = "[the text is lost: too much waits for the machine that keeps the team]";

/// The sessions of this machine that work for teams of other members.
#[derive(Debug, Default)]
pub struct Outpost {
    seats: BTreeMap<Uuid, Seat>,
    /// The bytes of text in all reports.
    report_bytes: usize,
}

#[derive(Debug)]
struct Seat {
    facts: SeatFacts,
    messages: BTreeMap<u64, SeatMessage>,
    reports: BTreeMap<u64, Report>,
    /// The message that was delivered to the session and whose turn has not begun.
    delivered: Option<u64>,
    /// Whether the session had no room for the last message.
    is_full: bool,
}

/// The reason why a session gets no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSeat {
    /// The session has a seat already.
    #[error("there is such a session already")]
    Taken,
    /// There are too many seats.
    #[error("{SEATS} sessions work for teams of other machines already")]
    Full,
}

/// The fate of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// The message is stored, or was taken before.
    Noted,
    /// The session is unknown here, or has ended.
    Unknown,
    /// Too many messages wait for the session: the owner has to send this one again later.
    NoRoom,
}

/// How the sessions that an owner knows differ from those that are here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// Known to the owner, but not here.
    pub missing: Vec<Uuid>,
    /// Running here, but not known to the owner.
    pub surplus: Vec<Uuid>,
}

impl Outpost {
    /// Rebuilds the seats from these records, in any order. Also returns the keys of records that
    /// belong to nothing.
    pub fn restore(records: impl IntoIterator<Item = SeatRecord>) -> (Self, Vec<SeatKey>) {
        let mut outpost = Self::default();
        // Sorted by key, a seat comes before its other records.
        let sorted: BTreeMap<_, _> = records.into_iter().map(|one| (one.key(), one)).collect();
        let taken = sorted.into_iter().filter_map(|(key, record)| outpost.take_in(key, record));
        let left_out = taken.collect();
        (outpost, left_out)
    }

    /// Whether this session works for a team of another member.
    pub fn has(&self, session: Uuid) -> bool {
        self.seats.contains_key(&session)
    }

    /// All seats.
    pub fn seats(&self) -> impl Iterator<Item = &SeatFacts> {
        self.seats.values().map(|seat| &seat.facts)
    }

    /// The owners of the teams that have sessions here.
    pub fn owners(&self) -> BTreeSet<&str> {
        self.seats().map(|facts| facts.owner.as_str()).collect()
    }

    /// Gives a session a seat, before the session is made.
    ///
    /// # Errors
    /// When the session has a seat already, or there are too many seats.
    pub fn enlist(
        &mut self,
        session: Uuid,
        team: Uuid,
        owner: &str,
    ) -> Result<Vec<Effect>, NoSeat> {
        if self.has(session) {
            return Err(NoSeat::Taken);
        }
        if self.seats.len() >= SEATS {
            return Err(NoSeat::Full);
        }
        let owner = owner.to_owned();
        let facts = SeatFacts { session, team, owner, taken: 0, reports: 0, is_gone: false };
        self.seats.insert(session, Seat::new(facts));
        Ok(self.keep(SeatKey::seat(session)))
    }

    /// Takes back the seat of a session that could not be made.
    pub fn dismiss(&mut self, session: Uuid) -> Vec<Effect> {
        self.remove(session)
    }

    /// Takes a message of an owner for a session. A repeated message has no further effect.
    pub fn take(
        &mut self,
        session: Uuid,
        owner: &str,
        message: SeatMessage,
    ) -> (Receipt, Vec<Effect>) {
        let seat = self.seats.get_mut(&session);
        let seat = seat.filter(|seat| seat.facts.owner == owner && !seat.facts.is_gone);
        let Some(seat) = seat else { return (Receipt::Unknown, Vec::new()) };
        if message.seq <= seat.facts.taken {
            return (Receipt::Noted, Vec::new());
        }
        if seat.messages.len() >= MESSAGES || seat.lasting_reports() >= LASTING {
            return (Receipt::NoRoom, Vec::new());
        }
        seat.facts.taken = message.seq;
        let (key, seq) = (SeatKey::message(session, message.seq), message.seq);
        seat.messages.insert(seq, message);
        let mut effects = self.keep(SeatKey::seat(session));
        effects.extend(self.keep(key));
        effects.extend(self.delivery(session, seq).map(Effect::Show));
        effects.extend(self.offer(session));
        (Receipt::Noted, effects)
    }

    /// The name of the sender of a message that waits here, and whether the sender leads the team.
    pub fn sender(&self, session: Uuid, seq: u64) -> Option<(Option<String>, bool)> {
        let message = self.seats.get(&session)?.messages.get(&seq)?;
        Some((message.name.clone(), message.leads))
    }

    /// Notes that the turn with this message begins.
    pub fn begun(&mut self, session: Uuid, seq: u64) -> Vec<Effect> {
        let Some(seat) = self.seats.get_mut(&session) else { return Vec::new() };
        if seat.messages.remove(&seq).is_none() {
            return Vec::new();
        }
        seat.delivered = None;
        let mut effects = vec![Effect::Keep(Change::RemoveSeat(SeatKey::message(session, seq)))];
        effects.extend(self.report(session, Report::Begun { seq }));
        effects.extend(self.offer(session));
        effects
    }

    /// Notes that the session had no room for this message. It is offered again when the session [has
    /// room](Self::note_room).
    pub fn not_taken(&mut self, session: Uuid, seq: u64) {
        if let Some(seat) = self.seats.get_mut(&session)
            && seat.delivered == Some(seq)
        {
            (seat.delivered, seat.is_full) = (None, true);
        }
    }

    /// Notes that the session may have room again.
    pub fn note_room(&mut self, session: Uuid) -> Vec<Effect> {
        if let Some(seat) = self.seats.get_mut(&session) {
            seat.is_full = false;
        }
        self.offer(session).into_iter().collect()
    }

    /// Offers each session its next message again. Call this after the machine was rebuilt.
    pub fn offer_all(&mut self) -> Vec<Effect> {
        let sessions: Vec<Uuid> = self.seats.keys().copied().collect();
        sessions.into_iter().filter_map(|session| self.offer(session)).collect()
    }

    /// Notes that a turn of a session has begun.
    pub fn turn_started(&mut self, session: Uuid, turn: u64) -> Vec<Effect> {
        self.report(session, Report::Started { turn })
    }

    /// Notes that a turn of a session has ended. `text` is the agent's final answer, or the error.
    pub fn turn_ended(
        &mut self,
        session: Uuid,
        turn: u64,
        completed: bool,
        text: &str,
    ) -> Vec<Effect> {
        let text = self.fitted(text);
        let mut effects = self.report(session, Report::Ended { turn, completed, text });
        effects.extend(self.note_room(session));
        effects
    }

    /// Notes that a session goes on after the daemon's start. The turn that it was in has ended with the
    /// daemon.
    pub fn stopped(&mut self, session: Uuid) -> Vec<Effect> {
        let last = self.seats.get(&session).and_then(|seat| seat.reports.values().next_back());
        let effects = match last {
            Some(Report::Stopped) => Vec::new(),
            _ => self.report(session, Report::Stopped),
        };
        effects.into_iter().chain(self.offer(session)).collect()
    }

    /// Notes that a session has ended.
    pub fn gone(&mut self, session: Uuid) -> Vec<Effect> {
        let Some(seat) = self.seats.get_mut(&session).filter(|seat| !seat.facts.is_gone) else {
            return Vec::new();
        };
        seat.facts.is_gone = true;
        seat.delivered = None;
        let messages = std::mem::take(&mut seat.messages).into_keys();
        let key = |seq| Effect::Keep(Change::RemoveSeat(SeatKey::message(session, seq)));
        let mut effects: Vec<_> = messages.map(key).collect();
        effects.extend(self.report(session, Report::Gone));
        effects
    }

    /// Notes that the owner has taken the reports about a session up to this number. The seat of a session
    /// that has ended is given up when its owner has heard of the end.
    pub fn heard(&mut self, owner: &str, session: Uuid, number: u64) -> Vec<Effect> {
        let seat = self.seats.get_mut(&session).filter(|seat| seat.facts.owner == owner);
        let Some(seat) = seat else { return Vec::new() };
        let left = seat.reports.split_off(&number.saturating_add(1));
        let heard = std::mem::replace(&mut seat.reports, left);
        self.report_bytes -= heard.values().map(Report::bytes).sum::<usize>();
        if seat.facts.is_gone && seat.reports.is_empty() {
            return self.remove(session);
        }
        let key = |number| Effect::Keep(Change::RemoveSeat(SeatKey::report(session, number)));
        heard.into_keys().map(key).collect()
    }

    /// Reports for an owner, by session and number: at most `most`, and for each session in `after` only
    /// those with larger numbers.
    pub fn reports(
        &self,
        owner: &str,
        after: &BTreeMap<Uuid, u64>,
        most: usize,
    ) -> Vec<(Uuid, u64, Report)> {
        let seats = self.seats.iter().filter(|(_, seat)| seat.facts.owner == owner);
        let reports = seats.flat_map(|(session, seat)| {
            let from = after.get(session).map_or(0, |sent| sent + 1);
            let due = seat.reports.range(from..);
            due.map(move |(number, report)| (*session, *number, report.clone()))
        });
        reports.take(most).collect()
    }

    /// Compares the sessions that an owner knows to be here with those that are here.
    pub fn compare(&self, owner: &str, known: &BTreeSet<Uuid>) -> Differences {
        let own = self.seats.iter().filter(|(_, seat)| seat.facts.owner == owner);
        let own: BTreeSet<Uuid> = own.map(|(session, _)| *session).collect();
        let living = |session: &&Uuid| !self.seats[*session].facts.is_gone;
        Differences {
            missing: known.difference(&own).copied().collect(),
            surplus: own.difference(known).filter(living).copied().collect(),
        }
    }

    fn report(&mut self, session: Uuid, report: Report) -> Vec<Effect> {
        let Some(seat) = self.seats.get_mut(&session) else { return Vec::new() };
        let dropped = seat.make_room();
        self.report_bytes += report.bytes();
        self.report_bytes -= dropped.as_ref().map_or(0, |(_, dropped)| dropped.bytes());
        seat.facts.reports += 1;
        let number = seat.facts.reports;
        seat.reports.insert(number, report);
        let key = |number| SeatKey::report(session, number);
        let mut effects = self.keep(SeatKey::seat(session));
        effects.extend(self.keep(key(number)));
        let dropped = dropped.map(|(number, _)| Effect::Keep(Change::RemoveSeat(key(number))));
        effects.extend(dropped);
        effects
    }

    fn fitted(&self, text: &str) -> String {
        let cut = text.get(..text.floor_char_boundary(TEXT)).unwrap_or_default();
        let fits = self.report_bytes + cut.len() <= ALL_TEXT;
        if fits { cut } else { LEFT_OUT }.to_owned()
    }

    fn offer(&mut self, session: Uuid) -> Option<Effect> {
        let seat = self.seats.get_mut(&session)?;
        if seat.delivered.is_some() || seat.is_full || seat.facts.is_gone {
            return None;
        }
        let seq = *seat.messages.keys().next()?;
        seat.delivered = Some(seq);
        self.delivery(session, seq).map(Effect::Deliver)
    }

    fn delivery(&self, session: Uuid, seq: u64) -> Option<Delivery> {
        let seat = self.seats.get(&session)?;
        let SeatMessage { from, kind, ref payload, .. } = *seat.messages.get(&seq)?;
        let (team, payload) = (seat.facts.team, Arc::clone(payload));
        Some(Delivery { team, seq, from, to: session, kind, payload })
    }

    fn remove(&mut self, session: Uuid) -> Vec<Effect> {
        let Some(seat) = self.seats.remove(&session) else { return Vec::new() };
        self.report_bytes -= seat.reports.values().map(Report::bytes).sum::<usize>();
        vec![Effect::Keep(Change::RemoveSeat(SeatKey::seat(session)))]
    }

    /// The effect that stores the record with this key; empty if there is no such record.
    fn keep(&self, key: SeatKey) -> Vec<Effect> {
        let record = self.record(key).map(Change::PutSeat).map(Effect::Keep);
        record.into_iter().collect()
    }

    fn record(&self, key: SeatKey) -> Option<SeatRecord> {
        let (session, seat) = (key.session, self.seats.get(&key.session)?);
        Some(match key.part {
            SeatPart::Seat => SeatRecord::Seat(seat.facts.clone()),
            SeatPart::Message(seq) => {
                SeatRecord::Message { session, message: seat.messages.get(&seq)?.clone() }
            }
            SeatPart::Report(number) => {
                SeatRecord::Report { session, number, report: seat.reports.get(&number)?.clone() }
            }
        })
    }

    fn take_in(&mut self, key: SeatKey, record: SeatRecord) -> Option<SeatKey> {
        if let SeatRecord::Seat(facts) = record {
            self.seats.insert(key.session, Seat::new(facts));
            return None;
        }
        let Some(seat) = self.seats.get_mut(&key.session) else { return Some(key) };
        match record {
            SeatRecord::Seat(_) => {}
            SeatRecord::Message { message, .. } => {
                seat.messages.insert(message.seq, message);
            }
            SeatRecord::Report { number, report, .. } => {
                self.report_bytes += report.bytes();
                seat.reports.insert(number, report);
            }
        }
        None
    }
}

impl Seat {
    fn new(facts: SeatFacts) -> Self {
        let (messages, reports) = (BTreeMap::new(), BTreeMap::new());
        Self { facts, messages, reports, delivered: None, is_full: false }
    }

    /// The number of reports that are never dropped, including one for each message: that it has
    /// begun its turn.
    fn lasting_reports(&self) -> usize {
        let lasting = self.reports.values().filter(|report| !report.is_of_turn());
        lasting.count() + self.messages.len()
    }

    /// Drops the oldest report about a turn if too many wait.
    fn make_room(&mut self) -> Option<(u64, Report)> {
        if self.reports.len() < REPORTS {
            return None;
        }
        let oldest = self.reports.iter().find(|(_, report)| report.is_of_turn());
        let number = *oldest?.0;
        Some((number, self.reports.remove(&number)?))
    }
}
