//! `warren chat`, in a terminal.

use serde_json::json;

use crate::{
    ask::{User, with_chat},
    common::serve,
};

#[tokio::test]
async fn a_conversation_is_had_and_goes_on_in_another_chat() {
    let daemon = serve().start().await;
    let (backend, _worker) = with_chat(&daemon).await;
    let user = User::of(&daemon);
    let mut chat = user.terminal(&["chat", "--model", "chat", "--system", "be brief"]);
    chat.shows("chat at http://").await;
    chat.press("hello\r").await;
    chat.shows("You said: hello").await;
    backend.request().await;
    chat.press("one\\\rtwo\r").await;
    chat.shows("You said: one").await;
    let asked = backend.request().await.json()["messages"].clone();
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let expected = json!([
        said("system", "be brief"),
        said("user", "hello"),
        said("assistant", "You said: hello"),
        said("user", "one\ntwo"),
    ]);
    assert_eq!(asked, expected);
    chat.press("/help\r").await;
    chat.shows("/retry").await;
    chat.press("\u{4}").await;
    chat.ends(0).await;
    let mut chat = user.terminal(&["chat", "--continue"]);
    chat.shows("The conversation goes on after 2 messages").await;
    chat.shows("You said: one").await;
    chat.press("/retry\r").await;
    assert_eq!(backend.request().await.json()["messages"], expected);
    chat.press("/quit\r").await;
    chat.ends(0).await;
}

#[tokio::test]
async fn ctrl_c_stops_the_answer_and_not_the_chat() {
    let daemon = serve().start().await;
    let (backend, _worker) = with_chat(&daemon).await;
    let user = User::of(&daemon);
    let mut chat = user.terminal(&["chat", "--model", "endless"]);
    chat.shows("Ctrl-D leaves").await;
    chat.press("hello\r").await;
    chat.shows("You said: hello").await;
    chat.press("\u{3}").await;
    chat.shows("stopped").await;
    backend.aborted(1).await;
    chat.press("/model error-500\r").await;
    chat.shows("error-500 answers from now on").await;
    chat.press("again\r").await;
    chat.shows("the backend says 500").await;
    chat.shows("/retry asks again").await;
    chat.press("/model chat\r").await;
    chat.shows("chat answers from now on").await;
    chat.press("/retry\r").await;
    chat.shows("You said: again").await;
    chat.press("\u{4}").await;
    chat.ends(0).await;
}

#[tokio::test]
async fn files_go_with_the_next_message_and_a_conversation_is_saved_once() {
    let daemon = serve().start().await;
    let (_backend, _worker) = with_chat(&daemon).await;
    let user = User::of(&daemon);
    let picture = user.file("a.gif", b"GIF89a...");
    let saved = user.file("x", b"").replace("/x", "/saved.md");
    let mut chat = user.terminal(&["chat", "--model", "chat"]);
    chat.shows("Ctrl-D leaves").await;
    chat.press(&format!("/file {picture}\r")).await;
    chat.shows("it goes with your next message").await;
    chat.press("what?\r").await;
    chat.shows("You said: what? (images: 1)").await;
    chat.press(&format!("/save {saved}\r")).await;
    chat.shows("saved in").await;
    let text = std::fs::read_to_string(&saved).unwrap();
    assert_eq!(text, "## You\n\nwhat?\n\n(a picture)\n\n## chat\n\nYou said: what? (images: 1)\n");
    chat.press(&format!("/save {saved}\r")).await;
    chat.shows("cannot be written").await;
    chat.press("\u{4}").await;
    chat.ends(0).await;
    let mut forgotten = user.terminal(&["chat", "--forget"]);
    forgotten.shows("is forgotten").await;
    forgotten.ends(0).await;
}
