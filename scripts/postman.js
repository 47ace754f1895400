/** Prints the Postman collection of openapi.json, as the service serves it at /docs/postman.json. */
import { readFileSync } from 'node:fs';
import { postmanCollection } from '../dist/libs/docs-pages/src/postman.js';

const document = readFileSync(new URL('../openapi.json', import.meta.url), 'utf8');
process.stdout.write(postmanCollection(document, 'http://localhost:3000/v1'));
