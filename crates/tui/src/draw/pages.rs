//! The lists that are polled while they are shown: the peers of the mesh, usage and keys.

use base::UsageBy;
use client::admin::{KeyJson, mesh::MeshPeer, usage::UsageRow};
use ratatui::{
    Frame,
    layout::{Constraint, Rect},
    text::Line,
    widgets::{Paragraph, Row},
};

use super::{
    parts::{ListView, cell, explain, framed, known, name, number, properties, span, styled},
    theme::Theme,
};
use crate::{
    app::{
        App, layout,
        pages::{SINCE, SPLITS},
        reading::Reading,
        workspace::beginning,
    },
    text,
};

pub(super) fn mesh(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let widths = [
        Constraint::Fill(2),
        Constraint::Length(6),
        Constraint::Length(11),
        Constraint::Fill(3),
        Constraint::Length(6),
        Constraint::Length(7),
    ];
    let listed = ListView {
        title: &format!("Peers: {}", app.mesh.peers().len()),
        header: &["Name", "Link", "Status", "Models", " Tok/s", "  Heard"],
        widths: &widths,
        list: app.mesh.list,
        is_chosen: true,
    };
    let area = layout::page_list(app);
    listed.draw(area, app.mesh.peers(), |peer, widths| row(peer, widths, theme), theme, frame);
    let is_empty = app.mesh.peers().is_empty();
    explain(&app.mesh.reading, is_empty, &no_peers(app), area, theme, frame);
    if let Some(peer) = app.mesh.whole() {
        whole(peer, app, theme, frame);
    }
}

fn no_peers(app: &App) -> String {
    let none = "No peer is known. Name one with --mesh-peer HOST:PORT, or look for them with --mesh-advertise.";
    let unlinked = app.mesh.unlinked();
    if unlinked.is_empty() { none.to_owned() } else { text::block(&unlinked.join("\n")) }
}

fn row(peer: &MeshPeer, widths: &[usize], theme: Theme) -> Row<'static> {
    let style = if peer.status == "ok" { theme.good() } else { theme.warn() };
    Row::new([
        name(peer_name(peer), widths[0]),
        cell(&peer.link),
        styled(text::line(&status(peer)), style),
        name(&peer.models.join(", "), widths[3]),
        known(peer.tokens_per_second.map(|speed| format!("{speed:.1}"))),
        known(peer.heard_secs.map(span)),
    ])
}

/// The name of a peer, or its id if it has none.
fn peer_name(peer: &MeshPeer) -> &str {
    if peer.name.trim().is_empty() { &peer.id } else { &peer.name }
}

fn status(peer: &MeshPeer) -> String {
    match peer.throttle {
        1..100 if peer.status == "ok" => format!("ok, {} %", peer.throttle),
        _ => peer.status.clone(),
    }
}

fn whole(peer: &MeshPeer, app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let area = layout::popup(app, 76, 15);
    let text = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let lines = [
        ("Name", peer.name.clone()),
        // The end of an id is compared as often as its beginning.
        ("Id", text::middle(&peer.id, 58)),
        ("Link", format!("{} {}", peer.link, peer.address.as_deref().unwrap_or_default())),
        ("Sealed", if peer.sealed { "yes" } else { "no" }.to_owned()),
        ("Status", status(peer)),
        ("Models", peer.models.join(", ")),
        ("Takes", peer.capacity.to_string()),
        ("Waiting", peer.queue_depth.to_string()),
        ("Machine", format!("{}, {:.0} GiB", peer.chip, peer.ram_gb)),
        ("Heat", peer.thermal.clone()),
        ("Warren", text(peer.warren.as_deref())),
    ];
    properties("Peer", &lines, area, theme, frame);
}

pub(super) fn usage(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let [split, area] = layout::usage(app);
    splits(app, split, theme, frame);
    let number = Constraint::Length(11);
    let by = app.usage.by;
    let listed = ListView {
        title: &totals(app),
        header: &[title(by), "   Requests", "         In", "        Out", "     Errors"],
        widths: &[Constraint::Fill(1), number, number, number, number],
        list: app.usage.list,
        is_chosen: true,
    };
    listed.draw(area, app.usage.rows(), |it, widths| used(app, it, by, widths), theme, frame);
    let is_empty = app.usage.rows().is_empty();
    explain(&app.usage.reading, is_empty, "Nothing was used.", area, theme, frame);
}

fn splits(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let word = |by: &UsageBy| {
        let style = if *by == app.usage.by { theme.chosen() } else { theme.title() };
        ratatui::text::Span::styled(format!(" {} ", title(*by)), style)
    };
    let words: Vec<_> = SPLITS.iter().map(word).collect();
    let title = format!("Last {} days by", SINCE.trim_end_matches('d'));
    let shown = Paragraph::new(Line::from(words)).block(framed(&title, false, theme));
    frame.render_widget(shown, area);
}

const fn title(by: UsageBy) -> &'static str {
    match by {
        UsageBy::Key => "Key",
        UsageBy::Model => "Model",
        UsageBy::Provider => "Provider",
        UsageBy::Api => "API",
        UsageBy::Day => "Day",
    }
}

fn totals(app: &App) -> String {
    let Reading::Known(report) = &app.usage.reading else { return "Usage".to_owned() };
    let all = &report.totals;
    let more = if report.truncated { ", the most used" } else { "" };
    format!("Usage: {} requests, {} tokens{more}", all.requests, all.total_tokens)
}

fn used(app: &App, row: &UsageRow, by: UsageBy, widths: &[usize]) -> Row<'static> {
    let value = row.get(by).unwrap_or_default();
    let shown = match by {
        UsageBy::Key => app.key_name(value),
        _ => value.to_owned(),
    };
    let shown = if shown.is_empty() { "-".to_owned() } else { shown };
    let counts = &row.counts;
    Row::new([
        name(&shown, widths[0]),
        number(counts.requests),
        number(counts.prompt_tokens),
        number(counts.completion_tokens),
        number(counts.errors),
    ])
}

pub(super) fn keys(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let area = layout::page_list(app);
    let widths = [
        Constraint::Fill(2),
        Constraint::Length(11),
        Constraint::Fill(3),
        Constraint::Length(10),
        Constraint::Length(10),
    ];
    let keys = app.access_keys.reading.all();
    let listed = ListView {
        title: &format!("Keys: {}", keys.len()),
        header: &["Name", "Begins", "For", "Used", "Expires"],
        widths: &widths,
        list: app.access_keys.list,
        is_chosen: true,
    };
    listed.draw(area, keys, key, theme, frame);
    let none = "No keys: c makes one.";
    explain(&app.access_keys.reading, keys.is_empty(), none, area, theme, frame);
    if let Some(why) = &app.access_keys.refused {
        let at = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
        let words = text::clip(&format!(" {} ", text::line(why)), at.width.into());
        frame.render_widget(Paragraph::new(words).style(theme.bad()), at);
    }
}

fn key(key: &KeyJson, widths: &[usize]) -> Row<'static> {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let day =
        |at: Option<jiff::Timestamp>| at.map_or("-".to_owned(), |at| at.strftime("%F").to_string());
    let name_of = if key.name.trim().is_empty() { beginning(&key.id) } else { key.name.clone() };
    Row::new([
        name(&name_of, widths[0]),
        cell(&key.prefix),
        name(&scopes.join(", "), widths[2]),
        cell(&day(key.last_used_at)),
        cell(&day(key.expires_at)),
    ])
}
