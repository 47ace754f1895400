import { DECORATORS } from '@nestjs/swagger';

/** The operationId of `@ApiOperation` at a handler; undefined without one. */
export function operationIdOf(handler: object): string | undefined {
  const operation = Reflect.getMetadata(DECORATORS.API_OPERATION, handler) as { operationId?: string } | undefined;
  return operation?.operationId;
}
