import {
  Controller,
  Get,
  type INestApplication,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  type Provider,
  type Type as Class,
} from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { TypeOrmModule } from '@nestjs/typeorm';
import {
  Column,
  DataSource,
  DefaultNamingStrategy,
  Entity,
  type EntitySubscriberInterface,
  EventSubscriber,
  type InsertEvent,
  type Logger,
  PrimaryColumn,
  type QueryRunner,
} from 'typeorm';
import express from 'express';
import { ApiKeysService, requireScopes } from '#access';
import { Idempotency } from '#resources';
import { Metrics } from '#ops';
import { RequireScopes, Tag } from '#operations';
import { Database, type Migration } from '#postgres';
import { Clock } from '#runtime';
import { Config } from '#settings';
import { type Additions, createTestApp, type TestApp } from '../support/app.js';

/* The additions of a project by the options of AppModule.forRoot, and the test kit for its tests. */

@Injectable()
class Harbour {
  free(): number {
    throw new TypeError('no ship has come in');
  }
}

@Entity('test_ship')
class ShipEntity {
  @PrimaryColumn({ type: 'varchar', length: 50 }) name: string;
  @Column({ type: 'bigint', nullable: true }) petId: string | null;
}

/** Columns without a name of their own are in snake case. */
class SnakeCase extends DefaultNamingStrategy {
  override columnName(property: string, name: string): string {
    return name || property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  }
}

const launched: string[] = [];

@EventSubscriber()
class Launches implements EntitySubscriberInterface<ShipEntity> {
  listenTo(): typeof ShipEntity {
    return ShipEntity;
  }

  afterInsert({ entity }: InsertEvent<ShipEntity>): void {
    launched.push(entity.name);
  }
}

const logged: string[] = [];

@Tag('Store', 'Ships.')
@Controller('test-ships')
class TestShipsController {
  constructor(private readonly harbour: Harbour) {}

  @Get()
  @RequireScopes('ships:read')
  @ApiOperation({ summary: 'Count ships' })
  @ApiOkResponse({ type: Number })
  countShips(): number {
    return this.harbour.free();
  }
}

@Module({ imports: [TypeOrmModule.forFeature([ShipEntity])], controllers: [TestShipsController], providers: [Harbour] })
class ShipsModule {}

/** Answers by itself, as the routers of bull-board and proxies do. */
const router = express.Router().get('/', (_, response) => void response.send('the queues'));

/** The classes of `petstore-service/platform` that Nest instantiates: a module injects them in a constructor. */
const INJECTABLES: readonly Class[] = [ApiKeysService, Clock, Config, Database, Idempotency, Metrics];

const ofOwn = (type: Class): Provider => ({
  provide: `own ${type.name}`,
  inject: [type],
  useFactory: (it) => it as unknown,
});

@Module({ providers: INJECTABLES.map(ofOwn) })
class AskingModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(requireScopes('queues:read'), router).forRoutes('/partner');
  }
}

function migration(name: string, statement: string): new () => Migration {
  class Added implements Migration {
    readonly name = name;
    readonly backwardCompatible = true;
    up = (queryRunner: QueryRunner): Promise<unknown> => queryRunner.query(statement);
    down = (): Promise<void> => Promise.resolve();
  }
  return Added;
}

/** The first one refers to the table of the other one, which refers to a table of the service. */
const CREATE_SHIPS = 'CREATE TABLE test_ship (name varchar(50) PRIMARY KEY, pet_id bigint REFERENCES pet)';
const ADDED_MIGRATIONS = [
  migration('FillShips1795500000001', `INSERT INTO test_ship (name) VALUES ('Argo')`),
  migration('CreateShips1795500000000', CREATE_SHIPS),
];

const ADDED = {
  features: [ShipsModule, AskingModule],
  migrations: ADDED_MIGRATIONS,
  document: {
    title: 'Ship Service',
    version: '7.8.9',
    tags: [{ name: 'Docks', description: 'Nothing yet.' }],
    readGuide: () => '# All about ships\n\n`npm install http://localhost:3000/docs/client.tgz`',
    readClient: () => Buffer.from('the client of ships'),
  },
  defaultScopes: ['pets:read', 'ships:read'],
  typeorm: {
    namingStrategy: new SnakeCase(),
    subscribers: [Launches],
    logging: true,
    logger: { logQuery: (text: string) => logged.push(text), logSchemaBuild: () => undefined } as unknown as Logger,
  },
} satisfies Additions;

describe('a project', () => {
  let app: TestApp;
  const printed: string[] = [];
  const { stderr } = process;
  const write = stderr.write.bind(stderr);
  beforeAll(async () => {
    const setUp = (app: INestApplication): void => void app.use('/queues', requireScopes('queues:read'), router);
    app = await createTestApp({ ...ADDED, setUp });
    stderr.write = (text: string) => printed.push(text) > 0;
  });
  afterAll(async () => {
    stderr.write = write;
    await app.close();
  });
  beforeEach(() => void printed.splice(0));

  test('its migrations are applied in the order of their times, however they are listed', async () => {
    expect(await app.sql('SELECT name FROM test_ship')).toEqual([['Argo']]);
    const applied = (await app.sql('SELECT name FROM schema_migration ORDER BY id')).flat();
    expect(applied.slice(-2)).toEqual(['CreateShips1795500000000', 'FillShips1795500000001']);
    expect((await app.client.get('/health/ready')).status).toBe(200);
  });

  test('its title, version, tags, guide and client are in the document and on the pages', async () => {
    const { json } = await app.client.get('/openapi.json');
    expect(json.info).toMatchObject({ title: 'Ship Service', version: '7.8.9', license: { name: 'MIT' } });
    // Features of a team may come between those of the service and those of the project.
    const [first, ...others] = json.tags as unknown[];
    expect(first).toMatchObject({ name: 'Pets' });
    expect(others.slice(-2)).toEqual([
      { name: 'Store', description: 'Ships.' },
      { name: 'Docks', description: 'Nothing yet.' },
    ]);
    const paths = Object.keys(json.paths as object);
    expect([paths.slice(0, 2), paths.at(-1)]).toEqual([['/pets', '/pets/{petId}'], '/test-ships']);
    expect((await app.client.get('/docs')).text).toContain('Ship Service');
    const guide = (await app.client.get('/docs/guide')).text;
    expect(guide).toContain('All about ships');
    expect((await app.client.get('/docs/client.tgz')).text).toBe('the client of ships');
    expect(guide).toContain(`npm install ${app.config.publicBaseUrl.replace(/\/v1$/, '')}/docs/client.tgz<`);
  });

  test("its naming strategy, subscribers and logger act on TypeORM's statements", async () => {
    await app.nest.get(DataSource).getRepository(ShipEntity).insert({ name: 'Beagle', petId: null });
    expect(await app.sql(`SELECT pet_id FROM test_ship WHERE name = 'Beagle'`)).toEqual([[null]]);
    expect([launched, logged.filter((text) => text.startsWith('INSERT INTO "test_ship"'))]).toEqual([
      ['Beagle'],
      [expect.stringContaining('"pet_id"')],
    ]);
    const apiKey = await app.createApiKey({ scopes: ['pets:write'] });
    expect((await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 }, { apiKey })).status).toBe(201);
  });

  test('the test kit compares entities with migrations', async () => {
    // The entity declares neither relation nor name of a key.
    expect(await app.schemaDifferences()).toEqual(['ALTER TABLE "test_ship" DROP CONSTRAINT "test_ship_pet_id_fkey"']);
  });

  test('500: the test kit prints the logged error with its stack, unless the call expects a 500', async () => {
    expect((await app.client.get('/v1/test-ships')).status).toBe(500);
    expect(printed.join('')).toMatch(
      /^GET \/v1\/test-ships got 500 because of\nTypeError: no ship has come in\n +at Harbour\.free \(.*added\.e2e-spec\.ts/,
    );
    printed.splice(0);
    expect((await app.client.get('/v1/test-ships', { expects500: true })).status).toBe(500);
    expect(printed).toEqual([]);
  });

  test('a module without imports gets every provider of the platform that packages may use', () => {
    for (const type of INJECTABLES) expect(app.nest.get(`own ${type.name}`)).toBeInstanceOf(type);
  });

  test.each(['/queues', '/partner'])(
    'requireScopes admits to middleware whom @RequireScopes admits to a handler: %s',
    async (path) => {
      const apiKey = await app.createApiKey({ scopes: ['queues:read'] });
      const served = await app.client.get(path, { apiKey });
      expect([served.status, served.text]).toEqual([200, 'the queues']);
      expect(served.headers.ratelimit).toMatch(/^"client";r=/);
      const others = [null, 'pets_wrong', await app.createApiKey({ scopes: ['pets:read'] })];
      const refusals = await Promise.all(others.map((other) => app.client.get(path, { apiKey: other })));
      expect(refusals.map(({ headers }) => headers['www-authenticate'])).toEqual([
        'Bearer realm="petstore"',
        'Bearer realm="petstore", error="invalid_token", error_description="The API key is not known"',
        'Bearer realm="petstore", error="insufficient_scope", scope="queues:read"',
      ]);
    },
  );

  test('requireScopes refuses at once what is no scope', () => {
    expect(() => requireScopes('admin')).toThrow("'admin' is no scope");
  });
});

test('a test can replace a provider as in Nest', async () => {
  const app = await createTestApp({
    ...ADDED,
    override: (module) => module.overrideProvider(Harbour).useValue({ free: () => 3 }),
  });
  expect(await app.client.get('/v1/test-ships')).toMatchObject({ status: 200, text: '3' });
  await app.close();
});
