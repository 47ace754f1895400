/*
 * A process with the log of the service, and nothing else of it:
 *   node --expose-gc log-writer.js
 * Does what the lines of its standard input say, one after the other, and answers each on standard error with one line:
 *   write <count> <characters>   writes as many lines, numbered from where it stopped, of texts that long at the most
 *   memory                       answers the bytes that it holds
 *   dropped                      answers how many lines were dropped
 *   exit                         ends at once, without an answer
 * Ends when its standard input does, and with exit code 0 when it is told SIGTERM.
 */
import { createInterface } from 'node:readline';
import { createLogger, droppedLogLines } from '../../../dist/src/platform/observability/logger.js';

const log = createLogger({ logLevel: 'info' });
let number = 0;

const COMMANDS = {
  write(count, characters) {
    for (let written = 0; written < count; written++) {
      const length = written === 0 ? characters : (number * 7919) % (characters + 1);
      // Characters of more than one byte.
      log.info({ number, text: '🐕é'.repeat(Math.ceil(length / 3)).slice(0, length) }, 'line');
      number++;
    }
    return 'done';
  },
  memory() {
    globalThis.gc();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  },
  dropped() {
    return droppedLogLines();
  },
  exit() {
    process.exit(0);
  },
};

process.on('SIGTERM', () => {
  COMMANDS.write(1, 100);
  process.exit(0);
});
createInterface({ input: process.stdin }).on('line', (line) => {
  const [name, ...parameters] = line.split(' ');
  process.stderr.write(`${COMMANDS[name](...parameters.map(Number))}\n`);
});
