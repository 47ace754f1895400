import { Body, Controller, Get, Header, Module, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { RequireScopes } from '#api-keys';
import { Deprecated } from '#deprecation';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

const ANNOUNCEMENT = {
  since: '2026-01-01T00:00:00Z',
  sunset: '2027-01-01T00:00:00Z',
  successor: '/new',
  replacement: 'Use it.',
};

@Controller('test-linked')
@RequireScopes()
class TestLinkedController {
  @Get()
  @Header('Link', '</terms>; rel="license"')
  @Deprecated({ ...ANNOUNCEMENT, sunset: '2999-01-01T00:00:00Z' })
  listLinked(@Res({ passthrough: true }) response: Response): string[] {
    response.appendHeader('Link', '</linked?cursor=2>; rel="next"');
    return [];
  }
}

@Controller('test-described')
@RequireScopes()
class TestDescribedController {
  @Post()
  @Deprecated(ANNOUNCEMENT)
  postDescribed(@Body() body: unknown): unknown {
    return body;
  }
}

@Module({ controllers: [TestLinkedController, TestDescribedController] })
class DeprecatedModule {}

let app: TestApp;
let serving: TestApp;
let id: string;
beforeAll(async () => {
  app = await createTestApp({ features: [DeprecatedModule] });
  serving = await createTestApp({
    settings: { AFTER_SUNSET: 'serve', PUBLIC_BASE_URL: 'https://api.example.com/pets/v1' },
  });
  id = String((await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 })).json.id);
});
afterAll(async () => {
  await app.close();
  await serving.close();
});
afterEach(() => {
  app.clock.comeBack();
  serving.clock.comeBack();
});

function expectAnnouncement({ headers }: HttpAnswer): void {
  expect(headers['deprecation']).toBe('@1795132800');
  expect(headers['sunset']).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
  expect(headers.link).toBe(
    '<http://localhost:3000/v1/pets>; rel="successor-version", ' +
      '<http://localhost:3000/docs/deprecations#getPet>; rel="deprecation"; type="text/html"',
  );
}

describe('getPet is deprecated', () => {
  test('200, 304 and 404 carry Deprecation, Sunset and Link', async () => {
    const found = await app.client.get(`/v1/pets/${id}`);
    const unchanged = await app.client.get(`/v1/pets/${id}`, { headers: { 'if-none-match': found.headers.etag } });
    const missing = await app.client.get('/v1/pets/999999');
    expect([found.status, unchanged.status, missing.status]).toEqual([200, 304, 404]);
    [found, unchanged, missing].forEach(expectAnnouncement);
  });

  test('410 operation_removed at the instant of the sunset, with the same headers', async () => {
    app.clock.travelTo('2030-12-05T00:00:00Z');
    const answer = await app.client.get(`/v1/pets/${id}`);
    expect([answer.status, answer.json]).toEqual([
      410,
      {
        code: 'operation_removed',
        message: 'This operation was removed on 2030-12-05. Use GET /pets with a status filter instead.',
        status: 410,
      },
    ]);
    expectAnnouncement(answer);
  });

  test('410 comes after 401, and before 404', async () => {
    app.clock.travelTo('2031-01-01T00:00:00Z');
    expect((await app.client.get(`/v1/pets/${id}`, { apiKey: null })).status).toBe(401);
    expect((await app.client.get('/v1/pets/no-such')).status).toBe(410);
  });

  test('410 comes before 415 and 400', async () => {
    const bodies = { '{"name":': 'application/json', Rex: 'text/plain', '{}': 'application/json' };
    const statuses: number[] = [];
    for (const time of ['2026-12-31T23:59:59Z', '2027-01-01T00:00:00Z']) {
      app.clock.travelTo(time);
      for (const [body, type] of Object.entries(bodies)) {
        const headers = { 'content-type': type };
        statuses.push((await app.client.send('POST', '/v1/test-described', { headers, body })).status);
      }
    }
    expect(statuses).toEqual([400, 415, 201, 410, 410, 410]);
  });

  test('AFTER_SUNSET=serve keeps it, and links follow PUBLIC_BASE_URL', async () => {
    const created = await serving.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
    serving.clock.travelTo('2035-01-01T00:00:00Z');
    const answer = await serving.client.get(`/v1/pets/${created.json.id}`);
    expect(answer.status).toBe(200);
    expect(answer.headers['sunset']).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
    expect(answer.headers.link).toContain('<https://api.example.com/pets/v1/pets>; rel="successor-version"');
    expect(created.headers.location).toBe(`https://api.example.com/pets/v1/pets/${created.json.id}`);
  });
});

describe('@Deprecated', () => {
  test.each([
    [{ sunset: '2025-12-31T00:00:00Z' }, 'a sunset before the deprecation'],
    [{ sunset: ANNOUNCEMENT.since }, 'a sunset at the deprecation'],
    [{ since: 'soon' }, 'a time that is none'],
    [{ successor: 'new' }, 'a successor that is no path'],
    [{ successor: '/new/{id}' }, 'a successor with a parameter, which no client can follow'],
  ])('%j fails at start (%s)', (wrong: object, _reason: string) => {
    expect(() => Deprecated({ ...ANNOUNCEMENT, ...wrong })).toThrow(/^@Deprecated: /);
    expect(() => Deprecated(ANNOUNCEMENT)).not.toThrow();
  });
});

test('@Deprecated goes together with links of @Header and of the next page', async () => {
  const { headers } = await app.client.get('/v1/test-linked');
  const relations = [...String(headers.link).matchAll(/rel="([^"]+)"/g)].map(([, relation]) => relation);
  expect(relations).toEqual(['license', 'successor-version', 'deprecation', 'next']);
});
