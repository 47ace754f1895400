import { existsSync, readFileSync } from 'node:fs';

/** package.json is one folder above src, and two above dist/src. */
const CANDIDATES = ['../package.json', '../../package.json'].map((path) => new URL(path, import.meta.url));

/**
 * The version of this program, as package.json states it.
 *
 * @throws Error when there is no package.json
 */
export function readRelease(): string {
  const file = readFileSync(CANDIDATES.find((url) => existsSync(url)) ?? (CANDIDATES[0] as URL), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}
