//! How far a request may go: what its header, and else the setting, says.

use axum::body::Body;
use base::Endpoint;
use http::{Request, Response, StatusCode};
use scheduler::{Distance, Membership, Route};
use serde_json::Value;

use crate::kit::{Kit, head, text};

const CHAT: &[Endpoint] = &[Endpoint::ChatCompletions];

fn request(model: &str, route: &str) -> Request<Body> {
    let body = format!("{{\"model\":{model:?},\"messages\":[]}}");
    let request = Request::post("/v1/chat/completions").header("x-warren-route", route);
    request.body(body.into()).unwrap()
}

fn far(kit: &Kit, models: &[&str]) -> Membership {
    let membership = kit.join(2, models, CHAT);
    membership.distance(Distance::Far);
    membership
}

/// To whom a request for `m` goes that says this, of one here and a faster one far away.
async fn taker(kit: &mut Kit, request: Request<Body>) -> Distance {
    let (_response, assignment) = kit.send_for(request, head(&[])).await;
    let status = kit.scheduler.status();
    let busy = status.workers.iter().find(|worker| worker.in_flight == 1);
    assignment.answer.end();
    busy.map(|worker| worker.distance).unwrap()
}

async fn refused(response: Response<Body>) -> (StatusCode, String) {
    let status = response.status();
    let error: Value = serde_json::from_str(&text(response).await).unwrap();
    (status, error["error"]["message"].as_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_request_says_how_far_it_may_go() {
    let mut kit = Kit::new();
    let far = far(&kit, &["m"]);
    far.condition(Some(1_000), 100);
    kit.membership.as_ref().unwrap().condition(Some(1), 100);
    for (route, expected) in
        [("local-only", Distance::Here), ("prefer-local", Distance::Here), ("mesh", Distance::Far)]
    {
        assert_eq!(taker(&mut kit, request("m", route)).await, expected, "{route}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_says_nothing_goes_as_far_as_the_setting_lets_it() {
    for (route, expected) in [(Route::PreferLocal, Distance::Here), (Route::Mesh, Distance::Far)] {
        let mut kit = Kit::with(|_, limits| limits.route = route);
        let far = far(&kit, &["m"]);
        far.condition(Some(1_000), 100);
        kit.membership.as_ref().unwrap().condition(Some(1), 100);
        let mut plain = request("m", "");
        plain.headers_mut().clear();
        assert_eq!(taker(&mut kit, plain).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_local_only_request_is_never_served_by_a_peer() {
    let mut kit = Kit::new();
    let _far = far(&kit, &["n"]);
    let (status, message) = refused(kit.send(request("n", "local-only")).await).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(message.contains("no provider"), "{message}");
    assert_eq!(taker(&mut kit, request("n", "prefer-local")).await, Distance::Far);
}

#[tokio::test(start_paused = true)]
async fn a_route_that_is_none_is_refused_with_what_there_is() {
    let kit = Kit::new();
    for route in ["anywhere", "Mesh", "", "mesh, local-only"] {
        let (status, message) = refused(kit.send(request("m", route)).await).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{route}");
        let all = "x-warren-route: it is one of local-only, prefer-local, mesh";
        assert!(all.split(": ").all(|words| message.contains(words)), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clients_route_header_stays_at_the_server() {
    let mut kit = Kit::new();
    let (_, assignment) = kit.send_for(request("m", "mesh"), head(&[])).await;
    let names = assignment.request.headers.keys().map(|name| name.as_str());
    let ours: Vec<_> = names.filter(|name| name.starts_with("x-warren-")).collect();
    assert_eq!(ours, ["x-warren-via"]);
}
