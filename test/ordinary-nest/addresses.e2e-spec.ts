import { type INestApplication, VersioningType } from '@nestjs/common';
import { createTestApp } from '../support/app.js';

// 'addresses'
test.each([
  ['setGlobalPrefix', (nest: INestApplication) => void nest.setGlobalPrefix('api'), '/api', '/api/v1/pets'],
  [
    'enableVersioning',
    (nest: INestApplication) => void nest.enableVersioning({ type: VersioningType.HEADER, header: 'X-Version' }),
    '',
    '/pets',
  ],
])('%s in setUp moves paths, as in stock Nest, but not those of the document', async (_, setUp, prefix, pets) => {
  const app = await createTestApp({ setUp });
  for (const [path, status] of [
    ['/v1/pets', 404],
    [pets, 200],
    [`${prefix}/health/live`, 200],
  ] as const) {
    expect([path, (await app.client.get(path)).status]).toEqual([path, status]);
  }
  const { json } = await app.client.get(`${prefix}/openapi.json`);
  expect(json).toMatchObject({ servers: [{ url: expect.stringMatching(/\/v1$/) as string }], paths: { '/pets': {} } });
  await app.close();
});
