import { tmpdir } from 'node:os';
import { ApiKeysService, type NewApiKey } from '../../libs/access/src/api-keys.service.js';
import { type Outcome, petstoreCommand } from '../operation/support/petstore-command.js';
import { KEY_TIME_TO_LIVE_MS } from '../../libs/access/src/api-key.verifier.js';
import { createTestApp, type TestApp } from '../support/app.js';

const DAY = 86_400_000;

// Each test starts several processes. Each start takes a second, or many on a busy machine.
import.meta.jest.setTimeout(120_000);

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

/** Runs a command as a separate process while the service runs. */
const petstore = (...args: string[]): Promise<Outcome> => petstoreCommand(tmpdir(), app.database.settings, ...args);

async function json<Result>(...args: string[]): Promise<Result> {
  const { stdout, stderr } = await petstore(...args, '--json');
  expect(stderr).toBe('');
  return JSON.parse(stdout) as Result;
}

/** Creates a key with ApiKeysService, without a command. */
async function made(newKey: NewApiKey): Promise<{ id: string; prefix: string; secret: string }> {
  const { key, secret } = await app.nest.get(ApiKeysService).create(newKey);
  return { id: String(key.id), prefix: key.prefix, secret };
}

interface KeyJson {
  id: string;
  secret: string;
  expiresAt: string | null;
  successorId: string | null;
}

test('keys create accepts scopes and an expiry, and keys list shows no secret', async () => {
  const options = ['--client', 'scraper', '--scopes', 'metrics:read, pets:write', '--expires', '90d'];
  const key = await json<KeyJson>('keys', 'create', ...options);
  expect(key).toMatchObject({ client: 'scraper', scopes: ['metrics:read', 'pets:write'], state: 'active' });
  expect(Math.abs(Date.parse(key.expiresAt ?? '') - Date.now() - 90 * DAY)).toBeLessThan(60_000);
  const { json: refusal } = await app.client.get('/v1/pets', { apiKey: key.secret });
  expect(refusal).toMatchObject({ code: 'insufficient_scope' });
  const list = await json<KeyJson[]>('keys', 'list');
  expect(list.find(({ id }) => id === key.id)).toMatchObject({ client: 'scraper', expiresAt: key.expiresAt });
  expect(list.filter((listed) => 'secret' in listed)).toEqual([]);

  const { stdout } = await petstore('keys', 'create', '--client', 'me');
  expect(stdout).toMatch(/^pets_\w{49}\n\nStore it now: .+never shown again\.\n/);
});

test('keys rotate, keys show and keys revoke: both keys work after a rotation, and a second revocation changes nothing', async () => {
  const old = await made({ client: 'rotated' });
  const { stdout } = await petstore('keys', 'rotate', old.prefix, '--overlap', '24h', '--quiet');
  const successor = stdout.trimEnd();
  for (const apiKey of [old.secret, successor]) {
    expect((await app.client.get('/v1/pets/1', { apiKey })).status).toBe(404);
  }
  const shown = await json<KeyJson>('keys', 'show', old.id);
  expect(Math.abs(Date.parse(shown.expiresAt ?? '') - Date.now() - DAY)).toBeLessThan(60_000);
  const { stdout: details } = await petstore('keys', 'show', String(shown.successorId));
  expect(details).toMatch(new RegExp(`predecessorId +${old.id}\n`));

  const revoked = await json<KeyJson>('keys', 'revoke', successor.slice(0, 12), '--reason', 'seen in a public log');
  expect(revoked).toMatchObject({ state: 'revoked', revokedReason: 'seen in a public log', id: shown.successorId });
  app.clock.travelTo(Date.now() + KEY_TIME_TO_LIVE_MS);
  expect((await app.client.get('/v1/pets', { apiKey: successor })).json).toMatchObject({ code: 'revoked_api_key' });
  app.clock.comeBack();
  // A second revocation keeps the first time and reason.
  const again = await json<KeyJson>('keys', 'revoke', revoked.id, '--reason', 'another');
  // The service may write the last use of the key between the two commands.
  expect({ ...again, lastUsedAt: undefined }).toEqual({ ...revoked, lastUsedAt: undefined });
});

const EVIL_AGENT = '\u001b[2Jevil/1\u009b\u202e';

/** Characters that control, hide or reorder what a terminal shows; a line feed is the commands' own. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}](?<!\n)/u;

const dayAgo = (days: number): string => new Date(Date.now() - days * DAY).toISOString().slice(0, 10);

/** The exit code and the report of getPet. */
async function report(...args: string[]): Promise<object> {
  const { code, stdout } = await petstore('deprecations', 'report', 'getPet', '--json', ...args);
  return { code, ...(JSON.parse(stdout) as object) };
}

/** Stores calls of a new key of a client, at noon of a day. */
async function called(client: string, operation: string, days: number, calls: number, agent: string): Promise<void> {
  const { id } = await made({ client });
  const insert = `INSERT INTO key_usage SELECT $1, $2, $3::date, $4, $3::date + interval '12 hours', $5`;
  await app.sql(insert, [id, operation, dayAgo(days), calls, agent]);
}

test('deprecations report lists each client with its calls, last call and user agent, and says whether a removal is safe', async () => {
  await app.sql('DELETE FROM key_usage');
  // Nothing was counted, so the absence of calls proves nothing.
  expect(await report()).toMatchObject({ code: 2, safeToRemove: false, clients: [] });

  await called('web', 'listPets', 450, 10, 'web/1');
  await called('gone', 'getPet', 30, 7, 'gone/1');
  expect(await report()).toMatchObject({ code: 0, safeToRemove: true, clients: [] });
  expect(await report('--days', '31')).toMatchObject({ code: 2, clients: [{ client: 'gone', calls: '7' }] });

  await called('acme-mobile', 'getPet', 29, 100, 'acme/1.0');
  await called('acme-mobile', 'getPet', 3, 23, 'acme/1.1');
  await called('acme-mobile', 'listPets', 1, 900, 'acme/1.2');
  await called('evil', 'getPet', 1, 5, EVIL_AGENT);
  const lastCallAt = expect.stringContaining(dayAgo(3)) as string;
  expect(await report()).toMatchObject({
    code: 2,
    safeToRemove: false,
    clients: [{ client: 'acme-mobile', calls: '123', lastCallAt, lastUserAgent: 'acme/1.1' }, { client: 'evil' }],
  });

  const { code, stdout } = await petstore('deprecations', 'report', 'getPet');
  expect(code).toBe(2);
  expect(stdout).toContain(`getPet (GET /pets/{petId}), ${dayAgo(29)} to ${dayAgo(0)}. Sunset: 2030-12-05.`);
  expect(stdout).toMatch(/\nacme-mobile +123 +\d{4}-\d\d-\d\d \d\d:\d\d +acme\/1\.1\n/);
  expect(stdout).toContain('Verdict: not safe to remove: clients that call it: 2.');
  // A user agent must not send control characters to the terminal.
  expect(stdout).toContain(String.raw`\u001b[2Jevil/1\u009b\u202e`);
  expect(stdout).not.toMatch(CONTROLS);
  const json = await petstore('deprecations', 'report', 'getPet', '--json');
  expect(json.stdout).not.toMatch(CONTROLS);
  expect(JSON.parse(json.stdout)).toMatchObject({
    clients: [{ client: 'acme-mobile' }, { client: 'evil', lastUserAgent: EVIL_AGENT }],
  });
});

test('what a stranger chose is escaped in all outputs: a reason, and names that SQL has stored', async () => {
  const { id } = await made({ client: 'escaped' });
  const reason = 'a\u009b2J\u2028b\u200b\nc\ud83d';
  const text = String.raw`a\u009b2J\u2028b\u200b\u000ac`;
  await app.sql('UPDATE api_key SET revoked_at = now(), revoked_reason = $1 WHERE id = $2', [reason.slice(0, -1), id]);
  await app.sql(`UPDATE client SET name = 'e' || chr(155) || chr(8238) WHERE name = 'escaped'`, []);
  for (const args of [['show', id], ['show', id, '--json'], ['list'], ['list', '--json'], ['revoke', id]]) {
    const { code, stdout } = await petstore('keys', ...args);
    expect([args, code]).toEqual([args, 0]);
    expect(stdout).not.toMatch(CONTROLS);
    expect(stdout).toContain(String.raw`e\u009b\u202e`);
  }
  expect((await petstore('keys', 'show', id)).stdout).toContain(text);
  expect(await json('keys', 'show', id)).toMatchObject({ revokedReason: reason.slice(0, -1), client: 'e\u009b\u202e' });
});
