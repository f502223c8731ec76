// Made from the Rust types. To renew it: UPDATE=1 cargo test -p protocol --test typescript

/** `adopt_session`: adopt a process that was started elsewhere. */
export interface AdoptSession {
  /** Its pid. */
  pid: number;
  /** Its name. */
  name?: string | null;
  /** Its working directory; absent: that of the process. */
  working_dir?: string | null;
}

/** An event of an agent's turn. */
export type AgentEvent =
  /** A turn begins. */
  | { kind: "turn_started" } & {
      /** The number of the turn, from 1. */
      turn: number;
      /** The prompt that it answers. Of a long prompt, only the beginning. */
      prompt?: string;
    }
  /** The agent's text. */
  | { kind: "text" } & {
      /** Its text. */
      text: string;
      /** Whether it continues the text before it. */
      delta: boolean;
      /** Whether the agent says it on its own, and not as an answer to a prompt. */
      unasked?: boolean;
    }
  /** The agent thinks. */
  | { kind: "thinking" } & {
      /** Its text. */
      text: string;
    }
  /** The agent begins to use a tool. */
  | { kind: "tool_started" } & {
      /** The id of the use; its end has the same id. */
      id: string;
      /** The tool's name. */
      name: string;
      /** The tool's input. */
      input: unknown;
    }
  /** The agent has used a tool. */
  | { kind: "tool_finished" } & {
      /** The use. */
      id: string;
      /** Whether it went well. */
      ok: boolean;
      /** Its result. */
      output: string;
    }
  /** Something that the user should know and that is not part of the answer. */
  | { kind: "notice" } & {
      /** Its message. */
      message: string;
    }
  /** A turn ends. */
  | { kind: "turn_ended" } & {
      /** Its turn. */
      turn: number;
      /** Its outcome. */
      outcome: TurnOutcome;
      /** Why it failed. */
      error: string | null;
      /** The whole answer, if the agent reports it. */
      text: string | null;
    };

/** `agent_event`: the meaning of an agent's line of output, in any dialect. */
export interface AgentEventMessage {
  /** The agent's session. */
  session_id: string;
  /** The number of the output that it was read from. */
  seq: number;
  /** The event's number in the session, as in `StoredEvent`, if the daemon stores events. */
  number?: number;
  /** The event. */
  event: AgentEvent;
}

/** How an answer went, as stock clients of today read it. */
export interface AnswerMetrics {
  /** Milliseconds until the first byte. */
  ttftMs: number;
  /** Milliseconds in all. */
  durationMs: number;
  /** Tokens read. */
  inputTokens?: number;
  /** Tokens written. */
  outputTokens?: number;
  /** Both together. */
  totalTokens?: number;
  /** Tokens written in each second. */
  tokensPerSecond?: number;
}

/** The forms that a model reads and writes. */
export interface Architecture {
  input_modalities: string[];
  output_modalities: string[];
  /** Both in one text: `text+image->text`. */
  modality: string;
}

/**
 * `assign`: give work to a new team worker, without waiting. Unlike in a `Handoff`, an absent
 * `worker_name` is not written.
 */
export interface Assign {
  /** In which team. */
  team_id: string;
  /** The work. */
  prompt: string;
  /** The name of the team worker. Ours, like the fields below. */
  worker_name?: string | null;
  /** Which agent; absent: as the leader. */
  provider?: string | null;
  /** Its mode; absent: turn by turn. */
  mode?: SessionMode | null;
  /** Where it starts; absent: where the leader did. Ours. */
  working_dir?: string | null;
  /**
   * The machine that runs it: its node id, how that begins, or its name; absent: the one that
   * keeps the team. Ours.
   */
  node_id?: string | null;
}

/** `attach`: follow a session's output, and no other's. */
export interface Attach {
  /** Its session id. */
  session_id: string;
  /** The last output that the client has already. Ours. */
  after_seq?: number | null;
}

/** One administrative action. */
export interface AuditJson {
  /** When it was done. */
  at: string;
  /**
   * The actor: a key's id, `admin-token`, or `command-line` on a stopped server. Of a session of the page its holder,
   * then the session in brackets.
   */
  who: string;
  /** The action, such as `key.create`. */
  action: string;
  /** The object of the action: the id of a key or a worker. */
  target: string;
  /** `done`, or why it was not. */
  outcome: string;
}

/** Answer of `GET /admin/audit`. */
export interface AuditList {
  /** The newest first. */
  entries: AuditJson[];
}

/** `auth`: the first message of every connection. */
export interface Auth {
  /** A key, or a token of the workspace. It stays hidden when the message is logged. */
  token: string;
}

/** `auth_result`. */
export interface AuthResult {
  /** Whether the connection may continue. */
  success: boolean;
  /** Why, for people. */
  message: string;
}

/** Tokens that may be used in each period. */
export interface Budget {
  /** Tokens, read and written together. */
  tokens: number;
  /** In each of these. */
  per: Period;
}

/** The APIs that a participant's backend serves. */
export interface Capabilities {
  /** OpenAI's Responses. */
  openResponses: Capability;
  /** OpenAI's Chat Completions. */
  chatCompletions: Capability;
}

/** Whether a participant's backend serves an API. */
export type Capability =
  /** It does. */
  | "supported"
  /** It does not. */
  | "unsupported"
  /** Not known yet. */
  | "unknown";

/**
 * Body of `PATCH /v1/rooms/{code}`. Ours. Absent fields stay; an empty password removes the
 * password.
 */
export interface ChangeRoom {
  /** Its name. */
  name?: string | null;
  /** Its password. */
  password?: string | null;
  /** The default generation parameters of its participants; replaces all earlier ones. */
  defaults?: RuntimeConfig | null;
}

/** How a file changed: one of git's letters. */
export type ChangeStatus =
  /** Its content changed. */
  | "M"
  /** It is new. */
  | "A"
  /** It was deleted. */
  | "D"
  /** It has another name. */
  | "R"
  /** It is a copy. */
  | "C"
  /** Its type changed: it was a link and is a file, for example. */
  | "T"
  /** It has a conflict that must be merged. */
  | "U";

/** A message from a client to a daemon. */
export type ClientMessage =
  /** Authenticate; the first message of all. */
  | { type: "auth" } & Auth
  /** Ask for a sign of life. */
  | { type: "keepalive" }
  /** Make a session: an agent, or an agent's own terminal. */
  | { type: "new_session" } & NewSession
  /** Follow a session's output. */
  | { type: "attach" } & Attach
  /** Stop following output. */
  | { type: "detach" }
  /** Give a session a whole prompt. */
  | { type: "send_input" } & SendInput
  /** List the sessions. */
  | { type: "list_sessions" } & ListSessions
  /** End a session. */
  | { type: "kill_session" } & OfSession
  /** Adopt a process that was started elsewhere. */
  | { type: "adopt_session" } & AdoptSession
  /** Rename a session. */
  | { type: "rename_session" } & RenameSession
  /** Move an agent's session to another machine. Ours. */
  | { type: "move_session" } & MoveSession
  /** End an agent's turn. Ours. */
  | { type: "interrupt" } & OfSession
  /** Answer an agent's question. Ours. */
  | { type: "permission_response" } & PermissionResponse
  /** Run a command in a new terminal. */
  | { type: "open_terminal" } & OpenTerminal
  /** Type into a terminal. Ours. */
  | { type: "terminal_input" } & TerminalInput
  /** Report the size of the client's terminal. Ours. */
  | { type: "resize" } & Resize
  /** Give the session the size of this client's terminal. Ours. */
  | { type: "take_control" } & OfSession
  /** Ask for earlier output. Ours. */
  | { type: "get_history" } & GetHistory
  /** Ask for the events of an agent's turns, as stored. Ours. */
  | { type: "get_turns" } & GetTurns
  /** List a directory of the host. */
  | { type: "list_directory" } & ListDirectory
  /** Make a project. Ours. */
  | { type: "create_project" } & CreateProject
  /** Change a project. Ours. */
  | { type: "update_project" } & UpdateProject
  /** Forget a project; its files stay. Ours. */
  | { type: "delete_project" } & OfProject
  /** List the projects. Ours. */
  | { type: "list_projects" }
  /** List a directory of a project. */
  | { type: "list_project_files" } & ListProjectFiles
  /** Read a file as text. */
  | { type: "read_project_file" } & ReadProjectFile
  /** Read one window of a file. */
  | { type: "read_project_file_chunk" } & ReadProjectFileChunk
  /** Write a file as text. */
  | { type: "write_project_file" } & WriteProjectFile
  /** Make an empty file. */
  | { type: "create_project_file" } & CreateProjectEntry
  /** Make a directory. */
  | { type: "create_project_directory" } & CreateProjectEntry
  /** Move a file or directory, or rename it. */
  | { type: "move_project_entry" } & TransferProjectEntry
  /** Copy a file or directory. */
  | { type: "copy_project_entry" } & TransferProjectEntry
  /** Delete a file or directory. */
  | { type: "delete_project_entry" } & DeleteProjectEntry
  /** Make a file of any bytes. */
  | { type: "upload_project_file" } & UploadProjectFile
  /** A part of a new file of any size. Ours. */
  | { type: "upload_project_file_part" } & UploadProjectFilePart
  /** Subscribe to changes of files; replaces what was watched before. */
  | { type: "watch_project_files" } & OfProject
  /** Unsubscribe from changes of files. */
  | { type: "unwatch_project_files" } & OfProject
  /** Ask what changed since the last commit. */
  | { type: "git_status" } & OfProject
  /** Ask what changed in one file. */
  | { type: "git_diff" } & GitDiff
  /** Make a team and its leader. */
  | { type: "create_team" } & CreateTeam
  /** Make a team worker without work. */
  | { type: "spawn_worker" } & SpawnWorker
  /** Send a message to a member. */
  | { type: "relay_team_message" } & RelayTeamMessage
  /** List the teams. */
  | { type: "list_teams" }
  /** Show one team. */
  | { type: "get_team" } & OfTeam
  /** Delete a team, and end its sessions. */
  | { type: "delete_team" } & OfTeam
  /** Give work to a new team worker, and wait for it. */
  | { type: "handoff" } & Handoff
  /** Give work to a new team worker. */
  | { type: "assign" } & Assign
  /** Wait for team workers. */
  | { type: "team_wait" } & TeamWait
  /** Read a member's messages. */
  | { type: "get_team_inbox" } & GetTeamInbox
  /** Report the result of a team worker. Ours. */
  | { type: "report_result" } & WorkerResult
  /** Ask for the state of the cluster. */
  | { type: "cluster_status" }
  /** Ask for the settings of the cluster. */
  | { type: "get_cluster_config" }
  /** Change the settings of the cluster. */
  | { type: "update_cluster_config" } & UpdateClusterConfig
  /** Rename a node. */
  | { type: "rename_node" } & RenameNode
  /** Invite one machine into the cluster. */
  | { type: "cluster_invite" }
  /** List the invitations that may still be used. */
  | { type: "cluster_invites" }
  /** Withdraw an invitation. */
  | { type: "cluster_revoke_invite" } & ClusterRevokeInvite
  /** Join a cluster by an invitation. */
  | { type: "cluster_join" } & ClusterJoin
  /** Leave the cluster. */
  | { type: "cluster_leave" }
  /** Remove another machine from the cluster. */
  | { type: "cluster_forget" } & ClusterForget
  /** No longer has an effect. */
  | { type: "force_election" }
  /** No longer has an effect. */
  | { type: "promote_node" } & PromoteNode
  /** No longer has an effect. */
  | { type: "trigger_sync" };

/** `client_notice`: something that the client's user should know, but that is not an error. */
export interface ClientNotice {
  /** Its notice. */
  notice: Notice;
}

/** `cluster_action_ack`: the result of a change of the cluster. */
export interface ClusterActionAck {
  /** The `type` of the request. */
  action: string;
  /** Whether it was done. */
  ok: boolean;
  /** The result, or why it was not done, for people. */
  message: string;
}

/** `cluster_config`. */
export interface ClusterConfig {
  /** The node that is asked. */
  node_id: string;
  /** Where other members reach it. */
  peer_port: number;
  /** The addresses of the other members. */
  peers: string[];
  /** The interval of heartbeats between members, in milliseconds. */
  heartbeat_interval_ms: number;
  /** `crate::workspace::cluster::ELECTION_TIMEOUT_MIN_MS`. */
  election_timeout_min_ms: number;
  /** `crate::workspace::cluster::ELECTION_TIMEOUT_MAX_MS`. */
  election_timeout_max_ms: number;
  /** Always none: no quorum is needed. */
  min_quorum: number | null;
  /** The addresses that it advertises to clients. */
  advertise_addresses: string[];
}

/** `cluster_forget`: removes a machine that is lost or no longer wanted from the cluster. */
export interface ClusterForget {
  /** Its node id or its name. */
  node_id: string;
}

/** `cluster_invitation`: an invitation that was made. It is good for one machine. */
export interface ClusterInvitation {
  /** Its id, which is no secret. */
  invite_id: string;
  /** The code by which a machine joins. */
  code: string;
  /** When it ends. */
  expires_at: string;
  /** The addresses at which the joining machine can reach this one. */
  addresses: string[];
}

/** `cluster_invite_list`: the invitations of this machine that may still be used. */
export interface ClusterInviteList {
  /** By id. */
  invites: OpenInvite[];
}

/** `cluster_join`: makes this machine a member of a cluster, by an invitation. */
export interface ClusterJoin {
  /** The code of an invitation. */
  code: string;
}

/** Another member of the cluster. The specification does not define its fields. */
export interface ClusterMember {
  /** Its id. */
  node_id: string;
  /** Its name, for people. */
  name: string | null;
  /** Where it is reached. */
  address: string | null;
  /** Whether it is connected. */
  connected: boolean;
  /** The name of the member that carries the link to it, unless that is a direct one. Ours. */
  through?: string;
}

/** `cluster_revoke_invite`: withdraws an invitation. */
export interface ClusterRevokeInvite {
  /** Its id. */
  invite_id: string;
}

/** The cluster as the asked daemon sees it (specification, "cluster_status"). */
export interface ClusterStatus {
  /** The node that is asked. */
  node_id: string;
  /** Always `ROLE`: the cluster has no leader. */
  role: string;
  /** Always 0. */
  term: number;
  /** Always the node that is asked. */
  leader_id: string | null;
  /** Where clients reach the node that is asked. */
  leader_address: string | null;
  /** The name of the node that is asked, for people. Ours. */
  name?: string;
  /** The address of its peer port, for other members. Ours. */
  address?: string;
  /** Faults and refusals in the cluster that its operator should know, the oldest first. Ours. */
  notices?: string[];
  /** The other members. */
  peers: ClusterMember[];
}

/** `cluster_status`, the reply. */
export interface ClusterStatusReply {
  /** How the cluster looks from here. */
  cluster: ClusterStatus;
}

/** Answer of `GET /admin/config`. */
export interface ConfigJson {
  /** The configuration file that the server has read; none if it found none. */
  file: string | null;
  /** The settings, in the order of the settings reference. */
  settings: SettingJson[];
}

/** The first event of a stream. */
export interface Connected {
  /** The stream's own id. */
  clientId: string;
}

/** A participant's connection. */
export interface Connection {
  /** Its kind. */
  kind: ConnectionKind;
  /** Whether it stands. */
  connected: boolean;
  /** When something last came over it. */
  lastTunnelSeenAt: number | null;
}

/**
 * The connection of a participant. Stock clients know only `tunnel`, so they see that for every
 * kind.
 */
export type ConnectionKind =
  /** Over a link that it opened itself. */
  | "tunnel";

/**
 * How a model server goes on with the beginning of an answer: what it has to be sent beside that.
 *
 * A server that knows either of these also continues the prompt of a text completion as it is.
 */
export type Continuation =
  /** It goes on with the last message whenever that is the assistant's, as llama.cpp does. */
  | "last_message"
  /** It does so when `continue_final_message` is true and `add_generation_prompt` false, as vLLM does. */
  | "final_message";

/** Body of `POST /admin/keys`. */
export interface CreateKey {
  /** Its name. */
  name?: string;
  /** Its scopes; `None`: inference only. */
  scopes?: KeyScope[] | null;
  /** The models it may be used for; `None` or empty: every one. */
  models?: string[] | null;
  /** How much may be done with it. */
  limits?: KeyLimits | null;
  /** The only room whose participants it reaches: one of its codes; `None`: it is for the server. */
  room?: string | null;
  /** When it stops working. */
  expires_at?: string | null;
}

/** `create_project`. */
export interface CreateProject {
  /** Its name. */
  name: string;
  /** Its directory. */
  working_dir: string;
  /** The user its sessions run as. */
  run_as_user?: string | null;
  /** Variables of its sessions' environment. */
  env?: Record<string, string>;
}

/** `create_project_file` and `create_project_directory`. */
export interface CreateProjectEntry {
  /** The project. */
  project_id: string;
  /** The path, which must not exist yet. */
  path: string;
  /** The id that its answer will have. */
  request_id: string;
}

/** Body of `POST /v1/rooms`. */
export interface CreateRoom {
  /** Its name. */
  name: string;
  /** Its password. */
  password?: string | null;
  /** The default generation parameters of its participants. */
  defaults?: RuntimeConfig | null;
  /** Whether it is listed publicly. Ours. */
  public?: boolean;
  /** After how many seconds without use it ends. Ours. */
  expiresSecs?: number | null;
}

/** `create_team`: a leader session, and a team around it. */
export interface CreateTeam {
  /** Its name. */
  name: string;
  /** Where the leader starts; absent: the project's directory. */
  working_dir?: string | null;
  /** The leader's model. */
  model?: string | null;
  /** More arguments for the leader's command line. */
  extra_args?: string[] | null;
  /** The project it belongs to. */
  project_id?: string | null;
  /** Which agent leads; absent: `claude`. Ours. */
  provider?: string | null;
  /** Its mode; absent: turn by turn. Ours. */
  mode?: SessionMode | null;
}

/** Answer of `POST /v1/rooms`. */
export interface CreatedRoom {
  /** The room. */
  room: RoomSummary;
  /** The id of its maker. Means nothing. */
  hostId: string;
  /** The host's token, which only this answer has. Ours; stock servers have none. */
  hostToken?: string;
}

/** `delete_project_entry`: a file, or a directory with all that is in it. */
export interface DeleteProjectEntry {
  /** The project. */
  project_id: string;
  /** The path. */
  path: string;
  /** The id that its answer will have. */
  request_id: string;
}

/** `directory_listing`. */
export interface DirectoryListing {
  /** Which directory. */
  path: string;
  /** The directory that it is in; none for the root. */
  parent: string | null;
  /** The names in it, or a part of them; those of directories end with `/`. */
  entries: string[];
  /** Where the next part begins; none after the last one. */
  next?: string;
}

/** The encoding of the `data` of input. Ours. */
export type Encoding =
  /** Plain text. */
  | "text"
  /** Base64, for bytes that are not text. */
  | "base64";

/** A good answer: `{"data": …, "meta": {"requestId": …}}`. */
export interface Envelope<T> {
  /** The data. */
  data: T;
  /** About the answer. */
  meta: Meta;
}

/** The kinds of errors. Stock servers declare more than they send. */
export type ErrorCode =
  /** 400: the request is invalid. Also 404 for an unknown path, and 401 for a bad tunnel token. */
  | "INVALID_REQUEST"
  /** 401: the password is missing or wrong. */
  | "INVALID_PASSWORD"
  /** 404. */
  | "ROOM_NOT_FOUND"
  /** 404. */
  | "PARTICIPANT_NOT_FOUND"
  /** 409: another participant is connected under this id. */
  | "PARTICIPANT_CONFLICT"
  /** 409. */
  | "PARTICIPANT_BUSY"
  /** 503. */
  | "PARTICIPANT_TUNNEL_NOT_CONNECTED"
  /** 404. */
  | "MODEL_NOT_FOUND"
  /** 400 or 403: the server does not call this endpoint. */
  | "ENDPOINT_NOT_REACHABLE"
  /** 500, and 400 for a tunnel that is no upgrade. */
  | "INTERNAL_ERROR"
  /** 401 or 403: a key is needed, or the host's token. Ours. */
  | "UNAUTHORIZED"
  /** 429: too many tries, rooms or participants. Ours. */
  | "TOO_MANY"
  /** A code that this version does not know. */
  | "UNKNOWN";

/** A bad answer: `{"error": …, "meta": …}`. */
export interface ErrorEnvelope {
  /** The error. */
  error: PlaneError;
  /** About the answer. */
  meta: Meta;
}

/** `error`: a request failed, and no other reply reports it. */
export interface ErrorMessage {
  /** Why, for people. */
  message: string;
}

/** The known facts about models, by name. A model of which nothing is known is left out. */
export type FactsByModel = Record<string, ModelFacts>;

/** Another server that acts as one with this one. */
export interface FellowJson {
  /** Its name. */
  name: string;
  /** The id of its start. */
  id: string;
  /** The version of its program. */
  version: string;
  /** `active`, or `draining` when it stops. */
  state: string;
  /** Where it is reached, as far as it knows. */
  url?: string;
  /** How many workers it has that this server may use. */
  workers: number;
}

/** An entry of a directory. */
export interface FileEntry {
  /** Its name. */
  name: string;
  /** Its path in the project. */
  path: string;
  /** Its kind. */
  kind: FileKind;
  /** Its length in bytes; 0 for a directory. */
  size: number;
}

/** The kind of an entry. */
export type FileKind =
  /** A directory. */
  | "dir"
  /** A file. */
  | "file"
  /** A symbolic link. */
  | "symlink";

/** A file as of one moment. */
export interface FileVersion {
  /** Identifies the file itself. Later another file may have the same path. */
  file: string;
  /** When it was last changed, as a text that can only be compared for equality. */
  changed: string;
  /**
   * Whether the version is certain: the file did not change during the read, nor so shortly before
   * it that another change could get the same time.
   */
  settled: boolean;
}

/** The part of `/health` about servers that act as one (`--cluster`). */
export interface FleetHealth {
  /** The name of this server among them. */
  name: string;
  /** The group of servers. */
  group: string;
  /** Whether NATS is reached. */
  connected: boolean;
  /** The other servers, by name. */
  servers: FellowJson[];
  /** Slots of this server's workers that are lent to the others. */
  slots_lent: number;
  /** Slots of the others' workers that are lent to this server. */
  slots_borrowed: number;
  /** Requests of this server at workers of the others. */
  requests_sent: number;
  /** Requests of the others at workers of this server. */
  requests_served: number;
}

/** Parameters of generation (the spec's `GenerationConfig`). */
export interface GenerationConfig {
  /** 0 to 2. */
  temperature?: number | null;
  /** 0 to 1. */
  top_p?: number | null;
  /** The most tokens of an answer; at least 1. */
  max_tokens?: number | null;
  /** Texts that end an answer: at most 16, of 1 to 256 bytes each. */
  stop?: string[] | null;
  /** −2 to 2. */
  frequency_penalty?: number | null;
  /** −2 to 2. */
  presence_penalty?: number | null;
  /** Makes answers repeatable, where the backend can. */
  seed?: number | null;
}

/** `get_history`: earlier output, as written. Ours. */
export interface GetHistory {
  /** Which session. */
  session_id: string;
  /** The number of the output before which to end; absent: up to the newest. */
  before_seq?: number | null;
  /** How many bytes to send at most; absent: the daemon decides. */
  max_bytes?: number | null;
}

/** `get_team_inbox`: the messages that a member was sent. */
export interface GetTeamInbox {
  /** In which team. */
  team_id: string;
  /** Its session id. */
  session_id: string;
  /** The number of the first message to send; none: all. */
  since_seq?: number | null;
}

/**
 * `get_turns`: asks for the stored events of an agent's turns; without bounds, for the newest
 * ones.
 */
export interface GetTurns {
  /** The agent's session. */
  session_id: string;
  /** Only events before this number. */
  before?: number | null;
  /** Only events after this number. */
  after?: number | null;
  /**
   * How many bytes of events to send at most; absent: the daemon decides. One event is always
   * sent, if there is one.
   */
  max_bytes?: number | null;
}

/** A file that changed. */
export interface GitChange {
  /** Which, from the project's directory on. */
  path: string;
  /** Its status. */
  status: ChangeStatus;
  /** Its former name, or the source of a copy. Ours. */
  from?: string;
}

/** `git_diff`: what changed in one file. */
export interface GitDiff {
  /** The project. */
  project_id: string;
  /** Which file. */
  path: string;
  /** Whether to report staged changes instead of unstaged ones. */
  staged?: boolean;
}

/** `git_diff_result`. */
export interface GitDiffResult {
  /** The project. */
  project_id: string;
  /** Which file. */
  path: string;
  /** Whether it holds staged changes. */
  staged: boolean;
  /** A unified diff. */
  patch: string;
}

/** `git_error`: git could not be run, or has failed. */
export interface GitError {
  /** The project. */
  project_id: string;
  /** Why, for people. */
  message: string;
}

/** `git_status_result`: a project's working tree. */
export interface GitStatus {
  /** The project. */
  project_id: string;
  /** Whether it is in a repository. If not, the other fields are empty. */
  is_repo: boolean;
  /** The branch; none when the head is detached. */
  branch: string | null;
  /** The branch that it follows. */
  upstream: string | null;
  /** How many commits it has that its upstream lacks. */
  ahead: number;
  /** How many commits its upstream has that it lacks. */
  behind: number;
  /** The changes in the index. */
  staged: GitChange[];
  /** The changes outside the index, conflicts included. */
  unstaged: GitChange[];
  /** Files that git does not know. */
  untracked: string[];
}

/** `handoff`: give work to a new team worker, and wait for the result. */
export interface Handoff {
  /** In which team. */
  team_id: string;
  /** The work. */
  prompt: string;
  /** The name of the team worker. */
  worker_name?: string | null;
  /** How long to wait, in milliseconds; absent: as the daemon likes. */
  timeout_ms?: number | null;
  /** Which agent; absent: as the leader. Ours. */
  provider?: string | null;
  /** Its mode; absent: turn by turn. Ours. */
  mode?: SessionMode | null;
  /** Where it starts; absent: where the leader did. Ours. */
  working_dir?: string | null;
  /**
   * The machine that runs it: its node id, how that begins, or its name; absent: the one that
   * keeps the team. Ours.
   */
  node_id?: string | null;
}

/** `handoff_result`. */
export interface HandoffResult {
  /** In which team. */
  team_id: string;
  /** The team worker. */
  worker_session_id: string;
  /** Whether it went well. */
  success: boolean;
  /** Its result; none while it runs. */
  result: string | null;
  /** Whether it is over. */
  completed: boolean;
  /** The id for waiting on, if it is not over. */
  wait_id: string | null;
}

/** Answer of `GET /health`. */
export type Health = Partial<HealthDetails> & {
  /** `ok`, `degraded`, or `draining` once the server is stopping. */
  status: string;
  /** Whether it takes new requests. */
  ok: boolean;
  /** The server's version. */
  version: string;
  /** Peers that it is connected with. */
  peers: number;
};

/** The part of `/health` for local requests and those with a key. */
export interface HealthDetails {
  /** The problem and its consequence. */
  degraded?: string;
  /** Seconds since the server started. */
  uptime_secs: number;
  /** How many workers and other providers are connected. */
  workers_connected: number;
  /** They themselves, by name. */
  workers: WorkerJson[];
  /** Jobs waiting, all queues together. */
  queue_depth: number;
  /** Jobs at providers. */
  in_flight: number;
  /** The models that are served to all. */
  models: string[];
  /** The aliases, each with its targets in order of preference. */
  aliases?: Record<string, string[]>;
  /** The servers that act as one with this one, where there are such. */
  fleet?: FleetHealth;
  /** The workspace of the machine, where it has one. */
  workspace?: WorkspaceHealth;
}

/** `history`. Ours. */
export interface History {
  /** Which session. */
  session_id: string;
  /** The number of the first output in it. */
  from_seq: number;
  /** The number of the last output in it. */
  to_seq: number;
  /** The output. */
  data: string;
  /** Whether there is more output before it. */
  more: boolean;
}

/** A message that a member was sent. */
export interface InboxMessage {
  /** Its number. */
  seq: number;
  /** The sender. */
  from_session_id: string;
  /** Its payload. */
  payload: string;
  /** When it was stored. */
  delivered_at: string;
}

/** `input_ack`: input was applied. Ours. */
export interface InputAck {
  /** The id that its sender gave it. */
  input_id: string;
  /**
   * For a prompt to an agent: the number of its turn, which may begin later, after the turns
   * before it.
   */
  turn?: number;
}

/** An invitation, and the machine that joined by it. */
export interface InvitationJson {
  /** Its id. */
  id: string;
  /** The name of the machine: the one that was chosen, or the one that it gave itself. */
  name: string | null;
  /** `open`, `joined`, `expired` or `revoked`. */
  state: string;
  /** When it was made. */
  created_at: string;
  /** When it expires, unless it is used. */
  expires_at: string;
  /** When a machine joined by it. */
  joined_at: string | null;
  /** The id of the machine's key. */
  key_id: string | null;
  /** When the machine was last connected, to the minute or so. */
  last_seen_at: string | null;
  /** The code, when it has just been made. */
  code?: string;
  /** The URLs in the code, the best first, when it has just been made. */
  urls?: string[];
}

/** Answer of `GET /admin/invitations`. */
export interface InvitationList {
  /** Every invitation that is remembered, the oldest first. */
  invitations: InvitationJson[];
}

/** A key without its text, which is shown only when the key is created or rotated. */
export interface KeyJson {
  /** Its id, which stays the same when it is rotated. */
  id: string;
  /** Its name, given by its owner. */
  name: string;
  /** The first characters of its text, which identify the key for people. */
  prefix: string;
  /** Its scopes. */
  scopes: KeyScope[];
  /** The models it may be used for, with `*` at the end for all that begin so. Empty: every one. */
  models: string[];
  /** How much may be done with it. */
  limits: KeyLimits;
  /**
   * The only room whose participants it reaches: the room's six-character code, or its id when
   * it was closed.
   */
  room: string | null;
  /** When it was made. */
  created_at: string;
  /** When it stops working. */
  expires_at: string | null;
  /** When it was revoked. */
  revoked_at: string | null;
  /** When it was last used, to the minute or so. */
  last_used_at: string | null;
  /** Its text, when it has just been made. */
  key?: string;
}

/** How much may be done with a key. `None` means no limit. */
export interface KeyLimits {
  /** Requests a minute. */
  rpm?: number | null;
  /** Tokens a minute, read and written together. */
  tpm?: number | null;
  /** Requests at the same time. */
  concurrent?: number | null;
  /** Tokens a day or a month. */
  budget?: Budget | null;
  /** Money a day or a month. */
  budget_money?: MoneyBudget | null;
  /** Whether its requests go to no cloud. */
  no_cloud?: boolean;
  /** Whether its streamed answers are resumed when their provider is lost; `None`: as for all. */
  resume_answers?: ResumeAnswers | null;
}

/** Answer of `GET /admin/keys`. */
export interface KeyList {
  /** Every key, the revoked included, the oldest first. */
  keys: KeyJson[];
}

/** A right that a key gives its holder. */
export type KeyScope =
  /** Use models. */
  | "inference"
  /** Lend models: relay workers and model nodes. */
  | "worker"
  /** See the workspace: sessions and their output, files, changes. */
  | "workspace:read"
  /** Use the workspace: type, run, write. Keys of before there were roles say `workspace`. */
  | "workspace:write"
  /** Use the workspace, and say where projects lie and whose processes they run. */
  | "workspace:admin"
  /** Be a peer of the mesh. */
  | "peer"
  /** Administer the server, its keys included. */
  | "admin"
  /** Read `/metrics`. */
  | "metrics"
  /** Make rooms, from other machines too. */
  | "rooms";

export interface ModelList {
  object: string;
  data: Model[];
}

/** `list_directory`: a directory of the host. */
export interface ListDirectory {
  /** Its path. */
  path: string;
  /**
   * Which part of a directory with many entries: what follows this mark, which is `next` of the part
   * before; empty for the first one. A client that leaves it out gets a notice that there is
   * more.
   */
  after?: string | null;
}

/** `list_project_files`. */
export interface ListProjectFiles {
  /** The project. */
  project_id: string;
  /** Which directory; none or empty: the project's own. */
  path?: string | null;
  /**
   * Which part of a directory with many entries: what follows this mark, which is `next` of the part
   * before; empty for the first one. A client that leaves it out gets a notice that there is
   * more.
   */
  after?: string | null;
}

/** `list_sessions`. */
export interface ListSessions {
  /** Whether to list the hidden ones, too. Ours. */
  include_hidden?: boolean;
}

/** An answer is whole. Its model is not that of `LlmStarted`, but the one that answered. */
export interface LlmDone {
  /** The request's id. */
  requestId: string;
  /** The participant that answered. */
  participantId: string;
  /** The participant's model. */
  model: string;
  /** Its API. */
  protocol: Protocol;
  /** The metrics of the answer. */
  metrics: AnswerMetrics;
}

/** An answer that failed, before or after it began. */
export interface LlmFailed {
  /** The request's id. */
  requestId: string;
  /** The participant that had it. */
  participantId: string;
  /** Its name, for people. */
  nickname: string;
  /** The URL of its backend, as it reports it. */
  endpoint: string;
  /** Its model. */
  model: string;
  /** Its API. */
  protocol: Protocol;
  /** Whether it failed before or after its answer began. */
  stage: Stage;
  /** Why. */
  error: string;
}

/** A request was given to a participant. */
export interface LlmStarted {
  /** The request's id. */
  requestId: string;
  /** The participant that has it. */
  participantId: string;
  /** The selector, as the client wrote it. */
  model: string;
  /** Its API. */
  protocol: Protocol;
}

/** A piece of an answer (spec, "LlmTokenMessage"). */
export interface LlmToken {
  /** The request's own id. */
  requestId: string;
  /** The participant that answers. */
  participantId: string;
  /** The text. */
  token: string;
  /** Counted from 0. */
  seq: number;
}

/** Whether a model is in memory. */
export type LoadState =
  /** It answers at once. */
  | "loaded"
  /** It is being loaded. */
  | "loading"
  /** The next request loads it. */
  | "unloaded";

/** A line of `GET /admin/logs?follow=true`, which answers with lines of JSON. Empty lines are signs of life. */
export type LogEvent =
  /** The next line of the log. */
  | LogLine
  /** The reader was too slow, and lines before the next one are no longer kept. */
  | {
      /** How many. */
      missed: number;
    };

/** How grave a line is. The gravest is the smallest. */
export type LogLevel =
  /** Something was lost, or does not work. */
  | "error"
  /** Something needs attention. */
  | "warn"
  /** The usual events. */
  | "info"
  /** Details that help to find faults. */
  | "debug"
  /** Every step. */
  | "trace";

/** One line. */
export interface LogLine {
  /** A running number, from 1 at the server's start. */
  n: number;
  /** When it was written. */
  at: string;
  /** Its level. */
  level: LogLevel;
  /** The whole line as it stands at standard error, without colours. */
  text: string;
}

/** Answer of `GET /admin/logs?limit=N&after=M&level=L`. */
export interface LogList {
  /** The oldest first. */
  lines: LogLine[];
}

/** Answer of `POST /web/code`. */
export interface LoginCode {
  /** The code, which is good once. */
  code: string;
  /** When it expires. */
  expires: string;
}

/** The machine that a participant runs on, as the participant reports it. */
export interface MachineSpecs {
  /** The name of its GPU. */
  gpu?: string;
  /** Memory of the GPU, in GB. */
  vram?: number;
  /** Memory of the machine, in GB. */
  ram?: number;
  /** The name of its CPU. */
  cpu?: string;
}

/** Answer of `GET /admin/mesh/id`. */
export interface MeshId {
  /** The node's id: 64 hex digits. */
  id: string;
  /** The same in short, for people to compare. */
  fingerprint: string;
  /** Its name, for people. */
  name: string;
  /** Where peers on the LAN connect to, if anywhere. */
  listen?: string;
  /** The nodes that may query it: `off`, `peers` or `anyone`. */
  share: string;
  /** The relays that it is registered at, or tries to be. */
  relays: MeshRelayJson[];
  /** Problems that a person has to solve, such as another machine with the same key. */
  problems: string[];
}

/** A model, and the machines that have it. */
export interface MeshModel {
  /** Its name. */
  id: string;
  /** The size of its files, in bytes; `null` where it is unknown. */
  bytes: number | null;
  /** Peers that serve it now, by id. */
  served_by: string[];
  /** Peers that pass its files on, by id. */
  offered_by: string[];
  /** Whether this machine serves it. */
  served_here: boolean;
  /** Whether this machine has its files. */
  files_here: boolean;
}

/** Answer of `GET /admin/mesh/models`. */
export interface MeshModels {
  /** By name. */
  models: MeshModel[];
}

/** A peer. */
export interface MeshPeer {
  /** Its id: 64 hex digits, or `device-` and a UUID. */
  id: string;
  /** The name that it gave itself. */
  name: string;
  /** Its link: `lan`, `relay`, `listed` (by a relay, with no link yet) or `none`. */
  link: string;
  /** Its address, or the relay's host. */
  address?: string;
  /** Whether the link is sealed end to end. */
  sealed: boolean;
  /** `ok`, `degraded`, `paused`, `unavailable` or `unlinked`. */
  status: string;
  /** The models that it serves now. */
  models: string[];
  /** How many requests it takes at once. */
  capacity: number;
  /** How many requests wait there. */
  queue_depth: number;
  /** Whether it answers anything now. */
  generating: boolean;
  /** From 0, paused, to 100. */
  throttle: number;
  /** How hot it is: `nominal`, `fair`, `serious` or `critical`. */
  thermal: string;
  /** Tokens a second, as measured; `null` before. */
  tokens_per_second: number | null;
  /** Its chip, for people. */
  chip: string;
  /** Its memory, in GiB. */
  ram_gb: number;
  /** The version of its Warren; `null` of a stock peer. */
  warren: string | null;
  /** Seconds since its last message; `null` if there was none. */
  heard_secs: number | null;
}

/** Answer of `GET /admin/mesh/peers`. */
export interface MeshPeers {
  /** In the order of their ids. */
  peers: MeshPeer[];
  /** Peers that were met in the last minutes, on the local network, and could not be linked to. */
  unlinked?: MeshUnlinked[];
}

/** A relay that this machine is registered at. */
export interface MeshRelayJson {
  /** Where it is, without credentials. */
  url: string;
  /** Whether it is connected. */
  connected: boolean;
  /** Whether the registration cannot be replayed. */
  challenged: boolean;
  /** The last error, if any. */
  error?: string;
}

/**
 * A model in transfer. Also a line of the answer of `POST /admin/mesh/pull`, which ends with one
 * whose state is `done`, `failed` or `cancelled`.
 */
export interface MeshTransfer {
  /** Its id. */
  id: string;
  /** The model. */
  model: string;
  /** `in` or `out`. */
  direction: string;
  /** `searching`, `preparing`, `running`, `waiting`, `finishing`, `done`, `failed` or `cancelled`. */
  state: string;
  /** Bytes that are there. */
  bytes: number;
  /** Bytes in all; `null` while that is unknown. */
  total: number | null;
  /** Bytes a second, over the last seconds. */
  rate: number;
  /** Seconds that are left, at this rate. */
  eta_secs: number | null;
  /** The peers that it comes from or goes to, by id. */
  peers: string[];
  /** Where it was put, or why it failed. */
  detail?: string;
  /** Which kind of failure it is: `not_found`, `no_space`, `exists`, `refused`, `corrupt`, `lost`, `disk`. */
  code?: string;
}

/** Answer of `GET /admin/mesh/transfers`. */
export interface MeshTransfers {
  /** The newest first. */
  transfers: MeshTransfer[];
}

/** A peer that could not be linked to. */
export interface MeshUnlinked {
  /** As it was named, as mDNS has it, or the address that it called from. */
  place: string;
  /** Why there is no link, in words. */
  why: string;
  /** Seconds since it was met last. */
  met_secs: number;
}

/** About an answer. */
export interface Meta {
  /** The id of the request. */
  requestId: string;
}

export interface Model {
  id: string;
  object: string;
  created: number;
  owned_by: string;
  /** OpenRouter's name for the context, in tokens. The next field is the same under vLLM's name. */
  context_length?: number;
  max_model_len?: number;
  /** LM Studio's name for the longest context that the model was made for. */
  max_context_length?: number;
  /** Its forms of input and output, as OpenRouter writes them. */
  architecture?: Architecture;
  capabilities?: string[];
  quantization?: string;
  /** LM Studio's name for the model's family. */
  arch?: string;
  parameters?: number;
  /** The bytes of its files. */
  size?: number;
  state?: LoadState;
  /** For another Warren: how the model goes on with an answer that has begun. */
  continuation?: Continuation;
  endpoints?: string[];
  machines?: string[];
}

/** Answer to the load or unload of a model. */
export interface ModelChanged {
  /** The worker's id. */
  worker_id: string;
  /** The name that it gave itself. */
  worker_name: string;
  /** The model. */
  model: string;
  /** `loaded` or `unloaded`. */
  done: string;
}

/** The facts that a backend reports of a model. */
export interface ModelFacts {
  /** How many tokens a question and its answer may have together. */
  context_tokens?: number;
  /** The longest context that it was made for, in tokens, whatever its backend gives it. */
  max_context_tokens?: number;
  /** How much memory the model takes while it is loaded, in bytes. */
  memory_bytes?: number;
  /** How long its files are together, in bytes. */
  file_bytes?: number;
  /** How many parameters it has. */
  parameters?: number;
  /** How its weights are stored: `Q4_K_M`. */
  quantization?: string;
  /** Its architecture: `qwen3`. */
  family?: string;
  /** Its capabilities; `None` when they are not known. */
  capabilities?: string[];
  /** Whether it is in memory; `None` when its backend does not say. */
  load?: LoadState;
  /** How long loading it takes, in milliseconds, as far as it was loaded before. */
  load_ms?: number;
  /** When it was last asked, in milliseconds since 1970. */
  last_used_ms?: number;
  /** How its backend goes on with an answer that has begun; `None` when it cannot, or does not say. */
  continuation?: Continuation;
}

/** Money that may be spent in each period. */
export interface MoneyBudget {
  /** The amount. */
  amount: string;
  /** The currency of the amount. */
  currency: string;
  /** In each of these. */
  per: Period;
}

/** `move_session`: moves an agent's session to another machine of the cluster. Ours. */
export interface MoveSession {
  /** Its session id. */
  session_id: string;
  /** The node id or the name of the machine. */
  node_id: string;
  /** Where it works there; absent: in the project of the same name, or in the same directory. */
  working_dir?: string | null;
  /** Whether to interrupt the running turn, instead of waiting for its end. */
  interrupt?: boolean;
  /** Whether to move even if something must stay behind. */
  accept_losses?: boolean;
  /** Whether only to report what a move would do. */
  dry_run?: boolean;
}

/** `new_session`. */
export interface NewSession {
  /** Where to start; absent: the project's directory. */
  working_dir?: string | null;
  /** Its mode; absent: as an agent. */
  mode?: SessionMode;
  /** The agent's model. */
  model?: string | null;
  /** Its name. */
  name?: string | null;
  /**
   * More arguments for the agent's command line; with the tag `dev-server`, the whole command
   * line.
   */
  extra_args?: string[] | null;
  /** The user to run as, in place of the project's. */
  run_as_user?: string | null;
  /** The node of the cluster to run on. */
  node_id?: string | null;
  /** Which agent; absent: `claude`. */
  provider?: string | null;
  /** Whether to keep it out of listings. */
  hidden?: boolean;
  /** Its tags. */
  tags?: string[];
  /** The project it belongs to. */
  project_id?: string | null;
  /** How wide its terminal is at first. Ours. */
  cols?: number | null;
  /** How high its terminal is at first. Ours. */
  rows?: number | null;
}

/** A notice for a client. */
export interface Notice {
  /** How much it matters. */
  level: NoticeLevel;
  /** The kind of notice, such as `OUTPUT_LAGGED`. */
  code: string;
  /** The event, for people. */
  message: string;
  /** More of it, for people. */
  detail: string | null;
  /** The session that it is about. */
  session_id: string | null;
}

/** How much a notice matters. */
export type NoticeLevel =
  /** Good to know. */
  | "info"
  /** Something is worse than it should be. */
  | "warning"
  /** Something is lost. */
  | "error";

/**
 * A message about one project with no other field: `delete_project`, `git_status`,
 * `watch_project_files`, `unwatch_project_files`; `project_removed`, `project_files_changed`.
 */
export interface OfProject {
  /** Its project id. */
  project_id: string;
}

/**
 * A message about one session with no other field: `kill_session`, `interrupt`, `take_control`;
 * `attached`, `detached`, `session_killed`, `session_unknown`.
 */
export interface OfSession {
  /** Its session id. */
  session_id: string;
}

/**
 * A message about one team with no other field: `get_team`, `delete_team`; `team_deleted`, and
 * `team_completed`, when the team has no more work.
 */
export interface OfTeam {
  /** Its team id. */
  team_id: string;
}

/** An invitation that may still be used. */
export interface OpenInvite {
  /** Its id. */
  invite_id: string;
  /** When it ends. */
  expires_at: string;
}

/** `open_terminal`: run a command in a new terminal. */
export interface OpenTerminal {
  /** Where to start; absent: the project's directory. */
  working_dir?: string | null;
  /** The program. */
  command: string;
  /** Its arguments. */
  args?: string[] | null;
  /** Its name. */
  name?: string | null;
  /** The project it belongs to. Ours, like all fields below. */
  project_id?: string | null;
  /** How wide it is at first. */
  cols?: number | null;
  /** How high it is at first. */
  rows?: number | null;
  /** Its tags. */
  tags?: string[];
  /** Whether to keep it out of listings. */
  hidden?: boolean;
  /** The user to run as, in place of the project's. */
  run_as_user?: string | null;
  /** The node of the cluster to run on. */
  node_id?: string | null;
}

/** `output`, read from its binary frame. It is never sent as JSON. */
export interface Output {
  /** The session of the output. */
  session_id: string;
  /** Its number in the session's log, from 1. */
  seq: number;
  /** The bytes. */
  data: string;
}

/** A session of the page. */
export interface PageSessionJson {
  /** Its id. */
  id: string;
  /** Whom it stands for: the id of a key, or `owner`. */
  holder: string;
  /** The name of the key, or `owner`. */
  name: string;
  /** When it was made. */
  created_at: string;
  /** When it ends. */
  expires_at: string;
  /** When it was last used. */
  last_used_at: string | null;
  /** The browser's description of itself. */
  browser: string;
  /** Whether the request for this list came by it. */
  current: boolean;
}

/** Answer of `GET /admin/web/sessions`. */
export interface PageSessionList {
  /** Every session, the oldest first. */
  sessions: PageSessionJson[];
}

/** A participant's public description in its room. */
export interface ParticipantInfo {
  /** Its id, which it chose itself. */
  id: string;
  /** Its name, for people. */
  nickname: string;
  /** Its model; of several, the first. */
  model: string;
  /** The URL of its backend, as it reports it. */
  endpoint: string;
  /** The default generation parameters of its model. */
  config: PublicConfig;
  /** Its machine. */
  specs: MachineSpecs;
  /** The endpoints of its backend. */
  capabilities: Capabilities;
  /** Its connection. */
  connection: Connection;
  /** Whether it can be given requests. */
  status: Status;
  /** When it came. */
  joinedAt: number;
  /** The time of its last sign of life. */
  lastSeen: number;
  /** When anything of this changed. */
  updatedAt: number;
  /** All its models. Ours. */
  models?: string[];
  /** How many requests it takes at once. Ours. */
  maxConcurrent?: number;
  /** The metrics of its last answer. Ours. */
  metrics?: AnswerMetrics;
}

/** A participant, by its id. */
export interface ParticipantRef {
  /** The id. */
  participantId: string;
}

/** The span of time that a budget is for; both are the calendar's, in UTC. */
export type Period =
  /** From midnight to midnight. */
  | "day"
  /** From the first of a month to the first of the next. */
  | "month";

/** How a question ended. */
export type PermissionOutcome =
  /** The agent may use the tool. */
  | "allow"
  /** The agent may not use the tool. */
  | "deny"
  /** No answer came in time, or the agent no longer asks. */
  | "expired";

/** `permission_request`: an agent asks whether it may use a tool. */
export interface PermissionRequest {
  /** The session of the asking agent. */
  session_id: string;
  /** The id of the question, which its answer repeats. */
  request_id: string;
  /** The tool's name, as the agent reports it. */
  tool: string;
  /** The tool's input, as the agent reports it. */
  input: unknown;
}

/** `permission_resolved`: the question is no longer open. */
export interface PermissionResolved {
  /** The session of the agent that asked. */
  session_id: string;
  /** The question. */
  request_id: string;
  /** Its outcome. */
  outcome: PermissionOutcome;
  /** The answer that the agent got. */
  message: string | null;
}

/** `permission_response`. */
export interface PermissionResponse {
  /** The session of the agent that asked; not needed, since the question belongs to it. */
  session_id?: string | null;
  /** The question. */
  request_id: string;
  /** Whether the agent may use the tool. */
  allow: boolean;
  /** The answer for the agent. */
  message?: string | null;
}

/** The error. */
export interface PlaneError {
  /** Its kind. */
  code: ErrorCode;
  /** The error's message. */
  message: string;
  /** A hint for the user. */
  hint?: string;
  /** The invalid fields and their faults. */
  details?: unknown;
}

/** One step. What ended in it counts in it. */
export interface Point {
  /** The end of the step, in seconds since 1970 by the server's clock. */
  at: number;
  /** Requests that became jobs and ended. */
  requests: number;
  /**
   * Those of them that failed: without an answer, or with one of status 400 or more. That the client left is no
   * failure.
   */
  errors: number;
  /** Tokens of the answers that ended, as far as known. */
  tokens: number;
  /**
   * The median of the milliseconds from a request's acceptance to the first text of its answer; null if no answer
   * with text ended.
   */
  first_token_ms: number | null;
  /** The median of the milliseconds from a request's acceptance to the head of its answer; null if no answer ended. */
  first_byte_ms: number | null;
  /** Requests that waited for a provider at the end of the step. */
  queued: number;
  /** Requests at providers at the end of the step. */
  in_flight: number;
}

/** A project: a working directory known to the workspace. */
export interface Project {
  /** Its id. */
  id: string;
  /** Its name, for people. */
  name: string;
  /** Its directory on the machine that owns it. */
  working_dir: string;
  /** The user its sessions run as and its files are written as; none: the daemon's own. */
  run_as_user: string | null;
  /** Variables of its sessions' environment. */
  env: Record<string, string>;
  /** The node of the cluster that owns it; none without a cluster. */
  node_id: string | null;
  /** When it was made. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
}

/** `project_file_chunk`: a window of a file, its bytes as text. */
export interface ProjectFileChunk {
  /** The request's. */
  request_id: string;
  /** The bytes, as base64. */
  data: string;
  /** Where they begin in the file. */
  offset: number;
  /** How long the file is. */
  total_size: number;
  /** Whether they end where the file ends. */
  eof: boolean;
  /** The version of the file that they are from. Windows belong together if they have the same version. */
  version?: FileVersion;
  /**
   * The SHA-256 of everything before them, in lower-case hex, if it was asked for; none if the file
   * is shorter.
   */
  sha256?: string;
}

/** `project_file_chunk_error`. */
export interface ProjectFileChunkError {
  /** The request's. */
  request_id: string;
  /** Why, for people. */
  message: string;
}

/** `project_file_content`. */
export interface ProjectFileContent {
  /** The project. */
  project_id: string;
  /** Which file. */
  path: string;
  /** Its content. */
  content: string;
  /** The SHA-256 of its bytes, in lower-case hex. */
  sha256: string;
}

/** `project_file_error`: a file was not listed, read or written. */
export interface ProjectFileError {
  /** The project. */
  project_id: string;
  /** The requested path. */
  path: string;
  /** Why, for people. */
  message: string;
}

/** `project_file_list`. */
export interface ProjectFileList {
  /** The project. */
  project_id: string;
  /** Which directory. */
  path: string;
  /** Its entries, or a part of them: directories first, each kind in alphabetical order. */
  entries: FileEntry[];
  /** Where the next part begins; none after the last one. */
  next?: string;
}

/** `project_file_saved`. */
export interface ProjectFileSaved {
  /** The project. */
  project_id: string;
  /** Which file. */
  path: string;
  /** The SHA-256 of the new content. */
  sha256: string;
}

/** `project_file_write_conflict`: the content is not the one that the client saw. */
export interface ProjectFileWriteConflict {
  /** The project. */
  project_id: string;
  /** Which file. */
  path: string;
  /** The SHA-256 of its content; none when the file is gone. */
  current_sha256: string | null;
}

/** `project_fs_action_error`. */
export interface ProjectFsActionError {
  /** The project. */
  project_id: string;
  /** The request's. */
  request_id: string;
  /** Why, for people. */
  message: string;
}

/** `project_fs_action_result`: it was made, moved, copied or deleted. */
export interface ProjectFsActionResult {
  /** The project. */
  project_id: string;
  /** The request's. */
  request_id: string;
  /** The path that was made or deleted, or the destination of a move or copy. */
  path: string;
}

/** `project_list`. */
export interface ProjectList {
  /** The projects. */
  projects: Project[];
}

/** `project_saved`: a project was made or changed. */
export interface ProjectSaved {
  /** The project's present state. */
  project: Project;
}

/** `promote_node`, which has no effect: the cluster has no leader. */
export interface PromoteNode {
  /** Its node id. */
  node_id: string;
}

/** The API of a request, by the stock name. */
export type Protocol =
  /** Responses. */
  | "openResponses"
  /** Chat Completions, and every other. */
  | "chatCompletions";

/** The public view of a `RuntimeConfig`: whether there are instructions, but not their text. */
export type PublicConfig = GenerationConfig & {
  /** Whether the model gets instructions first. */
  hasInstructions: boolean;
};

/** A queue that is not empty. */
export interface QueueJson {
  /** Where its providers are: `server`, or a room. */
  scope: string;
  /** Its model. */
  model: string;
  /** Jobs waiting in it. */
  depth: number;
  /** Seconds that the oldest has waited. */
  oldest_secs: number;
}

/** `read_project_file`: a file as text. */
export interface ReadProjectFile {
  /** The project. */
  project_id: string;
  /** Its path. */
  path: string;
}

/** `read_project_file_chunk`: one window of a file. */
export interface ReadProjectFileChunk {
  /** The id that its answer will have. */
  request_id: string;
  /** The project. */
  project_id: string;
  /** Which file. */
  path: string;
  /** Where the window begins, in bytes. */
  offset: number;
  /** How long it is at most, in bytes; the daemon may send less. */
  len: number;
  /** Whether the answer is to have the digest of all that is before the window. */
  check?: boolean;
}

/** `relay_team_message`: from one member to another. */
export interface RelayTeamMessage {
  /** In which team. */
  team_id: string;
  /** The sender. */
  from_session_id: string;
  /** The recipient; absent: the leader or, from the leader, every team worker. */
  to_session_id?: string | null;
  /** Its payload. */
  payload: string;
}

/** `rename_node`. */
export interface RenameNode {
  /** Its node id. */
  node_id: string;
  /** Its name. */
  name: string;
}

/** `rename_session`. */
export interface RenameSession {
  /** Its session id. */
  session_id: string;
  /** Its name. */
  name: string;
}

/** One request that became a job and ended. */
export interface RequestJson {
  /**
   * A running number, from 1 at the server's start. A caller that asks for those after the
   * largest number it knows, before `KEPT` more have ended, gets each once. For a number that
   * was not assigned yet it gets all: the server has restarted.
   */
  n: number;
  /** The request's id, the same as in the `x-request-id` of its answer. */
  id: string;
  /** When it ended. */
  at: string;
  /** The key that it counts for, or `local` if none was needed. */
  key: string;
  /** Where its provider was looked for, if not among the server's own. */
  scope?: string;
  /** The model, by the name that the client used. */
  model: string;
  /** The model that served it, where that is another one. */
  served_model: string | null;
  /** The endpoint, by its path. */
  endpoint: string;
  /** The name of the last provider that had it. */
  provider: string | null;
  /** Its outcome, as metrics name it, such as `answered` or `client_gone`. */
  outcome: string;
  /** The answer's HTTP status, where there was an answer. */
  status: number | null;
  /** The tokens read, if known. */
  prompt_tokens: number | null;
  /** The tokens written, if known. */
  completion_tokens: number | null;
  /** Whether any of the tokens are an estimate. */
  estimated: boolean;
  /** Milliseconds from its acceptance until a provider got it. */
  queue_ms: number;
  /** Milliseconds from its acceptance to the head of the answer. */
  first_byte_ms: number | null;
  /**
   * Milliseconds from its acceptance to the first text of the answer. Of an answer in one piece that reports its
   * tokens, it is not known.
   */
  first_token_ms: number | null;
  /** Milliseconds from its acceptance to its end. */
  total_ms: number;
  /** Whether it asked for a stream. */
  streaming: boolean;
  /** How often it was given to a provider again. */
  requeues: number;
  /** Where its answer broke off and was gone on with, in order. */
  resumes?: ResumeJson[];
  /** Its cost in the server's currency, where its model has a price. */
  cost?: string;
}

/** Answer of `GET /admin/requests?after=N&limit=M`. */
export interface RequestList {
  /** The newest first. */
  requests: RequestJson[];
}

/** `resize`: how large the client's terminal is. Ours. */
export interface Resize {
  /** Which session. */
  session_id: string;
  /** How wide. */
  cols: number;
  /** How high. */
  rows: number;
  /** Whether the client shows it; the size of hidden clients does not count. */
  visible?: boolean;
}

/** Whether a streamed answer is resumed when its provider is lost. */
export type ResumeAnswers =
  /** It ends with an error. */
  | "off"
  /** Another provider of the same model goes on, where that can be. */
  | "same-model";

/** A place in an answer where its provider was lost and the answer went on. */
export interface ResumeJson {
  /** The name of the provider that was lost. */
  from: string;
  /** The name of the provider that went on; null where only the end of the answer was missing, and was added. */
  to: string | null;
  /** The characters of the answer's text that had passed. */
  characters: number;
}

/** Why a room was closed. */
export interface RoomClosed {
  /** The reason, as text. */
  reason: string;
}

/** Something that happened in a room. */
export type RoomEvent =
  /** The first of every stream. */
  | { type: "connected"; data: Connected }
  /** The room was made, or its name, password or defaults were changed. */
  | { type: "room.created"; data: RoomSummary }
  /** The room was closed; the last event of its streams. Ours. */
  | { type: "room.closed"; data: RoomClosed }
  /** A participant joined. */
  | { type: "participant.joined"; data: ParticipantInfo }
  /** A participant changed, connected or disconnected. */
  | { type: "participant.updated"; data: ParticipantInfo }
  /** A participant left. */
  | { type: "participant.left"; data: ParticipantRef }
  /** A participant was silent for too long. */
  | { type: "participant.offline"; data: ParticipantRef }
  /** A request was given to a participant. */
  | { type: "llm.request"; data: LlmStarted }
  /**
   * A piece of an answer to an `llm:request` of the spec. Ours: only for clients that ask for
   * it.
   */
  | { type: "llm.token"; data: LlmToken }
  /** An answer is complete, with any status. */
  | { type: "llm.complete"; data: LlmDone }
  /** An answer failed, before or after it began. */
  | { type: "llm.error"; data: LlmFailed };

/** A room's public description (the spec's `RoomInfoPublic`). */
export interface RoomInfo {
  /** Its id. */
  id: string;
  /** Its code: six characters where stock clients read it, the spoken one in the spec's messages. */
  code: string;
  /** Its name, for people. */
  name: string;
  /** The id of its maker. */
  hostId: string;
  /** When it was made. */
  createdAt: number;
  /** The default generation parameters of its participants. */
  defaults?: PublicConfig;
  /** Whether joining and using it need a password. */
  passwordProtected: boolean;
  /** The spoken code, where `code` is the short one. Ours. */
  spokenCode?: string;
  /** The six characters, where `code` is the spoken one. Ours. */
  shortCode?: string;
  /** Whether it is listed publicly. Ours. */
  public?: boolean;
  /** The time at which it ends if it is not used. Ours. */
  expiresAt?: number;
}

/** A room in a list. */
export type RoomSummary = RoomInfo & {
  /** How many participants it has. */
  participantCount: number;
};

/** One request that became a job and has not ended. */
export interface RunningJson {
  /** The request's id, the same as in the `x-request-id` of its answer. */
  id: string;
  /** The model, by the name that the client used. */
  model: string;
  /** The endpoint, by its path. */
  endpoint: string;
  /** The id of the key that it counts for; null if none was needed. */
  key: string | null;
  /** Where its provider is looked for, if not among the server's own. */
  scope?: string;
  /** The name of the provider that has it; null while it waits for one. */
  worker: string | null;
  /** Whether a provider has it. */
  state: RunningState;
  /** Milliseconds from its acceptance until its provider got it, or until now. */
  waiting_ms: number;
  /** Milliseconds since then; 0 while it waits. */
  running_ms: number;
  /** The tokens written so far, if known; mostly an estimate. */
  tokens: number | null;
}

/** Answer of `GET /admin/requests/running`. */
export interface RunningList {
  /** The oldest first. Beyond `MOST_RUNNING` the newest are left out. */
  requests: RunningJson[];
}

/** Where a request is that has not ended. */
export type RunningState =
  /** It waits for a provider. */
  | "queued"
  /** A provider has it. */
  | "running";

/**
 * Parameters of generation, and instructions for the model: the defaults of a room or of a
 * participant. Never shown whole: others see a `PublicConfig`.
 */
export type RuntimeConfig = GenerationConfig & {
  /** The instructions for the model; trimmed, not empty, at most 16 KiB. */
  instructions?: string | null;
};

/** `send_input`: a whole prompt. */
export interface SendInput {
  /** To which session. */
  session_id: string;
  /** The prompt. */
  input: string;
  /** The id that its acknowledgement repeats. Input with the same id is applied only once. Ours. */
  input_id?: string | null;
}

/** Answer of `GET /admin/series?since=SECONDS`. */
export interface Series {
  /** The time between two points, in seconds. */
  step_secs: number;
  /** The oldest first, at most `KEPT`. A step is there once it is over. */
  points: Point[];
}

/** A message from a daemon to a client. */
export type ServerMessage =
  /** Whether the client may continue. */
  | { type: "auth_result" } & AuthResult
  /** A sign of life. */
  | { type: "keepalive_ack" }
  /** Something the user should know. */
  | { type: "client_notice" } & ClientNotice
  /** A request was not served. */
  | { type: "error" } & ErrorMessage
  /** A session was made. */
  | { type: "session_created" } & WithSession
  /** The sessions. */
  | { type: "session_list" } & SessionList
  /** Output of this session follows. */
  | { type: "attached" } & OfSession
  /** No more output of this session follows. */
  | { type: "detached" } & OfSession
  /** Output. On the wire a binary frame, see `crate::workspace::frame`. */
  | { type: "output" } & Output
  /** Where output continues. Ours. */
  | { type: "session_history" } & SessionHistory
  /** The screen, after output was left out. Ours. */
  | { type: "session_snapshot" } & SessionSnapshot
  /** Earlier output. Ours. */
  | { type: "history" } & History
  /** Events of an agent's turns, as stored. Ours. */
  | { type: "turns" } & TurnEvents
  /** A session's status has changed. */
  | { type: "session_status_changed" } & WithSession
  /** A session has ended. */
  | { type: "session_killed" } & OfSession
  /** A session has moved to another machine, or would move there. Ours. */
  | { type: "session_moved" } & SessionMoved
  /** The session does not exist. */
  | { type: "session_unknown" } & OfSession
  /** A terminal is open. */
  | { type: "terminal_opened" } & WithSession
  /** Another client changed the terminal's size. Ours. */
  | { type: "terminal_size" } & TerminalSize
  /** Input was applied. Ours. */
  | { type: "input_ack" } & InputAck
  /** The events of an agent's line of output. Ours. */
  | { type: "agent_event" } & AgentEventMessage
  /** An agent asks whether it may use a tool. Ours. */
  | { type: "permission_request" } & PermissionRequest
  /** That question is no longer open. Ours. */
  | { type: "permission_resolved" } & PermissionResolved
  /** The usage of a turn. Ours. */
  | { type: "usage" } & TurnUsage
  /** A directory of the host. */
  | { type: "directory_listing" } & DirectoryListing
  /** A project was made or changed. Ours. */
  | { type: "project_saved" } & ProjectSaved
  /** A project is no longer known. Ours. */
  | { type: "project_removed" } & OfProject
  /** The projects. Ours. */
  | { type: "project_list" } & ProjectList
  /** A directory of a project. */
  | { type: "project_file_list" } & ProjectFileList
  /** A file as text. */
  | { type: "project_file_content" } & ProjectFileContent
  /** A file was not listed, read or written. */
  | { type: "project_file_error" } & ProjectFileError
  /** One window of a file. */
  | { type: "project_file_chunk" } & ProjectFileChunk
  /** A window was not read. */
  | { type: "project_file_chunk_error" } & ProjectFileChunkError
  /** A file is written. */
  | { type: "project_file_saved" } & ProjectFileSaved
  /** A file has other content than the client saw. */
  | { type: "project_file_write_conflict" } & ProjectFileWriteConflict
  /** Something was made, moved, copied or deleted. */
  | { type: "project_fs_action_result" } & ProjectFsActionResult
  /** It was not done. */
  | { type: "project_fs_action_error" } & ProjectFsActionError
  /** Something changed in a project that is watched. */
  | { type: "project_files_changed" } & OfProject
  /** The changes since the last commit. */
  | { type: "git_status_result" } & GitStatus
  /** The changes of one file. */
  | { type: "git_diff_result" } & GitDiffResult
  /** Git could not be run, or has failed. */
  | { type: "git_error" } & GitError
  /** A team is made. */
  | { type: "team_created" } & TeamCreated
  /** A team worker is made. */
  | { type: "worker_spawned" } & WorkerSpawned
  /** A message to a member. */
  | { type: "team_message" } & TeamMessage
  /** A message was stored for its recipient. Ours. */
  | { type: "team_message_sent" } & TeamMessageSent
  /** The teams, or the requested one. */
  | { type: "team_list" } & TeamList
  /** A team has changed. */
  | { type: "team_updated" } & TeamUpdated
  /** A team is deleted. */
  | { type: "team_deleted" } & OfTeam
  /** The result of a handoff. */
  | { type: "handoff_result" } & HandoffResult
  /** A team worker has its work. */
  | { type: "worker_assigned" } & WorkerAssigned
  /** The workers that have reported. */
  | { type: "team_wait_result" } & TeamWaitResult
  /** A member's messages. */
  | { type: "team_inbox" } & TeamInbox
  /** The result of a team worker. Ours. */
  | { type: "worker_result_received" } & WorkerResult
  /** The team has no more work. Ours. */
  | { type: "team_completed" } & OfTeam
  /** The state of the cluster. */
  | { type: "cluster_status" } & ClusterStatusReply
  /** The settings of the cluster. */
  | { type: "cluster_config" } & ClusterConfig
  /** The result of a change of the cluster. */
  | { type: "cluster_action_ack" } & ClusterActionAck
  /** An invitation that was made. */
  | { type: "cluster_invitation" } & ClusterInvitation
  /** The invitations that may still be used. */
  | { type: "cluster_invite_list" } & ClusterInviteList;

/** `session_history`: the point from which output continues after an `attach`. Ours. */
export interface SessionHistory {
  /** Which session. */
  session_id: string;
  /**
   * The number of the last output that the client has now. It must drop frames up to this
   * number.
   */
  last_seq: number;
  /** The screen to begin with; none when the client resumes. */
  snapshot: SessionSnapshot | null;
}

/** A session. Fields that older daemons do not send have defaults. */
export interface SessionInfo {
  /** Its id. */
  id: string;
  /** Its name, for people. */
  name: string | null;
  /** Its mode. */
  mode: SessionMode;
  /** The state of its process. */
  status: SessionStatus;
  /** Where its process was started. */
  working_dir: string;
  /** The agent's model, if one was asked for. */
  model: string | null;
  /** When it was made. */
  created_at: string;
  /** When it last read or wrote anything. */
  last_active: string;
  /** How many connections follow its output. */
  attached_clients: number;
  /** The process that it adopted. */
  adopted_pid: number | null;
  /** The project it belongs to. */
  project_id: string | null;
  /** The node of the cluster that owns it; none without a cluster. */
  node_id: string | null;
  /** Its kind of process. */
  kind: SessionKind;
  /** Which agent's command line backs it. Without meaning for a shell. */
  provider: string;
  /** Whether listings leave it out. */
  hidden: boolean;
  /** The team it belongs to. */
  team_id: string | null;
  /** Whether it leads that team. */
  is_team_leader: boolean;
  /** Whether its owner can be reached. Ours. */
  reachable: boolean;
  /** The TCP port that a development server listens on, once it is known. Ours. */
  dev_server_port: number | null;
  /**
   * The end of its process, if known: its exit code, or 128 plus the number of the signal that
   * ended it. Ours.
   */
  exit_code: number | null;
  /** The number of its newest output, if known. Ours. */
  last_seq: number | null;
  /**
   * How many permission questions of its agent are open; also 0 if its daemon does not report
   * them. Ours.
   */
  asks: number;
  /** Its tags, set when it was made. Ours. */
  tags: string[];
}

/** The kind of a session's process. */
export type SessionKind =
  /** Claude Code, driven or in a terminal. */
  | { type: "claude" }
  /** A command in a terminal. */
  | { type: "shell" } & {
      /** The program. */
      command: string;
      /** Its arguments. */
      args: string[] | null;
    }
  /** Any other agent. Ours. */
  | { type: "agent" } & {
      /** Its provider. */
      provider: string;
    };

/** `session_list`. */
export interface SessionList {
  /** The sessions. */
  sessions: SessionInfo[];
}

/** How a session is driven. */
export type SessionMode =
  /** An agent, turn by turn. Its output is lines of JSON. */
  | "sdk"
  /** A terminal. Its output is the terminal's. */
  | "pty"
  /** A process that was started elsewhere. */
  | "adopted";

/** `session_moved`: a session has moved to another machine, or would move there. */
export interface SessionMoved {
  /** Its session id. */
  session_id: string;
  /** The node id of the machine. */
  node_id: string;
  /** The machine's name. */
  node_name: string;
  /** Where it works there. */
  working_dir: string;
  /** The things that stay behind, for people. */
  stays: string[];
  /** Whether nothing was done, and this only reports what a move would do. */
  dry_run?: boolean;
}

/** A session's screen; on its own it is a `session_snapshot` after output was left out. Ours. */
export interface SessionSnapshot {
  /** Which session. */
  session_id: string;
  /** The number of the last output in it. */
  seq: number;
  /** How wide the screen is. */
  cols: number;
  /** How high the screen is. */
  rows: number;
  /** Text that repaints a reset terminal of that size. */
  data: string;
}

/** The state of a session's process. */
export type SessionStatus =
  /** A terminal's or an adopted process runs, or an agent is in a turn. */
  | "running"
  /** An agent waits for a prompt. */
  | "idle"
  /** A terminal's process runs, but no client shows it any more. */
  | "detached"
  /** It has ended. */
  | "exited";

/** One setting. */
export interface SettingJson {
  /**
   * Its name in the file, with the names of its sections before it, such as `mesh.route`. A place in a list of
   * tables is a number, from 0: `worker.backends.0.url`.
   */
  name: string;
  /**
   * Its value as the file would have it. It is null for a secret and where no value is set. Passwords in addresses are
   * left out.
   */
  value: unknown;
  /** Where the value is from. */
  source: SettingSource;
  /** Whether it is a secret that somebody has set. What is made in the data directory does not count. */
  secret: boolean;
}

/** Where the value of a setting is from. */
export type SettingSource =
  /** Nobody has set it. */
  | "default"
  /** The configuration file. */
  | "file"
  /** A variable of the environment. */
  | "environment"
  /** A flag of the command line. */
  | "flag";

/** Answer of `GET` and `POST /web/session`. */
export interface SignedIn {
  /** Whose session it is: the name of a key, or `owner`. */
  name: string;
  /** Its rights, in the scopes of keys. */
  scopes: KeyScope[];
  /** When it ends. */
  expires: string;
}

/** `spawn_worker`: one more team worker, without work. Unlike in `CreateTeam`, the name may be absent. */
export interface SpawnWorker {
  /** In which team. */
  team_id: string;
  /** Where it starts; absent: where the leader did. */
  working_dir?: string | null;
  /** Its model. */
  model?: string | null;
  /** More arguments for its command line. */
  extra_args?: string[] | null;
  /** Its name. */
  name?: string | null;
  /** Which agent; absent: as the leader. Ours. */
  provider?: string | null;
  /** Its mode; absent: turn by turn. Ours. */
  mode?: SessionMode | null;
  /**
   * The machine that runs it: its node id, how that begins, or its name; absent: the one that
   * keeps the team. Ours.
   */
  node_id?: string | null;
}

/** When a request failed. */
export type Stage =
  /** Before its answer began. */
  | "dispatch"
  /** In the middle of its answer. */
  | "stream";

/** Answer of `GET /admin/stats`. */
export interface Stats {
  /** Jobs waiting in each scope. */
  queue_depth: Record<string, number>;
  /** The queues that are not empty. */
  queues: QueueJson[];
  /** Connected workers and other providers. */
  active_workers: number;
  /** Jobs at providers. */
  in_flight: number;
  /** Seconds since the server started. */
  uptime_secs: number;
}

/** Whether a participant can be given requests. */
export type Status =
  /** It can. */
  | "online"
  /** It has the most requests that it takes at once. */
  | "busy"
  /** It is not connected. */
  | "offline";

/** An event of an agent, as stored. */
export interface StoredEvent {
  /** Its number in the session: later events have higher numbers. Some numbers belong to no event. */
  number: number;
  /** When it happened. */
  at: string;
  /** The event. Of long prompts, inputs and outputs only the beginning is stored. */
  event: AgentEvent;
}

/** A team: a leader session and its team workers. */
export interface Team {
  /** Its id. */
  id: string;
  /** Its name, for people. */
  name: string;
  /** The leader's session. */
  leader_session_id: string;
  /** Its team workers, the oldest first. */
  worker_session_ids: string[];
  /** Whether any session of it still runs. */
  status: TeamStatus;
  /** When it was made. */
  created_at: string;
  /** When anything last happened in it. */
  last_active: string;
  /** The project it belongs to. */
  project_id: string | null;
}

/** `team_created`. */
export interface TeamCreated {
  /** The team. */
  team: Team;
  /** Its leader. */
  leader_session: SessionInfo;
}

/** `team_inbox`. */
export interface TeamInbox {
  /** In which team. */
  team_id: string;
  /** Its session id. */
  session_id: string;
  /** The messages, by their numbers. */
  messages: InboxMessage[];
  /** The `since_seq` of the next request. */
  next_seq: number;
}

/** `team_list`. */
export interface TeamList {
  /** The teams. */
  teams: Team[];
}

/** `team_message`: a message from another member. */
export interface TeamMessage {
  /** In which team. */
  team_id: string;
  /** The sender. */
  from_session_id: string;
  /** Its payload. */
  payload: string;
}

/** `team_message_sent`: a message was stored for its recipient. Ours. */
export interface TeamMessageSent {
  /** In which team. */
  team_id: string;
  /** Its number. */
  seq: number;
}

/** Whether any session of a team still runs. */
export type TeamStatus =
  /** A session of it runs. */
  | "active"
  /** No session of it runs. */
  | "inactive";

/** `team_updated`. */
export interface TeamUpdated {
  /** The team's present state. */
  team: Team;
}

/** `team_wait`: wait for team workers to report. */
export interface TeamWait {
  /** In which team. */
  team_id: string;
  /** The sessions to wait for; none: all that have work. */
  for_session_ids?: string[] | null;
  /** How long to wait, in milliseconds; absent: as the daemon likes. */
  timeout_ms?: number | null;
  /** An earlier wait to continue. */
  wait_id?: string | null;
}

/** `team_wait_result`. */
export interface TeamWaitResult {
  /** In which team. */
  team_id: string;
  /** The workers that have reported. */
  completed_workers: string[];
  /** The workers that have not reported. */
  pending_workers: string[];
  /** Whether the time was over before all had reported. */
  timed_out: boolean;
  /** The id for waiting on, if the time was over. */
  wait_id: string | null;
  /** The results of the workers that have reported. Ours. */
  results?: WorkerResult[];
}

/** `terminal_input`: keys, as typed. Ours. */
export interface TerminalInput {
  /** To which session. */
  session_id: string;
  /** The typed bytes, in the encoding. `TerminalInput::bytes` reads them. */
  data: string;
  /** The encoding of `data`. */
  encoding?: Encoding;
  /** The id that its acknowledgement repeats. Input with the same id is applied only once. */
  input_id?: string | null;
}

/** `terminal_size`: the session's size, when another client changed it. Ours. */
export interface TerminalSize {
  /** Which session. */
  session_id: string;
  /** How wide. */
  cols: number;
  /** How high. */
  rows: number;
}

/** `move_project_entry` and `copy_project_entry`. */
export interface TransferProjectEntry {
  /** The project. */
  project_id: string;
  /** The source. */
  from: string;
  /** The destination, which must not exist yet. */
  to: string;
  /** The id that its answer will have. */
  request_id: string;
}

/** `turns`: events of an agent's turns, the oldest first. */
export interface TurnEvents {
  /** The agent's session. */
  session_id: string;
  /** The events. */
  events: StoredEvent[];
  /** Whether there are more such events before them. */
  more: boolean;
}

/** How a turn ends. */
export type TurnOutcome =
  /** It ended on its own. */
  | "completed"
  /** It was interrupted. */
  | "interrupted"
  /** It failed. */
  | "failed";

/** `update_cluster_config`. Absent fields stay unchanged. */
export interface UpdateClusterConfig {
  /** The addresses of the other members. */
  peers?: string[] | null;
  /** The interval of heartbeats between members, in milliseconds. */
  heartbeat_interval_ms?: number | null;
}

/** `update_project`: the fields of `CreateProject`, of which absent ones stay unchanged. */
export interface UpdateProject {
  /** Its project id. */
  project_id: string;
  /** Its name. */
  name?: string | null;
  /** Its directory. */
  working_dir?: string | null;
  /** The user its sessions run as; empty: the daemon's own. */
  run_as_user?: string | null;
  /** All variables of its sessions' environment; replaces the present ones. */
  env?: Record<string, string> | null;
}

/** `upload_project_file`: a new file of any bytes. */
export interface UploadProjectFile {
  /** The project. */
  project_id: string;
  /** The path, which must not exist yet. */
  path: string;
  /** The new content, as base64; `crate::workspace::base64::decode` reads it. */
  data: string;
  /** The id that its answer will have. */
  request_id: string;
}

/**
 * `upload_project_file_part`: a part of a new file of any size. Parts are sent in order; the file appears under its
 * name once the last part has arrived. Ours.
 */
export interface UploadProjectFilePart {
  /** The project. */
  project_id: string;
  /** The path, which must not exist yet. It is the same in all parts. */
  path: string;
  /** The id that its answer will have. */
  request_id: string;
  /**
   * The id of the upload within the project, on any connection: a random text that the client
   * chooses.
   */
  upload_id: string;
  /** Where the part begins in the file, in bytes. The first part begins at 0. */
  offset: number;
  /**
   * The part's bytes, `UPLOAD_PART_MAX`(crate::workspace::limits::UPLOAD_PART_MAX) at most, as base64;
   * `crate::workspace::base64::decode` reads it.
   */
  data: string;
  /** Whether the file ends with this part. */
  done?: boolean;
}

/** `usage`: the usage of a turn. */
export interface TurnUsage {
  /** The agent's session. */
  session_id: string;
  /** Which turn, from 1. */
  turn: number;
  /** Tokens that were read. */
  input_tokens: number;
  /** Tokens that were written. */
  output_tokens: number;
  /** Its cost in US dollars, if the agent reports it. */
  cost_usd: number | null;
}

/** The counts. */
export interface UsageCounts {
  /** Requests that ended. */
  requests: number;
  /** Tokens read. */
  prompt_tokens: number;
  /** Tokens written. */
  completion_tokens: number;
  /** Both. */
  total_tokens: number;
  /** Those requests whose tokens are estimated, or partly so. */
  estimated: number;
  /** The failed requests. A request whose client left does not count. */
  errors: number;
  /** Their cost. Requests to models without a price cost nothing. */
  cost: string;
}

/** Usage, summed up. */
export interface UsageReport {
  /** One row for each combination of the grouping fields, the most used first. */
  rows: UsageRow[];
  /** All that was asked about, rows that are left out included. */
  totals: UsageCounts;
  /** The currency of all costs. */
  currency: string;
  /** Whether there are more rows than listed. */
  truncated: boolean;
}

/** One combination. It holds the grouping fields of the report and no others. */
export type UsageRow = UsageCounts & {
  /** The key that it counts for. */
  key?: string;
  /** The model that was asked for. */
  model?: string;
  /** The name of the provider; empty when none had it. */
  provider?: string;
  /** The path that was asked. */
  api?: string;
  /** The day in UTC, `YYYY-MM-DD`. */
  day?: string;
};

/** A session's present state: `session_created`, `session_status_changed`, `terminal_opened`. */
export interface WithSession {
  /** The session. */
  session: SessionInfo;
}

/** `worker_assigned`. */
export interface WorkerAssigned {
  /** In which team. */
  team_id: string;
  /** The team worker. */
  worker_session_id: string;
}

/** A worker, or another provider. */
export interface WorkerJson {
  /** Its id. */
  worker_id: string;
  /** The same again, under a shorter name. */
  id: string;
  /** The name that it gave itself. */
  worker_name: string;
  /** The server that it is connected to, if that is another one of several that act as one. */
  server?: string;
  /** Where its jobs come from: `server`, or a room. */
  scope: string;
  /** Its models. */
  models: string[];
  /** The known facts about its models, by name; a model of which nothing is known is left out. */
  model_facts?: FactsByModel;
  /** Whether it loads and unloads models when it is told. */
  loads_models?: boolean;
  /** The paths of requests that it serves without translation. */
  endpoints: string[];
  /**
   * How far away it is: `here`, `fellow` (connected to another of several servers that act as one), `near`
   * (another machine on this network) or `far` (through a relay).
   */
  distance: string;
  /** Tokens a second: measured, or else as it reports; `null` while neither is known. */
  speed: number | null;
  /** How much of its speed it gives, in per cent; 0 while it is paused. */
  throttle: number;
  /** How many jobs it takes at once; of another server's, how many of its slots are lent to this one now. */
  max_concurrent: number;
  /** How many of its slots are lent to other servers. */
  lent?: number;
  /** The load that it reports, including work from other servers. */
  reported_load: number;
  /** Jobs that it has from here. */
  in_flight_count: number;
  /** The same again, under a shorter name. */
  in_flight: number;
  /** Whether it is given nothing more. */
  is_draining: boolean;
  /** The remaining seconds of its rest after faults. */
  resting_secs: number | null;
}

/** Answer of `GET /admin/workers`. */
export interface WorkerList {
  /** By name. */
  workers: WorkerJson[];
}

/**
 * The result of a team worker's work: `report_result` from itself, `worker_result_received` to
 * clients. Ours.
 */
export interface WorkerResult {
  /** In which team. */
  team_id: string;
  /** The team worker. */
  worker_session_id: string;
  /** Whether it went well. */
  success: boolean;
  /** Its result. */
  result: string;
}

/** `worker_spawned`. */
export interface WorkerSpawned {
  /** The team. */
  team: Team;
  /** Its new team worker. */
  worker_session: SessionInfo;
}

/** The workspace's part of `/health`. */
export interface WorkspaceHealth {
  /** Clients that are connected. */
  clients: number;
  /** All sessions, including ended ones. */
  sessions: number;
  /** Sessions that have not ended. */
  live_sessions: number;
  /** How long they go on without the server, in seconds. */
  keep_sessions_secs: number;
}

/** `write_project_file`: a file as text. */
export interface WriteProjectFile {
  /** The project. */
  project_id: string;
  /** Its path. */
  path: string;
  /** The new content. */
  content: string;
  /** The SHA-256 of the content that the client saw; none for any content. */
  base_sha256?: string | null;
}
