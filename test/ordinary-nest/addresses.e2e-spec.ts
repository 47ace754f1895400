import { type INestApplication, VersioningType } from '@nestjs/common';
import { StartupError } from '#runtime';
import { createApplication, readConfig, type ServiceOptions } from '#service';
import { PET_STORE } from '../../src/app.description.js';
import { AppModule } from '../../src/app.module.js';
import { createTestApp } from '../support/app.js';
import { createTestDatabase } from '../support/database.js';

describe.each([
  ['createTestApp', (setUp: ServiceOptions['setUp']) => createTestApp({ setUp })],
  [
    'createApplication',
    async (setUp: ServiceOptions['setUp']) => {
      const database = await createTestDatabase();
      const config = await readConfig(PET_STORE, { PORT: '0', LOG_LEVEL: 'fatal', ...database.settings });
      const app = await createApplication(AppModule, config, { setUp });
      try {
        await app.listen(0);
      } finally {
        await app.close();
        await database.drop();
      }
    },
  ],
] as const)('%s', (_name, start) => {
  // 'addresses'
  test.each([
    ['setGlobalPrefix', (nest: INestApplication) => void nest.setGlobalPrefix('api')],
    [
      'enableVersioning',
      (nest: INestApplication) => void nest.enableVersioning({ type: VersioningType.HEADER, header: 'X-Version' }),
    ],
  ])('refuses %s in setUp', async (method, setUp) => {
    const sentence = `Nothing may call app.${method}: it would change the addresses of the API, health checks and pages. In your`;
    await expect(start(setUp)).rejects.toMatchObject({
      name: StartupError.name,
      message: expect.stringContaining(sentence) as string,
    });
  });
});
