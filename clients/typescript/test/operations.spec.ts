import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PetStoreClient } from '../src/index.js';
import { Transport } from '../src/transport.js';

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
}

/** The calls of each operation that together send all of its parameters. An identifier in a path is 7. */
const CALLS: Record<string, (client: PetStoreClient) => Promise<unknown>[]> = {
  listPets: (client) => [
    client.listPets({ limit: 1, status: 'sold' }).next(),
    client.listPetsPage({ next: '/v1/pets?cursor=A', ifNoneMatch: '"a"' }),
  ],
  createPet: (client) => [client.createPet({ name: 'Rex', categoryId: 7n }, { idempotencyKey: 'a' })],
  getPet: (client) => [client.getPet(7n, { ifNoneMatch: '"a"' })],
};

const document = readFileSync(join(import.meta.dirname, '../../../openapi.json'), 'utf8');
const { paths } = JSON.parse(document) as { paths: Record<string, Record<string, Operation>> };
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId, parameters = [] }]) => ({
    operationId,
    needed: [
      `${method.toUpperCase()} /v1${path.replaceAll(/\{\w+\}/g, '7')}`,
      ...parameters.filter((one) => one.in !== 'path').map(({ in: place, name }) => `${place} ${name.toLowerCase()}`),
    ],
  })),
);

test.each(operations)(
  'the client can send $operationId with each parameter that the document has',
  async (operation) => {
    const { operationId, needed } = operation;
    expect(PetStoreClient.prototype).toHaveProperty(operationId);
    const sent = new Set<string>();
    const refuse: typeof fetch = (input, init) => {
      const { method, url, headers } = new Request(input, init);
      const { pathname, searchParams } = new URL(url);
      sent.add(`${method} ${pathname}`);
      for (const name of searchParams.keys()) sent.add(`query ${name}`);
      for (const name of headers.keys()) sent.add(`header ${name}`);
      return Promise.resolve(new Response('{}', { status: 400 }));
    };
    const client = new PetStoreClient({ baseUrl: 'http://petstore.test/v1', apiKey: 'none', fetch: refuse });
    await Promise.allSettled(CALLS[operationId]?.(client) ?? []);
    expect(needed.filter((one) => !sent.has(one))).toEqual([]);
  },
);

test.each([204, 205])('an operation of another method may answer %d, without a body', async (status) => {
  const sent: (string | undefined)[] = [];
  const answer: typeof fetch = (_input, init) => {
    sent.push(init?.method);
    return Promise.resolve(new Response(null, { status }));
  };
  const limits = { attemptTimeoutMs: 1_000, maxAttempts: 1, maxTotalMs: 1_000 };
  const transport = new Transport({ apiKey: 'none', fetch: answer, ...limits }, () => undefined);
  const call = { operation: 'getPet', url: new URL('http://petstore.test/v1/toys/7'), headers: {} } as const;
  const { body } = await transport.send({ ...call, method: 'DELETE', expected: [status], isBody: () => false });
  expect([sent, body]).toEqual([['DELETE'], undefined]);
});
