import { defineService, readConfig } from '#service';
import { PET_STORE } from '../../src/app.description.js';
import { createTestApp, type TestApp } from '../support/app.js';

const KENNEL = defineService({
  ...PET_STORE,
  product: { name: 'kennel', command: 'npm run kennel --', apiKeyPrefix: 'kennel_' },
});
const PRODUCTS = [PET_STORE.product, KENNEL.product];
const apps: TestApp[] = [];

beforeAll(async () => {
  for (const product of PRODUCTS) apps.push(await createTestApp({ product }));
});

afterAll(async () => {
  for (const app of apps) await app.close();
});

test.each([0, 1])('two applications in one process keep their own names: number %p', async (index) => {
  const { name, apiKeyPrefix } = PRODUCTS[index] as (typeof PRODUCTS)[number];
  const [app, other] = [apps[index], apps[1 - index]] as [TestApp, TestApp];
  const challengeOf = async (path: string, apiKey: string | null): Promise<unknown> =>
    (await app.client.get(path, { apiKey })).headers['www-authenticate'];

  expect(app.apiKey.slice(0, apiKeyPrefix.length)).toBe(apiKeyPrefix);
  expect(await challengeOf('/v1/pets', null)).toBe(`Bearer realm="${name}"`);
  expect(await challengeOf('/v1/pets', other.apiKey)).toMatch(`Bearer realm="${name}", error="invalid_token"`);
  expect(await challengeOf('/metrics', app.apiKey)).toMatch(`Bearer realm="${name}", error="insufficient_scope"`);

  // Metrics of process_ and nodejs_ are those of prom-client itself.
  const apiKey = await app.createApiKey({ scopes: ['metrics:read'] });
  const { text } = await app.client.get('/metrics', { apiKey });
  const metrics = [...text.matchAll(/^# TYPE (?!process_|nodejs_)(\S+)/gm)].map(([, metric]) => metric);
  expect(metrics).toContain(`${name}_http_requests_in_flight`);
  expect(metrics.filter((metric) => !metric?.startsWith(`${name}_`))).toEqual([]);
});

test.each([
  [{ name: 'dog-kennel' }, "product.name must be a letter, .*, not 'dog-kennel'"],
  [{ apiKeyPrefix: 'k.d+_' }, 'product.apiKeyPrefix must be 1 to 7 letters'],
  [{ apiKeyPrefix: 'dogkennels_' }, 'product.apiKeyPrefix must be 1 to 7 letters'],
])('a definition that could not act as it reads is refused: %j', async (wrong, message) => {
  const reading = readConfig({ ...KENNEL, product: { ...KENNEL.product, ...wrong } }, { DATA_DIR: '/nowhere' });
  await expect(reading).rejects.toThrow(new RegExp(`^The definition of the service is wrong: ${message}`));
});
