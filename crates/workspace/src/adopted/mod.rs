//! Processes that were not started by the daemon: watched and killed. A process of Claude is also
//! followed by its transcript on the disk, and its conversation can be continued.
//!
//! - [`start`]: adopts a process
//! - `adopted_process`: the engine
//! - `subject`: the owner of the process, and whether it is Claude
//! - `following`: the transcript as the session's output, across restarts of the daemon, too
//! - `transcript`: where a conversation is on the disk, and its new lines
//! - `continuation`: continues the conversation
//!
//! The process has its conversation in memory, and would not notice what others add to it on the
//! disk. So prompts continue a copy: a conversation of the session's own, which is made from the
//! process's conversation at the first prompt, and is kept across restarts of the daemon. The
//! process itself goes on undisturbed.

mod adopted_process;
mod continuation;
mod following;
mod subject;
#[cfg(test)]
mod tests;
mod transcript;

use std::sync::Arc;

use process::Adopted;

use self::{adopted_process::AdoptedProcess, subject::Subject};
use crate::{
    engine::Engine,
    host::EngineHost,
    refusal::{Refusal, blocking},
    sessions::{Facts, Feed},
};

/// Adopts a process. `facts.adopted` has its pid and start time. The start time is checked; if it
/// is 0, it is found out. Returns the engine and the start time.
pub(crate) async fn start(
    host: &Arc<EngineHost>,
    facts: &Facts,
    feed: Feed,
) -> Result<(Box<dyn Engine>, u64), Refusal> {
    let (pid, start_time) =
        facts.adopted.ok_or_else(|| Refusal::invalid("no process was named"))?;
    if [1, std::process::id(), host.supervisor.pid()].contains(&pid) {
        return Err(Refusal::Invalid(format!(
            "process {pid} is the daemon's own, or the system's"
        )));
    }
    let process = match start_time {
        0 => Adopted::open(pid),
        start_time => Adopted::open_again(pid, start_time),
    };
    let process = Arc::new(process.map_err(|error| Refusal::failed(&error))?);
    let (adopted, run_as) = (Arc::clone(&process), host.settings.run_as.clone());
    let subject = blocking(move || Subject::new(&adopted, &run_as)).await?;
    let start_time = process.start_time();
    let engine = AdoptedProcess::new(host, facts, feed, process, subject);
    Ok((Box::new(engine), start_time))
}
