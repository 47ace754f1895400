import { AsyncLocalStorage } from 'node:async_hooks';
import type { PoolClient } from 'pg';
import { AbandonedChanges } from './abandoned-changes.js';
import type { ServicePool } from './service-pool.js';

test('AbandonedChanges connects outside of the context of the request that failed', async () => {
  const requests = new AsyncLocalStorage<string>();
  let asked: (store: string | undefined) => void = () => undefined;
  const contextOfQuestion = new Promise<string | undefined>((resolve) => (asked = resolve));
  const pool = {
    options: { max: 4 },
    connect: () => {
      asked(requests.getStore());
      return Promise.reject(new Error('no connection'));
    },
  };
  const changes = new AbandonedChanges(pool as unknown as ServicePool);
  const client = { release: () => undefined } as unknown as PoolClient;
  requests.run('request', () => expect(changes.keep(client, new Promise(() => undefined))).toBe(true));
  expect(await contextOfQuestion).toBeUndefined();
});
