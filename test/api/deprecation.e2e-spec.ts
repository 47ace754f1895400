import { Body, type CanActivate, Controller, Get, Header, Module, Post, Res, UseGuards } from '@nestjs/common';
import type { Response } from 'express';
import { Deprecated, Public, RequireScopes } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';

const ANNOUNCEMENT = {
  since: '2026-01-01T00:00:00Z',
  sunset: '2027-01-01T00:00:00Z',
  successor: '/new',
  replacement: 'Use it.',
};

class RefusingGuard implements CanActivate {
  canActivate(): boolean {
    return false;
  }
}

@Controller('test-deprecated')
@RequireScopes()
class TestDeprecatedController {
  @Get('linked')
  @Header('Link', '</terms>; rel="license"')
  @Deprecated({ ...ANNOUNCEMENT, sunset: '2999-01-01T00:00:00Z' })
  listLinked(@Res({ passthrough: true }) response: Response): string[] {
    response.appendHeader('Link', '</linked?cursor=2>; rel="next"');
    return [];
  }

  @Post('described')
  @Deprecated(ANNOUNCEMENT)
  postDescribed(@Body() body: unknown): unknown {
    return body;
  }

  @Get('public')
  @Public()
  @UseGuards(RefusingGuard)
  @Deprecated(ANNOUNCEMENT)
  readPublic(): void {}
}

@Module({ controllers: [TestDeprecatedController] })
class DeprecatedModule {}

let app: TestApp;
let serving: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [DeprecatedModule] });
  serving = await createTestApp({ settings: { AFTER_SUNSET: 'serve' } });
});
afterAll(async () => {
  await app.close();
  await serving.close();
});
afterEach(() => {
  app.clock.comeBack();
  serving.clock.comeBack();
});

test('410 comes before 415 and 400', async () => {
  const bodies = { '{"name":': 'application/json', Rex: 'text/plain', '{}': 'application/json' };
  const statuses: number[] = [];
  for (const time of ['2026-12-31T23:59:59Z', '2027-01-01T00:00:00Z']) {
    app.clock.travelTo(time);
    for (const [body, type] of Object.entries(bodies)) {
      const headers = { 'content-type': type };
      statuses.push((await app.client.send('POST', '/v1/test-deprecated/described', { headers, body })).status);
    }
  }
  expect(statuses).toEqual([400, 415, 201, 410, 410, 410]);
});

test('410 of a public operation comes before guards of modules, with all header fields', async () => {
  expect((await app.client.get('/v1/test-deprecated/public', { apiKey: null })).status).toBe(403);
  app.clock.travelTo(ANNOUNCEMENT.sunset);
  const { status, json, headers } = await app.client.get('/v1/test-deprecated/public', { apiKey: null });
  expect([status, json.code]).toEqual([410, 'operation_removed']);
  expect(headers).toMatchObject({
    deprecation: `@${Date.parse(ANNOUNCEMENT.since) / 1000}`,
    sunset: 'Fri, 01 Jan 2027 00:00:00 GMT',
    link: expect.stringContaining('/new>; rel="successor-version"') as string,
  });
});

test('AFTER_SUNSET=serve keeps getPet', async () => {
  const created = await serving.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
  serving.clock.travelTo('2035-01-01T00:00:00Z');
  const answer = await serving.client.get(`/v1/pets/${created.json.id}`);
  expect(answer.status).toBe(200);
  expect(answer.headers['sunset']).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
});

test('the page of deprecations says what is removed', async () => {
  const factsOf = async (app: TestApp): Promise<string[]> => {
    const page = (await app.client.get('/docs/deprecations')).text;
    expect(page).not.toContain('These operations still work');
    return [...page.matchAll(/<section id="([^"]+)"|<dt>(To be removed on|Removed on)</g)].map(
      ([, id, fact]) => id ?? fact ?? '',
    );
  };
  for (const each of [app, serving]) each.clock.travelTo(ANNOUNCEMENT.sunset);
  const waiting = 'To be removed on';
  expect(await factsOf(app)).toEqual(expect.arrayContaining(['postDescribed', 'Removed on', waiting]));
  serving.clock.travelTo('2035-01-01T00:00:00Z');
  expect(await factsOf(serving)).toEqual(['getPet', waiting]);
});

test.each([
  [{ sunset: '2025-12-31T00:00:00Z' }, 'a sunset before the deprecation'],
  [{ sunset: ANNOUNCEMENT.since }, 'a sunset at the deprecation'],
  [{ since: 'soon' }, 'a time that is none'],
])('@Deprecated %j fails at start (%s)', (wrong: object, _reason: string) => {
  expect(() => Deprecated({ ...ANNOUNCEMENT, ...wrong })).toThrow(/^@Deprecated: /);
  expect(() => Deprecated(ANNOUNCEMENT)).not.toThrow();
});

test('@Deprecated goes together with links of @Header and of the next page', async () => {
  const { headers } = await app.client.get('/v1/test-deprecated/linked');
  const relations = [...String(headers.link).matchAll(/rel="([^"]+)"/g)].map(([, relation]) => relation);
  expect(relations).toEqual(['license', 'successor-version', 'deprecation', 'next']);
});
