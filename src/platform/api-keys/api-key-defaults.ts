/** Scopes of a key that was made without naming any. */
export const DEFAULT_SCOPES: readonly string[] = ['pets:read', 'pets:write'];

/** Time in ms that a key and its successor are valid together, unless the operator says another. */
export const DEFAULT_OVERLAP_MS = 24 * 3_600_000;
