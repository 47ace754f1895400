import { Controller, Get, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { createApplication, loadEnvironmentFile, PlatformModule, readConfig } from '#service';
import { PET_STORE } from '../../src/app.description.js';
import { AppModule } from '../../src/app.module.js';
import { PetsService } from '../../src/pets/pets.service.js';

/*
 * Makes an application by another function than `startService`, and says whether it could serve:
 * `node --import ./test/support/register-typescript.js test/support/other-starts.ts NestFactory.create`
 */

@Controller('test-open')
class OpenController {
  @Get()
  answer(): string {
    return 'without a key';
  }
}

/** No entity, so that Nest finds all that its providers need. */
@Module({ imports: [PlatformModule.forRoot(PET_STORE)], controllers: [OpenController] })
class PlainModule {}

const WAYS: Record<string, () => Promise<unknown>> = {
  'NestFactory.create': async () => (await NestFactory.create(PlainModule)).init(),
  'NestFactory.create of entities': async () => (await NestFactory.create(AppModule)).init(),
  'NestFactory.createApplicationContext': () => NestFactory.createApplicationContext(PlainModule),
  'Test.createTestingModule': async () => {
    const module = await Test.createTestingModule({ imports: [PlainModule] }).compile();
    await module.createNestApplication().init();
  },
  'NestFactory.create after createApplication': async () => {
    await loadEnvironmentFile(PET_STORE);
    await (await createApplication(AppModule, await readConfig(PET_STORE))).close();
    await NestFactory.create(PlainModule, { abortOnError: false });
  },
  // As docs/extending.md shows it.
  script: async () => {
    await loadEnvironmentFile(PET_STORE);
    const app = await createApplication(AppModule, await readConfig(PET_STORE));
    try {
      app.flushLogs();
      await app.init();
      const { items } = await app.get(PetsService).list({ limit: 1 });
      new Logger('Script').log(`found ${items.length} pets`);
    } finally {
      await app.close();
    }
  },
};

const [way = ''] = process.argv.slice(2);
await WAYS[way]?.();
process.stdout.write('made\n');
