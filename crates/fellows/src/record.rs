//! A server's record as the bytes in the bucket.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use fleet::{Record, ServerId, ServerName, State};
use serde::{Deserialize, Serialize};

use crate::facts::EncodedFacts;

/// The longest name of a server, in bytes.
pub(crate) const MAX_NAME: usize = 128;

/// The records of fellows whose facts are kept, so that the same ones are not read with every beat.
const MOST_KEPT: usize = 256;

/// The part of a record that changes with each beat: one line of JSON, before the facts.
#[derive(Serialize, Deserialize)]
struct Head {
    name: String,
    beat: u64,
    revision: u64,
    draining: bool,
}

/// Bytes that are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no record of a server")]
pub(crate) struct BadRecord;

/// A record as bytes: its head, and its facts.
pub(crate) fn encode(record: &Record<Arc<EncodedFacts>>) -> (Vec<u8>, Bytes) {
    let head = Head {
        name: record.name.as_str().to_owned(),
        beat: record.beat,
        revision: record.revision,
        draining: record.state == State::Draining,
    };
    // Nothing in it can fail to be encoded.
    let mut line = serde_json::to_vec(&head).unwrap_or_default();
    line.push(b'\n');
    (line, record.facts.json.clone())
}

/// Reads records, and remembers the facts of each server.
#[derive(Default)]
pub(crate) struct Records {
    last: HashMap<ServerId, (u64, Arc<EncodedFacts>)>,
}

impl Records {
    /// The record of a server.
    pub(crate) fn decode(
        &mut self,
        id: ServerId,
        bytes: &Bytes,
    ) -> Result<Record<Arc<EncodedFacts>>, BadRecord> {
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(BadRecord)?;
        let head: Head = serde_json::from_slice(&bytes[..end]).map_err(|_| BadRecord)?;
        if head.name.is_empty() || head.name.len() > MAX_NAME {
            return Err(BadRecord);
        }
        let facts = match self.last.get(&id) {
            Some((revision, facts)) if *revision == head.revision => Arc::clone(facts),
            _ => self.read(id, head.revision, bytes.slice(end + 1..))?,
        };
        let state = if head.draining { State::Draining } else { State::Active };
        let name = ServerName::from(head.name.as_str());
        Ok(Record { id, name, beat: head.beat, revision: head.revision, state, facts })
    }

    fn read(
        &mut self,
        id: ServerId,
        revision: u64,
        json: Bytes,
    ) -> Result<Arc<EncodedFacts>, BadRecord> {
        let facts = EncodedFacts::read(json).map_err(|_| BadRecord)?;
        if self.last.len() >= MOST_KEPT {
            self.last.clear();
        }
        self.last.insert(id, (revision, Arc::clone(&facts)));
        Ok(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Facts, tests::worker};

    fn record(beat: u64, revision: u64) -> Record<Arc<EncodedFacts>> {
        let facts = Facts { workers: vec![worker(revision, 2)], ..Facts::default() };
        let (id, name) = (ServerId::from_random(5), ServerName::from("lab:1"));
        Record { id, name, beat, revision, state: State::Draining, facts: EncodedFacts::new(facts) }
    }

    fn bytes(record: &Record<Arc<EncodedFacts>>) -> Bytes {
        let (head, facts) = encode(record);
        [head.as_slice(), &facts].concat().into()
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_its_facts_once() {
        let mut records = Records::default();
        let id = ServerId::from_random(5);
        let first = records.decode(id, &bytes(&record(1, 1))).unwrap();
        assert_eq!(first, record(1, 1));
        let second = records.decode(id, &bytes(&record(2, 1))).unwrap();
        assert!(second.beat == 2 && Arc::ptr_eq(&first.facts, &second.facts));
        assert_eq!(records.decode(id, &bytes(&record(3, 2))).unwrap(), record(3, 2));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let mut records = Records::default();
        let id = ServerId::from_random(5);
        let whole = bytes(&record(1, 1));
        for cut in [0, 1, 20, whole.len() - 1] {
            assert_eq!(records.decode(id, &whole.slice(..cut)), Err(BadRecord), "{cut}");
        }
        let long = Record { name: ServerName::from("x".repeat(129).as_str()), ..record(1, 1) };
        assert_eq!(records.decode(id, &bytes(&long)), Err(BadRecord));
    }

    #[test]
    fn the_facts_of_so_many_servers_are_kept() {
        let mut records = Records::default();
        for id in 0..=MOST_KEPT as u128 {
            records.decode(ServerId::from_random(id), &bytes(&record(1, 1))).unwrap();
        }
        assert!(records.last.len() <= MOST_KEPT);
    }
}
