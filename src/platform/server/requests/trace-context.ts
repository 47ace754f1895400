/**
 * A value of `traceparent`: version, trace-id, parent-id and flags, in lower case (W3C Trace Context, section 3.2). In
 * versions above 00 more fields may follow.
 */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?=-|$)/;

/** Length of a value of version 00, in characters. */
const LENGTH_OF_VERSION_00 = 55;

/** The trace-id that the caller has sent, 32 characters of lower-case hex; undefined for a value that is not well-formed. */
export function traceIdFrom(traceparent: string | string[]): string | undefined {
  // Node joins repeated fields with a comma. The pattern then does not match, because no comma may follow the flags.
  const [, version, traceId] = TRACEPARENT.exec(String(traceparent)) ?? [];
  return version === '00' && traceparent.length !== LENGTH_OF_VERSION_00 ? undefined : traceId;
}
