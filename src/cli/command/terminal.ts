import { Presets, SingleBar } from 'cli-progress';

/** Where a command prints. */
export interface Terminal {
  /** Prints the result. */
  print(text: string): void;
  /** Prints a message for the operator, apart from the result. */
  tell(text: string): void;
  /**
   * Shows the progress, and hides it when `done` reaches `total`. A long command awaits each call, so that other work of
   * the process can run.
   *
   * @throws CommandError when the command must stop
   */
  progress(done: number, total: number, unit: string): void | Promise<void>;
}

/** Standard output and standard error; progress is a bar on standard error, if that is a terminal. */
export class StandardTerminal implements Terminal {
  private bar: SingleBar | undefined;

  print(text: string): void {
    process.stdout.write(text);
  }

  tell(text: string): void {
    process.stderr.write(text);
  }

  progress(done: number, total: number, unit: string): void {
    if (!process.stderr.isTTY) return;
    if (this.bar === undefined) {
      const format = `{bar} {percentage}% | {value}/{total} ${unit} | {eta_formatted} left`;
      this.bar = new SingleBar(
        { format, stream: process.stderr, hideCursor: true, barsize: 20 },
        Presets.shades_classic,
      );
      this.bar.start(total, done);
    }
    this.bar.update(done);
    if (done >= total) this.stop();
  }

  /** Removes the progress bar, if there is one. */
  stop(): void {
    this.bar?.stop();
    this.bar = undefined;
  }
}
