import { PROVIDERS } from "./new_session";

interface AgentProps {
  value: string;
  onChange: (value: string) => void;
  isRequired?: boolean;
  placeholder?: string;
}

/** Asks which agent it is to be: one that servers know, or one of the server's settings. */
export function AgentField({ value, onChange, isRequired = false, placeholder }: AgentProps) {
  return (
    <label class="field">
      <span>Agent</span>
      <input type="text" required={isRequired} list="agents" maxLength={100} placeholder={placeholder} autocapitalize="off" spellcheck={false} value={value} onInput={(event) => onChange(event.currentTarget.value)} />
      <datalist id="agents">{PROVIDERS.map((each) => <option key={each} value={each} />)}</datalist>
    </label>
  );
}
