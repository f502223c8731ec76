//! The cluster's token while the cluster runs. It is renewed when a machine is taken out, so that a
//! copy of the former token is useless.
//!
//! A new token goes over sealed links to the linked members, which pass it on. A member that was
//! away still proves a former token. It is let in by its key, which its entry pins, and gets the
//! new token before anything else.
//!
//! - [`book`]: the token and the former ones, pure

pub(crate) mod book;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use base::{NodeId, Secret};
use protocol::workspace::peer::sealed::NewToken;
use seal::PeerSecret;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    task,
};
use wire::Outbox;

use self::book::{Meant, Tag, Token};
use crate::{
    control::Control,
    error::ClusterError,
    invite::now_ms,
    link::{accept::known, frame::LinkFrame, hello::Hello},
    shared::Shared,
};

/// The most new tokens that wait to be taken. One that finds no room is announced again over the
/// next link.
const WAITING: usize = 64;
/// The most keys made from former tokens that are kept. Each takes a tenth of a second to make.
const DERIVED: usize = 16;

/// The words for a machine that proves a former token and is no member.
pub(crate) const OLD_TOKEN: &str = "the cluster has a new token since that one: the machine needs an invitation (run \
     `warren cluster invite` on a member), or the present token";
const NOT_USED: &str = "the cluster has a newer token than the one in this machine's settings, which is not used any more: take \
     --cluster-token (WARREN_CLUSTER_TOKEN, `token` in [cluster]) out of the settings, or give all machines \
     the same new one";

/// An event that waits for the token's task.
pub(crate) enum Heard {
    /// A new token, as a member told it.
    Told { from: String, token: NewToken },
    /// Answered when all earlier events have been handled.
    Taken(oneshot::Sender<()>),
}

/// The state that the renewal of the token needs.
pub(crate) struct Tokens {
    /// Held while the token changes.
    turn: Mutex<()>,
    heard: mpsc::Sender<Heard>,
    /// The keys made from former tokens.
    derived: Mutex<Vec<(Secret, PeerSecret)>>,
}

/// The secret of a handshake, and the token that it is made from.
#[derive(Clone)]
pub(crate) struct TokenKey {
    pub(crate) tag: Tag,
    pub(crate) secret: PeerSecret,
}

impl Tokens {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Heard>) {
        let (heard, waiting) = mpsc::channel(WAITING);
        (Self { turn: Mutex::default(), heard, derived: Mutex::default() }, waiting)
    }

    /// The sender into which links put new tokens.
    pub(crate) fn heard(&self) -> mpsc::Sender<Heard> {
        self.heard.clone()
    }

    /// The key made from a former token.
    pub(crate) async fn key_of(&self, token: Secret) -> Result<TokenKey, ClusterError> {
        // Locked while it is made, so that many strangers who name a former token cause this work
        // only once.
        let mut derived = self.derived.lock().await;
        let tag = Tag::of(&token);
        if let Some((_, secret)) = derived.iter().find(|(of, _)| *of == token) {
            return Ok(TokenKey { tag, secret: secret.clone() });
        }
        let secret = derive(token.clone()).await?;
        if derived.len() >= DERIVED {
            derived.remove(0);
        }
        derived.push((token, secret.clone()));
        Ok(TokenKey { tag, secret })
    }
}

pub(crate) async fn derive(token: Secret) -> Result<PeerSecret, ClusterError> {
    let key = task::spawn_blocking(move || PeerSecret::cluster(&token)).await;
    key.map_err(|_| ClusterError::Failed)
}

/// Uses the token that is stored or set, if there is one.
pub(crate) async fn start(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    if let Some(token) = shared.config().tokens.present() {
        let secret = derive(token.secret.clone()).await?;
        shared.this.set_token(TokenKey { tag: token.tag(), secret });
    }
    warn_of_settings(shared);
    Ok(())
}

/// Takes the first token of a machine that was in no cluster before.
pub(crate) async fn begin(shared: &Arc<Shared>, token: Token) -> Result<(), ClusterError> {
    let _turn = shared.tokens.turn.lock().await;
    take(shared, token, None, Vec::new()).await
}

/// A machine is a member again, and may get the token.
pub(crate) async fn admit(shared: &Arc<Shared>, key: &NodeId) -> Result<(), ClusterError> {
    match shared.config().tokens.without().contains(key) {
        true => shared.reconfigure(|config| config.tokens.admit(key)).await,
        false => Ok(()),
    }
}

/// Which token a dialling machine proves: its key, if it is not the present token, and whether it
/// is enough. A former token is enough for a member, whose key its entry pins.
pub(crate) async fn meant(
    shared: &Shared,
    hello: &Hello,
    key: &NodeId,
) -> Result<(Option<TokenKey>, Result<(), String>), ClusterError> {
    let tokens = shared.config().tokens;
    let Meant::Former { secret, is_expired } = tokens.meant(hello.token, now_ms()) else {
        return Ok((None, Ok(())));
    };
    let is_pinned = known(shared, &hello.node_id).is_some_and(|it| it.key == Some(*key));
    let is_enough = is_pinned && !is_expired && !tokens.without().contains(key);
    let is_enough = if is_enough { Ok(()) } else { Err(OLD_TOKEN.to_owned()) };
    Ok((Some(shared.tokens.key_of(secret).await?), is_enough))
}

/// The token to prove to the machine with this key. After dials that met another token, the former
/// tokens are tried in turn, since a member may still have one.
pub(crate) async fn to_prove(shared: &Shared, key: &NodeId, mismatches: usize) -> Option<TokenKey> {
    let tokens = shared.config().tokens;
    let is_pinned = shared.members().any(|member| member.key == Some(*key));
    let may_try = is_pinned && may_know(shared, key);
    let formers = if may_try { tokens.formers(now_ms()) } else { Vec::new() };
    match (mismatches % (formers.len() + 1)).checked_sub(1).and_then(|at| formers.get(at)) {
        Some(former) => shared.tokens.key_of(former.clone()).await.ok(),
        None => shared.this.token(),
    }
}

/// Whether every token of this member was tried, after this many dials in a row that met another
/// token.
pub(crate) fn are_all_tried(shared: &Shared, mismatches: usize) -> bool {
    mismatches > shared.config().tokens.formers(now_ms()).len()
}

/// Takes the tokens that members tell, until this machine stops.
pub(crate) async fn run(shared: Arc<Shared>, mut heard: mpsc::Receiver<Heard>) {
    while let Some(heard) = heard.recv().await {
        let (from, token) = match heard {
            Heard::Told { from, token } => (from, token),
            Heard::Taken(done) => {
                let _gave_up = done.send(());
                continue;
            }
        };
        if let Err(error) = take_heard(&shared, token).await {
            let error = base::error::chain(&error);
            tracing::error!(from, error, "the cluster's new token cannot be taken");
        }
    }
}

/// Waits until all tokens that members have sent so far are taken.
pub(crate) async fn taken(shared: &Shared) {
    let (done, waiting) = oneshot::channel();
    // If the task is gone, the machine is stopping and takes no more tokens.
    if shared.tokens.heard.send(Heard::Taken(done)).await.is_ok() {
        let _stopping = waiting.await;
    }
}

async fn take_heard(shared: &Arc<Shared>, told: NewToken) -> Result<(), ClusterError> {
    let NewToken { cluster_token, since_ms, maker, without } = told;
    let token = Token { secret: cluster_token, since_ms };
    let _turn = shared.tokens.turn.lock().await;
    if !shared.config().tokens.is_older_than(&token) {
        return Ok(());
    }
    match maker.is_some_and(|maker| shared.barred.has(&maker)) {
        // A machine that was taken out made this token, and knows it. So the members that have it
        // must get another one.
        true => make(shared, Token::random(since_ms, now_ms())).await?,
        false => take(shared, token, maker, without).await?,
    }
    tracing::info!("the cluster has a new token");
    pass_on(shared);
    Ok(())
}

/// Makes a new token, and sends it to the linked members that are not barred.
pub(crate) async fn renew(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    let _turn = shared.tokens.turn.lock().await;
    let Some(token) = shared.config().tokens.next(now_ms()) else { return Ok(()) };
    make(shared, token).await?;
    tracing::info!("this machine has made a new token for the cluster");
    pass_on(shared);
    Ok(())
}

async fn make(shared: &Arc<Shared>, token: Token) -> Result<(), ClusterError> {
    take(shared, token, Some(shared.this.identity.node_id()), shared.barred.all()).await
}

/// Sends the linked members a new token that this machine, which is leaving, does not keep.
pub(crate) fn bequeath(shared: &Shared) {
    let Some(token) = shared.config().tokens.next(now_ms()) else { return };
    let mut without = shared.barred.all();
    without.push(shared.this.identity.node_id());
    let new =
        NewToken { cluster_token: token.secret, since_ms: token.since_ms, maker: None, without };
    let frame = LinkFrame::Control(Control::NewToken(new).encode());
    shared.links.tell(&frame, |key| !shared.barred.has(key));
}

/// Uses this token from now on, and stores it. Plain peers must greet again with the new one.
async fn take(
    shared: &Arc<Shared>,
    token: Token,
    maker: Option<NodeId>,
    without: Vec<NodeId>,
) -> Result<(), ClusterError> {
    let key = TokenKey { tag: token.tag(), secret: derive(token.secret.clone()).await? };
    let has_changed = key.tag != shared.this.token().map(|key| key.tag).unwrap_or_default();
    shared
        .reconfigure(|config| {
            config.tokens.keep_from(without);
            config.tokens.take(token, maker, now_ms());
        })
        .await?;
    shared.this.set_token(key);
    if has_changed {
        shared.plain.close();
    }
    warn_of_settings(shared);
    Ok(())
}

/// Tells the operator if the token in the settings is not used.
pub(crate) fn warn_of_settings(shared: &Shared) {
    let (config, given) = (shared.config(), &shared.settings.token);
    let is_used = |given: &Secret| config.tokens.present().is_some_and(|it| it.secret == *given);
    if given.as_ref().is_some_and(|given| !is_used(given)) {
        shared.notices.keep(NOT_USED.to_owned());
        tracing::warn!("{NOT_USED}");
    }
}

/// Sends the linked members the present token.
fn pass_on(shared: &Shared) {
    if let Some(frame) = new_token(shared) {
        shared.links.tell(&frame, |key| may_know(shared, key));
    }
}

/// Sends the present token to the other end of a new link, if the link was made with another one.
pub(crate) fn hand_over(shared: &Shared, key: &NodeId, met_by: Tag, outbox: &Outbox) {
    let is_present = shared.config().tokens.present().is_none_or(|token| token.tag() == met_by);
    if is_present || !may_know(shared, key) {
        return;
    }
    if let Some(frame) = new_token(shared) {
        let _link_ended = outbox.push(frame.encode());
    }
}

fn may_know(shared: &Shared, key: &NodeId) -> bool {
    !shared.barred.has(key) && !shared.config().tokens.without().contains(key)
}

fn new_token(shared: &Shared) -> Option<LinkFrame> {
    let tokens = shared.config().tokens;
    let Token { secret, since_ms } = tokens.present()?.clone();
    let without = tokens.without().iter().copied().collect();
    let new = NewToken { cluster_token: secret, since_ms, maker: tokens.maker(), without };
    Some(LinkFrame::Control(Control::NewToken(new).encode()))
}
