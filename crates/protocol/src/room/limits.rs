//! Limits for the texts and numbers of rooms. They come from strangers, and are shown to everyone
//! in a room, sometimes on a terminal.

use url::Url;

use super::selector::RESERVED;

/// The longest id of a participant, in bytes.
pub const MAX_ID: usize = 128;
/// The longest nickname, in bytes.
pub const MAX_NICKNAME: usize = 128;
/// The longest name of a model, in bytes.
pub const MAX_MODEL: usize = 256;
/// The most models of a participant.
pub const MAX_MODELS: usize = 64;
/// The longest URL of a backend, in bytes.
pub const MAX_ENDPOINT: usize = 2048;
/// The longest name of a room, in characters.
pub const MAX_ROOM_NAME: usize = 128;
/// The longest code of a room, or id of one, in bytes.
pub const MAX_CODE: usize = 64;
/// The longest password, in bytes.
pub const MAX_PASSWORD: usize = 256;
/// The longest instructions, in bytes.
pub const MAX_INSTRUCTIONS: usize = 16 * 1024;
/// The longest id of an `llm:request`, in bytes.
pub const MAX_REQUEST_ID: usize = 256;
/// The longest selector, in bytes: a pattern around a model's name.
pub const MAX_SELECTOR: usize = 512;
/// The longest token that a server gave out, in bytes.
pub const MAX_TOKEN: usize = 256;
/// The longest name of a part of a machine, in bytes.
pub const MAX_SPEC: usize = 256;
/// The most texts that end an answer.
pub const MAX_STOPS: usize = 16;
/// The longest text that ends an answer, in bytes.
pub const MAX_STOP: usize = 256;
/// The most requests that a participant may take at once.
pub const MAX_CONCURRENT: u32 = 1024;
/// The longest time without use, in seconds, after which a room may end: ten years.
pub const MAX_EXPIRY_SECS: u64 = 315_360_000;

/// Why a text or a number is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unfit {
    /// It is empty.
    #[error("must not be empty")]
    Empty,
    /// It has too many bytes.
    #[error("must not be longer than {0} bytes")]
    TooLong(usize),
    /// It has too many characters.
    #[error("must not be longer than {0} characters")]
    TooManyCharacters(usize),
    /// It has too many entries.
    #[error("must not have more than {0} entries")]
    TooMany(usize),
    /// It has characters that control a terminal instead of being shown.
    #[error("must not hold control characters")]
    Control,
    /// The name of a model that is reserved for the server.
    #[error("must not begin with `{RESERVED}`")]
    Reserved,
    /// It is not a URL that a backend can have.
    #[error("must be a URL that begins with http:// or https://")]
    NotAUrl,
    /// A URL that would show its password to everyone.
    #[error("must not hold a user or a password: everybody in the room is shown it")]
    Credentials,
    /// A number that is too small or too large.
    #[error("must be from {0} to {1}")]
    Range(f64, f64),
}

/// The id of a participant: 1 to 128 bytes.
///
/// # Errors
/// [`Unfit`], like all functions of this module.
pub fn id(text: &str) -> Result<(), Unfit> {
    line(text, MAX_ID)
}

/// The nickname of a participant: 1 to 128 bytes.
///
/// # Errors
/// [`Unfit`].
pub fn nickname(text: &str) -> Result<(), Unfit> {
    line(text, MAX_NICKNAME)
}

/// A model of a participant: 1 to 256 bytes, without the [prefix](RESERVED) of the names under
/// which participants themselves are found.
///
/// # Errors
/// [`Unfit`].
pub fn model(text: &str) -> Result<(), Unfit> {
    line(text, MAX_MODEL)?;
    if text.starts_with(RESERVED) { Err(Unfit::Reserved) } else { Ok(()) }
}

/// Where a participant's backend is: an absolute URL of at most 2,048 bytes with `http` or `https`
/// and without credentials. Stock clients cannot show a room in which a participant's endpoint is
/// not a URL.
///
/// # Errors
/// [`Unfit`].
pub fn endpoint(text: &str) -> Result<(), Unfit> {
    line(text, MAX_ENDPOINT)?;
    let url = Url::parse(text).map_err(|_| Unfit::NotAUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Unfit::NotAUrl);
    }
    let named = !url.username().is_empty() || url.password().is_some();
    if named { Err(Unfit::Credentials) } else { Ok(()) }
}

/// The name of a room: 1 to 128 characters without the white space around them.
///
/// # Errors
/// [`Unfit`].
pub fn room_name(text: &str) -> Result<(), Unfit> {
    const MOST_BYTES_A_CHARACTER: usize = 4;
    let text = text.trim();
    if text.chars().take(MAX_ROOM_NAME + 1).count() > MAX_ROOM_NAME {
        return Err(Unfit::TooManyCharacters(MAX_ROOM_NAME));
    }
    line(text, MAX_ROOM_NAME * MOST_BYTES_A_CHARACTER)
}

/// A password: at most 256 bytes that can be sent in a header. An empty one counts as none.
///
/// # Errors
/// [`Unfit`].
pub fn password(text: &str) -> Result<(), Unfit> {
    if text.is_empty() { Ok(()) } else { line(text, MAX_PASSWORD) }
}

/// The instructions for a model: at most 16 KiB.
///
/// # Errors
/// [`Unfit`].
pub fn instructions(text: &str) -> Result<(), Unfit> {
    at_most(text, MAX_INSTRUCTIONS)
}

/// A text of one line that is shown, or by which something is looked up.
pub(super) fn line(text: &str, most: usize) -> Result<(), Unfit> {
    at_most(text, most)?;
    if text.trim().is_empty() {
        return Err(Unfit::Empty);
    }
    if text.chars().any(is_control) { Err(Unfit::Control) } else { Ok(()) }
}

pub(super) fn at_most(text: &str, most: usize) -> Result<(), Unfit> {
    if text.len() > most { Err(Unfit::TooLong(most)) } else { Ok(()) }
}

pub(super) fn range(number: f64, least: f64, most: f64) -> Result<(), Unfit> {
    if (least..=most).contains(&number) { Ok(()) } else { Err(Unfit::Range(least, most)) }
}

/// Control characters, and those that end a line or change the direction of the text.
fn is_control(character: char) -> bool {
    let turns = matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&str) -> Result<(), Unfit>;

    #[test]
    fn each_text_reaches_its_bound_and_does_not_pass_it() {
        let bounds: [(Check, usize); 6] = [
            (id, MAX_ID),
            (nickname, MAX_NICKNAME),
            (model, MAX_MODEL),
            (room_name, MAX_ROOM_NAME),
            (password, MAX_PASSWORD),
            (instructions, MAX_INSTRUCTIONS),
        ];
        for (check, most) in bounds {
            assert_eq!(check(&"x".repeat(most)), Ok(()));
            assert!(check(&"x".repeat(most + 1)).is_err());
        }
        let url = |length: usize| format!("http://h/{}", "x".repeat(length - 9));
        assert_eq!(endpoint(&url(MAX_ENDPOINT)), Ok(()));
        assert_eq!(endpoint(&url(MAX_ENDPOINT + 1)), Err(Unfit::TooLong(MAX_ENDPOINT)));
        assert_eq!(room_name(&"é".repeat(MAX_ROOM_NAME)), Ok(()));
        assert_eq!(room_name(&format!(" {} ", "x".repeat(MAX_ROOM_NAME))), Ok(()));
    }

    #[test]
    fn control_characters_are_refused() {
        let shown: [Check; 4] = [id, nickname, model, room_name];
        for check in shown {
            for bad in ["a\u{1b}[2J", "a\nb", "a\u{7f}", "a\u{202e}b", "a\u{9b}b", "a\0"] {
                assert_eq!(check(bad), Err(Unfit::Control), "{bad:?}");
            }
            assert_eq!(check(" "), Err(Unfit::Empty));
            assert_eq!(check("Zoë 👩‍🚀 *"), Ok(()));
        }
    }

    #[test]
    fn a_backend_is_at_a_url_that_everybody_may_see() {
        for good in ["http://127.0.0.1:11434", "https://h/v1?x=1", "http://[::1]:1/", "HTTP://h"] {
            assert_eq!(endpoint(good), Ok(()), "{good}");
        }
        for bad in ["localhost:11434", "/v1", "ftp://h", "http://", "http://h:99999", "http://a b"]
        {
            assert_eq!(endpoint(bad), Err(Unfit::NotAUrl), "{bad}");
        }
        for bad in ["http://user@h", "http://:secret@h", "http://u:p@h/"] {
            assert_eq!(endpoint(bad), Err(Unfit::Credentials), "{bad}");
        }
    }

    #[test]
    fn no_model_has_a_name_by_which_participants_are_found() {
        assert_eq!(model("room:any"), Err(Unfit::Reserved));
        assert_eq!(model("rooms/llama"), Ok(()));
    }
}
