import { useState } from "preact/hooks";
import { span } from "../live/words";
import { VirtualList } from "../parts/virtual_list";
import { PeerDialog } from "./peer_dialog";
import type { Peer, Unlinked } from "./answers";
import { hardwareOf, isPlain, linkOf, loadOf, peerCount, peerState, servedModels } from "./words";

/** More peers than this are put in a list of fixed height, whose rows are as high, in pixels. */
const MANY = 12;
const ROW = 84;

interface PeersProps {
  all: { peers: Peer[]; unlinked: Unlinked[] } | null;
}

/** The other machines, and those that could not be linked to. */
export function Peers({ all }: PeersProps) {
  const [typed, setTyped] = useState("");
  const [opened, setOpened] = useState<string | null>(null);
  const peers = all?.peers ?? [];
  const shown = matching(peers, typed);
  return (
    <section aria-labelledby="peers-title">
      <div class="section-head">
        <h2 id="peers-title">{peers.length ? peerCount(peers) : "Peers"}</h2>
        {peers.length > MANY && <input type="search" class="filter" aria-label="Filter peers" placeholder="Name, model, chip" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />}
      </div>
      <div class="card rows">
        {!all && <p class="empty muted" role="status">Looking for peers…</p>}
        {all && !peers.length && <p class="empty muted">No peer is known. Name one with <code>--mesh-peer HOST:PORT</code>, or have them look for each other with <code>--mesh-advertise</code>.</p>}
        {peers.length > 0 && !shown.length && <p class="empty muted" role="status">No peer is like that.</p>}
        {shown.length > 0 && <Rows peers={shown} onOpen={setOpened} />}
      </div>
      {all && all.unlinked.length > 0 && <NoLinks all={all.unlinked} />}
      <PeerDialog peer={peers.find(({ id }) => id === opened) ?? null} onClose={() => setOpened(null)} />
    </section>
  );
}

/** The peers of which a name, a model, the chip or the id has what was typed. */
export function matching(peers: Peer[], typed: string): Peer[] {
  const wanted = typed.trim().toLowerCase();
  if (!wanted) return peers;
  return peers.filter(({ name, id, chip, models }) => [name, id, chip, ...models].some((text) => text.toLowerCase().includes(wanted)));
}

function Rows({ peers, onOpen }: { peers: Peer[]; onOpen: (id: string) => void }) {
  const row = (peer: Peer) => <PeerRow peer={peer} onOpen={() => onOpen(peer.id)} />;
  if (peers.length > MANY) return <VirtualList items={peers} rowHeight={ROW} keyOf={({ id }) => id} row={row} label="Peers" class="peers-long" />;
  return <ul aria-label="Peers">{peers.map((peer) => <li key={peer.id}>{row(peer)}</li>)}</ul>;
}

function PeerRow({ peer, onOpen }: { peer: Peer; onOpen: () => void }) {
  const { words, look } = peerState(peer);
  const name = peer.name || peer.id.slice(0, 8);
  return (
    <div class="peer-row">
      <span class="peer-words">
        <b>{name}</b>
        <span class="muted small">{[...hardwareOf(peer), servedModels(peer)].join(" · ")}</span>
        <span class={`small ${isPlain(peer) ? "plain-link" : "muted"}`}>{linkOf(peer)}</span>
      </span>
      <span class="peer-state">
        <span><span class={`dot ${look}`} aria-hidden="true" /> {words}</span>
        <span class="muted small">{loadOf(peer).join(" · ")}</span>
      </span>
      <button type="button" class="button small" aria-label={`About ${name}`} onClick={onOpen}>About</button>
    </div>
  );
}

function NoLinks({ all }: { all: Unlinked[] }) {
  return (
    <>
      <h3>Met, and not linked to</h3>
      <ul class="card rows" aria-label="Machines without a link">
        {all.map(({ place, why, metSecs }) => <li key={place} class="no-link"><b>{place}</b><span>{why}</span><span class="muted small">{span(metSecs * 1000)} ago</span></li>)}
      </ul>
    </>
  );
}
