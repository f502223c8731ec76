//! Continues the conversation of an adopted process.

use std::sync::{Arc, OnceLock, Weak};

use protocol::workspace::AgentEvent;
use tokio::{sync::mpsc, task};
use tracing::Instrument as _;

use super::{following::FollowedConversation, subject::Subject, transcript::Transcript};
use crate::{
    agents::{agent_engine::AgentEngine, plan::Plan},
    engine::Engine as _,
    host::EngineHost,
    refusal::Refusal,
    sessions::{Facts, Feed},
};

/// The most prompts that may wait for the agent.
const WAITING: usize = 32;

/// The interface to the agent that continues the conversation.
pub(super) struct Continuation {
    queue: PromptQueue,
    pub(super) agent: Arc<OnceLock<AgentEngine>>,
}

/// The prompts that wait for the agent.
struct PromptQueue {
    prompts: mpsc::Sender<WaitingPrompt>,
    /// Each prompt that waits has a clone.
    waiting: Arc<()>,
}

/// A prompt that counts as waiting until it is dropped.
struct WaitingPrompt {
    text: String,
    _waiting: Arc<()>,
}

impl PromptQueue {
    fn new() -> (Self, mpsc::Receiver<WaitingPrompt>) {
        let (prompts, prompted) = mpsc::channel(WAITING);
        (Self { prompts, waiting: Arc::default() }, prompted)
    }

    /// Whether no prompt waits, also none that was taken from the queue.
    fn is_empty(&self) -> bool {
        Arc::strong_count(&self.waiting) == 1
    }

    fn add(&self, text: String) -> Result<(), Refusal> {
        let prompt = WaitingPrompt { text, _waiting: Arc::clone(&self.waiting) };
        self.prompts.try_send(prompt).map_err(|_| {
            Refusal::Invalid(format!("{WAITING} prompts wait already; try again in a moment"))
        })
    }
}

/// The task that starts the agent, and gives it the prompts.
struct Listener {
    host: Weak<EngineHost>,
    facts: Facts,
    feed: Feed,
    subject: Subject,
    followed: FollowedConversation,
    agent: Arc<OnceLock<AgentEngine>>,
}

impl Continuation {
    pub(super) fn new(
        host: &Arc<EngineHost>,
        facts: &Facts,
        feed: Feed,
        subject: Subject,
        followed: FollowedConversation,
    ) -> Self {
        let (queue, prompted) = PromptQueue::new();
        let agent = Arc::default();
        let listener = Listener {
            // The task waits for prompts, and must not keep a workspace that has ended.
            host: Arc::downgrade(host),
            facts: facts.clone(),
            feed,
            subject,
            followed,
            agent: Arc::clone(&agent),
        };
        let span = listener.feed.span();
        tokio::spawn(listener.run(prompted).instrument(span));
        Self { queue, agent }
    }

    /// Passes on a prompt. Returns the number of its turn, if the agent already runs and has got all earlier
    /// prompts. The first prompt makes the copy of the conversation and starts the agent.
    pub(super) fn prompt(&self, text: String) -> Result<Option<u64>, Refusal> {
        // A prompt must not overtake those in the queue.
        if let Some(agent) = self.agent.get().filter(|_| self.queue.is_empty()) {
            // Not through the queue: only the agent knows the turn's number, and its refusals reach the caller.
            return agent.prompt(text);
        }
        self.queue.add(text).map(|()| None)
    }
}

impl Listener {
    async fn run(self, mut prompted: mpsc::Receiver<WaitingPrompt>) {
        // Each prompt waits until the agent has got it.
        while let Some(mut prompt) = prompted.recv().await {
            let text = std::mem::take(&mut prompt.text);
            let answer = match self.agent().await {
                Ok(agent) => agent.prompt(text).map(drop),
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = answer {
                // The client has been answered already, so the refusal is reported by an event.
                let message = format!("The prompt was not taken: {refusal}");
                self.feed.event(AgentEvent::Notice { message });
            }
        }
    }

    async fn agent(&self) -> Result<&AgentEngine, Refusal> {
        if let Some(agent) = self.agent.get() {
            return Ok(agent);
        }
        let host = self.host.upgrade();
        let host = host.ok_or_else(|| Refusal::Failed("the workspace has ended".to_owned()))?;
        let conversation = self.conversation().await?;
        let mut plan = Plan::new(&host, &self.facts_with(conversation))?;
        let config = self.subject.claude.as_ref().and_then(|claude| claude.config.clone());
        plan.add_env(config.map(|config| ("CLAUDE_CONFIG_DIR".to_owned(), config)));
        // Only this task makes the agent, so the cell is still empty.
        Ok(self.agent.get_or_init(|| AgentEngine::new(&host, plan, self.feed.clone())))
    }

    /// The copy that an earlier daemon made, if it exists, otherwise a new one. The id of a new
    /// copy is stored before it gets a prompt.
    async fn conversation(&self) -> Result<String, Refusal> {
        let (subject, feed) = (self.subject.clone(), self.feed.clone());
        let (copy, followed) = (self.facts.conversation.clone(), self.followed.get().cloned());
        let found = task::spawn_blocking(move || {
            if let Some(copy) = copy.filter(|copy| is_there(&subject, copy)) {
                return Ok(copy);
            }
            let forked = fork(&subject, followed.as_deref())?;
            feed.conversation(forked.clone());
            Ok(forked)
        });
        found.await.map_err(|error| Refusal::failed(&error))?
    }

    /// The session's facts with the process's own directory and user, because Claude finds the
    /// conversation only with these.
    fn facts_with(&self, conversation: String) -> Facts {
        let claude = self.subject.claude.as_ref();
        let dir = claude.and_then(|claude| claude.working_dir.to_str().map(str::to_owned));
        Facts {
            conversation: Some(conversation),
            working_dir: dir.unwrap_or_else(|| self.facts.working_dir.clone()),
            run_as_user: self.subject.user.as_ref().map(|user| user.name.clone()),
            ..self.facts.clone()
        }
    }
}

fn is_there(subject: &Subject, copy: &str) -> bool {
    let Some(claude) = &subject.claude else { return false };
    subject.as_its_user(|| Transcript::of(claude, copy).is_some()).unwrap_or(false)
}

/// Copies the conversation that is followed, or if none is followed yet, the one that would be found. Returns the
/// copy's id.
fn fork(subject: &Subject, followed: Option<&str>) -> Result<String, Refusal> {
    let none = || Refusal::invalid("no conversation of this process is found on the disk");
    let claude = subject.claude.as_ref().ok_or_else(none)?;
    let found = || match followed {
        Some(id) => Transcript::of(claude, id),
        None => Transcript::find(claude, None),
    };
    let forked = subject.as_its_user(|| found().map(|found| found.fork()))?;
    let forked = forked.ok_or_else(none)?;
    forked.map_err(|error| {
        Refusal::Failed(format!("the conversation cannot be gone on with: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_prompt_waits_until_the_agent_has_got_it() {
        let (queue, mut prompted) = PromptQueue::new();
        assert!(queue.is_empty());
        queue.add("one".to_owned()).unwrap();
        let taken = prompted.recv().await.unwrap();
        assert!(taken.text == "one" && !queue.is_empty(), "the agent does not have it yet");
        drop(taken);
        assert!(queue.is_empty());
    }

    #[test]
    fn no_more_prompts_wait_than_the_bound() {
        let (queue, mut prompted) = PromptQueue::new();
        (0..WAITING).for_each(|_| queue.add(String::new()).unwrap());
        assert!(queue.add(String::new()).unwrap_err().to_string().contains("wait already"));
        while prompted.try_recv().is_ok() {}
        assert!(queue.is_empty(), "a prompt that was refused does not wait");
    }
}
