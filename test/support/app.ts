import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { REQUEST_STEPS, type RequestStep } from '#access';
import { PlatformModule, type ServiceDefinition } from '#service';
import { importsOf } from '../../libs/service/src/module-imports.internals.js';
import { definitionOf } from '../../libs/service/src/service.module.js';
import { PET_STORE } from '../../src/app.description.js';
import { AppModule } from '../../src/app.module.js';
import { dropsDatabase, type StartOptions, startTestApp, type TestApp } from '../kit/start-test-app.js';
import { migrateDatabase, type TestDatabase } from '../kit/test-database.js';
import { createTestDatabase } from './database.js';

export type { TestApp } from '../kit/start-test-app.js';

/** Additions of a test to the service. */
export interface TestAppOptions extends StartOptions, Additions {
  /** A database shared with another application; `close` does not drop it. */
  readonly database?: TestDatabase;
}

/** What a test adds to the application's module, and to its definition. */
export interface Additions extends Partial<
  Pick<ServiceDefinition, 'defaultScopes' | 'migrations' | 'product' | 'securitySchemes' | 'typeorm'>
> {
  readonly features?: readonly (Type | DynamicModule)[];
  /** Members of the document's `info`. */
  readonly document?: Partial<ServiceDefinition['info']> &
    Partial<Pick<ServiceDefinition, 'tags' | 'readGuide' | 'readClient'>>;
}

/** What AppModule imports beside the platform, of which a test may have another definition. */
const FEATURES = importsOf(AppModule).filter((each) => !('module' in each && each.module === PlatformModule));

/** The application's module with additions, decorated as AppModule is. */
export function appModuleWith({ features = [], document = {}, migrations = [], ...others }: Additions): Type {
  const texts = { tags: PET_STORE.tags, readGuide: PET_STORE.readGuide, readClient: PET_STORE.readClient };
  const { tags, readGuide, readClient, ...info } = { ...texts, ...document };
  const definition = {
    ...{ ...PET_STORE, ...others, tags, readGuide, readClient },
    info: { ...PET_STORE.info, ...info },
    migrations: [...PET_STORE.migrations, ...migrations],
  };
  @Module({ imports: [PlatformModule.forRoot(definition), ...FEATURES, ...features] })
  class TestedModule {}
  return TestedModule;
}

/** Starts the application as main.ts does, on the engine of the test run. Close it in `afterAll`. */
export async function createTestApp({ database, settings, ...others }: TestAppOptions = {}): Promise<TestApp> {
  const { features, document, defaultScopes, migrations, product, securitySchemes, typeorm, ...start } = others;
  const added = { features, document, defaultScopes, migrations, product, securitySchemes, typeorm };
  const additions = Object.entries(added);
  const app = appModuleWith(Object.fromEntries(additions.filter(([, value]) => value !== undefined)));
  const options = { ...start, settings };
  if (database !== undefined) return startTestApp(app, database, options);
  return dropsDatabase(await createTestDatabase(), async (own) => {
    // A database of the tests has the migrations of the service. Only its owner may add others.
    if (migrations !== undefined && own.settings.DATABASE_URL !== undefined)
      await migrateDatabase(definitionOf(app), own.ownerSettings);
    return startTestApp(app, own, options);
  });
}

/** Writes the usage that was counted so far. By the step of the part, so that no test of others imports it. */
export async function writeUsage({ nest }: TestApp): Promise<void> {
  type Step = RequestStep & { write?(): Promise<void> };
  for (const step of nest.get<Step[]>(REQUEST_STEPS)) await step.write?.();
}
