//! The role of a service.

use clap::ValueEnum;

/// The command that a service runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Role {
    /// The server
    #[default]
    Serve,
    /// A server, and a worker over the model servers of this machine
    Up,
    /// A worker: lends this machine's model servers
    Worker,
    /// This machine as a part of another Warren, by its code
    Join,
}

impl Role {
    pub(super) const ALL: [Self; 4] = [Self::Serve, Self::Up, Self::Worker, Self::Join];

    /// One role for each unit.
    pub(super) const UNITS: [Self; 3] = [Self::Serve, Self::Worker, Self::Join];

    /// Its command.
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Up => "up",
            Self::Worker => "worker",
            Self::Join => "join",
        }
    }

    /// The name of the unit, without its ending. `serve` and `up` are two forms of one service.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Serve | Self::Up => "warren",
            Self::Worker => "warren-worker",
            Self::Join => "warren-join",
        }
    }

    /// The name of the file with its environment.
    pub(super) fn environment(self) -> &'static str {
        match self {
            Self::Serve | Self::Up => "warren.env",
            Self::Worker => "worker.env",
            Self::Join => "join.env",
        }
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Serve => "Warren server",
            Self::Up => "Warren server with the models of this machine",
            Self::Worker => "Warren worker",
            Self::Join => "Warren of this machine, joined to another",
        }
    }

    /// Whether it is a server, with an address and a data directory.
    pub(super) fn is_server(self) -> bool {
        matches!(self, Self::Serve | Self::Up)
    }
}
