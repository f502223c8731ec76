//! What programs are started with, and small things that they say.

mod launches;
mod refusals;
mod saying;
