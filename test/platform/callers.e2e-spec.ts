import {
  Body,
  type CanActivate,
  Controller,
  Delete,
  Get,
  Inject,
  Injectable,
  Module,
  type NestInterceptor,
  NotFoundException,
  Param,
  Post,
  Query,
  Scope,
  UnauthorizedException,
} from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, REQUEST } from '@nestjs/core';
import { ApiBearerAuth, ApiCookieAuth, ApiOAuth2, ApiSecurity, type OpenAPIObject } from '@nestjs/swagger';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import type { Request } from 'express';
import { Column, Entity, PrimaryGeneratedColumn, Repository } from 'typeorm';
import {
  Authenticator,
  type Caller,
  CurrentCaller,
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  type IdempotencyKey,
  Idempotent,
  Int64Parameter,
  Int64Property,
  int64Of,
  LimitParameter,
  type Page,
  Paged,
  Public,
  RequireScopes,
  SharedRepository,
  TextProperty,
} from '#platform';
import { describeApplication } from '../../libs/service/src/without-service.js';
import { PET_STORE } from '../../src/app.description.js';
import { Handlers } from '../ordinary-nest/handlers.js';
import { type Additions, appModuleWith, createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* Who calls: for handlers, services, guards and interceptors of modules, and in the document. The tenants are those of docs/extending.md. */

declare module '#platform' {
  interface Caller {
    readonly tenant?: string;
  }
}

/** The tenant of a request: by a token its claim, by an API key the name of its client. */
const tenantOf = ({ tenant, client }: Caller): string => tenant ?? client;

/** Takes tokens such as `token shop north`, of a client and a tenant. */
@Injectable()
class TokenAuthenticator extends Authenticator {
  static override readonly securitySchemes = {
    token: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: 'https://login.example/token', scopes: {} } } },
  } as const;

  authenticate({ headers }: Request): Caller | undefined {
    const [, client, tenant] = /^Token (\w+) (\w+)$/.exec(headers.authorization ?? '') ?? [];
    if (client === undefined || tenant === undefined) return undefined;
    if (client === 'nobody') throw new UnauthorizedException();
    return { client, scopes: ['toys:read'], tenant };
  }
}

@Entity('test_toy')
class ToyEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' }) id: string;
  @Column({ type: 'varchar' }) tenant: string;
  @Column({ type: 'varchar' }) name: string;
}

class NewToy {
  @TextProperty({ description: 'Its name.', minLength: 1, maxLength: 9 })
  name: string;
}

class Toy extends NewToy {
  @Int64Property({ description: 'Its identifier.' })
  id: bigint;
}

const toToy = ({ id, name }: ToyEntity): Toy => Object.assign(new Toy(), { id: int64Of(id), name });

class ToyPath {
  @Int64Parameter({ description: 'The toy.' })
  toyId: bigint;
}

class ListToysQuery {
  @LimitParameter('Most toys.') limit = DEFAULT_PAGE_SIZE;
  @CursorParameter('Start of the page.') cursor?: string;
}

@Injectable()
class ToysRepository extends SharedRepository<ToyEntity, Toy> {
  constructor(@InjectRepository(ToyEntity) toys: Repository<ToyEntity>) {
    super(toys, toToy);
  }

  list(query: ListToysQuery, caller: Caller): Promise<Page<Toy>> {
    return this.page(query, { tenant: tenantOf(caller) });
  }

  add(toy: NewToy, caller: Caller, key?: IdempotencyKey): Promise<bigint> {
    return this.insertOnce(key, toy, { ...toy, tenant: tenantOf(caller) });
  }

  async get(id: bigint, caller: Caller): Promise<Toy | undefined> {
    const found = await this.repository.findOneBy({ id: String(id), tenant: tenantOf(caller) });
    return found ? toToy(found) : undefined;
  }

  async delete(id: bigint, caller: Caller): Promise<boolean> {
    const { affected } = await this.repository.delete({ id: String(id), tenant: tenantOf(caller) });
    return affected === 1;
  }
}

@Injectable({ scope: Scope.REQUEST })
class Tenant {
  constructor(@Inject(REQUEST) private readonly request: Request) {}

  // Nest makes providers of a request before the guards run.
  get name(): string | undefined {
    const { caller } = this.request;
    return caller && tenantOf(caller);
  }
}

const seen: (Caller | undefined)[] = [];

const callerGuard: CanActivate = {
  canActivate: (execution) => {
    const { caller } = execution.switchToHttp().getRequest<Request>();
    seen.push(caller);
    return caller?.tenant !== 'closed';
  },
};
const callerInterceptor: NestInterceptor = {
  intercept: (execution, next) => {
    seen.push(execution.switchToHttp().getRequest<Request>().caller);
    return next.handle();
  },
};

@Controller('test-toys')
@RequireScopes('toys:read')
class TestToysController {
  constructor(private readonly toys: ToysRepository) {}

  @Get()
  @Paged(Toy, 'A page of toys.')
  listToys(@Query() query: ListToysQuery, @CurrentCaller() caller: Caller): Promise<Page<Toy>> {
    return this.toys.list(query, caller);
  }

  @Get('caller')
  readCaller(@CurrentCaller() caller: Caller | undefined): unknown {
    return caller;
  }

  @Post()
  async addToy(
    @Body() toy: NewToy,
    @CurrentCaller() caller: Caller,
    @Idempotent() key: IdempotencyKey | undefined,
  ): Promise<Toy> {
    return Object.assign(new Toy(), { ...toy, id: await this.toys.add(toy, caller, key) });
  }

  @Get('by-id/:toyId')
  async getToy(@Param() { toyId }: ToyPath, @CurrentCaller() caller: Caller): Promise<Toy> {
    const toy = await this.toys.get(toyId, caller);
    if (!toy) throw new NotFoundException();
    return toy;
  }

  @Delete('by-id/:toyId')
  async deleteToy(@Param() { toyId }: ToyPath, @CurrentCaller() caller: Caller): Promise<void> {
    if (!(await this.toys.delete(toyId, caller))) throw new NotFoundException();
  }

  @Get('public')
  @Public()
  readPublic(@CurrentCaller() caller: Caller | undefined): unknown {
    return { isKnown: caller !== undefined };
  }
}

@Controller('test-tenants')
@RequireScopes()
class TestTenantsController {
  constructor(private readonly tenant: Tenant) {}

  @Get()
  readTenant(): unknown {
    return { tenant: this.tenant.name };
  }
}

@Module({
  imports: [TypeOrmModule.forFeature([ToyEntity])],
  controllers: [TestToysController, TestTenantsController],
  providers: [
    ToysRepository,
    Tenant,
    TokenAuthenticator,
    { provide: APP_GUARD, useValue: callerGuard },
    { provide: APP_INTERCEPTOR, useValue: callerInterceptor },
  ],
})
class ToysModule {}

const { token } = TokenAuthenticator.securitySchemes;
const SESSION = { session: { type: 'apiKey', in: 'cookie', name: 'sid' } } as const;
const SECURED = new Handlers('test-secured');
const decoratorsOf: Record<string, MethodDecorator[]> = {
  plain: [RequireScopes('toys:read')],
  named: [RequireScopes('toys:read'), ApiSecurity('token'), ApiBearerAuth('bearerAuth')],
  scoped: [RequireScopes('toys:read'), ApiOAuth2(['toys:read'], 'token')],
  session: [RequireScopes('toys:read'), ApiCookieAuth('session')],
  'open/{id}': [ApiSecurity('token')],
  guarded: [ApiCookieAuth('session')],
};
for (const [path, decorators] of Object.entries(decoratorsOf))
  SECURED.add(Get(path.replace('{id}', ':id')), path, () => undefined, { decorators });

@Module({ controllers: [SECURED.controller] })
class SecuredModule {}

const ADDED = {
  features: [ToysModule, SecuredModule],
  securitySchemes: SESSION,
  defaultScopes: ['toys:read'],
} satisfies Additions;

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp(ADDED);
  await app.sql(
    'CREATE TABLE test_toy (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant varchar NOT NULL, name varchar NOT NULL)',
  );
  await app.sql(
    "INSERT INTO test_toy (tenant, name) VALUES ('north', 'a'), ('south', 'b'), ('test-client', 'c'), ('north', 'd')",
  );
});
beforeEach(() => (seen.length = 0));
afterAll(() => app.close());

const byToken = (client: string, tenant: string): object => ({
  apiKey: null,
  headers: { authorization: `Token ${client} ${tenant}` },
});

test('a list by tenant: of a claim of a token, and of the client of an API key', async () => {
  const namesOf = async (call: object): Promise<unknown> =>
    ((await app.client.get('/v1/test-toys', call)).json as { name: string }[]).map(({ name }) => name);
  expect(await namesOf(byToken('shop', 'north'))).toEqual(['a', 'd']);
  expect(await namesOf(byToken('shop', 'south'))).toEqual(['b']);
  expect(await namesOf({})).toEqual(['c']);
  expect(await namesOf({ apiKey: await app.createApiKey({ client: 'south' }) })).toEqual(['b']);
  const first = await app.client.get('/v1/test-toys?limit=1', byToken('shop', 'north'));
  const [, next = ''] = /<[^>]*?(\?[^>]*)>; rel="next"/.exec(String(first.headers.link)) ?? [];
  expect((await app.client.get(`/v1/test-toys${next}`, byToken('shop', 'north'))).json).toMatchObject([{ name: 'd' }]);
  // The cursor belongs to the tenant.
  expect((await app.client.get(`/v1/test-toys${next}`, byToken('shop', 'south'))).json).toMatchObject({
    code: 'invalid_cursor',
  });
});

test('a row belongs to the tenant that added it: others neither read nor delete it by its id', async () => {
  const call = (method: string, path: string, tenant: string, body?: object): Promise<HttpAnswer> =>
    app.client.send(method, `/v1/test-toys${path}`, { ...byToken('shop', tenant), body });
  const { json } = await call('POST', '', 'west', { name: 'e' });
  const path = `/by-id/${(json as { id: number }).id}`;
  for (const method of ['GET', 'DELETE']) expect((await call(method, path, 'south')).status).toBe(404);
  expect((await call('GET', path, 'west')).json).toEqual(json);
  expect((await call('DELETE', path, 'west')).status).toBe(200);
  expect((await call('DELETE', path, 'west')).status).toBe(404);
});

test.each<[string, object, Caller]>([
  ['an API key', {}, { client: 'test-client', scopes: ['toys:read'] }],
  ['an authenticator', byToken('shop', 'north'), { client: 'shop', scopes: ['toys:read'], tenant: 'north' }],
])('handlers, guards, interceptors and services know the caller: %s', async (_, call, caller) => {
  expect((await app.client.get('/v1/test-toys/caller', call)).json).toEqual(caller);
  expect(seen).toEqual([caller, caller]);
  expect((await app.client.get('/v1/test-tenants', call)).json).toEqual({ tenant: tenantOf(caller) });
});

test('a guard refuses by what the authenticator has added', async () => {
  expect((await app.client.get('/v1/test-toys', byToken('shop', 'closed'))).status).toBe(403);
});

test('a caller of an API key cannot be changed: it serves other requests, too', async () => {
  await app.client.get('/v1/test-toys/caller');
  const [caller] = seen;
  expect(() => Object.assign(caller as Caller, { client: 'other' })).toThrow(TypeError);
  expect(() => (caller?.scopes as string[]).push('toys:write')).toThrow(TypeError);
});

test('undefined at public operations, with a key and without, and before a refusal', async () => {
  for (const call of [{}, { apiKey: null }, byToken('shop', 'north')]) {
    expect((await app.client.get('/v1/test-toys/public', call)).json).toEqual({ isKnown: false });
  }
  expect(seen.filter(Boolean)).toEqual([]);
  seen.length = 0;
  expect((await app.client.get('/v1/test-toys/caller', byToken('nobody', 'north'))).status).toBe(401);
  expect(seen).toEqual([]);
});

test('an authenticator adds its own security scheme, which every operation that is not public takes beside the API key', async () => {
  const document = (await app.client.get('/openapi.json')).json as OpenAPIObject;
  // As the command makes it, without instances.
  const made = await describeApplication(appModuleWith(ADDED), { ...app.config, product: PET_STORE.product });
  expect(JSON.parse(made.json)).toEqual(document);
  expect(document.components?.securitySchemes).toEqual({
    bearerAuth: expect.objectContaining({ type: 'http', scheme: 'bearer' }) as object,
    token,
    ...SESSION,
  });
  expect(document.security).toEqual([{ bearerAuth: [] }, { token: [] }]);
  const securityOf = (path: string): unknown => document.paths[`/test-secured/${path}`]?.get?.security;
  expect(Object.keys(decoratorsOf).map(securityOf)).toEqual([
    undefined,
    undefined,
    [{ bearerAuth: [] }, { token: ['toys:read'] }],
    [
      { bearerAuth: [], session: [] },
      { token: [], session: [] },
    ],
    [],
    [{ session: [] }],
  ]);
});
