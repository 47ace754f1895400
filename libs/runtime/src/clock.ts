/** The current time. All code that depends on the time uses this class, so that a test can set it. */
export class Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number {
    return Date.now();
  }
}
