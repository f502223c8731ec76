//! A connection to a daemon's workspace.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    Daemon, LIMIT,
    frames::{OUTPUT, seq},
    socket::{Message, Socket},
    terminal::{COLUMNS, ROWS},
};

/// Sessions that are ended at once: a daemon limits the requests of a client.
const KILLS: usize = 32;

pub(super) struct Client {
    socket: Socket,
    node: Option<String>,
}

#[derive(Debug)]
pub(super) enum ServerMessage<'a> {
    Output(&'a [u8]),
    Text(Value),
}

impl Client {
    pub(super) fn open(daemon: &Daemon) -> Result<Self> {
        let socket = Socket::open(daemon.addr, None)?;
        let mut client = Self { socket, node: daemon.node.clone() };
        client.say(&json!({"type": "auth", "token": daemon.token}))?;
        let result = client.hear("auth_result")?;
        ensure!(result["success"] == true, "the daemon says {}", result["message"]);
        Ok(client)
    }

    pub(super) fn say(&mut self, message: &Value) -> Result<()> {
        self.socket.send(&Message::Text(message.to_string().as_bytes()))
    }

    pub(super) fn next(&mut self) -> Result<ServerMessage<'_>> {
        match self.socket.next()? {
            Message::Binary(frame) => {
                seq(frame)?;
                Ok(ServerMessage::Output(&frame[OUTPUT..]))
            }
            Message::Text(text) => {
                let told: Value = serde_json::from_slice(text).context("an odd message")?;
                ensure!(told["type"] != "error", "the daemon says {}", told["message"]);
                Ok(ServerMessage::Text(told))
            }
        }
    }

    /// Waits for a message of this kind; others are passed over, and so is output.
    pub(super) fn hear(&mut self, kind: &str) -> Result<Value> {
        let begun = Instant::now();
        loop {
            if let ServerMessage::Text(told) = self.next()?
                && told["type"] == kind
            {
                return Ok(told);
            }
            if begun.elapsed() > LIMIT {
                bail!("no {kind} in time");
            }
        }
    }

    /// Waits for a message of this kind, and tells nothing but how many bytes it had.
    pub(super) fn hear_raw(&mut self, kind: &str) -> Result<usize> {
        let begin = format!("\"type\":\"{kind}\"");
        let begun = Instant::now();
        loop {
            match self.socket.next()? {
                Message::Text(text) if begins(text, &begin) => return Ok(text.len()),
                _ => ensure!(begun.elapsed() < LIMIT, "no {kind} in time"),
            }
        }
    }

    /// Runs a program in a new terminal and returns its session.
    pub(super) fn run(&mut self, program: &str, arguments: &[&str]) -> Result<String> {
        self.say(&json!({
            "type": "open_terminal", "working_dir": "/", "command": program, "args": arguments,
            "name": "bench", "cols": COLUMNS, "rows": ROWS, "node_id": self.node,
        }))?;
        session(&self.hear("terminal_opened")?)
    }

    /// Follows this session only, and returns its screen.
    pub(super) fn attach(&mut self, session: &str) -> Result<String> {
        self.say(&json!({"type": "attach", "session_id": session}))?;
        let history = self.hear("session_history")?;
        Ok(history["snapshot"]["data"].as_str().unwrap_or_default().to_owned())
    }

    pub(super) fn enter(&mut self, session: &str, keys: &[u8]) -> Result<()> {
        let keys = std::str::from_utf8(keys)?;
        self.say(&json!({"type": "terminal_input", "session_id": session, "data": keys}))
    }

    pub(super) fn kill(&mut self, session: &str) -> Result<()> {
        self.say(&json!({"type": "kill_session", "session_id": session}))?;
        self.hear("session_killed").map(drop)
    }

    pub(super) fn kill_all(&mut self, sessions: &[String]) -> Result<()> {
        for some in sessions.chunks(KILLS) {
            for session in some {
                self.say(&json!({"type": "kill_session", "session_id": session}))?;
            }
            some.iter().try_for_each(|_| self.hear("session_killed").map(drop))?;
        }
        Ok(())
    }

    pub(super) fn into_socket(self) -> Socket {
        self.socket
    }
}

pub(super) fn session(told: &Value) -> Result<String> {
    let id = told["session"]["id"].as_str().context("a session without an id")?;
    Ok(id.to_owned())
}

/// Whether a message is of a kind, which stands at its beginning.
fn begins(text: &[u8], kind: &str) -> bool {
    let head = &text[..text.len().min(kind.len() + 2)];
    memchr::memmem::find(head, kind.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_by_its_beginning() {
        assert!(begins(br#"{"type":"attached","session_id":"x"}"#, r#""type":"attached""#));
        assert!(!begins(br#"{"data":"\"type\":\"attached\""}"#, r#""type":"attached""#));
        assert!(!begins(b"{}", r#""type":"attached""#));
    }

    #[test]
    fn a_session_has_an_id() {
        assert_eq!(session(&json!({"session": {"id": "x"}})).unwrap(), "x");
        assert!(session(&json!({"session": {}})).is_err());
    }
}
