import pg from 'pg';

/** Ends the span of a statement: with its error, or without one. */
export type StatementEnd = (error?: unknown) => void;

/** Traces the statements of pooled connections, our own and TypeORM's. Its functions must not throw. */
export interface StatementTracer {
  /** Called before the statement is sent. Returns undefined if the statement is not traced. */
  begin(text: string, client: pg.Client): StatementEnd | undefined;
}

let tracer: StatementTracer | undefined;

/** Sets the tracer of all pools that are created from now on; undefined for none. */
export function traceStatements(statementTracer: StatementTracer | undefined): void {
  tracer = statementTracer;
}

type Query = (this: pg.Client, ...parameters: unknown[]) => unknown;
type Callback = (error: unknown, ...results: unknown[]) => unknown;

/** The first parameter of `query`: a text, settings, or an instance of a query class (pg's interface `Submittable`). */
type QueryInput = string | { readonly text?: string; readonly submit?: unknown; callback?: unknown };

/**
 * A subclass of a client that traces its statements. Returns the class itself if there is no tracer, or if OpenTelemetry's
 * instrumentation of pg traces the statements already; it marks the `query` that it replaces.
 */
export function traced(Client: typeof pg.Client): typeof pg.Client {
  if (tracer === undefined || '__wrapped' in queryOf(pg.Client)) return Client;
  const begin = tracer.begin.bind(tracer);
  const query = queryOf(Client);
  class TracedClient extends Client {}
  // Assigned, because the overloads of `query` cannot be overridden by one method.
  const tracedQuery: Query = function (input, ...others) {
    const statement = input as QueryInput;
    if (typeof statement === 'string') return ended(this, begin(statement, this), query, [input, ...others]);
    const { text = '', submit, callback } = statement;
    if (submit === undefined) return ended(this, begin(text, this), query, [input, ...others]);
    // Without a callback, as in a stream, the end of a statement cannot be noticed.
    const end = typeof callback === 'function' ? begin(text, this) : undefined;
    if (end !== undefined) statement.callback = endedBy(end, callback as Callback);
    return query.call(this, input, ...others);
  };
  TracedClient.prototype.query = tracedQuery as never;
  return TracedClient;
}

function queryOf(Client: typeof pg.Client): Query {
  return (Client.prototype as unknown as { query: Query }).query;
}

/** Runs a statement, and calls `end` when pg reports its end, be it to a callback or by a promise. */
function ended(client: pg.Client, end: StatementEnd | undefined, query: Query, parameters: unknown[]): unknown {
  if (end === undefined) return query.apply(client, parameters);
  const [input, ...others] = parameters;
  const last = others.at(-1);
  if (typeof last === 'function') return query.call(client, ...parameters.slice(0, -1), endedBy(end, last as Callback));
  const { callback } = input as { callback?: unknown };
  // A new object, because the caller may run the same settings again.
  if (typeof callback === 'function') {
    const own: unknown = Object.create(input as object, {
      callback: { value: endedBy(end, callback as Callback), writable: true },
    });
    return query.call(client, own, ...others);
  }
  const answer = query.apply(client, parameters) as Promise<unknown>;
  answer.then(() => end(), end);
  return answer;
}

function endedBy(end: StatementEnd, callback: Callback): Callback {
  return function (this: unknown, error, ...results) {
    end(error ?? undefined);
    return callback.call(this, error, ...results);
  };
}
