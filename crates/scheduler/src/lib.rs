//! Runs the dispatcher: jobs, exchanges and the provider trait.
