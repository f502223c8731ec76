//! The headings of options in `--help`. Options that most people need have none, and come first.

/// The addresses, names and certificates of the server.
pub const NETWORK: &str = "Network and TLS";
/// Secrets, and exceptions from them.
pub const ACCESS: &str = "Keys and access";
/// Sizes, times, and the choice of a worker.
pub const LIMITS: &str = "Limits and time-outs";
/// Logs, and records of the usage.
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
/// The servers that a worker lends to.
pub const LENDING: &str = "Servers to lend to";
/// The settings of what a worker lends.
pub const MODELS: &str = "Model servers";
