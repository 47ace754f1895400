import { type EventEmitter, once } from 'node:events';
import pg, { type ClientBase } from 'pg';

/*
 * Undocumented members and modules of pg. package.json pins pg to the exact version whose lib/client.js, lib/connection.js and
 * lib/utils.js these functions and `PreparedQuery` were written for. Read those files again before you pin another version.
 */

/** Longest time in ms between the error of a statement and the status of its transaction. */
const STATUS_MS = 1_000;

interface ClientInternals {
  /** The statement that PostgreSQL has neither carried out nor refused. */
  readonly _activeQuery?: object | null;
  readonly readyForQuery: boolean;
  readonly connection: EventEmitter & { readonly stream: { write: unknown; destroy(error?: Error): void } };
}

/** Imported dynamically, because a static import of a missing module would fail the start. */
const utils = await import('pg/lib/utils.js').catch(() => undefined);

const internalsOf = (client: ClientBase): ClientInternals => client as unknown as ClientInternals;

/** Collects the parameters that the server of a connection reports, by name, as soon as they change. */
export function collectParameters(client: ClientBase, parameters: Map<string, string>): void {
  internalsOf(client).connection.on(
    'parameterStatus',
    (parameter: Record<'parameterName' | 'parameterValue', string>) =>
      parameters.set(parameter.parameterName, parameter.parameterValue),
  );
}

/** The statement that a client has sent, and that PostgreSQL has neither carried out nor refused. */
export function unansweredStatement(client: ClientBase): object | undefined {
  return internalsOf(client)._activeQuery ?? undefined;
}

/**
 * The status of a client's transaction, as `getTransactionStatus` returns it. PostgreSQL sends it after the error of a statement,
 * maybe in another packet.
 *
 * @throws AbortError when it does not arrive in STATUS_MS
 */
export async function transactionStatusOf(client: ClientBase): Promise<string | null> {
  const { readyForQuery, connection } = internalsOf(client);
  if (!readyForQuery) await once(connection, 'readyForQuery', { signal: AbortSignal.timeout(STATUS_MS) });
  return client.getTransactionStatus();
}

/**
 * Closes a client's socket without a message to PostgreSQL, which might not receive it.
 *
 * @param error the error with which a statement in flight fails; one of pg by default
 */
export function destroySocket(client: ClientBase, error?: Error): void {
  internalsOf(client).connection.stream.destroy(error);
}

/** Ends a client without waiting for PostgreSQL: sends Terminate, then closes the socket. */
export function hangUp(client: pg.Client | undefined): void {
  if (client === undefined) return;
  client.end().catch(() => undefined);
  // Deferred, so that the socket sends the message of `end` first.
  setImmediate(() => destroySocket(client));
}

/**
 * The text, or the bytes, that PostgreSQL reads a value from; null for null and undefined. Throws TypeError for a value that
 * cannot be sent. Exists unless `differenceOfPg` says otherwise.
 */
export const prepareValue = utils?.prepareValue as (value: unknown) => string | Buffer | null;

/** Methods by which a client passes PostgreSQL's messages to a query class. */
const CLIENT_METHODS = [
  '_handleRowDescription',
  '_handleDataRow',
  '_handleCommandComplete',
  '_handleReadyForQuery',
  '_handleErrorMessage',
];

/** Describes how the internals of pg that query classes use differ from the known ones; undefined if they do not. */
export function differenceOfPg(createClient: () => object = () => new pg.Client(), module = utils): string | undefined {
  try {
    if (typeof module?.prepareValue !== 'function') return 'pg has no prepareValue';
    if (module.prepareValue(1n) !== '1' || module.prepareValue(undefined) !== null)
      return "pg's prepareValue has changed";
    const client = createClient() as Partial<ClientInternals> & Record<string, unknown>;
    const missing = CLIENT_METHODS.find((name) => typeof client[name] !== 'function');
    if (missing !== undefined) return `pg's clients have no ${missing}`;
    if (typeof client.connection?.stream?.write !== 'function') return "pg's connections have no stream";
    return undefined;
  } catch (error) {
    return `a trial of pg fails (${String(error)})`;
  }
}
