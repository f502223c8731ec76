//! The parts of a machine, and its condition.
//!
//! All of it blocks: files of `/proc` and `/sys` are read, tools of the GPUs' makers are run with a
//! deadline. Nothing here fails: what a machine does not tell is left out or estimated, and said to
//! be so. Linux is what is read whole; of a Mac, what `sysctl` tells; of Windows, the processor, the memory and NVIDIA's
//! GPUs.
//!
//! - [`machine`]: a machine as data, its tier, and the largest model that it takes
//! - `detect`: where that is read
//! - `table`: memory bandwidths of known GPUs and processors
//! - [`condition`]: heat, power and load; how much a machine should do because of them
//! - [`addresses`](mod@addresses): the addresses at which others could reach this machine, and its name
//! - [`space`]: what is free on a disk
//! - [`root`], [`tools`]: the files and programs that all this is read from
//! - `system`: differences between systems

pub mod addresses;
pub mod condition;
mod detect;
pub mod machine;
pub mod root;
pub mod space;
mod system;
mod table;
#[cfg(test)]
mod testing;
pub mod tools;

pub use addresses::{addresses, host_name, preferred_addresses};
pub use condition::{Condition, PowerRules, Thermal};
pub use machine::{Gpu, Machine, Vendor};
pub use root::Root;
pub use space::free_space;
pub use tools::{InstalledTools, Tools};
