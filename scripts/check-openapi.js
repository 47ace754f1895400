/** Compares openapi.json with the document of the last release, and fails when a client of the last release would break. */
import { readFileSync } from 'node:fs';
import { breakingChanges } from './breaking-changes.js';

const [released, current] = ['openapi.released.json', 'openapi.json'].map((name) =>
  JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')),
);
const changes = breakingChanges(released, current);
if (changes.length > 0) {
  const lines = changes.map((change) => `- ${change}\n`).join('');
  process.stderr.write(`openapi.json breaks clients of the released version ${released.info.version}:\n${lines}`);
  process.exitCode = 1;
}
