/**
 * Writes what only a release knows into its manifests and alerts: node scripts/release-manifests.js <image>@sha256:<digest> <address of docs>
 *
 * The image goes by its digest into the kustomizations, in place of a tag, which somebody could move. The address of the pages
 * replaces the example in `runbook_url`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const kubernetes = 'ops/kubernetes';
const example = 'https://petstore.example.com/docs';

const [image = '', docs = ''] = process.argv.slice(2);
const [, name, digest] = /^(.+)@(sha256:[0-9a-f]{64})$/.exec(image) ?? [];
if (digest === undefined || !/^https:\/\/\S+[^/]$/.test(docs)) {
  process.stderr.write(
    'Give the image by its digest, name@sha256:…, and the https address of the folder docs without a slash at its end.\n',
  );
  process.exit(1);
}

/** Replaces each match of a pattern in a file below the working directory. Fails without one. */
function replaceIn(path, pattern, replacement) {
  const file = join(process.cwd(), path);
  const text = readFileSync(file, 'utf8');
  const changed = text.replaceAll(pattern, () => replacement);
  if (changed === text) throw new Error(`${path} has nothing like ${pattern}.`);
  writeFileSync(file, changed);
}

for (const folder of [kubernetes, `${kubernetes}/migrate`])
  replaceIn(`${folder}/kustomization.yaml`, /newName: .*\n( +)newTag: .*/g, `newName: ${name}\n    digest: ${digest}`);
for (const path of [
  'ops/prometheus/alerts.yaml',
  'ops/prometheus/alerts.test.yaml',
  `${kubernetes}/monitoring/prometheus-rule.yaml`,
])
  replaceIn(path, example, docs);
