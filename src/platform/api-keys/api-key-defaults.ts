/** Time in ms that a key and its successor are valid together, unless the operator chooses another. */
export const DEFAULT_OVERLAP_MS = 24 * 3_600_000;
