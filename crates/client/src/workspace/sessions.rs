//! Sessions: finding, making, prompting and ending them.

use std::time::Duration;

use protocol::workspace::{
    ClientMessage, ServerMessage, SessionId, SessionInfo,
    client::{
        GetHistory, GetTurns, History, InputAck, ListSessions, MoveSession, NewSession, OfSession,
        OpenTerminal, RenameSession, SendInput, SessionMoved, TurnEvents,
    },
};

use super::{answer::Answer, connection::Workspace, inputs::unique};
use crate::error::ClientError;

/// The deadline of a request that needs little work.
pub(super) const SOON: Duration = Duration::from_secs(30);
/// The deadline of a request that some servers do not know, and may not answer.
const TURNS: Duration = Duration::from_secs(5);
/// The deadline of a request that starts or ends a process.
pub(super) const WORK: Duration = Duration::from_secs(60);

/// The deadline of a move: a turn may take ten minutes to end, and much may go along.
const MOVE: Duration = Duration::from_secs(15 * 60);

impl Workspace {
    /// The sessions; with `include_hidden`, those that are kept out of listings, too.
    ///
    /// # Errors
    /// As [`Workspace::request`]; this holds for all methods below, too.
    pub async fn sessions(
        &mut self,
        include_hidden: bool,
    ) -> Result<Vec<SessionInfo>, ClientError> {
        let request = ClientMessage::ListSessions(ListSessions { include_hidden });
        self.request(&request, SOON, |reply| match reply {
            ServerMessage::SessionList(list) => Answer::Is(list.sessions),
            other => other.into(),
        })
        .await
    }

    /// Creates a session: an agent, or an agent in a terminal.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn new_session(&mut self, new: NewSession) -> Result<SessionInfo, ClientError> {
        let request = ClientMessage::NewSession(Box::new(new));
        self.request(&request, WORK, |reply| match reply {
            ServerMessage::SessionCreated(made) => Answer::Is(*made.session),
            other => other.into(),
        })
        .await
    }

    /// Runs a command in a new terminal.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn open_terminal(&mut self, open: OpenTerminal) -> Result<SessionInfo, ClientError> {
        let request = ClientMessage::OpenTerminal(Box::new(open));
        self.request(&request, WORK, |reply| match reply {
            ServerMessage::TerminalOpened(opened) => Answer::Is(*opened.session),
            other => other.into(),
        })
        .await
    }

    /// Ends a session.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such session.
    pub async fn kill_session(&mut self, session_id: SessionId) -> Result<(), ClientError> {
        let request = ClientMessage::KillSession(OfSession { session_id });
        self.request(&request, WORK, |reply| match reply {
            ServerMessage::SessionKilled(of) if of.session_id == session_id => Answer::Is(()),
            other => other.into(),
        })
        .await
    }

    /// Moves an agent's session to another machine of the cluster, or says what a move would do.
    ///
    /// # Errors
    /// When it cannot move, or something would stay behind that was not accepted.
    pub async fn move_session(
        &mut self,
        request: MoveSession,
    ) -> Result<SessionMoved, ClientError> {
        let session_id = request.session_id;
        self.request(&ClientMessage::MoveSession(request), MOVE, |reply| match reply {
            ServerMessage::SessionMoved(moved) if moved.session_id == session_id => {
                Answer::Is(moved)
            }
            other => other.into(),
        })
        .await
    }

    /// Renames a session.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such session.
    pub async fn rename_session(
        &mut self,
        session_id: SessionId,
        name: String,
    ) -> Result<SessionInfo, ClientError> {
        let request =
            ClientMessage::RenameSession(RenameSession { session_id, name: name.clone() });
        self.request(&request, SOON, |reply| match reply {
            ServerMessage::SessionStatusChanged(of)
                if of.session.id == session_id && of.session.name.as_ref() == Some(&name) =>
            {
                Answer::Is(*of.session)
            }
            other => other.into(),
        })
        .await
    }

    /// Gives a session a whole prompt. Returns the number of the agent's turn, if the server
    /// reports it.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn prompt(
        &mut self,
        session_id: SessionId,
        input: String,
    ) -> Result<Option<u64>, ClientError> {
        let input_id = unique();
        let prompt = SendInput { session_id, input, input_id: Some(input_id.clone()) };
        self.request(&ClientMessage::SendInput(prompt), SOON, |reply| match reply {
            ServerMessage::InputAck(InputAck { input_id: id, turn }) if id == input_id => {
                Answer::Is(turn)
            }
            other => other.into(),
        })
        .await
    }

    /// Earlier output, as it was written.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such session.
    pub async fn history(&mut self, request: GetHistory) -> Result<History, ClientError> {
        let session_id = request.session_id;
        self.request(&ClientMessage::GetHistory(request), SOON, |reply| match reply {
            ServerMessage::History(history) if history.session_id == session_id => {
                Answer::Is(history)
            }
            other => other.into(),
        })
        .await
    }

    /// Events of an agent's turns, as the server has stored them. A server that stores none refuses,
    /// or does not answer.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such session.
    pub async fn turns(&mut self, request: GetTurns) -> Result<TurnEvents, ClientError> {
        let session_id = request.session_id;
        self.request(&ClientMessage::GetTurns(request), TURNS, |reply| match reply {
            ServerMessage::Turns(turns) if turns.session_id == session_id => Answer::Is(turns),
            other => other.into(),
        })
        .await
    }
}
