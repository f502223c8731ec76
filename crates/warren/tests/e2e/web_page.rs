//! The web page: its files, signing in, and what a session of a browser may do.

use serde_json::{Value, json};
use testkit::{Client, Daemon, Form, Response, Room};

use crate::{
    cli::{make_key, revoke, warren},
    common::{CHAT, ask, join, openai_error, post, serve},
};

const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
const FOREIGN: &str = "https://evil.example";

/// The page's own requests, as a browser sends them in clear text to another machine.
fn page(daemon: &Daemon) -> Client {
    daemon.client().with_header("x-warren-page", "1").with_header("user-agent", "Firefox on box")
}

fn admin_token(daemon: &Daemon) -> String {
    std::fs::read_to_string(daemon.data_dir().join("admin.token")).unwrap().trim().to_owned()
}

/// The cookie that an answer sets, as a browser sends it back, and what is said of it.
fn cookie(answer: &Response) -> (String, String) {
    let set = answer.header("set-cookie").unwrap_or_else(|| panic!("{}", answer.text()));
    let (pair, rest) = set.split_once("; ").unwrap();
    (pair.to_owned(), rest.to_owned())
}

/// A browser that is signed in at the page by this body of a request.
async fn signed_in(daemon: &Daemon, by: Value) -> Client {
    let answer = page(daemon).post_json("/web/session", &by).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    page(daemon).with_header("cookie", &cookie(&answer).0)
}

async fn status(client: &Client, path: &str) -> u16 {
    client.get(path).await.status
}

async fn code(client: &Client) -> String {
    let answer = client.post_json("/web/code", &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn browsers_get_the_page_and_programs_what_they_got() {
    let daemon = serve().start().await;
    daemon.line_with("the web page is at http://127.0.0.1").await;
    assert!(!daemon.log().contains("#login"), "a log has no codes");
    let root = || daemon.client().request("GET", "/").header("accept", HTML);
    let index = root().send().await;
    assert_eq!(
        (index.status, index.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    assert!(index.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert_eq!(index.header("cache-control"), Some("no-cache"));
    let again = root().header("if-none-match", index.header("etag").unwrap()).send().await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let packed = root().header("accept-encoding", "gzip").send().await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let text = index.text();
    let asset = text.split("\"./").find(|part| part.starts_with("assets/")).unwrap();
    let asset = daemon.client().get(&format!("/{}", asset.split('"').next().unwrap())).await;
    assert_eq!(asset.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(daemon.client().get("/").await.text(), "Ollama is running");
    let head = daemon.client().request("HEAD", "/icon.svg").start().await;
    assert_eq!(head.header("content-type"), Some("image/svg+xml"));
}

#[tokio::test]
async fn a_session_is_a_credential_of_the_page_and_of_no_other() {
    let daemon = serve().flag("--require-key").start().await;
    let token = admin_token(&daemon);
    let answer = page(&daemon).post_json("/web/session", &json!({"token": token})).await;
    let who = answer.json();
    assert!(who["name"] == "owner" && who["expires"].is_string(), "{who}");
    assert!(who["scopes"].as_array().unwrap().contains(&json!("admin")), "{who}");
    let (pair, rest) = cookie(&answer);
    assert!(pair.starts_with("warren_session_"), "{pair}");
    assert_eq!(rest, "HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000");
    // Through a proxy, so that it is not this machine's own user who asks.
    let kept =
        daemon.client().with_header("cookie", &pair).with_header("x-forwarded-for", "10.0.0.7");
    let marked = kept.clone().with_header("x-warren-page", "1");
    let own = kept.clone().with_header("origin", &daemon.url());
    let fetched = kept.clone().with_header("sec-fetch-site", "same-origin");
    let foreign = marked.clone().with_header("origin", FOREIGN);
    let elsewhere = marked.clone().with_header("sec-fetch-site", "cross-site");
    for path in ["/v1/models", "/admin/workers", "/metrics", "/web/session"] {
        for client in [&marked, &own, &fetched] {
            assert_eq!(status(client, path).await, 200, "{path}");
        }
        for client in [&kept, &foreign, &elsewhere] {
            assert_eq!(status(client, path).await, 401, "{path}");
        }
    }
    let text = pair.split_once('=').unwrap().1.split(':').next().unwrap();
    assert_eq!(status(&daemon.client().with_token(text), "/v1/models").await, 200);
    let handed_on = page(&daemon).post_json("/web/session", &json!({"token": text})).await;
    assert_eq!(handed_on.status, 401, "a session is no token");
    assert!(!daemon.log().contains(text));
}

/// Browsers name the page's origin with every WebSocket, and open those of foreign pages without asking first.
#[tokio::test]
async fn the_cookie_counts_for_the_own_pages_websockets_only() {
    let daemon = serve().start().await;
    let (_, key) = make_key(&daemon, json!({"scopes": ["worker"]})).await;
    let browser = signed_in(&daemon, json!({"token": key})).await;
    for (origin, expected) in [(daemon.url(), 101), (FOREIGN.to_owned(), 401)] {
        let socket = browser.request("GET", "/v1/worker/connect").header("origin", &origin);
        let socket = socket
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(socket.start().await.status, expected, "{origin}");
    }
}

#[tokio::test]
async fn nobody_is_signed_in_from_elsewhere_nor_by_guessing() {
    let daemon = serve().start().await;
    let right = json!({"token": admin_token(&daemon)});
    assert_eq!(daemon.client().post_json("/web/session", &right).await.status, 403);
    let foreign = page(&daemon).with_header("origin", FOREIGN);
    assert_eq!(foreign.post_json("/web/session", &right).await.status, 403);
    for wrong in
        [json!({}), json!({"token": "a", "code": "b"}), json!({"token": "a", "path": "x;y"})]
    {
        assert_eq!(page(&daemon).post_json("/web/session", &wrong).await.status, 400, "{wrong}");
    }
    for number in 0..5 {
        let guess = json!({"token": format!("wk_{number}")});
        assert_eq!(page(&daemon).post_json("/web/session", &guess).await.status, 401);
    }
    let locked = page(&daemon).post_json("/web/session", &right).await;
    assert!(locked.status == 429 && locked.header("retry-after").is_some(), "{}", locked.text());
}

#[tokio::test]
async fn a_login_code_signs_one_browser_in_with_the_rights_of_its_maker() {
    let daemon = serve().flag("--require-key").start().await;
    let (id, key) = make_key(&daemon, json!({"name": "laptop"})).await;
    assert_eq!(page(&daemon).post_json("/web/code", &json!({})).await.status, 401);
    let made = code(&daemon.client().with_token(&key)).await;
    let browser = signed_in(&daemon, json!({"code": made})).await;
    let who = browser.get("/web/session").await.json();
    assert_eq!((&who["name"], &who["scopes"]), (&json!("laptop"), &json!(["inference"])));
    assert_eq!(status(&browser, "/v1/models").await, 200);
    assert_eq!(status(&browser, "/admin/workers").await, 403);
    let again = page(&daemon).post_json("/web/session", &json!({"code": made})).await;
    assert_eq!(again.status, 401, "it is good once");
    let second = code(&browser).await;
    let _other = signed_in(&daemon, json!({"code": second})).await;
    let audit = daemon.admin().get("/admin/audit").await;
    let (audit, log) = (audit.text(), daemon.log());
    for action in ["web.code.create", "web.code.use", &format!("{id} (page session ps-")] {
        assert!(audit.contains(action), "{action}: {audit}");
    }
    for code in [made, second] {
        assert!(!audit.contains(&code) && !log.contains(&code), "{code}");
    }
}

#[tokio::test]
async fn a_session_ends_with_its_key_and_the_browser_forgets_it() {
    // Without a key a local client may do the same, but not by a session that has ended.
    let daemon = serve().start().await;
    let (id, key) = make_key(&daemon, json!({})).await;
    let browser = signed_in(&daemon, json!({"token": key, "path": "/warren/"})).await;
    assert_eq!(status(&browser, "/v1/models").await, 200);
    assert_eq!(revoke(&daemon, &id).await.status, 200);
    assert_eq!(status(&browser, "/v1/models").await, 401);
    let nobody = browser.get("/web/session").await;
    assert_eq!(nobody.status, 401);
    let (pair, rest) = cookie(&nobody);
    assert!(pair.ends_with('=') && rest.contains("Path=/warren/; Max-Age=0"), "{pair} {rest}");
    assert_eq!(status(&page(&daemon), "/v1/models").await, 200);
    assert_eq!(page(&daemon).get("/web/session").await.header("set-cookie"), None);
    let listed = daemon.admin().get("/admin/web/sessions").await.json();
    assert_eq!(listed, json!({"sessions": []}));
}

#[tokio::test]
async fn sessions_outlive_a_restart_and_are_listed_and_revoked() {
    let mut daemon = serve().flag("--require-key").start().await;
    let token = admin_token(&daemon);
    let first = signed_in(&daemon, json!({"token": token})).await;
    let second = signed_in(&daemon, json!({"token": token})).await;
    daemon.stop_and_restart().await;
    assert_eq!(status(&second, "/v1/models").await, 200);
    let listed = first.get("/admin/web/sessions").await.json();
    let [own, other] = &listed["sessions"].as_array().unwrap()[..] else { panic!("{listed}") };
    assert!(own["holder"] == "owner" && own["browser"] == "Firefox on box", "{listed}");
    assert!(own["current"] != other["current"], "{listed}");
    let other = if own["current"] == true { other } else { own };
    let id = other["id"].as_str().unwrap();
    let to = ["--server", &daemon.url(), "--admin-token", &token];
    let shown = warren(&[&["web", "list"][..], &to].concat()).await;
    assert!(shown.code == Some(0) && shown.out.contains(id), "{shown:?}");
    let revoked = warren(&[&["web", "revoke", id, "--json"][..], &to].concat()).await.json();
    assert_eq!(revoked["id"], id);
    assert_eq!(status(&second, "/v1/models").await, 401);
    let ended = first.request("DELETE", "/web/session").send().await;
    assert_eq!((ended.status, cookie(&ended).1.contains("Max-Age=0")), (204, true));
    assert_eq!(status(&first, "/v1/models").await, 401);
    let gone = daemon.admin().request("DELETE", &format!("/admin/web/sessions/{id}")).send().await;
    assert_eq!(gone.status, 404);
}

/// A running request ends with its session; those of its key and of the holder's other browsers do not.
#[tokio::test]
async fn running_requests_end_when_their_session_is_revoked_or_signed_out() {
    let daemon = serve().start().await;
    let (_, key) = make_key(&daemon, json!({})).await;
    let mut worker = join(&daemon, Form::Binary, "w", 3).await;
    for is_revoked in [true, false] {
        let browser = signed_in(&daemon, json!({"token": key})).await;
        let running = post(&browser, CHAT, ask(false));
        let job = worker.expect_job().await;
        let theirs = post(&daemon.client().with_token(&key), CHAT, ask(false));
        let other = worker.expect_job().await;
        let listed = daemon.admin().get("/admin/web/sessions").await.json();
        let id = listed["sessions"][0]["id"].as_str().unwrap();
        let ended = match is_revoked {
            true => daemon.admin().request("DELETE", &format!("/admin/web/sessions/{id}")),
            false => browser.request("DELETE", "/web/session"),
        };
        assert_eq!(ended.send().await.status / 100, 2);
        let error = openai_error(&running.await.unwrap(), 401);
        assert_eq!(error["message"], "the session of this browser has ended");
        assert_eq!(worker.expect_cancel().await.0, job.request_id);
        worker.complete(&other, 200, &json!({"ok": true})).await;
        assert_eq!(theirs.await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_cookie_is_for_tls_and_for_the_pages_path() {
    let daemon = serve().set("--trusted-proxies", "127.0.0.1").start().await;
    let body = json!({"token": admin_token(&daemon), "path": "/warren/"});
    let proxied = page(&daemon).with_header("x-forwarded-for", "10.0.0.7");
    let secure = proxied.clone().with_header("x-forwarded-proto", "https");
    let answer = secure.post_json("/web/session", &body).await;
    let (pair, rest) = cookie(&answer);
    assert!(rest.contains("Path=/warren/") && rest.ends_with("; Secure"), "{rest}");
    assert_eq!(status(&secure.with_header("cookie", &pair), "/v1/models").await, 200);
    let clear =
        proxied.with_header("x-forwarded-proto", "http").post_json("/web/session", &body).await;
    assert!(!cookie(&clear).1.contains("Secure"));
}

/// A browser sends its cookie with everything: it is not taken for the password.
#[tokio::test]
async fn a_session_opens_no_room_and_shuts_none() {
    let daemon = serve().start().await;
    let browser = signed_in(&daemon, json!({"token": admin_token(&daemon)})).await;
    let open = Room::make(&daemon.client(), &json!({"name": "open"})).await;
    let locked = json!({"name": "locked", "password": "secret"});
    let locked = Room::make(&daemon.client(), &locked).await;
    let models = |code: &str| format!("/rooms/{code}/v1/models");
    assert_eq!(status(&browser, &models(&open.code)).await, 200);
    for _ in 0..6 {
        assert_eq!(status(&browser, &models(&locked.code)).await, 401);
    }
    let with_password = format!("{}?password=secret", models(&locked.code));
    assert_eq!(status(&browser, &with_password).await, 200, "nothing was counted as a guess");
}

#[tokio::test]
async fn a_browser_that_follows_an_invitation_to_a_room_gets_to_the_page_for_guests() {
    let daemon = serve().start().await;
    let room = Room::make(&daemon.client(), &json!({"name": "open"})).await;
    let path = format!("/rooms/{}", room.code);
    let led = daemon.client().request("GET", &path).header("accept", HTML).send().await;
    assert_eq!(
        (led.status, led.header("location")),
        (303, Some(&*format!("../#room={}", room.code)))
    );
    assert_ne!(status(&daemon.client(), &path).await, 303, "programs are told as before");
    let odd = daemon.client().request("GET", "/rooms/a%0ab").header("accept", HTML).send().await;
    assert_eq!(odd.header("location"), None);
}

#[tokio::test]
async fn the_command_prints_an_address_that_signs_in() {
    let daemon = serve().start().await;
    let directory = daemon.data_dir().display().to_string();
    let ran = warren(&["web", "--data-dir", &directory]).await;
    let address = format!("{}/#login=", daemon.url());
    let code = ran.out.trim().strip_prefix(&address).unwrap_or_else(|| panic!("{ran:?}"));
    let browser = signed_in(&daemon, json!({"code": code})).await;
    assert_eq!(status(&browser, "/admin/workers").await, 200);
    let drawn = warren(&["web", "--data-dir", &directory, "--qr"]).await;
    assert!(drawn.err.contains("--listen 0.0.0.0:9178"), "no phone reaches it: {drawn:?}");
    let json = warren(&["web", "--data-dir", &directory, "--json"]).await.json();
    assert!(json["phone_url"].is_null() && json["url"].as_str().unwrap().starts_with(&address));
}
