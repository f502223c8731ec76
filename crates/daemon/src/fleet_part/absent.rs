//! Stands in for the fleet in a program that was built without NATS.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::bail;
use api::Api;
use axum::Router;
use protocol::admin::status::FleetHealth;
use rooms::Rooms;
use scheduler::{Observer, Scheduler};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::FleetCounts;
use crate::{parts::Tokens, settings::Settings, stores::Stores};

/// The observer of workers, which this program does not need.
#[derive(Clone, Default)]
pub(crate) struct FleetObserver(());

impl FleetObserver {
    pub(crate) fn observers(&self, _: &Settings) -> Vec<Arc<dyn Observer>> {
        Vec::new()
    }
}

/// The rooms of the fleet.
#[derive(Clone)]
pub(crate) enum RoomsOfFleet {}

impl RoomsOfFleet {
    pub(crate) async fn keep(self, _: CancellationToken) {
        match self {}
    }

    pub(crate) async fn see_off(&self, _: Duration) {
        match *self {}
    }
}

/// The fleet, which this program cannot be in.
#[derive(Clone)]
pub(crate) enum FleetPart {}

impl FleetPart {
    pub(crate) fn start(
        settings: &Settings,
        _: &Tokens,
        _: &Scheduler,
        _: FleetObserver,
        _: SocketAddr,
    ) -> anyhow::Result<Option<Self>> {
        if settings.fleet.is_some() {
            bail!(
                "this program was built without NATS, and cannot use --cluster: build it with the feature nats"
            )
        }
        Ok(None)
    }

    pub(crate) fn problem(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn health(&self) -> FleetHealth {
        match *self {}
    }

    pub(crate) fn counts(&self) -> FleetCounts {
        match *self {}
    }

    pub(crate) async fn share_rooms(
        &self,
        _: &Api,
        _: Router,
        _: (&Rooms, &Stores),
        _: &Scheduler,
        _: TaskTracker,
    ) -> RoomsOfFleet {
        match *self {}
    }

    pub(crate) fn drain(&self) {
        match *self {}
    }

    pub(crate) async fn shut_down(&self) {
        match *self {}
    }
}
