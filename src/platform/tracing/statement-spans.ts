import { context, type Span, SpanKind, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api';
import {
  ATTR_DB_COLLECTION_NAME,
  ATTR_DB_NAMESPACE,
  ATTR_DB_OPERATION_NAME,
  ATTR_DB_QUERY_SUMMARY,
  ATTR_DB_QUERY_TEXT,
  ATTR_DB_RESPONSE_STATUS_CODE,
  ATTR_DB_SYSTEM_NAME,
  ATTR_ERROR_TYPE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  DB_SYSTEM_NAME_VALUE_POSTGRESQL,
} from '@opentelemetry/semantic-conventions';
import type { Client } from 'pg';
import type { StatementEnd, StatementTracer } from '../database/statements/statement-tracing.js';
import { sharersOf } from './sharers.js';
import { describeStatement } from './statement-description.js';

/** Largest number of links of a span. The SDK has the same limit: it drops further ones, and logs each such span. */
const MAX_LINKS = 128;

/**
 * Makes a span of each statement that runs for a request: a child of the request's span, with links to all requests that
 * share it. Statements without a request, such as those of the heartbeat, and of requests that are not sampled get none.
 */
export class StatementSpans implements StatementTracer {
  constructor(private readonly tracer: Tracer) {}

  begin(text: string, client: Client): StatementEnd | undefined {
    const active = context.active();
    const parent = trace.getSpan(active);
    // The span may have ended: timers and other work that a request leaves behind keep its context.
    if (parent?.isRecording() !== true) return undefined;
    const { summary, operation, table, text: shownText } = describeStatement(text);
    const sharers = sharersOf(active);
    const span = this.tracer.startSpan(
      summary,
      {
        kind: SpanKind.CLIENT,
        attributes: {
          [ATTR_DB_SYSTEM_NAME]: DB_SYSTEM_NAME_VALUE_POSTGRESQL,
          [ATTR_DB_NAMESPACE]: client.database,
          [ATTR_SERVER_ADDRESS]: client.host,
          [ATTR_SERVER_PORT]: client.port,
          [ATTR_DB_QUERY_SUMMARY]: summary,
          [ATTR_DB_QUERY_TEXT]: shownText,
          [ATTR_DB_OPERATION_NAME]: operation,
          [ATTR_DB_COLLECTION_NAME]: table,
        },
        links: sharers.slice(0, MAX_LINKS).map((sharer) => ({ context: sharer.spanContext() })),
      },
      active,
    );
    for (const sharer of sharers) {
      // The link leads from the other requests' traces to the statement.
      if (sharer !== parent && sharer.isRecording()) sharer.addLink?.({ context: span.spanContext() });
    }
    return (error) => end(span, error);
  }
}

function end(span: Span, error: unknown): void {
  if (error !== undefined) {
    // No message, because PostgreSQL's messages contain values of clients.
    const { code, name } = error as { code?: unknown; name?: string };
    if (isSqlState(code)) span.setAttribute(ATTR_DB_RESPONSE_STATUS_CODE, code);
    span.setAttribute(ATTR_ERROR_TYPE, typeof code === 'string' ? code : (name ?? '_OTHER'));
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}

function isSqlState(code: unknown): code is string {
  return typeof code === 'string' && /^[\dA-Z]{5}$/.test(code);
}
