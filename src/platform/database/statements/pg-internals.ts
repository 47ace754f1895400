import pg, { type ClientBase, type Connection } from 'pg';

/*
 * The only file that uses undocumented members of pg. package.json pins pg to the exact version whose lib/client.js,
 * lib/connection.js and lib/utils.js these functions were written for. Read those files again before you pin another
 * version.
 */

interface ClientInternals {
  /** The statement that PostgreSQL has neither answered nor refused. */
  readonly _activeQuery?: object | null;
  readonly connection: ConnectionInternals;
}

interface ConnectionInternals {
  readonly stream: { readonly destroyed: boolean; write(bytes: Buffer): unknown; destroy(error?: Error): void };
  /** By name: the texts of statements that PostgreSQL has parsed, and of those that were sent to be parsed. */
  readonly parsedStatements: Record<string, string | undefined>;
  readonly submittedNamedStatements: Record<string, string | undefined>;
}

/** Imported dynamically, because a static import of a missing module would fail the start. */
const utils = await import('pg/lib/utils.js').catch(() => undefined);

const clientInternals = (client: ClientBase): ClientInternals => client as unknown as ClientInternals;
const connectionInternals = (connection: Connection): ConnectionInternals =>
  connection as unknown as ConnectionInternals;

/** The id of the PostgreSQL process that serves a connection. Behind a pooler it is wrong until `setProcessId`. */
export function processIdOf(client: ClientBase): number {
  return (client as unknown as { readonly processID: number }).processID;
}

/** Corrects the process id of a connection: a pooler sends an id of its own. */
export function setProcessId(client: ClientBase, processID: number): void {
  Object.assign(client, { processID });
}

/** Whether a client has sent a statement that PostgreSQL has neither answered nor refused. */
export function awaitsAnswer(client: ClientBase): boolean {
  return Boolean(clientInternals(client)._activeQuery);
}

/** Whether a client's socket is closed. */
export function isClosed(client: ClientBase): boolean {
  return clientInternals(client).connection.stream.destroyed;
}

/**
 * Closes a client's socket without a message to PostgreSQL, which might not receive it.
 *
 * @param error the error with which a statement in flight fails; one of pg by default
 */
export function destroySocket(client: ClientBase, error?: Error): void {
  clientInternals(client).connection.stream.destroy(error);
}

/** Ends a client without waiting for PostgreSQL: sends Terminate, then closes the socket. */
export function hangUp(client: pg.Client | undefined): void {
  if (client === undefined) return;
  client.end().catch(() => undefined);
  // Deferred, so that the socket sends the message of `end` first.
  setImmediate(() => destroySocket(client));
}

/** Whether PostgreSQL has parsed the statement of this name on the connection, or will have before the next message. */
export function isPrepared(connection: Connection, name: string): boolean {
  const { parsedStatements, submittedNamedStatements } = connectionInternals(connection);
  return parsedStatements[name] !== undefined || submittedNamedStatements[name] !== undefined;
}

/** Remembers that the statement of this name is sent to be parsed. pg forgets it if PostgreSQL refuses it. */
export function markPrepared(connection: Connection, name: string, text: string): void {
  connectionInternals(connection).submittedNamedStatements[name] = text;
}

/** Sends bytes of PostgreSQL's protocol. */
export function write(connection: Connection, bytes: Buffer): void {
  connectionInternals(connection).stream.write(bytes);
}

/**
 * The text, or the bytes, that PostgreSQL reads a value from; null for null and undefined.
 *
 * @throws TypeError for a value that cannot be sent
 */
export function prepareValue(value: unknown): string | Buffer | null {
  return (utils as NonNullable<typeof utils>).prepareValue(value);
}

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
      return "pg's prepareValue is another one";
    const client = createClient() as Partial<ClientInternals> & Record<string, unknown>;
    const missing = CLIENT_METHODS.find((name) => typeof client[name] !== 'function');
    if (missing !== undefined) return `pg's clients have no ${missing}`;
    const { connection } = client;
    if (typeof connection?.stream?.write !== 'function') return "pg's connections have no stream";
    for (const name of ['parsedStatements', 'submittedNamedStatements'] as const) {
      if (typeof connection[name] !== 'object') return `pg's connections have no ${name}`;
    }
    return undefined;
  } catch (error) {
    return `a trial of pg fails (${String(error)})`;
  }
}
