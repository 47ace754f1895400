import { Redis } from 'ioredis';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RateLimiter } from '../src/rate-limiter.js';
import { createTestApp, type TestApp } from '../../../test/support/app.js';
import { call, countAllowed } from '../../../test/support/calls.js';
import { handedOver } from '../../../test/support/engines.js';
import { until } from '../../../test/support/until.js';
import { freePort, type Program, startProgram } from '../../../test/support/programs.js';

/* Instances share rate limits in Redis. Redis hangs, ends and restarts. */

let port: number;
let redis: Program;
let one: TestApp;
let two: TestApp;

/** Starts Redis without persistence. */
function startRedis(port: number, ...options: string[]): Promise<Program> {
  return startProgram('redis-server', ['--bind', '127.0.0.1', '--save', '', '--port', `${port}`, ...options], port);
}

beforeAll(async () => {
  port = await freePort();
  redis = await startRedis(port);
  const settings = { REDIS_URL: `redis://127.0.0.1:${port}`, RATE_LIMIT_PER_MINUTE: '6' };
  one = await createTestApp({ settings });
  two = await createTestApp({ database: one.database, settings });
});
afterAll(async () => {
  await two.close();
  await one.close();
  await redis.stop();
  // Waits until the services have closed their connections.
  for (const server of servers) await once(server.close(), 'close');
});

const servers: Server[] = [];
let clients = 0;

/** A key of a new client, which has all its calls left. */
const newKey = (): Promise<string> => one.createApiKey({ client: `client-${++clients}` });

/** The log of both instances. */
const logged = (): string => one.log.text + two.log.text;

/**
 * Runs a round, and repeats it with another client if an instance has counted without Redis: on a busy machine a
 * response of Redis may take longer than the 50 ms that a request waits for it.
 */
async function whileShared<Result>(round: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    await untilShared();
    const before = outages();
    const result = await round();
    if (outages() === before || attempt === 5) return result;
  }
}

/** How often the instances have begun to count without Redis. */
const outages = (): number => logged().split(/Redis is (?:slow|unreachable)/).length;

/** Waits until both instances count calls in Redis. After a failure they do not use it for one second. */
async function untilShared(): Promise<void> {
  for (const deadline = performance.now() + 20_000; ; await sleep(100)) {
    const key = await newKey();
    for (const app of [one, two]) await call(app, key);
    if (![one, two].some(({ nest }) => nest.get(RateLimiter).shared?.isAway)) return;
    if (performance.now() > deadline) throw new Error(`Redis does not come back:\n${logged()}`);
  }
}

test('two instances share one limit', async () => {
  const takeTurns = async (): Promise<unknown[]> => {
    const key = await newKey();
    const fields: string[] = [];
    for (const app of [one, two, one, two, one, two, one, two]) {
      const { status, headers } = await call(app, key);
      fields.push(String([status, headers['retry-after'] ?? headers.ratelimit]));
    }
    return fields;
  };
  expect(await whileShared(takeTurns)).toEqual([
    ...[5, 4, 3, 2, 1, 0].map((left) => `200,"client";r=${left};t=${(6 - left) * 10}`),
    ...['429,10', '429,10'],
  ]);
  // Concurrent calls of one client take one token each.
  const burst = async (): Promise<number> => {
    const key = await newKey();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => call(index % 2 ? one : two, key)));
    return answers.filter(({ status }) => status === 200).length;
  };
  expect(await whileShared(burst)).toBe(6);
});

test('a hanging Redis delays requests by at most 50 ms, and each instance counts by itself', async () => {
  const rounds: { slowest: number; waited: number }[] = [];
  for (let round = 0; round < 3; round++) {
    const key = await whileShared(async () => {
      const used = await newKey();
      for (const app of [one, two]) await call(app, used);
      return used;
    });
    redis.child.kill('SIGSTOP');
    const times: number[] = [];
    let allowed = 0;
    for (let count = 0; count < 10; count++) {
      const startedAt = performance.now();
      if ((await call(one, key)).status === 200) allowed++;
      times.push(performance.now() - startedAt);
    }
    expect(allowed).toBe(6);
    rounds.push({ slowest: Math.max(...times), waited: times.filter((time) => time > 45).length });
    redis.child.kill('SIGCONT');
  }
  // A pause of the machine slows one round. A service that waits longer would slow all of them.
  expect(Math.min(...rounds.map(({ slowest }) => slowest))).toBeLessThan(250);
  // Only the first request waits for Redis; then the instance does not use it for one second.
  expect(Math.min(...rounds.map(({ waited }) => waited))).toBeLessThanOrEqual(2);
  expect(logged()).toContain('Redis is slow: each instance limits its clients by itself. Command timed out');
});

test('without Redis each instance counts by itself, and after its return they share the limit', async () => {
  await redis.stop();
  const key = await newKey();
  expect(await countAllowed(one, key, 8)).toBe(6);
  expect(await countAllowed(two, key, 8)).toBe(6);
  redis = await startRedis(port);
  const together = async (): Promise<number> => {
    const shared = await newKey();
    return (await countAllowed(one, shared, 4)) + (await countAllowed(two, shared, 4));
  };
  expect(await whileShared(together)).toBe(6);
  expect(logged()).toContain('Redis is back: the instances share their rate limits again.');
});

test('a bucket that is none is not taken as a response, and buckets end with their window', async () => {
  const client = new Redis(port, '127.0.0.1');
  const key = await newKey();
  await untilShared();
  await call(one, key);
  const { host, pathname } = new URL(one.database.settings.DATABASE_URL as string);
  const names = await client.keys('*');
  expect(names.filter((name) => !name.startsWith(`petstore:bucket:${host}${pathname}:`))).toEqual([]);
  const lifetimes = await Promise.all(names.map((name) => client.pttl(name)));
  expect(lifetimes.filter((ms) => ms <= 0 || ms > 60_000)).toEqual([]);
  for (const tokens of ['nan', '-inf', '-1e308']) {
    await untilShared();
    await call(one, key);
    for (const name of await client.keys('*')) await client.hset(name, 'tokens', tokens);
    const { status, headers } = await call(one, key);
    const left = expect.stringMatching(/^"client";r=[0-5];t=\d+$/) as string;
    expect([tokens, status, headers.ratelimit]).toEqual([tokens, 200, left]);
    await client.flushall();
  }
  client.disconnect();
});

/** Starts a server on a free port, until the end of the tests. Returns the port. */
async function listen(server: Server): Promise<number> {
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Starts an instance with another Redis for one test. */
async function withRedis(url: string, test: (alone: TestApp) => Promise<void>): Promise<void> {
  const settings = { REDIS_URL: url, RATE_LIMIT_PER_MINUTE: '6' };
  const alone = await createTestApp({ database: one.database, settings });
  await test(alone).finally(() => alone.close());
}

test.each([
  ['nil', '$-1\r\n'],
  ['a list', '*1\r\n$1\r\n3\r\n'],
])('%s is not taken as a response', async (_, answer) => {
  let commands = 0;
  const server = createServer((socket) =>
    socket.on('data', (bytes) => {
      for (const _command of String(bytes).matchAll(/^\*\d+\r$/gm)) commands += Number(socket.write(answer));
    }),
  );
  await withRedis(`redis://127.0.0.1:${await listen(server)}`, async (alone) => {
    await until(() => commands > 0);
    await sleep(100);
    expect((await call(alone, await newKey())).headers.ratelimit).toBe('"client";r=5;t=10');
    expect(alone.log.text).toContain('Redis is unreachable: each instance limits its clients by itself. It returned ');
  });
});

describe('a wrong REDIS_URL is named in one line of the log, and the service starts and counts by itself', () => {
  const programs: Program[] = [];
  let withPassword: number;
  let withTls: number;
  let home: string;

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'petstore-redis-'));
    const [key, certificate] = [join(home, 'key.pem'), join(home, 'certificate.pem')];
    const made = spawnSync('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
      ...['-subj', '/CN=localhost', '-keyout', key, '-out', certificate],
    ]);
    expect([made.error, made.status]).toEqual([undefined, 0]);
    [withPassword, withTls] = [await freePort(), await freePort()];
    programs.push(await startRedis(withPassword, '--requirepass', 'secret-word'));
    const tls = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-auth-clients', 'no'];
    // The last of two ports counts.
    programs.push(await startRedis(withTls, '--port', '0', '--tls-port', `${withTls}`, ...tls));
  });
  afterAll(async () => {
    await Promise.all(programs.map(({ stop }) => stop()));
    await rm(home, { recursive: true });
  });

  const http = (): Promise<number> => listen(createHttpServer((_, response) => response.end()));
  const { port: postgresql } = new URL(handedOver('serverUrl'));

  test.each<[string, () => string | Promise<string>, RegExp]>([
    ['TLS without TLS', () => `rediss://127.0.0.1:${port}`, /correct REDIS_URL/],
    ['no TLS with TLS', () => `redis://127.0.0.1:${withTls}`, /correct REDIS_URL/],
    ['an unknown authority', () => `rediss://127.0.0.1:${withTls}`, /certificate.* correct REDIS_URL/],
    ['no password', () => `redis://127.0.0.1:${withPassword}`, /NOAUTH.* correct REDIS_URL/],
    ['a wrong password', () => `redis://:no-secret-word@127.0.0.1:${withPassword}`, /WRONGPASS.* correct REDIS_URL/],
    ['a wrong user', () => `redis://user:no-secret-word@127.0.0.1:${port}`, /WRONGPASS.* correct REDIS_URL/],
    ['a server of HTTP', async () => `redis://127.0.0.1:${await http()}`, /correct REDIS_URL/],
    ['TLS to a server of HTTP', async () => `rediss://127.0.0.1:${await http()}`, /REDIS_URL/],
    ['PostgreSQL', () => `redis://127.0.0.1:${postgresql}`, /REDIS_URL/],
    ['a host that does not exist', () => 'redis://nowhere.invalid', /getaddrinfo/],
  ])('%s', async (_, urlOf, expected) => {
    await withRedis(await urlOf(), async (alone) => {
      const key = await newKey();
      // One call before Redis may have refused anything, and one after.
      expect((await call(alone, key)).status).toBe(200);
      await until(() => /"msg":"Redis/.test(alone.log.text));
      // Longer than the pause after a failure, and than several attempts to connect.
      await sleep(2_500);
      expect(await countAllowed(alone, key, 8)).toBe(5);
      const lines = alone.log.text.split('\n').filter((line) => line.includes('"msg":"Redis'));
      expect(lines).toEqual([expect.stringMatching(expected) as string]);
      expect(lines[0]).toContain('Redis is unreachable: each instance limits its clients by itself. ');
      expect(alone.log.text).not.toContain('secret-word');
    });
  });
});
