//! Participants that join, connect and leave.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use protocol::room::{RoomEvent, Status};
use rooms::{Form, JoinRequest, Kind, Next, RoomError, Sight, participant::ConnectionEnd};

use crate::kit::{
    HERE, NOW, THERE, empty, event_names, join, join_request, make, named, provider, room, watch,
};

#[tokio::test(start_paused = true)]
async fn joining_connecting_disconnecting_and_leaving_are_announced() {
    let (_, rooms) = empty();
    let room = room(&rooms);
    let mut watcher = watch(&room);
    let joined = room.join(join_request("p", Kind::Tunnel), HERE, NOW).unwrap();
    assert!(joined.created && joined.session.expose().starts_with("wp_"));
    assert_eq!(joined.participant.status, Status::Offline);
    assert_eq!(joined.participant.max_concurrent, Some(1), "0 counts as 1");
    assert!(!room.join(join_request("p", Kind::Tunnel), HERE, NOW).unwrap().created);
    let connection = room.connect("p", provider(1), NOW).unwrap();
    assert_eq!(room.heartbeat("p", NOW).unwrap(), Status::Online);
    drop(connection);
    assert_eq!(room.heartbeat("p", NOW).unwrap(), Status::Offline);
    room.leave("p", None, HERE).unwrap();
    let all = event_names(&mut watcher).await;
    let (joined, updated) = ("participant.joined", "participant.updated");
    assert_eq!(all, [joined, updated, updated, updated, "participant.left"]);
}

#[tokio::test(start_paused = true)]
async fn a_connections_end_is_waited_for_again_after_an_interruption() {
    let (_, rooms) = empty();
    let room = room(&rooms);
    join(&room, "p", Kind::Tunnel);
    let older = room.connect("p", provider(1), NOW).unwrap();
    let interrupted = tokio::time::timeout(Duration::from_millis(1), older.ended()).await;
    assert!(interrupted.is_err());
    let newer = room.connect("p", provider(2), NOW).unwrap();
    assert_eq!(older.ended().await, ConnectionEnd::Superseded);
    drop(older);
    assert_eq!(room.participant("p").unwrap().status, Status::Online);
    room.leave("p", None, HERE).unwrap();
    assert_eq!(newer.ended().await, ConnectionEnd::Removed);
    assert!(matches!(room.connect("p", provider(3), NOW), Err(RoomError::NoParticipant(_))));
}

#[tokio::test(start_paused = true)]
async fn a_late_connection_of_an_endpoint_does_not_end_the_tunnel_that_took_its_place() {
    let (_, rooms) = empty();
    let room = room(&rooms);
    let address = "127.0.0.1:9".parse().unwrap();
    join(&room, "p", Kind::Endpoint(address));
    join(&room, "p", Kind::Tunnel);
    let tunnel = room.connect("p", provider(1), NOW).unwrap();
    let late = room.connect_endpoint("p", address, provider(2), NOW);
    assert!(matches!(late, Err(RoomError::NoParticipant(_))));
    assert!(tokio::time::timeout(Duration::from_millis(1), tunnel.ended()).await.is_err());
    assert_eq!(room.participant("p").unwrap().status, Status::Online);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_lost_connection_is_shown() {
    let (_, rooms) = empty();
    let room = room(&rooms);
    join(&room, "p", Kind::Tunnel);
    let connection = room.connect("p", provider(1), NOW).unwrap();
    connection.heard(NOW + 500);
    assert_eq!(room.participant("p").unwrap().last_seen, NOW + 500);
    tokio::time::advance(Duration::from_secs(7)).await;
    drop(connection);
    let updated = room.participant("p").unwrap().updated_at;
    assert!((NOW + 7_000..NOW + 7_100).contains(&updated), "{updated}");
}

#[tokio::test(start_paused = true)]
async fn only_itself_and_the_host_take_a_participant_out() {
    let (_, rooms) = empty();
    let made = make(&rooms, named("room"));
    let (room, host) = (made.room, made.host_token.expose().to_owned());
    let not_allowed = |left: Result<(), RoomError>| matches!(left, Err(RoomError::NotAllowed(_)));
    let session = join(&room, "p", Kind::Tunnel);
    assert!(not_allowed(room.leave("p", None, THERE)), "a stranger");
    assert!(not_allowed(room.leave("p", Some("guess"), THERE)));
    room.leave("p", Some(&session), THERE).unwrap();
    join(&room, "p", Kind::Tunnel);
    assert!(not_allowed(room.leave("p", Some(&session), THERE)), "the token of another time");
    room.leave("p", Some(&host), THERE).unwrap();
    join(&room, "p", Kind::Tunnel);
    let mapped: std::net::IpAddr = "::ffff:10.0.0.1".parse().unwrap();
    room.leave("p", None, mapped).unwrap();
    let session = Some(join(&room, "p", Kind::Tunnel));
    let proxied = base::ClientAddress::new(HERE).by_proxy();
    room.join(join_request("q", Kind::Tunnel), HERE, NOW).unwrap();
    assert!(not_allowed(room.leave("q", None, proxied)), "a stranger, by way of a proxy here");
    room.leave("q", None, HERE).unwrap();
    room.join(JoinRequest { session, ..join_request("p", Kind::Tunnel) }, HERE, NOW).unwrap();
    assert!(not_allowed(room.leave("p", None, HERE)), "whoever has shown its token shows it");
    assert!(matches!(room.leave("q", None, HERE), Err(RoomError::NoParticipant(id)) if id == "q"));
    assert!(room.is_host(Some(&host)) && !room.is_host(None) && !room.is_host(Some("")));
}

#[tokio::test(start_paused = true)]
async fn the_caller_of_endpoints_is_woken_by_a_join_and_by_a_loss() {
    let (_, rooms) = empty();
    let room = room(&rooms);
    let address: SocketAddr = (HERE, 11434).into();
    join(&room, "tunnel", Kind::Tunnel);
    let soon = Duration::from_millis(1);
    assert!(tokio::time::timeout(soon, rooms.endpoint_joined()).await.is_err());
    join(&room, "p", Kind::Endpoint(address));
    rooms.endpoint_joined().await;
    let unserved = rooms.unserved_endpoints();
    let ids: Vec<_> = unserved.iter().map(|(room, id)| (room.short_code(), id.as_str())).collect();
    assert_eq!(ids, [(room.short_code(), "p")]);
    assert_eq!(room.served("p").unwrap().kind, Kind::Endpoint(address));
    let connection = room.connect("p", provider(1), NOW).unwrap();
    assert!(rooms.unserved_endpoints().is_empty());
    drop(connection);
    rooms.endpoint_joined().await;
    assert_eq!(rooms.unserved_endpoints().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_participant_generates_as_it_says_itself_or_else_as_its_room() {
    let (_, rooms) = empty();
    let config = |temperature, instructions: Option<&str>| protocol::room::RuntimeConfig {
        generation: protocol::room::GenerationConfig { temperature, ..Default::default() },
        instructions: instructions.map(str::to_owned),
    };
    let defaults = Some(config(Some(0.2), Some("be brief")));
    let room = make(&rooms, rooms::NewRoom { defaults, ..named("room") }).room;
    let own = JoinRequest { config: config(Some(0.9), None), ..join_request("p", Kind::Tunnel) };
    room.join(own, HERE, NOW).unwrap();
    assert_eq!(room.served("p").unwrap().defaults, config(Some(0.9), Some("be brief")));
    let shown = room.summary().room.defaults.unwrap();
    assert!(shown.has_instructions && shown.generation.temperature == Some(0.2));
    assert!(!room.participant("p").unwrap().config.has_instructions);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_of_all_rooms_sees_messages_of_rooms_it_may_see() {
    let (_, rooms) = empty();
    let hidden = make(&rooms, named("hidden")).room;
    let public = rooms::NewRoom { public: true, ..named("public") };
    let public = make(&rooms, public).room;
    let mut all = rooms
        .subscribe(|source| if source.is_public() { Sight::All } else { Sight::Nothing }, None);
    join(&hidden, "h", Kind::Tunnel);
    join(&public, "p", Kind::Tunnel);
    let Next::Frames(frames) = all.next().await else { panic!() };
    let text = String::from_utf8(frames.to_vec()).unwrap();
    assert!(text.contains("room:participant-joined") && text.contains("\"p\""), "{text}");
    assert!(!text.contains("\"h\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn any_event_can_be_announced() {
    let (_, rooms) = empty();
    let room = room(&rooms);
    let mut watcher = room.subscribe(Form::Named, None);
    let reason = "test".to_owned();
    let event = RoomEvent::RoomClosed(protocol::room::event::RoomClosed { reason });
    room.tell(Some(event), None, NOW);
    assert_eq!(event_names(&mut watcher).await, ["room.closed"]);
}

/// Everything at once, from many threads: nothing waits for ever, and all ends in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_joins_and_leaves_at_once_leave_a_room_in_order() {
    let (_, rooms) = empty();
    let room = room(&rooms);
    let life = |number: u64| {
        let (room, id) = (Arc::clone(&room), format!("p{}", number % 8));
        move || {
            for round in 0..50 {
                // Somebody else may have this id just now.
                let _ = room.join(join_request(&id, Kind::Tunnel), HERE, NOW + round);
                let connection = room.connect(&id, provider(number * 100 + round), NOW + round);
                room.find(&protocol::room::Selector::Any, NOW);
                if let Ok(connection) = &connection {
                    connection.models(vec![format!("m{round}")], NOW);
                }
                if round % 5 == 0 {
                    let _ = room.leave(&id, None, HERE);
                }
                drop(connection);
                room.participants();
            }
        }
    };
    let mut lives: Vec<_> =
        (0..16).map(|number| tokio::task::spawn_blocking(life(number))).collect();
    let sweeping = rooms.clone();
    lives.push(tokio::task::spawn_blocking(move || {
        (0..50).for_each(|_| drop(sweeping.sweep(NOW, NOW)));
    }));
    for life in lives {
        life.await.unwrap();
    }
    assert!(room.participants().iter().all(|participant| participant.status == Status::Offline));
    assert_eq!(room.find(&protocol::room::Selector::Any, NOW), rooms::Available::Empty);
}
