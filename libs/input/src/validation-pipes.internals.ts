import { ValidationPipe } from '@nestjs/common';

/** Options of a ValidationPipe that decide what is accepted, or how its faults are answered. */
export const DECIDING_OPTIONS =
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
