//! The scenarios: each measures one thing.
//!
//! - [`requests`]: plain and streamed, one connection and many, small and large bodies
//! - [`accounting`]: what keys, limits and the ledger cost, of one server and of several
//! - [`affinity`]: how much of their prompts conversations find computed
//! - [`translate`]: what translation costs
//! - [`startup`]: time to ready, idle memory, size of the binary
//! - [`cancel`]: from a client that hangs up to the abort at the backend
//! - [`slow_streams`]: memory of streams that wait
//! - [`engines`]: what a model engine costs
//! - [`rooms`]: what a room costs, and how fast its watchers are told
//! - [`mesh`]: models and answers from peers, and the relay between them
//! - [`fleet`]: several servers that act as one
//! - [`scale`]: many keys, models, workers and waiting jobs
//! - [`workspace`]: terminals and agents

mod accounting;
mod affinity;
mod cancel;
mod engines;
mod fleet;
mod mesh;
mod requests;
mod rooms;
mod scale;
mod slow_streams;
mod startup;
mod translate;
mod workspace;

use anyhow::Result;

use crate::{cli::Options, lab::Lab, report::Report};
use requests::Row;

#[derive(Clone, Debug)]
pub(crate) enum Scenario {
    Startup,
    Requests(Row),
    Accounting,
    SharedAdmission,
    Affinity(affinity::Part),
    Translate,
    Cancel,
    SlowStreams,
    Engines,
    RoomRequests,
    RoomEvents,
    ScaleDispatch,
    ScaleServer,
    Fleet(fleet::Part),
    Mesh(mesh::Part),
    Workspace(workspace::Part),
}

impl Scenario {
    /// All that were asked for, in the order they are measured.
    pub(crate) fn all(options: &Options) -> Vec<Self> {
        let mut all = vec![Self::Startup];
        all.extend(Row::all().map(Self::Requests));
        all.extend([Self::Accounting, Self::SharedAdmission, Self::Translate]);
        all.extend([Self::Cancel, Self::SlowStreams]);
        all.extend([Self::Engines, Self::RoomRequests, Self::RoomEvents]);
        all.extend(affinity::Part::ALL.map(Self::Affinity));
        all.extend([Self::ScaleDispatch, Self::ScaleServer]);
        all.extend(fleet::Part::ALL.map(Self::Fleet));
        all.extend(mesh::Part::ALL.map(Self::Mesh));
        all.extend(workspace::Part::ALL.map(Self::Workspace));
        all.retain(|scenario| options.wants(&scenario.name()));
        all
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Startup => "startup".into(),
            Self::Requests(row) => row.name(),
            Self::Accounting => "accounting".into(),
            Self::SharedAdmission => "shared/admission".into(),
            Self::Affinity(part) => part.name().into(),
            Self::Translate => "translate".into(),
            Self::Cancel => "cancel".into(),
            Self::SlowStreams => "slow-streams".into(),
            Self::Engines => "engines".into(),
            Self::RoomRequests => "rooms/request".into(),
            Self::RoomEvents => "rooms/events".into(),
            Self::ScaleDispatch => "scale/dispatch".into(),
            Self::ScaleServer => "scale/server".into(),
            Self::Fleet(part) => part.name().into(),
            Self::Mesh(part) => part.name().into(),
            Self::Workspace(part) => part.name().into(),
        }
    }

    /// Whether both are measured on the same running targets: only request rows are. The others
    /// start fresh ones, so that earlier scenarios do not show in their memory.
    pub(crate) fn same_targets(&self, next: &Self) -> bool {
        matches!((self, next), (Self::Requests(_), Self::Requests(_)))
    }

    /// Measures a group with the same targets.
    pub(crate) async fn measure(group: &[Self], lab: &Lab, report: &mut Report) -> Result<()> {
        match group.first() {
            None => Ok(()),
            Some(Self::Startup) => startup::measure(lab, report).await,
            Some(Self::Accounting) => accounting::measure(lab, report).await,
            Some(Self::SharedAdmission) => accounting::measure_shared(lab, report).await,
            Some(Self::Affinity(part)) => part.measure(lab, report).await,
            Some(Self::Translate) => translate::measure(lab, report).await,
            Some(Self::Cancel) => cancel::measure(lab, report).await,
            Some(Self::SlowStreams) => slow_streams::measure(lab, report).await,
            Some(Self::Engines) => engines::measure(lab, report).await,
            Some(Self::RoomRequests) => rooms::requests::measure(lab, report).await,
            Some(Self::RoomEvents) => rooms::events::measure(lab, report).await,
            Some(Self::ScaleDispatch) => scale::dispatch::measure(lab, report),
            Some(Self::ScaleServer) => scale::server::measure(lab, report).await,
            Some(Self::Fleet(part)) => part.measure(lab, report).await,
            Some(Self::Mesh(part)) => part.measure(lab, report).await,
            Some(Self::Workspace(part)) => part.measure(lab, report).await,
            Some(Self::Requests(_)) => {
                let rows = group.iter().filter_map(|scenario| match scenario {
                    Self::Requests(row) => Some(*row),
                    _ => None,
                });
                requests::measure(&rows.collect::<Vec<_>>(), lab, report).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn asked(arguments: &[&str]) -> Vec<Scenario> {
        Scenario::all(&Cli::parse_from(["benches"].iter().chain(arguments)).options)
    }

    #[test]
    fn names_are_unique_and_select() {
        let mut names: Vec<String> = asked(&[]).iter().map(Scenario::name).collect();
        assert_eq!(names.len(), 45);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 45);
        assert_eq!(asked(&["--only", "plain/32/1KiB"]).len(), 1);
    }

    #[test]
    fn request_rows_share_their_targets() {
        let all = asked(&[]);
        let groups: Vec<usize> = all.chunk_by(Scenario::same_targets).map(<[_]>::len).collect();
        assert_eq!(groups, [&[1, 12][..], &[1; 32]].concat());
    }
}
