//! The headings of options in `--help`. Options that most people need have none, and come first.

/// The addresses, names and certificates of the server.
pub const NETWORK: &str = "Network and TLS";
/// Secrets, and who needs none.
pub const ACCESS: &str = "Keys and access";
/// How much, how long, and whose turn.
pub const LIMITS: &str = "Limits and time-outs";
/// The settings of what is written down.
pub const LOGGING: &str = "Logging and usage";
/// Rooms.
pub const ROOMS: &str = "Rooms";
/// The mesh.
pub const MESH: &str = "Mesh";
/// The workspace.
pub const WORKSPACE: &str = "Workspace";
/// Several machines as one workspace.
pub const CLUSTER: &str = "Cluster";
/// The server that a command asks.
pub const SERVER: &str = "Server";
/// Where a worker lends to.
pub const LENDING: &str = "Servers to lend to";
/// The settings of what a worker lends.
pub const MODELS: &str = "Model servers";
