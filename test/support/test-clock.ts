import { Clock } from '../../src/platform/clock.js';

/** A clock that goes like the real one until a test travels. */
export class TestClock extends Clock {
  private fixed: number | undefined;

  override now(): number {
    return this.fixed ?? super.now();
  }

  /** Stops the clock at this instant. */
  travelTo(instant: string | number | Date): void {
    this.fixed = new Date(instant).getTime();
  }

  /** Lets the clock go on as the real one. */
  comeBack(): void {
    this.fixed = undefined;
  }
}
