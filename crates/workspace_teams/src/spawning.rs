//! The sessions that teams create. A team worker gets its leader's settings, except those that the
//! request names.

use protocol::workspace::{
    SessionMode, TeamId,
    client::{Assign, CreateTeam, Handoff, SpawnWorker},
    session::DEFAULT_PROVIDER,
};
use workspace::{Facts, NewEngine, NewSession, Refusal};

/// The team worker that this work is for, and the work.
pub(crate) fn of_assign(assign: Assign) -> (SpawnWorker, String) {
    let Assign { team_id, prompt, worker_name: name, provider, mode, working_dir, node_id } =
        assign;
    let (model, extra_args) = (None, None);
    let worker =
        SpawnWorker { team_id, working_dir, model, extra_args, name, provider, mode, node_id };
    (worker, prompt)
}

/// The team worker that work is handed off to, and the work.
pub(crate) fn of_handoff(handoff: Handoff) -> (SpawnWorker, String) {
    let Handoff { team_id, prompt, worker_name, provider, mode, working_dir, node_id, .. } =
        handoff;
    of_assign(Assign { team_id, prompt, worker_name, provider, mode, working_dir, node_id })
}

pub(crate) fn leader(create: CreateTeam, team: TeamId) -> Result<NewSession, Refusal> {
    let provider = create.provider.unwrap_or_else(|| DEFAULT_PROVIDER.to_owned());
    let extra_args = create.extra_args.unwrap_or_default();
    let engine = engine(create.mode, provider, create.model, extra_args)?;
    Ok(NewSession {
        name: Some(create.name),
        project_id: create.project_id,
        team: Some((team, true)),
        // Empty means the project's directory.
        ..NewSession::new(engine, create.working_dir.unwrap_or_default())
    })
}

/// The session of a team worker. The leader's model and arguments are for its own provider only.
pub(crate) fn worker(new: SpawnWorker, leader: &Facts) -> Result<NewSession, Refusal> {
    let provider = new.provider.unwrap_or_else(|| leader.provider.clone());
    let as_leader = provider == leader.provider;
    let model = new.model.or_else(|| leader.model.clone().filter(|_| as_leader));
    // The arguments of one agent's program mean nothing, or something else, to another's.
    let args = || if as_leader { leader.extra_args.clone() } else { Vec::new() };
    let engine = engine(new.mode, provider, model, new.extra_args.unwrap_or_else(args))?;
    let working_dir = new.working_dir.unwrap_or_else(|| leader.working_dir.clone());
    Ok(NewSession {
        name: new.name,
        project_id: leader.project_id,
        run_as_user: leader.run_as_user.clone(),
        hidden: leader.hidden,
        team: Some((new.team_id, false)),
        ..NewSession::new(engine, working_dir)
    })
}

fn engine(
    mode: Option<SessionMode>,
    provider: String,
    model: Option<String>,
    extra_args: Vec<String>,
) -> Result<NewEngine, Refusal> {
    match mode.unwrap_or_default() {
        SessionMode::Sdk => Ok(NewEngine::Agent { provider, model, extra_args }),
        SessionMode::Pty => Ok(NewEngine::Interactive { provider, model, extra_args }),
        SessionMode::Adopted => Err(Refusal::invalid(
            "a member of a team is an agent of mode sdk or pty, and not an adopted process",
        )),
    }
}
