//! The workspace: every message of its protocol against the real binary, and what goes wrong around it.
//!
//! - `kit`: a server with a workspace, its clients, and one who looks at a session
//! - `covered`: whether every message has its test; a test is named after the message it is of
//! - `auth`, `scopes`: who is let in, and to what
//! - `sessions`, `terminals`, `agents`: what runs
//! - `projects`, `files`, `git`, `watch`: what lies in a project
//! - `teams`, `cluster`; `invitations`: machines that join it and leave
//! - `new_token`: the token after a machine was taken out
//! - `cluster_carried`: members that see each other only through another one, or the mesh
//! - `cluster_kit`: members of a cluster
//! - `cluster_faults`: members that are killed, stopped, copied, refused and flooded
//! - `cluster_clocks`: members with an old disk, or with a wrong clock
//! - `remote_teams`: team workers on other members, which are killed
//! - `cluster_models`: agents that think with the models of another member
//! - `moves`: agents that move from one machine to another
//! - `bad_input`, `strangers`, `large`: what nobody should send
//! - `restart`: a server that is killed, and found as it was; `full_disk`: one without room
//! - `outliving`: terminals and agents that go on over a restart
//! - `users`: sessions of other users, and fork bombs
//! - `resume`, `lag`, `leaving`, `unread`: connections that are lost, that are too slow, that close, that read nothing
//! - `talk`: a server whose agents are fakes; `broken_agents`: agents' command lines that misbehave
//! - `commands`: the command line

mod agents;
mod auth;
mod bad_input;
mod cluster;
mod cluster_carried;
mod cluster_clocks;
mod cluster_faults;
mod cluster_kit;
mod cluster_models;
mod commands;
mod covered;
mod files;
mod full_disk;
mod git;
mod invitations;
mod kit;
mod moves;
mod new_token;
mod outliving;
mod projects;
mod remote_teams;
mod restart;
mod resume;
mod scopes;
mod sessions;
mod strangers;
mod talk;
mod teams;
mod terminals;
mod unread;
mod users;
mod watch;
