/** The time. Everything that depends on it asks here, so that a test can travel. */
export class Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number {
    return Date.now();
  }
}
