import { Logger } from '@nestjs/common';

const log = new Logger('FastPaths');

/** Logs that a fast path stays off because the code it relies on differs from the code it was written for. */
export function logOtherInternals(name: string, difference: string): void {
  log.warn(
    `The fast path ${name} stays off: ${difference}. Responses are the same, only slower. ` +
      'See libs/internals/README.md.',
  );
}
