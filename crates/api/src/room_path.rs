//! The paths below a room's.

use http::Uri;

/// The path of a request without its room, whose code is a credential: `/rooms/CODE/v1/models`
/// becomes `/v1/models`.
pub(crate) fn path(uri: &Uri) -> &str {
    match split_room(uri.path()) {
        (_, "") => "/",
        (_, path) => path,
    }
}

/// A path in two parts: the room's, such as `/rooms/CODE`, which is empty on other paths; and the rest.
pub(crate) fn split_room(path: &str) -> (&str, &str) {
    const ROOMS: &str = "/rooms/";
    let Some(in_room) = path.strip_prefix(ROOMS) else { return ("", path) };
    path.split_at(in_room.find('/').map_or(path.len(), |end| ROOMS.len() + end))
}
