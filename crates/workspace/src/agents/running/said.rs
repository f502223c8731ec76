//! What an agent does, in the words of the protocol.

use protocol::workspace::{AgentEvent, client::TurnOutcome};
use session::agent::{Event, Outcome, Resolution, Usage};

use crate::sessions::feed::{self, TurnUsage};

/// An event as clients are told of it.
pub(crate) fn event(event: Event) -> AgentEvent {
    match event {
        Event::TurnStarted { turn } => AgentEvent::TurnStarted { turn },
        Event::Text { text, delta } => AgentEvent::Text { text, delta },
        Event::Thinking { text } => AgentEvent::Thinking { text },
        Event::ToolStarted { id, name, input } => AgentEvent::ToolStarted { id, name, input },
        Event::ToolFinished { id, ok, output } => AgentEvent::ToolFinished { id, ok, output },
        Event::Notice { message } => AgentEvent::Notice { message },
        Event::TurnEnded { turn, outcome, error, text } => {
            AgentEvent::TurnEnded { turn, outcome: outcome_of(outcome), error, text }
        }
    }
}

fn outcome_of(outcome: Outcome) -> TurnOutcome {
    match outcome {
        Outcome::Completed => TurnOutcome::Completed,
        Outcome::Interrupted => TurnOutcome::Interrupted,
        Outcome::Failed => TurnOutcome::Failed,
    }
}

/// How a question ended.
pub(super) fn resolution(resolution: Resolution) -> feed::Outcome {
    match resolution {
        Resolution::Allow => feed::Outcome::Allow,
        Resolution::Deny => feed::Outcome::Deny,
        Resolution::Expired => feed::Outcome::Expired,
    }
}

/// What a turn took.
pub(super) fn usage(usage: Usage) -> TurnUsage {
    let Usage { input_tokens, output_tokens, cost_usd } = usage;
    TurnUsage { input_tokens, output_tokens, cost_usd }
}

/// What a conversation has taken.
pub(crate) fn used(used: TurnUsage) -> Usage {
    let TurnUsage { input_tokens, output_tokens, cost_usd } = used;
    Usage { input_tokens, output_tokens, cost_usd }
}

/// How a process ended.
pub(super) fn exit(exit: process::Exit) -> session::agent::Exit {
    match exit {
        process::Exit::Code(code) => session::agent::Exit::Code(code),
        process::Exit::Signal(signal) => session::agent::Exit::Signal(signal),
        process::Exit::Lost => session::agent::Exit::Lost,
    }
}

/// A signal by its other name.
pub(super) fn signal(signal: session::agent::Signal) -> process::Signal {
    match signal {
        session::agent::Signal::Int => process::Signal::Interrupt,
        session::agent::Signal::Term => process::Signal::Terminate,
    }
}
