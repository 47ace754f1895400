import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');

/** A file that exists, what it would say, and the words with which the linter must refuse it. */
const VIOLATIONS: [file: string, code: string, message: string][] = [
  ['src/pets/pet.dto.spec.ts', `it('works', () => undefined);`, 'Write test'],
  ['src/pets/pet.entity.ts', `import { Module } from '@nestjs/common'; void Module;`, 'TypeORM and entities alone'],
  ['src/pets/pets.controller.ts', `export * from './pets.service.js';`, 'No barrels'],
  [
    'src/pets/pets.controller.ts',
    `import { PetsRepository } from './pets.repository.js'; void PetsRepository;`,
    'its service',
  ],
  [
    'src/pets/pets.controller.ts',
    `import type { Pet } from './pet.dto.js'; export const a = (b: Pet): Pet => b;`,
    'as values',
  ],
  [
    'src/pets/pets.repository.ts',
    `import { PetsController } from './pets.controller.js'; void PetsController;`,
    'look back',
  ],
  [
    'src/pets/pet.dto.ts',
    `import { ApiKeysService } from '../platform/api-keys/api-keys.service.js'; void ApiKeysService;`,
    'A DTO',
  ],
  ['src/pets/pets.service.ts', `import { env } from 'node:process'; void env;`, 'Only config.ts'],
  ['src/pets/pets.service.ts', `export const home = process.env['HOME'];`, 'Only config.ts'],
  [
    'src/pets/pets.service.ts',
    `import { AppModule } from '../app.module.js'; void AppModule;`,
    'No module imports the application',
  ],
  [
    'src/pets/pets.service.ts',
    `import { OrdersRepository } from '../orders/orders.repository.js'; void OrdersRepository;`,
    'Of another feature',
  ],
  [
    'src/platform/clock.ts',
    `import { PetsModule } from '../pets/pets.module.js'; void PetsModule;`,
    'knows no feature',
  ],
  [
    'src/platform/json/int64.ts',
    `import { Public } from '../auth/public.decorator.js'; void Public;`,
    'arrows go one way',
  ],
  [
    'src/platform/errors/api-error.ts',
    `import { isInt64 } from '../json/int64.js'; void isInt64;`,
    'arrows go one way',
  ],
  ['migrations/1795219200000-create-pet.ts', `import pg from 'pg'; void pg;`, 'TypeORM alone'],
  ['src/cli/terminal.ts', `export default 1;`, 'named exports'],
];

const LINT = `
  import { ESLint } from 'eslint';
  const eslint = new ESLint({ cwd: process.argv[1] });
  const results = [];
  for (const [file, code] of JSON.parse(process.argv[2])) {
    const [result] = await eslint.lintText(code, { filePath: file });
    results.push(result.messages.map(({ message }) => message).join('\\n'));
  }
  process.stdout.write(JSON.stringify(results));
`;

let refusals: string[];
beforeAll(async () => {
  const args = ['--input-type=module', '--eval', LINT, ROOT, JSON.stringify(VIOLATIONS)];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] },
  });
  refusals = JSON.parse(stdout) as string[];
}, 120_000);

test.each(VIOLATIONS.map(([file, code, message], index) => [file, code, message, index] as const))(
  'the linter refuses in %s: %s',
  (_file, _code, message, index) => {
    expect(refusals[index]).toContain(message);
  },
);
