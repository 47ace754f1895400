import { type EventEmitter, once } from 'node:events';
import { type Duplex, duplexPair } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import pg, { type ClientBase, type Connection, type PoolClient, type PoolConfig, type Submittable } from 'pg';
import { serialize } from 'pg-protocol';
import type { Reach } from '#runtime';

/* package.json pins pg. Read its lib/client.js and lib/connection.js again before you pin another version. */

/** Longest time in ms between the error of a statement and the status of its transaction. */
const STATUS_MS = 1_000;

interface ClientInternals {
  /** The statement that PostgreSQL has neither carried out nor refused. */
  readonly _activeQuery?: object | null;
  readonly readyForQuery: boolean;
  readonly connection: EventEmitter & { readonly stream: Duplex };
}

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
 * Runs `COPY … FROM STDIN` with rows in its text format, which are sent together with the statement: the embedded engine
 * accepts none after it. If PostgreSQL refuses the statement, it skips the rows. Rejects with the error of PostgreSQL or of the
 * connection.
 */
export function copyRows(client: ClientBase, statement: string, rows: readonly string[]): Promise<void> {
  const data = serialize.copyData(Buffer.from(rows.map((row) => `${row}\n`).join('')));
  return new Promise((resolve, reject) => {
    const query: Submittable & Record<string, unknown> = {
      submit: ({ stream }: Connection): void => {
        stream.write(Buffer.concat([serialize.query(statement), data, serialize.copyDone()]));
      },
      handleReadyForQuery: resolve,
      handleError: reject,
      // Required by pg.
      handleCopyInResponse: () => undefined,
      handleCommandComplete: () => undefined,
    };
    client.query(query);
  });
}

export const PG_CONNECTION: Reach & { check(Client?: typeof pg.Client): Promise<string | undefined> } = {
  dependency: 'pg',
  touches:
    "_activeQuery, readyForQuery, connection and its stream and events of a client, the methods handle… that it calls of a query, pg-protocol's serialize, and that pg-pool waits for onConnect",
  why: 'sockets that close at once, statements without a response, transactions that have failed, rights of the session, and COPY',
  check: async (Client: typeof pg.Client = pg.Client) => {
    const seen = await trial(Client);
    return seen === EXPECTED ? undefined : `its clients act in another way (${seen}; expected: ${EXPECTED})`;
  },
};

/** Turns of the event loop that a message in memory needs at most. */
const TURNS = 10;

const EXPECTED = [
  ...['onConnect', 'leased', 'toys on', 'Q|COPY toys|d|a|c|', 'unanswered', 'copied', 'answered'],
  ...['refused', 'status E', 'closed'],
].join('; ');

/** A message of PostgreSQL: its type, and a body in Latin-1. */
function message(type: string, body: string): Buffer {
  const head = Buffer.alloc(5, type, 'latin1');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, Buffer.from(body, 'latin1')]);
}

/** What pg does on a connection in memory, whose server is written here. */
async function trial(Client: typeof pg.Client): Promise<string> {
  const seen: string[] = [];
  const [socket, server] = duplexPair();
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  };
  const send = async (...messages: Buffer[]): Promise<void> => {
    server.write(Buffer.concat(messages));
    await settle();
  };
  const stream = Object.assign(socket, {
    ...{ setNoDelay: ignore, ref: ignore, unref: ignore },
    connect: () => setImmediate(() => socket.emit('connect')),
  });
  let sent: Buffer = Buffer.alloc(0);
  server.on('data', (bytes: Buffer) => (sent = bytes));
  const parameters = new Map<string, string>();
  const onConnect = async (opened: ClientBase): Promise<void> => {
    await nextTurn();
    seen.push('onConnect');
    opened.on('error', ignore);
  };
  class TrialClient extends Client {
    constructor(options?: PoolConfig) {
      super(options);
      collectParameters(this, parameters);
    }
  }
  const options = { Client: TrialClient, onConnect, max: 1, ssl: false, user: 'toys', stream: () => stream };
  const pool = new pg.Pool(options);
  let client: PoolClient | undefined;
  pool.connect().then(
    (leased) => {
      client = leased;
      seen.push('leased');
    },
    (error: Error) => seen.push(error.message),
  );
  await settle();
  await send(message('R', '\0\0\0\0'), message('S', 'toys\0on\0'), message('Z', 'I'));
  if (client === undefined) return seen.join('; ');
  const leased: PoolClient = client;
  seen.push(`toys ${parameters.get('toys')}`);
  const copy = (): void =>
    void copyRows(leased, 'COPY toys', ['a']).then(
      () => seen.push('copied'),
      (error: Error) => seen.push(error.message),
    );
  copy();
  await settle();
  seen.push(sent.toString('latin1').replace(/[^ -~]+/g, '|'));
  seen.push(unansweredStatement(leased) ? 'unanswered' : 'answered');
  await send(message('G', '\0\0\0'), message('C', 'COPY 1\0'), message('Z', 'T'));
  seen.push(unansweredStatement(leased) ? 'unanswered' : 'answered');
  copy();
  await send(message('E', 'Mrefused\0\0'));
  transactionStatusOf(leased).then(
    (status) => seen.push(`status ${status}`),
    (error: Error) => seen.push(error.message),
  );
  await settle();
  await send(message('Z', 'E'));
  copy();
  await settle();
  destroySocket(leased, new Error('closed'));
  await settle();
  leased.release(true);
  return seen.join('; ');
}

function ignore(): void {}
