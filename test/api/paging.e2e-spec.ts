import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';
import { rawRequest } from '../support/raw-request.js';

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

const nextOf = (answer: HttpAnswer): string | undefined =>
  /^<http:\/\/localhost:3000(\/v1\/pets\?[^>]*)>; rel="next"$/.exec(
    (answer.headers.link as string | undefined) ?? '',
  )?.[1];

const idsOf = (answer: HttpAnswer): number[] => (answer.json as { id: number }[]).map(({ id }) => id);

async function fill(count: number): Promise<void> {
  await app.sql('TRUNCATE pet CASCADE', []);
  await app.sql(
    `INSERT INTO pet (name, category_id, status)
      SELECT 'Animal ' || n, n, (ARRAY['available','pending','sold'])[1 + n % 3]::pet_status FROM generate_series(1, $1::int) n`,
    [count],
  );
}

describe('GET /v1/pets', () => {
  // 25 and 50: the last page is exactly full.
  test.each([1, 7, 25, 50, 100])('the pages of limit=%i, followed by Link, are the whole list', async (limit) => {
    await fill(50);
    const all = idsOf(await app.client.get('/v1/pets?limit=100'));
    const walked: number[] = [];
    let pages = 0;
    for (let path: string | undefined = `/v1/pets?limit=${limit}`; path !== undefined; pages++) {
      const page = await app.client.get(path);
      walked.push(...idsOf(page));
      path = nextOf(page);
    }
    expect(walked).toEqual(all);
    expect(pages).toBe(Math.ceil(50 / limit));
  });

  test('pages miss and repeat nothing when animals are added and removed between them', async () => {
    await fill(10);
    const first = await app.client.get('/v1/pets?limit=5');
    await app.sql('DELETE FROM pet WHERE id = $1', [idsOf(first)[4]]);
    const added = await app.client.post('/v1/pets', { name: 'Late', categoryId: 1 });
    const second = await app.client.get(nextOf(first) ?? '');
    const third = await app.client.get(nextOf(second) ?? '');
    expect([...idsOf(first), ...idsOf(second), ...idsOf(third)]).toHaveLength(11);
    expect(idsOf(third)).toEqual([added.json.id]);
  });

  test('the links are built from PUBLIC_BASE_URL, never from Host', async () => {
    await fill(3);
    const answer = await app.client.get('/v1/pets?limit=1', {
      headers: { host: 'evil.example', 'x-forwarded-host': 'evil.example' },
    });
    expect(answer.headers.link).toMatch(/^<http:\/\/localhost:3000\/v1\/pets\?limit=1&cursor=[\w-]+>; rel="next"$/);
  });

  test.each([
    ['an absolute target', 'http://evil.example/v1/pets?status=sold&limit=1', 'limit=1&status=sold'],
    ['no limit', '/v1/pets', 'limit=20'],
    ['escapes and a cursor', '/v1/pets?%63ursor=FIRST&%6cimit=1&status=%73old', '%6cimit=1&status=%73old'],
  ])('the link of %s has the parameters that were sent, and the limit', async (_, target, parameters) => {
    await fill(50);
    const first = nextOf(await app.client.get('/v1/pets?limit=1&status=sold')) as string;
    const sent = target.replace('FIRST', new URLSearchParams(first).get('cursor') as string);
    const head = `GET ${sent} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${app.apiKey}\r\n\r\n`;
    const answer = await rawRequest(app.port, head);
    expect(answer).toContain('HTTP/1.1 200 OK');
    expect(/Link: <(.*)cursor=[\w-]+>; rel="next"/.exec(answer)?.[1]).toBe(
      `http://localhost:3000/v1/pets?${parameters}&`,
    );
  });

  test.each(['0', '101', '-1', '', '1e1', '05'])('400 invalid_parameter: limit=%s is not clamped', async (limit) => {
    const answer = await app.client.get(`/v1/pets?limit=${encodeURI(limit).replace(/%25/g, '%')}`);
    const message = 'limit must be an integer between 1 and 100';
    expect([answer.status, answer.json]).toEqual([400, { code: 'invalid_parameter', message, status: 400 }]);
  });

  test.each(['Available', '', 'lost', 'sold%00', ' sold', 'available,sold'])(
    '400 invalid_parameter: status=%s',
    async (status) => {
      const answer = await app.client.get(`/v1/pets?status=${encodeURI(status).replace(/%25/g, '%')}`);
      const message = 'status must be one of available, pending, sold';
      expect(answer.json).toEqual({ code: 'invalid_parameter', message, status: 400 });
    },
  );

  test.each([
    ['stauts=sold', "unknown query parameter 'stauts'; did you mean 'status'?"],
    ['page=2', "unknown query parameter 'page'; known are limit, status, cursor"],
    ['Limit=5', "unknown query parameter 'Limit'; did you mean 'limit'?"],
    ['limit[]=5', "unknown query parameter 'limit[]'; did you mean 'limit'?"],
    ['__proto__=5', "unknown query parameter '__proto__'; known are limit, status, cursor"],
    ['limit=5&limit=5', "query parameter 'limit' must be given only once"],
    [
      'status=sold&x=1&status=sold',
      "query parameter 'status' must be given only once; unknown query parameter 'x'; known are limit, status, cursor",
    ],
  ])('400 invalid_parameter: ?%s', async (query, message) => {
    expect((await app.client.get(`/v1/pets?${query}`)).json).toEqual({
      code: 'invalid_parameter',
      message,
      status: 400,
    });
  });

  test('400 invalid_parameter: an unknown parameter after a thousand others is seen, and a long list is not repeated', async () => {
    expect((await app.client.get(`/v1/pets?limit=5${'&'.repeat(1_200)}page=2`)).json).toMatchObject({
      code: 'invalid_parameter',
      message: "unknown query parameter 'page'; known are limit, status, cursor",
    });
    const names = Array.from({ length: 800 }, (_, index) => `x${index}=1`).join('&');
    const { message } = (await app.client.get(`/v1/pets?${names}`)).json as { message: string };
    expect(message.match(/unknown query parameter/g)).toHaveLength(10);
  });
});

describe('conditional GET', () => {
  test('200 with a weak ETag, 304 without body for If-None-Match, 200 again after a change', async () => {
    await fill(3);
    const first = await app.client.get('/v1/pets?limit=2');
    expect(first.headers.etag).toMatch(/^W\/"[\w-]+"$/);
    expect(first.headers['cache-control']).toBe('private, no-cache');
    expect(first.headers.vary).toBe('Authorization');

    const etag = first.headers.etag ?? '';
    for (const ifNoneMatch of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
      // `fetch` adds no-cache to a request with If-None-Match.
      const headers = { 'if-none-match': ifNoneMatch, 'cache-control': 'no-cache' };
      const again = await app.client.get('/v1/pets?limit=2', { headers });
      expect([again.status, again.text]).toEqual([304, '']);
      expect(again.headers).toMatchObject({
        etag,
        vary: 'Authorization',
        'cache-control': 'private, no-cache',
        link: first.headers.link,
      });
      expect(again.headers['content-type']).toBeUndefined();
    }
    await app.sql(`UPDATE pet SET name = 'Changed'`, []);
    const changed = await app.client.get('/v1/pets?limit=2', { headers: { 'if-none-match': etag } });
    expect(changed.status).toBe(200);
    expect(changed.headers.etag).not.toBe(etag);
  });
});
