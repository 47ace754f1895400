import pg from 'pg';
import { PG_CONNECTION } from './pg-connection.internals.js';

interface Internals {
  readonly connection: NodeJS.EventEmitter & { readonly stream: { destroy: () => void } };
}

/** The clients of a changed pg. */
function changed(change: (client: Internals) => void): typeof pg.Client {
  return class extends pg.Client {
    constructor(options?: pg.ClientConfig) {
      super(options);
      change(this);
    }
  };
}

/** Without an event of the connection. */
const without = (event: string): typeof pg.Client =>
  changed(({ connection }) => {
    const emit = connection.emit.bind(connection);
    connection.emit = (name, ...values: unknown[]) => name !== event && emit(name, ...values);
  });

test('the installed pg is as known', async () => {
  expect(await PG_CONNECTION.check()).toBeUndefined();
});

test.each<[change: string, Client: typeof pg.Client, difference: RegExp]>([
  [
    'a client does not know its statement',
    changed((client) => Object.defineProperty(client, '_activeQuery', { get: () => undefined, set: () => undefined })),
    /toys on; [^;]*; answered/,
  ],
  ['no parameterStatus', without('parameterStatus'), /leased; toys undefined/],
  ['no errorMessage', without('errorMessage'), /copied; answered; copied/],
  [
    'a socket stays open',
    changed(({ connection }) => (connection.stream.destroy = () => undefined)),
    /status E; expected/,
  ],
])('another pg is noticed: %s', async (_, Client, difference) => {
  expect(await PG_CONNECTION.check(Client)).toMatch(difference);
});

test('a pg without connections of clients is noticed', async () => {
  const Client = changed((client) => Object.assign(client, { connection: undefined }));
  await expect(PG_CONNECTION.check(Client)).rejects.toThrow(TypeError);
});
