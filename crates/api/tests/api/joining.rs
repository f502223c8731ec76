//! Machines that join, and servers that prove who they are.

use axum::body::Body;
use http::{Request, Response, StatusCode};
use protocol::invitation::{Invitation, InvitationSecret, Purpose, proof};
use serde_json::{Value, json};

use crate::kit::{Kit, OWN, text};

const NONCE: [u8; proof::NONCE] = [5; proof::NONCE];

async fn post(kit: &Kit, path: &str, body: &Value) -> Response<Body> {
    let request = Request::post(path).header("authorization", "Bearer admin");
    kit.send(request.body(Body::from(body.to_string())).unwrap()).await
}

async fn json_of(response: Response<Body>) -> Value {
    serde_json::from_str(&text(response).await).unwrap()
}

/// The secret of a new invitation.
async fn invited(kit: &Kit) -> InvitationSecret {
    let made = json_of(post(kit, "/admin/invitations", &json!({})).await).await;
    match Invitation::decode(made["code"].as_str().unwrap()).unwrap().purpose {
        Purpose::Worker(secret) => secret,
        Purpose::Room { .. } => panic!("{made}"),
    }
}

fn join(secret: &str) -> Value {
    json!({"secret": secret, "machine": "laptop"})
}

async fn proof_of(kit: &Kit, of: &str, address: &str) -> Response<Body> {
    let request = json!({"of": of, "nonce": hex::encode(NONCE), "address": address});
    post(kit, "/v1/join/proof", &request).await
}

#[tokio::test(start_paused = true)]
async fn a_server_proves_itself_by_the_invitation_first_and_by_the_key_later() {
    let kit = Kit::new();
    let secret = invited(&kit).await;
    let is_proof = |answer: &Value, secret: &str| {
        let proof = hex::decode(answer["proof"].as_str().unwrap()).unwrap();
        proof::is_valid(&secret.into(), &NONCE, OWN, &proof)
    };
    let proven = json_of(proof_of(&kit, &secret.id(), OWN).await).await;
    assert!(is_proof(&proven, secret.text().expose()));
    let joined = json_of(post(&kit, "/v1/join", &join(secret.text().expose())).await).await;
    assert_eq!((&joined["name"], &joined["server_name"]), (&"laptop".into(), &"box".into()));
    let key = joined["key_id"].as_str().unwrap();
    let proven = json_of(proof_of(&kit, key, OWN).await).await;
    assert!(is_proof(&proven, joined["key"].as_str().unwrap()));
    assert!(!is_proof(&proven, secret.text().expose()));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_proven_for_addresses_of_others_nor_to_unknown_machines() {
    let kit = Kit::new();
    let id = invited(&kit).await.id();
    for elsewhere in ["192.0.2.8:9178", "192.0.2.7:9179", "box.example:9178", ""] {
        let refused = proof_of(&kit, &id, elsewhere).await;
        assert_eq!(refused.status(), StatusCode::MISDIRECTED_REQUEST, "{elsewhere}");
    }
    assert_eq!(proof_of(&kit, "k-0000", OWN).await.status(), StatusCode::NOT_FOUND);
    let bad = json!({"of": id, "nonce": "x", "address": OWN});
    assert_eq!(post(&kit, "/v1/join/proof", &bad).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn who_guesses_invitations_is_locked_out_and_used_ones_are_no_guesses() {
    let kit = Kit::new();
    let (used, open) = (invited(&kit).await, invited(&kit).await);
    let try_join = async |secret: &str| post(&kit, "/v1/join", &join(secret)).await;
    assert_eq!(try_join(used.text().expose()).await.status(), StatusCode::OK);
    for _ in 0..6 {
        assert_eq!(try_join(used.text().expose()).await.status(), StatusCode::CONFLICT);
    }
    for _ in 0..5 {
        assert_eq!(try_join("guess").await.status(), StatusCode::UNAUTHORIZED);
    }
    let locked = try_join(open.text().expose()).await;
    assert_eq!(locked.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(locked.headers().contains_key("retry-after"));
    let long = join(&"x".repeat(8_000));
    let other = Kit::new();
    assert_eq!(post(&other, "/v1/join", &long).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let wrong = post(&other, "/v1/join", &json!({"secret": "hidden", "machine": 1})).await;
    assert_eq!(wrong.status(), StatusCode::BAD_REQUEST);
    assert!(!text(wrong).await.contains("hidden"));
}

#[tokio::test(start_paused = true)]
async fn only_urls_of_tls_go_into_a_code() {
    let kit = Kit::new();
    let long = format!("https://{}.example", "x".repeat(99));
    for url in [
        "http://box.example",
        "box.example",
        &long,
        "https://box.example/warren",
        "https://box.example?a=b",
        "https://box.example/?a=b",
        "https://box.example#a",
        "https://me@box.example",
        "https://",
    ] {
        let refused = post(&kit, "/admin/invitations", &json!({"url": url})).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{url}");
    }
    for url in ["https://box.example", "https://box.example:8443", "https://[2001:db8::1]:8443"] {
        let made = post(&kit, "/admin/invitations", &json!({"url": format!("{url}/")})).await;
        let made = json_of(made).await;
        assert_eq!(made["urls"], json!([url, format!("http://{OWN}")]));
    }
}

#[tokio::test(start_paused = true)]
async fn guesses_sent_at_once_are_no_more_than_those_sent_in_turn() {
    let kit = Kit::new();
    let guess = join("guess");
    let tries = (0..30).map(|_| post(&kit, "/v1/join", &guess));
    let answers = futures_util::future::join_all(tries).await;
    let judged = answers.iter().filter(|answer| answer.status() == StatusCode::UNAUTHORIZED);
    assert_eq!(judged.count(), 5);
    let refused = answers.iter().filter(|answer| answer.status() == StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.count(), 25);
}

#[tokio::test(start_paused = true)]
async fn wrong_passwords_of_a_room_to_invite_to_are_bounded_and_the_wait_is_told() {
    let kit = Kit::new();
    let room = kit.room(Some("sesame"));
    let code = room.spoken_code();
    let invite = async |password: &str| {
        let body = json!({"room": code, "password": password});
        post(&kit, "/admin/invitations/room", &body).await
    };
    let mut refused = invite("wrong").await;
    for _ in 0..20 {
        if refused.status() != StatusCode::BAD_REQUEST {
            break;
        }
        refused = invite("wrong").await;
    }
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"));
}
