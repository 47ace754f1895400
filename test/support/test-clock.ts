import { Clock } from '#runtime';

/** Shows the real time until a test sets the time. */
export class TestClock extends Clock {
  private fixed: number | undefined;

  override now(): number {
    return this.fixed ?? super.now();
  }

  /** Stops the clock at this time. */
  travelTo(instant: string | number | Date): void {
    this.fixed = new Date(instant).getTime();
  }

  /** Returns to the real clock. */
  comeBack(): void {
    this.fixed = undefined;
  }
}
