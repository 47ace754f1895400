/** Under which Reflect metadata key a handler carries its Deprecation. */
export const DEPRECATION_METADATA = 'petstore:deprecation';

/** The announced end of an operation. */
export interface Deprecation {
  /** From when on clients should no longer use it. */
  readonly since: Date;
  /** From when on it may be gone. */
  readonly sunset: Date;
  /** What to call instead: a path below the version segment, such as `/orders`. */
  readonly successor: string;
  /** How to call it instead; one sentence for the documents. */
  readonly replacement: string;
}

/** The message of the 410 after the sunset. */
export function removalMessage({ sunset, replacement }: Deprecation): string {
  return `This operation was removed on ${sunset.toISOString().slice(0, 10)}. ${replacement}`;
}
