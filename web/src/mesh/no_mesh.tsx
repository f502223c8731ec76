/** What a mesh is, and how this server takes part in one. */
export function NoMesh() {
  return (
    <section class="card mesh-none" aria-labelledby="no-mesh-title">
      <h2 id="no-mesh-title">This server takes no part in a mesh</h2>
      <p class="muted">Machines of a household, a lab or a class can find each other without a server in the middle: any of them asks any other for an answer, and fetches a model from any that has it.</p>
      <p>On each machine, with the same passcode:</p>
      <pre tabIndex={0}><code>warren up --mesh-listen 0.0.0.0:9180 --mesh-advertise --mesh-passcode "$PASSCODE" --mesh-share peers</code></pre>
      <p>Where machines cannot find each other by themselves, name one: <code>--mesh-peer 192.168.1.20:9180</code>. Across networks they meet at a relay: <code>--mesh-relay wss://relay.example.org</code>.</p>
      <p class="muted small">In the configuration the same is <code>[mesh] enabled = true</code>, with what follows it. This page shows the mesh once the server was started so.</p>
    </section>
  );
}
