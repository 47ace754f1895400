import pg from 'pg';

/** Ends the span of a statement: with its error, or without one. */
export type StatementEnd = (error?: unknown) => void;

/** Follows each statement that a pooled connection runs, our own and TypeORM's. Its functions must not throw. */
export interface StatementTracer {
  /** Called before the statement is sent. Returns undefined if the statement is not followed. */
  begin(text: string, client: pg.Client): StatementEnd | undefined;
}

let tracer: StatementTracer | undefined;

/** Sets what follows the statements of all pools that are made from now on; undefined for nothing. */
export function traceStatements(by: StatementTracer | undefined): void {
  tracer = by;
}

type Query = (this: pg.Client, ...parameters: unknown[]) => unknown;
type Callback = (error: unknown, ...results: unknown[]) => unknown;

/** A statement as `query` takes it: its text, its settings, or a query class of pg's interface `Submittable`. */
type QueryInput = string | { readonly text?: string; readonly submit?: unknown; callback?: unknown };

/**
 * A client whose statements are followed; the same class while nobody follows them. Statements that another tool follows
 * already (OpenTelemetry's instrumentation of pg, which marks the `query` that it replaces) are left to it.
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
    // The end of a query class without a callback, such as a stream, cannot be seen.
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

/** Runs a statement that `pg` reports to the last parameter, or by a promise. */
function ended(client: pg.Client, end: StatementEnd | undefined, query: Query, parameters: unknown[]): unknown {
  if (end === undefined) return query.apply(client, parameters);
  const [input, ...others] = parameters;
  const last = others.at(-1);
  if (typeof last === 'function') return query.call(client, ...parameters.slice(0, -1), endedBy(end, last as Callback));
  const { callback } = input as { callback?: unknown };
  // Not assigned: the same settings may be run again.
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
