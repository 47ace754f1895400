/**
 * A value of `traceparent`: version, trace-id, parent-id and flags, in lower case (W3C Trace Context, section 3.2). Versions
 * above 00 may have more behind them.
 */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?=-|$)/;

/** Characters of a value of version 00. */
const LENGTH_OF_VERSION_00 = 55;

/** The trace-id that the caller has sent, 32 characters of lower-case hex; undefined for a value that is not well-formed. */
export function traceIdFrom(traceparent: string | string[]): string | undefined {
  // Node joins repeated fields with a comma, which no value has behind its flags.
  const [, version, traceId] = TRACEPARENT.exec(String(traceparent)) ?? [];
  return version === '00' && traceparent.length !== LENGTH_OF_VERSION_00 ? undefined : traceId;
}
