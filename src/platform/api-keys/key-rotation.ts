/** Default time in ms for which a rotated key and its successor are both valid. */
export const DEFAULT_OVERLAP_MS = 24 * 3_600_000;
