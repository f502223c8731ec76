//! The distance of a provider, and the reach of a job.

use std::str::FromStr;

/// How far away a provider is. Nearer is less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Distance {
    /// Connected to this server directly: a worker, a node, a participant.
    #[default]
    Here,
    /// Connected to another server of the fleet, one step away.
    Fellow,
    /// Another machine of the mesh, on the same network.
    Near,
    /// Another machine of the mesh, through a mesh relay.
    Far,
    /// A provider of others, which costs money and reads the prompts: the last resort.
    Cloud,
}

impl Distance {
    /// The distance in one word, for lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Fellow => "fellow",
            Self::Near => "near",
            Self::Far => "far",
            Self::Cloud => "cloud",
        }
    }

    /// Whether it is connected to a server of the fleet. To users the fleet is one server.
    pub(crate) fn is_in_house(self) -> bool {
        matches!(self, Self::Here | Self::Fellow)
    }
}

/// How far a job may go, and which providers it prefers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Route {
    /// Only to providers that are [`Distance::Here`] or [`Distance::Fellow`].
    LocalOnly,
    /// To the nearest free provider; a farther one only when no nearer one is free.
    #[default]
    PreferLocal,
    /// To the best of the own providers (all but clouds), wherever it is.
    Mesh,
    /// Only to providers that are [`Distance::Cloud`]. No consumer asks for this. It is the route
    /// of a job for which no own provider is left.
    Cloud,
}

/// The providers that a route leaves out, whatever it prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    Here,
    Own,
    Cloud,
}

impl Bound {
    pub(crate) fn holds(self, distance: Distance) -> bool {
        match self {
            Self::Here => distance.is_in_house(),
            Self::Own => distance != Distance::Cloud,
            Self::Cloud => distance == Distance::Cloud,
        }
    }
}

/// The error for a text that is not the name of a [`Route`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoute;

impl Route {
    /// Every route that a consumer may ask for.
    pub const ALL: [Self; 3] = [Self::LocalOnly, Self::PreferLocal, Self::Mesh];

    /// The route in one word, as in settings and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LocalOnly => "local-only",
            Self::PreferLocal => "prefer-local",
            Self::Mesh => "mesh",
            Self::Cloud => "cloud",
        }
    }

    /// Whether a provider at this distance may get such a job.
    pub fn reaches(self, distance: Distance) -> bool {
        self.bound().holds(distance)
    }

    pub(crate) fn bound(self) -> Bound {
        match self {
            Self::LocalOnly => Bound::Here,
            Self::PreferLocal | Self::Mesh => Bound::Own,
            Self::Cloud => Bound::Cloud,
        }
    }

    /// The rank of a free provider, 0 for the first: by its distance, except on the mesh, then by
    /// whether it serves the job in its own shape.
    pub(crate) fn rank(self, distance: Distance, native: bool) -> u8 {
        let distance = if self == Self::Mesh { Distance::Here } else { distance };
        distance as u8 * 2 + u8::from(!native)
    }
}

impl FromStr for Route {
    type Err = NoRoute;

    fn from_str(text: &str) -> Result<Self, NoRoute> {
        Self::ALL.into_iter().find(|route| route.as_str() == text).ok_or(NoRoute)
    }
}

impl std::fmt::Display for NoRoute {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Route::ALL.map(Route::as_str).join(", ");
        write!(out, "not a route; it is one of {names}")
    }
}

impl std::error::Error for NoRoute {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_read_as_it_is_written_and_nothing_else_is_one() {
        for route in Route::ALL {
            assert_eq!(route.as_str().parse(), Ok(route));
        }
        assert_eq!("Mesh".parse::<Route>(), Err(NoRoute));
        assert_eq!(NoRoute.to_string(), "not a route; it is one of local-only, prefer-local, mesh");
    }

    #[test]
    fn the_nearest_come_first_and_on_the_mesh_those_of_the_shape() {
        use Distance::{Far, Fellow, Here, Near};
        let all = [(Far, true), (Near, false), (Fellow, true), (Here, false)];
        let ranks = |route: Route| all.map(|(distance, native)| route.rank(distance, native));
        assert_eq!(ranks(Route::PreferLocal), [6, 5, 2, 1]);
        assert_eq!(ranks(Route::Mesh), [0, 1, 0, 1]);
    }

    #[test]
    fn local_jobs_stay_here_and_only_the_last_step_leaves_the_house() {
        let reached = |route: Route| {
            let all = [Distance::Here, Distance::Fellow, Distance::Near, Distance::Far];
            all.into_iter().chain([Distance::Cloud]).map(|it| route.reaches(it)).collect::<Vec<_>>()
        };
        assert_eq!(reached(Route::LocalOnly), [true, true, false, false, false]);
        assert_eq!(reached(Route::PreferLocal), [true, true, true, true, false]);
        assert_eq!(reached(Route::Mesh), [true, true, true, true, false]);
        assert_eq!(reached(Route::Cloud), [false, false, false, false, true]);
        assert!(Distance::Here < Distance::Fellow && Distance::Fellow < Distance::Near);
        assert!(Distance::Near < Distance::Far);
    }
}
