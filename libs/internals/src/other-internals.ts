import { Logger, ValidationPipe } from '@nestjs/common';

const log = new Logger('FastPaths');

/** Logs that a fast path stays off because the code it relies on differs from the code it was written for. */
export function logOtherInternals(name: string, difference: string): void {
  log.warn(
    `The fast path ${name} stays off: ${difference}. Responses are the same, only slower. ` +
      'See libs/internals/README.md.',
  );
}

/** Options of a ValidationPipe that decide what is accepted, or how its faults are answered. */
const DECIDING_OPTIONS =
  'forbidNonWhitelisted,enableImplicitConversion,exceptionFactory,errorHttpStatusCode,disableErrorMessages,errorFormat,' +
  'stopAtFirstError,dismissDefaultMessages,groups,skipMissingProperties,skipNullProperties,skipUndefinedProperties';

/** The options of ValidationPipes that cannot act on what another pipe has made, as `option of place`. */
export function lateOptionsOf(pipes: readonly unknown[], place: string): string[] {
  const late = new Set(pipes.filter((pipe) => pipe instanceof ValidationPipe).flatMap(decidingOptionsOf));
  return [...late].map((option) => `${option} of ${place}`);
}

function decidingOptionsOf(pipe: ValidationPipe): string[] {
  const usual = new ValidationPipe();
  const given: Record<string, unknown> = {
    ...pipe['transformOptions'],
    ...pipe['validatorOptions'],
    exceptionFactory: String(pipe['exceptionFactory']) !== String(usual['exceptionFactory']),
    errorHttpStatusCode: pipe['errorHttpStatusCode'] !== usual['errorHttpStatusCode'],
    disableErrorMessages: pipe['isDetailedOutputDisabled'],
    errorFormat: pipe['errorFormat'] !== usual['errorFormat'],
  };
  return DECIDING_OPTIONS.split(',').filter((name) => given[name]);
}
