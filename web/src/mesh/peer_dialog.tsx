import { span } from "../live/words";
import { CopyButton } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import type { Peer } from "./answers";
import { hardwareOf, isPlain, linkOf, loadOf, peerState } from "./words";

/** All that is known of one peer. */
export function PeerDialog({ peer, onClose }: { peer: Peer | null; onClose: () => void }) {
  const name = peer ? peer.name || peer.id.slice(0, 8) : "";
  return (
    <Dialog open={peer !== null} onClose={onClose} label={`About ${name}`} title={name}>
      {peer && <Facts of={peer} />}
    </Dialog>
  );
}

function Facts({ of: peer }: { of: Peer }) {
  return (
    <>
      {isPlain(peer) && <p class="notice error"><span>What is sent to this peer, and what it answers, can be read by others on the way.</span></p>}
      <dl class="facts">
        {factsOf(peer).map(([name, text]) => <div key={name}><dt>{name}</dt><dd>{text}</dd></div>)}
        <div><dt>Id</dt><dd class="mesh-id"><code>{peer.id}</code><CopyButton text={peer.id} what="id" /></dd></div>
      </dl>
      <h3>Models that it serves</h3>
      {peer.models.length
        ? <ul class="chips peer-models" tabIndex={0} aria-label="Models">{peer.models.map((model) => <li key={model} class="chip"><span>{model}</span></li>)}</ul>
        : <p class="muted">None.</p>}
    </>
  );
}

function heard(secs: number | null): string {
  if (secs === null) return "never";
  return secs < 2 ? "now" : `${span(secs * 1000)} ago`;
}

/** The facts of a peer, by their names; what is unknown is left out. */
export function factsOf(peer: Peer): [string, string][] {
  const facts: [string, string][] = [
    ["State", [peerState(peer).words, ...loadOf(peer)].join(" · ")],
    ["Link", linkOf(peer)],
    ["Address", peer.address],
    ["Hardware", hardwareOf(peer).join(" · ")],
    ["Takes at once", String(peer.capacity)],
    ["Program", peer.warren ? `Warren ${peer.warren}` : "not a Warren"],
    ["Heard of", heard(peer.heardSecs)],
  ];
  return facts.filter(([, text]) => text);
}
