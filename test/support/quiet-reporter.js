import { DefaultReporter } from '@jest/reporters';
import { loadavg, availableParallelism } from 'node:os';
import { relative } from 'node:path';

/** A run of all files that takes longer, in ms, prints its slowest files. */
const SLOW_RUN_MS = 120_000;

/**
 * Jest's own reporter, but nothing about files without a failure: at the end it prints the names of skipped tests, unless `-t` has
 * selected others, and the ten slowest files of a slow run.
 */
export default class QuietReporter extends DefaultReporter {
  constructor(config) {
    super(config);
    this.options = config;
  }

  printTestFileHeader(path, config, result) {
    const isOfInterest = result.numFailingTests > 0 || result.testExecError || result.console;
    if (isOfInterest) super.printTestFileHeader(path, config, result);
  }

  onRunComplete(contexts, results) {
    super.onRunComplete(contexts, results);
    const { testNamePattern, rootDir } = this.options;
    const nameOf = ({ displayName, testFilePath }) => `${displayName?.name} ${relative(rootDir, testFilePath)}`;
    if (!testNamePattern) {
      for (const file of results.testResults) {
        for (const { status, fullName } of file.testResults)
          if (status === 'pending' || status === 'todo') this.log(`Skipped: ${nameOf(file)}: ${fullName}`);
      }
    }
    if (results.testResults.length <= 10 || Date.now() - results.startTime < SLOW_RUN_MS) return;
    const files = results.testResults.map((file) => {
      const { start, end } = file.perfStats;
      return { name: nameOf(file), seconds: (end - start) / 1000 };
    });
    files.sort((one, other) => other.seconds - one.seconds);
    this.log(
      `\nThe slowest files, in seconds, at a load of ${loadavg()[0].toFixed(1)} on ${availableParallelism()} processors:`,
    );
    for (const { name, seconds } of files.slice(0, 10)) this.log(`${seconds.toFixed(1).padStart(6)}  ${name}`);
  }
}
