import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { StartupError } from '#errors';
import { nearestName } from '#runtime';
import { product } from './product.js';
import { SETTINGS } from './settings.js';

const ENVIRONMENT_FILE = '.env';

/**
 * Loads the `.env` file of the working directory, if it exists, into the environment. Variables that are set already
 * keep their values.
 *
 * @returns a warning for each name in the file that looks like a misspelt setting
 * @throws StartupError when the file cannot be read
 */
export function loadEnvironmentFile(): string[] {
  if (!existsSync(ENVIRONMENT_FILE)) return [];
  const known = Object.values(SETTINGS).map(({ name }) => name);
  const warnings: string[] = [];
  for (const [name, value] of Object.entries(readEnvironmentFile())) {
    const nearest = known.includes(name) ? undefined : nearestName(name, known);
    if (nearest !== undefined) {
      warnings.push(`${product().name}: .env sets ${name}, which is no setting; did you mean ${nearest}?`);
    }
    process.env[name] ??= value;
  }
  return warnings;
}

function readEnvironmentFile(): NodeJS.Dict<string> {
  try {
    return parseEnv(readFileSync(ENVIRONMENT_FILE, 'utf8'));
  } catch (error) {
    throw new StartupError(`.env cannot be read: ${(error as Error).message}. Make it a readable file, or remove it.`);
  }
}
