import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A running program of an operator, such as haproxy. */
export interface Program {
  readonly child: ChildProcess;
  /** Kills it. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts a program, and waits until it listens.
 *
 * @throws Error with its output when it ends or is not installed
 */
export async function startProgram(
  command: string,
  parameters: readonly string[],
  port: number,
  host = '127.0.0.1',
): Promise<Program> {
  // etcd 3.4 refuses to run on ARM without this variable.
  const env = { PATH: process.env.PATH, ETCD_UNSUPPORTED_ARCH: process.arch };
  const child = spawn(command, parameters, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  child.once('error', ({ message }) => (output += `This test needs ${command}: ${message}`));
  const ended = new Promise<void>((done) => child.once('close', () => done()));
  const stop = (): Promise<void> => {
    child.kill('SIGKILL');
    return ended;
  };
  for (const deadline = Date.now() + 20_000; Date.now() < deadline && child.exitCode === null; await sleep(50)) {
    const socket = connect(port, host);
    const listens = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (listens) return { child, stop };
  }
  await stop();
  throw new Error(`${command} does not start:\n${output}`);
}

/** A port on which nothing listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
