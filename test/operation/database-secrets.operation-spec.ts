import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { administer } from '../support/postgresql-database.js';
import { type Outcome, send } from '../support/load.js';
import { rowsOf, useOwnServer } from '../support/own-database.js';
import { creation } from '../support/witness.js';
import { until } from '../support/until.js';
import { Services } from './support/services.js';

/* TLS with a private certificate authority. */

const API_KEY = 'bootstrap-key-of-the-tests';
const LIST = { method: 'GET', path: '/v1/pets' } as const;

import.meta.jest.setTimeout(120_000);

const own = useOwnServer();
const services = new Services(() => ({ BOOTSTRAP_API_KEY: API_KEY, RATE_LIMIT_PER_MINUTE: '0', LOG_LEVEL: 'warn' }));
/** The directory of keys and certificates. */
const home = mkdtempSync(join(tmpdir(), 'petstore-certificates-'));

function openssl(...words: string[]): void {
  const { status, stderr } = spawnSync('openssl', words, { cwd: home, encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl fails: ${stderr}`);
}

/** Makes a certificate authority, and a key with a certificate for `localhost` that it has signed. */
function makeCertificates(): void {
  const request = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  for (const name of ['ca', 'other-ca']) {
    openssl(...request, '-x509', '-days', '2', '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.crt`);
  }
  openssl(...request, '-subj', '/CN=localhost', '-keyout', 'server.key', '-out', 'server.csr');
  writeFileSync(join(home, 'names'), 'subjectAltName=DNS:localhost');
  for (const [ca, days, name] of [
    ['ca', '2', 'server'],
    ['ca', '0', 'expired'],
    ['other-ca', '2', 'foreign'],
  ]) {
    openssl(
      ...['x509', '-req', '-in', 'server.csr', '-CA', `${ca}.crt`, '-CAkey', `${ca}.key`, '-CAcreateserial'],
      ...['-days', String(days), '-extfile', 'names', '-out', `${name}.crt`],
    );
  }
}

/** Gives PostgreSQL one of the certificates, and ends all connections. */
async function useCertificate(name: string): Promise<void> {
  const { uid, gid } = statSync(own.server.data);
  for (const [from, to] of [
    ['server.key', 'server.key'],
    [`${name}.crt`, 'server.crt'],
  ] as const) {
    const target = join(own.server.data, to);
    copyFileSync(join(home, from), target);
    chownSync(target, uid, gid);
    chmodSync(target, 0o600);
  }
  await administer(own.server.url, 'SELECT pg_reload_conf()');
  await administer(
    own.server.url,
    `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'petstore%'`,
  );
}

beforeAll(async () => {
  makeCertificates();
  await administer(own.server.url, 'ALTER SYSTEM SET ssl = on');
  await useCertificate('server');
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** The value of an SQL expression for each connection of the service. */
function sessions<Row extends unknown[]>(expression: string): Promise<Row[]> {
  const from = `pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE application_name LIKE 'petstore%'`;
  return rowsOf<Row>(own.superUrl, `SELECT ${expression} FROM ${from}`);
}

const verified = (host: string, file: string): Record<string, string> => ({
  DATABASE_URL: `${own.url.replace('127.0.0.1', host)}?sslmode=verify-full&sslrootcert=${join(home, file)}`,
});

test('sslmode=verify-full with sslrootcert: every connection is encrypted, and the server is verified', async () => {
  const origin = await services.start(verified('localhost', 'ca.crt')).origin();
  expect((await send(LIST, { origin, apiKey: API_KEY })).status).toBe(200);
  const encrypted = await sessions<[boolean]>('ssl');
  expect(encrypted.length).toBeGreaterThanOrEqual(1);
  expect(encrypted.every(([ssl]) => ssl)).toBe(true);

  const tls = / cannot be used: .*Correct host, port, user, password, sslmode or certificates, or mend the server\.$/;
  expect(await services.refusal(verified('localhost', 'other-ca.crt'))).toMatch(tls);
  // The certificate is for localhost only.
  expect(await services.refusal(verified('127.0.0.1', 'ca.crt'))).toMatch(tls);
});

test('a second role with the rights of the first: instances change to it, and the first one is closed', async () => {
  const second = own.url.replace('petstore_service', 'petstore_service_2');
  await administer(
    own.server.url,
    `CREATE ROLE petstore_service_2 LOGIN PASSWORD '${new URL(own.url).password}' IN ROLE petstore_service`,
  );
  const origin = await services.start({ DATABASE_URL: second }).origin();
  await administer(own.server.url, 'ALTER ROLE petstore_service NOLOGIN');
  try {
    for (const request of [LIST, creation('changed-role-1')])
      expect((await send(request, { origin, apiKey: API_KEY })).status).toBeLessThan(202);
  } finally {
    await administer(own.server.url, 'ALTER ROLE petstore_service LOGIN');
  }
});

test('a certificate that has expired or is of a foreign authority: 503, until PostgreSQL has a valid one again', async () => {
  const service = services.start(verified('localhost', 'ca.crt'));
  const origin = await service.origin();
  const list = (): Promise<Outcome> => send(LIST, { origin, apiKey: API_KEY });
  for (const name of ['expired', 'foreign']) {
    await useCertificate(name);
    const { status, text } = await list();
    expect([name, status, JSON.parse(text)]).toEqual([name, 503, expect.objectContaining({ code: 'unavailable' })]);
    expect((await send({ method: 'GET', path: '/health/ready' }, { origin, apiKey: API_KEY })).text).toContain(
      'unreachable',
    );
    await useCertificate('server');
    expect((await list()).status).toBe(200);
  }
  await until(() => /Returned 503: certificate has expired/.test(service.stdout));
  expect(service.stdout).not.toContain('"level":50');
});
