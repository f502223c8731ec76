//! The tools, with their descriptions for the model.

use std::{fmt::Display, str::FromStr, time::Duration};

use client::ClientError;
use protocol::workspace::client::TeamWait;
use rmcp::{
    ServerHandler,
    handler::server::wrapper::Parameters,
    model::{CallToolResult, Implementation, ServerCapabilities, ServerConfig},
    tool, tool_handler, tool_router,
};

use crate::{
    answers,
    arguments::{Assign, Handoff, Inbox, Message, Report, Wait},
    member::Member,
};

/// The time-out of a call that names none: agents give up on a tool after a minute.
const USUAL_WAIT: Duration = Duration::from_secs(45);
/// The longest time-out of a call.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);

const INSTRUCTIONS: &str = "\
You are a member of a team of agents: one leader, and workers that it gives work to. These tools reach \
the others. A prompt that begins with [team message N from ...] was sent by another member; answer it \
with the tool send. As a worker, do what your prompt says; your last words are your result, unless you \
give one with the tool report. As the leader, give independent parts of the work to workers with assign \
and collect them with wait, or use handoff when you need one result before you can go on.";

/// The tools of one member.
pub(crate) struct Tools {
    member: Member,
}

impl Tools {
    pub(crate) fn new(member: Member) -> Self {
        Self { member }
    }
}

#[tool_router]
impl Tools {
    /// Gives work to a new worker and waits for it.
    #[tool(
        description = "Give work to a new worker agent and wait for its result. For the leader of \
        the team. Use it when you need the result before you can go on; to run several workers side by \
        side use assign and then wait. If the worker takes longer than timeout_seconds you get a \
        wait_id: call wait with it, and do not hand the same work off again."
    )]
    async fn handoff(&self, Parameters(arguments): Parameters<Handoff>) -> CallToolResult {
        let Handoff { work, timeout_seconds } = arguments;
        let result = self.member.handoff(work, timeout(timeout_seconds)).await;
        say(result, |result| answers::handoff(&result))
    }

    /// Gives work to a new worker.
    #[tool(
        description = "Give work to a new worker agent and go on at once. For the leader of the \
        team. Returns the worker's session id. Collect the result with wait."
    )]
    async fn assign(&self, Parameters(arguments): Parameters<Assign>) -> CallToolResult {
        let assigned = self.member.assign(arguments).await;
        say(assigned, answers::assigned)
    }

    /// Waits for workers.
    #[tool(
        description = "Wait until workers have a result, and get the results. Without arguments it \
        waits for all workers that have work. When the time is over before all have a result you get \
        those that are there, and a wait_id: call wait again with only that wait_id. No result is lost, \
        however often you call."
    )]
    async fn wait(&self, Parameters(arguments): Parameters<Wait>) -> CallToolResult {
        let wait = match self.wait_for(arguments) {
            Ok(wait) => wait,
            Err(words) => return answers::refused(words),
        };
        say(self.member.wait(&wait).await, |waited| answers::waited(&waited))
    }

    /// Sends a message to another member.
    #[tool(
        description = "Send a message to another member of the team: to one by its session id, or \
        without `to` from a worker to the leader and from the leader to all workers. It is that \
        member's next prompt once it is free. The message is kept before this returns."
    )]
    async fn send(&self, Parameters(arguments): Parameters<Message>) -> CallToolResult {
        let to = arguments.to.filter(|to| !to.trim().is_empty()).map(|to| id(&to)).transpose();
        match to {
            Ok(to) => say(self.member.send(to, arguments.message).await, answers::sent),
            Err(words) => answers::refused(words),
        }
    }

    /// Reads the messages that this member was sent.
    #[tool(
        description = "Read the messages that you were sent, also those that you have had as prompts \
            already. Use it to look something up again; new messages come to you by themselves.",
        annotations(read_only_hint = true)
    )]
    async fn inbox(&self, Parameters(arguments): Parameters<Inbox>) -> CallToolResult {
        say(self.member.inbox(arguments.since_seq).await, |inbox| answers::inbox(&inbox))
    }

    /// Reports the result of this worker's work.
    #[tool(
        description = "Report what came of the work that you, a worker, were given. Call it once, \
        when the work is done or cannot be done. Without it your last words of the turn are your \
        result."
    )]
    async fn report(&self, Parameters(arguments): Parameters<Report>) -> CallToolResult {
        let reported = self.member.report(arguments.success, arguments.result).await;
        say(reported, |()| answers::reported())
    }
}

#[tool_handler]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(tools)
            .with_server_info(Implementation::new("warren-team", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }
}

impl Tools {
    fn wait_for(&self, arguments: Wait) -> Result<TeamWait, String> {
        let named = arguments.workers.filter(|workers| !workers.is_empty());
        let named = named.map(|workers| workers.iter().map(|worker| id(worker)).collect());
        let wait_id = arguments.wait_id.filter(|wait| !wait.trim().is_empty());
        Ok(TeamWait {
            team_id: self.member.team,
            for_session_ids: named.transpose()?,
            timeout_ms: Some(base::millis(timeout(arguments.timeout_seconds))),
            wait_id: wait_id.map(|wait| id(&wait)).transpose()?,
        })
    }
}

fn say<T>(
    outcome: Result<T, ClientError>,
    answer: impl FnOnce(T) -> CallToolResult,
) -> CallToolResult {
    outcome.map_or_else(|error| answers::failed(&error), answer)
}

fn timeout(seconds: Option<u64>) -> Duration {
    seconds.map_or(USUAL_WAIT, Duration::from_secs).min(LONGEST_WAIT)
}

/// Reads an id that a model wrote.
fn id<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|error| format!("\"{text}\" is no id: {error}"))
}
