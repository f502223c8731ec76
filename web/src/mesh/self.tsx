import type { ComponentChildren } from "preact";
import { CopyButton } from "../parts/copy";
import { Icon } from "../parts/icon";
import type { MeshId, Relay } from "./answers";
import { shareWords } from "./words";

/** This machine, as others see it. */
export function Self({ of: self }: { of: MeshId }) {
  return (
    <section aria-labelledby="self-title">
      <h2 id="self-title">This machine</h2>
      {self.problems.map((problem) => <p key={problem} class="notice error" role="alert"><Icon name="warn" /><span>{problem}</span></p>)}
      <dl class="card mesh-self">
        <Fact name="Name">{self.name || "none"}</Fact>
        <Fact name="Fingerprint"><code>{self.fingerprint}</code></Fact>
        <Fact name="Id"><span class="mesh-id"><code>{self.id}</code><CopyButton text={self.id} what="id" /></span></Fact>
        <Fact name="Listens at">{self.listen ? <code>{self.listen}</code> : <span class="muted">nowhere: it connects to others, and is not connected to</span>}</Fact>
        <Fact name="Shares">{shareWords(self.share)}</Fact>
        {self.relays.length > 0 && <Fact name="Relays"><Relays all={self.relays} /></Fact>}
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

function Relays({ all }: { all: Relay[] }) {
  return (
    <ul>
      {all.map(({ url, connected, error }) => (
        <li key={url}><span class={`dot ${connected ? "good" : "bad"}`} aria-hidden="true" /> <code>{url}</code> <span class="muted small">{connected ? "connected" : error || "not connected"}</span></li>
      ))}
    </ul>
  );
}
