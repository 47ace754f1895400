/**
 * Packs the service for other projects: `npm run package` writes `<name>-<version>.tgz` to this folder, or to the one named.
 * Needs a build.
 *
 * The frameworks that such a project imports as well are peer dependencies of the package, so that there is one copy of
 * each. This repository has them as dependencies: `npm ci --legacy-peer-deps` must install them, too.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const SHARED = /^(@nestjs\/.*|typeorm|rxjs|reflect-metadata|class-(transformer|validator))$/;

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
for (const member of ['scripts', 'devDependencies', 'overrides', 'allowScripts']) delete manifest[member];
const isShared = ([name]) => SHARED.test(name);
const dependencies = Object.entries(manifest.dependencies);
manifest.dependencies = Object.fromEntries(dependencies.filter((entry) => !isShared(entry)));
manifest.peerDependencies = { ...Object.fromEntries(dependencies.filter(isShared)), ...manifest.peerDependencies };

manifest.schematics = './schematics/collection.json';
manifest.files.push('schematics');

const stage = mkdtempSync(join(tmpdir(), 'petstore-package-'));
try {
  // npm adds the files of these names to every package.
  for (const path of [...manifest.files, 'README.md', 'LICENSE']) {
    if (existsSync(join(ROOT, path))) cpSync(join(ROOT, path), join(stage, path), { recursive: true });
  }
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  const target = resolve(process.argv[2] ?? ROOT);
  const npm = spawnSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', target], {
    cwd: stage,
    stdio: 'inherit',
  });
  process.exitCode = npm.status ?? 1;
} finally {
  rmSync(stage, { recursive: true, force: true });
}
