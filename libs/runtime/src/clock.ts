/** The current time. All code that depends on the time uses this class, so that a test can set it. */
export class Clock {
  now(): number {
    return Date.now();
  }
}
