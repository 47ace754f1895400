import { VERSION_NEUTRAL, VersioningType } from '@nestjs/common';
import type { OpenAPIObject, OperationObject, ResponseObject } from '@nestjs/swagger';
import type { AppOptions } from '../../src/app.options.js';
import { describeApplication } from '../../src/cli/preview.js';
import { readConfig } from '../../src/config.js';
import { createTestApp } from '../support/app.js';
import type { HttpCall } from '../support/http-client.js';
import { Pair } from './harness.js';
import { rowsOfVersions, VersionsModule } from './versions.js';

/* Requests that name the version elsewhere than in the path, on stock Nest and on the service. */

interface Way {
  readonly versioning: NonNullable<AppOptions['versioning']>;
  /** The header fields in `Vary` of answers, besides `Authorization`. */
  readonly vary: string;
  readonly say: (version: string) => Record<string, string>;
}

const WAYS: Record<string, Way> = {
  'in a header field': {
    versioning: { type: VersioningType.HEADER, header: 'X-Api-Version' },
    vary: 'X-Api-Version',
    say: (version) => ({ 'x-api-version': version }),
  },
  'in the media type': {
    versioning: { type: VersioningType.MEDIA_TYPE, key: 'v=' },
    vary: 'Accept',
    say: (version) => ({ accept: `application/json;v=${version}` }),
  },
  'where an extractor finds it': {
    versioning: {
      type: VersioningType.CUSTOM,
      extractor: (request) => (request as { headers: Record<string, string> }).headers['x-tenant-version'] ?? '',
    },
    vary: '',
    say: (version) => ({ 'x-tenant-version': version }),
  },
};

describe.each(Object.entries(WAYS))('%s', (_, { versioning, vary, say }) => {
  const call = (version: string | undefined): HttpCall => ({ headers: version === undefined ? {} : say(version) });
  let pair: Pair;
  beforeAll(async () => {
    pair = await Pair.start([VersionsModule], versioning);
  });
  afterAll(() => pair.close());

  test.each(rowsOfVersions(call).map((row) => [row.title, row] as const))(
    'as on stock Nest: %s',
    async (_title, row) => {
      await pair.compare(row);
    },
  );

  test('Vary makes caches keep the answers of different versions apart', async () => {
    const { headers } = await pair.ours.client.get('/test-versioned/kept', call('2'));
    expect([headers['cache-control'], headers.vary]).toEqual([
      'max-age=60',
      [vary, 'Authorization'].filter(Boolean).join(', '),
    ]);
  });

  test('neither the paths of animals nor their Location have a version', async () => {
    const { client } = pair.ours;
    const created = await client.post('/pets', { name: 'Rex', categoryId: 7 });
    expect(created.status).toBe(201);
    const location = new URL(created.headers.location as string).pathname;
    expect(location).toMatch(/^\/pets\/\d+$/);
    expect((await client.get(location)).status).toBe(200);
    expect((await client.get('/v1/pets')).status).toBe(404);
    expect((await client.get('/health/ready')).status).toBe(200);
  });

  test('the document has the operations of all versions, and is the same without a database', async () => {
    const served = (await pair.ours.client.get('/openapi.json')).json as OpenAPIObject;
    const { json } = await describeApplication(readConfig({}), { features: [VersionsModule], versioning });
    expect(operationsOf(JSON.parse(json) as OpenAPIObject)).toEqual(operationsOf(served));
    expect(served.servers?.map(({ url }) => url)).toEqual(['/']);
    const ids = Object.fromEntries(
      Object.entries(operationsOf(served))
        .filter(([address]) => / \/(pets|test-versioned)/.test(address))
        .map(([address, { operationId }]) => [address.replace(/#.*=/, '#'), operationId]),
    );
    expect(ids).toEqual({
      'GET /pets': 'listPets',
      'POST /pets': 'createPet',
      'GET /pets/{petId}': 'getPet',
      'GET /test-versioned': 'find',
      'POST /test-versioned': 'create',
      'GET /test-versioned#2': 'findVersion2',
      'GET /test-versioned/kept': 'findKept',
      'GET /test-versioned/either': 'findEither',
      'GET /test-versioned/undeclared': 'findUndeclared',
      'GET /test-versioned-toys': 'findToys',
      'GET /test-versioned-toys#2': 'findNewToys',
    });
  });

  test('log and metrics name the operation of the version', async () => {
    const { client, log } = pair.ours;
    const { headers } = await client.get('/test-versioned', call('2'));
    const line = log.lines.find(({ requestId, status }) => requestId === headers['x-request-id'] && status === 200);
    expect(line?.['operation']).toBe('findVersion2');
    const { text } = await client.get('/metrics', { apiKey: await pair.ours.createApiKey('metrics:read') });
    expect(text).toMatch(/^petstore_http_request_duration_seconds_count\{operation="findVersion2"/m);
  });
});

describe('the document says how a request names the version', () => {
  const describeWay = async (way: string): Promise<Record<string, OperationObject>> => {
    const { versioning } = WAYS[way] as Way;
    const { json } = await describeApplication(readConfig({}), { features: [VersionsModule], versioning });
    return operationsOf(JSON.parse(json) as OpenAPIObject);
  };

  test('with a parameter for a header field', async () => {
    const operations = await describeWay('in a header field');
    const field = (versions: string[], required: boolean): object => ({
      name: 'X-Api-Version',
      in: 'header',
      required,
      description: 'The version of the operation.',
      schema: { type: 'string', enum: versions, examples: [versions[0]] },
      ...(required && { example: versions[0] }),
    });
    expect(operations['GET /test-versioned']?.parameters).toEqual([field(['1'], true)]);
    expect(operations['GET /test-versioned#X-Api-Version=2']?.parameters).toEqual([field(['2'], true)]);
    expect(operations['GET /test-versioned/kept']?.parameters).toEqual([field(['2', '3'], true)]);
    expect(operations['GET /test-versioned/either']?.parameters).toEqual([field(['1'], false)]);
    expect(operations['GET /test-versioned/undeclared']?.parameters).toBeUndefined();
  });

  test('with the media types of Accept', async () => {
    const operations = await describeWay('in the media type');
    const { description, responses } = operations['GET /test-versioned#v=2'] as OperationObject;
    expect(description).toBe('Say the version with `Accept: application/json;v=2`.');
    const { content } = responses['200'] as ResponseObject;
    expect(Object.keys(content ?? {})).toEqual(['application/json;v=2', 'application/json']);
  });

  test('with a sentence when a custom extractor finds the version', async () => {
    const operations = await describeWay('where an extractor finds it');
    expect(operations['GET /test-versioned/kept']?.description).toBe('Version `2` and `3`.');
  });
});

test('operations of animals accept the default version, and no version if VERSION_NEUTRAL is among the defaults', async () => {
  const header = 'X-Api-Version';
  const app = await createTestApp({
    versioning: { type: VersioningType.HEADER, header, defaultVersion: ['1', VERSION_NEUTRAL] },
  });
  try {
    const answers = [{}, { [header]: '1' }, { [header]: '2' }].map((headers) => app.client.get('/pets', { headers }));
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 404]);
    const { paths } = (await app.client.get('/openapi.json')).json as OpenAPIObject;
    expect(Object.keys(paths).slice(0, 2)).toEqual(['/pets', '/pets/{petId}']);
    expect(Object.keys(paths).filter((path) => /#|\/v1\//.test(path))).toEqual([]);
    expect(paths['/pets']?.get?.parameters).toContainEqual(expect.objectContaining({ name: header, required: false }));
  } finally {
    await app.close();
  }
});

test.each([
  ['enableVersioning', 'Pass its options to startService'],
  ['setGlobalPrefix', 'would move the addresses of health checks'],
] as const)('the start fails when setUp calls app.%s', async (method, sentence) => {
  const setUp = (app: { [name in typeof method]: (argument: never) => unknown }): void =>
    void app[method]({ type: VersioningType.HEADER, header: 'X-Api-Version' } as never);
  await expect(createTestApp({ setUp })).rejects.toThrow(sentence);
});

function operationsOf({ paths }: OpenAPIObject): Record<string, OperationObject> {
  return Object.fromEntries(
    Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item as Record<string, OperationObject>).map(([method, operation]) => [
        `${method.toUpperCase()} ${path}`,
        operation,
      ]),
    ),
  );
}
