/*
 * A process that only writes log lines, through the service's logger:
 *
 *   node --expose-gc log-writer.js
 *
 * Reads one command per line from standard input, and answers each with one line on standard error:
 *
 *   write <count> <characters>   writes lines with consecutive numbers and texts of at most this length
 *   memory                       prints the used memory in bytes
 *   dropped                      prints how many lines were dropped
 *   exit                         ends at once, and prints nothing
 *
 * Ends with its standard input. On SIGTERM it writes one more line and ends with exit code 0.
 */
import { createInterface } from 'node:readline';
import { createLogger, droppedLogLines } from '../../../dist/libs/ops/src/logger.js';

const log = createLogger({ logLevel: 'info' });
let number = 0;

const COMMANDS = {
  write(count, characters) {
    for (let written = 0; written < count; written++) {
      const length = written === 0 ? characters : (number * 7919) % (characters + 1);
      // Include characters of several bytes.
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
