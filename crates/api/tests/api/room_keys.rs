//! Keys bound to a room, on the server's plain paths and on those of rooms.

use axum::body::Body;
use base::Endpoint;
use http::Request;
use serde_json::json;

use crate::{
    kit::{Kit, head, sent},
    room_kit::{JSON, chat, get, path, post, with_bearer},
};

const CHAT: &[Endpoint] = &[Endpoint::ChatCompletions];

fn plain(model: &str) -> Request<Body> {
    post("/v1/chat/completions", format!(r#"{{"model":"{model}","messages":[]}}"#))
}

#[tokio::test(start_paused = true)]
async fn a_rooms_key_reaches_its_participants_on_the_plain_paths_and_nobody_else() {
    let mut kit = Kit::new();
    let room = kit.room(Some("sesame"));
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let key = kit.key(Some(&room), &[]);
    for selector in ["*", "one", "a", "model:a"] {
        let request = with_bearer(plain(selector), key.expose());
        let (_response, assignment) = kit.send_for(request, head(&[JSON])).await;
        assert_eq!(sent(&assignment)["model"], "a");
        assignment.answer.end();
    }
    let (status, error) = kit.answer(with_bearer(plain("m"), key.expose())).await;
    assert_eq!(status, 404, "the server's own model is not the room's");
    assert!(error["error"]["message"].is_string(), "in the API's own form: {error}");
    let (_, list) = kit.answer(with_bearer(get("/v1/models"), key.expose())).await;
    let names: Vec<_> = list["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(names, ["a"]);
    assert_eq!(kit.answer(with_bearer(get("/v1/models/a"), key.expose())).await.0, 200);
    assert_eq!(kit.answer(with_bearer(get("/v1/models/m"), key.expose())).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn without_a_rooms_key_no_participant_is_reached() {
    let kit = Kit::new();
    let room = kit.room(None);
    let lent = kit.lends(&room, "one", &["a"], CHAT);
    let key = kit.key(None, &[]);
    for name in ["a", "one", "room:any", "room:participant/one", "model:a", "*"] {
        assert_eq!(kit.answer(plain(name)).await.0, 404, "{name}");
        assert_eq!(kit.answer(with_bearer(plain(name), key.expose())).await.0, 404, "{name}");
    }
    let mut pinned = plain("m");
    let provider = lent.provider.to_string().parse().unwrap();
    pinned.headers_mut().insert("x-warren-provider", provider);
    assert_eq!(kit.answer(pinned).await.0, 404, "not by its id either");
    let (_, list) = kit.answer(get("/v1/models")).await;
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list}");
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_rooms_key_is_as_good_as_the_password_in_its_room_alone() {
    let mut kit = Kit::new();
    let (room, other) = (kit.room(Some("sesame")), kit.room(Some("sesame")));
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let _other = kit.lends(&other, "two", &["a"], CHAT);
    let key = kit.key(Some(&room), &[]);
    let request = with_bearer(chat(&room, "*"), key.expose());
    let (_response, assignment) = kit.send_for(request, head(&[JSON])).await;
    assignment.answer.end();
    let list = with_bearer(get(&path(&room, "/v1/models")), key.expose());
    assert_eq!(kit.answer(list).await.0, 200);
    let elsewhere = with_bearer(chat(&other, "*"), key.expose());
    assert_eq!(kit.answer(elsewhere).await.0, 401);
    let (id, now) = (kit.keys.list()[0].id.clone(), access::Moment::now());
    kit.keys.revoke(&id, now).unwrap();
    assert_eq!(kit.answer(with_bearer(chat(&room, "*"), key.expose())).await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn a_rooms_key_for_some_models_reaches_participants_by_those_alone() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let _one = kit.lends(&room, "one", &["a"], CHAT);
    // Named as a model that the key is for.
    let _two = kit.lends(&room, "aa", &["b"], CHAT);
    let key = kit.key(Some(&room), &["a*"]);
    for selector in ["a", "model:a", "one"] {
        let request = with_bearer(plain(selector), key.expose());
        let (_response, assignment) = kit.send_for(request, head(&[JSON])).await;
        assert_eq!(sent(&assignment)["model"], "a", "{selector}");
        assignment.answer.end();
    }
    for selector in ["b", "aa", "*", "any", "model:b"] {
        let (status, error) = kit.answer(with_bearer(plain(selector), key.expose())).await;
        assert_eq!((status, &error["error"]["code"]), (403, &json!("model_not_allowed")));
    }
}

#[tokio::test(start_paused = true)]
async fn the_key_of_a_closed_room_is_told_so() {
    let kit = Kit::new();
    let room = kit.room(None);
    let key = kit.key(Some(&room), &[]);
    kit.rooms.close(room.id(), "done").unwrap();
    for request in [plain("*"), get("/v1/models")] {
        let (status, error) = kit.answer(with_bearer(request, key.expose())).await;
        assert_eq!((status, &error["error"]["code"]), (403, &json!("room_closed")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_bound_to_a_room_by_either_code_and_shown_with_the_short_one() {
    let kit = Kit::new();
    let room = kit.room(None);
    let make = |code: &str| {
        let body = json!({ "name": "friend", "room": code });
        with_bearer(post("/admin/keys", body.to_string()), "admin")
    };
    for code in [room.short_code(), room.spoken_code()] {
        let (status, made) = kit.answer(make(code)).await;
        assert_eq!((status, made["room"].as_str()), (201, Some(room.short_code())));
    }
    let (status, error) = kit.answer(make("nowhere")).await;
    assert_eq!(status, 400);
    assert!(error["error"]["message"].as_str().unwrap().contains("nowhere"), "{error}");
    let list = || with_bearer(get("/admin/keys"), "admin");
    let shown = kit.answer(list()).await.1["keys"][0]["room"].clone();
    assert_eq!(shown, room.short_code());
    kit.rooms.close(room.id(), "done").unwrap();
    let shown = kit.answer(list()).await.1["keys"][0]["room"].clone();
    assert_eq!(shown, room.id().as_str(), "nobody knows its code any more");
}
