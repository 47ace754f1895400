import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTable } from './table.js';

const ROOT = join(import.meta.dirname, '..');

/** The promises of optional parts: the rows of `contract.txt` in the folder of each, so that they leave with it. */
export const PARTS = readdirSync(join(ROOT, 'libs'))
  .map((library) => `libs/${library}/contract.txt`)
  .filter((path) => existsSync(join(ROOT, path)))
  .flatMap((path) => readTable(path, readFileSync(join(ROOT, path), 'utf8')));
