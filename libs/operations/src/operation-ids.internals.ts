import { ApiOperation, DECORATORS } from '@nestjs/swagger';
import type { Reach } from '#runtime';

/** The operationId of `@ApiOperation` at a handler; undefined without one. */
export function operationIdOf(handler: object): string | undefined {
  const operation = Reflect.getMetadata(DECORATORS.API_OPERATION, handler) as { operationId?: string } | undefined;
  return operation?.operationId;
}

export const OPERATION_IDS: Reach = {
  dependency: '@nestjs/swagger',
  touches: '`DECORATORS.API_OPERATION`',
  why: 'The operationId of the document is also the name of the operation in log, metrics and usage.',
  check() {
    class Trial {
      @ApiOperation({ operationId: 'trial' }) named(): void {}
      @ApiOperation({ summary: 'Trial.' }) unnamed(): void {}
    }
    const { named, unnamed } = Trial.prototype as unknown as Record<string, object>;
    const read = [named, unnamed].map((handler) => operationIdOf(handler as object)).join();
    return read === 'trial,' ? undefined : `the operationId trial comes back as '${read}'`;
  },
};
