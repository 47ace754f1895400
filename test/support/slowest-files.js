import { log } from 'node:console';
import { relative } from 'node:path';

/** A reporter of Jest that prints the ten slowest files of a larger run, so that a file that grows slow is seen. */
export default class SlowestFiles {
  constructor({ rootDir }) {
    this.root = rootDir;
  }

  onRunComplete(_contexts, { testResults }) {
    if (testResults.length <= 10) return;
    const files = testResults.map(({ displayName, testFilePath, perfStats: { start, end } }) => ({
      name: `${displayName?.name} ${relative(this.root, testFilePath)}`,
      seconds: (end - start) / 1000,
    }));
    files.sort((one, other) => other.seconds - one.seconds);
    log('\nSlowest files, in seconds:');
    for (const { name, seconds } of files.slice(0, 10)) log(`${seconds.toFixed(1).padStart(6)}  ${name}`);
  }
}
