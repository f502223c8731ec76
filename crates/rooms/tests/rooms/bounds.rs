//! How much there may be.

use std::{sync::Arc, time::Duration};

use base::{ParticipantId, RoomId};
use rooms::{Kind, NewRoom, RoomError};
use store::{ParticipantRecord, RoomHome, RoomRecord, RoomStore, RoomUse, StoreError};

use crate::kit::{HERE, NOW, empty, join_request, locked, make, named, open};

/// Keeps nothing, at no cost.
struct Nowhere;

impl RoomStore for Nowhere {
    fn load_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        Ok(Vec::new())
    }

    fn load_participants(&self) -> Result<Vec<ParticipantRecord>, StoreError> {
        Ok(Vec::new())
    }

    fn save_room(&self, _: &RoomRecord) -> Result<(), StoreError> {
        Ok(())
    }

    fn load_participants_of(&self, _: &RoomId) -> Result<Vec<ParticipantRecord>, StoreError> {
        Ok(Vec::new())
    }

    fn find_room(&self, _: &str) -> Result<Option<RoomRecord>, StoreError> {
        Ok(None)
    }

    fn room_uses(&self) -> Result<Vec<RoomUse>, StoreError> {
        Ok(Vec::new())
    }

    fn change_room(&self, _: &RoomRecord) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn claim_room(
        &self,
        _: &RoomId,
        _: u64,
        _: &RoomHome,
    ) -> Result<Option<RoomRecord>, StoreError> {
        Ok(None)
    }

    fn touch_rooms(&self, _: &[(RoomId, u64)]) -> Result<(), StoreError> {
        Ok(())
    }

    fn forget_room(&self, _: &RoomId) -> Result<(), StoreError> {
        Ok(())
    }

    fn save_participant(&self, _: &ParticipantRecord) -> Result<(), StoreError> {
        Ok(())
    }

    fn forget_participant(&self, _: &RoomId, _: &ParticipantId) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn there_are_ten_thousand_rooms_at_most_all_with_codes_of_their_own() {
    let rooms = open(&Arc::new(Nowhere), NOW);
    for _ in 0..10_000 {
        make(&rooms, named("room"));
    }
    let all = rooms.list();
    let codes: std::collections::HashSet<_> =
        all.iter().flat_map(|room| [room.short_code(), room.spoken_code()]).collect();
    assert_eq!(codes.len(), 20_000);
    let refused = rooms.create(named("room"), NOW).err().unwrap();
    assert!(matches!(refused, RoomError::TooMany(_)), "{refused}");
    rooms.close(all[0].id(), "test").unwrap();
    make(&rooms, named("room"));
}

#[test]
fn a_hundred_thousand_joins_fill_a_room_to_its_bound() {
    let rooms = open(&Arc::new(Nowhere), NOW);
    let room = make(&rooms, named("room")).room;
    let mut refused = 0;
    for number in 0..100_000 {
        let joined = room.join(join_request(&format!("p{number}"), Kind::Tunnel), HERE, NOW);
        refused += usize::from(matches!(joined, Err(RoomError::TooMany(_))));
    }
    assert_eq!((room.participants().len(), refused), (1_000, 99_000));
    assert_eq!(room.summary().participant_count, 1_000);
}

#[test]
fn rooms_that_cannot_be_are_not_made() {
    let (_, rooms) = empty();
    let idle = |secs| NewRoom { idle: Some(Duration::from_secs(secs)), ..named("room") };
    let defaults = protocol::room::RuntimeConfig {
        instructions: Some("x".repeat(16 * 1024 + 1)),
        ..Default::default()
    };
    let bad = [
        named(""),
        named(" \t "),
        named("bell\u{7}"),
        named(&"x".repeat(129)),
        locked(""),
        locked(&"x".repeat(257)),
        idle(0),
        idle(u64::MAX),
        NewRoom { defaults: Some(defaults), ..named("room") },
    ];
    for new in bad {
        let shown = format!("{new:?}");
        let refused = rooms.create(new, NOW).err();
        assert!(matches!(refused, Some(RoomError::Invalid(_))), "{shown}: {refused:?}");
    }
    assert!(rooms.list().is_empty());
}
