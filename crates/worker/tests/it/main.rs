//! A worker between a server of the test's own, over a pipe in memory, and a model server of raw
//! bytes.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod flow;
#[cfg(test)]
mod links;
#[cfg(test)]
mod offers;
#[cfg(test)]
mod support;
