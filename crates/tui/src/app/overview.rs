//! The overview: the state of the server.

use client::admin::status::{Health, HealthDetails, QueueJson, WorkerJson};

use super::{list::List, rates::Rates, reading::Reading};

/// A part of the overview.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// The workers.
    #[default]
    Workers,
    /// The rooms.
    Rooms,
    /// The queues.
    Queues,
}

/// The overview: the state of the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overview {
    /// Its last report of its health.
    pub health: Option<Health>,
    /// Its queues.
    pub queues: Reading<Vec<QueueJson>>,
    /// Its rates in the last seconds.
    pub rates: Rates,
    /// The part that the keyboard acts on.
    pub part: Part,
    /// The place in the list of workers.
    pub workers: List,
    /// The place in the list of rooms.
    pub rooms: List,
    /// The place in the list of queues.
    pub waiting: List,
}

impl Overview {
    /// The details that the server shows to clients with the right to see them.
    pub fn details(&self) -> Option<&HealthDetails> {
        self.health.as_ref()?.details.as_ref()
    }

    /// The connected workers and other providers.
    pub fn all_workers(&self) -> &[WorkerJson] {
        self.details().map_or(&[], |details| &details.workers)
    }

    /// Takes its present health.
    pub fn take(&mut self, second: i64, health: Health) {
        let in_flight = health.details.as_ref().map_or(0, |details| details.in_flight);
        self.rates.pass(second);
        self.rates.in_flight.set(second, in_flight as f64);
        self.health = Some(health);
    }

    /// Moves to the next part, or the one before.
    pub fn turn(&mut self, forward: bool) {
        self.part = match (self.part, forward) {
            (Part::Workers, true) | (Part::Queues, false) => Part::Rooms,
            (Part::Rooms, true) | (Part::Workers, false) => Part::Queues,
            (Part::Queues, true) | (Part::Rooms, false) => Part::Workers,
        };
    }
}
