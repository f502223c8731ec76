//! Drives the machine [`fleet::RoomHomes`], which decides for which rooms this server is the home. The record of a
//! room, which all servers see, is its row in the shared database. The revision of the record is the epoch in it: a
//! claim is a compare-and-set of the epoch.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use base::{RoomId, Scope};
use fleet::{
    Epoch, Placement, RoomHomes, ServerId, ServerName,
    room_homes::{Input, Output},
};
use rooms::{Place, Rooms};
use store::RoomHome;

/// The id that no server has, for a record that names no home.
const NOBODY: u128 = 0;

/// How long a server is missed before it counts as gone. If NATS hangs, all servers seem to be silent. Within this
/// time and the machine's own wait, this server notices that NATS is the cause, and then takes over no rooms.
const SURE: Duration = Duration::from_secs(1);

/// The homes of rooms, as this server sees them.
pub(super) struct Keeper {
    rooms: Rooms,
    /// The id and the name of this server, as epochs have them.
    own: (ServerId, ServerName),
    machine: RoomHomes,
    fellows: HashMap<ServerId, ServerName>,
    /// The fellows that are no longer seen, and since when.
    missed: HashMap<ServerId, Instant>,
    is_connected: bool,
    /// The newest epoch of each room that the machine has seen.
    epochs: HashMap<RoomId, u64>,
}

impl Keeper {
    pub(super) fn new(rooms: Rooms, id: ServerId, name: ServerName) -> Self {
        let (machine, own) = (RoomHomes::new(id, name.clone()), (id, name));
        let (fellows, missed, epochs) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { rooms, own, machine, fellows, missed, is_connected: false, epochs }
    }

    /// Notes which fellows are seen, and whether this server is connected to NATS.
    pub(super) fn members(
        &mut self,
        fellows: &HashMap<ServerId, ServerName>,
        is_connected: bool,
        now: Instant,
    ) {
        // Comes first: a server that is not connected must not take the others for gone.
        if self.is_connected && !is_connected {
            self.machine.handle(now, Input::Disconnected);
        }
        for (fellow, name) in fellows {
            self.missed.remove(fellow);
            if self.fellows.insert(*fellow, name.clone()).is_none() {
                let (fellow, name) = (*fellow, name.clone());
                self.machine.handle(now, Input::Joined { fellow, name });
            }
        }
        for fellow in self.fellows.keys().filter(|id| !fellows.contains_key(id)) {
            self.missed.entry(*fellow).or_insert(now);
        }
        self.forget_missed(is_connected, now);
        let connects = !self.is_connected && is_connected;
        self.is_connected = is_connected;
        if connects {
            // The machine must have all records before the connection is reported to it.
            self.epochs.clear();
            self.look(now);
            self.machine.handle(now, Input::Connected);
        }
    }

    /// Reports fellows as gone that were missed for long enough. While this server is not connected, missed fellows
    /// are reported at once: the machine knows of that.
    fn forget_missed(&mut self, is_connected: bool, now: Instant) {
        let is_due = |since: &Instant| !is_connected || *since + SURE <= now;
        let gone = self.missed.iter().filter(|(_, since)| is_due(since));
        let gone: Vec<_> = gone.map(|(fellow, _)| *fellow).collect();
        for fellow in gone {
            self.missed.remove(&fellow);
            self.fellows.remove(&fellow);
            self.machine.handle(now, Input::Left { fellow });
        }
    }

    /// Carries out the machine's outputs. Returns the scopes of the rooms that this server has given up: the
    /// scheduler has to end their jobs. `wall` is the time in milliseconds since 1970. Blocks.
    pub(super) fn step(&mut self, now: Instant, wall: u64) -> Vec<Scope> {
        self.look(now);
        self.machine.handle_timeout(now);
        let mut given_up = Vec::new();
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Claim { room, epoch, expected_revision } => {
                    self.claim(now, wall, room, epoch, expected_revision);
                }
                Output::Home { room, epoch } => self.settle(wall, &room, epoch),
                Output::Yield { room, .. } => given_up.extend(self.rooms.give_way(&room)),
                Output::Follow { .. } => {}
            }
        }
        given_up
    }

    /// When the next step is due, if nothing happens before.
    pub(super) fn due(&self) -> Option<Instant> {
        let missed = self.missed.values().map(|since| *since + SURE);
        missed.chain(self.machine.poll_timeout()).min()
    }

    /// Reports changes of records to the machine. While this server is not connected, it keeps its rooms, whatever the
    /// database says: no other server reaches its clients and participants.
    fn look(&mut self, now: Instant) {
        let homes = self.rooms.homes();
        let there: HashSet<_> = homes.iter().map(|(room, ..)| room.clone()).collect();
        let closed: Vec<_> =
            self.epochs.keys().filter(|room| !there.contains(*room)).cloned().collect();
        for room in closed {
            self.epochs.remove(&room);
            self.machine.handle(now, Input::Closed { room });
        }
        for (room, home, epoch) in homes {
            let is_known = self.epochs.get(&room).is_some_and(|seen| *seen >= epoch);
            if is_known || (!self.is_connected && self.is_here(&room)) {
                continue;
            }
            self.report_own(now, &room, epoch);
            self.epochs.insert(room.clone(), epoch);
            let placement = placement(&home, epoch);
            self.machine.handle(now, Input::Seen { room, placement, revision: epoch });
        }
    }

    /// Reports the epoch of a room that was here before its record was first read, if the record has a later epoch:
    /// then another server has taken the room over. The machine has to know both epochs, so that this server gives
    /// way.
    fn report_own(&mut self, now: Instant, room: &RoomId, latest: u64) {
        let here = self.rooms.get(room.as_str()).map(|it| it.epoch());
        let Some(number) = here.filter(|own| *own < latest && !self.epochs.contains_key(room))
        else {
            return;
        };
        let (home, name) = self.own.clone();
        let placement = Placement { epoch: Epoch { number, home }, name };
        let room = room.clone();
        self.machine.handle(now, Input::Seen { room, placement, revision: number });
    }

    fn is_here(&self, room: &RoomId) -> bool {
        self.rooms.get(room.as_str()).is_some()
    }

    fn claim(&mut self, now: Instant, wall: u64, room: RoomId, epoch: Epoch, expected: u64) {
        match self.rooms.adopt(&room, expected, wall) {
            Ok(true) => {
                self.epochs.insert(room.clone(), epoch.number);
                let revision = epoch.number;
                self.machine.handle(now, Input::Claimed { room, epoch, revision });
            }
            Ok(false) => self.lost(now, room),
            Err(error) => {
                tracing::warn!(%room, %error, "a room cannot be taken over, and is tried again");
            }
        }
    }

    /// Reports that a claim has failed: another server was first, or the room was closed.
    fn lost(&mut self, now: Instant, room: RoomId) {
        if let Err(error) = self.rooms.look_for(room.as_str()) {
            tracing::warn!(%room, %error, "who has taken a room over is not known");
            return;
        }
        let found = match self.rooms.place(room.as_str()) {
            Place::There(known) => Some((placement(known.home(), known.epoch()), known.epoch())),
            Place::Here(_) => return,
            Place::Unknown => None,
        };
        match found {
            Some((_, epoch)) => {
                self.epochs.insert(room.clone(), epoch);
                self.machine.handle(now, Input::ClaimLost { room, found });
            }
            None => self.machine.handle(now, Input::Closed { room }),
        }
    }

    /// Reads a room if its record says that it is this server's, but it is not here: after the claim, reading it may
    /// have failed.
    fn settle(&self, wall: u64, room: &RoomId, epoch: Epoch) {
        if self.is_here(room) {
            return;
        }
        if let Err(error) = self.rooms.adopt(room, epoch.number, wall) {
            tracing::warn!(%room, %error, "a room of this server cannot be read");
        }
    }
}

fn placement(home: &RoomHome, number: u64) -> Placement {
    let id = home.start.parse().unwrap_or(ServerId::from_random(NOBODY));
    let name = ServerName::from(home.server.as_str());
    Placement { epoch: Epoch { number, home: id }, name }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fleet::room_homes::{ADOPTION, SETTLING};
    use proptest::prelude::*;
    use rooms::{NewRoom, Settings};
    use store::{Changes, RoomStore, VolatileStore};

    use super::*;

    const WALL: u64 = 1_795_170_970_726;

    struct Server {
        name: &'static str,
        id: ServerId,
        rooms: Rooms,
        keeper: Keeper,
    }

    /// Servers that share a store, at one moment.
    struct House {
        store: Arc<VolatileStore>,
        now: Instant,
    }

    impl House {
        fn new() -> Self {
            Self { store: Arc::default(), now: Instant::now() }
        }

        fn server(&self, name: &'static str, id: u128) -> Server {
            let id = ServerId::from_random(id);
            let own = RoomHome { server: name.to_owned(), start: id.to_string() };
            let settings = Settings { idle: Duration::from_secs(3600) };
            let store = Arc::<VolatileStore>::clone(&self.store);
            let rooms = Rooms::open_in_fleet(store, settings, WALL);
            rooms.set_own(own);
            let keeper = Keeper::new(rooms.clone(), id, name.into());
            Server { name, id, rooms, keeper }
        }

        /// Every server hears of the rooms, and of those servers that are there.
        fn meet(&mut self, servers: &mut [&mut Server], connected: bool) -> usize {
            let all: HashMap<_, _> =
                servers.iter().map(|server| (server.id, server.name.into())).collect();
            let mut given_up = 0;
            for server in servers {
                let mut fellows = all.clone();
                fellows.remove(&server.id);
                let fellows = if connected { fellows } else { HashMap::new() };
                server.hear(&self.store);
                server.keeper.members(&fellows, connected, self.now);
                given_up += server.keeper.step(self.now, WALL).len();
            }
            given_up
        }

        /// They wait until they are sure who is gone.
        fn wait(&mut self, servers: &mut [&mut Server]) {
            for time in [SURE, ADOPTION] {
                self.pass(time);
                self.meet(servers, true);
            }
        }

        fn pass(&mut self, time: Duration) {
            self.now += time;
        }
    }

    impl Server {
        fn hear(&self, store: &VolatileStore) {
            let records = store.load_rooms().unwrap();
            let _closed = self.rooms.take_over(Changes { whole: true, records }, WALL);
        }

        fn make(&self) -> RoomId {
            let new = NewRoom { name: "room".to_owned(), ..NewRoom::default() };
            self.rooms.create(new, WALL).unwrap().room.id().clone()
        }

        fn has(&self, room: &RoomId) -> bool {
            self.rooms.get(room.as_str()).is_some()
        }
    }

    #[test]
    fn of_those_left_the_lowest_takes_over_once_it_is_sure_and_the_first_home_does_not_take_it_back()
     {
        let mut house = House::new();
        let (mut one, mut two, mut three) =
            (house.server("one", 9), house.server("two", 5), house.server("three", 7));
        let room = one.make();
        house.meet(&mut [&mut one, &mut two, &mut three], true);
        house.pass(SETTLING);
        house.meet(&mut [&mut one, &mut two, &mut three], true);
        assert!(one.has(&room) && !two.has(&room) && !three.has(&room));
        house.meet(&mut [&mut three, &mut two], true);
        assert!(!two.has(&room) && two.keeper.due() == Some(house.now + SURE));
        house.wait(&mut [&mut three, &mut two]);
        assert!(two.has(&room) && !three.has(&room), "the lowest id, whoever hears first");
        let mut restarted = house.server("one", 1);
        house.meet(&mut [&mut restarted, &mut two, &mut three], true);
        house.pass(SETTLING);
        house.meet(&mut [&mut restarted, &mut two, &mut three], true);
        assert!(two.has(&room) && !restarted.has(&room));
        assert_eq!(house.store.load_rooms().unwrap()[0].epoch, 2);
    }

    #[test]
    fn a_server_that_has_just_come_takes_nobody_for_gone() {
        let mut house = House::new();
        let (mut one, mut two) = (house.server("one", 9), house.server("two", 5));
        let room = one.make();
        house.meet(&mut [&mut two], true);
        assert!(!two.has(&room), "its home may be there in a moment");
        house.meet(&mut [&mut one, &mut two], true);
        house.pass(SETTLING);
        house.meet(&mut [&mut one, &mut two], true);
        assert!(one.has(&room) && !two.has(&room));
        assert!(two.keeper.due().is_none(), "nothing is left to do");
    }

    #[test]
    fn who_is_alone_keeps_its_rooms_takes_none_and_gives_way_when_it_meets_the_others() {
        let mut house = House::new();
        let (mut one, mut two) = (house.server("one", 9), house.server("two", 5));
        let room = one.make();
        house.meet(&mut [&mut one, &mut two], true);
        house.pass(SETTLING);
        house.meet(&mut [&mut one, &mut two], true);
        house.meet(&mut [&mut one], false);
        house.meet(&mut [&mut two], false);
        house.pass(2 * SETTLING);
        house.meet(&mut [&mut two], false);
        assert!(!two.has(&room), "it is alone, too");
        house.meet(&mut [&mut two], true);
        house.pass(SETTLING);
        house.meet(&mut [&mut two], true);
        assert_eq!(house.meet(&mut [&mut one], false), 0);
        assert!(two.has(&room) && one.has(&room), "both sides go on");
        assert_eq!(house.meet(&mut [&mut one, &mut two], true), 1);
        assert!(two.has(&room) && !one.has(&room), "the higher epoch wins");
    }

    #[test]
    fn a_home_that_hung_before_it_had_looked_at_its_new_room_gives_way() {
        let mut house = House::new();
        let (mut one, mut two) = (house.server("one", 9), house.server("two", 5));
        house.meet(&mut [&mut one, &mut two], true);
        house.pass(SETTLING);
        house.meet(&mut [&mut one, &mut two], true);
        let room = one.make();
        house.meet(&mut [&mut two], true);
        house.wait(&mut [&mut two]);
        assert!(two.has(&room) && one.has(&room));
        assert_eq!(house.meet(&mut [&mut one, &mut two], true), 1);
        assert!(two.has(&room) && !one.has(&room));
    }

    #[test]
    fn when_nats_hangs_everybody_falls_silent_and_nobody_takes_over_rooms() {
        let mut house = House::new();
        let (mut one, mut two) = (house.server("one", 9), house.server("two", 5));
        let rooms = [one.make(), two.make()];
        house.meet(&mut [&mut one, &mut two], true);
        house.pass(SETTLING);
        house.meet(&mut [&mut one, &mut two], true);
        for _ in 0..2 {
            house.meet(&mut [&mut one], true);
            house.meet(&mut [&mut two], true);
            house.pass(SURE);
        }
        house.meet(&mut [&mut one], false);
        house.meet(&mut [&mut two], false);
        house.pass(SURE + ADOPTION);
        house.meet(&mut [&mut one, &mut two], false);
        house.meet(&mut [&mut one, &mut two], true);
        house.pass(SETTLING);
        house.meet(&mut [&mut one, &mut two], true);
        assert!(one.has(&rooms[0]) && two.has(&rooms[1]));
        assert!(house.store.load_rooms().unwrap().iter().all(|room| room.epoch == 1));
    }

    #[test]
    fn a_room_that_is_closed_is_nobodys() {
        let mut house = House::new();
        let (mut one, mut two) = (house.server("one", 9), house.server("two", 5));
        let room = one.make();
        house.meet(&mut [&mut one, &mut two], true);
        house.pass(SETTLING);
        house.store.forget_room(&room).unwrap();
        house.meet(&mut [&mut two], true);
        assert!(!two.has(&room) && two.keeper.epochs.is_empty());
        two.keeper.lost(house.now, room.clone());
        house.meet(&mut [&mut one, &mut two], true);
        assert!(!one.has(&room) && house.store.load_rooms().unwrap().is_empty());
    }

    #[test]
    fn a_store_that_fails_costs_time_and_no_room() {
        let mut house = House::new();
        let (mut one, mut two) = (house.server("one", 9), house.server("two", 5));
        let room = one.make();
        house.meet(&mut [&mut one, &mut two], true);
        house.pass(SETTLING);
        house.meet(&mut [&mut one, &mut two], true);
        house.store.fail_writes(true);
        house.meet(&mut [&mut two], true);
        house.wait(&mut [&mut two]);
        assert!(!two.has(&room) && two.keeper.due().is_some());
        house.store.fail_writes(false);
        house.pass(Duration::from_secs(1));
        house.meet(&mut [&mut two], true);
        assert!(two.has(&room));
    }

    /// The next observation or step of one server.
    fn see(house: &mut House, servers: &mut [Server; 2], which: usize, what: u8) {
        let other = &servers[1 - which];
        let fellows = HashMap::from([(other.id, other.name.into())]);
        let (now, server) = (house.now, &mut servers[which]);
        match what {
            0 => server.hear(&house.store),
            1 => server.keeper.members(&fellows, true, now),
            2 => server.keeper.members(&HashMap::new(), true, now),
            3 => server.keeper.members(&HashMap::new(), false, now),
            4 => server.keeper.members(&fellows, false, now),
            5 => drop(server.keeper.step(now, WALL)),
            _ => house.pass(SURE),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn whatever_they_see_and_when_each_room_has_one_home_in_the_end(
            steps in prop::collection::vec((0usize..2, 0u8..10), 0..60),
        ) {
            let mut house = House::new();
            let mut servers = [house.server("one", 9), house.server("two", 5)];
            let mut rooms = vec![servers[0].make()];
            house.meet(&mut servers.each_mut(), true);
            house.pass(SETTLING);
            for (which, what) in steps {
                match what {
                    9 => rooms.push(servers[which].make()),
                    _ => see(&mut house, &mut servers, which, what),
                }
            }
            for _ in 0..5 {
                house.meet(&mut servers.each_mut(), true);
                house.pass(SETTLING);
            }
            for room in rooms {
                prop_assert_eq!(servers.iter().filter(|server| server.has(&room)).count(), 1);
            }
        }
    }
}
