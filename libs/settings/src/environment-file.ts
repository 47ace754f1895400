import { existsSync } from 'node:fs';
import { StartupError } from '#errors';

const ENVIRONMENT_FILE = '.env';

/**
 * Loads the `.env` file of the working directory, if it exists, into the environment. Variables that are set already
 * keep their values.
 *
 * @throws StartupError when the file cannot be read
 */
export function loadEnvironmentFile(): void {
  if (!existsSync(ENVIRONMENT_FILE)) return;
  try {
    process.loadEnvFile(ENVIRONMENT_FILE);
  } catch (error) {
    throw new StartupError(`.env cannot be read: ${(error as Error).message}. Make it a readable file, or remove it.`);
  }
}
