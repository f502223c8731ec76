interface TabsProps<T extends string> {
  label: string;
  options: { value: T; name: string }[];
  value: T;
  onChange: (value: T) => void;
}

/** A choice of one of a few, side by side. The keys are those of radio buttons, which they are. */
export function Tabs<T extends string>({ label, options, value, onChange }: TabsProps<T>) {
  return (
    <fieldset class="tabs">
      <legend class="visually-hidden">{label}</legend>
      {options.map((option) => (
        <label key={option.value} class={option.value === value ? "chosen" : undefined}>
          <input type="radio" class="visually-hidden" name={label} checked={option.value === value} onChange={() => onChange(option.value)} />
          {option.name}
        </label>
      ))}
    </fieldset>
  );
}
