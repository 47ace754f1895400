import { Logger, type PipeTransform, ValidationPipe } from '@nestjs/common';

const log = new Logger('FastPaths');

/** Logs that a fast path stays off because the code it relies on differs from the code it was written for. */
export function logOtherInternals(name: string, difference: string): void {
  log.warn(
    `The fast path ${name} stays off: ${difference}. Every answer is the same, only slower. ` +
      'See libs/internals/README.md.',
  );
}

/** An option of a ValidationPipe that cannot act on what another pipe has made; undefined without any, and for other pipes. */
export function lateOptionOf(pipe: PipeTransform): string | undefined {
  if (!(pipe instanceof ValidationPipe)) return undefined;
  if (pipe['validatorOptions'].forbidNonWhitelisted) return 'forbidNonWhitelisted';
  return pipe['transformOptions']?.enableImplicitConversion ? 'enableImplicitConversion' : undefined;
}
