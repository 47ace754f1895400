import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  Logger,
  Module,
  Sse,
  UnauthorizedException,
} from '@nestjs/common';
import { APP_GUARD, Reflector } from '@nestjs/core';
import type { Request } from 'express';
import { createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { interval } from 'rxjs';
import { ApiKeysService, Authenticator, type Caller, clientNameOf } from '#access';
import { PUBLIC_METADATA, RequireScopes } from '#operations';
import { Clock } from '#runtime';
import { KEY_TIME_TO_LIVE_MS } from '../../libs/access/src/api-key.verifier.js';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp, writeUsage } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* Another way to say who calls: JWTs by a local set of keys. */

const ISSUER = { alg: 'ES256', kid: 'a key' };
const { privateKey, publicKey } = await generateKeyPair(ISSUER.alg);
const KEY_SET = createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), ...ISSUER }] });

const CHECKS = { audience: 'pets', currentDate: new Date() };

interface Claims {
  readonly azp?: unknown;
  readonly scope?: unknown;
  readonly tenant?: unknown;
}

function createJwt(claims: Claims & { readonly exp?: number } = {}): Promise<string> {
  const own = { azp: 'web-shop', tenant: 'acme', scope: 'pets:read pets:write', exp: Date.now() / 1000 + 60 };
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

/** A guard of a team, of which a public route must be spared. */
@Injectable()
class ClosingGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const targets = [context.getHandler(), context.getClass()];
    const isPublic = this.reflector.getAllAndOverride<boolean | undefined>(PUBLIC_METADATA, targets);
    return isPublic === true || context.switchToHttp().getRequest<Request>().headers['x-closed'] === undefined;
  }
}

const TICKS = new Handlers('test-ticks');
TICKS.add(Sse(), 'tick', () => interval(50), { decorators: [RequireScopes('pets:read')] });

@Module({
  controllers: [TICKS.controller],
  providers: [CountedAuthenticator, { provide: APP_GUARD, useClass: ClosingGuard }],
})
class JwtModule {}

let app: TestApp;
beforeAll(async () => (app = await createTestApp({ features: [JwtModule] })));
beforeEach(() => (asked = 0));
afterAll(() => app.close());

const list = async (apiKey: string | Promise<string>): Promise<HttpAnswer> =>
  app.client.get('/v1/pets', { apiKey: await apiKey });
const codeOf = ({ status, json }: HttpAnswer): unknown => [status, (json as { code: string }).code];

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
  expect(new Set(answers.map(({ json }) => (json as { id: number }).id)).size).toBe(3);
  expect((await create('north')).text).toBe(answers[0]?.text);
});

test('a client names its tenant unmistakably', async () => {
  const clientOf = async (claims: Claims): Promise<unknown> => {
    const { headers } = await list(createJwt(claims));
    return app.log.lines.findLast(({ requestId }) => requestId === headers['x-request-id'])?.['client'];
  };
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

test('401: an authenticator returns a wrong client', async () => {
  expect((await app.client.get('/v1/pets', { apiKey: null, headers: { 'x-client': '' } })).status).toBe(401);
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
