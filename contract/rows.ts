import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readTable } from './table.js';

/** The three operations of the specification. `table.ts` explains the notation. */
export const PETS = readTable('contract/pets.txt');

/** API keys, routes, and HTTP itself, whatever the operation. */
export const REQUESTS = readTable('contract/requests.txt');

const ROOT = join(import.meta.dirname, '..');

/** The promises of optional parts, each in the part's folder, so that they leave with it. */
export const PARTS = readdirSync(join(ROOT, 'libs'))
  .map((library) => `libs/${library}/contract.txt`)
  .filter((path) => existsSync(join(ROOT, path)))
  .flatMap(readTable);
