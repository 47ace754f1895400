/**
 * Makes dependencies of the packages that tracing needs, in package.json of the working directory, so that `npm ci --omit=dev`
 * and `npm prune --omit=dev` keep them, in the versions of package-lock.json. The image has them.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
for (const [name, range] of Object.entries(manifest.peerDependencies)) {
  if (!name.startsWith('@opentelemetry/')) continue;
  manifest.dependencies[name] = range;
  delete manifest.devDependencies[name];
}
writeFileSync('package.json', `${JSON.stringify(manifest, null, 2)}\n`);
