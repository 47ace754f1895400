import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../..');

interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** Instructions that change no file. */
const NO_FILES = /^(ARG|LABEL|ENV|USER|EXPOSE|STOPSIGNAL|HEALTHCHECK|ENTRYPOINT|CMD)$/;

/** The instructions of a project's Dockerfile, one line each, without comments. */
export function dockerfile(root = ROOT): Instruction[] {
  const text = readFileSync(join(root, 'Dockerfile'), 'utf8').replace(/^#.*\n/gm, '');
  return text
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => ({ name: line.split(' ', 1)[0] as string, text: line.slice(line.indexOf(' ') + 1).trim() }));
}

/** The JSON array of an instruction, such as the command of ENTRYPOINT or HEALTHCHECK. */
export function commandOf(name: string, root = ROOT): string[] {
  const text = dockerfile(root).findLast((instruction) => instruction.name === name)?.text ?? '';
  return JSON.parse(text.slice(text.indexOf('['))) as string[];
}

/** The environment that the last stage sets. */
export function environmentOf(): Record<string, string> {
  const texts = dockerfile().filter(({ name }) => name === 'ENV');
  return Object.fromEntries(
    texts.flatMap(({ text }) => text.split(' ').map((pair) => pair.split('=') as [string, string])),
  );
}

/** The paths that .dockerignore admits to the build. It excludes all other paths, and unit tests. */
export function admittedPaths(root = ROOT): string[] {
  const lines = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
  return lines.filter((line) => line.startsWith('!')).flatMap((line) => filesNamed(line.slice(1), root));
}

/** The files that a pattern such as `*.tgz` names in a folder; other names are taken as they are. */
function filesNamed(name: string, folder: string): string[] {
  return name.startsWith('*') ? readdirSync(folder).filter((file) => file.endsWith(name.slice(1))) : [name];
}

/**
 * Executes the Dockerfile with folders instead of images. Each stage is a folder below `target`: COPY copies into it, and
 * RUN runs a shell in it, with the Node.js of this process.
 *
 * @returns the folder of the last stage
 * @throws when an instruction of the Dockerfile cannot be executed in a folder, or fails
 */
export function assemble(target: string, root = ROOT): string {
  const context = join(target, 'context');
  for (const path of admittedPaths(root)) {
    cpSync(join(root, path), join(context, path), {
      recursive: true,
      filter: (source) => !source.endsWith('.spec.ts'),
    });
  }
  let stage = '';
  let directory = '/';
  for (const { name, text } of dockerfile(root)) {
    switch (name) {
      case 'FROM':
        stage = join(target, / AS (\w+)$/.exec(text)?.[1] ?? 'image');
        directory = '/';
        break;
      case 'WORKDIR':
        directory = text;
        mkdirSync(join(stage, directory), { recursive: true });
        break;
      case 'COPY':
        copy(text, context, target, join(stage, directory), stage);
        break;
      case 'RUN':
        // Without the secret: the npm configuration of this user does.
        run(text.replace(/^--mount=\S+ (?:NPM_CONFIG_USERCONFIG=\S+ )?/, ''), join(stage, directory));
        break;
      default:
        if (!NO_FILES.test(name)) throw new Error(`Dockerfile: ${name} is not known to this test.`);
    }
  }
  rmSync(join(target, 'context'), { recursive: true });
  return stage;
}

/** Executes COPY as Docker does: a folder's content is copied; several files, or files with a target that ends in a slash, keep their names. */
function copy(text: string, context: string, target: string, directory: string, stage: string): void {
  const words = text.split(' ');
  const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length);
  const paths = words.filter((word) => !word.startsWith('--'));
  const last = paths.pop() as string;
  const destination = last.startsWith('/') ? join(stage, last) : join(directory, last);
  for (const path of paths.flatMap((name) => filesNamed(name, context))) {
    const source = from === undefined ? join(context, path) : join(target, from, path);
    const into =
      last.endsWith('/') && !statSync(source).isDirectory() ? join(destination, basename(path)) : destination;
    cpSync(source, into, { recursive: true, verbatimSymlinks: true });
  }
}

function run(command: string, cwd: string): void {
  // Leave out variables of the npm and the Jest that run this test.
  const inherited = Object.entries(process.env).filter(([name]) => !/^(?:npm_|NODE_|JEST_)/i.test(name));
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', command], {
    cwd,
    encoding: 'utf8',
    env: Object.fromEntries(inherited),
  });
  if (status !== 0) throw new Error(`RUN ${command} fails:\n${stdout}${stderr}`);
}
