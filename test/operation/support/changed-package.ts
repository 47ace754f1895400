import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../..');

/** A file of a package, a text in it, and what stands in its place. */
export type Change = readonly [file: string, from: string, to: string];

/**
 * Installs the built service in a folder, with a changed copy of one package beside links to all others.
 *
 * @returns Node's arguments that start it
 */
export async function installWithChanged(name: string, changes: readonly Change[], folder: string): Promise<string[]> {
  for (const each of ['package.json', 'scripts/check-system.cjs', 'dist'])
    await cp(join(ROOT, each), join(folder, each), { recursive: true });
  const modules = join(ROOT, 'node_modules');
  const installed = join(folder, 'node_modules');
  const [scope = name] = name.split('/');
  const beside = (await readdir(modules)).filter((each) => each !== scope && !each.startsWith('.'));
  const ofScope = name === scope ? [] : (await readdir(join(modules, scope))).map((each) => `${scope}/${each}`);
  await mkdir(dirname(join(installed, name)), { recursive: true });
  for (const each of [...beside, ...ofScope].filter((one) => one !== name))
    await symlink(join(modules, each), join(installed, each));
  await cp(join(modules, name), join(installed, name), { recursive: true });
  for (const [file, from, to] of changes) {
    const path = join(installed, name, file);
    const text = await readFile(path, 'utf8');
    expect(text).toContain(from);
    await writeFile(path, text.replaceAll(from, to));
  }
  return [join(folder, 'dist/src/main.js')];
}
