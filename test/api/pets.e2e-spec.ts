import fc from 'fast-check';
import { INT64_MAX, INT64_MIN } from '#json';
import { createTestApp, type TestApp } from '../support/app.js';

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

const errorOf = (code: string, status: number, message?: string): object => ({
  code,
  status,
  message: message ?? (expect.any(String) as string),
});

describe('POST /v1/pets', () => {
  test('201: the created animal, its members in the order of the specification, its address from PUBLIC_BASE_URL', async () => {
    const body = { name: 'Rex', categoryId: -12345678901234, status: 'pending' };
    const answer = await app.client.post('/v1/pets', body, { headers: { host: 'evil.example' } });
    expect(answer.status).toBe(201);
    expect(answer.text).toMatch(/^\{"id":[1-9][0-9]*,"name":"Rex","categoryId":-12345678901234,"status":"pending"\}$/);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      location: `http://localhost:3000/v1/pets/${answer.json.id}`,
    });
    expect(answer.headers.etag).toBeUndefined();
  });

  test('201: a status that is omitted is stored and returned as available', async () => {
    const created = await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
    expect(created.json.status).toBe('available');
    expect((await app.client.get(`/v1/pets/${created.json.id}`)).text).toBe(created.text);
  });

  test('201: unknown members are ignored, also an id, __proto__ and constructor', async () => {
    const answer = await app.client.post(
      '/v1/pets',
      '{"id":1000000,"__proto__":{"status":"sold","a":1},"constructor":{"prototype":{"a":1}},"name":"Rex","categoryId":7}',
    );
    expect(answer.text).toMatch(/^\{"id":\d+,"name":"Rex","categoryId":7,"status":"available"\}$/);
    expect(answer.json.id).not.toBe(1000000);
    expect(({} as { a?: unknown }).a).toBeUndefined();
  });

  test.each([
    [' Rex ', 'white space around it'],
    ['🐕'.repeat(255), '255 characters outside the basic plane'],
    ['"\\/\b\f\n\r\t\u007f\u2028\ufeff', 'characters that JSON or JavaScript treat specially'],
  ])('201: the name %j is kept exactly as sent (%s)', async (name) => {
    const created = await app.client.post('/v1/pets', { name, categoryId: 1 });
    expect(created.status).toBe(201);
    expect(created.json.name).toBe(name);
    expect((await app.client.get(`/v1/pets/${created.json.id}`)).json.name).toBe(name);
  });

  const NAME_CLAUSE =
    'name must be a string of 1 to 255 characters, not all of them white space, without U+0000 and unpaired surrogates';

  test.each([
    ['"\\ud800"', 'an unpaired high surrogate'],
    ['null', 'null'],
  ])('400 validation_failed: the name %s (%s)', async (name) => {
    const answer = await app.client.post('/v1/pets', `{"name":${name},"categoryId":1}`);
    expect([answer.status, answer.json]).toEqual([400, errorOf('validation_failed', 400, NAME_CLAUSE)]);
  });

  test.each(['Rex', ' Rex ', '🐕', '\n.', '', ' \t\u00a0', 'a\0b', '\0', '🐕'.repeat(256)])(
    'the published schema takes the name %j exactly if the service does',
    async (name) => {
      const { json: document } = await app.client.get('/openapi.json');
      const schema = document.components.schemas.NewPet.properties.name as { pattern: string; maxLength: number };
      const isDescribed = new RegExp(schema.pattern, 'u').test(name) && [...name].length <= Number(schema.maxLength);
      const { status } = await app.client.post('/v1/pets', { name, categoryId: 1 });
      expect(status).toBe(isDescribed ? 201 : 400);
    },
  );

  test.each([
    ['1.0', '1'],
    ['1e2', '100'],
    ['-0', '0'],
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['9007199254740993', '9007199254740993'],
    ['9.223372036854775807E18', '9223372036854775807'],
  ])('201: the JSON integer %s is stored and returned as %s', async (sent, canonical) => {
    const created = await app.client.post('/v1/pets', `{"name":"Rex","categoryId":${sent}}`);
    expect(created.text).toContain(`"categoryId":${canonical},`);
    expect((await app.client.get(`/v1/pets/${created.json.id}`)).text).toBe(created.text);
  });

  test.each(['true', 'null', '1e400', '1e1000000000', '1e-1', '9223372036854775808'])(
    '400 validation_failed: the categoryId %s',
    async (categoryId) => {
      const answer = await app.client.post('/v1/pets', `{"name":"Rex","categoryId":${categoryId}}`);
      const clause = 'categoryId must be an integer between -9223372036854775808 and 9223372036854775807';
      expect([answer.status, answer.json]).toEqual([400, errorOf('validation_failed', 400, clause)]);
    },
  );

  test.each(['null', '"Available"', '""', '" sold"', '1', '["sold"]'])(
    '400 validation_failed: the status %s',
    async (status) => {
      const answer = await app.client.post('/v1/pets', `{"name":"Rex","categoryId":7,"status":${status}}`);
      const clause = 'status must be one of available, pending, sold';
      expect([answer.status, answer.json]).toEqual([400, errorOf('validation_failed', 400, clause)]);
    },
  );

  test('400 validation_failed: all faults at once, in schema order, whatever the order of the members', async () => {
    const answer = await app.client.post('/v1/pets', '{"status":"lost","categoryId":"7"}');
    expect(answer.json.message).toBe(
      'name is required; categoryId must be an integer between -9223372036854775808 and 9223372036854775807, ' +
        'sent as a JSON number, not a string; status must be one of available, pending, sold',
    );
    expect((await app.client.post('/v1/pets', {})).json.message).toBe('name is required; categoryId is required');
  });

  test.each(['[]', '"Rex"', '7', 'null', 'true', '[{"name":"Rex","categoryId":7}]'])(
    '400 validation_failed: the body %s is no object',
    async (body) => {
      const answer = await app.client.post('/v1/pets', body);
      expect(answer.json).toEqual(errorOf('validation_failed', 400, 'the body must be a JSON object'));
    },
  );

  test.each([
    [{}, 'no body at all'],
    [{ 'content-length': '0', 'content-type': 'application/json' }, 'a length of 0'],
    [{ 'transfer-encoding': 'chunked', 'content-type': 'application/json' }, 'an empty chunked body'],
  ])('400 missing_body: %j (%s)', async (headers: Record<string, string>, _reason: string) => {
    const answer = await app.client.send('POST', '/v1/pets', { headers });
    expect(answer.json).toEqual(errorOf('missing_body', 400));
  });

  test.each([
    ['{"name":"Rex","name":"Max","categoryId":7}', 'duplicate members'],
    ['{"name":"Rex","n\\u0061me":"Max","categoryId":7}', 'duplicate members, one of them escaped'],
    ['{"name":"Rex","categoryId":7} x', 'trailing garbage'],
    ['\ufeff{"name":"Rex","categoryId":7}', 'a byte order mark'],
    ['['.repeat(30000), 'depth'],
    [`{"name":"Rex","categoryId":7,"x":[${'1,'.repeat(8_000)}1]}`, 'more than 8,000 values'],
    [Buffer.from('{"name":"\xff","categoryId":7}', 'latin1'), 'bytes that are not UTF-8'],
  ])('400 malformed_json: %s (%s)', async (body: string | Buffer, _reason: string) => {
    const answer = await app.client.post('/v1/pets', body);
    expect([answer.status, answer.json]).toEqual([400, errorOf('malformed_json', 400)]);
  });

  test.each(['text/plain', 'application/json; charset=latin1', undefined, ''])(
    '415 unsupported_media_type with Accept: the Content-Type %j',
    async (contentType) => {
      const answer = await app.client.post('/v1/pets', '{"name":"Rex","categoryId":7}', {
        headers: { 'content-type': contentType },
      });
      expect(answer.json).toEqual(errorOf('unsupported_media_type', 415));
      expect(answer.headers.accept).toBe('application/json');
    },
  );

  test.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json;charset="UTF-8"'])(
    '201: the Content-Type %s',
    async (contentType) => {
      const headers = { 'content-type': contentType };
      expect((await app.client.post('/v1/pets', '{"name":"Rex","categoryId":7}', { headers })).status).toBe(201);
    },
  );

  test('415 unsupported_media_type: a Content-Encoding', async () => {
    const headers = { 'content-encoding': 'gzip' };
    expect((await app.client.post('/v1/pets', '{"name":"Rex","categoryId":7}', { headers })).status).toBe(415);
  });

  test('413 body_too_large: one byte more than MAX_BODY_BYTES, by the declared length and while reading', async () => {
    const body = (size: number): string => `{"name":"Rex","categoryId":7}`.padEnd(size);
    const chunked = { headers: { 'transfer-encoding': 'chunked', 'content-length': undefined } };
    expect((await app.client.post('/v1/pets', body(65_536))).status).toBe(201);
    expect((await app.client.post('/v1/pets', body(65_536), chunked)).status).toBe(201);
    expect((await app.client.post('/v1/pets', body(65_537))).json).toEqual(errorOf('body_too_large', 413));
    expect((await app.client.post('/v1/pets', body(65_537), chunked)).json).toEqual(errorOf('body_too_large', 413));
  });
});

describe('GET /v1/pets/{petId}', () => {
  test('200: the animal', async () => {
    const created = await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
    const answer = await app.client.get(`/v1/pets/${created.json.id}?any=query&is=ignored`);
    expect([answer.status, answer.text]).toEqual([200, created.text]);
  });

  test.each(['9223372036854775807', '-9223372036854775808', '0', '-1'])(
    '404 pet_not_found: no animal has the id %s',
    async (id) => {
      expect((await app.client.get(`/v1/pets/${id}`)).json).toEqual(errorOf('pet_not_found', 404));
    },
  );

  test.each([
    'abc',
    '1.5',
    '007',
    '+1',
    '9223372036854775808',
    '-9223372036854775809',
    '1'.repeat(4000),
    '%20',
    '1%00',
  ])('404 pet_not_found: %s is no int64 in canonical form', async (id) => {
    expect((await app.client.get(`/v1/pets/${id}`)).json).toEqual(errorOf('pet_not_found', 404));
  });
});

describe('int64', () => {
  const int64 = fc.oneof(
    fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
    fc.constantFrom(
      INT64_MIN,
      INT64_MIN + 1n,
      -1n,
      0n,
      1n,
      INT64_MAX - 1n,
      INT64_MAX,
      2n ** 53n,
      2n ** 53n + 1n,
      -(2n ** 53n) - 1n,
    ),
  );

  test('int64 is exact as id: path, response, list and cursor', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(int64, { minLength: 3, maxLength: 5 }), async (ids) => {
        await app.sql('DELETE FROM pet', []);
        for (const id of ids) {
          await app.sql(`INSERT INTO pet (id, name, category_id) OVERRIDING SYSTEM VALUE VALUES ($1, 'Rex', 7)`, [
            String(id),
          ]);
        }
        for (const id of ids) {
          expect((await app.client.get(`/v1/pets/${id}`)).text).toContain(`{"id":${id},`);
        }
        const walked: string[] = [];
        let path: string | undefined = '/v1/pets?limit=1';
        while (path !== undefined) {
          const page = await app.client.get(path);
          walked.push(...[...page.text.matchAll(/"id":(-?\d+)/g)].map((match) => match[1] as string));
          path = /<http:\/\/localhost:3000([^>]+)>; rel="next"/.exec(page.headers.link as string)?.[1];
        }
        const ascending = [...ids].sort((a, b) => (a < b ? -1 : 1)).map(String);
        expect(walked).toEqual(ascending);
      }),
      { numRuns: 25 },
    );
  });
});
