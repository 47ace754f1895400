import { ApiKeysService } from '#access';
import { OperationRegistry } from '#operations';
import { judge, type Verdict } from '../../contract/judge.js';
import { PARTS, PETS, REQUESTS } from '../../contract/rows.js';
import type { TestApp } from './app.js';

/** The rows of the contract. Those of HTTP come first: two wait until the service closes the connection. */
export const ROWS = [...REQUESTS, ...PETS, ...PARTS];

/** Judges a service by the rows that need this setting, and by those of every answer. */
export async function judgeApp(server: TestApp, setting?: string): Promise<Verdict> {
  const keys = server.nest.get(ApiKeysService);
  const expired = await server.createApiKey({ client: 'expired', expiresAt: new Date(Date.now() - 1) });
  const { key, secret: revoked } = await keys.create({ client: 'revoked' });
  await keys.revoke(String(key.id));
  const other = await server.createApiKey({ client: 'other' });
  const ofOneScope = server.nest
    .get(OperationRegistry)
    .scopes.map(async (scope) => [scope.replace(':', '_'), await server.createApiKey({ scopes: [scope] })]);
  const variables = {
    key: server.apiKey,
    ...(Object.fromEntries(await Promise.all(ofOneScope)) as Record<string, string>),
    other,
    base: server.config.publicBaseUrl,
    expired,
    revoked,
  };
  const rows = ROWS.filter((row) => row.setting === setting || row.group === 'Every response');
  return judge({ url: server.origin, variables }, rows);
}
