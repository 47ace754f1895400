import {
  Body,
  type CanActivate,
  Controller,
  Delete,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  Logger,
  Module,
  type NestInterceptor,
  NotFoundException,
  Param,
  Post,
  Query,
  Scope,
  Sse,
  UnauthorizedException,
} from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, Reflector, REQUEST } from '@nestjs/core';
import { ApiBearerAuth, ApiCookieAuth, ApiOAuth2, ApiSecurity, type OpenAPIObject } from '@nestjs/swagger';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import type { Request } from 'express';
import { createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { interval } from 'rxjs';
import { Column, Entity, PrimaryGeneratedColumn, Repository } from 'typeorm';
import { clientNameOf } from '#access';
import { PUBLIC_METADATA } from '#operations';
import {
  ApiKeysService,
  Authenticator,
  type Caller,
  Clock,
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
import { KEY_TIME_TO_LIVE_MS } from '../../libs/access/src/api-key.verifier.js';
import { describeApplication } from '../../libs/service/src/without-service.js';
import { PET_STORE } from '../../src/app.description.js';
import { Handlers } from '../ordinary-nest/handlers.js';
import { type Additions, appModuleWith, createTestApp, type TestApp, writeUsage } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/*
 * Who calls: for handlers, services, guards and interceptors of modules, and in the document. Beside API keys there are JWTs by a local
 * set of keys. The tenants are those of docs/extending.md.
 */

declare module '#platform' {
  interface Caller {
    readonly tenant?: string;
  }
}

/** The tenant of a request: by a token its claim, by an API key the name of its client. */
const tenantOf = ({ tenant, client }: Caller): string => tenant ?? client;

const ISSUER = { alg: 'ES256', kid: 'a key' };
const { privateKey, publicKey } = await generateKeyPair(ISSUER.alg);
const KEY_SET = createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), ...ISSUER }] });

const CHECKS = { audience: 'pets', currentDate: new Date() };

interface Claims {
  readonly azp?: unknown;
  readonly scope?: unknown;
  readonly tenant?: unknown;
}

const SCOPES = ['pets:read', 'pets:write', 'toys:read'];

function createJwt(claims: Claims & { readonly exp?: number } = {}): Promise<string> {
  const own = { azp: 'web-shop', tenant: 'acme', scope: SCOPES.join(' '), exp: Date.now() / 1000 + 60 };
  const all = { aud: 'pets', ...own, ...claims };
  return new SignJWT(all).setProtectedHeader(ISSUER).sign(privateKey);
}

@Injectable()
export class JwtAuthenticator extends Authenticator {
  static override readonly securitySchemes = { jwt: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } as const;
  private readonly logger = new Logger(JwtAuthenticator.name);

  async authenticate({ headers }: Request): Promise<Caller | undefined> {
    const [, token] = /^Bearer (eyJ\S+)$/i.exec(headers.authorization ?? '') ?? [];
    if (token === undefined) return undefined;
    const { payload } = await jwtVerify<Claims>(token, KEY_SET, CHECKS).catch((error: Error) => {
      this.logger.warn(`Refused a token: ${error.message}`);
      throw new UnauthorizedException('The token is not valid.');
    });
    const scopes = typeof payload.scope === 'string' ? payload.scope.split(' ') : [];
    const tenant = clientNameOf(payload.tenant);
    return { client: `${encodeURIComponent(tenant)}:${clientNameOf(payload.azp)}`, scopes, tenant };
  }
}

let asked = 0;

@Injectable()
class CountedAuthenticator extends JwtAuthenticator {
  constructor(private readonly clock: Clock) {
    super();
  }

  override authenticate(request: Request): Promise<Caller | undefined> {
    asked++;
    CHECKS.currentDate = new Date(this.clock.now());
    // What a team without `clientNameOf` would return.
    if (request.headers['x-client'] === '') return Promise.resolve({ client: '', scopes: [] });
    return super.authenticate(request);
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

/** A guard of a team, of which a public route must be spared. */
@Injectable()
class ClosingGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const { caller, headers } = context.switchToHttp().getRequest<Request>();
    seen.push(caller);
    const targets = [context.getHandler(), context.getClass()];
    const isPublic = this.reflector.getAllAndOverride<boolean | undefined>(PUBLIC_METADATA, targets);
    return isPublic === true || (headers['x-closed'] === undefined && caller?.tenant !== 'closed');
  }
}

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
    CountedAuthenticator,
    { provide: APP_GUARD, useClass: ClosingGuard },
    { provide: APP_INTERCEPTOR, useValue: callerInterceptor },
  ],
})
class ToysModule {}

const { jwt } = JwtAuthenticator.securitySchemes;
const SESSION = { session: { type: 'apiKey', in: 'cookie', name: 'sid' } } as const;
const SECURED = new Handlers('test-secured');
const decoratorsOf: Record<string, MethodDecorator[]> = {
  plain: [RequireScopes('toys:read')],
  named: [RequireScopes('toys:read'), ApiSecurity('jwt'), ApiBearerAuth('bearerAuth')],
  scoped: [RequireScopes('toys:read'), ApiOAuth2(['toys:read'], 'jwt')],
  session: [RequireScopes('toys:read'), ApiCookieAuth('session')],
  'open/{id}': [ApiSecurity('jwt')],
  guarded: [ApiCookieAuth('session')],
};
for (const [path, decorators] of Object.entries(decoratorsOf))
  SECURED.add(Get(path.replace('{id}', ':id')), path, () => undefined, { decorators });

const TICKS = new Handlers('test-ticks');
TICKS.add(Sse(), 'tick', () => interval(50), { decorators: [RequireScopes('pets:read')] });

@Module({ controllers: [SECURED.controller, TICKS.controller] })
class SecuredModule {}

const ADDED = {
  features: [ToysModule, SecuredModule],
  securitySchemes: SESSION,
  defaultScopes: ['pets:read', 'toys:read'],
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
beforeEach(() => (seen.length = asked = 0));
afterAll(() => app.close());

/** The JWT of a tenant. */
const byToken = async (tenant: string): Promise<{ apiKey: string }> => ({ apiKey: await createJwt({ tenant }) });

test('a list by tenant: of a claim of a token, and of the client of an API key', async () => {
  const [north, south] = [await byToken('north'), await byToken('south')];
  const namesOf = async (call: object): Promise<unknown> =>
    ((await app.client.get('/v1/test-toys', call)).json as { name: string }[]).map(({ name }) => name);
  expect(await namesOf(north)).toEqual(['a', 'd']);
  expect(await namesOf(south)).toEqual(['b']);
  expect(await namesOf({})).toEqual(['c']);
  expect(await namesOf({ apiKey: await app.createApiKey({ client: 'south' }) })).toEqual(['b']);
  const first = await app.client.get('/v1/test-toys?limit=1', north);
  const [, next = ''] = /<[^>]*?(\?[^>]*)>; rel="next"/.exec(String(first.headers.link)) ?? [];
  expect((await app.client.get(`/v1/test-toys${next}`, north)).json).toMatchObject([{ name: 'd' }]);
  // The cursor belongs to the tenant.
  expect((await app.client.get(`/v1/test-toys${next}`, south)).json).toMatchObject({
    code: 'invalid_cursor',
  });
});

test('a row belongs to the tenant that added it: others neither read nor delete it by its id', async () => {
  const call = async (method: string, path: string, tenant: string, body?: object): Promise<HttpAnswer> =>
    app.client.send(method, `/v1/test-toys${path}`, { ...(await byToken(tenant)), body });
  const { json } = await call('POST', '', 'west', { name: 'e' });
  const path = `/by-id/${json.id}`;
  for (const method of ['GET', 'DELETE']) expect((await call(method, path, 'south')).status).toBe(404);
  expect((await call('GET', path, 'west')).json).toEqual(json);
  expect((await call('DELETE', path, 'west')).status).toBe(200);
  expect((await call('DELETE', path, 'west')).status).toBe(404);
});

test.each<[string, object, Caller]>([
  ['an API key', {}, { client: 'test-client', scopes: ADDED.defaultScopes }],
  ['an authenticator', await byToken('north'), { client: 'north:web-shop', scopes: SCOPES, tenant: 'north' }],
])('handlers, guards, interceptors and services know the caller: %s', async (_, call, caller) => {
  expect((await app.client.get('/v1/test-toys/caller', call)).json).toEqual(caller);
  expect(seen).toEqual([caller, caller]);
  expect((await app.client.get('/v1/test-tenants', call)).json).toEqual({ tenant: tenantOf(caller) });
});

test('a guard refuses by what the authenticator has added', async () => {
  expect((await app.client.get('/v1/test-toys', await byToken('closed'))).status).toBe(403);
});

test('a caller of an API key cannot be changed: it serves other requests, too', async () => {
  await app.client.get('/v1/test-toys/caller');
  const [caller] = seen;
  expect(() => Object.assign(caller as Caller, { client: 'other' })).toThrow(TypeError);
  expect(() => (caller?.scopes as string[]).push('toys:write')).toThrow(TypeError);
});

test('undefined at public operations, with a key and without, and before a refusal', async () => {
  for (const call of [{}, { apiKey: null }, await byToken('north')]) {
    expect((await app.client.get('/v1/test-toys/public', call)).json).toEqual({ isKnown: false });
  }
  expect(seen.filter(Boolean)).toEqual([]);
  seen.length = 0;
  // Of an authenticator that names no client.
  const refused = await app.client.get('/v1/test-toys/caller', { apiKey: null, headers: { 'x-client': '' } });
  expect(refused.status).toBe(401);
  expect(seen).toEqual([]);
});

const list = async (apiKey: string | Promise<string>): Promise<HttpAnswer> =>
  app.client.get('/v1/pets', { apiKey: await apiKey });
const codeOf = ({ status, json }: HttpAnswer): unknown => [status, json.code];

test('a JWT has its scopes, limit, retries, usage and name in the log', async () => {
  const azp = 'mobile app';
  const jwt = await createJwt({ azp });
  const pet = { name: 'Rex', categoryId: 1, status: 'sold' };
  const create = (): Promise<HttpAnswer> =>
    app.client.post('/v1/pets', pet, { apiKey: jwt, headers: { 'idempotency-key': 'same' } });
  const created = await create();
  expect([created.status, created.headers['ratelimit-policy']]).toEqual([201, '"client";q=6000;w=60']);
  const again = await create();
  expect([again.text, again.headers['idempotent-replayed']]).toEqual([created.text, 'true']);
  const refused = await list(createJwt({ azp, scope: 'pets:write' }));
  expect(refused.json).toMatchObject({ message: 'The client lacks the scope pets:read.', status: 403 });
  expect(app.log.lines.filter(({ client }) => client === `acme:${azp}`)).toHaveLength(3);
  await writeUsage(app);
  const usage = `SELECT operation, sum(calls)::int FROM key_usage JOIN api_key ON api_key.id = key_id
    JOIN client ON client.id = client_id WHERE client.name = $1 GROUP BY operation ORDER BY operation`;
  expect(await app.sql(usage, [`acme:${azp}`])).toContainEqual(['createPet', 2]);
});

test('the tenants of one application share no Idempotency-Key: each gets its own row', async () => {
  const headers = { 'idempotency-key': 'of both' };
  const create = async (tenant: string): Promise<HttpAnswer> =>
    app.client.post(
      '/v1/pets',
      { name: 'Rex', categoryId: 1, status: 'sold' },
      { apiKey: await createJwt({ tenant }), headers },
    );
  const answers = [await create('north'), await create('south'), await create('north:web-shop')];
  expect(answers.map((answer) => [answer.status, answer.headers['idempotent-replayed']])).toEqual(
    answers.map(() => [201, undefined]),
  );
  expect(new Set(answers.map(({ json }) => json.id as number)).size).toBe(3);
  expect((await create('north')).text).toBe(answers[0]?.text);
});

test('a client names its tenant unmistakably', async () => {
  const clientOf = async (claims: Claims): Promise<unknown> =>
    (await app.client.get('/v1/test-toys/caller', { apiKey: await createJwt(claims) })).json.client;
  expect(await clientOf({ tenant: 'a:b', azp: 'c' })).toBe('a%3Ab:c');
  expect(await clientOf({ tenant: 'a', azp: 'b:c' })).toBe('a:b:c');
});

test('401: a JWT that is expired, changed or of another issuer, a wrong API key, and two credentials', async () => {
  const jwt = await createJwt();
  expect((await list(createJwt({ exp: 1 }))).json).toMatchObject({ message: 'The token is not valid.', status: 401 });
  expect((await list(`${jwt.slice(0, -4)}AAAA`)).status).toBe(401);
  const log = JSON.stringify(app.log.lines);
  expect(log).toContain('Refused a token: \\"exp\\" claim timestamp check failed');
  expect(log).toContain('Refused a token: signature verification failed');
  expect(log).not.toContain(jwt.slice(0, 60));
  expect((await list(`eyJhbGciOiJub25lIn0${jwt.slice(jwt.indexOf('.'))}`)).status).toBe(401);
  expect(codeOf(await list('not-a-jwt'))).toEqual([401, 'invalid_api_key']);
  asked = 0;
  expect(codeOf(await list(`${app.apiKey.slice(0, -1)}_`))).toEqual([401, 'invalid_api_key']);
  expect((await list(app.apiKey)).status).toBe(200);
  const both = { apiKey: null, headers: { authorization: [`Bearer ${jwt}`, `Bearer ${jwt}`] } };
  expect(codeOf(await app.client.get('/v1/pets', both))).toEqual([401, 'missing_api_key']);
  expect(asked).toBe(0);
  expect(codeOf(await app.client.get('/v1/pets', { apiKey: null }))).toEqual([401, 'missing_api_key']);
});

test.each([
  ['401, as azp is missing', { azp: undefined }, 401],
  ['401, as azp is empty', { azp: '' }, 401],
  ['401, as azp is a number', { azp: 5 }, 401],
  ['401, as tenant and azp have 256 characters', { azp: 'a'.repeat(251) }, 401],
  ['200, as tenant and azp have 255 characters', { azp: 'a'.repeat(250) }, 200],
  ['401, as tenant is missing', { tenant: undefined }, 401],
  ['401, as tenant is empty', { tenant: '' }, 401],
  ['401, as tenant is a number', { tenant: 7 }, 401],
  ['401, as tenant is an array', { tenant: ['acme', 'beta'] }, 401],
  ['401, as tenant has NUL', { tenant: 'ac\0me' }, 401],
  ['401, as tenant has an unpaired surrogate', { tenant: '\ud800' }, 401],
  ['403, as scope is missing', { scope: undefined }, 403],
  ['403, as scope is a number', { scope: 5 }, 403],
])('a signed token: %s', async (_, claims, expected) => {
  const { status, json } = await list(createJwt(claims));
  expect(status).toBe(expected);
  if (expected === 401)
    expect(json).toMatchObject({ code: 'unauthorized', message: expect.stringContaining('1 to 255') });
});

test('operators revoke such a client, and open streams end with the token', async () => {
  const keys = app.nest.get(ApiKeysService);
  const jwt = await createJwt({ azp: 'partner' });
  const stream = app.client.get('/v1/test-ticks', { apiKey: jwt }).catch(() => 'cut');
  await list(jwt);
  const [entry] = await keys.list({ client: 'acme:partner' });
  expect(entry).toMatchObject({ prefix: '(no key)', scopes: [] });
  await expect(keys.rotate(String(entry?.id))).rejects.toThrow('is no API key: its client calls in another way');
  app.clock.travelTo(Date.now() + 61_000);
  expect(await stream).toBe('cut');
  await keys.revoke(String(entry?.id));
  app.clock.travelTo(app.clock.now() + KEY_TIME_TO_LIVE_MS);
  const later = createJwt({ azp: 'partner', exp: app.clock.now() / 1000 + 60 });
  expect(codeOf(await list(later))).toEqual([401, 'revoked_api_key']);
  app.clock.comeBack();
});

test('a guard of a team spares public routes by PUBLIC_METADATA', async () => {
  const statusOf = async (path: string): Promise<number> =>
    (await app.client.get(path, { headers: { 'x-closed': 'yes' } })).status;
  const paths = ['/v1/pets', '/health/live', '/docs', '/openapi.json'];
  expect(await Promise.all(paths.map(statusOf))).toEqual([403, 200, 200, 200]);
});

// Last: to describe an application switches the logger of Nest off.
test('an authenticator adds its own security scheme, which every operation that is not public takes beside the API key', async () => {
  const document = (await app.client.get('/openapi.json')).json as OpenAPIObject;
  // As the command makes it, without instances.
  const made = await describeApplication(appModuleWith(ADDED), { ...app.config, product: PET_STORE.product });
  expect(JSON.parse(made.json)).toEqual(document);
  expect(document.components?.securitySchemes).toEqual({
    bearerAuth: expect.objectContaining({ type: 'http', scheme: 'bearer' }) as object,
    jwt,
    ...SESSION,
  });
  expect(document.security).toEqual([{ bearerAuth: [] }, { jwt: [] }]);
  const securityOf = (path: string): unknown => document.paths[`/test-secured/${path}`]?.get?.security;
  expect(Object.keys(decoratorsOf).map(securityOf)).toEqual([
    undefined,
    undefined,
    [{ bearerAuth: [] }, { jwt: ['toys:read'] }],
    [
      { bearerAuth: [], session: [] },
      { jwt: [], session: [] },
    ],
    [],
    [{ session: [] }],
  ]);
});
