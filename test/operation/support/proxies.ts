import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Time in ms between two readiness checks of an instance by a proxy. */
export const CHECK_INTERVAL_MS = 200;

/** A reverse proxy in front of several instances, configured as docs/operating.md recommends. */
export interface Proxy {
  readonly origin: string;
  stop(): Promise<void>;
}

/** A proxy program: its command, configuration file, and arguments that keep it in the foreground. */
interface Program {
  readonly command: string;
  readonly configuration: (port: number, instances: readonly number[], directory: string) => string;
  readonly parameters: (file: string, directory: string) => string[];
}

export const HAPROXY: Program = {
  command: 'haproxy',
  configuration: (port, instances) => `
defaults
  mode http
  timeout connect 2s
  timeout check 2s
  timeout client 60s
  timeout server 60s
  option redispatch 1
frontend clients
  bind 127.0.0.1:${port}
  default_backend petstore
backend petstore
  option httpchk GET /health/ready
  retry-on conn-failure empty-response
  http-request disable-l7-retry unless METH_GET or { req.fhdr(Idempotency-Key) -m found }
  default-server check inter ${CHECK_INTERVAL_MS}ms fall 2 rise 2
${instances.map((instance, index) => `  server petstore${index + 1} 127.0.0.1:${instance}`).join('\n')}
`,
  parameters: (file) => ['-db', '-f', file],
};

/** Starts a proxy on a free port. Throws when the program is not installed. */
export async function startProxy(program: Program, instances: readonly number[]): Promise<Proxy> {
  if (spawnSync(program.command, ['-v']).status !== 0)
    throw new Error(`This test needs ${program.command}, which is not installed.`);
  const directory = mkdtempSync(join(tmpdir(), `petstore-${program.command}-`));
  const file = join(directory, 'configuration');
  const port = await freePort();
  writeFileSync(file, program.configuration(port, instances, directory));
  const child = spawn(program.command, program.parameters(file, directory), { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const ended = once(child, 'close');
  await untilItListens(port, child, () => output);
  return {
    origin: `http://127.0.0.1:${port}`,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A port on which nothing listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** Waits until a program listens on a port. Throws with its output when it ends. */
export async function untilItListens(
  port: number,
  child: ChildProcess,
  output: () => string,
  host = '127.0.0.1',
): Promise<void> {
  for (const deadline = Date.now() + 20_000; Date.now() < deadline && child.exitCode === null; await sleep(50)) {
    const socket = connect(port, host);
    const listens = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (listens) return;
  }
  throw new Error(`${child.spawnfile} does not start:\n${output()}`);
}
