//! The tools by which agents reach their team, served over MCP.
//!
//! An agent's command line starts `warren team mcp`, and speaks MCP with it on its standard input
//! and output. Each tool is one request to the workspace of the server. It carries the token that
//! the agent's session was started with, which is valid for its own team only.
//!
//! - [`serve`]: serves the tools until the agent closes its end
//! - `tools`: the tools, with their descriptions for the model; `arguments`: their arguments
//! - `answers`: their answers, as text and as structure
//! - `member`: the requests to the server; `messages`: the agent's messages, repaired

mod answers;
mod arguments;
mod member;
mod messages;
mod tools;

use base::{Secret, error::chain};
use client::{ClientError, workspace::Address};
use protocol::workspace::{SessionId, TeamId};
use rmcp::{
    RoleServer, ServiceExt as _,
    transport::{IntoTransport, stdio_pipes},
};

use self::{member::Member, tools::Tools};

/// Why the tools cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The server's URL cannot be used.
    #[error(transparent)]
    Server(#[from] ClientError),
    /// The agent at the other end does not speak MCP.
    #[error("the agent at the other end does not speak MCP: {0}")]
    Agent(String),
    /// Serving broke off.
    #[error("the tools are not served any more: {0}")]
    Broken(String),
}

/// Serves the tools on standard input and output until that is closed. `token` is the one that the
/// member `session` of `team` was started with.
///
/// # Errors
/// [`McpError`]. A server that cannot be reached is no error here: the tools say so, and try again.
pub async fn serve(
    server: &str,
    token: Secret,
    team: TeamId,
    session: SessionId,
) -> Result<(), McpError> {
    let member = Member::new(Address::new(server, Some(&token))?, team, session);
    let (from_agent, to_agent) = stdio_pipes();
    serve_on(member, (messages::readable(from_agent), to_agent)).await
}

async fn serve_on<T, E, A>(member: Member, transport: T) -> Result<(), McpError>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let serving = Tools::new(member).serve(transport).await;
    let serving = serving.map_err(|error| McpError::Agent(chain(&error)))?;
    serving.waiting().await.map_err(|error| McpError::Broken(error.to_string()))?;
    Ok(())
}

#[cfg(test)]
mod tests;
