/**
 * Tells tracing which requests share a statement. Otherwise the statement would belong only to the request that happened to
 * start it.
 */
export interface SharerTracer {
  /** Returns a mark of the current caller. */
  current(): unknown;
  /** Runs a shared statement on behalf of all its callers. */
  runFor<Result>(sharers: readonly unknown[], run: () => Result): Result;
}

/** Set once at start; undefined if nothing is traced. */
export let sharerTracer: SharerTracer | undefined;

/** Sets the tracer; undefined removes it. */
export function traceSharers(tracer: SharerTracer | undefined): void {
  sharerTracer = tracer;
}
