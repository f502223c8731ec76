//! Helpers that the tests share.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use base::ProviderId;
use rooms::{
    Form, HostedRoom, JoinRequest, Kind, NewRoom, Next, Room, Rooms, Settings, Subscription,
};
use store::{RoomStore, VolatileStore};

pub(crate) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(crate) const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// Milliseconds of a minute, an hour, a day.
pub(crate) const MINUTE: u64 = 60_000;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

/// When tests begin.
pub(crate) const NOW: u64 = 1_795_170_970_726;

pub(crate) fn open(store: &Arc<impl RoomStore + 'static>, now: u64) -> Rooms {
    let settings = Settings { idle: Duration::from_secs(24 * 3_600) };
    Rooms::open(Arc::<_>::clone(store) as Arc<dyn RoomStore>, settings, now).unwrap()
}

pub(crate) fn empty() -> (Arc<VolatileStore>, Rooms) {
    let store = Arc::<VolatileStore>::default();
    let rooms = open(&store, NOW);
    (store, rooms)
}

pub(crate) fn named(name: &str) -> NewRoom {
    NewRoom { name: name.to_owned(), ..NewRoom::default() }
}

pub(crate) fn locked(password: &str) -> NewRoom {
    NewRoom { password: Some(password.into()), ..named("locked") }
}

pub(crate) fn make(rooms: &Rooms, new: NewRoom) -> HostedRoom {
    rooms.create(new, NOW).unwrap()
}

pub(crate) fn room(rooms: &Rooms) -> Arc<Room> {
    make(rooms, named("room")).room
}

pub(crate) fn join_request(id: &str, kind: Kind) -> JoinRequest {
    JoinRequest {
        id: id.to_owned(),
        nickname: id.to_uppercase(),
        models: vec!["m".to_owned()],
        endpoint: "http://localhost:11434".to_owned(),
        specs: protocol::room::MachineSpecs::default(),
        config: protocol::room::RuntimeConfig::default(),
        capabilities: protocol::room::Capabilities::default(),
        kind,
        max_concurrent: 0,
        session: None,
    }
}

/// Joins, and returns the session's token.
pub(crate) fn join(room: &Room, id: &str, kind: Kind) -> String {
    room.join(join_request(id, kind), HERE, NOW).unwrap().session.expose().to_owned()
}

pub(crate) fn provider(number: u64) -> ProviderId {
    ProviderId::from_random(number)
}

/// The names of the events so far, in the order of their announcement.
pub(crate) async fn event_names(watcher: &mut Subscription) -> Vec<String> {
    let mut names = Vec::new();
    while let Ok(next) = tokio::time::timeout(Duration::from_millis(1), watcher.next()).await {
        match next {
            Next::Frames(frames) => names.extend(names_in(&frames)),
            Next::Lagged(_) => names.push("lagged".to_owned()),
            Next::Closed => {
                names.push("closed".to_owned());
                break;
            }
        }
    }
    names
}

fn names_in(frames: &[u8]) -> Vec<String> {
    let text = String::from_utf8(frames.to_vec()).unwrap();
    let events = text.lines().filter_map(|line| line.strip_prefix("event: "));
    let messages = text.lines().filter_map(|line| {
        let data = line.strip_prefix("data: {\"type\":\"room:")?;
        data.split('"').next().map(|name| format!("room:{name}"))
    });
    events.map(str::to_owned).chain(messages).collect()
}

pub(crate) fn watch(room: &Room) -> Subscription {
    room.subscribe(Form::Named, None)
}
