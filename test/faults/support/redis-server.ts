import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, connect } from 'node:net';

/** A Redis server for one test, on a free port, without persistence. */
export class RedisServer {
  private process: ChildProcess | undefined;

  private constructor(private readonly port: number) {}

  /** Throws when `redis-server` is not installed. */
  static async start(): Promise<RedisServer> {
    if (spawnSync('redis-server', ['--version']).status !== 0) {
      throw new Error('This test needs redis-server, which is not installed.');
    }
    const server = new RedisServer(await freePort());
    await server.start();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts the server. If it still runs, for example after a failed test, it is stopped first. */
  async start(): Promise<void> {
    await this.stop();
    const options = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    this.process = spawn('redis-server', options, { stdio: 'ignore' });
    const deadline = Date.now() + 10_000;
    while (!(await answers(this.port))) {
      if (Date.now() > deadline) throw new Error('redis-server does not start.');
      await new Promise((next) => setTimeout(next, 20));
    }
  }

  /** Suspends the process: connections stay open, and requests get no answer. */
  hang(): void {
    this.process?.kill('SIGSTOP');
  }

  /** Lets the suspended process continue. */
  resume(): void {
    this.process?.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    const { process } = this;
    if (!process || process.exitCode !== null || process.signalCode !== null) return;
    const ended = once(process, 'exit');
    process.kill('SIGCONT');
    process.kill('SIGKILL');
    await ended;
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const server = createServer().once('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => done(port));
    });
  });
}
