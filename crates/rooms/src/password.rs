//! What joining and using a room may need.
