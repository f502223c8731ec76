//! A chat with an agent, in lines.

use std::{
    io::{self, BufRead, IsTerminal, Read, Write, stdin, stdout},
    thread,
};

use anyhow::Context;
use client::{
    Workspace,
    workspace::{Addresses, Ending, Follower, FollowerSettings},
};
use protocol::workspace::{SessionInfo, SessionStatus, limits::PROMPT_MAX};
use tokio::sync::mpsc;

use super::chat::{Chat, LineEffect, TURNS};
use crate::{
    commands::{
        note,
        session::{conversation::Conversation, line_width, on_command_line},
        workspace::{
            short,
            terms::{called, ended, runs, status},
        },
    },
    system::{Notice, Notices},
};

/// The most lines that wait to be sent.
const LINES: usize = 16;
/// The most pages of the conversation so far that are read.
const PAGES: usize = 4;

/// Shows the conversation so far, and talks until the session ends, standard input ends, or this process is
/// told to end.
pub(super) async fn talk(
    mut workspace: Workspace,
    addresses: &Addresses,
    session: &SessionInfo,
) -> anyhow::Result<()> {
    let mut chat = Chat::new(session.id, session.status == SessionStatus::Running, line_width());
    let events_after = show_so_far(&mut workspace, session, &mut chat).await?;
    greet(session);
    let settings = FollowerSettings { is_agent: true, events_after, ..FollowerSettings::default() };
    let mut follower = Follower::begin(workspace, addresses, session.id, settings)?;
    let mut lines = lines().context("standard input cannot be read")?;
    let mut notices = Notices::new()?;
    loop {
        tokio::select! {
            notice = notices.next() => match notice {
                Notice::Resized => {}
                Notice::End => break,
                Notice::Interrupt => match chat.interrupt() {
                    Some(message) => tell(&mut follower, &message),
                    None => break leave_line()?,
                },
            },
            // An acknowledgement makes room and wakes this loop, which then reads on.
            line = lines.recv(), if follower.has_room() => match line {
                None => break,
                Some(line) => match chat.typed(&line?) {
                    LineEffect::Send(message) => tell(&mut follower, &message),
                    LineEffect::Prompt(text) => prompt(&mut follower, text),
                    LineEffect::Say(text) => show(&text)?,
                    LineEffect::Nothing => {}
                },
            },
            seen = follower.next() => match seen? {
                Some(seen) => show(&chat.take(seen))?,
                None => break,
            },
        }
    }
    follower.close().await;
    show(chat.end_line())?;
    farewell(session, chat.ended);
    Ok(())
}

/// Shows the conversation so far. Returns the number of its last event, if the server has it.
async fn show_so_far(
    workspace: &mut Workspace,
    session: &SessionInfo,
    chat: &mut Chat,
) -> anyhow::Result<Option<u64>> {
    let so_far = Conversation::newest(workspace, session.id, TURNS, PAGES).await?;
    let last = so_far.as_ref().map(Conversation::last_number);
    match so_far {
        Some(so_far) => show(&chat.begin(so_far, &on_command_line(session)))?,
        None => note(&format!(
            "[this server tells only of what happens from now on; warren session history {} shows \
             the agent's lines]",
            short(session.id)
        )),
    }
    show(chat.end_line())?;
    Ok(last)
}

/// Leaves the line of a Ctrl-C that ends the chat: the terminal echoes the key, and stays in that line.
fn leave_line() -> anyhow::Result<()> {
    if stdin().is_terminal() {
        show("\n")?;
    }
    Ok(())
}

fn greet(session: &SessionInfo) {
    if stdout().is_terminal() {
        let (name, state) = (called(session), status(session.status));
        note(&format!(
            "[{name}: {}, {state}]\n[a line is a prompt; Ctrl-C ends a turn, Ctrl-D detaches]",
            runs(session)
        ));
    }
}

fn farewell(session: &SessionInfo, ending: Option<Ending>) {
    let name = called(session);
    note(&match ending {
        Some(ending) => format!("[{}]", ended(&name, ending)),
        None => {
            let id = short(session.id);
            format!("[detached from {name}; warren session attach {id} comes back]")
        }
    });
}

/// Sends a message. An answer that cannot be sent now has to be typed again; a prompt is kept.
fn tell(follower: &mut Follower, message: &protocol::workspace::ClientMessage) {
    if let Err(error) = follower.tell(message) {
        note(&format!("  ! not sent: {error}"));
    }
}

fn prompt(follower: &mut Follower, text: String) {
    if !follower.prompt(text) {
        note("  ! not sent: too many prompts wait for the server");
    }
}

fn show(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The lines of standard input. The thread that reads them ends with the process.
fn lines() -> io::Result<mpsc::Receiver<io::Result<String>>> {
    let (sender, receiver) = mpsc::channel(LINES);
    thread::Builder::new().name("lines".to_owned()).spawn(move || {
        let mut input = stdin().lock();
        while let Some(line) = next_line(&mut input).transpose() {
            let is_last = line.is_err();
            if sender.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// One line, at most as long as a prompt may be.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = input.by_ref().take(PROMPT_MAX as u64 + 1).read_line(&mut line)?;
    if read > PROMPT_MAX {
        let words = format!("a line is longer than {} MiB", PROMPT_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
    }
    let length = line.trim_end_matches(['\r', '\n']).len();
    line.truncate(length);
    Ok((read > 0).then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_to_the_bound_and_no_further() {
        let mut input = &b"a\r\n\nlast"[..];
        let mut next = || next_line(&mut input).unwrap();
        assert_eq!(
            [next(), next(), next(), next()],
            [Some("a".to_owned()), Some(String::new()), Some("last".to_owned()), None]
        );
        let longest = "x".repeat(PROMPT_MAX);
        assert_eq!(next_line(&mut longest.as_bytes()).unwrap(), Some(longest.clone()));
        assert!(next_line(&mut format!("{longest}y").as_bytes()).is_err());
    }
}
