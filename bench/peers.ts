import { execFileSync, type ExecFileSyncOptions, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PEERS = join(import.meta.dirname, 'peers');
const BUILT = join(import.meta.dirname, 'built');
/** The directory in which Debian's packages install the sources of libraries. */
const GO_LIBRARIES = '/usr/share/gocode';
const RUST_LIBRARIES = '/usr/share/cargo/registry';

/** The references of the ratios under load and of starts, and the compiled peers. */
export const REFERENCE = 'hand-written';
export const STOCK = 'stock-nest';
export const GO = 'go';
export const RUST = 'rust';
/** All other servers, in the order of the table. */
export const PEER_NAMES = [REFERENCE, 'fastify', STOCK, GO, RUST, 'bare-http'];

/** A program and its arguments. */
export type Command = readonly [program: string, ...args: string[]];

/**
 * Builds peers from source: TypeScript with the compiler and options of this service, Go and Rust as release builds.
 *
 * @param leftOut called for each peer whose toolchain is missing, with the reason in a sentence
 * @returns the command of each peer that was built, by name
 * @throws Error when a build fails although its toolchain is installed
 */
export function buildPeers(
  names: readonly string[],
  leftOut: (name: string, reason: string) => void,
): Map<string, Command> {
  const commands = new Map<string, Command>();
  for (const name of names) {
    if (name === GO || name === RUST) {
      const absent = name === GO ? goIsAbsent() : rustIsAbsent();
      if (absent === undefined) commands.set(name, name === GO ? buildGo() : buildRust());
      else leftOut(name, absent);
    } else {
      if (!commands.has('typescript')) buildTypeScript();
      commands.set('typescript', [process.execPath]);
      commands.set(name, [process.execPath, join(BUILT, `${name}.js`)]);
    }
  }
  commands.delete('typescript');
  return commands;
}

/** Why the Go peer cannot be built; undefined when it can. */
function goIsAbsent(): string | undefined {
  if (!hasProgram('go', 'version')) return 'There is no Go (Debian: apt-get install golang-go).';
  return existsSync(join(GO_LIBRARIES, 'src/github.com/jackc/pgx/v4'))
    ? undefined
    : 'There is no pgx (Debian: apt-get install golang-github-jackc-pgx-v4-dev).';
}

function buildGo(): Command {
  const program = join(BUILT, 'go');
  const env = { ...process.env, GO111MODULE: 'off', GOPATH: GO_LIBRARIES, GOFLAGS: '' };
  compile('go', ['build', '-o', program, join(PEERS, 'go/main.go')], { env });
  return [program];
}

/** Why the Rust peer cannot be built; undefined when it can. */
function rustIsAbsent(): string | undefined {
  if (!hasProgram('cargo', '--version')) return 'There is no Rust (Debian: apt-get install cargo).';
  const libraries = ['hyper-0.14', 'tokio-1', 'tokio-postgres-0.7', 'serde-1', 'serde_json-1'];
  const script = 'for library in "$@"; do ls -d "$0/$library"* >/dev/null 2>&1 || exit 1; done';
  return spawnSync('sh', ['-c', script, RUST_LIBRARIES, ...libraries]).status === 0
    ? undefined
    : 'There are no crates (Debian: apt-get install librust-hyper+full-dev librust-tokio-postgres-dev ' +
        'librust-serde-derive-dev librust-serde-json-dev).';
}

function buildRust(): Command {
  const source = ['source.crates-io.replace-with="debian"', `source.debian.directory="${RUST_LIBRARIES}"`];
  const target = join(BUILT, 'rust');
  const manifest = join(PEERS, 'rust/Cargo.toml');
  const options = ['--release', '--offline', '--quiet', '--manifest-path', manifest, '--target-dir', target];
  compile('cargo', ['build', ...options, ...source.flatMap((each) => ['--config', each])]);
  return [join(target, 'release/peer')];
}

function buildTypeScript(): void {
  compile(process.execPath, [join(import.meta.dirname, '../node_modules/typescript/bin/tsc'), '-p', PEERS]);
  writeFileSync(join(BUILT, 'package.json'), '{ "type": "module" }\n');
}

function compile(program: string, args: string[], options: ExecFileSyncOptions = {}): void {
  // Standard output is reserved for the figures.
  execFileSync(program, args, { stdio: ['ignore', 2, 2], ...options });
}

function hasProgram(program: string, argument: string): boolean {
  return spawnSync(program, [argument], { stdio: 'ignore', env: process.env }).status === 0;
}
