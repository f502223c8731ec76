//! Messages of a server: a task, or a stop. JSON text, one object a frame.

use serde::{Deserialize, Serialize};

use crate::json;

/// One piece of work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Task {
    /// 0: pending. A node that is sent any other state does not process the task.
    pub state: i64,
    /// Its id, not negative, unique among the tasks that the connection has.
    pub id: i32,
    /// The system message; empty: none.
    pub system: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// How many tokens the answer may have.
    pub max_new_tokens: u32,
    /// 0, or from 0.01 to 0.99.
    pub temperature: f64,
    /// When it was made, in seconds since 1970.
    pub created_at: u64,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its role.
    pub role: Role,
    /// Its text.
    pub content: String,
}

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions in the middle of a conversation.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Tells the node to stop a task, which it then no longer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// The task.
    pub id: i32,
}

/// Any message of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerMessage {
    /// A new task.
    Task(Task),
    /// A task is to be stopped.
    Stop(Stop),
}

/// An invalid message of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a bad message of the server: {problem}")]
pub struct BadMessage {
    /// The task that it is about, when it names one.
    pub id: Option<i32>,
    /// Its fault.
    pub problem: String,
}

/// The most bytes of a message that an error repeats.
const MAX_WORDS: usize = 200;

impl Task {
    /// The state of a task that waits to be processed.
    pub const PENDING: i64 = 0;

    /// The task as a text frame.
    pub fn encode(&self) -> String {
        json::write(self)
    }
}

impl Stop {
    /// The message as a text frame.
    pub fn encode(self) -> String {
        format!("{{\"id\":{},\"stop\":true}}", self.id)
    }
}

impl ServerMessage {
    /// Reads a text frame. Messages may be strings, which alternate between user and assistant, or
    /// objects of role and content. A missing `state` is pending, a missing `system` empty; without
    /// `max_new_tokens` and `temperature` the task has the defaults of stock servers, 50 and 0.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub fn decode(text: &str) -> Result<Self, BadMessage> {
        let read: Wire = serde_json::from_str(text).map_err(|error| BadMessage {
            id: serde_json::from_str::<OnlyId>(text).ok().map(|only| only.id),
            problem: json::clip(&error.to_string(), MAX_WORDS).to_owned(),
        })?;
        match read {
            Wire { id, .. } if id < 0 => Err(bad(id, "the id is negative")),
            Wire { id, stop: true, .. } => Ok(Self::Stop(Stop { id })),
            Wire { messages: None, id, .. } => Err(bad(id, "there are no messages")),
            Wire { messages: Some(messages), .. } => Ok(Self::Task(Task {
                state: read.state,
                id: read.id,
                system: read.system.unwrap_or_default(),
                messages: conversation(messages),
                max_new_tokens: whole(read.max_new_tokens, 50),
                temperature: read.temperature.unwrap_or(0.0),
                created_at: read.created_at.map_or(0, |at| at as u64),
            })),
        }
    }
}

fn bad(id: i32, problem: &str) -> BadMessage {
    BadMessage { id: Some(id), problem: problem.to_owned() }
}

/// Plain strings alternate roles with the messages before them.
fn conversation(messages: Vec<WireMessage>) -> Vec<Message> {
    let mut turn = Role::User;
    let spoken = |message| {
        let message = match message {
            WireMessage::Text(content) => Message { role: turn, content },
            WireMessage::Object(message) => message,
        };
        turn = if message.role == Role::User { Role::Assistant } else { Role::User };
        message
    };
    messages.into_iter().map(spoken).collect()
}

/// A JSON number as a count: stock servers pass on any number that they get.
fn whole(number: Option<f64>, default: u32) -> u32 {
    number.map_or(default, |number| number as u32)
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    state: i64,
    id: i32,
    #[serde(default)]
    stop: bool,
    system: Option<String>,
    messages: Option<Vec<WireMessage>>,
    max_new_tokens: Option<f64>,
    temperature: Option<f64>,
    created_at: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "each message must be a string, or a role and a content")]
enum WireMessage {
    Text(String),
    Object(Message),
}

#[derive(Deserialize)]
struct OnlyId {
    id: i32,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn task(text: &str) -> Task {
        match ServerMessage::decode(text) {
            Ok(ServerMessage::Task(task)) => task,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_example_of_the_spec_is_read() {
        let task = task(
            r#"{"state": 0, "id": 123, "system": "system_message", "messages": ["message1", "message2"], "max_new_tokens": 100, "temperature": 0.5, "created_at": 1633028302}"#,
        );
        let said = |role, content: &str| Message { role, content: content.to_owned() };
        let expected = Task {
            state: Task::PENDING,
            id: 123,
            system: "system_message".to_owned(),
            messages: vec![said(Role::User, "message1"), said(Role::Assistant, "message2")],
            max_new_tokens: 100,
            temperature: 0.5,
            created_at: 1_633_028_302,
        };
        assert_eq!(task, expected);
    }

    #[test]
    fn a_task_is_written_with_roles_as_stock_servers_do() {
        let task = task(r#"{"id":7,"messages":["a"]}"#);
        assert_eq!(
            task.encode(),
            r#"{"state":0,"id":7,"system":"","messages":[{"role":"user","content":"a"}],"max_new_tokens":50,"temperature":0.0,"created_at":0}"#
        );
    }

    #[test]
    fn strings_take_turns_with_what_came_before() {
        let text = r#"{"id":0,"messages":["a","b",{"role":"user","content":"c"},"d",
            {"role":"system","content":"e"},"f"]}"#;
        let roles: Vec<Role> = task(text).messages.iter().map(|message| message.role).collect();
        let (user, assistant) = (Role::User, Role::Assistant);
        assert_eq!(roles, [user, assistant, user, assistant, Role::System, user]);
    }

    #[test]
    fn a_stop_is_read_and_written() {
        let stop = Stop { id: 9 };
        assert_eq!(stop.encode(), r#"{"id":9,"stop":true}"#);
        assert_eq!(ServerMessage::decode(&stop.encode()), Ok(ServerMessage::Stop(stop)));
    }

    #[test]
    fn bad_messages_tell_which_task_they_are_about() {
        let id = |text: &str| ServerMessage::decode(text).unwrap_err().id;
        assert_eq!(id("not json"), None);
        assert_eq!(id("{}"), None);
        assert_eq!(id(r#"{"id":4}"#), Some(4));
        assert_eq!(id(r#"{"id":-4,"messages":[]}"#), Some(-4));
        assert_eq!(id(r#"{"id":4,"messages":[5]}"#), Some(4));
        assert_eq!(id(r#"{"id":4,"messages":[{"role":"tool","content":""}]}"#), Some(4));
        assert_eq!(id(r#"{"id":4,"messages":"x"}"#), Some(4));
        assert_eq!(id(r#"{"id":4294967296,"messages":[]}"#), None);
    }

    #[test]
    fn numbers_of_any_kind_are_counts() {
        let text = r#"{"id":1,"messages":[],"max_new_tokens":99.9,"created_at":1.7e9}"#;
        assert_eq!((task(text).max_new_tokens, task(text).created_at), (99, 1_700_000_000));
        let text = r#"{"id":1,"messages":[],"max_new_tokens":-1}"#;
        assert_eq!(task(text).max_new_tokens, 0);
    }

    fn message() -> impl Strategy<Value = Message> {
        let role = prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant)];
        (role, any::<String>()).prop_map(|(role, content)| Message { role, content })
    }

    proptest! {
        #[test]
        fn tasks_are_read_as_written(
            state in 0i64..3, id in 0..=i32::MAX, system: String,
            messages in proptest::collection::vec(message(), 0..5),
            max_new_tokens: u32, hundredths in 0u32..100, created_at in 0u64..1 << 50,
        ) {
            let temperature = f64::from(hundredths) / 100.0;
            let task =
                Task { state, id, system, messages, max_new_tokens, temperature, created_at };
            prop_assert_eq!(ServerMessage::decode(&task.encode()), Ok(ServerMessage::Task(task)));
        }

        #[test]
        fn no_message_is_too_strange(text in "[\\{\\}\\[\\]\":,a-z0-9]{0,60}") {
            let _ = ServerMessage::decode(&text);
        }
    }
}
