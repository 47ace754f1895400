import { existsSync, readFileSync } from 'node:fs';
import type { LicenseObject } from '@nestjs/swagger';
import { docsPages } from '#docs-pages';
import { keyUsage } from '#key-usage';
import { rateLimit } from '#rate-limit';
import { defineService } from '#service';
import { tracing } from '#tracing';
import { petsCommands } from './pets/pets.commands.js';

const DESCRIPTION = `\
A catalogue of animals offered in a store.

- **Authentication**: every request carries an API key, \`Authorization: Bearer <API key>\`.
- **Errors**: every error has an Error body; \`code\` is for programs, \`message\` for people.
- **Identifiers** are signed 64-bit integers, sent as JSON numbers with all their digits. A client whose numbers are
  doubles, such as JavaScript's, needs a JSON parser that keeps them exact.
- **Pages**: a list returns one page; the \`Link\` header with \`rel="next"\` has the address of the next page.
- **Caching**: GET responses have an \`ETag\`; with \`If-None-Match\` the response is 304 while nothing has changed.
- **Safe retries**: createPet takes an \`Idempotency-Key\`; a request that is repeated with the same key is carried out once.
{parts}
- **Deprecation**: responses of an operation that will be removed have \`Deprecation\`, \`Sunset\` and \`Link\`.
`;

/** package.json is one folder above src, and two above dist/src. */
const PACKAGE = ['../package.json', '../../package.json']
  .map((path) => new URL(path, import.meta.url))
  .find(existsSync);

/** The build packs it beside itself. */
const CLIENT = ['../client.tgz', '../dist/client.tgz'].map((path) => new URL(path, import.meta.url)).find(existsSync);

/** The Pet Store Service: its names and texts, and the parts that it uses. Loads no framework. */
export const PET_STORE = defineService({
  product: { name: 'petstore', command: 'npm run petstore --', apiKeyPrefix: 'pets_' },
  // A request meets their steps, and the help lists their commands, in this order.
  parts: [tracing, keyUsage, rateLimit, docsPages],
  info: {
    title: 'Pet Store Service',
    version: '1.0.0',
    description: DESCRIPTION,
    contact: { name: 'The operators of the Pet Store Service' },
    // `identifier` is new in OpenAPI 3.1.
    license: { name: 'MIT', identifier: 'MIT' } as LicenseObject,
  },
  tags: [{ name: 'Store', description: 'Store orders. There are no operations yet.' }],
  headerExamples: {
    'WWW-Authenticate': 'Bearer realm="petstore"',
    Link:
      '<https://petstore.example/v1/pets>; rel="successor-version", ' +
      '<https://petstore.example/docs/deprecations#getPet>; rel="deprecation"; type="text/html"',
    Location: 'https://petstore.example/v1/pets/1',
    NextPage: '<https://petstore.example/v1/pets?limit=100&cursor=AgAAAAAAAAAAAAAAFHXyJ7Q>; rel="next"',
  },
  readGuide: () => readFileSync(new URL('../docs/guide.md', import.meta.url), 'utf8'),
  readClient: CLIENT && (() => readFileSync(CLIENT)),
  release: (JSON.parse(readFileSync(PACKAGE as URL, 'utf8')) as { version: string }).version,
  defaultScopes: ['pets:read', 'pets:write'],
  migrations: [new URL('../migrations/', import.meta.url)],
  typeorm: {},
  commands: [petsCommands],
  firstCall: (base) => [
    'Add a pet:',
    '',
    `  curl -H "Authorization: Bearer $API_KEY" \\`,
    `    -H 'Content-Type: application/json' \\`,
    `    -d '{"name":"Rex","categoryId":7}' ${base}/pets`,
    '',
  ],
});
