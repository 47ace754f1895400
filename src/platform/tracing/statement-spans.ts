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

/** Most links of a span, as the SDK has it: it drops further ones and logs each such span. */
const MAX_LINKS = 128;

/**
 * A span of each statement that is run for a request: a child of the request, with links to all requests that share it.
 * Statements of nobody, such as those of the heartbeat, and of requests that are not sampled have none.
 */
export class StatementSpans implements StatementTracer {
  constructor(private readonly tracer: Tracer) {}

  begin(text: string, client: Client): StatementEnd | undefined {
    const active = context.active();
    const parent = trace.getSpan(active);
    // A request that is over has lent its context to what it left behind, such as a timer.
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
      // Whoever looks at one of the other traces finds the statement from there.
      if (sharer !== parent && sharer.isRecording()) sharer.addLink?.({ context: span.spanContext() });
    }
    return (error) => end(span, error);
  }
}

function end(span: Span, error: unknown): void {
  if (error !== undefined) {
    // Without a message: those of PostgreSQL hold values of clients.
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
