//! How hot a machine is.

use serde::Serialize;

/// How hot a machine is, in the words of stock peers; the later the hotter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Thermal {
    /// As it should be.
    #[default]
    Nominal,
    /// Warm: it nears the point at which it slows itself down.
    Fair,
    /// It slows itself down, or soon will.
    Serious,
    /// It nears the point at which it turns itself off.
    Critical,
}

impl Thermal {
    /// The word for it in heartbeats.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nominal => "nominal",
            Self::Fair => "fair",
            Self::Serious => "serious",
            Self::Critical => "critical",
        }
    }
}
