import { jest } from '@jest/globals';
import { type NewPet, PetStoreClient, type PetStoreClientOptions } from '../src/index.js';
import { answer, errorAnswer, failureOf, type ScriptedServer, startServer } from './support.js';

const API_KEY = 'a-key-for-the-tests-of-failures';
const REX: NewPet = { name: 'Rex', categoryId: 7n };
const CREATED = answer(201, '{"id":1,"name":"Rex","categoryId":7,"status":"available"}');
const EMPTY_PAGE = answer(200, '[]');

let server: ScriptedServer;
afterEach(() => server.close());

async function clientOf(
  steps: Parameters<typeof startServer>,
  options: Partial<PetStoreClientOptions> = {},
): Promise<PetStoreClient> {
  server = await startServer(...steps);
  return new PetStoreClient({ baseUrl: `${server.origin}/v1`, apiKey: API_KEY, maxAttempts: 3, ...options });
}

describe('a call is repeated', () => {
  test.each([
    ['after 429', errorAnswer(429, 'rate_limited')],
    ['after 503', errorAnswer(503, 'unavailable')],
    ['after 502 of a proxy', answer(502, '<html>Bad Gateway</html>', { 'content-type': 'text/html' })],
    ['after 504 of a proxy', answer(504, '', { 'content-type': 'text/html' })],
  ])('%s, with the same idempotency key and body and a new request id', async (_name, refusal) => {
    const client = await clientOf([refusal, refusal, CREATED]);
    expect(await client.createPet(REX)).toEqual({ id: 1n, name: 'Rex', categoryId: 7n, status: 'available' });
    const { received } = server;
    expect(received.map(({ body }) => body)).toEqual(Array(3).fill('{"name":"Rex","categoryId":7}'));
    expect(new Set(received.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    expect(received[0]?.headers['idempotency-key']).toMatch(/^"[0-9a-f]{32}"$/);
    expect(new Set(received.map(({ headers }) => headers['x-request-id'])).size).toBe(3);
  });

  test('after a connection that breaks before or during the response', async () => {
    const client = await clientOf([
      (request) => request.socket.destroy(),
      (_request, response) => {
        response.writeHead(201, { 'content-type': 'application/json', 'content-length': '100' }).write('{"id":1');
        setTimeout(() => response.socket?.destroy(), 20);
      },
      CREATED,
    ]);
    expect((await client.createPet(REX)).id).toBe(1n);
  });

  test('after an attempt that takes longer than attemptTimeoutMs', async () => {
    const client = await clientOf([() => undefined, CREATED], { attemptTimeoutMs: 500 });
    expect((await client.createPet(REX)).id).toBe(1n);
  });

  test('also for a page of a list', async () => {
    const client = await clientOf([errorAnswer(503, 'unavailable'), EMPTY_PAGE]);
    expect(await client.listPetsPage()).toMatchObject({ pets: [] });
  });

  test.each([
    ['seconds', () => '1', 1_000],
    // A date has no fraction of a second, so the wait may be up to 1 s shorter.
    ['a date', () => new Date(Date.now() + 2_000).toUTCString(), 900],
  ])('not before the end of Retry-After, given as %s', async (_name, retryAfter, leastMs) => {
    const refusal: ReturnType<typeof answer> = (request, response) =>
      errorAnswer(429, 'rate_limited', { 'retry-after': retryAfter() })(request, response);
    const client = await clientOf([refusal, CREATED]);
    const startedAt = performance.now();
    await client.createPet(REX);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(leastMs);
  });
});

describe('a call fails', () => {
  test('after maxAttempts, with the error of the last attempt', async () => {
    const client = await clientOf(
      [errorAnswer(429, 'rate_limited'), errorAnswer(503, 'unavailable', { 'x-request-id': 'id-of-the-second' })],
      { maxAttempts: 2 },
    );
    const error = await failureOf(client.createPet(REX));
    expect(error).toMatchObject({
      name: 'PetStoreError',
      code: 'unavailable',
      status: 503,
      message: 'This is unavailable.',
      requestId: 'id-of-the-second',
    });
    expect(server.received).toHaveLength(2);
  });

  test('at once when Retry-After is later than maxTotalMs', async () => {
    const client = await clientOf([errorAnswer(503, 'unavailable', { 'retry-after': '61' })]);
    expect(await failureOf(client.createPet(REX))).toMatchObject({ status: 503, retryAfterMs: 61_000 });
    expect(server.received).toHaveLength(1);
  });

  test('at the end of maxTotalMs, also during an attempt', async () => {
    const client = await clientOf([() => undefined], { maxTotalMs: 300, maxAttempts: 100 });
    const error = await failureOf(client.createPet(REX));
    expect(error).toMatchObject({ code: 'timeout', status: undefined });
  });

  test.each([
    [400, 'validation_failed'],
    [401, 'invalid_api_key'],
    [403, 'insufficient_scope'],
    [404, 'pet_not_found'],
    [422, 'idempotency_key_reused'],
    [500, 'internal_error'],
  ])('at once after %i %s', async (status, code) => {
    const client = await clientOf([errorAnswer(status, code), CREATED]);
    expect(await failureOf(client.createPet(REX))).toMatchObject({ code, status, message: `This is ${code}.` });
    expect(server.received).toHaveLength(1);
  });
});

describe('without a response', () => {
  test('network_error has the request id that was sent', async () => {
    const client = await clientOf([(request) => request.socket.destroy()]);
    const error = await failureOf(client.createPet(REX));
    expect(error).toMatchObject({ code: 'network_error', status: undefined });
    expect(error.requestId).toBe(server.received.at(-1)?.headers['x-request-id']);
    expect(server.received).toHaveLength(3);
  });

  test('network_error names the reason when nothing listens on the port', async () => {
    const client = await clientOf([EMPTY_PAGE]);
    await server.close();
    const error = await failureOf(client.listPetsPage());
    expect([error.code, error.message]).toEqual(['network_error', expect.stringContaining('ECONNREFUSED')]);
    expect(error.cause).toMatchObject({ name: 'TypeError' });
    server = await startServer(EMPTY_PAGE);
  });

  test('timeout has the request id that was sent', async () => {
    const client = await clientOf([() => undefined], { attemptTimeoutMs: 50, maxAttempts: 2 });
    const error = await failureOf(client.listPetsPage());
    expect([error.code, error.status]).toEqual(['timeout', undefined]);
    expect(error.requestId).toBe(server.received.at(-1)?.headers['x-request-id']);
    expect(server.received).toHaveLength(2);
  });
});

describe('unexpected_response', () => {
  test.each([
    ['a page of a proxy', 403, '<html>Forbidden</html>', 'text/html'],
    ['JSON that is not an Error body', 403, '{"message":"Forbidden"}', 'application/json'],
    ['an Error body with another status', 403, '{"code":"a","message":"b","status":400}', 'application/json'],
    ['200 that is not JSON', 200, '<html>Sign in to the network</html>', 'text/html'],
    ['200 with other JSON than a list', 200, '{"status":"up"}', 'application/json'],
    ['200 with a list of other values than pets', 200, '["up"]', 'application/json'],
    ['200 with null', 200, 'null', 'application/json'],
    ['204', 204, '', 'text/plain'],
    ['304 without If-None-Match', 304, '', 'text/plain'],
  ])('%s', async (_name, status, body, type) => {
    const client = await clientOf([answer(status, body, { 'content-type': type, 'x-request-id': 'of-a-proxy' })]);
    const error = await failureOf(client.listPetsPage());
    expect(error).toMatchObject({ code: 'unexpected_response', status, requestId: 'of-a-proxy' });
    expect(server.received).toHaveLength(1);
  });

  test('a 502 of a proxy at the last attempt', async () => {
    const client = await clientOf([answer(502, '<html>', { 'content-type': 'text/html' })], { maxAttempts: 2 });
    expect(await failureOf(client.createPet(REX))).toMatchObject({ code: 'unexpected_response', status: 502 });
    expect(server.received).toHaveLength(2);
  });

  test.each([301, 302, 307, 308])('%i is not followed, so the key is sent to no other address', async (status) => {
    const elsewhere = await startServer(EMPTY_PAGE);
    const client = await clientOf([answer(status, '', { location: `${elsewhere.origin}/v1/pets` })]);
    const error = await failureOf(client.listPetsPage());
    expect([error.code, error.status]).toEqual(['unexpected_response', status]);
    expect([server.received.length, elsewhere.received.length]).toEqual([1, 0]);
    await elsewhere.close();
  });
});

describe('AbortSignal', () => {
  const reason = new Error('The user has left.');

  test('that is aborted before the call: nothing is sent', async () => {
    const fetch = jest.fn<typeof globalThis.fetch>();
    const client = await clientOf([CREATED], { fetch });
    const error = await failureOf(client.createPet(REX, { signal: AbortSignal.abort(reason) }));
    expect([error.code, error.cause]).toEqual(['aborted', reason]);
    expect(fetch).not.toHaveBeenCalled();
  });

  test.each([1, 3])('ends a request in flight, with maxAttempts %i', async (maxAttempts) => {
    const controller = new AbortController();
    const client = await clientOf([() => controller.abort(reason)], { maxAttempts });
    const error = await failureOf(client.createPet(REX, { signal: controller.signal }));
    expect([error.code, error.cause]).toEqual(['aborted', reason]);
    expect(server.received).toHaveLength(1);
  });

  test('ends the wait before another attempt, and its timer', async () => {
    const controller = new AbortController();
    const client = await clientOf([errorAnswer(503, 'unavailable', { 'retry-after': '30' })]);
    const set = jest.spyOn(globalThis, 'setTimeout');
    const clear = jest.spyOn(globalThis, 'clearTimeout');
    setTimeout(() => controller.abort(reason), 200);
    const error = await failureOf(client.createPet(REX, { signal: controller.signal }));
    expect([error.code, error.cause]).toEqual(['aborted', reason]);
    expect(server.received).toHaveLength(1);
    const wait = set.mock.calls.findIndex(([, ms]) => ms !== undefined && ms >= 30_000);
    expect(clear.mock.calls).toContainEqual([set.mock.results[wait]?.value]);
    jest.restoreAllMocks();
  });

  test('that is aborted when the response arrives prevents the wait', async () => {
    const controller = new AbortController();
    const client = await clientOf([CREATED], {
      fetch: () => {
        controller.abort(reason);
        const body = '{"code":"unavailable","message":"Later.","status":503}';
        return Promise.resolve(new Response(body, { status: 503, headers: { 'retry-after': '30' } }));
      },
    });
    const error = await failureOf(client.createPet(REX, { signal: controller.signal }));
    expect([error.code, error.cause]).toEqual(['aborted', reason]);
  });

  test('ends a list between two pages', async () => {
    const controller = new AbortController();
    const page: ReturnType<typeof answer> = (request, response) =>
      answer(200, '[{"id":1,"name":"Rex","categoryId":7,"status":"sold"}]', {
        link: `<http://${request.headers.host}/v1/pets?cursor=a>; rel="next"`,
      })(request, response);
    const client = await clientOf([page]);
    const pets = client.listPets({ signal: controller.signal });
    expect((await pets.next()).value).toMatchObject({ id: 1n });
    controller.abort(reason);
    expect((await failureOf(pets.next())).code).toBe('aborted');
    expect(server.received).toHaveLength(1);
  });

  test('has no listeners left after the call', async () => {
    const { signal } = new AbortController();
    const added = jest.spyOn(signal, 'addEventListener');
    const removed = jest.spyOn(signal, 'removeEventListener');
    const client = await clientOf([errorAnswer(503, 'unavailable'), CREATED]);
    await client.createPet(REX, { signal });
    expect(added).toHaveBeenCalledTimes(3);
    expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(
      added.mock.calls.map(([, listener]) => listener),
    );
  });
});

test('a time limit is kept by a fetch that does not heed its signal, and so is an AbortSignal', async () => {
  const deaf: typeof fetch = () => new Promise(() => undefined);
  const client = await clientOf([CREATED], { fetch: deaf, attemptTimeoutMs: 50, maxAttempts: 2 });
  expect((await failureOf(client.createPet(REX))).code).toBe('timeout');
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 20);
  expect((await failureOf(client.createPet(REX, { signal: controller.signal }))).code).toBe('aborted');
});

describe('a fetch of the caller', () => {
  test.each([undefined, null, 7, {}, '200'])(
    'that gives %p is named by the error, and not asked again',
    async (value) => {
      const fetch = jest.fn(() => Promise.resolve(value as Response));
      const error = await failureOf((await clientOf([CREATED], { fetch })).createPet(REX));
      expect([error.code, error.message]).toEqual([
        'unexpected_response',
        'The option fetch must return a promise of a Response.',
      ]);
      expect(fetch).toHaveBeenCalledTimes(1);
    },
  );

  test.each<[string, unknown]>([
    ['null', null],
    ['an object without a text', Object.create(null)],
    ['a text', 'no network'],
  ])('that throws %s is a network_error', async (_name, thrown) => {
    const fetch = (): never => {
      throw thrown;
    };
    const error = await failureOf((await clientOf([CREATED], { fetch, maxAttempts: 1 })).createPet(REX));
    expect([error.code, error.cause]).toEqual(['network_error', thrown]);
  });

  test('may replace the global one after the client was made', async () => {
    const client = await clientOf([CREATED]);
    const replaced = jest.spyOn(globalThis, 'fetch').mockResolvedValue(new Response('[]'));
    expect((await client.listPetsPage()).pets).toEqual([]);
    expect(replaced).toHaveBeenCalledTimes(1);
    replaced.mockRestore();
    expect(server.received).toEqual([]);
  });
});

describe('a list without an end is an unexpected_response', () => {
  const page = (ids: string, cursor: string): ReturnType<typeof answer> =>
    answer(200, `[${ids.replace(/\d+/g, '{"id":$&,"name":"Rex","categoryId":7,"status":"sold"}')}]`, {
      link: `<https://elsewhere.test/store/v1/pets?limit=1${cursor}>; rel="next"`,
      'x-request-id': 'of-the-page',
    });

  async function idsUntilFailure(client: PetStoreClient): Promise<bigint[]> {
    const ids: bigint[] = [];
    const reading = (async () => {
      for await (const { id } of client.listPets()) ids.push(id);
    })();
    const error = await failureOf(reading);
    expect([error.code, error.requestId]).toEqual(['unexpected_response', 'of-the-page']);
    return ids;
  }

  test.each<[string, ReturnType<typeof answer>[], bigint[]]>([
    ['a page links to itself', [page('1', '&cursor=a'), page('2', '&cursor=a')], [1n]],
    ['a page links to the first one', [page('1', '')], []],
    [
      'two pages link to each other',
      [page('1', '&cursor=a'), page('2', '&cursor=b'), page('1', '&cursor=a')],
      [1n, 2n],
    ],
    ['a page without pets has a next one', [page('1', '&cursor=a'), page('', '&cursor=b')], [1n]],
    [
      'a link is no address',
      [answer(200, '[]', { link: '<http://[>; rel="next"', 'x-request-id': 'of-the-page' })],
      [],
    ],
  ])('when %s', async (_name, pages, ids) => {
    const client = await clientOf(pages);
    expect(await idsUntilFailure(client)).toEqual(ids);
    expect(server.received.length).toBe(pages.length);
  });
});

describe('onDeprecation', () => {
  const DEPRECATED = answer(200, '{"id":1,"name":"Rex","categoryId":7,"status":"sold"}', { deprecation: '@1' });

  test.each<[string, () => unknown]>([
    ['throws', () => Symbol.keyFor('x' as never)],
    ['rejects', () => Promise.reject(new Error('not x'))],
    ['throws null', () => Promise.reject(null)],
  ])('that %s does not lose the pet, and a warning says so', async (_name, onDeprecation) => {
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const client = await clientOf([DEPRECATED], { onDeprecation: onDeprecation });
    expect((await client.getPet(1n)).pet.id).toBe(1n);
    expect(warn.mock.calls).toEqual([[expect.stringMatching(/^@petstore-service\/client: onDeprecation failed: /)]]);
    warn.mockRestore();
  });

  test('does not lose the pet when warnings throw', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => {
      throw new Error('no warnings here');
    });
    expect((await (await clientOf([DEPRECATED])).getPet(1n)).pet.id).toBe(1n);
    warn.mockRestore();
  });
});
