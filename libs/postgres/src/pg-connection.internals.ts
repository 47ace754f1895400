import { type EventEmitter, once } from 'node:events';
import type { Duplex } from 'node:stream';
import type { Client, ClientBase, Connection, Submittable } from 'pg';
import { serialize } from 'pg-protocol';

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

/** The statement that a client has sent, and that PostgreSQL has neither carried out nor refused. */
export function unansweredStatement(client: ClientBase): object | undefined {
  return internalsOf(client)._activeQuery ?? undefined;
}

/** Whether PostgreSQL has ended the last statement. It ends a failed one after its error, maybe in another packet. */
export function isReady(client: ClientBase): boolean {
  return internalsOf(client).readyForQuery;
}

/**
 * The status of a client's transaction, as `getTransactionStatus` returns it, once it is ready. See `isReady`.
 *
 * @throws AbortError when it does not arrive in STATUS_MS
 */
export async function transactionStatusOf(client: ClientBase): Promise<string | null> {
  if (!isReady(client))
    await once(internalsOf(client).connection, 'readyForQuery', { signal: AbortSignal.timeout(STATUS_MS) });
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
export function hangUp(client: Client | undefined): void {
  if (client === undefined) return;
  client.end().catch(() => undefined);
  // Deferred, so that the socket sends the message of `end` first.
  setImmediate(() => destroySocket(client));
}

/**
 * Runs a `COPY … TO STDOUT`, and returns its rows in the text format of COPY; or, with rows in that format, a
 * `COPY … FROM STDIN`. They are sent together with the statement: if PostgreSQL refuses it, it skips them. Rejects with the error
 * of PostgreSQL or of the connection.
 */
export function copyRows(client: ClientBase, statement: string, rows?: readonly Buffer[]): Promise<Buffer[]> {
  const data = rows && [serialize.copyData(Buffer.concat(rows)), serialize.copyDone()];
  const received: Buffer[] = [];
  return new Promise((resolve, reject) => {
    const query: Submittable & Record<string, unknown> = {
      submit: ({ stream }: Connection): void => {
        stream.write(Buffer.concat([serialize.query(statement), ...(data ?? [])]));
      },
      // A chunk is one row. Its memory is used again.
      handleCopyData: ({ chunk }: { chunk: Buffer }) => received.push(Buffer.from(chunk)),
      handleReadyForQuery: () => resolve(received),
      handleError: reject,
      // Required by pg.
      handleCopyInResponse: () => undefined,
      handleCommandComplete: () => undefined,
    };
    client.query(query);
  });
}
