/** OpenTelemetry's active span, for code that may run without OpenTelemetry. */
export interface ActiveTrace {
  /** The trace-id of the active span; undefined without a recording one. */
  traceId(): string | undefined;
  /** Binds a function to the active span, which is then active whenever the function runs. */
  bind<Work extends (...parameters: never[]) => unknown>(work: Work): Work;
}

/** Set once at start; undefined while nothing is traced, so that requests have no extra step. */
export let activeTrace: ActiveTrace | undefined;

/** Sets the access to the active span; undefined removes it. */
export function setActiveTrace(trace: ActiveTrace | undefined): void {
  activeTrace = trace;
}
