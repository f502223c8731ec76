//! Both ends against each other, with a kill at any step.

mod histories;
mod steps;
mod world;
