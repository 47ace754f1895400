import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { until } from '../support/until.js';

/*
 * The log on a real pipe whose reader is slow, paused or gone. All lines arrive whole and in order, even the last ones
 * before the process ends.
 */

/** Longest time in ms to wait for a condition; even a very slow machine needs far less. */
const PATIENCE_MS = 60_000;

import.meta.jest.setTimeout(2 * PATIENCE_MS);

const MEBIBYTE = 1_048_576;

/** A named pipe. Unlike the sockets that Node makes for children's output, it takes 4096 bytes whole or not at all. */
class Pipe {
  text = '';
  /** Number of lines read so far. */
  lineCount = 0;
  /** The file descriptor for a child's standard output. */
  readonly writer: number;
  private readonly reader: number;
  private isOpen = true;
  private readonly decoder = new TextDecoder();

  constructor() {
    const directory = mkdtempSync(join(tmpdir(), 'petstore-log-'));
    const path = join(directory, 'log');
    execFileSync('mkfifo', [path]);
    this.reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    this.writer = openSync(path, constants.O_WRONLY);
    rmSync(directory, { recursive: true });
  }

  /** Reads at most `most` bytes, and returns whether there were any. */
  read(most: number): boolean {
    const bytes = Buffer.alloc(most);
    try {
      const count = readSync(this.reader, bytes);
      const text = this.decoder.decode(bytes.subarray(0, count), { stream: true });
      this.text += text;
      this.lineCount += text.split('\n').length - 1;
      return count > 0;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
      throw error;
    }
  }

  /** Reads until a condition holds; fails after PATIENCE_MS. */
  async readUntil(holds: () => boolean, most = 65_536): Promise<void> {
    for (const latest = performance.now() + PATIENCE_MS; !holds() && performance.now() < latest;) {
      await (this.read(most) ? nextTurn() : sleep(2));
    }
    expect(holds()).toBe(true);
  }

  /** The lines read so far. Each must be one complete JSON object. */
  get lines(): Line[] {
    const lines = this.text.split('\n');
    expect(lines.pop()).toBe('');
    return lines.map((line) => JSON.parse(line) as Line);
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    closeSync(this.reader);
    closeSync(this.writer);
  }
}

interface Line {
  readonly pid: number;
  readonly number: number;
  readonly text: string;
}

/** A process that writes log lines on command, until the end of the test. */
class Writer {
  hasEnded = false;
  /** The exit code; null when a signal ended the process. */
  readonly ended: Promise<number | null>;
  readonly child: ChildProcess;
  private readonly answers: AsyncIterator<string>;

  constructor(output = pipe.writer) {
    writers.push(this);
    const program = join(import.meta.dirname, 'support/log-writer.js');
    this.child = spawn(process.execPath, ['--expose-gc', program], { stdio: ['pipe', output, 'pipe'] });
    this.ended = once(this.child, 'close').then(([code]) => {
      this.hasEnded = true;
      return code as number | null;
    });
    this.answers = createInterface({ input: this.child.stderr! })[Symbol.asyncIterator]();
  }

  /** Sends a command and waits for its reply. */
  async tell(command: string): Promise<string> {
    this.child.stdin?.write(`${command}\n`);
    const answer = await this.answers.next();
    if (answer.done) throw new Error(`The process ended instead of replying to ${command}.`);
    return answer.value;
  }
}

const writers: Writer[] = [];
let pipe: Pipe;

beforeEach(() => {
  pipe = new Pipe();
});
afterEach(async () => {
  for (const writer of writers.splice(0)) {
    writer.child.kill('SIGKILL');
    await writer.ended;
  }
  pipe.close();
});

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

test.each<[how: string, end: (process: ChildProcess) => unknown, lastLines: number]>([
  ['SIGTERM, whose handler writes one more', (process) => process.kill('SIGTERM'), 1],
  ['process.exit', ({ stdin }) => stdin?.write('exit\n'), 0],
  ['an empty event loop', ({ stdin }) => stdin?.end(), 0],
])('no line is lost when a process with a full pipe and a slow reader ends by %s', async (_, end, lastLines) => {
  const writer = new Writer();
  // More than twice the capacity of a pipe.
  await writer.tell('write 500 500');
  end(writer.child);
  await pipe.readUntil(() => writer.hasEnded);
  while (pipe.read(65_536));
  expect(await writer.ended).toBe(0);
  expect(pipe.text.length).toBeGreaterThan(2 * 65_536);
  expect(pipe.lines.map(({ number }) => number)).toEqual(upTo(500 + lastLines));
});

test('lines of processes that share a full pipe never mix', async () => {
  const count = 10_000;
  const sharing = [new Writer(), new Writer(), new Writer()];
  await Promise.all(sharing.map((writer) => writer.tell('write 1 1')));
  for (let round = 0; round < 10; round++) {
    const written = Promise.all(sharing.map((writer) => writer.tell(`write ${count / 10} 900`)));
    // Read slowly, so that the pipe never has room for more than a few lines.
    let isWritten = false;
    void written.then(() => (isWritten = true));
    await pipe.readUntil(() => isWritten, 1_500);
    await written;
  }
  // Read the rest in large steps, which is faster.
  await pipe.readUntil(() => pipe.lineCount === sharing.length * (count + 1));
  const { lines } = pipe;
  for (const { child } of sharing) {
    expect(lines.filter(({ pid }) => pid === child.pid).map(({ number }) => number)).toEqual(upTo(count + 1));
  }
});

test('a line is written soon, even if no other line follows and the process keeps running', async () => {
  const writer = new Writer();
  await writer.tell('write 1 10');
  await pipe.readUntil(() => pipe.text.endsWith('\n'));
  expect(pipe.lines).toHaveLength(1);
  await writer.tell('write 1 10');
  await pipe.readUntil(() => pipe.lineCount === 2);
  expect([pipe.lines.map(({ number }) => number), writer.hasEnded]).toEqual([[0, 1], false]);
});

test('a line longer than a block, or than a pipe, arrives whole and in order', async () => {
  const writer = new Writer();
  const lengths = [10, 5_000, 300_000, 10];
  for (const length of lengths) await writer.tell(`write 1 ${length}`);
  await pipe.readUntil(() => pipe.lineCount === lengths.length);
  expect(pipe.lines.map(({ number, text }) => [number, text.length])).toEqual([...lengths.entries()]);
});

test('without a reader the process keeps running, keeps only a bounded part of the log, the oldest, and later logs how many lines are missing', async () => {
  const writer = new Writer();
  await writer.tell('write 1000 1000');
  expect(await writer.tell('dropped')).toBe('0');
  const before = Number(await writer.tell('memory'));
  // About 75 MiB.
  for (let round = 0; round < 25; round++) await writer.tell('write 2000 1500');
  expect(Number(await writer.tell('memory')) - before).toBeLessThan(32 * MEBIBYTE);
  const dropped = Number(await writer.tell('dropped'));
  expect(dropped).toBeGreaterThan(10_000);

  await pipe.readUntil(() => pipe.text.slice(-300).includes('dropped'));
  // The number of the next line counts the dropped lines.
  await writer.tell('write 1 10');
  await pipe.readUntil(() => pipe.text.slice(-300).includes('"number":51000,'));
  const lines = pipe.lines;
  expect(lines.splice(-2)).toMatchObject([
    { level: 40, lines: dropped, msg: `${dropped} lines of the log were dropped before this one.` },
    { number: 51_000 },
  ]);
  const numbers = lines.map(({ number }) => number);
  expect(numbers).toHaveLength(51_000 - dropped);
  expect(numbers).toEqual([...numbers].sort((one, other) => one - other));
  // When the buffer is almost full, only some short lines still fit.
  const whole = numbers.length - 20;
  expect(numbers.slice(0, whole)).toEqual(upTo(whole));
  expect(Buffer.byteLength(pipe.text)).toBeGreaterThan(15 * MEBIBYTE);
  expect(Buffer.byteLength(pipe.text)).toBeLessThan(18 * MEBIBYTE);
});

test('without a reader the process can end', async () => {
  const writer = new Writer();
  await writer.tell('write 1000 1000');
  writer.child.kill('SIGTERM');
  expect(await writer.ended).toBe(0);
});

test('after the reader has closed the pipe, the process keeps running and can end', async () => {
  const writer = new Writer();
  await writer.tell('write 1000 1000');
  pipe.close();
  expect(await writer.tell('write 1000 1000')).toBe('done');
  // At least the lines of all blocks that were written since then.
  expect(Number(await writer.tell('dropped'))).toBeGreaterThan(900);
  writer.child.kill('SIGTERM');
  expect(await writer.ended).toBe(0);
});

test('with a full disk for the log the process keeps running and can end', async () => {
  const output = openSync('/dev/full', 'w');
  const writer = new Writer(output);
  closeSync(output);
  expect(await writer.tell('write 1000 1000')).toBe('done');
  await sleep(200);
  expect(await writer.tell('write 1000 1000')).toBe('done');
  // The last lines count as dropped only after their buffer is written, which happens later.
  await until(async () => Number(await writer.tell('dropped')) > 1_900);
  writer.child.kill('SIGTERM');
  expect(await writer.ended).toBe(0);
});
