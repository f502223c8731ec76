//! The cluster's token, and the former ones. Plain data; the time is passed in.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use base::{NodeId, Secret};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use serde::{Deserialize, Serialize};

/// How long a member may still link with a former token.
pub(crate) const FORMER: Duration = Duration::from_secs(30 * 24 * 3600);
/// The most former tokens that are kept.
const MOST_FORMER: usize = 8;
/// The most tokens whose hashes are kept to remember that they were in use here.
const MOST_KNOWN: usize = 64;
/// The most keys that must not get the token. Above it, the lowest is dropped.
const MOST_WITHOUT: usize = protocol::workspace::limits::BARRED_MAX;
/// The bound of a token's number: all JSON readers can read numbers below it.
const HIGHEST: u64 = 1 << 53;

/// By its tag two machines find out that they mean the same token, without showing it. It has bits
/// of the token's hash, or is 0 for a token that a person chose, whose hash could be guessed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Tag(u64);

impl Tag {
    pub(crate) fn of(token: &Secret) -> Self {
        let is_random = BASE64.decode(token.expose()).is_ok_and(|bytes| bytes.len() == LENGTH);
        let hash = seal::stock_hash(token.expose()).filter(|_| is_random);
        let bits = hash.and_then(|hash| u64::from_str_radix(hash.get(..16)?, 16).ok());
        Self(bits.unwrap_or_default())
    }
}

/// The length of a token that a member makes, in bytes.
const LENGTH: usize = 32;

/// A token, and when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) secret: Secret,
    /// In milliseconds since 1970, and above that of the token before; 0 for a token that a person
    /// chose.
    pub(crate) since_ms: u64,
}

impl Token {
    /// A new token. `before` is the number of the token that it replaces.
    pub(crate) fn random(before: u64, now_ms: u64) -> Self {
        let secret = Secret::from(BASE64.encode(rand::random::<[u8; LENGTH]>()));
        Self { secret, since_ms: now_ms.max(before.saturating_add(1)) }
    }

    pub(crate) fn tag(&self) -> Tag {
        Tag::of(&self.secret)
    }

    fn rank(&self) -> (u64, &str) {
        (self.since_ms, self.secret.expose())
    }
}

/// A former token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Former {
    token: String,
    /// When it is no longer accepted, in milliseconds since 1970.
    until_ms: u64,
}

/// The token that the other end of a handshake means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meant {
    /// The present token, or one that is not known here.
    Present,
    /// A former token.
    Former { secret: Secret, is_expired: bool },
}

/// The cluster's token, and the former ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TokenBook {
    present: Option<Token>,
    /// The key of the machine that made the present token, if that is known.
    maker: Option<NodeId>,
    /// The former tokens, the newest first.
    formers: VecDeque<Former>,
    /// The hashes of tokens that were in use here before, the newest last.
    known: VecDeque<String>,
    /// The keys of machines that were taken out. They must not get the token.
    without: BTreeSet<NodeId>,
}

/// The stored form.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct StoredTokens {
    /// Absent while the token of the settings is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    #[serde(default)]
    since_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    maker: Option<NodeId>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    formers: VecDeque<Former>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    known: VecDeque<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    without: BTreeSet<NodeId>,
}

/// The state of the token in the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfSettings {
    /// It is in use, or the settings name no token.
    Used,
    /// It is used for the first time, and replaces a stored one.
    New,
    /// It was in use earlier, and was replaced by the stored one.
    Old,
}

impl TokenBook {
    /// The stored tokens, with the token of the settings. The latter wins if it was never in use
    /// here, since a person has chosen it. Then no former token is accepted any more.
    pub(crate) fn load(stored: StoredTokens, of_settings: Option<&Secret>) -> (Self, OfSettings) {
        let StoredTokens { token, since_ms, maker, formers, known, without } = stored;
        let present = token.map(|token| Token { secret: Secret::from(token), since_ms });
        let mut book = Self { present, maker, formers, known, without };
        let Some(given) = of_settings else { return (book, OfSettings::Used) };
        let of_settings = match &book.present {
            None => OfSettings::Used,
            Some(present) if present.secret == *given => return (book, OfSettings::Used),
            Some(_) if book.known.contains(&hash(given)) => return (book, OfSettings::Old),
            Some(_) => OfSettings::New,
        };
        book.remember();
        book.formers.clear();
        book.maker = None;
        book.present = Some(Token { secret: given.clone(), since_ms: 0 });
        (book, of_settings)
    }

    pub(crate) fn stored(&self, of_settings: Option<&Secret>) -> StoredTokens {
        let is_given = |token: &Token| token.since_ms == 0 && Some(&token.secret) == of_settings;
        let own = self.present.as_ref().filter(|token| !is_given(token));
        StoredTokens {
            token: own.map(|token| token.secret.expose().to_owned()),
            since_ms: own.map_or(0, |token| token.since_ms),
            maker: self.maker,
            formers: self.formers.clone(),
            known: self.known.clone(),
            without: self.without.clone(),
        }
    }

    pub(crate) fn present(&self) -> Option<&Token> {
        self.present.as_ref()
    }

    /// The key of the machine that made the present token, if that is known.
    pub(crate) fn maker(&self) -> Option<NodeId> {
        self.maker
    }

    /// A token that replaces the present one in the whole cluster; `None` if this machine has no
    /// token yet.
    pub(crate) fn next(&self, now_ms: u64) -> Option<Token> {
        Some(Token::random(self.present.as_ref()?.since_ms, now_ms))
    }

    /// Whether a token replaces the present one. Of two that are made at once, all members choose
    /// the same.
    pub(crate) fn is_older_than(&self, token: &Token) -> bool {
        let is_sound = !token.secret.expose().is_empty() && token.since_ms < HIGHEST;
        is_sound && self.present.as_ref().is_some_and(|present| token.rank() > present.rank())
    }

    /// Makes this the present token. The one before it is still accepted from members for
    /// [`FORMER`].
    pub(crate) fn take(&mut self, token: Token, maker: Option<NodeId>, now_ms: u64) {
        let before = self.present.as_ref().filter(|before| before.secret != token.secret);
        if let Some(before) = before {
            let until_ms = now_ms.saturating_add(base::millis(FORMER));
            let former = Former { token: before.secret.expose().to_owned(), until_ms };
            self.remember();
            self.formers.push_front(former);
        }
        self.formers.retain(|former| former.token != token.secret.expose());
        self.formers.truncate(MOST_FORMER);
        (self.present, self.maker) = (Some(token), maker);
    }

    /// From now on these keys must not get the token, nor any later one.
    pub(crate) fn keep_from(&mut self, keys: impl IntoIterator<Item = NodeId>) {
        self.without.extend(keys);
        while self.without.len() > MOST_WITHOUT {
            self.without.pop_first();
        }
    }

    /// The keys that must not get the token.
    pub(crate) fn without(&self) -> &BTreeSet<NodeId> {
        &self.without
    }

    /// The machine with this key is a member again, and may get the token.
    pub(crate) fn admit(&mut self, key: &NodeId) {
        self.without.remove(key);
    }

    /// The token that the other end of a handshake means by this tag.
    pub(crate) fn meant(&self, tag: Tag, now_ms: u64) -> Meant {
        if self.present.as_ref().is_none_or(|present| present.tag() == tag) {
            return Meant::Present;
        }
        let mut formers = self.formers.iter();
        let former = formers.find(|former| Tag::of(&former.secret()) == tag);
        former.map_or(Meant::Present, |former| Meant::Former {
            secret: former.secret(),
            is_expired: now_ms >= former.until_ms,
        })
    }

    /// The former tokens that another member may still have, the newest first.
    pub(crate) fn formers(&self, now_ms: u64) -> Vec<Secret> {
        let valid = self.formers.iter().filter(|former| now_ms < former.until_ms);
        valid.map(Former::secret).collect()
    }

    /// Remembers that the present token has been in use.
    fn remember(&mut self) {
        let Some(hash) = self.present.as_ref().map(|token| hash(&token.secret)) else { return };
        self.known.retain(|known| *known != hash);
        self.known.push_back(hash);
        while self.known.len() > MOST_KNOWN {
            self.known.pop_front();
        }
    }
}

impl Former {
    fn secret(&self) -> Secret {
        Secret::from(self.token.as_str())
    }
}

fn hash(token: &Secret) -> String {
    seal::stock_hash(token.expose()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn token(text: &str, since_ms: u64) -> Token {
        Token { secret: Secret::from(text), since_ms }
    }

    fn book(text: &str, since_ms: u64) -> TokenBook {
        TokenBook {
            present: Some(token(text, since_ms)),
            maker: Some(key(1)),
            ..TokenBook::default()
        }
    }

    fn key(number: u16) -> NodeId {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        NodeId::new(bytes)
    }

    /// The token in use after a restart with this token in the settings.
    fn restarted(
        book: &TokenBook,
        before: Option<&str>,
        now: Option<&str>,
    ) -> (String, OfSettings) {
        let [before, now] = [before, now].map(|text| text.map(Secret::from));
        let json = serde_json::to_string(&book.stored(before.as_ref())).unwrap();
        let stored = serde_json::from_str(&json).unwrap();
        let (book, of_settings) = TokenBook::load(stored, now.as_ref());
        let present = book.present.map_or_else(String::new, |it| it.secret.expose().to_owned());
        (present, of_settings)
    }

    #[test]
    fn the_newest_token_wins_and_of_two_made_at_once_the_same_at_all() {
        let book = book("m", 7);
        assert!(!book.is_older_than(&token("z", 6)) && book.is_older_than(&token("a", 8)));
        assert!(book.is_older_than(&token("n", 7)) && !book.is_older_than(&token("l", 7)));
        assert!(!book.is_older_than(&token("m", 7)) && !book.is_older_than(&token("", 8)));
        assert!(!book.is_older_than(&token("n", HIGHEST)));
        assert!(!TokenBook::default().is_older_than(&token("n", 8)), "it is in no cluster");
        let next = book.next(3).unwrap();
        assert!(book.is_older_than(&next), "also if the clock is behind");
        assert_eq!(book.next(NOW).unwrap().since_ms, NOW);
    }

    #[test]
    fn a_replaced_token_opens_the_door_for_thirty_days() {
        let mut book = book("chosen", 0);
        let first = book.next(NOW).unwrap();
        book.take(first.clone(), None, NOW);
        let second = book.next(NOW).unwrap();
        book.take(second.clone(), None, NOW + 1);
        let meant = |tag, at| book.meant(tag, at);
        assert_eq!(meant(second.tag(), NOW), Meant::Present);
        let former =
            |secret: &Secret, is_expired| Meant::Former { secret: secret.clone(), is_expired };
        assert_eq!(meant(first.tag(), NOW), former(&first.secret, false));
        let chosen = Secret::from("chosen");
        assert_eq!(meant(Tag::default(), NOW), former(&chosen, false));
        let month = NOW + base::millis(FORMER);
        assert_eq!(meant(Tag::default(), month), former(&chosen, true));
        assert_eq!(meant(first.tag(), month), former(&first.secret, false));
        assert_eq!(book.formers(month), [first.secret]);
        assert_eq!(meant(Tag(99), NOW), Meant::Present, "an unknown one");
    }

    #[test]
    fn a_tag_shows_nothing_of_a_token_that_people_chose() {
        let random = Token::random(0, NOW);
        assert_ne!(random.tag(), Tag::default());
        for chosen in ["swift", "", &"ab".repeat(32)] {
            assert_eq!(Tag::of(&Secret::from(chosen)), Tag::default(), "{chosen}");
        }
    }

    #[test]
    fn a_stored_token_wins_over_one_of_the_settings_that_was_in_use_before() {
        let mut book = book("old", 0);
        assert_eq!(restarted(&book, Some("old"), Some("old")), ("old".into(), OfSettings::Used));
        assert_eq!(restarted(&book, Some("old"), None), (String::new(), OfSettings::Used));
        book.take(token("new", 5), None, NOW);
        assert_eq!(restarted(&book, Some("old"), Some("old")), ("new".into(), OfSettings::Old));
        assert_eq!(restarted(&book, Some("old"), None), ("new".into(), OfSettings::Used));
        assert_eq!(restarted(&book, Some("old"), Some("new")), ("new".into(), OfSettings::Used));
        let changed = restarted(&book, Some("old"), Some("never seen"));
        assert_eq!(changed, ("never seen".into(), OfSettings::New));
    }

    #[test]
    fn a_token_that_people_give_anew_shuts_the_ones_before_out() {
        let mut book = book("old", 0);
        book.take(token("new", 5), None, NOW);
        let given = Secret::from("never seen");
        let (book, _) = TokenBook::load(book.stored(None), Some(&given));
        assert_eq!(book.present, Some(token("never seen", 0)));
        assert!(book.formers(NOW).is_empty());
        // The next start finds the same.
        let again = TokenBook::load(book.stored(Some(&given)), Some(&given));
        assert_eq!(again, (book.clone(), OfSettings::Used));
        // It is replaced like any other, and then neither it nor "new" comes back by the settings.
        let mut book = book;
        book.take(token("newest", 9), None, NOW);
        for earlier in ["old", "new", "never seen"] {
            let kept = restarted(&book, Some("never seen"), Some(earlier));
            assert_eq!(kept, ("newest".into(), OfSettings::Old), "{earlier}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut book = book("first", 0);
        for number in 1..=100 {
            book.take(token(&format!("token {number}"), number), None, NOW);
        }
        assert_eq!((book.formers.len(), book.known.len()), (MOST_FORMER, MOST_KNOWN));
        book.keep_from((0..=MOST_WITHOUT as u16).map(key));
        assert_eq!(book.without.len(), MOST_WITHOUT);
        assert!(!book.without.contains(&key(0)));
        book.admit(&key(1));
        assert!(!book.without.contains(&key(1)));
    }
}
