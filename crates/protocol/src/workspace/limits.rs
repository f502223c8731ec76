//! Limits for the fields of requests, and time limits. Clients are strangers until they
//! authenticate, and the names that they send are shown on terminals.

use std::time::Duration;

/// The longest message, and the longest frame, in bytes.
pub const MAX_MESSAGE: usize = 48 * 1024 * 1024;
/// The most bytes that a connection may send before it is authenticated.
pub const MAX_BEFORE_AUTH: usize = 64 * 1024;
/// How long a connection may take to authenticate.
pub const AUTH_DEADLINE: Duration = Duration::from_secs(5);
/// The largest file that is read or written as text, in bytes.
pub const TEXT_FILE_MAX: usize = 1024 * 1024;
/// The largest file that is uploaded, in bytes, before base64.
pub const UPLOAD_MAX: usize = 25 * 1024 * 1024;
/// The largest part of an upload in parts, in bytes, before base64.
pub const UPLOAD_PART_MAX: usize = 8 * 1024 * 1024;
/// The largest window of a download, in bytes, before base64.
pub const CHUNK_MAX: usize = 8 * 1024 * 1024;
/// The narrowest terminal that `resize` may ask for.
pub const MIN_COLS: u16 = 20;
/// The lowest terminal that `resize` may ask for.
pub const MIN_ROWS: u16 = 5;
/// The widest terminal.
pub const MAX_COLS: u16 = 1000;
/// The highest terminal.
pub const MAX_ROWS: u16 = 500;
/// How many prompts may wait for an agent's turn to end.
pub const QUEUE_MAX: usize = 32;

/// The longest path, or command, in bytes.
pub const PATH_MAX: usize = 4096;
/// The longest name of a session, project, team, user, model or provider, in bytes.
pub const NAME_MAX: usize = 128;
/// The longest token, in bytes.
pub const TOKEN_MAX: usize = 1024;
/// The longest `request_id` or `input_id`, in bytes.
pub const REQUEST_ID_MAX: usize = 256;
/// The longest prompt, in bytes.
pub const PROMPT_MAX: usize = 1024 * 1024;
/// The longest `data` of a `terminal_input`, in bytes on the wire.
pub const INPUT_MAX: usize = 1024 * 1024;
/// The longest message or result of a team's member, in bytes.
pub const PAYLOAD_MAX: usize = 1024 * 1024;
/// The longest message with a decision about a permission, in bytes.
pub const REASON_MAX: usize = 16 * 1024;
/// The most arguments of a command.
pub const ARGS_MAX: usize = 1024;
/// The most bytes of a command's arguments together.
pub const ARGS_BYTES_MAX: usize = 128 * 1024;
/// The most variables of a project's environment.
pub const ENV_MAX: usize = 256;
/// The most bytes of a project's environment, names and values together.
pub const ENV_BYTES_MAX: usize = 128 * 1024;
/// The most tags of a session. Each is a name.
pub const TAGS_MAX: usize = 32;
/// The most sessions that one `team_wait` may name.
pub const WAITED_MAX: usize = 256;
/// The most peers that one `update_cluster_config` may name.
pub const PEERS_MAX: usize = 256;

/// The longest message between members, a `state_snapshot`, in bytes.
pub const SNAPSHOT_MAX: usize = 32 * 1024 * 1024;
/// The most objects of a `state_snapshot`: sessions, projects, teams and tombstones together.
pub const OBJECTS_MAX: usize = 65_536;
/// The longest session, project or team between members, in bytes of JSON.
pub const OBJECT_MAX: usize = 192 * 1024;
/// How deeply lists and objects may be nested in an object between members. Other readers have
/// limits of their own, and would refuse the message with a deeper object.
pub const OBJECT_DEPTH_MAX: usize = 32;
/// How often a request may be forwarded.
pub const HOPS_MAX: u8 = 4;
/// The most members that a forwarded request may name as visited.
pub const VISITED_MAX: usize = 16;
/// The longest JSON message between two Warrens, in bytes: the longest message of a client, and the
/// fields around it.
pub const LONG_MESSAGE_MAX: usize = MAX_MESSAGE + 64 * 1024;
/// The longest address of a member, in bytes.
pub const ADDRESS_MAX: usize = 256;
/// The most addresses of a member.
pub const ADDRESSES_MAX: usize = 16;
/// The most members of a cluster that a `welcome` may list.
pub const MEMBERS_MAX: usize = 1024;
/// The most keys of machines that were taken out of a cluster that a `new_token` may list.
pub const BARRED_MAX: usize = 4096;
/// The most reasons against a move of an agent.
pub const REASONS_MAX: usize = 16;
/// The most ids of applied input that go along when an agent moves.
pub const MOVED_MAX: usize = 4096;
/// The most files that go along when an agent moves.
pub const MOVED_FILES_MAX: usize = 1024;
/// The most bytes of all files that go along when an agent moves.
pub const MOVED_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The most of a moved file that goes in one message, in bytes before base64.
pub const MOVED_CHUNK_MAX: usize = 1024 * 1024;
