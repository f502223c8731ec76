/** Warren's mark and name. */
export function Brand() {
  return (
    <span class="brand">
      <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
        <rect width="32" height="32" rx="8" class="brand-ground" />
        <path d="M8 10c0 8 4 12 8 12s8-4 8-12M16 22v-9" class="brand-line" />
        <circle cx="8" cy="9" r="3" class="brand-dot" />
        <circle cx="24" cy="9" r="3" class="brand-dot" />
        <circle cx="16" cy="11" r="2.6" class="brand-dot" />
        <circle cx="16" cy="23" r="3.4" class="brand-dot" />
      </svg>
      <span>Warren</span>
    </span>
  );
}
