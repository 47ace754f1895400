import { existsSync, readFileSync } from 'node:fs';

/** package.json is one folder above src, and two above dist/src. */
const PLACES = ['../package.json', '../../package.json'].map((path) => new URL(path, import.meta.url));

/**
 * The version of this program, by package.json.
 *
 * @throws Error when there is no package.json
 */
export function readRelease(): string {
  const file = readFileSync(PLACES.find((place) => existsSync(place)) ?? (PLACES[0] as URL), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}
