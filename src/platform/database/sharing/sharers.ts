/**
 * Tells tracing for whom a shared statement runs. Without it the statement would belong to whichever request happened to
 * start it.
 */
export interface SharerTracer {
  /** Marks the caller of this moment. */
  current(): unknown;
  /** Runs what callers share, on behalf of all of them. */
  runFor<Result>(sharers: readonly unknown[], run: () => Result): Result;
}

/** Set at start, or never: undefined while nothing is traced. */
export let sharerTracer: SharerTracer | undefined;

/** Sets what follows callers that share statements; undefined for nothing. */
export function traceSharers(by: SharerTracer | undefined): void {
  sharerTracer = by;
}
