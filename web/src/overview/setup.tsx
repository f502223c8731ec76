import { health, workers } from "../live/state";
import { CodeBlock } from "../markdown/view";
import { Icon } from "../parts/icon";

/** What is missing until something can be asked. It goes away by itself. */
export function Setup() {
  const connected = workers.value?.length ?? health.value?.workers_connected ?? 0;
  return (
    <section class="card setup" aria-labelledby="setup-title">
      <h2 id="setup-title">Almost there</h2>
      <div role="status">
      <ul class="steps">
        <Step done text="The server runs." />
        <Step done={connected > 0} text={connected > 0 ? "A machine is connected." : "No machine is connected yet."} />
        <Step done={false} text={connected > 0 ? "It offers no model yet: is its model server running?" : "No model server yet: start Ollama or give a GGUF file."} />
      </ul>
      </div>
      <p class="muted">This page looks by itself, and changes as soon as a model is there. Any one of these is enough:</p>
      <div class="ways">
        <Way title="Ollama on this machine" text="Start it and fetch a model; Warren finds it within half a minute." code={"ollama serve\nollama pull qwen3:4b"} />
        <Way title="A model file" text="Warren runs a model server for it. It can fetch the file, too." code={"warren model pull unsloth/Qwen3-4B-GGUF\nwarren up --gguf FILE"} />
        <Way title="Another machine" text="Make an invitation here, and use the code that it prints there." code={"warren invite\nwarren join CODE"} />
        <Way title="Only a look" text="A built-in demo model answers without any model server." code="warren up --demo" />
      </div>
    </section>
  );
}

function Step({ done, text }: { done: boolean; text: string }) {
  return (
    <li class={done ? "done" : "open"}>
      {done ? <Icon name="check" /> : <span class="spinner" aria-hidden="true" />}
      <span>{text}</span>
    </li>
  );
}

function Way({ title, text, code }: { title: string; text: string; code: string }) {
  return (
    <div class="way">
      <h3>{title}</h3>
      <p>{text}</p>
      <CodeBlock language="sh" text={code} />
    </div>
  );
}
